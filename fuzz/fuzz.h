/*
 * Declarations that all harnesses share. A harness parses one input as the program parses a file or an argument, then
 * uses the result as the program does. It prints nothing, frees everything, and allocates at most a few MiB.
 */
#ifndef POSENC_FUZZ_H
#define POSENC_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a copy of the input with a NUL appended, which the caller frees. Never returns NULL. */
char *fuzz_text(const uint8_t *data, size_t size);

#endif
