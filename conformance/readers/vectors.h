/*
 * Golden vectors in memory, read from a folder: conformance/ in the source tree, or the installed
 * share/posenc/golden. Needs libc only.
 *
 *     cases/flags.txt              the flags that cases may have, one a line, and their meaning
 *     cases/golden/GROUP.txt       cases, in the notation of problems
 *     vectors/GROUP.safetensors    expected outputs, one tensor "ID.output" each
 *     vectors/SHA256SUMS           hashes of these files in sha256sum's format
 */
#ifndef POSENC_VECTORS_H
#define POSENC_VECTORS_H

#include "conformance/problem/notation.h"

#include <stdio.h>

/* A golden case: a problem with its expected outputs. */
struct vector_case {
    const char *group;  /* name of its file */
    const char *id;     /* rope_table/f32/exact/llama31-p131071 */
    const char *name;   /* the last part of the id */
    const char *flags;  /* separated by spaces */
    const char *note;   /* the bug that it detects */
    const char *source; /* paper and section, or file */
    struct problem problem;
    int n_outputs;
    const char *output_names[2]; /* "cos" */
    const char
        *tensors[2]; /* "ID.cos"; a 16-bit case may share the tensor of its f32 or f16 case */
    int64_t rows[2], width[2];
    const double *want[2]; /* f64 rounded to odd, [rows, width], rows as in struct output */
};

/* File of a set, followed by a NUL. */
struct vector_file {
    const char *name; /* as in SHA256SUMS */
    char *data;
    size_t bytes;
    bool is_listed; /* SHA256SUMS has its hash */
};

/* A set of golden vectors. The arena holds everything that members point to. */
struct vectors {
    size_t n;
    struct vector_case *cases; /* groups are contiguous */
    size_t n_files;
    struct vector_file *files;
    char sha256[65]; /* hash of the whole set, its name in records */
    bool official;   /* equal to the set that this program was built with */
    struct arena arena;
};

/* Words for a set that is not official, in records. */
#define OTHER_VECTORS "not the official vectors"

enum { VECTORS_ERROR = NOTATION_ERROR };

/* Loads the cases of a folder without their outputs. On an error, returns false and a message. */
bool vectors_load_cases(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);
/* Loads the cases with their outputs. On an error, returns false and a message. */
bool vectors_load(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);
void vectors_free(struct vectors *vectors);

/* Returns the contents of a file, followed by a NUL; or NULL and a message. */
void *vectors_read_file(struct arena *arena, const char *path, size_t *bytes,
                        char error[VECTORS_ERROR]);

/* ---- Tensors in files: safetensors.c ---- */

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

/* ---- SHA-256: sha256.c ---- */

/* Writes the SHA-256 of a whole, or of parts in order, as 64 lower-case hexadecimal digits and a NUL. */
void sha256_hex(const void *data, size_t bytes, char hex[65]);
struct sha256 {
    uint32_t state[8];
    uint64_t length;         /* bytes so far */
    unsigned char block[64]; /* bytes after the last whole block */
};
void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t bytes);
void sha256_final(struct sha256 *s, char hex[65]);

#endif
