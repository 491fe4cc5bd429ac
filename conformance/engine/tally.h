/*
 * A tally gathers the checks of many calls of one kernel into one result: the number of checks, and
 * the first failure with its problem.
 */
#ifndef POSENC_TALLY_H
#define POSENC_TALLY_H

#include "conformance/problem/guard.h"
#include "suite.h"

struct tally {
    struct suite_run *run;
    const struct problem *problem; /* noted with a failure; or NULL */
    struct conf_result result;
    bool selected, skipped;
    struct kept_call *kept; /* calls of tally_run() and tally_call(), the last one first */
};

/* Begins the case "<kernel>/<dtype>/<profile>/<name>", with the suite in place of a missing
 * profile. Returns false, and leaves `selected` false, if the options exclude it. */
__attribute__((format(printf, 7, 8))) bool tally_begin(struct tally *t, struct suite_run *run,
                                                       enum posenc_kernel kernel,
                                                       enum posenc_dtype dtype,
                                                       const char *suite, const char *profile,
                                                       const char *name, ...);
/* Does the same for a problem and its numerics mode. Also returns false if the problem has a 16-bit
 * tensor and the backend supports f32 alone. */
__attribute__((format(printf, 5, 6))) bool
tally_begin_problem(struct tally *t, struct suite_run *run, const struct problem *p,
                    const char *suite, const char *name, ...);
/* Counts a check; returns `ok`. The first failure sets the reason of the result. */
__attribute__((format(printf, 3, 4))) bool require(struct tally *t, bool ok, const char *format,
                                                   ...);
/* Requires a call without fault, changed control bits or error status. */
bool require_clean(struct tally *t, const struct guard_result *g);
bool require_same_bits(struct tally *t, const float *got, const float *want, int64_t n,
                       const char *what);
bool require_within(struct tally *t, double got, double want, double bound, const char *what);
void tally_skip(struct tally *t, const char *reason);
/* Returns the bits of a value, equal for every NaN except the canary of unwritten values. */
uint32_t value_bits(float value);
/* Reports the result. A tally without a check fails, as it was meant to check something. */
void tally_end(struct tally *t);

/* tally_run() makes a call in plain memory by the run's implementation, applies `edit` if given,
 * and runs it. Outputs are read by call_row(); the call's pristine inputs are those before the
 * edit. It fails the tally and returns NULL on error. tally_call() makes a call, by any
 * implementation, without running it. Calls are kept until tally_forget(). */
typedef void call_edit(struct call *call, const void *user);
const struct call *tally_run(struct tally *t, const struct problem *p, call_edit *edit,
                             const void *user);
struct call *tally_call(struct tally *t, const struct implementation *implementation,
                        const struct problem *p);
void tally_forget(struct tally *t);

/* Makes a call in guarded memory and runs it. Returns true if it ran without fault and wrote nothing
 * around its outputs; the caller then destroys it. Anything else fails the tally, except a lack of
 * memory if *has_memory can say so. */
bool tally_run_guarded(struct tally *t, struct guard *guard, enum guard_mode mode,
                       const struct problem *p, struct call *call, bool *has_memory);

bool require_same_outputs(struct tally *t, const struct call *got, const struct call *want,
                          const char *what);

#endif
