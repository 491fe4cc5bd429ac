/*
 * Interface of the fuzz harnesses, one source file for each reader of foreign data. A harness passes the input to the
 * reader, then uses the result as posenc does. It aborts if the reader breaks a promise; sanitizers detect the rest.
 * It prints nothing, frees all memory, and allocates at most a few MiB.
 */
#ifndef POSENC_FUZZ_H
#define POSENC_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Runs one input; returns 0. libFuzzer and corpus.c call it, and libFuzzer defines its name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a copy of the input, with a NUL appended. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
