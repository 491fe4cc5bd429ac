/*
 * The pack of golden vectors: what the build makes of cases and tensors, read with libc only.
 *
 *     "posenc.vectors/2"  u64 payload bytes  SHA-256 of the payload in hexadecimal  zeros
 *     payload: string set hash; string flags.txt; u64 cases; then for each case
 *         strings group, line (notation.h); u64 outputs; each: string name, u64 rows,
 *         u64 width, values
 *
 * Every number takes 8 bytes, little-endian; a string is u64 length, its bytes with a NUL,
 * zeros to a multiple of 8.  So the tensors are used where they lie in the file.
 */
#include "vectors.h"

#include <stdio.h>
#include <string.h>

struct cursor {
    unsigned char *next, *end;
    bool bad; /* ran past the end, or met a string without its NUL */
};

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static void *take(struct cursor *cursor, uint64_t bytes)
{
    if (cursor->bad || bytes > (uint64_t)(cursor->end - cursor->next)) {
        cursor->bad = true;
        return NULL;
    }
    void *at = cursor->next;
    cursor->next += bytes;
    return at;
}

static uint64_t take_u64(struct cursor *cursor)
{
    const unsigned char *at = take(cursor, 8);
    return at ? little_endian(at) : 0;
}

static const char *take_string(struct cursor *cursor)
{
    const uint64_t length = take_u64(cursor);
    const uint64_t padded = length < UINT32_MAX ? (length + 8) / 8 * 8 : UINT64_MAX;
    const char *text = take(cursor, padded);
    if (text && text[length] == '\0')
        return text;
    cursor->bad = true;
    return "";
}

/* n numbers of 8 bytes, in the host's byte order from now on. */
static void *take_words(struct cursor *cursor, uint64_t n)
{
    unsigned char *at = take(cursor, n < UINT32_MAX ? 8 * n : UINT64_MAX);
    for (uint64_t i = 0; at && i < n; i++) {
        const uint64_t word = little_endian(at + 8 * i);
        memcpy(at + 8 * i, &word, sizeof word);
    }
    return at;
}

/* A case: its group, its line, its outputs. */
static bool take_case(struct cursor *cursor, struct vectors *vectors, struct vector_case *c,
                      char *error)
{
    struct problem_line line;
    const char *group = take_string(cursor), *text = take_string(cursor);
    if (cursor->bad || !notation_read(text, &line, &vectors->arena, error) ||
        !vectors_set_case(vectors, c, group, &line, error))
        return false;
    const uint64_t n_outputs = take_u64(cursor);
    cursor->bad = cursor->bad || n_outputs > 2;
    for (c->n_outputs = 0; !cursor->bad && c->n_outputs < (int)n_outputs; c->n_outputs++) {
        const int o = c->n_outputs;
        c->output_names[o] = take_string(cursor);
        c->rows[o] = (int64_t)take_u64(cursor);
        c->width[o] = (int64_t)take_u64(cursor);
        const bool sane = c->rows[o] >= 0 && c->width[o] >= 0 && c->rows[o] < INT32_MAX &&
                          c->width[o] < INT32_MAX;
        c->want[o] = sane ? take_words(cursor, (uint64_t)(c->rows[o] * c->width[o])) : NULL;
        cursor->bad = cursor->bad || !sane;
    }
    return !cursor->bad;
}

/* Size and hash of a pack that has been read. */
static bool check_pack(const char *path, unsigned char *pack, size_t bytes, char *error)
{
    if (bytes < PACK_HEADER || memcmp(pack, pack_magic, PACK_MAGIC) != 0) {
        snprintf(error, VECTORS_ERROR,
                 "%s: is no pack of vectors (%zu bytes; one begins with %s)", path, bytes,
                 pack_magic);
        return false;
    }
    const uint64_t payload = little_endian(pack + PACK_MAGIC);
    const uint64_t here = bytes - PACK_HEADER;
    char hash[65];
    sha256_hex(pack + PACK_HEADER, (size_t)here, hash);
    if (payload == here && memcmp(hash, pack + PACK_HASH, 64) == 0)
        return true;
    const char *what = payload > here ? "truncated" : "something was added";
    snprintf(
        error, VECTORS_ERROR,
        "%s: %s: after its header it has %llu bytes and SHA-256 %s where the header says %llu "
        "and %.64s",
        path, payload == here ? "altered" : what, (unsigned long long)here, hash,
        (unsigned long long)payload, (const char *)pack + PACK_HASH);
    return false;
}

static bool take_cases(struct cursor *cursor, const char *path, struct vectors *vectors,
                       char error[VECTORS_ERROR])
{
    char why[VECTORS_ERROR] = "it is cut short";
    snprintf(vectors->sha256, sizeof vectors->sha256, "%s", take_string(cursor));
    if (!vectors_read_flags(vectors, take_string(cursor), path, error))
        return false;
    const uint64_t n = take_u64(cursor);
    if (n < (uint64_t)(cursor->end - cursor->next))
        vectors->cases = arena_get(&vectors->arena, (size_t)n * sizeof *vectors->cases);
    bool good = vectors->cases != NULL;
    for (; good && vectors->n < n; vectors->n += good)
        good = take_case(cursor, vectors, &vectors->cases[vectors->n], why);
    if (good && cursor->next == cursor->end)
        return true;
    snprintf(
        error, VECTORS_ERROR,
        "%.200s: case %zu of %llu cannot be read, though its hash is right, by this version "
        "of posenc: %.600s",
        path, vectors->n, (unsigned long long)n, why);
    return false;
}

bool vectors_load_pack(const char *path, struct vectors *vectors, char error[VECTORS_ERROR])
{
    *vectors = (struct vectors){ .n = 0 };
    size_t bytes;
    unsigned char *pack = vectors_read_file(&vectors->arena, path, &bytes, error);
    bool good = pack && check_pack(path, pack, bytes, error);
    if (good) {
        struct cursor cursor = { .next = pack + PACK_HEADER, .end = pack + bytes };
        good = take_cases(&cursor, path, vectors, error);
    }
    if (!good)
        vectors_free(vectors);
    return good;
}
