/*
 * Loads golden vectors from a folder (see vectors.h).
 *
 * The hash of SHA256SUMS identifies a set. The official set is the one that this program was built with. If
 * cases differ in dtype alone, only the one in f32 has a tensor, or the one in f16 if there is none in f32.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/cases.h"
#include "safetensors.h"
#include "base/text/text.h"
#include "vectors.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char sums_name[] = "vectors/SHA256SUMS";

/* Limits far above the sizes of the official set. */
enum { PATH_BYTES = 1024, MOST_FILES = 1024, MOST_CASES = 1 << 14 };

static const char *const official_sums[] = {
#include "sums.inc"
    NULL
};

/* Files of a set while it is loaded. */
struct files {
    const char *path; /* of the folder */
    struct arena *arena;
    size_t n, room;
    struct vector_file *file;
};

static bool add_file(struct files *files, const char *name, char *data, size_t bytes,
                     char *error)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->file[i].name, name) == 0)
            return notation_fail(error, "%s: has %s twice", files->path, name);
    if (files->n == MOST_FILES)
        return notation_fail(error, "%s: %s is one file too many: expected at most %d",
                             files->path, name, MOST_FILES);
    const char *kept = arena_text(files->arena, name, strlen(name));
    files->file =
        arena_grow(files->arena, files->file, files->n, &files->room, sizeof *files->file);
    if (!kept || !files->file)
        return notation_fail(error, "%s: no memory for %s", files->path, name);
    files->file[files->n++] =
        (struct vector_file){ .name = kept, .data = data, .bytes = bytes };
    return true;
}

/* Finds a file by name. Returns NULL and a message if the set has none. */
static struct vector_file *find_file(const struct files *files, const char *name, char *error)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->file[i].name, name) == 0)
            return &files->file[i];
    notation_fail(error, "%s: has no %s", files->path, name);
    return NULL;
}

/* ---- Files of a folder ---- */

static bool read_named(struct files *files, const char *name, char *error)
{
    char path[2 * PATH_BYTES];
    size_t bytes;
    snprintf(path, sizeof path, "%.1000s/%.1000s", files->path, name);
    char *data = vectors_read_file(files->arena, path, &bytes, error);
    return data && add_file(files, name, data, bytes, error);
}

/* Reads all files of a folder whose names match the pattern, sorted by name. */
static bool read_matching(struct files *files, const char *folder, const char *pattern,
                          char *error)
{
    struct dirent **entries = NULL;
    char path[PATH_BYTES];
    const size_t before = files->n;
    snprintf(path, sizeof path, "%s/%s", files->path, folder);
    const int n = scandir(path, &entries, NULL, alphasort);
    bool good = n >= 0 || notation_fail(error, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (good && fnmatch(pattern, entries[i]->d_name, FNM_PERIOD) == 0)
            good = read_named(files, path, error);
        free(entries[i]);
    }
    free(entries);
    if (good && files->n == before)
        return notation_fail(error, "%s/%s: expected files %s", files->path, folder, pattern);
    return good;
}

/* ---- Hashes ---- */

/* Compares the hash of a file with its line in SHA256SUMS. */
static bool check_hash(const struct files *files, const char *line, char *error)
{
    char text[PATH_BYTES], listed[65], hash[65], name[PATH_BYTES];
    const int n = (int)strcspn(line, "\n");
    snprintf(text, sizeof text, "%.*s", n, line);
    if (sscanf(text, "%64[0-9a-f]  %1000[^\n]", listed, name) != 2 || strlen(listed) != 64 ||
        line[n] != '\n')
        return notation_fail(
            error, "%s/%s: \"%.*s\" is cut short: expected a hash, two spaces, a name",
            files->path, sums_name, n, line);
    struct vector_file *file = find_file(files, name, error);
    if (!file)
        return false;
    sha256_hex(file->data, file->bytes, hash);
    file->is_listed = true;
    return strcmp(hash, listed) == 0 ||
           notation_fail(
               error,
               "%s/%s: altered: it has %zu bytes and SHA-256 %s where SHA256SUMS says %s",
               files->path, name, file->bytes, hash, listed);
}

/* Returns true if these are the hashes that the program was built with. */
static bool are_official(const struct vector_file *sums)
{
    char *text = cases_join_lines(official_sums);
    const bool same = text && strlen(text) == sums->bytes && strcmp(text, sums->data) == 0;
    free(text);
    return same;
}

/* Requires a line of SHA256SUMS for each other file, with its hash. */
static bool check_hashes(struct vectors *vectors, const struct files *files, char *error)
{
    struct vector_file *sums = find_file(files, sums_name, error);
    if (!sums)
        return false;
    sums->is_listed = true; /* SHA256SUMS itself, whose hash identifies the set */
    sha256_hex(sums->data, sums->bytes, vectors->sha256);
    vectors->official = are_official(sums);
    for (const char *line = sums->data; *line; line = strchr(line, '\n') + 1)
        if (!check_hash(files, line, error))
            return false;
    for (size_t i = 0; i < files->n; i++)
        if (!files->file[i].is_listed)
            return notation_fail(error, "%s/%s: does not list %s", files->path, sums_name,
                                 files->file[i].name);
    return true;
}

/* ---- Cases ---- */

/* Reads the cases of a file. `room` is the capacity of vectors->cases. */
static bool read_group(struct vectors *vectors, const char *group, const char *text,
                       const char *path, size_t *room, char *error)
{
    struct problem_list list = { .arena = vectors->arena };
    bool good = notation_read_file(text, path, &list, error);
    if (good && list.n > MOST_CASES - vectors->n)
        good = notation_fail(error, "%s: %zu cases: expected at most %d in a set", path,
                             vectors->n + list.n, MOST_CASES);
    vectors->arena = list.arena; /* texts of problems live as long as the vectors */
    for (size_t i = 0; i < list.n && good; i++) {
        char why[VECTORS_ERROR] = "no memory";
        if (case_is_shape(&list.lines[i]))
            continue;
        vectors->cases = arena_grow(&vectors->arena, vectors->cases, vectors->n, room,
                                    sizeof *vectors->cases);
        struct vector_case *to = vectors->cases ? &vectors->cases[vectors->n] : NULL;
        good = to && vectors_set_case(vectors, to, group, &list.lines[i], why);
        for (size_t k = 0; k < vectors->n && good; k++)
            if (strcmp(vectors->cases[k].id, to->id) == 0)
                good = notation_fail(why, "there is another case %s", to->id);
        if (!good)
            notation_fail(error, "%s:%d: %s", path, list.lines[i].number, why);
        vectors->n += good;
    }
    return good;
}

/* ---- Tensors ---- */

static const struct stored_array *find_tensor(const char *id, const char *output,
                                              const struct stored_array *arrays, size_t n)
{
    const size_t length = strlen(id);
    for (size_t i = 0; i < n; i++)
        if (strncmp(arrays[i].name, id, length) == 0 && arrays[i].name[length] == '.' &&
            strcmp(arrays[i].name + length + 1, output) == 0)
            return &arrays[i];
    return NULL;
}

/* Sets the outputs of a case from its tensors, or from those of the same case in f32 or f16. */
static bool set_outputs(struct vectors *vectors, struct vector_case *c,
                        const struct stored_array *arrays, size_t n)
{
    static const char *const outputs[] = { "out", "cos", "sin" };
    for (int k = 0; k < 3; k++) {
        const struct stored_array *found = find_tensor(c->id, outputs[k], arrays, n);
        for (int type = POSENC_DTYPE_F32; !found && type < (int)c->problem.dtype; type++) {
            const char *id = vectors_make_id(vectors, c, (enum posenc_dtype)type);
            found = id ? find_tensor(id, outputs[k], arrays, n) : NULL;
        }
        if (!found || c->n_outputs == 2)
            continue;
        const int o = c->n_outputs++;
        c->output_names[o] = outputs[k];
        c->tensors[o] = found->name;
        c->rows[o] = found->rows;
        c->width[o] = found->width;
        c->want[o] = found->data;
    }
    return c->n_outputs > 0;
}

/* Sets the outputs of the cases from `first` on, which form a group. */
static bool read_tensors(struct vectors *vectors, const struct files *files, size_t first,
                         char *error)
{
    char name[PATH_BYTES], why[VECTORS_ERROR];
    struct stored_array *arrays;
    size_t n;
    snprintf(name, sizeof name, "vectors/%s.safetensors", vectors->cases[first].group);
    const struct vector_file *file = find_file(files, name, error);
    if (!file)
        return false;
    if (!safetensors_read(&vectors->arena, file->data, file->bytes, &arrays, &n, why))
        return notation_fail(error, "%s/%s: %s", files->path, name, why);
    for (size_t i = first; i < vectors->n; i++)
        if (!set_outputs(vectors, &vectors->cases[i], arrays, n))
            return notation_fail(error, "%s/%s: there is no tensor of %s", files->path, name,
                                 vectors->cases[i].id);
    return true;
}

/* ---- Sets ---- */

/* Reads flags, cases and, if `tensors`, expected outputs from the files in memory. */
static bool parse_cases(struct vectors *vectors, const struct files *files, bool tensors,
                        char *error)
{
    static const char folder[] = "cases/golden/";
    char path[PATH_BYTES];
    const struct vector_file *flags = find_file(files, "cases/flags.txt", error);
    size_t room = 0;
    if (!flags)
        return false;
    snprintf(path, sizeof path, "%s/%s", files->path, flags->name);
    char *text = arena_text(&vectors->arena, flags->data, flags->bytes); /* to be cut up */
    if (!text)
        return notation_fail(error, "%s: no memory", path);
    if (!vectors_read_flags(vectors, text, path, error))
        return false;
    for (const struct vector_file *file = files->file; file < files->file + files->n; file++) {
        const size_t first = vectors->n, n = strlen(folder);
        if (strncmp(file->name, folder, n) != 0)
            continue;
        const char *group =
            arena_text(&vectors->arena, file->name + n, strcspn(file->name + n, "."));
        snprintf(path, sizeof path, "%s/%s", files->path, file->name);
        if (!group || !read_group(vectors, group, file->data, path, &room, error) ||
            (tensors && vectors->n > first && !read_tensors(vectors, files, first, error)))
            return false;
    }
    return true;
}

static bool load_set(const char *root, bool tensors, struct vectors *vectors, char *error)
{
    *vectors = (struct vectors){ .n = 0 };
    struct files files = { .path = root, .arena = &vectors->arena };
    const bool good = read_named(&files, "cases/flags.txt", error) &&
                      read_matching(&files, "cases/golden", "*.txt", error) &&
                      (!tensors || (read_named(&files, sums_name, error) &&
                                    read_matching(&files, "vectors", "*.safetensors", error) &&
                                    check_hashes(vectors, &files, error))) &&
                      parse_cases(vectors, &files, tensors, error);
    vectors->files = files.file;
    vectors->n_files = files.n;
    if (!good)
        vectors_free(vectors);
    return good;
}

bool vectors_load_cases(const char *root, struct vectors *vectors, char error[VECTORS_ERROR])
{
    return load_set(root, false, vectors, error);
}

bool vectors_load(const char *root, struct vectors *vectors, char error[VECTORS_ERROR])
{
    return load_set(root, true, vectors, error);
}
