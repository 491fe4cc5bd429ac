/*
 * vectors_test ROOT PACK: both readers give the same cases, and each finds a file that was cut,
 * altered or is none.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/readers/vectors.h"
#include "conformance/readers/safetensors.h"
#include "temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };
static int failures;

static void require(bool condition, const char *what, const char *detail)
{
    if (condition)
        return;
    fprintf(stderr, "vectors_test: %s: %s\n", what, detail);
    failures++;
}

/* ---- The same cases ---- */

static bool same_case(const struct vector_case *a, const struct vector_case *b)
{
    enum { LINE = 8192 };
    static char line_a[LINE], line_b[LINE];
    notation_print(&a->problem, a->name, line_a, LINE);
    notation_print(&b->problem, b->name, line_b, LINE);
    bool same = strcmp(a->id, b->id) == 0 && strcmp(a->flags, b->flags) == 0 &&
                strcmp(a->group, b->group) == 0 && strcmp(a->note, b->note) == 0 &&
                strcmp(a->source, b->source) == 0 && strcmp(line_a, line_b) == 0 &&
                a->n_outputs == b->n_outputs;
    for (int o = 0; same && o < a->n_outputs; o++)
        same =
            strcmp(a->output_names[o], b->output_names[o]) == 0 && vectors_same_output(a, b, o);
    return same;
}

static void require_same_sets(const char *root, const char *pack)
{
    struct vectors a, b;
    char error[VECTORS_ERROR] = "";
    const bool first = vectors_load_folder(root, &a, error);
    require(first, "the folder loads", error);
    const bool second = vectors_load_pack(pack, &b, error);
    require(second, "the pack loads", error);
    if (first && second) {
        require(a.n > 100 && a.n == b.n, "both have the same number of cases", pack);
        require(strcmp(a.sha256, b.sha256) == 0 && strlen(a.sha256) == 64, "one hash",
                b.sha256);
        for (size_t i = 0; i < a.n && i < b.n; i++)
            require(same_case(&a.cases[i], &b.cases[i]), "the same case", a.cases[i].id);
    }
    if (first)
        vectors_free(&a);
    if (second)
        vectors_free(&b);
}

/* ---- Damage ---- */

/* Copies a file, leaving out the last `cut` bytes and flipping a bit of byte `flip`
 * (-1: none). */
static void copy_damaged(const char *from, const char *to, size_t cut, long flip)
{
    struct arena memory = { .last = NULL };
    char error[VECTORS_ERROR];
    size_t bytes = 0;
    unsigned char *data = vectors_read_file(&memory, from, &bytes, error);
    FILE *file = fopen(to, "wb");
    bool good = data && file && bytes >= cut && flip < (long)bytes;
    if (good && flip >= 0)
        data[flip] ^= 4;
    good = good && fwrite(data, 1, bytes - cut, file) == bytes - cut;
    if (file)
        fclose(file);
    require(good, "a damaged copy is made", to);
    arena_free(&memory);
}

/* The loader refuses, and says all three words. */
static void require_refused(bool loader(const char *, struct vectors *, char *),
                            const char *path, const char *a, const char *b, const char *c)
{
    struct vectors vectors;
    char error[VECTORS_ERROR] = "(loaded)";
    const bool refused = !loader(path, &vectors, error);
    if (!refused)
        vectors_free(&vectors);
    require(refused, "damage is found", path);
    require(strstr(error, a) && strstr(error, b) && strstr(error, c), "the message says what",
            error);
}

static void require_pack_checked(const char *pack, const char *folder)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.900s/damaged.pack", folder);
    copy_damaged(pack, path, 100, -1);
    require_refused(vectors_load_pack, path, "damaged.pack", "truncated", "header says");
    copy_damaged(pack, path, 0, 5000);
    require_refused(vectors_load_pack, path, "damaged.pack", "altered", "SHA-256");
    copy_damaged(pack, path, 0, 3);
    require_refused(vectors_load_pack, path, "damaged.pack", "no pack", pack_magic);
    unlink(path);
    require_refused(vectors_load_pack, path, "damaged.pack", "cannot be read", "No such file");
}

/* Copies what SHA256SUMS lists, and itself; one file is damaged. */
static void require_folder_checked(const char *root, const char *folder, const char *name,
                                   size_t cut, long flip, const char *a, const char *b)
{
    char from[PATH_BYTES], to[PATH_BYTES], line[PATH_BYTES], error[VECTORS_ERROR];
    struct arena memory = { .last = NULL };
    size_t bytes;
    snprintf(from, sizeof from, "%.400s/%s", root, SUMS);
    const char *sums = vectors_read_file(&memory, from, &bytes, error);
    require(sums != NULL, "the list of hashes is there", from);
    for (const char *at = sums; at && *at; at += strcspn(at, "\n") + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n") - 66, at + 66);
        const bool damaged = strcmp(line, name) == 0;
        snprintf(from, sizeof from, "%.400s/%.400s", root, line);
        snprintf(to, sizeof to, "%.400s/%.400s", folder, line);
        copy_damaged(from, to, damaged ? cut : 0, damaged ? flip : -1);
    }
    snprintf(from, sizeof from, "%.400s/%s", root, SUMS);
    snprintf(to, sizeof to, "%.400s/%s", folder, SUMS);
    const bool damaged = strcmp(SUMS, name) == 0;
    copy_damaged(from, to, damaged ? cut : 0, damaged ? flip : -1);
    arena_free(&memory);
    require_refused(vectors_load_folder, folder, name, a, b);
}

static void require_folders_checked(const char *root, const char *folder)
{
    static const char *const inside[] = { "cases", "cases/golden", "vectors" };
    char path[PATH_BYTES];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%.400s/%s", folder, inside[i]);
        require(mkdir(path, 0700) == 0, "a folder is made", path);
    }
    require_folder_checked(root, folder, "vectors/alibi.safetensors", 8, -1, "altered",
                           "SHA256SUMS says");
    require_folder_checked(root, folder, "vectors/alibi.safetensors", 0, 900, "altered",
                           "SHA-256");
    require_folder_checked(root, folder, "cases/golden/t5.txt", 2, -1, "altered", "SHA-256");
    require_folder_checked(root, folder, SUMS, 40, -1, "cut short", "expected a hash");
}

/* ---- Hashes and arrays ---- */

/* FIPS 180-4 examples, and the same bytes in pieces of every size. */
static void require_hashes(void)
{
    char hash[65], pieces[65], text[300];
    sha256_hex("abc", 3, hash);
    require(strcmp(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") ==
                0,
            "SHA-256 of abc", hash);
    sha256_hex("", 0, hash);
    require(strcmp(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") ==
                0,
            "SHA-256 of nothing", hash);
    memset(text, 'a', sizeof text);
    for (size_t bytes = 0; bytes <= sizeof text; bytes++) {
        struct sha256 s;
        sha256_hex(text, bytes, hash);
        sha256_init(&s);
        for (size_t i = 0, step = 1; i < bytes; i += step, step = step % 70 + 1) {
            if (step > bytes - i)
                step = bytes - i;
            sha256_update(&s, text + i, step);
        }
        sha256_final(&s, pieces);
        require(strcmp(hash, pieces) == 0, "SHA-256 in pieces", pieces);
    }
}

static void require_arrays(void)
{
    const double one[6] = { 1, -2, 3.5, 0, 5, 6 }, two[2] = { 0.1, -7 };
    const struct array in[2] = { { "cos", "F64", 2, 3, one }, { "a.b", "F64", 1, 2, two } };
    struct arena memory = { NULL };
    char *file = NULL, error[VECTORS_ERROR] = "";
    size_t bytes, n = 0;
    struct array *out = NULL;
    FILE *stream = open_memstream(&file, &bytes);
    const bool written = safetensors_write(in, 2, stream) && fclose(stream) == 0;
    const bool read = written && safetensors_read(&memory, file, bytes, &out, &n, error);
    require(read && n == 2, "safetensors are read as written", error);
    for (size_t i = 0; read && i < n; i++)
        require(strcmp(out[i].name, in[i].name) == 0 && out[i].rows == in[i].rows &&
                    out[i].width == in[i].width &&
                    memcmp(out[i].data, in[i].data, i ? sizeof two : sizeof one) == 0,
                "an array comes back", out[i].name);
    require(!safetensors_read(&memory, file, bytes - 1, &out, &n, error),
            "a cut file is refused", "safetensors");
    require(!safetensors_read(&memory, file, 4, &out, &n, error), "four bytes are refused",
            "safetensors");
    free(file);
    arena_free(&memory);
    stream = open_memstream(&file, &bytes);
    npy_write(&in[0], stream);
    require(fclose(stream) == 0 && (bytes - sizeof one) % 64 == 0 &&
                memcmp(file, "\x93NUMPY\x01", 7) == 0 &&
                memcmp(file + bytes - sizeof one, one, sizeof one) == 0,
            "npy has its data at a multiple of 64", "npy");
    const char *descr = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    require(memcmp(file + 10, descr, strlen(descr)) == 0, "npy says its shape", "npy");
    free(file);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: vectors_test ROOT PACK\n", stderr);
        return 2;
    }
    char folder[TEMPORARY_BYTES];
    if (!temporary_make("vectors_test", folder))
        return 2;
    require_hashes();
    require_arrays();
    require_same_sets(argv[1], argv[2]);
    require_pack_checked(argv[2], folder);
    require_folders_checked(argv[1], folder);
    temporary_remove(folder);
    return failures != 0;
}
