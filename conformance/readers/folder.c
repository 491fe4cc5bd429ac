/*
 * Golden vectors from what is committed.
 *
 *     cases/flags.txt              the closed list of flags
 *     cases/golden/GROUP.txt       cases, in the notation of problems
 *     vectors/GROUP.safetensors    their outputs, one tensor "ID.output" each
 *     vectors/SHA256SUMS           the hashes of all of them, as sha256sum has them
 *
 * The hash of SHA256SUMS names the set.  A case that differs from another in storage alone has
 * no tensor of its own: it is the one of the same case in f32, or in f16.
 */
#define _POSIX_C_SOURCE 200809L
#include "folder.h"

#include "conformance/problem/cases.h"
#include "safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

static void path_of(char path[PATH_BYTES], const char *root, const char *name)
{
    snprintf(path, PATH_BYTES, "%.400s/%.400s", root, name);
}

/* ---- Cases ---- */

static int is_text(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strcmp(end, ".txt") == 0;
}

/* The cases of a file; its name without .txt is the group's. */
static bool read_group(struct vectors *vectors, const char *root, const char *name,
                       size_t *room, char *error)
{
    struct problem_list list = { .n = 0 };
    char path[PATH_BYTES];
    size_t bytes;
    snprintf(path, sizeof path, "%.400s/cases/golden/%.400s", root, name);
    const char *group = arena_text(&vectors->arena, name, strlen(name) - strlen(".txt"));
    const char *text = vectors_read_file(&vectors->arena, path, &bytes, error);
    list.arena = vectors->arena; /* what is read stays as long as the vectors */
    bool good = group && text && notation_read_file(text, path, &list, error);
    vectors->arena = list.arena;
    for (size_t i = 0; i < list.n && good; i++) {
        struct vector_case *to;
        char why[VECTORS_ERROR] = "no memory";
        if (is_shape(&list.lines[i]))
            continue;
        vectors->cases = arena_grow(&vectors->arena, vectors->cases, vectors->n, room,
                                    sizeof *vectors->cases);
        to = vectors->cases ? &vectors->cases[vectors->n] : NULL;
        good = to && vectors_set_case(vectors, to, group, &list.lines[i], why);
        for (size_t k = 0; k < vectors->n && good; k++)
            if (strcmp(vectors->cases[k].id, to->id) == 0) {
                snprintf(why, sizeof why, "there is another case %s", vectors->cases[k].id);
                good = false;
            }
        if (!good)
            snprintf(error, VECTORS_ERROR, "%.200s:%d: %.700s", path, list.lines[i].number,
                     why);
        vectors->n += good;
    }
    return good;
}

bool vectors_load_cases(const char *root, struct vectors *vectors, char error[VECTORS_ERROR])
{
    *vectors = (struct vectors){ .n = 0 };
    struct dirent **entries = NULL;
    char path[PATH_BYTES];
    size_t bytes, room = 0;
    path_of(path, root, "cases/flags.txt");
    const char *flags = vectors_read_file(&vectors->arena, path, &bytes, error);
    bool good = flags && vectors_read_flags(vectors, flags, path, error);
    path_of(path, root, "cases/golden");
    const int n = good ? scandir(path, &entries, is_text, alphasort) : 0;
    if (good && n <= 0) {
        snprintf(error, VECTORS_ERROR, "%.600s: %.200s; expected files of cases, GROUP.txt",
                 path, n < 0 ? strerror(errno) : "it is empty");
        good = false;
    }
    for (int i = 0; i < n; i++) {
        good = good && read_group(vectors, root, entries[i]->d_name, &room, error);
        free(entries[i]);
    }
    free(entries);
    if (!good)
        vectors_free(vectors);
    return good;
}

/* ---- Hashes ---- */

enum { HASH = 64, BEFORE_NAME = HASH + 2 };

/* The file that a line of SHA256SUMS names has the hash it says. */
static bool right_hash(struct arena *arena, const char *root, const char *line, char *error)
{
    char path[PATH_BYTES], name[PATH_BYTES], hash[HASH + 1];
    size_t bytes = 0;
    const size_t n = strcspn(line, "\n");
    if (n <= BEFORE_NAME || line[n] == '\0') {
        snprintf(error, VECTORS_ERROR,
                 "%.400s/%s: \"%.*s\" is cut short: expected a hash, two "
                 "spaces, a name",
                 root, SUMS, (int)n, line);
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)(n - BEFORE_NAME), line + BEFORE_NAME);
    path_of(path, root, name);
    const void *data = vectors_read_file(arena, path, &bytes, error);
    if (!data)
        return false;
    sha256_hex(data, bytes, hash);
    if (strncmp(hash, line, HASH) == 0)
        return true;
    snprintf(error, VECTORS_ERROR,
             "%.400s: altered: it has %zu bytes and SHA-256 %s where SHA256SUMS says %.64s",
             path, bytes, hash, line);
    return false;
}

/* Whether a line of SHA256SUMS ends with " <folder><group><end>". */
static bool lists(const char *sums, const char *folder, const char *group, const char *end)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "  %s%s%s\n", folder, group, end);
    return strstr(sums, name) != NULL;
}

static bool right_hashes(struct vectors *vectors, const char *root, char *error)
{
    char path[PATH_BYTES];
    size_t bytes = 0;
    path_of(path, root, SUMS);
    const char *sums = vectors_read_file(&vectors->arena, path, &bytes, error);
    if (!sums)
        return false;
    sha256_hex(sums, bytes, vectors->sha256);
    for (const char *line = sums; *line; line += strcspn(line, "\n") + 1)
        if (!right_hash(&vectors->arena, root, line, error))
            return false;
    bool good = lists(sums, "cases/", "flags", ".txt");
    for (size_t i = 0; i < vectors->n && good; i++)
        good = lists(sums, "cases/golden/", vectors->cases[i].group, ".txt") &&
               lists(sums, "vectors/", vectors->cases[i].group, ".safetensors");
    if (!good)
        snprintf(error, VECTORS_ERROR, "%.600s: does not list every file of cases and tensors",
                 path);
    return good;
}

/* ---- Tensors ---- */

static const struct array *find_tensor(const char *id, const char *output,
                                       const struct array *arrays, size_t n)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", id, output);
    for (size_t i = 0; i < n; i++)
        if (strcmp(arrays[i].name, name) == 0)
            return &arrays[i];
    return NULL;
}

/* The output of that name, where the case has one. */
static bool set_output(struct vectors *vectors, struct vector_case *c, const char *output,
                       const struct array *arrays, size_t n, char *error)
{
    const struct array *found = find_tensor(c->id, output, arrays, n);
    for (int type = POSENC_F32; !found && type < (int)c->problem.dtype; type++) {
        const char *id = vectors_id(vectors, c, (enum posenc_dtype)type);
        found = id ? find_tensor(id, output, arrays, n) : NULL;
    }
    if (!found)
        return true;
    uint64_t *words = arena_get(&vectors->arena, found->bytes + 1);
    if (!words || found->rank != 2 || strcmp(found->dtype, "F64") != 0) {
        snprintf(error, VECTORS_ERROR, "tensor %s: %s", found->name,
                 words ? "expected F64 of rank 2" : "no memory");
        return false;
    }
    const unsigned char *from = found->data;
    for (size_t i = 0; i < found->bytes / 8; i++, from += 8)
        for (int b = 7; b >= 0; b--)
            words[i] = words[i] << 8 | from[b];
    const int o = c->n_outputs++;
    c->output_names[o] = output;
    c->rows[o] = found->shape[0];
    c->width[o] = found->shape[1];
    c->want[o] = (const double *)words;
    return true;
}

static bool read_tensors(struct vectors *vectors, const char *root, size_t first, size_t end,
                         char *error)
{
    static const char *const outputs[] = { "out", "cos", "sin" };
    char path[PATH_BYTES], why[VECTORS_ERROR] = "has no tensor";
    size_t bytes, n = 0;
    snprintf(path, sizeof path, "%.400s/vectors/%.100s.safetensors", root,
             vectors->cases[first].group);
    const void *file = vectors_read_file(&vectors->arena, path, &bytes, error);
    struct array *arrays = NULL;
    if (!file)
        return false;
    bool good = safetensors_read(file, bytes, &arrays, &n, why) == 0;
    for (size_t i = first; i < end && good; i++) {
        struct vector_case *c = &vectors->cases[i];
        for (int k = 0; k < 3 && good; k++)
            good = set_output(vectors, c, outputs[k], arrays, n, why);
        if (good && c->n_outputs == 0) {
            snprintf(why, sizeof why, "there is no tensor of %s", c->id);
            good = false;
        }
    }
    if (good || arrays)
        free(arrays);
    if (!good)
        snprintf(error, VECTORS_ERROR, "%.400s: %.500s", path, why);
    return good;
}

bool vectors_load_folder(const char *root, struct vectors *vectors, char error[VECTORS_ERROR])
{
    if (!vectors_load_cases(root, vectors, error))
        return false;
    bool good = right_hashes(vectors, root, error);
    for (size_t i = 0, end; i < vectors->n && good; i = end) {
        end = vectors_group_end(vectors, i);
        good = read_tensors(vectors, root, i, end, error);
    }
    if (!good)
        vectors_free(vectors);
    return good;
}
