/*
 * The metadata of a GGUF file (ggml-org/ggml, docs/gguf.md), versions 2 and 3, little endian.
 */
#ifndef POSENC_MODEL_GGUF_H
#define POSENC_MODEL_GGUF_H

#include "model.h"

#include <jansson.h>

/* Whether a file that is open, and at its start, begins as one; it is at its start again. */
bool gguf_begins(FILE *file);

/* What such a file says of its architecture, an object to be released, or NULL with a message:
 *
 *     {"architecture": "llama", "name": "...", "rope": {"freq_base": 500000.0}, ...,
 *      "tensors": {"rope_freqs.weight": [1.0, ...]}}
 *
 * Keys lose the architecture that they begin with, and their dots are objects in objects.  Left
 * out are keys of other things (tokens), lists of texts and of more than GGUF_LIST values, and all
 * tensors but the factors of a rotation.  No length or count of the file is believed before it is
 * known to fit the bytes that are left. */
enum { GGUF_LIST = 4096 };
json_t *gguf_read(FILE *file, char error[MODEL_ERROR]);

#endif
