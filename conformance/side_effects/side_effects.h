/*
 * Observers of a kernel's side effects: allocations, writes to static memory, data shared between threads, and
 * streaming stores without a fence. The suite "side-effects" (suites/side_effects.c) calls them and reports the
 * results.
 */
#ifndef POSENC_SIDE_EFFECTS_H
#define POSENC_SIDE_EFFECTS_H

#include "conformance/engine/tally.h"

/* ---- Single calls: watched_calls.c ---- */

/* Numbers of heap blocks and memory maps that this thread allocated and freed. Calls by plug-ins count, too, as the
 * program defines malloc(), mmap() and their relatives, but not pvalloc(), mremap() and sbrk(). */
struct allocation_counts {
    unsigned long allocated, freed;
};
/* Returns the counts since the start of this thread. */
struct allocation_counts allocation_counts_now(void);
/* Returns the reason why allocations cannot be counted, or NULL if they can. */
const char *allocations_unavailable_reason(void);

/* Static variables of the object (program or plug-in) that contains a kernel. They are read-only during a watch. The
 * first write to each page faults; the handler describes the first of all, and lets each proceed. */
struct static_memory {
    char *begin, *end;       /* whole pages; equal if the object has none */
    const char *object_path; /* empty for the program; NULL if the object was not found */
    const char *load_address;
    char first_write[128]; /* description of the first write, or empty */
};
/* Returns the reason why writes cannot be detected, or NULL if they can. */
const char *static_memory_unavailable_reason(void);
/* Starts a watch of this thread's calls on the object that contains a kernel. Returns false if the object was not found, or
 * its memory could not be made read-only. */
bool static_memory_watch(struct static_memory *memory, void (*kernel)(void));
/* Ends the watch. */
void static_memory_unwatch(struct static_memory *s);

/* Returns a copy at a new address. The library caches data by a backend's address, so the first call of the copy runs
 * the code that only a first call runs. */
struct posenc_backend backend_copy(const struct posenc_backend *backend);

/* ---- Stopped calls: stopped_calls.c ---- */

/* Calls the kernel from several threads at once. Each call must give the same bits as alone. Skips the tally if calls
 * on different data have the same outputs, so that no fault could show. */
void threads_require_same_outputs(struct tally *t, const struct problem *problem);

/*
 * Streaming (non-temporal) stores of x86 need a fence before the call returns. Without one, another thread that learns
 * of the output by a store with release order may still read the old contents, because streaming stores may become
 * visible after later stores.
 *
 * A race would show this only sometimes, and needs two CPUs. Therefore the end of the call is single-stepped, from the
 * first access to the output's last page on. The last streaming store must be followed by a fence, or by an
 * instruction that acts as one.
 */

/* Runs a call of the problem, which must be clean, and requires the fence. Returns false if the end of the call has too many
 * instructions to step through. */
bool streaming_require_fence(struct tally *t, const struct problem *problem);
/* Returns the reason why calls cannot be single-stepped, or NULL if they can. */
const char *streaming_unavailable_reason(void);

#endif
