/*
 * A file of budgets.
 */
#include "conformance/engine/engine.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64], error[512];
    if (!*path)
        snprintf(path, sizeof path, "/tmp/fuzz_budgets-%ld", (long)getpid());
    FILE *file = fopen(path, "wb");
    if (!file)
        abort();
    fwrite(data, 1, size, file);
    fclose(file);
    budgets_read(path, error);
    unlink(path);
    return 0;
}
