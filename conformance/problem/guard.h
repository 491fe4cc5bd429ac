/*
 * Guarded memory, and calls whose faults are reported.
 *
 * Each buffer of a call lies between two inaccessible guard pages. It ends flush with the page behind it, so that an
 * access one byte past the end faults; or it starts flush with the page before it, so that an access one byte before
 * the start faults.
 *
 * The rest of its pages and the gaps between the rows of a strided tensor hold a pattern, which is compared after the
 * call. Inputs are read-only while the kernel runs. After a fault, the program goes on.
 *
 * If the rows of a tensor lie gigabytes apart, only the pages of its rows are accessible. The inaccessible margins
 * around it are as wide as a 32-bit index can reach. An input of this kind stays writable; a changed value is reported.
 */
#ifndef POSENC_GUARD_H
#define POSENC_GUARD_H

#include "problem.h"

/* End of a buffer that is flush with a guard page. */
enum guard_mode { GUARD_END, GUARD_START };

struct guard;
struct guard *guard_create(void); /* NULL: out of memory, or no memory protection here */
void guard_destroy(struct guard *guard);
/* Returns an allocator for the buffers of one call after the other. A buffer is flush if its offset_bytes are 0.
 * Otherwise a gap of less than 64 bytes, which holds the pattern, lies before the guard page. */
struct tensor_allocator guard_memory(struct guard *guard, enum guard_mode mode);

/* Causes of an error: the result is wrong; such calls were not offered; or the kernel declined this one. */
enum guard_reason { GUARD_WRONG, GUARD_NOT_OFFERED, GUARD_DECLINED };

enum { GUARD_REASON = 288 };

/* Result of a guarded call. After `crashed`, the status is undefined. */
struct guard_result {
    enum posenc_status status;
    bool crashed;            /* SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGTRAP */
    bool input_written;      /* the fault was a write to a read-only input */
    bool overwritten;        /* the pattern around or between the rows of a tensor changed */
    bool control_left;       /* rounding mode, flush-to-zero or trap bits changed */
    enum guard_reason cause; /* of guard_explain() */
    const void *address;     /* of the fault */
    /* For the first of these: signal, tensor, side and distance; or of the status. */
    char reason[GUARD_REASON];
};

/* Runs a call and reports all of these. `guard` is the one that allocated the call's memory. NULL stands for other
 * memory, where only faults and control bits are reported. Any thread may call this. */
struct guard_result guard_run(struct call *call, const struct posenc_backend *backend,
                              struct guard *guard);

/* Does the same for a caller in unusual floating-point modes: it rounds upward, flushes to zero, traps division by
 * zero and has raised all exception flags. `control_left` covers these. The outputs of the call are undefined.
 * Without such modes, this is guard_run(). */
struct guard_result guard_run_in_modes(struct call *call, const struct posenc_backend *backend,
                                       struct guard *guard);

/* Gives the reason why a kernel of this thread returns an error. */
__attribute__((format(printf, 2, 3))) void guard_explain(enum guard_reason cause,
                                                         const char *format, ...);

/* ---- Status for another process ---- */

/* State of a process in shared memory, for another process that detects calls that hang. */
enum { GUARD_POSITIONS = 64 };
struct guard_status {
    volatile unsigned long changes; /* incremented when a call begins or ends */
    volatile bool inside;           /* a kernel runs */
    volatile int other_threads;     /* other threads that call kernels at the same time */
    bool known;                     /* `problem` is that of the last call */
    struct problem problem;         /* refers to no memory outside this struct */
    int64_t positions[GUARD_POSITIONS];
};
/* Makes the guarded calls of this thread write to a status from now on; NULL: to none. */
void guard_set_status(struct guard_status *status);
/* Returns the problem of the last guarded call of this thread; NULL without a status. */
const struct problem *guard_last_problem(void);
/* Sets the number of other threads that call kernels from now on. Their CPU time must not count as time of this
 * thread's calls. */
void guard_set_other_threads(int threads);
/* Record that the call of this thread is suspended, for example by a guard_repair, and that it resumes. The time
 * between does not count as time of the kernel. */
void guard_pause(void);
void guard_resume(void);

/* ---- Faults ---- */

/* Installs the fault handlers. guard_run() does this at its first call. */
void guard_install(void);

/* Handler of a fault. Returns true if it removed the cause; then the call goes on. `address` is that of the access,
 * or of the instruction after a single step or breakpoint. */
typedef bool guard_repair(void *user, const char *address);
/* Sets the handler that runs first if a call of this thread faults; NULL: none. */
void guard_set_repair(guard_repair *by, void *user);
/* Returns the registers of the faulting call, a ucontext_t, to a guard_repair. */
void *guard_context(void);

/* ---- Functions of guard_memory.c for guard.c; each does nothing if the guard is NULL ---- */

/* Copies the contents of all buffers before a call. Returns false if out of memory. */
bool guard_save(struct guard *guard);
/* Describes the fault at result->address if that is in a buffer or its guard pages. */
void guard_describe_fault(struct guard *guard, const struct call *call, const char *signal,
                          struct guard_result *result);
/* Compares the contents with the copy, and reports the first byte that changed outside the rows of outputs. */
void guard_find_damage(struct guard *g, const struct call *call, struct guard_result *result);

#endif
