/*
 * What is committed of the golden vectors: cases as text, tensors in safetensors, hashes.
 */
#ifndef POSENC_FOLDER_H
#define POSENC_FOLDER_H

#include "vectors.h"

/* `root` has cases/ and vectors/.  The first reads what the cases say; the second their tensors
 * too, once the hashes of all files are found to be right. */
bool vectors_load_cases(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);
bool vectors_load_folder(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);

#define SUMS "vectors/SHA256SUMS" /* under the root, the names in it too */

#endif
