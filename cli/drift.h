/*
 * From which position on the cosines and sines of a profile are off from the exact ones.
 */
#ifndef POSENC_CLI_DRIFT_H
#define POSENC_CLI_DRIFT_H

#include <posenc.h>

struct drift {
    double limit;  /* of the difference, of any cosine or sine, that is taken for off */
    int64_t first; /* the first position where it is larger; -1: none */
};

/* Fills `first` of each of n, whose limits grow.  By computing: tables of both profiles by the
 * library, every position from 0 on, until the last limit is passed or `length` positions were
 * seen.  They are f32, those of the exact profile within one ulp, 6e-8 of a value near 1.  What the
 * status says of a refusal is in `error`. */
enum posenc_status drift_find(const struct posenc_freqs_spec *spec, enum posenc_profile profile,
                              int64_t length, struct drift *drift, size_t n,
                              struct posenc_error *error);

#endif
