/*
 * Golden vectors in memory, read with libc only from what is committed or from the pack that the
 * build makes of it.
 *
 *     cases/flags.txt              the closed list of flags
 *     cases/golden/GROUP.txt       cases, in the notation of problems
 *     vectors/GROUP.safetensors    their outputs, one tensor "ID.output" each
 *     vectors/SHA256SUMS           the hashes of all of them, as sha256sum has them
 */
#ifndef POSENC_VECTORS_H
#define POSENC_VECTORS_H

#include "conformance/problem/notation.h"

struct vector_case {
    const char *group;      /* its file */
    const char *id;         /* rope_table/f32/exact/llama31-p131071 */
    const char *name;       /* the last part of it */
    const char *flags;      /* of the closed list, space separated */
    const char *note;       /* the bug it catches */
    const char *source;     /* paper and section, or file, it follows */
    struct problem problem; /* inputs by recipe */
    int n_outputs;
    const char *output_names[2];
    int64_t rows[2], width[2];
    const double *want[2]; /* f64 rounded to odd, [rows, width], row order of struct output */
};

/* What a flag stands for: cases/flags.txt. */
struct vector_flag {
    const char *name, *bug_type, *description;
};

struct vectors {
    size_t n;
    struct vector_case *cases; /* those of a group beside each other */
    size_t n_flags;
    struct vector_flag *flags;
    char sha256[65]; /* of the whole set: names it in records */
    bool official;   /* it is the set that this program was built with */
    struct arena arena;
};

/* What a set is called that is not. */
#define OTHER_VECTORS "not the official vectors"

enum { VECTORS_ERROR = NOTATION_ERROR };

/* False, with a message in error that names the file, what is wrong (with both hashes when it
 * is a hash) and what was expected.  `root` has cases/ and vectors/; the first reads the cases alone. */
bool vectors_load_cases(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);
bool vectors_load_folder(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);
bool vectors_load_pack(const char *path, struct vectors *vectors, char error[VECTORS_ERROR]);
/* A pack in memory, which is cut up and has to stay as long as the vectors; `path` is for messages. */
bool vectors_load_memory(const char *path, char *pack, size_t bytes, struct vectors *vectors,
                         char error[VECTORS_ERROR]);
void vectors_free(struct vectors *vectors);

#define SUMS "vectors/SHA256SUMS" /* under the root, the names in it too */
extern const char pack_magic[];   /* with which a pack begins */

/* Whether output o of two cases is the same tensor. */
bool vectors_same_output(const struct vector_case *a, const struct vector_case *b, int o);

/* One past the last case of the group that begins at a case. */
size_t vectors_group_end(const struct vectors *vectors, size_t first);

/* For those who load vectors.  Flags from their text, which is cut up: */
bool vectors_read_flags(struct vectors *vectors, char *text, const char *path,
                        char error[VECTORS_ERROR]);
/* A case from its line, with its id, and the seed that follows from that: */
bool vectors_set_case(struct vectors *vectors, struct vector_case *c, const char *group,
                      const struct problem_line *line, char error[VECTORS_ERROR]);
/* The id that a case would have, were it stored in this type; NULL where it is too long. */
const char *vectors_id(struct vectors *vectors, const struct vector_case *c,
                       enum posenc_dtype dtype);
/* The whole of a file, with a NUL after it: */
void *vectors_read_file(struct arena *arena, const char *path, size_t *bytes,
                        char error[VECTORS_ERROR]);

/* Lower-case hexadecimal SHA-256, 64 characters and a NUL. */
void sha256_hex(const void *data, size_t bytes, char hex[65]);
struct sha256 {
    uint32_t state[8];
    uint64_t length;         /* bytes so far */
    unsigned char block[64]; /* those after the last whole block */
};
void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t bytes);
void sha256_final(struct sha256 *s, char hex[65]);

#endif
