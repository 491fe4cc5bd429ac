/*
 * What one core does by itself, measured on the calling thread: its clock, its frequency, what
 * interrupts it, how it takes denormals.
 */
#ifndef POSENC_PROBE_H
#define POSENC_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/* Cycles in a chain of additions, each of which waits for the one before: one cycle each on every
 * CPU there is a chain for.  GHz over about that many seconds; 0: no chain for this architecture. */
double probe_ghz(double seconds);

/* The same just after the core slept, and after 512-bit arithmetic, as shares of the frequency that it
 * settles at.  vectors: 0 where there are no such instructions. */
struct probe_speed {
    double after_sleep, settled_s; /* the first 0.2 ms; until it is within 2 % */
    double after_vectors;
};
struct probe_speed probe_speed(int times);

struct probe_clock {
    double step_ns, reading_ns; /* the least step it makes; what a reading takes */
    bool backwards;             /* it was seen to */
};
struct probe_clock probe_clock(void);

/* What a loop misses that does nothing but read the clock: interrupts, other programs, a hypervisor, the
 * firmware.  Gaps are longer than 1 us; counted are those of up to 10 us, 100 us, 1 ms, and longer. */
enum { GAP_KINDS = 4 };
struct probe_gaps {
    double seconds, lost_s, longest_s;
    size_t count[GAP_KINDS];
};
void probe_gaps(double seconds, struct probe_gaps *gaps); /* adds to it */

struct probe_denormals {
    bool told, flushed; /* whether they are replaced by zero; `told`: this is known here */
    double times; /* how much longer multiplications take where the results are denormal */
};
struct probe_denormals probe_denormals(void);

#endif
