/*
 * Ways to watch side effects of a kernel from outside. The suite of that name
 * (suites/side_effects.c) makes results of them.
 */
#ifndef POSENC_SIDE_EFFECTS_H
#define POSENC_SIDE_EFFECTS_H

#include "conformance/engine/tally.h"

/* ---- Allocations: allocations.c ---- */

/* Numbers of heap blocks and memory maps that this thread made and freed since it started. The
 * program replaces glibc's malloc family by functions that count, so that calls by plug-ins count
 * too. */
struct allocations {
    unsigned long made, freed;
};
struct allocations allocations_now(void);

/* Returns the reason for which allocations cannot be counted, or NULL if they can. */
const char *allocations_unavailable_reason(void);

/* ---- Static memory: statics.c ---- */

/* Static variables of the program or the plug-in that a kernel belongs to. They are read-only while
 * they are watched. The first write faults, is recorded, and then goes on. */
struct statics {
    char *begin, *end;     /* whole pages; equal if they cannot be watched */
    const char *object;    /* path of the plug-in; empty for the program */
    const char *base;      /* its first address */
    char first_write[128]; /* describes the first write; empty: none */
};
struct statics statics_find(void (*kernel)(void));
/* Returns the reason for which writes cannot be noticed, or NULL if they can. */
const char *statics_unavailable_reason(void);
/* Start and end the watch, for calls of this thread. statics_watch() returns false if the object of
 * the kernel was not found, or its memory could not be made read-only. */
bool statics_watch(struct statics *statics);
void statics_unwatch(struct statics *statics);

/* Returns a copy at a new address. The library keeps facts by a backend's address, so that the copy's
 * first call runs the code of a first call. */
struct posenc_backend backend_copy(const struct posenc_backend *backend);

/* ---- Pages that can be closed: pages.c ---- */

/* Memory of a call that can be closed, so that the first touch of each part is noticed. A page ends
 * inside a row of each tensor, and the last page holds only a few bytes, so that the last vector of
 * each loop touches a page of its own. */
struct pages {
    struct closable_map {
        char *begin;
        size_t bytes, part_bytes; /* whole pages */
        bool is_output;
    } maps[LAYOUTS];
    int n, parts; /* parts of each map; 0: a part is a page */
};
struct memory pages_memory(struct pages *pages);
void pages_close(const struct pages *pages, bool with_inputs);
/* Opens the part that has this address, and returns it; NULL if none has. */
char *pages_open(const struct pages *pages, const char *address);
void pages_free(struct pages *pages);

/* ---- Threads: threads.c ---- */

/* Calls the kernel from several threads at once, and requires the bits that each call gives alone.
 * Skips the tally if the problem cannot show a difference. */
void threads_check(struct tally *t, const struct problem *problem);

/* ---- Streaming stores: streaming.c ---- */

/*
 * Streaming (non-temporal) stores of x86 that a call leaves without a fence. A thread that is
 * handed the output by a store with release order may then read the memory as it was before, since
 * streaming stores are not ordered before others.
 *
 * A race would show that only sometimes, and takes two CPUs. So the end of the call is executed
 * instruction by instruction, from its first touch of the output's last page on. A fence, or an
 * instruction that acts as one, has to follow the last streaming store.
 */
enum streaming { STREAMING_FENCED, STREAMING_UNFENCED, STREAMING_TOO_LONG };
/* Makes the call and requires it to be clean. A call whose end has too many instructions shows
 * nothing. */
enum streaming streaming_check(struct tally *t, const struct problem *problem);
const char *streaming_unavailable_reason(void);

#endif
