/*
 * Golden vectors in memory.  Two ways in: the committed folder (manifests in JSON, tensors in
 * safetensors, every file's SHA-256 checked), or the flat pack the build makes of it, which
 * needs neither a JSON reader nor a file system of folders.
 */
#ifndef POSENC_VECTORS_H
#define POSENC_VECTORS_H

#include "conformance/problem/problem.h"

struct vector_case {
    const char *id;         /* rope_table/exact/llama31-p131071 */
    const char *flags;      /* of the closed list, space separated */
    const char *note;       /* the bug it catches */
    const char *source;     /* paper and section, or file, it follows */
    struct problem problem; /* inputs by recipe */
    int n_outputs;
    const char *output_names[2];
    int64_t rows[2], width[2];
    const double *want[2]; /* f64 rounded to odd, [rows, width], row order of struct output */
};

struct vectors {
    size_t n;
    struct vector_case *cases;
    char sha256[65]; /* of the whole set: names it in records */
    void *memory;
};

/* 0, or -1 with a message in error (512 bytes) that names the file, what is wrong (with both
 * hashes when it is a hash) and what was expected. */
int vectors_load_pack(const char *path, struct vectors *vectors, char *error);
int vectors_load_dir(const char *dir, struct vectors *vectors,
                     char *error); /* in the JSON part */
void vectors_free(struct vectors *vectors);

/* Lower-case hexadecimal SHA-256, 64 characters and a NUL. */
void sha256_hex(const void *data, size_t bytes, char hex[65]);
struct sha256 {
    uint32_t state[8];
    uint64_t length;
    unsigned char block[64];
};
void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t bytes);
void sha256_final(struct sha256 *s, char hex[65]);

#endif
