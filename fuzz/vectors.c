/*
 * A folder of golden vectors.  No mutation finds a hash: an input is cases, a line of dashes and the header of their
 * tensors, of which a folder with right hashes is made, again for each input.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/readers/vectors.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NUMBERS = 256, PATH_BYTES = 256 }; /* numbers behind a header of tensors */

static char folder[PATH_BYTES];

static void make_folder(void)
{
    static const char *const inside[] = { "cases", "cases/golden", "vectors" };
    const char *base = getenv("TMPDIR");
    char path[2 * PATH_BYTES];
    snprintf(folder, sizeof folder, "%.200s/fuzz_vectors-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        abort();
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, inside[i]);
        if (mkdir(path, 0700) != 0)
            abort();
    }
}

/* Writes a file of the folder, and its hash to `sums`. */
static void write_file(FILE *sums, const char *name, const char *bytes, size_t size)
{
    char path[2 * PATH_BYTES], hash[65];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
    sha256_hex(bytes, size, hash);
    if (sums)
        fprintf(sums, "%s  %s\n", hash, name);
}

/* Returns a file of tensors, to be freed: the length of its header as u64, the header, numbers. */
static char *make_tensors(const char *header, size_t *size)
{
    const size_t n = strlen(header);
    char *file = calloc(1, *size = 8 + n + NUMBERS * sizeof(double));
    if (!file)
        abort();
    for (int i = 0; i < 8; i++)
        file[i] = (char)(n >> (8 * i) & 255);
    memcpy(file + 8, header, n);
    return file;
}

static void write_folder(char *text)
{
    static const char flags[] = "Known | TYPE | what it stands for\n", between[] = "\n---\n";
    char *middle = strstr(text, between), *sums = NULL;
    size_t n_tensors, n_sums;
    if (middle)
        middle[1] = '\0';
    char *tensors = make_tensors(middle ? middle + strlen(between) : "{}", &n_tensors);
    FILE *out = open_memstream(&sums, &n_sums);
    if (!out)
        abort();
    write_file(out, "cases/flags.txt", flags, strlen(flags));
    write_file(out, "cases/golden/g.txt", text, strlen(text));
    write_file(out, "vectors/g.safetensors", tensors, n_tensors);
    fclose(out);
    write_file(NULL, "vectors/SHA256SUMS", sums, n_sums);
    free(sums);
    free(tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[VECTORS_ERROR] = "", hash[65], *text = fuzz_text(data, size);
    struct vectors vectors;
    if (!*folder)
        make_folder();
    write_folder(text);
    if (vectors_load(folder, &vectors, error)) {
        for (size_t i = 0; i < vectors.n; i++) {
            const struct vector_case *c = &vectors.cases[i];
            for (int o = 0; o < c->n_outputs; o++) /* reads all values */
                sha256_hex(c->want[o], (size_t)(c->rows[o] * c->width[o]) * sizeof **c->want,
                           hash);
        }
        if (vectors.official)
            abort();
        vectors_free(&vectors);
    } else if (!*error) {
        abort(); /* a rejection has a message */
    }
    free(text);
    return 0;
}
