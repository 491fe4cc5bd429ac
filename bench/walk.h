/*
 * The instructions and the data that some functions of an object reach, in an order that does not
 * depend on where they lie.  x86-64, by Zydis.
 */
#ifndef POSENC_WALK_H
#define POSENC_WALK_H

#include "object.h"
#include "symbols.h"

#include <Zydis/Zydis.h>

enum { WALK_WHY = 192, WALK_NAME = 128 };

struct decoded {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* An instruction, and what is to be known of its operand that lies somewhere: */
enum line_kind {
    LINE_PLAIN,    /* it has none */
    LINE_GOES,     /* which instruction it goes to: `target` */
    LINE_CONSTANT, /* which `bytes` it reads at `target` */
    LINE_ADDRESS,  /* what is at `target` */
    LINE_SLOT,     /* what that is whose address is at `target` */
    LINE_JOIN,     /* no instruction: what follows is the line of `target` */
    LINE_NOP,
};

struct line {
    uintptr_t at, target;
    enum line_kind kind;
    unsigned bytes;
    bool aligns;   /* a NOP that stands there to align what follows: it does not count */
    uint32_t rank; /* 1 for the first that counts; of one that does not, that of the next */
};

/* What an address may lie in: an array, a string, a variable. */
struct datum {
    struct range range;
    enum holds holds;
    const char *name; /* of its symbol; "": without one */
    bool listed;      /* a backend's table: no more is known of it than that it is one */
};

struct walk {
    struct object object;
    struct symbols symbols;
    ZydisDecoder decoder;
    uint32_t *number; /* for each byte of text 1 + the line of the instruction there; 0: none */
    bool *met;        /* whether something leads to it that is not before it */
    size_t n_lines, n_pending, n_data, n_scanned;
    size_t most_lines, most_pending, most_data;
    struct line *lines;
    uintptr_t *pending; /* addresses of code to be walked from */
    struct datum *data;
    bool failed;
    char why[WALK_WHY];
};

/* Walks all that is reached from the entries; false, and `why`, where something cannot be
 * followed.  `file` holds the symbols.  To be freed in either case. */
bool walk_from(struct walk *walk, const uintptr_t *entries, size_t n, const char *file);
void walk_free(struct walk *walk);

bool walk_decode(const struct walk *walk, uintptr_t at, struct decoded *decoded);

/* The rank of the instruction at an address of code; 0: none was walked. */
uint32_t walk_rank(const struct walk *walk, uintptr_t at);

/* 1 + the place in `data` of what an address lies in; 0: none. */
size_t walk_datum(const struct walk *walk, uintptr_t address);

/* The word at an address; what that is of another object: by the name that this one asked for, else
 * by its name or place there.  False where it is no such address. */
uintptr_t walk_word(uintptr_t at);
bool walk_name(const struct walk *walk, uintptr_t at, char name[WALK_NAME]);

#endif
