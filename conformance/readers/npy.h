/*
 * One tensor as a NumPy file (numpy.lib.format, version 1.0).
 */
#ifndef POSENC_NPY_H
#define POSENC_NPY_H

#include "safetensors.h"

/* A file's contents, to be freed; NULL when memory runs out. */
void *npy_build(const struct array *array, size_t *bytes);

#endif
