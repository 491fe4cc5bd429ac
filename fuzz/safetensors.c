/* Fuzzes the reader of the safetensors files that posenc writes. */
#include "conformance/readers/vectors.h"
#include "fuzz.h"

/* Reads every value, so that a sanitizer detects an array that reaches outside of the file. */
static double sum_values(const struct stored_array *arrays, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; k < arrays[i].rows * arrays[i].width; k++)
            sum += ((const double *)arrays[i].data)[k]; /* the reader accepts F64 alone */
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes;
    char error[VECTORS_ERROR], *file = fuzz_safetensors(data, size, &bytes);
    struct arena arena = { .last = NULL };
    struct stored_array *arrays;
    size_t n;
    volatile double sink = 0.0; /* keeps the compiler from dropping the reads */
    if (safetensors_read(&arena, file, bytes, &arrays, &n, error))
        sink = sum_values(arrays, n);
    (void)sink;
    arena_free(&arena);
    free(file);
    return 0;
}
