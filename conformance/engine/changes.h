/*
 * What differs in results between two subjects, base and head.  The evidence is exact: no
 * statistics, and a second run says the same.
 *
 *   status   a case ends otherwise, or a kernel or a type is there on one side alone
 *   error    the largest error of a case is another one
 *   bits     outputs differ on a problem that both run: of the digests, of the golden vectors, or
 *            of the caller.  Any NaN is the same value; zeros of different signs are different ones
 *
 * The truth is the oracle's, for the call as the library of this program makes it: what a
 * subject's own functions give its kernels (plans, slopes) is among what may change.
 */
#ifndef POSENC_CHANGES_H
#define POSENC_CHANGES_H

#include "engine.h"
#include "conformance/problem/notation.h"

enum change_what { CHANGE_STATUS, CHANGE_ERROR, CHANGE_BITS };
extern const char *const change_what_name[];

/* Whether head is farther from what is right; CHANGE_ONLY: neither, or nobody knows. */
enum change_way { CHANGE_WORSE, CHANGE_BETTER, CHANGE_ONLY, CHANGE_WAYS };

struct change {
    enum change_what what;
    enum change_way way;
    /* The case on either side.  Of bits `max` is the error of one value, the worst on either side
     * of those that moved: at `witness` of head, here `got`, and `want` is what it should be. */
    struct conf_result base, head;
    /* Of bits: values that moved, of how many; those held against the truth (of many rows some
     * are), and how many of these came nearer to it or went farther; the first one. */
    uint64_t moved, of, judged, nearer, farther;
    char first[96];
    float first_base, first_head;
};
typedef void change_sink(void *user, const struct change *change);

struct changes_ask {
    const struct conf_options *options; /* cases, golden vectors */
    const struct subject *base, *head;
    const struct problem_line *extra; /* problems besides, with names */
    size_t n_extra;
};

/* How many problems both ran and values they compared; problems that one could not run. */
struct changes_seen {
    uint64_t problems, values, moved, faulted;
};

/* The changes of a kernel that both have: in bits, and in status where one cannot run a problem. */
struct changes_seen changes_find(const struct changes_ask *ask, enum posenc_kernel kernel,
                                 change_sink *sink, void *user);
/* The change between two results of a case; false where there is none. */
bool change_of_case(struct change *change, const struct conf_result *base,
                    const struct conf_result *head);

#endif
