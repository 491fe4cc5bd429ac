/*
 * Writes what is committed of the vectors: GROUP.safetensors and SHA256SUMS, which has the
 * hashes of the tensors and of the files of cases.
 */
#include "golden.h"

#include "conformance/readers/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

static bool write_file(const char *dir, const char *name, const void *data, size_t bytes)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.400s/%.400s", dir, name);
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(data, 1, bytes, file) == bytes;
    if (file && fclose(file) != 0)
        good = false;
    if (!good)
        fprintf(stderr, "golden: %s: cannot be written: %s\n", path, strerror(errno));
    return good;
}

static bool sum_file(FILE *sums, const char *root, const char *name)
{
    char path[PATH_BYTES], error[VECTORS_ERROR], hash[65];
    struct arena arena = { .last = NULL };
    size_t bytes = 0;
    snprintf(path, sizeof path, "%.400s/%.400s", root, name);
    const void *data = vectors_read_file(&arena, path, &bytes, error);
    if (data) {
        sha256_hex(data, bytes, hash);
        fprintf(sums, "%s  %s\n", hash, name);
    } else
        fprintf(stderr, "golden: %s\n", error);
    arena_free(&arena);
    return data != NULL;
}

static bool write_tensors(FILE *sums, const struct vectors *vectors, size_t first, size_t end,
                          const char *dir)
{
    char name[PATH_BYTES], hash[65];
    size_t bytes = 0;
    snprintf(name, sizeof name, "%.100s.safetensors", vectors->cases[first].group);
    void *tensors = vectors_tensors(vectors, first, end, &bytes);
    const bool good = tensors && write_file(dir, name, tensors, bytes);
    if (good) {
        sha256_hex(tensors, bytes, hash);
        fprintf(sums, "%s  vectors/%s\n", hash, name);
    }
    free(tensors);
    return good;
}

int golden_write(const struct vectors *vectors, const char *root, const char *dir)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.400s/SHA256SUMS", dir);
    FILE *sums = fopen(path, "wb");
    if (!sums) {
        fprintf(stderr, "golden: %s: cannot be written: %s\n", path, strerror(errno));
        return 1;
    }
    bool good = sum_file(sums, root, "cases/flags.txt");
    for (size_t i = 0, end; i < vectors->n && good; i = end) {
        snprintf(path, sizeof path, "cases/golden/%.100s.txt", vectors->cases[i].group);
        end = vectors_group_end(vectors, i);
        good = sum_file(sums, root, path) && write_tensors(sums, vectors, i, end, dir);
    }
    if (fclose(sums) != 0)
        good = false;
    return !good;
}
