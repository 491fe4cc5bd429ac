/*
 * Golden vectors in memory, read from the committed files or from the pack that the build makes of
 * them. Needs libc only.
 *
 *     cases/flags.txt              the closed list of flags
 *     cases/golden/GROUP.txt       cases, in the notation of problems
 *     vectors/GROUP.safetensors    their outputs, one tensor "ID.output" each
 *     vectors/SHA256SUMS           hashes of all of them in sha256sum's format
 */
#ifndef POSENC_VECTORS_H
#define POSENC_VECTORS_H

#include "conformance/problem/notation.h"

struct vector_case {
    const char *group;      /* its file */
    const char *id;         /* rope_table/f32/exact/llama31-p131071 */
    const char *name;       /* the last part of the id */
    const char *flags;      /* from the closed list, separated by spaces */
    const char *note;       /* the bug that it detects */
    const char *source;     /* paper and section, or file */
    struct problem problem; /* inputs by recipe */
    int n_outputs;
    const char *output_names[2],
        *tensors[2]; /* "cos"; "ID.cos", ID of this case or of its f32 one */
    int64_t rows[2], width[2];
    const double *want[2]; /* f64 rounded to odd, [rows, width], row order of struct output */
};

/* Meaning of a flag, from cases/flags.txt. */
struct vector_flag {
    const char *name, *bug_type, *description;
};

/* File of a set, followed by a NUL. */
struct vector_file {
    const char *name; /* as in SHA256SUMS */
    char *data;
    size_t bytes;
    bool is_listed; /* SHA256SUMS has its hash */
};

struct vectors {
    size_t n;
    struct vector_case *cases; /* groups are contiguous */
    size_t n_flags;
    struct vector_flag *flags;
    size_t n_files;
    struct vector_file *files;
    char sha256[65]; /* hash of the whole set, its name in records */
    bool official;   /* equal to the set that this program was built with */
    struct arena arena;
};

/* Name of a set that is not official, in records. */
#define OTHER_VECTORS "not the official vectors"

enum { VECTORS_ERROR = NOTATION_ERROR };

/* Load vectors; return false and a message that names the file, the error (with both hashes if one
 * differs) and the expectation. `root` has cases/ and vectors/; the first reads only the cases. */
bool vectors_load_cases(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);
bool vectors_load_folder(const char *root, struct vectors *vectors, char error[VECTORS_ERROR]);
bool vectors_load_pack(const char *path, struct vectors *vectors, char error[VECTORS_ERROR]);
/* Loads a pack in memory. It is modified and must outlive the vectors; `path` is for messages. */
bool vectors_load_memory(const char *path, char *pack, size_t bytes, struct vectors *vectors,
                         char error[VECTORS_ERROR]);
void vectors_free(struct vectors *vectors);

#define SUMS "vectors/SHA256SUMS" /* relative to the root, as are the names in it */
extern const char pack_magic[];   /* first bytes of a pack */

/* Parts of loading. Reads flags from a text, which it modifies. */
bool vectors_read_flags(struct vectors *vectors, char *text, const char *path,
                        char error[VECTORS_ERROR]);
/* Sets a case from its line, with its id and the seed that follows from the id. */
bool vectors_set_case(struct vectors *vectors, struct vector_case *c, const char *group,
                      const struct problem_line *line, char error[VECTORS_ERROR]);
/* Returns the id that a case would have in another dtype; NULL if it is too long. */
const char *vectors_id(struct vectors *vectors, const struct vector_case *c,
                       enum posenc_dtype dtype);
/* Returns the contents of a file, followed by a NUL; or NULL and a message. */
void *vectors_read_file(struct arena *arena, const char *path, size_t *bytes,
                        char error[VECTORS_ERROR]);

/* Writes the SHA-256 as 64 lower-case hexadecimal digits and a NUL. */
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
