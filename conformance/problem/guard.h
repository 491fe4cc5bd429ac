/*
 * Guarded memory and guarded calls.
 *
 * Every buffer of a call lies between two pages that nobody may touch, flush to the end of its
 * pages (an over-read or over-write of one byte past it faults) or to their start (one byte
 * before it does).  What is left of its pages, and what lies between the rows of a strided
 * tensor, holds a pattern that is compared after the call; inputs are read-only while the
 * kernel runs.  A fault becomes an ordinary result and the run goes on.
 *
 * Of a tensor whose rows lie gigabytes apart only the pages of its rows are there: all others, and
 * as many around it as an offset of 32 bits reaches, nobody may touch.
 *
 * The idea of running each buffer twice, once at either end, is checked by the broken kernels
 * over_write, over_write_before and over_read.
 */
#ifndef POSENC_GUARD_H
#define POSENC_GUARD_H

#include "problem.h"

enum guard_mode { GUARD_END, GUARD_START };

struct guard;
struct guard *guard_create(void); /* NULL: no memory, or no memory protection on this system */
void guard_destroy(struct guard *guard);
/* For the buffers asked for from now on.  A tensor's `offset_bytes` of 0 means flush; any other
 * is kept, and the gap of less than 64 bytes that it leaves at the end holds the pattern. */
struct memory guard_memory(struct guard *guard, enum guard_mode mode);

/* How a call went.  After `crashed` the status means nothing. */
struct guarded {
    enum posenc_status status;
    bool crashed;        /* SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGTRAP */
    bool input_written;  /* the fault was a write to a read-only input */
    bool overwritten;    /* the pattern around or between the rows of a tensor changed */
    bool control_left;   /* rounding mode, flush-to-zero or trap bits are not as they were */
    bool direction_left; /* string instructions would run backwards; both on x86-64 alone */
    bool mmx_left;       /* registers that MMX shares with x87 are in use */
    const void *address; /* of the fault */
    char reason[200];    /* of the first of these: signal, tensor, side and distance */
};

/* call_run() with all of that watched.  `guard` is the one whose memory the call was made with,
 * or NULL for a call in other memory: then only faults and the control bits are.  Any thread
 * may. */
struct guarded guarded_run(struct call *call, const struct posenc_backend *backend,
                           struct guard *guard);

/* The same for a caller in other floating-point modes than a program starts with: it rounds
 * upward, flushes to zero, has division by zero unmasked and all exceptions raised.  These are
 * part of `control_left`, and results of the call mean nothing.  Where that cannot be set, as
 * guarded_run(). */
struct guarded guarded_run_in_modes(struct call *call, const struct posenc_backend *backend,
                                    struct guard *guard);

/* What a process is at, for another that watches it: in memory that both see. */
enum { GUARD_POSITIONS = 64 };
struct guard_note {
    volatile unsigned long turn; /* another one whenever a call begins or ends */
    volatile bool inside;        /* a kernel runs */
    volatile int beside;         /* other threads that call kernels at the same time */
    bool known; /* the problem of the last call, which holds no other memory of its process */
    struct problem problem;
    int64_t positions[GUARD_POSITIONS];
};
/* From now on guarded calls of this thread are noted there; NULL: nowhere. */
void guard_note_to(struct guard_note *note);
/* Notes how many other threads call kernels from now on, whose CPU time is no time of this thread's calls. */
void guard_note_beside(int threads);
/* Note that the call of this thread is held up, as by a guard_mend, and that it goes on.  No time between is
 * the kernel's. */
void guard_note_pause(void);
void guard_note_resume(void);

/* The handlers of faults, which guarded_run() installs when it is first called. */
void guard_install(void);

/* Who is asked first when a call of this thread touches what it may not: true where what hindered
 * it is out of the way, and the call goes on.  After a step or at a breakpoint the address is that
 * of the instruction.  NULL: nobody. */
typedef bool guard_mend(void *user, const char *address);
void guard_mend_by(guard_mend *by, void *user);
/* For it: the registers of the call, a ucontext_t. */
void *guard_context(void);

#endif
