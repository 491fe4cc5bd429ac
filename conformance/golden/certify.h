/*
 * What the files of certification share.
 */
#ifndef POSENC_CERTIFY_H
#define POSENC_CERTIFY_H

#include "golden.h"

/* Says what is wrong, and with which plan. */
void complain(const struct posenc_freqs_spec *spec, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How far a fraction of a turn, n words of it, is from MPFR's: a plan's turn is omega / (2 pi).
 */
double turn_distance(const struct reference_plan *plan, int64_t i, const uint64_t *words,
                     int n);

/* Calls `check` with every certified spec in every profile that has it; how many, or -1 when
 * one was not right. */
typedef bool check_spec(const struct posenc_freqs_spec *spec, uint64_t seed, void *user);
int64_t for_specs(const struct vectors *cases, check_spec *check, void *user);

/* Calls `check` with the outputs of tables of a spec, and what MPFR has for them. */
typedef bool check_output(const struct call *call, int o, const double *want, const char *name);
bool check_rows(const struct posenc_freqs_spec *spec, uint64_t seed, check_output *check);

/* Every row of output o of a call by the oracle, against MPFR's. */
check_output certify_output;

/* Problems of every kernel with parameters at random; adds how many values they have. */
bool certify_problems(uint64_t *values);

#endif
