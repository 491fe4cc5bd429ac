/*
 * Differences in results between two implementations, base and head. The evidence is exact and
 * repeatable, without statistics.
 *
 *   status   a case ends differently, or only one side has a kernel or type
 *   error    the largest error of a case differs
 *   bits     outputs differ on a problem that both run: of the digests, of the golden vectors, or
 *            of the caller. All NaN are equal; zeros of different signs are not
 *
 * Errors are relative to the oracle, for the call as the library of this program makes it.
 * Functions of an implementation that make frequencies or slopes are among the things that may
 * change.
 */
#ifndef POSENC_CHANGES_H
#define POSENC_CHANGES_H

#include "engine.h"
#include "conformance/problem/notation.h"

enum change_kind { CHANGE_STATUS, CHANGE_ERROR, CHANGE_BITS };
extern const char *const change_kind_name[];

/* Direction of a change in error. CHANGE_ONLY: neither worse nor better, or unknown. */
enum change_direction { CHANGE_WORSE, CHANGE_BETTER, CHANGE_ONLY, CHANGE_DIRECTIONS };

struct change {
    enum change_kind what;
    enum change_direction way;
    /* The case on either side. For bits, `max` is the worst error of a value that moved, on either
     * side: at head's `worst_at`, with result `got` and expected value `want`. */
    struct conf_result base, head;
    /* For bits: values that moved; all values; those compared with the oracle, a sample of many
     * rows; those that came nearer or went farther. Then the first that moved. */
    uint64_t moved, of, judged, nearer, farther;
    char first[96];
    float first_base, first_head;
};
typedef void change_sink(void *user, const struct change *change);

struct changes_ask {
    const struct conf_options *options; /* cases, golden vectors */
    const struct implementation *base, *head;
    const struct problem_line *extra; /* further problems, with names */
    size_t n_extra;
};

/* Problems that both ran, values compared, values that moved; problems that one could not run. */
struct changes_seen {
    uint64_t problems, values, moved, faulted;
};

/* Reports the changes of a kernel that both provide: in bits, or in status if a problem cannot
 * run. */
struct changes_seen changes_find(const struct changes_ask *ask, enum posenc_kernel kernel,
                                 change_sink *sink, void *user);
/* Compares two results of a case; returns false if there is no change. */
bool change_of_case(struct change *change, const struct conf_result *base,
                    const struct conf_result *head);

#endif
