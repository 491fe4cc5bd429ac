/*
 * What a kernel may not do besides computing what it should, as it is seen from outside: the suite
 * `conduct` makes results of it.
 */
#ifndef POSENC_CONDUCT_H
#define POSENC_CONDUCT_H

#include "conformance/problem/guard.h"
#include "conformance/problem/problem.h"

#include <signal.h>

/* ---- Memory that is allocated ---- */

/* Blocks and maps of this thread since it began.  With glibc the program has malloc() and its like
 * itself, which count and hand on to those of the library: a plug-in's calls come here, too. */
struct allocations {
    unsigned long made, freed;
};
struct allocations allocations_now(void);

/* Why they cannot be seen here; NULL: they are. */
const char *allocations_unseen(void);

/* ---- Memory that lasts ---- */

/* The static variables of the program or the plug-in that a kernel belongs to.  They cannot be
 * written while they are watched: a write faults, is noted, and goes on. */
struct statics {
    char *begin, *end; /* whole pages; the same where they cannot be watched */
    const char *object, *base;
    char text[128]; /* the first write */
};
struct statics statics_of(void (*kernel)(void));
const char *statics_unseen(void);

/* From now on, for calls of this thread, and those that statics_mend() is asked in; and until then. */
void statics_watch(struct statics *statics);
void statics_leave(struct statics *statics);
bool statics_mend(void *statics, const char *address);

/* A copy, of which the library remembers nothing when it is first called. */
struct posenc_backend backend_copy(const struct posenc_backend *backend);

/* ---- The process ---- */

/* Descriptors, threads, signals; environment, locale and working directory. */
struct process {
    bool open[256];
    unsigned long threads; /* 0: not known here */
    struct sigaction handlers[65];
    sigset_t blocked;
    uint64_t surroundings;
};
void process_look(struct process *process);

/* The first descriptor or signal in which two differ; -1: none. */
int process_other_file(const struct process *a, const struct process *b);
int process_other_signal(const struct process *a, const struct process *b);
/* Returns how many more threads run, after a while in which those that end may do so. */
unsigned long process_more_threads(const struct process *before);
void process_restore_signals(const struct process *before, const struct process *now);

/* ---- Pages ---- */

/* Memory of a call that can be closed: the first touch of each of its parts is then noticed.  Tensors
 * lie so that a page ends in the middle of a row, and that the last one holds little. */
struct pages {
    struct closable {
        char *begin;
        size_t bytes, part; /* whole pages */
        bool output;
    } maps[LAYOUTS];
    int n, parts; /* of each; 0: a part is a page */
};
struct memory pages_memory(struct pages *pages);
void pages_close(const struct pages *pages, bool inputs);
/* Opens the part that has this address, and returns it; NULL: none has. */
char *pages_open(const struct pages *pages, const char *address);
void pages_free(struct pages *pages);

/* ---- Threads ---- */

/*
 * Calls of one kernel by several threads at once, each with tensors and data of its own and the
 * same shape, released together.  Every call has to give the bits that it gives alone.
 *
 * That calls overlap is not left to chance.  The first thread's pages cannot be touched at first:
 * wherever its call reaches new ones it stops, in the middle of whatever it does, until other
 * threads have begun calls and ended them; on one core, too, and however busy the machine is.
 */
struct together {
    unsigned long stops; /* in the middle of a call */
    bool crashed;
    const char *nothing; /* why this problem cannot show anything; NULL: it can */
    char text[200];      /* the first that went wrong; empty: none */
};

/* `first`: each thread calls once, before any call that is alone: what a kernel makes when it is
 * first called is then made by several at once.  That static variables of its own are written then
 * is wrong, too: there is nothing by which the others would wait. */
void together_run(const struct implementation *implementation, const struct problem *problem,
                  bool first, struct together *together);

/* ---- Streaming stores ---- */

/*
 * Streaming (non-temporal) stores of x86 that a call leaves without a fence.  A thread that is handed
 * the output, by a store with release order, may then read what was there before: such stores are not
 * ordered before others.
 *
 * Whether it does is luck, and takes two CPUs.  So nothing is handed over here: the end of the call is
 * run instruction by instruction, from when it first touches the last page of the output on, and looked
 * at.  After a streaming store there has to be a fence, or what is one: an instruction that locks the
 * bus, or that serialises.
 */
struct streaming {
    unsigned long steps; /* instructions that were looked at */
    bool unfenced;       /* the last streaming store is followed by no fence */
    bool too_long;       /* the end was not reached, and nothing is known */
    bool crashed;
    char text[200]; /* of a call that was not made or did not go through */
};
void streaming_run(const struct implementation *implementation, const struct problem *problem,
                   struct streaming *streaming);
const char *streaming_unseen(void);

#endif
