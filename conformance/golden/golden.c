/*
 * golden: the program that makes the golden vectors and certifies the oracle.  ROOT has cases/
 * and vectors/; what is
 * committed of the vectors are GROUP.safetensors and SHA256SUMS, which has the hashes of the
 * tensors and of the files of cases.
 *
 *     golden --out ROOT        writes ROOT/vectors
 *     golden --check ROOT      regenerates them and compares byte for byte
 *     golden --certify ROOT    published figures, then the oracle against MPFR, to the bit
 *     golden --library ROOT    frequencies of the library against MPFR
 *
 * Exit: 0 fine, 1 a disagreement, 2 usage or files.
 */
#define _POSIX_C_SOURCE 200809L
#include "golden.h"

#include "conformance/readers/export.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

bool same_f64(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

bool disagree(const char *format, ...)
{
    va_list args;
    fprintf(stderr, "golden: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    return false;
}

/* ---- Files ---- */

static bool write_file(const char *root, const char *name, const void *data, size_t bytes)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.400s/%.400s", root, name);
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(data, 1, bytes, file) == bytes;
    if (file && fclose(file) != 0)
        good = false;
    return good || disagree("%s: cannot be written: %s", path, strerror(errno));
}

/* A file of the root; NULL, and a message, where it cannot be read. */
static void *read_file(struct arena *arena, const char *root, const char *name, size_t *bytes)
{
    char path[PATH_BYTES], error[VECTORS_ERROR];
    snprintf(path, sizeof path, "%.400s/%.400s", root, name);
    void *data = vectors_read_file(arena, path, bytes, error);
    if (!data)
        disagree("%s", error);
    return data;
}

static bool add_sum(FILE *sums, const char *name, const void *data, size_t bytes)
{
    char hash[65];
    if (data) {
        sha256_hex(data, bytes, hash);
        fprintf(sums, "%s  %s\n", hash, name);
    }
    return data != NULL;
}

/* The text of SHA256SUMS, to be freed, or NULL; writes the tensors where it is told to. */
static char *make_files(struct vectors *vectors, const char *root, bool write)
{
    char name[PATH_BYTES] = "cases/flags.txt", *text = NULL;
    size_t length = 0, bytes = 0;
    FILE *sums = open_memstream(&text, &length);
    const void *data = read_file(&vectors->arena, root, name, &bytes);
    bool good = sums && add_sum(sums, name, data, bytes);
    for (size_t i = 0, end; i < vectors->n && good; i = end) {
        const char *group = vectors->cases[i].group;
        end = vectors_group_end(vectors, i);
        snprintf(name, sizeof name, "cases/golden/%.100s.txt", group);
        data = read_file(&vectors->arena, root, name, &bytes);
        good = add_sum(sums, name, data, bytes);
        void *tensors = vectors_tensors(vectors, i, end, &bytes);
        snprintf(name, sizeof name, "vectors/%.100s.safetensors", group);
        good = good && add_sum(sums, name, tensors, bytes) &&
               (!write || write_file(root, name, tensors, bytes));
        free(tensors);
    }
    good = sums && fclose(sums) == 0 && good;
    if (!good)
        free(text);
    return good ? text : NULL;
}

static bool write_all(struct vectors *vectors, const char *root)
{
    char *sums = make_files(vectors, root, true);
    const bool good = sums && write_file(root, SUMS, sums, strlen(sums));
    free(sums);
    return good;
}

/* ---- Checks ---- */

/* Whether the tensors that readers take for a case are its own. */
static bool same_cases(const struct vectors *made, const char *root)
{
    struct vectors read;
    char error[VECTORS_ERROR];
    bool same = vectors_load_folder(root, &read, error);
    if (!same)
        disagree("%s", error);
    for (size_t i = 0; i < made->n && same; i++) {
        const struct vector_case *a = &made->cases[i], *b = &read.cases[i];
        same = a->n_outputs == b->n_outputs;
        for (int o = 0; o < a->n_outputs && same; o++)
            same = strcmp(a->output_names[o], b->output_names[o]) == 0 &&
                   vectors_same_output(a, b, o);
        if (!same)
            disagree("%s is read with another tensor than its own", a->id);
    }
    vectors_free(&read);
    return same;
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* The folder has the files of SHA256SUMS, which are those that are made, and no other.  That their
 * hashes are right their reader sees. */
static bool same_files(const char *made, const char *committed, const char *root)
{
    char dir[PATH_BYTES], line[PATH_BYTES];
    struct dirent **entries = NULL;
    bool same = true;
    int listed = 1;
    for (const char *at = made; *at; at += strcspn(at, "\n") + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        listed += strstr(line, "  vectors/") != NULL;
        if (!strstr(committed, line))
            same = disagree("not what the generator makes: %s", line + 66);
    }
    snprintf(dir, sizeof dir, "%.400s/vectors", root);
    const int here = scandir(dir, &entries, is_visible, NULL);
    if (here != listed)
        same = disagree("%s has %d files, not the %d that are made", dir, here, listed);
    for (int i = 0; i < here; i++)
        free(entries[i]);
    free(entries);
    return same && strlen(made) == strlen(committed);
}

static bool check(struct vectors *vectors, const char *root)
{
    size_t bytes;
    char *made = make_files(vectors, root, false);
    const char *committed = made ? read_file(&vectors->arena, root, SUMS, &bytes) : NULL;
    const bool same =
        committed && same_files(made, committed, root) && same_cases(vectors, root);
    free(made);
    if (same)
        printf("%s/vectors is what the generator makes: %zu cases\n", root, vectors->n);
    return same;
}

int main(int argc, char **argv)
{
    const char *action = argc == 3 ? argv[1] : "", *root = argv[argc - 1];
    const bool out = strcmp(action, "--out") == 0, checks = strcmp(action, "--check") == 0;
    const bool certify = strcmp(action, "--certify") == 0;
    struct vectors vectors;
    char error[VECTORS_ERROR];
    int status;
    if (!out && !checks && !certify && strcmp(action, "--library") != 0) {
        fputs("usage: golden --out | --check | --certify | --library ROOT\n", stderr);
        return 2;
    }
    if (!vectors_load_cases(root, &vectors, error)) {
        disagree("%s", error);
        return 2;
    }
    if (out || checks || certify)
        fill_cases(&vectors);
    if (certify)
        status = !(certify_published(&vectors) && certify_flags(&vectors) &&
                   certify_numbers() && certify_oracle(&vectors));
    else if (out)
        status = write_all(&vectors, root) ? 0 : 2;
    else if (checks)
        status = !check(&vectors, root);
    else
        status = !certify_library(&vectors);
    vectors_free(&vectors);
    mpfr_free_cache();
    return status;
}
