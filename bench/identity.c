/*
 * Digests of what a walk has found (see identity.h).
 */
#define _GNU_SOURCE
#include "identity.h"

#include <stdio.h>

#ifdef POSENC_HAVE_ZYDIS

#include "conformance/readers/vectors.h"
#include "walk.h"

#include <string.h>

static void hash_number(struct sha256 *to, char kind, uint64_t number)
{
    unsigned char bytes[9] = { (unsigned char)kind };
    for (int i = 0; i < 8; i++)
        bytes[1 + i] = (unsigned char)(number >> 8 * i);
    sha256_update(to, bytes, sizeof bytes);
}

/* What an address of this object stands for. */
static void hash_reference(struct sha256 *to, const struct walk *walk, uintptr_t address)
{
    const struct segment *segment = object_segment(&walk->object, address);
    if (segment && segment->holds == HOLDS_CODE) {
        hash_number(to, 'c', walk_rank(walk, address));
    } else {
        const size_t i = walk_datum(walk, address);
        hash_number(to, 'd', i);
        hash_number(to, '+', i ? address - walk->data[i - 1].range.begin : 0);
    }
}

/* A word of data, which may hold an address of this object or of another one. */
static void hash_word(struct sha256 *to, const struct walk *walk, uintptr_t at)
{
    char name[WALK_NAME];
    const uintptr_t word = walk_word(at);
    if (walk_name(walk, at, name)) {
        hash_number(to, 'n', strlen(name));
        sha256_update(to, name, strlen(name));
    } else if (object_segment(&walk->object, word)) {
        hash_reference(to, walk, word);
    } else {
        hash_number(to, 'w', word);
    }
}

static void hash_datum(struct sha256 *to, const struct walk *walk, const struct datum *datum)
{
    const struct range range = datum->range;
    hash_number(to, 'D', (uint64_t)datum->holds);
    if (datum->holds == HOLDS_VARIABLES) { /* a compiler numbers those of functions: name.3 */
        const size_t length = strcspn(datum->name, ".");
        hash_number(to, 'v', length);
        sha256_update(to, datum->name, length);
    }
    if (datum->holds == HOLDS_VARIABLES || datum->listed)
        return;
    hash_number(to, '#', range.end - range.begin);
    if (datum->holds == HOLDS_CONSTANTS)
        sha256_update(to, (const void *)range.begin, range.end - range.begin);
    else
        for (uintptr_t at = range.begin; at + sizeof at <= range.end; at += sizeof at)
            hash_word(to, walk, at);
}

/* The bytes of an instruction, 0 in place of those that say where something lies. */
static void hash_bytes(struct sha256 *to, const struct decoded *d, uintptr_t at, bool places)
{
    unsigned char bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    memcpy(bytes, (const void *)at, d->instruction.length);
    if (places)
        memset(bytes + d->instruction.raw.disp.offset, 0, d->instruction.raw.disp.size / 8);
    hash_number(to, 'i', d->instruction.length);
    sha256_update(to, bytes, d->instruction.length);
}

/* A jump or a call by what it does, whatever room its distance takes: 0f 80 is 70. */
static unsigned opcode_of(const struct decoded *d)
{
    const unsigned opcode = d->instruction.opcode;
    if (d->instruction.opcode_map == ZYDIS_OPCODE_MAP_0F)
        return 0x70 | (opcode & 15);
    return opcode == 0xe9 ? 0xeb : opcode;
}

static bool hash_line(struct sha256 *to, const struct walk *walk, const struct line *line)
{
    struct decoded d;
    if (line->aligns)
        return true;
    if (line->kind == LINE_JOIN) {
        hash_number(to, 'j', walk_rank(walk, line->target));
        return true;
    }
    if (!walk_decode(walk, line->at, &d))
        return false;
    if (line->kind == LINE_GOES) {
        hash_number(to, 'g', opcode_of(&d));
        hash_number(to, 't', walk_rank(walk, line->target));
        return true;
    }
    hash_bytes(to, &d, line->at, line->kind != LINE_PLAIN && line->kind != LINE_NOP);
    if (line->kind == LINE_CONSTANT)
        sha256_update(to, (const void *)line->target, line->bytes);
    else if (line->kind == LINE_ADDRESS)
        hash_reference(to, walk, line->target);
    else if (line->kind == LINE_SLOT)
        hash_word(to, walk, line->target);
    return true;
}

bool code_digest_of(const uintptr_t *entries, size_t n, const char *file,
                    char digest[CODE_DIGEST], char why[CODE_WHY])
{
    struct walk walk;
    struct sha256 state;
    bool fine = walk_from(&walk, entries, n, file);
    digest[0] = '\0';
    sha256_init(&state);
    for (size_t i = 0; i < walk.n_lines && fine; i++)
        fine = hash_line(&state, &walk, &walk.lines[i]);
    for (size_t i = 0; i < walk.n_data && fine; i++)
        hash_datum(&state, &walk, &walk.data[i]);
    if (fine)
        sha256_final(&state, digest);
    snprintf(why, CODE_WHY, "%s", walk.why);
    walk_free(&walk);
    return fine;
}

#else

bool code_digest_of(const uintptr_t *entries, size_t n, const char *file,
                    char digest[CODE_DIGEST], char why[CODE_WHY])
{
    (void)entries;
    (void)n;
    (void)file;
    digest[0] = '\0';
    snprintf(why, CODE_WHY,
             "nothing here decodes instructions: built without Zydis, or not for "
             "x86-64");
    return false;
}

#endif

bool code_digest(const struct subject *subject, enum posenc_kernel kernel, const char *file,
                 char digest[CODE_DIGEST], char why[CODE_WHY])
{
    uintptr_t entries[2] = { (uintptr_t)backend_entry(subject->backend, kernel),
                             (uintptr_t)subject_entry(subject, kernel) };
    struct object object, self;
    digest[0] = '\0';
    if (!object_of(entries[0], &object)) {
        snprintf(why, CODE_WHY, "no loader knows the code");
        return false;
    }
    /* The loader calls the program what it was called, which need not lead to it any more. */
    if (!file && object_of((uintptr_t)code_digest, &self) && self.bias == object.bias &&
        self.text.begin == object.text.begin)
        file = "/proc/self/exe";
    const size_t n = is_within(&object.text, entries[1]) ? 2 : 1;
    return code_digest_of(entries, n, file, digest, why);
}
