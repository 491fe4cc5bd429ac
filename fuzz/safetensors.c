/*
 * A file of tensors.  An input that begins with { is a header without its length, which mutations would not find; the
 * data begin with the line end behind it.
 */
#include "conformance/readers/safetensors.h"
#include "conformance/readers/vectors.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Sums up what was read, so that all of it is. */
static double look_at(const struct array *arrays, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; k < arrays[i].rows * arrays[i].width; k++)
            sum += ((const double *)arrays[i].data)[k];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[VECTORS_ERROR], *file = malloc(size + 8);
    struct arena arena = { .last = NULL };
    struct array *arrays;
    size_t n, head = size > 0 && data[0] == '{' ? 8 : 0;
    volatile double sum = 0.0;
    if (!file)
        abort();
    if (head > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        const size_t length = end ? (size_t)(end - data) : size;
        for (size_t i = 0; i < head; i++)
            file[i] = (char)(length >> (8 * i) & 255);
    }
    if (size > 0)
        memcpy(file + head, data, size);
    if (safetensors_read(&arena, file, size + head, &arrays, &n, error))
        sum = sum + look_at(arrays, n);
    arena_free(&arena);
    free(file);
    return 0;
}
