/*
 * Side effects of a kernel, watched from outside: the suite side-effects makes results of them.
 */
#ifndef POSENC_SIDE_EFFECTS_H
#define POSENC_SIDE_EFFECTS_H

#include "conformance/problem/guard.h"
#include "conformance/problem/problem.h"

/* ---- Allocated memory ---- */

/* Blocks and maps of this thread since it began.  With glibc the program defines malloc() and its
 * relatives, which count and call those of the library, so a plug-in's calls are counted, too. */
struct allocations {
    unsigned long made, freed;
};
struct allocations allocations_now(void);

/* Returns why allocations cannot be counted here; NULL: they can. */
const char *allocations_unseen(void);

/* ---- Static memory ---- */

/* The static variables of the program or the plug-in that a kernel belongs to.  They are read-only
 * while they are watched: a write faults, is recorded, and continues. */
struct statics {
    char *begin, *end; /* whole pages; equal if they cannot be watched */
    const char *object, *base;
    char text[128]; /* describes the first write */
};
struct statics statics_of(void (*kernel)(void));
const char *statics_unseen(void);

/* Start and end the watch: for calls of this thread, and of those that call statics_mend(). */
void statics_watch(struct statics *statics);
void statics_leave(struct statics *statics);
bool statics_mend(void *statics, const char *address);

/* Returns a copy, of which the library remembers nothing when it is first called. */
struct posenc_backend backend_copy(const struct posenc_backend *backend);

/* ---- Pages ---- */

/* Memory of a call that can be closed, so that the first touch of each part is noticed.  Tensors
 * lie so that a page ends in the middle of a row, and that the last page holds little. */
struct pages {
    struct closable {
        char *begin;
        size_t bytes, part; /* whole pages */
        bool output;
    } maps[LAYOUTS];
    int n, parts; /* parts of each map; 0: a part is a page */
};
struct memory pages_memory(struct pages *pages);
void pages_close(const struct pages *pages, bool inputs);
/* Opens the part that has this address, and returns it; NULL: none has. */
char *pages_open(const struct pages *pages, const char *address);
void pages_free(struct pages *pages);

/* ---- Threads ---- */

/*
 * Calls of one kernel by several threads at once, each with tensors and data of its own and the
 * same shape.  Every call has to give the bits that it gives alone.
 *
 * The calls are made to overlap.  The first thread's pages are closed at first: wherever its call
 * reaches new ones it stops, until other threads have begun calls and ended them.  So they overlap
 * on one core, too, and however busy the machine is.
 */
struct together {
    unsigned long stops; /* in the middle of a call */
    bool crashed;
    const char *nothing; /* why this problem cannot show anything; NULL: it can */
    char text[200];      /* the first failure; empty: none */
};
void together_run(const struct implementation *implementation, const struct problem *problem,
                  struct together *together);

/* ---- Streaming stores ---- */

/*
 * Streaming (non-temporal) stores of x86 that a call leaves without a fence.  A thread that is handed
 * the output, by a store with release order, may then read what was there before: streaming stores
 * are not ordered before others.
 *
 * A race would show that only sometimes, and takes two CPUs.  So the end of the call is executed
 * instruction by instruction, from its first touch of the output's last page on.  A fence has to
 * follow the last streaming store, or an instruction that acts as one.
 */
struct streaming {
    unsigned long steps; /* instructions that were looked at */
    bool unfenced;       /* no fence follows the last streaming store */
    bool too_long;       /* the end was not reached, and nothing is known */
    bool crashed;
    char text[200]; /* describes a call that was not made or did not go through */
};
void streaming_run(const struct implementation *implementation, const struct problem *problem,
                   struct streaming *streaming);
const char *streaming_unseen(void);

#endif
