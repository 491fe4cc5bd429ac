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

/* Returns the input as a safetensors file. Such a file begins with the length of its JSON header, a little-endian integer
 * that mutations would rarely guess. It is prepended to an input that begins with {; the header then ends before the first
 * newline, and the tensors begin with that newline. The file has no byte more, so that a sanitizer detects a read past
 * its end. The caller frees it. */
static inline char *fuzz_safetensors(const uint8_t *data, size_t size, size_t *bytes)
{
    enum { LENGTH_BYTES = 8 };
    const size_t prefix = size > 0 && data[0] == '{' ? LENGTH_BYTES : 0;
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    const size_t length = end ? (size_t)(end - data) : size;
    *bytes = size + prefix;
    char *file = malloc(*bytes > 0 ? *bytes : 1);
    if (!file)
        abort();
    for (size_t i = 0; i < prefix; i++)
        file[i] = (char)(length >> (8 * i) & 255);
    if (size > 0)
        memcpy(file + prefix, data, size);
    return file;
}

#endif
