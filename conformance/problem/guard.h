/*
 * Guarded memory and guarded calls.
 *
 * Each buffer of a call lies between two inaccessible guard pages. It ends flush with the page
 * behind it, so that a read or write one byte past the end faults; or it starts flush with the page
 * before it, for one byte before the start. The faulty kernels over_write, over_write_before and
 * over_read check that both placements are needed.
 *
 * The rest of its pages and the gaps between the rows of a strided tensor hold a pattern, which is
 * compared after the call. Inputs are read-only while the kernel runs. A fault becomes an ordinary
 * result and the run continues.
 *
 * For a tensor whose rows lie gigabytes apart, only the pages of its rows are accessible. The
 * inaccessible margin around it is as wide as a 32-bit index can reach.
 */
#ifndef POSENC_GUARD_H
#define POSENC_GUARD_H

#include "problem.h"

enum guard_mode { GUARD_END, GUARD_START };

struct guard;
struct guard *guard_create(void); /* NULL: out of memory, or no memory protection here */
void guard_destroy(struct guard *guard);
/* Returns an allocator for the buffers of one call after the other. An `offset_bytes` of 0 means
 * flush. With another offset, the gap of under 64 bytes at the end holds the pattern. */
struct memory guard_memory(struct guard *guard, enum guard_mode mode);

/* Result of a guarded call. After `crashed`, the status is undefined. */
struct guarded {
    enum posenc_status status;
    bool crashed;        /* SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGTRAP */
    bool input_written;  /* the fault was a write to a read-only input */
    bool overwritten;    /* the pattern around or between the rows of a tensor changed */
    bool control_left;   /* rounding mode, flush-to-zero or trap bits changed */
    const void *address; /* of the fault */
    char reason[200];    /* for the first of these: signal, tensor, side and distance */
};

/* Runs a call and watches for all of these. `guard` is the one whose memory the call has. NULL
 * means other memory, where only faults and control bits are watched. Any thread may call this. */
struct guarded guarded_run(struct call *call, const struct posenc_backend *backend,
                           struct guard *guard);

/* Does the same for a caller in unusual floating-point modes: it rounds upward, flushes to zero,
 * traps division by zero and has all exception flags raised. `control_left` covers these. Results
 * of the call mean nothing. Systems without such modes do as guarded_run(). */
struct guarded guarded_run_in_modes(struct call *call, const struct posenc_backend *backend,
                                    struct guard *guard);

/* ---- Notes for another process ---- */

/* State of a process in shared memory, for another process that watches it. */
enum { GUARD_POSITIONS = 64 };
struct guard_note {
    volatile unsigned long turn; /* changes whenever a call begins or ends */
    volatile bool inside;        /* a kernel runs */
    volatile int beside;         /* other threads that call kernels at the same time */
    /* `problem` is that of the last call, and refers to no other memory of its process. */
    bool known;
    struct problem problem;
    int64_t positions[GUARD_POSITIONS];
};
/* Records the guarded calls of this thread there from now on; NULL: nowhere. */
void guard_note_to(struct guard_note *note);
/* Records that so many other threads call kernels from now on. Their CPU time must not count as
 * time of this thread's calls. */
void guard_note_threads(int threads);
/* Record that the call of this thread is suspended, for example by a guard_repair, and that it goes
 * on. The time between does not count as time of the kernel. */
void guard_note_pause(void);
void guard_note_resume(void);

/* ---- Faults ---- */

/* Installs the fault handlers. guarded_run() does this at its first call. */
void guard_install(void);

/* Handler that runs first if a call of this thread faults, or NULL. It returns true if it removed
 * the cause, and the call goes on. After a single step or a breakpoint, `address` is that of the
 * instruction. */
typedef bool guard_repair(void *user, const char *address);
void guard_set_repair(guard_repair *by, void *user);
/* Returns the registers of the faulting call, a ucontext_t, to a guard_repair. */
void *guard_context(void);

/* ---- From guard_memory.c to guard.c; each does nothing if the guard is NULL ---- */

/* Copies the contents of all buffers before a call. Returns false if out of memory. */
bool guard_save(struct guard *guard);
/* Describes the fault at result->address if that is in a buffer or its guard pages. */
void guard_describe_fault(struct guard *guard, const struct call *call, const char *signal,
                          struct guarded *result);
/* Compares the contents with the copy, and reports the first byte that changed outside the rows of
 * outputs. */
void guard_find_damage(struct guard *guard, const struct call *call, struct guarded *result);

#endif
