/* Fuzzes the reader of error limits, through a temporary file because it takes a path. Sanitizers judge it. */
#define _POSIX_C_SOURCE 200809L
#include "conformance/engine/error_limits.h"
#include "fuzz.h"

#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/posenc-fuzz-XXXXXX", message[ERROR_LIMITS_MESSAGE];
    const int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file)
        abort();
    const bool written = fwrite(data, 1, size, file) == size;
    if (fclose(file) != 0 || !written)
        abort();
    error_limits_read(path, message);
    unlink(path);
    return 0;
}
