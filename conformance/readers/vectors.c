/*
 * Loads golden vectors from a folder (see vectors.h).
 *
 * The hash of SHA256SUMS identifies a set. The official set is the one that this program was built with. If
 * cases differ in dtype alone, only the one in f32 has a tensor, or the one in f16 if there is none in f32.
 */
#define _POSIX_C_SOURCE 200809L
#include "vectors.h"
#include "base/text/text.h"
#include "conformance/problem/cases.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char sums_name[] = "vectors/SHA256SUMS", flags_name[] = "cases/flags.txt",
                  groups_folder[] = "cases/golden/";

/* Limits far above the sizes of the official set. */
enum { PATH_BYTES = 1024, MOST_FILES = 1024, MOST_CASES = 1 << 14 };

static const char *const official_sums[] = {
#include "sums.inc"
    NULL
};

/* A set while it is loaded, and the capacities of its arrays. Functions that return bool write a message if they return
 * false. */
struct loader {
    const char *root;
    struct vectors *vectors;
    size_t files_room, cases_room;
    char *error;
};

void vectors_free(struct vectors *vectors)
{
    arena_free(&vectors->arena);
    *vectors = (struct vectors){ .n = 0 };
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

/* Finds a file by name. Returns NULL and a message if the set has none. */
static struct vector_file *find_file(const struct loader *l, const char *name)
{
    for (size_t i = 0; i < l->vectors->n_files; i++)
        if (strcmp(l->vectors->files[i].name, name) == 0)
            return &l->vectors->files[i];
    notation_fail(l->error, "%s: has no %s", l->root, name);
    return NULL;
}

static bool read_file(struct loader *l, const char *name)
{
    struct vectors *v = l->vectors;
    char path[2 * PATH_BYTES];
    size_t bytes;
    snprintf(path, sizeof path, "%.1000s/%.1000s", l->root, name);
    char *data = vectors_read_file(&v->arena, path, &bytes, l->error);
    if (!data)
        return false;
    if (v->n_files == MOST_FILES)
        return notation_fail(l->error, "%s: %s is one file too many: expected at most %d",
                             l->root, name, MOST_FILES);
    const char *kept = arena_text(&v->arena, name, strlen(name));
    v->files = arena_grow(&v->arena, v->files, v->n_files, &l->files_room, sizeof *v->files);
    if (!kept || !v->files)
        return notation_fail(l->error, "%s: no memory for %s", l->root, name);
    v->files[v->n_files++] = (struct vector_file){ .name = kept, .data = data, .bytes = bytes };
    return true;
}

/* Reads all files of a folder whose names match the pattern, sorted by name. */
static bool read_matching(struct loader *l, const char *folder, const char *pattern)
{
    struct dirent **entries = NULL;
    char path[PATH_BYTES];
    const size_t before = l->vectors->n_files;
    snprintf(path, sizeof path, "%s/%s", l->root, folder);
    const int n = scandir(path, &entries, NULL, alphasort);
    bool good = n >= 0 || notation_fail(l->error, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (good && fnmatch(pattern, entries[i]->d_name, FNM_PERIOD) == 0)
            good = read_file(l, path);
        free(entries[i]);
    }
    free(entries);
    if (good && l->vectors->n_files == before)
        return notation_fail(l->error, "%s/%s: expected files %s", l->root, folder, pattern);
    return good;
}

/* ---- Hashes ---- */

/* Compares the hash of a file with its line in SHA256SUMS. */
static bool check_hash(const struct loader *l, const char *line)
{
    char text[PATH_BYTES], listed[65], hash[65], name[PATH_BYTES];
    const int n = (int)strcspn(line, "\n");
    snprintf(text, sizeof text, "%.*s", n, line);
    if (sscanf(text, "%64[0-9a-f]  %1000[^\n]", listed, name) != 2 || strlen(listed) != 64 ||
        line[n] != '\n')
        return notation_fail(
            l->error, "%s/%s: \"%.*s\" is cut short: expected a hash, two spaces, a name",
            l->root, sums_name, n, line);
    struct vector_file *file = find_file(l, name);
    if (!file)
        return false;
    sha256_hex(file->data, file->bytes, hash);
    file->is_listed = true;
    return strcmp(hash, listed) == 0 ||
           notation_fail(
               l->error,
               "%s/%s: altered: it has %zu bytes and SHA-256 %s where SHA256SUMS says %s",
               l->root, name, file->bytes, hash, listed);
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
static bool check_hashes(struct loader *l)
{
    struct vectors *v = l->vectors;
    struct vector_file *sums = find_file(l, sums_name);
    if (!sums)
        return false;
    sums->is_listed = true; /* SHA256SUMS itself, whose hash identifies the set */
    sha256_hex(sums->data, sums->bytes, v->sha256);
    v->official = are_official(sums);
    for (const char *line = sums->data; *line; line = strchr(line, '\n') + 1)
        if (!check_hash(l, line))
            return false;
    for (size_t i = 0; i < v->n_files; i++)
        if (!v->files[i].is_listed)
            return notation_fail(l->error, "%s/%s: does not list %s", l->root, sums_name,
                                 v->files[i].name);
    return true;
}

/* ---- Flags ---- */

/* Returns the first flag that begins no line of the text of cases/flags.txt; NULL if there is none. */
static const char *find_unknown_flag(const char *flags, const char *known)
{
    for (const char *flag = flags; *flag; flag += strspn(flag, " ")) {
        const size_t n = strcspn(flag, " ");
        const char *line = known;
        while (*line && (strncmp(line, flag, n) != 0 || line[n] != ' '))
            line += strcspn(line, "\n") + (strchr(line, '\n') != NULL);
        if (!*line)
            return flag;
        flag += n;
    }
    return NULL;
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

/* Returns the id that a case would have in another dtype; NULL if it is too long or memory is lacking. */
static const char *make_id(struct vectors *vectors, const struct vector_case *c,
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

/* Sets a case from its line, with its id and the seed that follows from the id. */
static bool set_case(struct vectors *vectors, struct vector_case *c, const char *group,
                     const struct problem_line *line, char error[VECTORS_ERROR])
{
    const char *unknown = find_unknown_flag(line->flags, vectors->files[0].data);
    *c = (struct vector_case){ .group = group,
                               .name = line->name,
                               .flags = line->flags,
                               .note = line->note,
                               .source = line->source,
                               .problem = line->problem };
    c->id = make_id(vectors, c, c->problem.dtype);
    const char *as_f32 = make_id(vectors, c, POSENC_DTYPE_F32);
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
        return notation_fail(
            error, "%s: expected plain text: UTF-8 without control characters and hidden ones",
            c->id);
    if (unknown)
        return notation_fail(error, "%s: flag %.*s is none of %s", c->id,
                             (int)strcspn(unknown, " "), unknown, flags_name);
    /* A seed that follows from the id alone is not changed by a new case. Cases in f16 or bf16 take the id of the f32
     * case, to have the same inputs. ONNX cases have another recipe and keep seed 0. */
    if (c->problem.recipe == RECIPE_MIX && has_inputs(c->problem.kernel))
        c->problem.seed = hash_id(as_f32);
    return problem_within(&c->problem, &limits, error);
}

/* Reads the cases of a group from its file. */
static bool read_group(struct loader *l, const char *group, const struct vector_file *file)
{
    struct vectors *v = l->vectors;
    struct problem_list list = { .arena = v->arena };
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", l->root, file->name);
    bool good = notation_read_file(file->data, path, &list, l->error);
    if (good && list.n > MOST_CASES - v->n)
        good = notation_fail(l->error, "%s: %zu cases: expected at most %d in a set", path,
                             v->n + list.n, MOST_CASES);
    v->arena = list.arena; /* texts of problems live as long as the vectors */
    for (size_t i = 0; i < list.n && good; i++) {
        char why[VECTORS_ERROR] = "no memory";
        if (case_is_shape(&list.lines[i]))
            continue;
        v->cases = arena_grow(&v->arena, v->cases, v->n, &l->cases_room, sizeof *v->cases);
        struct vector_case *to = v->cases ? &v->cases[v->n] : NULL;
        good = to && set_case(v, to, group, &list.lines[i], why);
        for (size_t k = 0; k < v->n && good; k++)
            if (strcmp(v->cases[k].id, to->id) == 0)
                good = notation_fail(why, "there is another case %s", to->id);
        if (!good)
            notation_fail(l->error, "%s:%d: %s", path, list.lines[i].number, why);
        v->n += good;
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
            const char *id = make_id(vectors, c, (enum posenc_dtype)type);
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
static bool read_tensors(struct loader *l, size_t first)
{
    struct vectors *v = l->vectors;
    char name[PATH_BYTES], why[VECTORS_ERROR];
    struct stored_array *arrays;
    size_t n;
    snprintf(name, sizeof name, "vectors/%s.safetensors", v->cases[first].group);
    const struct vector_file *file = find_file(l, name);
    if (!file)
        return false;
    if (!safetensors_read(&v->arena, file->data, file->bytes, &arrays, &n, why))
        return notation_fail(l->error, "%s/%s: %s", l->root, name, why);
    for (size_t i = first; i < v->n; i++)
        if (!set_outputs(v, &v->cases[i], arrays, n))
            return notation_fail(l->error, "%s/%s: there is no tensor of %s", l->root, name,
                                 v->cases[i].id);
    return true;
}

/* ---- Sets ---- */

/* Reads cases and, if `tensors`, expected outputs from the files in memory. */
static bool parse_files(struct loader *l, bool tensors)
{
    struct vectors *v = l->vectors;
    for (const struct vector_file *file = v->files; file < v->files + v->n_files; file++) {
        const size_t first = v->n, n = strlen(groups_folder);
        if (strncmp(file->name, groups_folder, n) != 0)
            continue;
        const char *group = arena_text(&v->arena, file->name + n, strcspn(file->name + n, "."));
        if (!group || !read_group(l, group, file) ||
            (tensors && v->n > first && !read_tensors(l, first)))
            return false;
    }
    return true;
}

static bool load_set(const char *root, bool tensors, struct vectors *vectors, char *error)
{
    struct loader l = { .root = root, .vectors = vectors, .error = error };
    *vectors = (struct vectors){ .n = 0 };
    const bool good =
        read_file(&l, flags_name) /* the first */ &&
        read_matching(&l, "cases/golden", "*.txt") &&
        (!tensors || (read_file(&l, sums_name) &&
                      read_matching(&l, "vectors", "*.safetensors") && check_hashes(&l))) &&
        parse_files(&l, tensors);
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
