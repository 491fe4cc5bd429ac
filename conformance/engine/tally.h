/*
 * A tally gathers what many calls showed about one property of one kernel into one result: the
 * number of checks, and the first that failed with the problem it failed on.
 */
#ifndef POSENC_TALLY_H
#define POSENC_TALLY_H

#include "conformance/problem/guard.h"
#include "suite.h"

struct tally {
    struct suite_run *run;
    const struct problem *problem; /* that of a failure, to be noted; or NULL */
    struct conf_result result;
    bool selected, skipped;
    struct kept_call *kept; /* the last of tally_run() and tally_call() */
};

/* The case "<kernel>/<dtype>/<profile>/<name>", or, without a profile, "<kernel>/<dtype>/<suite>/
 * <name>"; false, and not `selected`, when options leave it out. */
__attribute__((format(printf, 7, 8))) bool tally_begin(struct tally *t, struct suite_run *run,
                                                       enum posenc_kernel kernel,
                                                       enum posenc_dtype dtype,
                                                       const char *suite, const char *profile,
                                                       const char *name, ...);
/* The same of one problem, under its profile; false, too, where it stores a tensor in 16 bits and
 * the backend takes f32 alone. */
__attribute__((format(printf, 5, 6))) bool
tally_begin_problem(struct tally *t, struct suite_run *run, const struct problem *p,
                    const char *suite, const char *name, ...);
/* Counts a check; returns `ok`.  The first that is not keeps its reason. */
__attribute__((format(printf, 3, 4))) bool require(struct tally *t, bool ok, const char *format,
                                                   ...);
/* The call went through: no fault, control bits as before, and the status is OK. */
bool require_clean(struct tally *t, const struct guarded *g);
bool require_same_bits(struct tally *t, const float *got, const float *want, int64_t n,
                       const char *what);
bool require_within(struct tally *t, double got, double want, double bound, const char *what);
void tally_skip(struct tally *t, const char *reason);
/* The bits of a value, those of every NaN the same ones; but what nobody wrote stays the canary. */
uint32_t value_bits(float value);
/* Reports the result.  A tally without a single check has failed: it was meant to check
 * something. */
void tally_end(struct tally *t);

/* A call made in plain memory by the run's subject, edited when `edit` is given, and run: outputs
 * by call_row(), and the inputs as they were before the edit in its x, table, ...  NULL, with the
 * tally failed, when it cannot be made or run.  And a call that is not run, made by a subject, or
 * by the library itself: what its slopes and indices should be.  Both are kept until the tally is
 * told to forget them. */
typedef void call_edit(struct call *call, const void *user);
const struct call *tally_run(struct tally *t, const struct problem *p, call_edit *edit,
                             const void *user);
struct call *tally_call(struct tally *t, const struct subject *subject,
                        const struct problem *p);
void tally_forget(struct tally *t);
bool require_same_outputs(struct tally *t, const struct call *got, const struct call *want,
                          const char *what);

#endif
