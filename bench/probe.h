/*
 * What one core does by itself, measured on the calling thread: its clock, its frequency, what interrupts
 * it, how it takes denormals.
 */
#ifndef POSENC_PROBE_H
#define POSENC_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns GHz over about that many seconds, by a chain of additions that each take one cycle; 0: there is
 * no chain for this architecture. */
double probe_ghz(double seconds);

/* Shares of the frequency that the core settles at. */
struct probe_speed {
    double after_sleep;   /* in the first 0.2 ms after it slept */
    double settled_s;     /* until it is within 2 % */
    double after_vectors; /* after 512-bit arithmetic; 0: it has none */
};
struct probe_speed probe_speed(int times);

struct probe_clock {
    double step_ns, reading_ns; /* the least step it makes; the time of a reading */
    bool backwards;             /* it was seen to go backwards */
};
struct probe_clock probe_clock(void);

/* Gaps in a loop that does nothing but read the clock: interrupts, other programs, a hypervisor, the
 * firmware.  Gaps are longer than 1 us; counted are those of up to 10 us, 100 us, 1 ms, and longer. */
enum { GAP_KINDS = 4 };
struct probe_gaps {
    double seconds, lost_s, longest_s;
    size_t count[GAP_KINDS];
};
void probe_gaps(double seconds, struct probe_gaps *gaps); /* adds to it */

struct probe_denormals {
    bool told, flushed; /* whether they are replaced by zero; told: this is known here */
    double times;       /* how much longer multiplications with denormal results take */
};
struct probe_denormals probe_denormals(void);

#endif
