/* vectors_test ROOT: tests that the reader of golden vectors loads the committed ones, and rejects files that are
 * missing, cut or altered. Also tests SHA-256, and the writers of safetensors and npy. */
#define _XOPEN_SOURCE 700
#include "conformance/readers/vectors.h"
#include "base/tap/tap.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static const char *root;
static char folder[1024]; /* a temporary copy of the vectors, in which files are damaged */

static void require_vectors(void)
{
    struct vectors vectors;
    char error[VECTORS_ERROR] = "";
    const bool loaded = vectors_load(root, &vectors, error);
    require(loaded, *error ? error : "the folder loads");
    if (!loaded)
        return;
    require(vectors.n > 100, "it has cases");
    require(strlen(vectors.sha256) == 64 && vectors.official,
            "a hash by which they are the official ones");
    vectors_free(&vectors);
}

/* ---- Damaged files ---- */

enum { NO_FLIP = -1, WHOLE_FILE = -1 };

/* Damage of a file, and a pattern of the loader's message. WHOLE_FILE removes the file. */
static const struct damage {
    const char *file;
    long cut, flip; /* bytes missing at its end; offset of a byte with one bit flipped */
    const char *message;
} damages[] = {
    { "vectors/rope.safetensors", WHOLE_FILE, NO_FLIP, "*: has no vectors/rope.safetensors*" },
    { "cases/golden/rope.txt", WHOLE_FILE, NO_FLIP, "*: has no cases/golden/rope.txt*" },
    { "vectors/alibi.safetensors", 8, NO_FLIP,
      "*/alibi.safetensors: altered*SHA256SUMS says*" },
    { "vectors/alibi.safetensors", 0, 900, "*/alibi.safetensors: altered*SHA-256*" },
    { "cases/golden/t5.txt", 2, NO_FLIP, "*/cases/golden/t5.txt: altered*SHA-256*" },
    { "vectors/SHA256SUMS", 40, NO_FLIP, "*/vectors/SHA256SUMS: *cut short*expected a hash*" },
};

/* Runs a command of the shell; returns true if it succeeds. */
__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...)
{
    char command[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    return system(command) == 0;
}

static bool damage_file(const struct damage *d)
{
    char path[2048];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", folder, d->file);
    if (d->cut == WHOLE_FILE)
        return unlink(path) == 0;
    FILE *file = fopen(path, "r+b");
    bool good = file && stat(path, &facts) == 0;
    if (good && d->flip != NO_FLIP) {
        fseek(file, d->flip, SEEK_SET);
        const int byte = fgetc(file);
        fseek(file, d->flip, SEEK_SET);
        good = fputc(byte ^ 4, file) != EOF;
    }
    return file && fclose(file) == 0 && good && truncate(path, facts.st_size - d->cut) == 0;
}

/* Returns true if the loader rejects a damaged file with the right message. The folder is whole before and after. */
static bool is_rejected(const struct damage *d)
{
    char error[VECTORS_ERROR] = "(it loads)";
    struct vectors vectors;
    const bool damaged = damage_file(d), loaded = vectors_load(folder, &vectors, error);
    if (loaded)
        vectors_free(&vectors);
    printf("# %s\n", error);
    return damaged && !loaded && fnmatch(d->message, error, 0) == 0 &&
           run("cp '%s/%s' '%s/%s'", root, d->file, folder, d->file);
}

/* ---- Hashes and arrays ---- */

/* Tests the examples of FIPS 180-4, and the same bytes in pieces of every size. */
static void require_hashes(void)
{
    char hash[65], pieces[65], text[300];
    bool same = true;
    sha256_hex("abc", 3, hash);
    require(strcmp(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") ==
                0,
            "SHA-256 of abc");
    sha256_hex("", 0, hash);
    require(strcmp(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") ==
                0,
            "SHA-256 of nothing");
    memset(text, 'a', sizeof text);
    for (size_t bytes = 0; bytes <= sizeof text; bytes++) {
        struct sha256 s;
        sha256_hex(text, bytes, hash);
        sha256_init(&s);
        for (size_t i = 0, step = 1; i < bytes; i += step, step = step % 70 + 1)
            sha256_update(&s, text + i, step < bytes - i ? step : bytes - i);
        sha256_final(&s, pieces);
        same = same && strcmp(hash, pieces) == 0;
    }
    require(same, "SHA-256 in pieces");
}

static void require_arrays(void)
{
    const double one[6] = { 1, -2, 3.5, 0, 5, 6 }, two[2] = { 0.1, -7 };
    const struct stored_array in[2] = { { "cos", "F64", 2, 3, one },
                                        { "a.b", "F64", 1, 2, two } };
    const char *descr = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    struct arena memory = { NULL };
    char *file = NULL, error[VECTORS_ERROR] = "";
    size_t bytes, n = 0;
    struct stored_array *out = NULL;
    FILE *stream = open_memstream(&file, &bytes);
    bool same = safetensors_write(in, 2, stream) && fclose(stream) == 0 &&
                safetensors_read(&memory, file, bytes, &out, &n, error) && n == 2;
    for (size_t i = 0; same && i < n; i++)
        same = strcmp(out[i].name, in[i].name) == 0 && out[i].rows == in[i].rows &&
               out[i].width == in[i].width &&
               memcmp(out[i].data, in[i].data, i ? sizeof two : sizeof one) == 0;
    require(same, "safetensors are read as written");
    require(!safetensors_read(&memory, file, bytes - 1, &out, &n, error),
            "a cut file is rejected");
    require(!safetensors_read(&memory, file, 4, &out, &n, error), "four bytes are rejected");
    free(file);
    arena_free(&memory);
    stream = open_memstream(&file, &bytes);
    npy_write(&in[0], stream);
    require(fclose(stream) == 0 && (bytes - sizeof one) % 64 == 0 &&
                memcmp(file, "\x93NUMPY\x01", 7) == 0 &&
                memcmp(file + bytes - sizeof one, one, sizeof one) == 0,
            "npy has its data at a multiple of 64");
    require(memcmp(file + 10, descr, strlen(descr)) == 0, "npy says its shape");
    free(file);
}

int main(int argc, char **argv)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.400s/vectors_test-XXXXXX", base ? base : "/tmp");
    if (argc != 2 || !mkdtemp(folder)) {
        fprintf(stderr, "usage: vectors_test ROOT; makes a folder like %s\n", folder);
        return 2;
    }
    root = argv[1];
    require_hashes();
    require_arrays();
    require_vectors();
    require(run("cp -R '%s/cases' '%s/vectors' '%s'", root, root, folder),
            "a folder is copied");
    for (size_t k = 0; k < sizeof damages / sizeof *damages; k++)
        require(is_rejected(&damages[k]), damages[k].message);
    require(run("rm -rf '%s'", folder), "the folder is removed");
    return tap_end();
}
