/*
 * The probe of posenc doctor, posenc bench --probe: measures what disturbs timings on this machine.  It
 * judges nothing and changes nothing on the machine.  reports/posenc/doctor makes findings of its record.
 */
#ifndef POSENC_CLI_PROBE_H
#define POSENC_CLI_PROBE_H

#include "args.h"

#include <jansson.h>
#include <posenc.h>
#include <pthread.h>

/* Measures this machine and prints records on stdout: header, env, doctor and footer. Returns the
 * exit code. */
int probe_machine(struct cli *cli);

/* ---- Tools of the probe (probe_core.c) ---- */

/* Keeps a thread on one CPU.  Returns false if that cannot be done. */
bool probe_run_on(pthread_t thread, int cpu);
/* Remembers the CPUs that the calling thread may use, and lets it use all of them again. */
void probe_keep_cpus(void);
void probe_run_on_kept_cpus(void);

/* A rotation in place by the angle 0: its numbers stay what they are, however often it is called. */
struct rotation {
    struct posenc_rope_args args;
    void *mapped;
    size_t mapped_bytes;
    int64_t calls; /* in a sample */
};
enum page_kind { PAGES_OF_SYSTEM, PAGES_SMALL, PAGES_HUGE };

/* Makes a rotation over that many bytes.  Returns false if there is no memory, there are no such pages or
 * no backend; nothing is to be freed then. */
bool rotation_make(struct rotation *rotation, size_t bytes, enum page_kind pages);
void rotation_free(struct rotation *rotation);
void rotation_call(const struct rotation *rotation);
/* Returns the seconds of one call, over as many as a sample takes. */
double rotation_sample(const struct rotation *rotation);

/* Returns the frequency in GHz over about that many seconds; 0 if it cannot be measured here. */
double probe_ghz(double seconds);

/* Each makes a member of the record's "measured"; results.schema.json describes them. */
json_t *probe_clock(void);
json_t *probe_denormals(void);
json_t *probe_gaps(double seconds, bool (*stop)(void *user), void *user);
/* Measures the frequency after a sleep and after 512-bit arithmetic, the median of so many tries.  The
 * object is empty if the frequency cannot be measured. */
json_t *probe_frequency(int tries);

#endif
