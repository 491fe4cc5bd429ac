/*
 * posenc table frequencies and drift: columns of numbers as CSV (see table.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double full_turn = 6.283185307179586;

/* ---- frequencies ---- */

static void write_angle(double radians, FILE *out)
{
    fprintf(out, ",%.17g,", radians);
    if (radians > 0.0)
        fprintf(out, "%.17g", full_turn / radians);
}

static void write_pairs(const struct posenc_freqs *freqs, const struct posenc_freqs *plain,
                        FILE *out)
{
    const struct posenc_freqs_view own = posenc_freqs_view(freqs),
                                   base = posenc_freqs_view(plain);
    const bool single =
        own.profile != POSENC_EXACT; /* the frequency that this mode rotates by */
    fputs(
        "pair,axis,radians,wavelength,unscaled_radians,unscaled_wavelength,attention_factor\n",
        out);
    for (int64_t i = 0; i < own.n_pairs; i++) {
        fprintf(out, "%lld,%d", (long long)i, own.axis ? own.axis[i] : 0);
        write_angle(single ? (double)own.omega_f32[i] : own.omega[i], out);
        write_angle(base.omega[i], out);
        fprintf(out, ",%.17g\n", own.attention_factor);
    }
}

/* Makes frequencies, and those of the same base without their scaling. */
static int make_frequencies(const struct cli *cli, const struct posenc_freqs_spec *spec,
                            struct posenc_freqs **freqs, struct posenc_freqs **plain)
{
    struct posenc_error error = { 0 };
    struct posenc_freqs_spec base = *spec;
    base.scaling = POSENC_SCALING_NONE;
    base.attention_factor = 0.0;
    base.partial_rotary_factor = 1.0;
    enum posenc_status made = posenc_freqs_create(spec, freqs, &error);
    if (made == POSENC_OK)
        made = posenc_freqs_create(&base, plain, &error);
    return made == POSENC_OK ? EXIT_FINE : cli_refuse_status(cli, "frequencies", made, &error);
}

static int write_frequencies(struct cli *cli, const struct posenc_freqs_spec *spec,
                             const struct outputs *outputs)
{
    struct posenc_freqs *freqs = NULL, *plain = NULL;
    const int status = make_frequencies(cli, spec, &freqs, &plain);
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++)
        write_pairs(freqs, plain, outputs->output[i].stream);
    posenc_freqs_destroy(freqs);
    posenc_freqs_destroy(plain);
    return status;
}

/* ---- drift ---- */

/* A limit of the difference of any cosine or sine, and the first position where it is passed; -1: none. */
struct drift {
    double limit;
    int64_t first;
};

/* Cosines and sines of some positions at a time, in a numerics mode and exact: few enough for the caches. */
struct tables {
    struct posenc_freqs *freqs[2];
    int64_t dim, rows;
    int64_t
        arrays; /* two, of cosines and sines; of an odd dim, which does not rotate, one of both */
    float *values[2]; /* [arrays][rows][dim / arrays] */
};
enum { VALUES = 1 << 16 };

static enum posenc_status create_tables(const struct posenc_freqs_spec *spec,
                                        enum posenc_profile profile, struct tables *t,
                                        struct posenc_error *error)
{
    struct posenc_freqs_spec own = *spec;
    enum posenc_status status = POSENC_OK;
    t->dim = spec->dim;
    t->arrays = spec->dim % 2 ? 1 : 2;
    t->rows = t->dim < VALUES ? VALUES / t->dim : 1;
    for (int i = 0; i < 2 && status == POSENC_OK; i++) {
        own.profile = i == 0 ? profile : POSENC_EXACT;
        status = posenc_freqs_create(&own, &t->freqs[i], error);
        t->values[i] = malloc((size_t)(t->rows * t->dim) * sizeof *t->values[i]);
        if (status == POSENC_OK && !t->values[i])
            status = POSENC_ERR_MEMORY;
    }
    return status;
}

static void destroy_tables(struct tables *t)
{
    for (int i = 0; i < 2; i++) {
        posenc_freqs_destroy(t->freqs[i]);
        free(t->values[i]);
    }
}

/* Computes rows from position `first` on, in the i-th numerics mode. */
static enum posenc_status compute(struct tables *t, int i, int64_t first, int64_t rows,
                                  struct posenc_error *error)
{
    if (t->arrays == 1) {
        struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
        args.error = error;
        args.freqs = t->freqs[i];
        args.positions.offset = first;
        args.out = posenc_dense(t->values[i], 2, rows, t->dim, 0, 0);
        return posenc_sinusoidal(NULL, &args);
    }
    const int64_t pairs = t->dim / 2;
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.error = error;
    args.freqs = t->freqs[i];
    args.positions.offset = first;
    args.cos = posenc_dense(t->values[i], 2, rows, pairs, 0, 0);
    args.sin = posenc_dense(t->values[i] + rows * pairs, 2, rows, pairs, 0, 0);
    return posenc_rope_table(NULL, &args);
}

/* Returns true if a difference at a position is larger than the limit. */
static bool is_off(const struct tables *t, int64_t rows, int64_t row, float limit)
{
    const int64_t width = t->dim / t->arrays;
    int off = 0;
    for (int64_t array = 0; array < t->arrays; array++) {
        const float *got = t->values[0] + (array * rows + row) * width,
                    *want = t->values[1] + (array * rows + row) * width;
        for (int64_t i = 0; i < width; i++)
            off |= fabsf(got[i] - want[i]) > limit;
    }
    return off;
}

/* Fills `first` of each of n, whose limits grow: every position from 0 on, until the last limit is passed or `length`
 * positions were seen. */
static enum posenc_status find_drift(const struct posenc_freqs_spec *spec,
                                     enum posenc_profile profile, int64_t length,
                                     struct drift *drift, size_t n, struct posenc_error *error)
{
    struct tables t = { .dim = 0 };
    enum posenc_status status = create_tables(spec, profile, &t, error);
    size_t passed = 0;
    for (size_t i = 0; i < n; i++)
        drift[i].first = -1;
    for (int64_t at = 0; at < length && passed < n && status == POSENC_OK; at += t.rows) {
        const int64_t rows = length - at < t.rows ? length - at : t.rows;
        worker_enter_kernel("tables");
        for (int i = 0; i < 2 && status == POSENC_OK; i++)
            status = compute(&t, i, at, rows, error);
        worker_leave_kernel();
        for (int64_t row = 0; row < rows && status == POSENC_OK; row++)
            while (passed < n && is_off(&t, rows, row, (float)drift[passed].limit))
                drift[passed++].first = at + row;
    }
    destroy_tables(&t);
    return status;
}

/* Compares the numerics mode of a problem with the exact one, from position 0 to the last of the problem. */
static int write_drift(struct cli *cli, const struct problem *p, const struct outputs *outputs)
{
    struct drift drift[] = { { 1e-3, -1 }, { 1e-2, -1 } };
    enum { LIMITS = sizeof drift / sizeof *drift };
    struct posenc_error error = { 0 };
    const enum posenc_status status =
        find_drift(&p->freqs, p->freqs.profile, p->first + p->tokens, drift, LIMITS, &error);
    if (status != POSENC_OK)
        return cli_refuse_status(cli, "drift", status, &error);
    for (size_t i = 0; i < outputs->n; i++) {
        fputs("limit,position\n", outputs->output[i].stream);
        for (size_t k = 0; k < LIMITS; k++) {
            fprintf(outputs->output[i].stream, "%g,", drift[k].limit);
            fprintf(outputs->output[i].stream, drift[k].first < 0 ? "\n" : "%lld\n",
                    (long long)drift[k].first);
        }
    }
    return EXIT_FINE;
}

int table_write_columns(struct cli *cli, enum table_kind kind, struct problem *problem,
                        const struct outputs *outputs)
{
    const bool rotates = problem->kernel == POSENC_KERNEL_rope_table;
    if (kind == TABLE_ERRORS ? !rotates : !kernel_has_freqs(problem->kernel))
        return cli_refuse(cli, "--problem", posenc_kernel_name(problem->kernel),
                          "has no %s: expected rope_table%s",
                          kind == TABLE_ERRORS ? "errors by position" : "frequencies",
                          kind == TABLE_ERRORS ? "" : " or sinusoidal");
    if (kind == TABLE_DRIFT && problem->tokens < 1)
        return problem_refuse_empty(cli, problem);
    return kind == TABLE_ERRORS  ? table_write_errors(cli, &problem->freqs, outputs)
           : kind == TABLE_DRIFT ? write_drift(cli, problem, outputs)
                                 : write_frequencies(cli, &problem->freqs, outputs);
}
