/*
 * A file of budgets.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/engine/engine.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/posenc-fuzz-XXXXXX", error[512];
    const int descriptor = mkstemp(path);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!file)
        abort();
    fwrite(data, 1, size, file);
    fclose(file);
    budgets_read(path, error);
    unlink(path);
    return 0;
}
