/*
 * Options and results of the conformance engine. Needs libc only, so that it runs on any target.
 * suites/suites.h declares the functions that run it.
 */
#ifndef POSENC_ENGINE_H
#define POSENC_ENGINE_H

#include "conformance/problem/problem.h"

struct vectors;

enum conf_status {
    CONF_PASS,
    CONF_FAIL,        /* a check failed: a wrong value, or an access to memory of others */
    CONF_CRASH,       /* the kernel raised a signal, exited or hung */
    CONF_UNSUPPORTED, /* the CPU lacks features that the backend requires */
    CONF_SKIPPED,     /* this machine, system or build cannot make the check */
    CONF_WEAK,        /* inconclusive */
    CONF_ELSEWHERE    /* left to another run by options->wants; this run has no result */
};
extern const char *const conf_status_name[];

enum { PROBLEM_LINE = 640, MOST_EXCEPT = 8 };

/* Coverage of random problems: the classes of values of fields that some problem had, the number of
 * all classes, and the pairs of classes that met in one problem. */
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
    char reason[200]; /* reason of a failure, skip, ... */
    /* Problem of a failure, as --problem reads it (notation.h); "" if none, or if too long. */
    char problem[PROBLEM_LINE];
    const char *metric; /* exact, ulp, pair_ulp, abs; NULL: the case has no error */
    double max, limit;
    double scale;      /* scale of the problem's table; 0: unknown, or no table */
    char worst_at[96]; /* "position 497577 pair 317" */
    float got;
    double want;
    const char
        *range; /* of positions, "2^20", if the case has a row of error limits; or NULL */
    const char *coverage;         /* exhaustive, searched, sampled */
    uint64_t checked, misrounded; /* values compared; values not correctly rounded */
    struct conf_classes classes;  /* all zero: no random problems */
};
typedef void conf_sink(void *user, const struct conf_result *result);

struct conf_options {
    bool full;             /* all cases and dense scans; otherwise the quick set */
    bool exhaustive;       /* every position below 2^20 of the model's frequencies */
    bool no_accuracy;      /* omit that suite: its scans take too long in an emulator */
    const char *suite;     /* only this suite; NULL: all */
    uint64_t seed;         /* of random problems */
    double random_s;       /* least seconds of random problems, by kernel and backend */
    const char *case_glob; /* fnmatch pattern of case ids; NULL: all */
    const char *except[MOST_EXCEPT];   /* globs of ids that an emulator gets wrong */
    bool kernels[POSENC_KERNEL_COUNT]; /* none set: all */
    const struct problem *problem;     /* --model: checked as well, with a result each */
    size_t n_problems;
    const struct problem *presets; /* of many models: one result for all */
    size_t n_presets;
    const struct problem *only; /* --problem: the problem of suite "problem" */
    /* NULL, or called before any work for a check. If it returns false, the sink gets
     * CONF_ELSEWHERE with only id, kernel and backend. */
    bool (*wants)(const void *asked, const struct posenc_backend *backend, const char *id);
    const void *asked;
    const struct vectors *vectors; /* golden vectors; NULL: that suite is skipped */
};
/* Returns true if the options select a kernel. */
bool conf_selects(const struct conf_options *options, enum posenc_kernel kernel);
/* Writes a problem as a line, or "" if it is too long. */
void conf_note_problem(char line[PROBLEM_LINE], const struct problem *problem);

#endif
