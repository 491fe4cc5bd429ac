/*
 * Fuzzes the reader of safetensors files. Such a file begins with the length of its JSON header, which mutations would
 * rarely guess. If an input begins with {, the harness prepends the length; the header then ends before the first
 * newline, and the tensors begin with that newline.
 */
#include "conformance/readers/safetensors.h"
#include "conformance/readers/vectors.h"
#include "fuzz.h"

enum { LENGTH_BYTES = 8 }; /* size of the header's length, a little-endian integer */

/* Reads every value, so that a sanitizer detects an array that reaches outside of the file. */
static double sum_values(const struct stored_array *arrays, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; k < arrays[i].rows * arrays[i].width; k++)
            sum += ((const double *)arrays[i].data)[k];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t prefix = size > 0 && data[0] == '{' ? LENGTH_BYTES : 0;
    /* no byte more than the file, so that a sanitizer detects a read past its end */
    char error[VECTORS_ERROR], *file = malloc(size + prefix > 0 ? size + prefix : 1);
    struct arena arena = { .last = NULL };
    struct stored_array *arrays;
    size_t n;
    volatile double sink = 0.0; /* keeps the compiler from dropping the reads */
    if (!file)
        abort();
    if (prefix > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        const size_t length = end ? (size_t)(end - data) : size;
        for (size_t i = 0; i < prefix; i++)
            file[i] = (char)(length >> (8 * i) & 255);
    }
    if (size > 0)
        memcpy(file + prefix, data, size);
    if (safetensors_read(&arena, file, size + prefix, &arrays, &n, error))
        sink = sink + sum_values(arrays, n);
    arena_free(&arena);
    free(file);
    return 0;
}
