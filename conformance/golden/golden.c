/*
 * golden: the program that makes the golden vectors and certifies the oracle.
 *
 *     golden --out DIR        writes the vectors (the folder exists)
 *     golden --check DIR      regenerates them and compares with DIR byte for byte
 *     golden --certify        published figures, then the oracle against MPFR, to the bit
 *     golden --library        frequencies, slopes and thresholds of the library against MPFR
 *
 * Exit: 0 fine, 1 a disagreement, 2 usage or files.
 */
#define _POSIX_C_SOURCE 200809L
#include "folder.h"
#include "golden.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

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
        struct vectors memory = { .n = 0 };
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
        vectors_free(&memory);
    }
    if (dir)
        closedir(dir);
    return same && files > 0;
}

static int check(const struct golden *golden, const char *dir)
{
    char made[FOLDER_BYTES];
    if (!folder_make("golden", made))
        return 2;
    int status = golden_write(golden, made) != 0 ? 2 : 0;
    if (status == 0 && (!same_files(made, dir) || !same_files(dir, made)))
        status = 1;
    folder_remove(made);
    if (status == 0)
        printf("%s is what the generator makes: %zu cases\n", dir, golden->vectors.n);
    return status;
}

int main(int argc, char **argv)
{
    const char *action = argc > 1 ? argv[1] : "";
    static struct golden golden;
    int status = 2;
    if (argc == 2 && strcmp(action, "--library") == 0)
        return certify_library() != 0;
    const bool certify = argc == 2 && strcmp(action, "--certify") == 0;
    const bool out = argc == 3 && strcmp(action, "--out") == 0;
    if (!certify && !out && !(argc == 3 && strcmp(action, "--check") == 0)) {
        fputs("usage: golden --out DIR | --check DIR | --certify | --library\n", stderr);
        return 2;
    }
    golden_create(&golden);
    if (certify)
        status = certify_known(&golden) != 0 || certify_oracle(&golden) != 0;
    else if (out)
        status = golden_write(&golden, argv[2]) != 0 ? 2 : 0;
    else
        status = check(&golden, argv[2]);
    vectors_free(&golden.vectors);
    mpfr_free_cache();
    return status;
}
