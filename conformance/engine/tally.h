/*
 * Interface between the engine and suites, each of which checks one implementation and reports results.
 *
 * A tally combines the checks of many calls of a kernel into the result of one case. The first failed check decides:
 *
 *     struct tally t;
 *     if (!tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "memory", NULL, "zeros"))
 *         return;                                         // the options exclude "rope_half/f32/memory/zeros"
 *     const struct call *call = tally_run(&t, &problem, NULL, NULL);
 *     if (call)
 *         require(&t, call_row(call, 0, 0)[0] == 0.0f, "row 0 begins with another value");
 *     tally_end(&t);                                      // passes the result to the sink
 */
#ifndef POSENC_TALLY_H
#define POSENC_TALLY_H

#include "base/text/text.h"
#include "conformance/oracle/oracle.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/guard.h"
#include "conformance/readers/vectors.h"
#include "engine.h"

/* ---- Suites ---- */

struct suite_run {
    const struct conf_options *options;
    const struct implementation *implementation;
    const struct posenc_backend *backend; /* of `implementation` */
    conf_sink *sink;
    void *user;
    size_t failed;             /* number of failures and crashes in all kernels */
    enum posenc_kernel kernel; /* the current kernel */
    size_t n_entered;          /* results of the current kernel that ran it */
    size_t n_elsewhere;        /* checks of the current kernel that another process runs */
};

/* Announces a failure before its problem is run again. */
void suite_announce(struct suite_run *run, const struct conf_result *result);

/* Runs the cases of a suite, or of a part of it, for one kernel. */
typedef void suite_function(struct suite_run *run, enum posenc_kernel kernel);
/* Reports the reason why the current kernel has no results, so that no kernel is missing from a report. */
void suite_report_kernel(struct suite_run *run, enum conf_status status, const char *reason);

/* Ends the program with a message if a line of a compiled-in case file belongs to no case, and so would never run. */
void require_known_lines(enum cases_file file, const char *name,
                         bool (*is_known)(const struct problem_line *line));

/* ---- Tallies ---- */

enum { TALLY_LINE = 8192 };
struct tally {
    struct suite_run *run;
    const struct problem *problem; /* current problem, reported with a failure; or NULL */
    struct conf_result result;
    bool selected, skipped; /* by the options; by tally_skip() */
    struct kept_call *kept; /* calls of tally_run() and tally_create_call(), newest first */
    char line[TALLY_LINE];  /* problem of the failure, for the search of mistakes; or "" */
};

/* Begins the case "<kernel>/<dtype>/<numerics>/<name>", with the suite in place of a NULL numerics. Returns false if the
 * options exclude it. */
PRINTF_LIKE(7, 8)
bool tally_begin(struct tally *t, struct suite_run *run, enum posenc_kernel kernel,
                 enum posenc_dtype dtype, const char *suite, const char *numerics,
                 const char *name, ...);
/* Does the same for a problem and its numerics mode. The name follows a prefix. Also returns false if the problem has a
 * 16-bit tensor and the backend supports f32 alone. */
bool tally_begin_problem(struct tally *t, struct suite_run *run, const struct problem *p,
                         const char *suite, const char *prefix, const char *name);
/* Counts a check; returns `ok`. The first failure sets the reason of the result. */
PRINTF_LIKE(3, 4)
bool require(struct tally *t, bool ok, const char *format, ...);
/* Records the problem of a failure. */
void tally_set_problem(struct tally *t, const struct problem *problem);
/* Requires that a call succeeded, without a fault or changed floating-point modes. */
bool require_clean(struct tally *t, const struct guard_result *g);
/* Requires n values to have the expected bits; any NaN equals any other. `what` begins the reason of a failure. */
bool require_same_bits(struct tally *t, const float *got, const float *want, int64_t n,
                       const char *what);
/* Requires |got - want| <= bound. */
bool require_within(struct tally *t, double got, double want, double bound, const char *what);
/* Makes the result "skipped", with this reason, unless a check fails. */
void tally_skip(struct tally *t, const char *reason);
/* Does so because the implementation does not offer a call. */
void tally_decline(struct tally *t, const char *reason);
/* Returns the bits of a value, which are equal for all NaNs except the canary of unwritten values. */
uint32_t canonical_bits(float value);
/* Frees the calls and reports the result. A tally without any check fails. */
void tally_end(struct tally *t);

/* Changes a call before it runs. */
typedef void call_edit(struct call *call, const void *user);
/* Creates a call in plain memory by the run's implementation, applies `edit` unless that is NULL, and runs it. Returns
 * NULL on an error, with a failure of the tally. The tally owns the call until tally_free_calls() or tally_end(). Read
 * its outputs by call_row(); its inputs `x` etc. are those before the edit. */
const struct call *tally_run(struct tally *t, const struct problem *p, call_edit *edit,
                             const void *user);
/* Does so by any implementation, but does not run the call. */
struct call *tally_create_call(struct tally *t, const struct implementation *implementation,
                               const struct problem *p);
void tally_free_calls(struct tally *t);

/* Creates a call in guarded memory and runs it. Returns true if it ran without a fault and wrote nothing outside of its
 * outputs; the caller then destroys it. Otherwise fails the tally, except for a lack of memory if `has_memory` is not
 * NULL: then sets *has_memory to false. */
bool tally_run_guarded(struct tally *t, struct guard *guard, enum guard_mode mode,
                       const struct problem *p, struct call *call, bool *has_memory);

/* Requires the same bits in all rows of all outputs. */
bool require_same_outputs(struct tally *t, const struct call *got, const struct call *want,
                          const char *what);

/* ---- Problems and places of values ---- */

/* Returns the dtype of the first output of a problem. */
enum posenc_dtype problem_output_dtype(const struct problem *problem);
/* Returns the numerics mode of a problem, or "given" for kernels without angles. */
const char *problem_numerics_name(const struct problem *problem);
/* Describes a value's place: "position 497577 pair 317 sin of dim 768 theta 10000", or "batch 0 token 3 head 1
 * channel 8". */
void describe_place(const struct call *call, int o, int64_t r, int64_t column, char *text,
                    size_t size);

#endif
