/*
 * golden: the program that makes the golden vectors and certifies the oracle.  ROOT has cases/
 * and vectors/.
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
#include "temporary.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Whether every file of `from` is in `in` with the same bytes. */
static bool same_files(const char *from, const char *in)
{
    DIR *dir = opendir(from);
    bool same = dir != NULL;
    int files = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char a_path[PATH_BYTES], b_path[PATH_BYTES], error[VECTORS_ERROR];
        if (entry->d_name[0] == '.')
            continue;
        struct arena memory = { .last = NULL };
        size_t a_bytes = 0, b_bytes = 0;
        snprintf(a_path, sizeof a_path, "%.400s/%.400s", from, entry->d_name);
        snprintf(b_path, sizeof b_path, "%.400s/%.400s", in, entry->d_name);
        const void *a = vectors_read_file(&memory, a_path, &a_bytes, error);
        const void *b = a ? vectors_read_file(&memory, b_path, &b_bytes, error) : NULL;
        if (!b)
            fprintf(stderr, "golden: %s\n", error);
        else if (a_bytes != b_bytes || memcmp(a, b, a_bytes) != 0)
            fprintf(stderr, "golden: %s and %s differ\n", a_path, b_path);
        same = same && b && a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0;
        files++;
        arena_free(&memory);
    }
    if (dir)
        closedir(dir);
    return same && files > 0;
}

/* Whether the tensors that readers take for a case are its own. */
static bool same_cases(const struct vectors *made, const char *root)
{
    struct vectors read;
    char error[VECTORS_ERROR];
    bool same = vectors_load_folder(root, &read, error);
    if (!same)
        fprintf(stderr, "golden: %s\n", error);
    for (size_t i = 0; i < made->n && same; i++) {
        const struct vector_case *a = &made->cases[i], *b = &read.cases[i];
        same = a->n_outputs == b->n_outputs;
        for (int o = 0; o < a->n_outputs && same; o++)
            same = strcmp(a->output_names[o], b->output_names[o]) == 0 &&
                   vectors_same_output(a, b, o);
        if (!same)
            fprintf(stderr, "golden: %s is read with another tensor than its own\n", a->id);
    }
    vectors_free(&read);
    return same;
}

static int check(const struct vectors *vectors, const char *root)
{
    char made[TEMPORARY_BYTES], dir[PATH_BYTES];
    if (!temporary_make("golden", made))
        return 2;
    snprintf(dir, sizeof dir, "%.400s/vectors", root);
    int status = golden_write(vectors, root, made) != 0 ? 2 : 0;
    if (status == 0 &&
        (!same_files(made, dir) || !same_files(dir, made) || !same_cases(vectors, root)))
        status = 1;
    temporary_remove(made);
    if (status == 0)
        printf("%s is what the generator makes: %zu cases\n", dir, vectors->n);
    return status;
}

int main(int argc, char **argv)
{
    const char *action = argc == 3 ? argv[1] : "", *root = argv[argc - 1];
    const bool out = strcmp(action, "--out") == 0, checks = strcmp(action, "--check") == 0;
    const bool certify = strcmp(action, "--certify") == 0;
    struct vectors vectors;
    char error[VECTORS_ERROR], dir[PATH_BYTES];
    int status;
    if (!out && !checks && !certify && strcmp(action, "--library") != 0) {
        fputs("usage: golden --out | --check | --certify | --library ROOT\n", stderr);
        return 2;
    }
    if (!vectors_load_cases(root, &vectors, error)) {
        fprintf(stderr, "golden: %s\n", error);
        return 2;
    }
    if (out || checks || certify)
        fill_cases(&vectors);
    snprintf(dir, sizeof dir, "%.400s/vectors", root);
    if (certify)
        status = !(certify_published(&vectors) && certify_flags(&vectors) &&
                   certify_numbers() && certify_oracle(&vectors));
    else if (out)
        status = golden_write(&vectors, root, dir) != 0 ? 2 : 0;
    else if (checks)
        status = check(&vectors, root);
    else
        status = !certify_library(&vectors);
    vectors_free(&vectors);
    mpfr_free_cache();
    return status;
}
