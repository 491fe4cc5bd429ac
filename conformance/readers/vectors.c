/* Parts of loading golden vectors (load.c): flags, cases, whole files. */
#define _POSIX_C_SOURCE 200809L
#include "vectors.h"
#include "base/text/text.h"
#include "conformance/problem/notation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void vectors_free(struct vectors *vectors)
{
    arena_free(&vectors->arena);
    *vectors = (struct vectors){ .n = 0 };
}

#define PLAIN_TEXT "expected plain text: UTF-8 without control characters and hidden ones"

/* ---- Flags ---- */

bool vectors_read_flags(struct vectors *vectors, char *text, const char *path,
                        char error[VECTORS_ERROR])
{
    size_t room = 0;
    for (int number = 1; text; number++) {
        char *line = notation_cut_text(&text, '\n');
        if (!line || *line == '#')
            continue;
        vectors->flags = arena_grow(&vectors->arena, vectors->flags, vectors->n_flags, &room,
                                    sizeof *vectors->flags);
        struct vector_flag flag = { .name = notation_cut_text(&line, '|') };
        flag.bug_type = notation_cut_text(&line, '|');
        flag.description = notation_cut_text(&line, '|');
        if (!vectors->flags)
            return notation_fail(error, "%s:%d: no memory for a flag", path, number);
        if (!flag.name || !flag.bug_type || !flag.description)
            return notation_fail(
                error, "%s:%d: expected a flag | the type of bug | what it stands for", path,
                number);
        if (!text_is_plain(flag.name) || !text_is_plain(flag.bug_type) ||
            !text_is_plain(flag.description))
            return notation_fail(error, "%s:%d: " PLAIN_TEXT, path, number);
        vectors->flags[vectors->n_flags++] = flag;
    }
    return true;
}

static bool check_flags(const struct vectors *vectors, const struct vector_case *c, char *error)
{
    for (const char *at = c->flags; *at;) {
        const size_t n = strcspn(at, " ");
        size_t k = 0;
        while (k < vectors->n_flags && (strlen(vectors->flags[k].name) != n ||
                                        strncmp(vectors->flags[k].name, at, n) != 0))
            k++;
        if (k == vectors->n_flags)
            return notation_fail(error, "%s: flag %.*s is none of cases/flags.txt", c->id,
                                 (int)n, at);
        at += n + strspn(at + n, " ");
    }
    return true;
}

/* ---- Cases ---- */

/* Returns the FNV-1a hash of an id, of 32 bits. */
static uint64_t hash_id(const char *id)
{
    uint64_t hash = 2166136261u;
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 16777619u & UINT32_MAX;
    return hash;
}

/* Returns false for kernels whose outputs follow from positions alone. */
static bool has_inputs(enum posenc_kernel kernel)
{
    return !kernel_has_freqs(kernel) || kernel_takes_x(kernel);
}

enum { LONGEST_ID = 95 };

const char *vectors_make_id(struct vectors *vectors, const struct vector_case *c,
                            enum posenc_dtype dtype)
{
    const struct problem *p = &c->problem;
    const char *numerics =
        kernel_has_freqs(p->kernel) ? numerics_names[p->freqs.numerics] : "given";
    char id[LONGEST_ID + 1];
    const int n = snprintf(id, sizeof id, "%s/%s/%s/%s", posenc_kernel_name(p->kernel),
                           dtype_names[dtype], numerics, c->name);
    return n <= LONGEST_ID ? arena_text(&vectors->arena, id, (size_t)n) : NULL;
}

/* Limits of a case, far above the official ones, so that no set of vectors makes verify slow. */
static const struct problem_limits limits = { .bytes = 1 << 26,
                                              .values = 1 << 22,
                                              .basis = "the most of a golden case" };

bool vectors_set_case(struct vectors *vectors, struct vector_case *c, const char *group,
                      const struct problem_line *line, char error[VECTORS_ERROR])
{
    *c = (struct vector_case){ .group = group,
                               .name = line->name,
                               .flags = line->flags,
                               .note = line->note,
                               .source = line->source,
                               .problem = line->problem };
    c->id = vectors_make_id(vectors, c, c->problem.dtype);
    const char *as_f32 = vectors_make_id(vectors, c, POSENC_DTYPE_F32);
    if (strspn(c->name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(c->name))
        return notation_fail(error, "%.200s: expected a name of characters a-z 0-9 _ . -",
                             c->name);
    if (!c->id || !as_f32)
        return notation_fail(
            error, "%.200s: expected an id of at most %d characters, and memory for it",
            c->name, LONGEST_ID);
    if (!*c->flags || !*c->note || !*c->source)
        return notation_fail(error, "%s: expected | flags | note | source", c->id);
    if (!text_is_plain(c->flags) || !text_is_plain(c->note) || !text_is_plain(c->source))
        return notation_fail(error, "%s: " PLAIN_TEXT, c->id);
    if (!problem_within(&c->problem, &limits, error))
        return false;
    /* A seed that follows from the id alone is not changed by a new case. Cases in f16 or bf16 take the id of the f32
     * case, to have the same inputs. ONNX cases have another recipe and keep seed 0. */
    if (c->problem.recipe == RECIPE_MIX && has_inputs(c->problem.kernel))
        c->problem.seed = hash_id(as_f32);
    return check_flags(vectors, c, error);
}

/* ---- Files ---- */

void *vectors_read_file(struct arena *arena, const char *path, size_t *bytes,
                        char error[VECTORS_ERROR])
{
    enum { MOST_BYTES = 1 << 28 };
    struct stat facts;
    errno = 0;
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    *bytes = 0;
    if (file && fstat(fileno(file), &facts) == 0) {
        if (facts.st_size > MOST_BYTES) {
            fclose(file);
            notation_fail(error, "%s: has %lld bytes; expected at most %d", path,
                          (long long)facts.st_size, MOST_BYTES);
            return NULL;
        }
        data = arena_get(arena, (size_t)facts.st_size + 1); /* and a NUL, as memory is zeroed */
    }
    *bytes = data ? (size_t)facts.st_size : 0;
    const bool good = data && fread(data, 1, *bytes, file) == *bytes;
    if (!good)
        notation_fail(error, "%s: cannot be read: %s", path,
                      errno ? strerror(errno) : "it is too short");
    if (file)
        fclose(file);
    return good ? data : NULL;
}
