/*
 * Measures what a machine does to timings: a kernel against its own copy, with each thing that may
 * disturb it and without.  Nothing of the machine is changed.  The calling thread moves between CPUs, and
 * gets its own back.
 */
#ifndef POSENC_DOCTOR_H
#define POSENC_DOCTOR_H

#include "probe.h"
#include "base/statistics/floor.h"

enum doctor_place { IN_CACHE, IN_DRAM, DOCTOR_PLACES };

struct doctor_options {
    bool quick;
    int cpu;       /* to measure on; below 0: wherever the system puts it */
    bool loose;    /* measure also wherever the system puts it, to find what that costs */
    int beside[2]; /* CPUs to let work beside it: on its own core, on another; below 0: none */
    /* Is asked again and again, with progress from 0 to 1 and what is measured: true ends it. */
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
    double ghz;               /* all along: the median; 0: it cannot be measured */
    double ghz_low, ghz_high; /* above and below which 95 % lie */

    /* How much longer a call takes; NaN: not measured. */
    double small_pages;              /* in small pages instead of huge ones */
    double beside[2][DOCTOR_PLACES]; /* while a CPU of options.beside does the same */
};

/* Measures for 13 s or so, quick for 3 s.  Returns NULL, or why nothing could be measured.  If it is
 * stopped, what was measured until then is filled in. */
const char *doctor_measure(const struct doctor_options *options, struct doctor *doctor);

#endif
