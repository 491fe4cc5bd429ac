/*
 * Error of rope_table against position: every backend in every profile, compared with real
 * mathematics (the oracle), whatever the profile promises; and what is left of profile exact
 * where tables, positions or frequencies are stored in 16 bits.
 */
#ifndef POSENC_CLI_ERRORS_H
#define POSENC_CLI_ERRORS_H

#include "select.h"

enum {
    PROFILES_MAX = 8,
    STORAGES = 4,
    CURVES_MAX = PROFILES_MAX * BACKENDS_MAX + STORAGES,
    ERROR_BINS = 124 /* four an octave */
};

struct error_curve {
    char label[160]; /* "hf_f32: native, libm" */
    const char *profile;
    const char *backend; /* the first of those that share it; NULL: a curve of 16-bit storage */
    uint32_t members;    /* bit i: backend i of the selection; 0: of storage */
    double error[ERROR_BINS];
};

struct errors {
    size_t n;
    struct error_curve curves[CURVES_MAX];
    char left_out[256]; /* what does not take this scaling, and why; or empty */
};

static const int64_t errors_last_position = 2147483647;

/* The first position of a bin. */
double errors_position(int bin);

/* The largest |got - want| over all pairs, cosines and sines, in four bins per octave of
 * positions up to 2^31 - 1, for what the spec says in each profile.  Backends of a profile
 * whose curves nobody could tell apart share one, the larger.  On an error of the library
 * `error` says what was refused. */
enum posenc_status errors_measure(const struct selection *selected,
                                  const struct posenc_freqs_spec *spec, struct errors *errors,
                                  struct posenc_error *error);

#endif
