/*
 * What harnesses share.  Each reads one input as the program reads a file or a word, goes on with what was read as the
 * program does, and ends: it says nothing, keeps nothing, and asks for no more than a few MiB.
 */
#ifndef POSENC_FUZZ_H
#define POSENC_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a text, to be freed: it ends at a NUL. */
char *fuzz_text(const uint8_t *data, size_t size);

#endif
