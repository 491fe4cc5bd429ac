/*
 * posenc bench --probe: measures disturbances of timings on this machine, without changing the machine. posenc doctor
 * (reports/posenc/doctor) derives its findings from the record.
 */
#ifndef POSENC_CLI_PROBE_H
#define POSENC_CLI_PROBE_H

#include "args.h"

#include <jansson.h>
#include <posenc/backend.h>
#include <posenc/experimental.h>
#include <pthread.h>

/* Pins a thread to a CPU. Returns false on failure. */
bool probe_pin_thread(pthread_t thread, int cpu);
/* Save and restore the set of CPUs that the calling thread may use. */
void probe_save_affinity(void);
void probe_restore_affinity(void);

/* Kernel that is timed: a rotation in place by the angle 0, which never changes its data. */
struct probe_rotation {
    struct posenc_rope_args args;
    void *mapped; /* memory of its tensors */
    size_t mapped_bytes;
    int64_t calls; /* in one sample */
};
enum page_kind { PAGES_OF_SYSTEM, PAGES_SMALL, PAGES_HUGE };

/* Allocates a rotation of that many bytes. Returns false if memory, such pages or a backend are missing. */
bool probe_rotation_create(struct probe_rotation *rotation, size_t bytes, enum page_kind pages);
void probe_rotation_destroy(struct probe_rotation *rotation);
void probe_rotation_call(const struct probe_rotation *rotation);
/* Returns the seconds of one call, the mean over a sample. */
double probe_rotation_time(const struct probe_rotation *rotation);

/* Measures the CPU frequency for about so many seconds. Returns GHz, or 0 if it cannot be measured. */
double probe_ghz(double seconds);

/* Each returns one member of "measured" in the record; results.schema.json describes them. */
json_t *probe_clock(void);
json_t *probe_denormals(void);
/* Measures for so many seconds, until stop() returns true; the activity is for its progress line. */
json_t *probe_gaps(double seconds, bool (*stop)(const void *user, const char *activity),
                   const void *user);
/* Measures the frequency after a sleep and after 512-bit arithmetic, as medians of `tries`; {} if that is unknown. */
json_t *probe_frequency(int tries);

#endif
