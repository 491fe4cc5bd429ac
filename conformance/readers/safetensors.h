/* Tensors in files: safetensors (github.com/huggingface/safetensors, README "Format"), and NumPy's format 1.0
 * (numpy.lib.format). */
#ifndef POSENC_SAFETENSORS_H
#define POSENC_SAFETENSORS_H

#include "conformance/problem/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A dense, little-endian matrix in a file. dtype is "F64", "F32", "F16" or "BF16". */
struct stored_array {
    const char *name, *dtype;
    int64_t rows, width;
    const void *data;
};

/* Writes a file; returns false if out of memory. The caller checks ferror(out). Names must need no escapes in
 * JSON. */
bool safetensors_write(const struct stored_array *arrays, size_t n, FILE *out);
void npy_write(const struct stored_array *array, FILE *out); /* not BF16 */

/* Reads a file that safetensors_write() made of F64 alone. Names and numbers, in the host's byte order, come from the
 * arena. Returns false and a message on error. */
bool safetensors_read(struct arena *arena, const void *file, size_t bytes,
                      struct stored_array **arrays, size_t *n, char *error);

#endif
