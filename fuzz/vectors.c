/*
 * Fuzzes the reader of a folder of golden vectors. The folder holds SHA-256 hashes of its files, which mutations would
 * never guess. Therefore the harness writes a folder with right hashes for each input. An input consists of a case
 * file, a line "---", and the header of the file of tensors.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/readers/vectors.h"
#include "fuzz.h"

#include <stdio.h>
#include <sys/stat.h>

/* Bytes of a header's length, of the zeros after the header, of a path, and of a hexadecimal hash with its NUL. */
enum { LENGTH_BYTES = 8, DATA_BYTES = 2048, PATH_BYTES = 256, HEX_BYTES = 65 };

static char folder[PATH_BYTES]; /* one for the process, overwritten by each input */

static void make_folder(void)
{
    static const char *const subfolders[] = { "cases", "cases/golden", "vectors" };
    const char *base = getenv("TMPDIR");
    char path[2 * PATH_BYTES];
    snprintf(folder, sizeof folder, "%.200s/fuzz_vectors-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        abort();
    for (size_t i = 0; i < sizeof subfolders / sizeof *subfolders; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, subfolders[i]);
        if (mkdir(path, 0700) != 0)
            abort();
    }
}

/* Writes a file of the folder, and a line with its hash to `sums` unless that is NULL. */
static void write_file(FILE *sums, const char *name, const char *bytes, size_t size)
{
    char path[2 * PATH_BYTES], hash[HEX_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
    sha256_hex(bytes, size, hash);
    if (sums)
        fprintf(sums, "%s  %s\n", hash, name);
}

/* Returns a safetensors file, which the caller frees: the header's length, the header, and zeros. */
static char *make_tensors(const char *header, size_t *size)
{
    const size_t n = strlen(header);
    char *file = calloc(1, *size = LENGTH_BYTES + n + DATA_BYTES);
    if (!file)
        abort();
    for (int i = 0; i < LENGTH_BYTES; i++)
        file[i] = (char)(n >> (8 * i) & 255);
    memcpy(file + LENGTH_BYTES, header, n);
    return file;
}

/* Writes all files of the folder. Cuts the input at the line of dashes. */
static void write_folder(char *input)
{
    static const char flags[] = "Known | TYPE | what it stands for\n", separator[] = "\n---\n";
    char *end_of_cases = strstr(input, separator), *sums = NULL;
    size_t tensors_size, sums_size;
    if (end_of_cases)
        end_of_cases[1] = '\0';
    char *tensors =
        make_tensors(end_of_cases ? end_of_cases + strlen(separator) : "{}", &tensors_size);
    FILE *sums_file = open_memstream(&sums, &sums_size);
    if (!sums_file)
        abort();
    write_file(sums_file, "cases/flags.txt", flags, strlen(flags));
    write_file(sums_file, "cases/golden/g.txt", input, strlen(input));
    write_file(sums_file, "vectors/g.safetensors", tensors, tensors_size);
    fclose(sums_file);
    write_file(NULL, "vectors/SHA256SUMS", sums, sums_size);
    free(sums);
    free(tensors);
}

/* Reads all expected values, so that a sanitizer detects outputs that reach outside of the file. */
static void read_outputs(const struct vectors *vectors)
{
    char hash[HEX_BYTES];
    for (size_t i = 0; i < vectors->n; i++) {
        const struct vector_case *c = &vectors->cases[i];
        for (int o = 0; o < c->n_outputs; o++)
            sha256_hex(c->want[o], (size_t)(c->rows[o] * c->width[o]) * sizeof **c->want, hash);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[VECTORS_ERROR] = "", *text = fuzz_text(data, size);
    struct vectors vectors;
    if (!*folder)
        make_folder();
    write_folder(text);
    if (vectors_load(folder, &vectors, error)) {
        read_outputs(&vectors);
        if (vectors.official)
            abort(); /* only the vectors that posenc was built with are official */
        vectors_free(&vectors);
    } else if (!*error) {
        abort(); /* a rejection needs a message */
    }
    free(text);
    return 0;
}
