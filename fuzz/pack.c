/*
 * A pack of golden vectors.  No mutation finds a hash: an input that does not begin as a pack does is cases, a line of
 * dashes and a header of tensors, of which a pack with right hashes is made.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/readers/vectors.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 256 }; /* numbers behind a header of tensors */

static void add(FILE *pack, const char *name, const char *text, size_t size)
{
    fprintf(pack, "%s %zu\n", name, size);
    fwrite(text, 1, size, pack);
    fputc('\n', pack);
}

static void add_sum(FILE *sums, const char *name, const char *text, size_t size)
{
    char hash[65];
    sha256_hex(text, size, hash);
    fprintf(sums, "%s  %s\n", hash, name);
}

/* u64 length, the header, numbers. */
static char *make_tensors(const char *header, size_t *size)
{
    const size_t n = strlen(header);
    char *file = calloc(1, *size = 8 + n + DATA * sizeof(double));
    if (!file)
        abort();
    for (int i = 0; i < 8; i++)
        file[i] = (char)(n >> (8 * i) & 255);
    memcpy(file + 8, header, n);
    return file;
}

static char *make_pack(char *text, size_t *bytes)
{
    static const char flags[] = "Known | TYPE | what it stands for\n", between[] = "\n---\n";
    char *middle = strstr(text, between), *pack = NULL, *sums = NULL, empty[] = "{}";
    size_t n_tensors, n_sums;
    if (middle)
        middle[1] = '\0';
    char *tensors = make_tensors(middle ? middle + strlen(between) : empty, &n_tensors);
    FILE *out = open_memstream(&sums, &n_sums);
    if (!out)
        abort();
    add_sum(out, "cases/flags.txt", flags, strlen(flags));
    add_sum(out, "cases/golden/g.txt", text, strlen(text));
    add_sum(out, "vectors/g.safetensors", tensors, n_tensors);
    fclose(out);
    out = open_memstream(&pack, bytes);
    if (!out)
        abort();
    fprintf(out, "%s\n", pack_magic);
    add(out, SUMS, sums, n_sums);
    add(out, "cases/flags.txt", flags, strlen(flags));
    add(out, "cases/golden/g.txt", text, strlen(text));
    add(out, "vectors/g.safetensors", tensors, n_tensors);
    fclose(out);
    free(sums);
    free(tensors);
    return pack;
}

/* Reads all values of an output, which are in the memory of the file. */
static void read_output(const struct vector_case *c, int o)
{
    char hash[65];
    sha256_hex(c->want[o], (size_t)(c->rows[o] * c->width[o]) * sizeof *c->want[o], hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[VECTORS_ERROR], *text = fuzz_text(data, size), *pack = text;
    struct vectors vectors;
    size_t bytes = size;
    if (strncmp(text, pack_magic, 6) != 0)
        pack = make_pack(text, &bytes);
    if (vectors_load_memory("x.pack", pack, bytes, &vectors, error)) {
        if (vectors.official)
            abort();
        for (size_t i = 0; i < vectors.n; i++)
            for (int o = 0; o < vectors.cases[i].n_outputs; o++)
                read_output(&vectors.cases[i], o);
        vectors_free(&vectors);
    }
    if (pack != text)
        free(pack);
    free(text);
    return 0;
}
