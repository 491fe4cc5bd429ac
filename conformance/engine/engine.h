/*
 * Options and results of the conformance engine; suites/suites.h declares the functions that run it. This call checks
 * the accesses of one kernel and prints the results:
 *
 *     struct conf_options options = { .suite = "memory", .kernels[POSENC_KERNEL_ALIBI] = true };
 *     size_t n_failed = conf_run(&backend, 1, &options, print_result, NULL);
 *
 * The engine needs only libc, so that it runs on any target.
 */
#ifndef POSENC_ENGINE_H
#define POSENC_ENGINE_H

#include "conformance/mistakes/mistakes.h"
#include "conformance/problem/problem.h"

struct vectors;

enum conf_status {
    CONF_PASS,
    CONF_FAIL,  /* a check failed, such as a wrong value or a write outside of an output */
    CONF_CRASH, /* the kernel raised a signal, exited or hung */
    CONF_UNSUPPORTED, /* the CPU lacks features that the backend requires */
    CONF_SKIPPED,     /* this machine, system or build cannot make the check */
    CONF_ELSEWHERE    /* another process makes the check (options->wants) */
};
extern const char *const conf_status_name[]; /* by enum conf_status */

/* Kinds of implementations that answer prompts (conformance/program). */
enum program_mode {
    NO_PROGRAM,      /* a backend */
    PROGRAM_RUNS,    /* a program that answers any number of prompts */
    PROGRAM_ANSWERED /* files with the answer to one prompt of each case */
};

enum { PROBLEM_LINE = 640, MOST_EXCEPT = 8 };

/* Coverage of random problems, whose fields have classes of values (random/random.h). */
struct conf_classes {
    int reached, total; /* classes that some problem had; all classes */
    int64_t pairs;      /* pairs of classes that one problem had */
};

/* Result of one case. */
struct conf_result {
    char id[96]; /* case id, [a-z0-9_./-] */
    enum posenc_kernel kernel;
    const char *suite;    /* name of the suite (suites/suites.c) */
    const char *numerics; /* numerics mode; "given" for kernels without angles */
    const struct posenc_backend *backend;
    enum conf_status status;
    char reason[400]; /* reason of a status other than CONF_PASS */
    /* Known mistake that reproduces the wrong values of `problem`, or ""; `searched` is true if one was sought. */
    char mistake[MISTAKE_TEXT];
    bool searched;
    /* Problem of a failure, as --problem reads it (notation.h); "" if none, or if too long. */
    char problem[PROBLEM_LINE];
    const char *metric; /* exact, ulp, pair_ulp, abs; NULL: the case measures no error */
    double max, limit;  /* the largest error and its limit, in units of the metric */
    double scale;       /* scale of the problem's table; 0: unknown, or no table */
    char worst_at[96];  /* place of the largest error: "position 497577 pair 317" */
    float got;          /* value there, */
    double want;        /* and the expected one */
    const char *range; /* "2^20": positions of the row of error_limits.txt; NULL: it has none */
    const char *coverage;         /* exhaustive, searched, sampled */
    uint64_t checked, misrounded; /* values compared; values not correctly rounded */
    struct conf_classes classes;  /* all zero: no random problems */
};
/* Receives each result. It is valid during the call. */
typedef void conf_sink(void *user, const struct conf_result *result);

/* Selection of checks. Zeros select the quick run of all kernels and suites. */
struct conf_options {
    bool full;        /* all cases and dense scans; otherwise a quick run */
    bool exhaustive;  /* also every position below 2^20 of the model's frequencies */
    bool no_accuracy; /* omits the suite "accuracy", which takes too long in an emulator */
    enum program_mode program; /* if set, judges only values, by rules for programs (judge.h) */
    const char *suite;         /* name of the only suite to run; NULL: all */
    uint64_t seed;             /* of random problems */
    double random_s; /* least time of random problems for each kernel and backend, in seconds */
    const char *case_glob; /* fnmatch pattern of case ids; NULL: all */
    /* Patterns of ids to omit, which an emulator computes wrongly. */
    const char *except[MOST_EXCEPT];
    bool kernels[POSENC_KERNEL_COUNT]; /* kernels to check; none set: all */
    const struct problem *problem; /* further problems, of --model, with a result for each */
    size_t n_problems;
    const struct problem *presets; /* problems of many models, with one result for all */
    size_t n_presets;
    const struct problem *only; /* the problem of suite "problem", of --problem */
    /* Called before each check; returns true if this process runs it. Otherwise the sink gets CONF_ELSEWHERE with id,
     * kernel and backend alone. NULL: this process runs all checks. */
    bool (*wants)(const void *user, const struct posenc_backend *backend, const char *id);
    /* Called with a failure before its problem is run again, which may end the process; NULL: not called. The result
     * follows. */
    void (*fails)(const void *user, const struct conf_result *result);
    const void *wants_user;        /* of both */
    const struct vectors *vectors; /* golden vectors; NULL: that suite is skipped */
};
/* Returns true if the options select a kernel. */
bool conf_selects(const struct conf_options *options, enum posenc_kernel kernel);
/* Writes a problem as a line of the notation, or "" if it is too long. */
void conf_print_problem(char line[PROBLEM_LINE], const struct problem *problem);

#endif
