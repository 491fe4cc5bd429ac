/*
 * Golden vectors as files for other programs: manifests in JSON beside tensors in safetensors.
 */
#ifndef POSENC_EXPORT_H
#define POSENC_EXPORT_H

#include "vectors.h"

enum { TENSOR_NAME = 128 };

/* Takes a file of the export; false ends it. */
typedef bool vectors_sink(const char *name, const void *data, size_t bytes, void *user);

/* Gives all files to the sink, MANIFEST.json, which has the hashes of the others, last.  False
 * where the sink said so or memory ran out.  The bytes depend on the vectors alone. */
bool vectors_export(const struct vectors *vectors, vectors_sink *sink, void *user);

#endif
