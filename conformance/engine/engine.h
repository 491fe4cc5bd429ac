/*
 * What the conformance engine is asked and what it answers: options, results, limits.  libc
 * only, so that it runs on any target.  suites/suites.h has what runs it.
 */
#ifndef POSENC_ENGINE_H
#define POSENC_ENGINE_H

#include "conformance/problem/problem.h"

struct vectors;

enum conf_status {
    CONF_PASS,
    CONF_FAIL,
    CONF_CRASH,
    CONF_UNSUPPORTED,
    CONF_SKIPPED,
    CONF_WEAK,
    CONF_ELSEWHERE /* not run: options->wants left it to another run; no result of this one */
};
extern const char *const conf_status_name[];

enum { PROBLEM_LINE = 640, MOST_EXCEPT = 8 };

/* Of problems that are drawn: classes of values of fields that some problem had, of all; pairs of
 * classes that one did. */
struct conf_classes {
    int met, of;
    int64_t pairs;
};

struct conf_result {
    char id[96]; /* case id, [a-z0-9_./-] */
    enum posenc_kernel kernel;
    const char *suite;   /* vectors, accuracy, memory, properties, digests, random */
    const char *profile; /* exact, hf_f32, given */
    const struct posenc_backend *backend;
    enum conf_status status;
    char reason[200]; /* why it failed, was skipped, ... */
    /* That it failed on, as --problem takes it (notation.h); "" where it has none, or a line that
     * does not fit. */
    char problem[PROBLEM_LINE];
    const char *metric; /* exact, ulp, pair_ulp, abs; NULL when the case has no error */
    double max, limit;
    double
        scale; /* what multiplies the table of the case's problem; 0: not known, or no table */
    char witness[96]; /* "position 497577 pair 317" */
    float got;
    double want;
    const char *range;    /* of positions, "2^20": the budget row; NULL when it has none */
    const char *coverage; /* exhaustive, searched, sampled */
    uint64_t checked, misrounded; /* values compared, and how many were not correctly rounded */
    struct conf_classes classes;  /* none of all: nothing was drawn */
};
typedef void conf_sink(void *user, const struct conf_result *result);

struct conf_options {
    bool full;             /* all cases and dense scans; else the quick set */
    bool exhaustive;       /* every position below 2^20 of the model's frequencies */
    bool no_accuracy;      /* leave that suite out: in an emulator its scans take too long */
    const char *suite;     /* only this suite; NULL: all */
    uint64_t seed;         /* of the problems that are drawn; */
    double budget_s;       /* for so many seconds a kernel and backend at least */
    const char *case_glob; /* fnmatch on the case id; NULL: all */
    const char *
        except[MOST_EXCEPT]; /* globs of ids that an emulator gets wrong; NULL after the last */
    bool kernels[POSENC_KERNEL_COUNT]; /* none set: all */
    const struct problem *problem;     /* --model: check these problems too, each a result */
    size_t n_problems;
    const struct problem *presets; /* and these, the calls of many models: a result in all */
    size_t n_presets;
    const struct problem *only; /* --problem: suite "problem" checks this one */
    /* NULL, or asked before any work is done for a check: one that is not wanted is told to the
     * sink as CONF_ELSEWHERE, with nothing but its id, its kernel and its backend. */
    bool (*wants)(const void *asked, const struct posenc_backend *backend, const char *id);
    const void *asked;
    const struct vectors
        *vectors; /* golden vectors, loaded by the caller; NULL: that suite is skipped */
};
/* Whether the options ask for a kernel. */
bool conf_selects(const struct conf_options *options, enum posenc_kernel kernel);
/* A problem as its line; "" where it does not fit. */
void conf_note_problem(char line[PROBLEM_LINE], const struct problem *problem);

/* Backends whose families may have budgets besides those of the library; they are not copied. */
void budgets_know(const struct posenc_backend *const *backends, size_t n);

/* The limits from now on: those of a file, or of NULL the built-in ones, which hold until then;
 * 0, or -1 with a message in error (512 bytes). */
int budgets_read(const char *path, char *error);

/* Lowers the limits of a budgets file to the largest errors among these results (rounded up to
 * three digits), with their witnesses; never raises one.  Keeps order and comments, replaces
 * the file at once.  The number of limits lowered, or -1 with a message in error (512
 * bytes). */
int budgets_update(const char *path, const struct conf_result *results, size_t n, char *error);

#endif
