/*
 * Measures what a machine does to timings: a kernel against its own copy, with each thing that may
 * disturb it and without.  Nothing of the machine is changed; the calling thread's CPUs are, and are given
 * back.
 */
#ifndef POSENC_DOCTOR_H
#define POSENC_DOCTOR_H

#include "probe.h"
#include "base/statistics/floor.h"

#include <stdint.h>

enum doctor_place { IN_CACHE, IN_DRAM, DOCTOR_PLACES };

struct doctor_options {
    bool quick;
    int cpu;       /* to measure on; below 0: wherever the system puts it */
    bool loose;    /* also as the system likes, to tell what that costs */
    int beside[2]; /* CPUs to let work beside it: on its own core, on another; below 0: none */
    uint64_t seed;
    /* Asked again and again with how far it is, from 0 to 1, and what is done: true ends the measuring. */
    bool (*stop)(void *user, double done, const char *doing);
    void *user;
};

/* A rotation against itself. */
struct doctor_floor {
    double call_ns; /* one call: the median; 0: not measured */
    struct floor_summary floor;
};

struct doctor {
    double seconds;
    int cpu;                     /* that was measured on; -1: any */
    size_t bytes[DOCTOR_PLACES]; /* 0: there was no memory for it */
    struct doctor_floor floor[DOCTOR_PLACES], loose[DOCTOR_PLACES];

    struct probe_clock clock;
    struct probe_gaps gaps;
    struct probe_denormals denormals;
    struct probe_speed speed;
    double ghz, ghz_low,
        ghz_high; /* all along: median, and what 5 % lie below, above; 0: no chain */

    /* How much longer a call takes: in small pages instead of huge ones, NaN where there are none to be
     * had; while a CPU of options.beside does the same, NaN where none did. */
    double small_pages, beside[2][DOCTOR_PLACES];
};

/* NULL, or why nothing could be measured.  Ended early (stop), what there is is filled in. */
const char *doctor_measure(const struct doctor_options *options, struct doctor *doctor);

#endif
