/*
 * Reads golden vectors from a folder or a pack. A pack holds SHA256SUMS and the files that it
 * lists, each after its name and its size in bytes:
 *
 *     posenc.vectors/3
 *     vectors/SHA256SUMS 5175
 *     ...
 *     cases/flags.txt 1816
 *     ...
 *
 * The hash of SHA256SUMS identifies the set. The set that this program was built with is the
 * official one. A case that differs from another in dtype alone has no tensor of its own, but uses
 * that of the case in f32, or in f16.
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

const char pack_magic[] = "posenc.vectors/3";

/* Limits many times above the sizes of our sets. */
enum { PATH_BYTES = 1024, MOST_FILES = 1024, MOST_CASES = 1 << 14 };

static const char *const official_sums[] = {
#include "sums.inc"
    NULL
};

struct files {
    const char *path; /* of the folder or of the pack, for messages */
    char *pack;       /* in memory; or NULL */
    size_t pack_bytes;
    struct arena *arena;
    size_t n, room;
    struct vector_file *file;
};

static bool add_file(struct files *files, const char *name, char *data, size_t bytes,
                     char *error)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->file[i].name, name) == 0)
            return write_error(error, "%s: has %s twice", files->path, name);
    if (files->n == MOST_FILES)
        return write_error(error, "%s: %s is one file too many: expected at most %d",
                           files->path, name, MOST_FILES);
    const char *kept = arena_text(files->arena, name, strlen(name));
    files->file =
        arena_grow(files->arena, files->file, files->n, &files->room, sizeof *files->file);
    if (!kept || !files->file)
        return write_error(error, "%s: no memory for %s", files->path, name);
    files->file[files->n++] =
        (struct vector_file){ .name = kept, .data = data, .bytes = bytes };
    return true;
}

static struct vector_file *need_file(const struct files *files, const char *name, char *error)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->file[i].name, name) == 0)
            return &files->file[i];
    write_error(error, "%s: has no %s", files->path, name);
    return NULL;
}

/* ---- Files of a folder ---- */

static bool read_one(struct files *files, const char *name, char *error)
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
    bool good = n >= 0 || write_error(error, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (good && fnmatch(pattern, entries[i]->d_name, FNM_PERIOD) == 0)
            good = read_one(files, path, error);
        free(entries[i]);
    }
    free(entries);
    if (good && files->n == before)
        return write_error(error, "%s/%s: expected files %s", files->path, folder, pattern);
    return good;
}

static bool read_cases(struct files *files, char *error)
{
    return read_one(files, "cases/flags.txt", error) &&
           read_matching(files, "cases/golden", "*.txt", error);
}

/* ---- Files of a pack ---- */

/* Reads a line such as "vectors/SHA256SUMS 5175\n"; returns its newline, or NULL if malformed. */
static char *read_head(char *at, const char *end, char name[PATH_BYTES], size_t *size)
{
    enum { LINE = PATH_BYTES + 24 };
    char line[LINE], *stop;
    const size_t left = (size_t)(end - at), most = left < LINE ? left : LINE - 1;
    char *newline = memchr(at, '\n', most), *blank;
    if (!newline)
        return NULL;
    snprintf(line, sizeof line, "%.*s", (int)(newline - at), at);
    blank = strrchr(line, ' ');
    if (!blank || blank == line || blank - line >= PATH_BYTES || !text_is_plain(line) ||
        blank[1] < '0' || blank[1] > '9')
        return NULL;
    errno = 0;
    *size = strtoull(blank + 1, &stop, 10);
    if (*stop || errno)
        return NULL;
    *blank = '\0';
    strcpy(name, line);
    return newline;
}

static bool parse_pack(struct files *files, char *at, size_t bytes, char *error)
{
    size_t size;
    char name[PATH_BYTES];
    const char *start = at, *end = at + bytes;
    if (bytes < sizeof pack_magic || strncmp(at, pack_magic, strlen(pack_magic)) != 0 ||
        at[strlen(pack_magic)] != '\n')
        return write_error(error, "%s: is no pack of vectors (%zu bytes; one begins with %s)",
                           files->path, bytes, pack_magic);
    for (at += sizeof pack_magic; at < end; at += size + 1) {
        char *newline = read_head(at, end, name, &size);
        if (!newline)
            return write_error(error,
                               "%s: altered at byte %td: expected a name and how many bytes",
                               files->path, at - start);
        at = newline + 1;
        if (size >= (size_t)(end - at) || at[size] != '\n')
            return write_error(
                error, "%s: %s: of %s it has %td bytes where its header says %zu and a newline",
                files->path, size >= (size_t)(end - at) ? "truncated" : "altered", name,
                end - at, size);
        at[size] = '\0';
        if (!add_file(files, name, at, size, error))
            return false;
    }
    return true;
}

static bool read_pack(struct files *files, char *error)
{
    size_t bytes = files->pack_bytes;
    char *data =
        files->pack ? files->pack : vectors_read_file(files->arena, files->path, &bytes, error);
    return data && parse_pack(files, data, bytes, error);
}

/* ---- Hashes ---- */

/* Compares the hash of a file with its line in SHA256SUMS. */
static bool check_hash(const struct files *files, const char *line, char *error)
{
    char text[PATH_BYTES], said[65], hash[65], name[PATH_BYTES];
    const int n = (int)strcspn(line, "\n");
    snprintf(text, sizeof text, "%.*s", n, line);
    if (sscanf(text, "%64[0-9a-f]  %1000[^\n]", said, name) != 2 || strlen(said) != 64 ||
        line[n] != '\n')
        return write_error(error,
                           "%s/%s: \"%.*s\" is cut short: expected a hash, two spaces, a name",
                           files->path, SUMS, n, line);
    struct vector_file *file = need_file(files, name, error);
    if (!file)
        return false;
    sha256_hex(file->data, file->bytes, hash);
    file->is_listed = true;
    return strcmp(hash, said) == 0 ||
           write_error(
               error,
               "%s/%s: altered: it has %zu bytes and SHA-256 %s where SHA256SUMS says %s",
               files->path, name, file->bytes, hash, said);
}

/* Returns true if these are the hashes that the program was built with. */
static bool are_official(const struct vector_file *sums)
{
    char *text = join_lines(official_sums);
    const bool same = text && strlen(text) == sums->bytes && strcmp(text, sums->data) == 0;
    free(text);
    return same;
}

/* Requires a line of SHA256SUMS for each other file, with its hash. */
static bool check_hashes(struct vectors *vectors, const struct files *files, char *error)
{
    struct vector_file *sums = need_file(files, SUMS, error);
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
            return write_error(error, "%s/%s: does not list %s", files->path, SUMS,
                               files->file[i].name);
    return true;
}

/* ---- Cases ---- */

/* Reads the cases of a file. */
static bool read_group(struct vectors *vectors, const char *group, const char *text,
                       const char *path, size_t *room, char *error)
{
    struct problem_list list = { .arena = vectors->arena };
    bool good = notation_read_file(text, path, &list, error);
    if (good && list.n > MOST_CASES - vectors->n)
        good = write_error(error, "%s: %zu cases: expected at most %d in a set", path,
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
                good = write_error(why, "there is another case %s", to->id);
        if (!good)
            write_error(error, "%s:%d: %s", path, list.lines[i].number, why);
        vectors->n += good;
    }
    return good;
}

/* ---- Tensors ---- */

static const struct array *find_tensor(const char *id, const char *output,
                                       const struct array *arrays, size_t n)
{
    const size_t length = strlen(id);
    for (size_t i = 0; i < n; i++)
        if (strncmp(arrays[i].name, id, length) == 0 && arrays[i].name[length] == '.' &&
            strcmp(arrays[i].name + length + 1, output) == 0)
            return &arrays[i];
    return NULL;
}

/* Sets those outputs of a case that have a tensor. */
static bool set_outputs(struct vectors *vectors, struct vector_case *c,
                        const struct array *arrays, size_t n)
{
    static const char *const outputs[] = { "out", "cos", "sin" };
    for (int k = 0; k < 3; k++) {
        const struct array *found = find_tensor(c->id, outputs[k], arrays, n);
        for (int type = POSENC_F32; !found && type < (int)c->problem.dtype; type++) {
            const char *id = vectors_id(vectors, c, (enum posenc_dtype)type);
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
    struct array *arrays;
    size_t n;
    snprintf(name, sizeof name, "vectors/%s.safetensors", vectors->cases[first].group);
    const struct vector_file *file = need_file(files, name, error);
    if (!file)
        return false;
    if (!safetensors_read(&vectors->arena, file->data, file->bytes, &arrays, &n, why))
        return write_error(error, "%s/%s: %s", files->path, name, why);
    for (size_t i = first; i < vectors->n; i++)
        if (!set_outputs(vectors, &vectors->cases[i], arrays, n))
            return write_error(error, "%s/%s: there is no tensor of %s", files->path, name,
                               vectors->cases[i].id);
    return true;
}

/* ---- Sets ---- */

static bool parse_cases(struct vectors *vectors, const struct files *files, bool tensors,
                        char *error)
{
    static const char folder[] = "cases/golden/";
    char path[PATH_BYTES];
    const struct vector_file *flags = need_file(files, "cases/flags.txt", error);
    size_t room = 0;
    if (!flags)
        return false;
    snprintf(path, sizeof path, "%s/%s", files->path, flags->name);
    char *text = arena_text(&vectors->arena, flags->data, flags->bytes); /* to be cut up */
    if (!text)
        return write_error(error, "%s: no memory", path);
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

static bool read_folder(struct files *files, char *error)
{
    return read_cases(files, error) && read_one(files, SUMS, error) &&
           read_matching(files, "vectors", "*.safetensors", error);
}

static bool load(struct vectors *vectors, struct files files,
                 bool read(struct files *files, char *error), bool tensors, char *error)
{
    *vectors = (struct vectors){ .n = 0 };
    files.arena = &vectors->arena;
    const bool good = read(&files, error) &&
                      (!tensors || check_hashes(vectors, &files, error)) &&
                      parse_cases(vectors, &files, tensors, error);
    vectors->files = files.file;
    vectors->n_files = files.n;
    if (!good)
        vectors_free(vectors);
    return good;
}

bool vectors_load_cases(const char *root, struct vectors *vectors, char error[VECTORS_ERROR])
{
    return load(vectors, (struct files){ .path = root }, read_cases, false, error);
}

bool vectors_load_folder(const char *root, struct vectors *vectors, char error[VECTORS_ERROR])
{
    return load(vectors, (struct files){ .path = root }, read_folder, true, error);
}

bool vectors_load_pack(const char *path, struct vectors *vectors, char error[VECTORS_ERROR])
{
    return load(vectors, (struct files){ .path = path }, read_pack, true, error);
}

bool vectors_load_memory(const char *path, char *pack, size_t bytes, struct vectors *vectors,
                         char error[VECTORS_ERROR])
{
    const struct files files = { .path = path, .pack = pack, .pack_bytes = bytes };
    return load(vectors, files, read_pack, true, error);
}
