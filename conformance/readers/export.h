/* Golden vectors as files for other programs: JSON manifests and tensors in safetensors. */
#ifndef POSENC_EXPORT_H
#define POSENC_EXPORT_H

#include "vectors.h"

enum { TENSOR_NAME = 128 };

/* Receives a file of the export; false ends the export. */
typedef bool vectors_sink(const char *name, const void *data, size_t bytes, void *user);

/* Passes all files to the sink; the last is MANIFEST.json with the hashes of the others. Returns
 * false if the sink did or memory ran out. The bytes depend on the vectors alone. */
bool vectors_export(const struct vectors *vectors, vectors_sink *sink, void *user);

#endif
