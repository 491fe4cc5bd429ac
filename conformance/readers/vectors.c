/*
 * What all readers of golden vectors share: cases from lines, flags, files.
 */
#include "vectors.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const char pack_magic[PACK_MAGIC + 1] = "posenc.vectors/2";

void vectors_free(struct vectors *vectors)
{
    arena_free(&vectors->arena);
    *vectors = (struct vectors){ .n = 0 };
}

size_t vectors_group_end(const struct vectors *vectors, size_t first)
{
    size_t end = first;
    while (end < vectors->n &&
           strcmp(vectors->cases[end].group, vectors->cases[first].group) == 0)
        end++;
    return end;
}

bool vectors_same_output(const struct vector_case *a, const struct vector_case *b, int o)
{
    const size_t n = (size_t)(a->rows[o] * a->width[o]);
    return a->rows[o] == b->rows[o] && a->width[o] == b->width[o] &&
           memcmp(a->want[o], b->want[o], n * sizeof *a->want[o]) == 0;
}

/* ---- Flags ---- */

/* The text up to the next '|' or the end of the line, blanks cut off; *at goes behind it. */
static const char *take_column(struct vectors *vectors, const char **at)
{
    const size_t n = strcspn(*at, "|\n");
    const char *from = *at + strspn(*at, " ");
    size_t length = (size_t)(*at + n - from);
    while (length > 0 && from[length - 1] == ' ')
        length--;
    *at += n + ((*at)[n] == '|');
    return length > 0 ? arena_text(&vectors->arena, from, length) : NULL;
}

bool vectors_read_flags(struct vectors *vectors, const char *text, const char *path,
                        char error[VECTORS_ERROR])
{
    size_t room = 0;
    int number = 1;
    vectors->flags_text = text;
    for (const char *at = text; *at; number++) {
        if (*at != '#' && *at != '\n') {
            struct vector_flag flag;
            flag.name = take_column(vectors, &at);
            flag.bug_type = take_column(vectors, &at);
            flag.description = take_column(vectors, &at);
            vectors->flags = arena_grow(&vectors->arena, vectors->flags, vectors->n_flags,
                                        &room, sizeof flag);
            if (!vectors->flags || !flag.name || !flag.bug_type || !flag.description) {
                snprintf(error, VECTORS_ERROR,
                         "%s:%d: expected a flag | the type of bug | what it stands for", path,
                         number);
                return false;
            }
            vectors->flags[vectors->n_flags++] = flag;
        }
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return true;
}

static bool known_flags(const struct vectors *vectors, const struct vector_case *c, char *error)
{
    for (const char *at = c->flags; *at;) {
        const size_t n = strcspn(at, " ");
        size_t k = 0;
        while (k < vectors->n_flags && (strlen(vectors->flags[k].name) != n ||
                                        strncmp(vectors->flags[k].name, at, n) != 0))
            k++;
        if (k == vectors->n_flags) {
            snprintf(error, VECTORS_ERROR, "%s: flag %.*s is none of cases/flags.txt", c->id,
                     (int)n, at);
            return false;
        }
        at += n + strspn(at + n, " ");
    }
    return true;
}

/* ---- Cases ---- */

/* Inputs follow from the id (FNV-1a), so that a new case leaves the others as they are; those
 * of ONNX from seed 0.  Of a case in f16 or bf16 from the id it has in f32: the same inputs. */
static uint64_t seed_of(const char *id)
{
    uint64_t hash = 2166136261u;
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 16777619u & UINT32_MAX;
    return hash;
}

/* All but kernels that compute what they write from positions alone. */
static bool draws_inputs(enum posenc_kernel kernel)
{
    return !kernel_has_plan(kernel) || kernel_takes_x(kernel);
}

const char *vectors_id(struct vectors *vectors, const struct vector_case *c,
                       enum posenc_dtype dtype)
{
    enum { ID = 96 };
    const struct problem *p = &c->problem;
    const char *profile =
        kernel_has_plan(p->kernel) ? profile_names[p->freqs.profile] : "given";
    char id[ID];
    const int n = snprintf(id, sizeof id, "%s/%s/%s/%s", posenc_kernel_name(p->kernel),
                           dtype_names[dtype], profile, c->name);
    return n < ID ? arena_text(&vectors->arena, id, (size_t)n) : NULL;
}

bool vectors_set_case(struct vectors *vectors, struct vector_case *c, const char *group,
                      const struct problem_line *line, char error[VECTORS_ERROR])
{
    *c = (struct vector_case){ .group = group,
                               .name = line->name,
                               .flags = line->flags,
                               .note = line->note,
                               .source = line->source,
                               .problem = line->problem };
    c->id = vectors_id(vectors, c, c->problem.dtype);
    const char *as_f32 = vectors_id(vectors, c, POSENC_F32);
    if (!c->id || !as_f32 ||
        strspn(c->name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(c->name)) {
        snprintf(error, VECTORS_ERROR,
                 "%.200s: expected a name of at most 60 characters a-z 0-9 _ . -", c->name);
        return false;
    }
    if (!*c->flags || !*c->note || !*c->source) {
        snprintf(error, VECTORS_ERROR, "%s: expected | flags | note | source", c->id);
        return false;
    }
    if (c->problem.recipe == RECIPE_MIX && draws_inputs(c->problem.kernel))
        c->problem.seed = seed_of(as_f32);
    return known_flags(vectors, c, error);
}

/* ---- Files ---- */

void *vectors_read_file(struct arena *arena, const char *path, size_t *bytes,
                        char error[VECTORS_ERROR])
{
    errno = 0;
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0 && size < LONG_MAX && fseek(file, 0, SEEK_SET) == 0)
        data = arena_get(arena, (size_t)size + 1);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size)
        data = NULL;
    if (!data)
        snprintf(error, VECTORS_ERROR, "%s: cannot be read: %s", path,
                 errno ? strerror(errno) : "it is too short or no file");
    else
        *bytes = (size_t)size;
    if (file)
        fclose(file);
    return data;
}
