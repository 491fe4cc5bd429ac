/*
 * Tensors in files: safetensors (github.com/huggingface/safetensors, README "Format").
 */
#ifndef POSENC_SAFETENSORS_H
#define POSENC_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

/* A dense, little-endian tensor.  dtype is "F32", "F16", "BF16", "F64", "I32" or "I64". */
struct array {
    char name[128];
    char dtype[8];
    int rank; /* 0 to 4 */
    int64_t shape[4];
    const void *data;
    size_t bytes;
};

/* Bytes of an element, 0 for a dtype that is none of ours. */
size_t array_item_bytes(const char *dtype);
/* An array of rank 1 to 4. */
struct array array_of(const char *name, const char *dtype, int rank, const int64_t *shape,
                      const void *data);

/* A file's contents, to be freed; names need no escapes in JSON.  NULL when memory runs out. */
void *safetensors_build(const struct array *arrays, size_t n, size_t *bytes);

/* Reads what lies in memory; `data` of each array points into it.  0, and *arrays to be freed;
 * or -1 with what is wrong in error (512 bytes).  Unknown dtypes are refused. */
int safetensors_read(const void *file, size_t bytes, struct array **arrays, size_t *n,
                     char *error);

#endif
