/* posenc table frequencies and posenc table drift (see table.h). */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double full_turn = 6.283185307179586;

/* ---- frequencies ---- */

/* Writes radians per position and positions per turn, which is empty for a pair that does not rotate. */
static void write_angle(double radians, FILE *out)
{
    fprintf(out, ",%.17g,", radians);
    if (radians > 0.0)
        fprintf(out, "%.17g", full_turn / radians);
}

/* Writes a row for each pair, with scaling and without. */
static void write_pairs(const struct posenc_freqs *freqs, const struct posenc_freqs *plain,
                        FILE *out)
{
    const struct posenc_freqs_view scaled = posenc_freqs_view_of(freqs),
                                   base = posenc_freqs_view_of(plain);
    const bool is_exact = scaled.numerics == POSENC_NUMERICS_EXACT; /* other modes use f32 */
    fputs(
        "pair,axis,radians,wavelength,unscaled_radians,unscaled_wavelength,attention_factor\n",
        out);
    for (int64_t i = 0; i < scaled.n_pairs; i++) {
        fprintf(out, "%lld,%d", (long long)i, scaled.axis ? scaled.axis[i] : 0);
        write_angle(is_exact ? scaled.omega[i] : (double)scaled.omega_f32[i], out);
        write_angle(base.omega[i], out);
        fprintf(out, ",%.17g\n", scaled.attention_factor);
    }
}

/* Creates frequencies with and without their scaling. */
static int make_frequencies(const struct cli *cli, const struct posenc_freqs_spec *spec,
                            struct posenc_freqs **freqs, struct posenc_freqs **plain)
{
    struct posenc_error error = { 0 };
    struct posenc_freqs_spec base = *spec;
    base.scaling = POSENC_SCALING_NONE;
    base.attention_factor = 0.0;
    base.partial_rotary_factor = 1.0;
    enum posenc_status status = posenc_freqs_create(spec, freqs, &error);
    if (status == POSENC_OK)
        status = posenc_freqs_create(&base, plain, &error);
    return status == POSENC_OK ? EXIT_OK
                               : cli_reject_status(cli, "frequencies", status, &error);
}

static int write_frequencies(struct cli *cli, const struct posenc_freqs_spec *spec,
                             const struct outputs *outputs)
{
    struct posenc_freqs *freqs = NULL, *plain = NULL;
    const int status = make_frequencies(cli, spec, &freqs, &plain);
    for (size_t i = 0; i < outputs->n && status == EXIT_OK; i++)
        write_pairs(freqs, plain, outputs->output[i].stream);
    posenc_freqs_destroy(freqs);
    posenc_freqs_destroy(plain);
    return status;
}

/* ---- drift ---- */

/* Limit of the difference of a cosine or sine, and the first position that exceeds it; -1: none. */
struct drift {
    double limit;
    int64_t first;
};

/* Cosines and sines of a block of positions that fits a cache, in a numerics mode [0] and in mode exact [1]. */
struct tables {
    struct posenc_freqs *freqs[2];
    int64_t pairs, rows;
    float *values[2]; /* cosines [rows][pairs], then sines */
};
enum { TABLE_FLOATS = 1 << 16 };

static enum posenc_status create_tables(const struct posenc_freqs_spec *spec, struct tables *t,
                                        struct posenc_error *error)
{
    struct posenc_freqs_spec in_mode = *spec;
    enum posenc_status status = POSENC_OK;
    t->pairs = spec->dim / 2;
    t->rows = spec->dim < TABLE_FLOATS ? TABLE_FLOATS / spec->dim : 1;
    for (int i = 0; i < 2 && status == POSENC_OK; i++) {
        in_mode.numerics = i == 0 ? spec->numerics : POSENC_NUMERICS_EXACT;
        status = posenc_freqs_create(&in_mode, &t->freqs[i], error);
        t->values[i] = malloc((size_t)(2 * t->rows * t->pairs) * sizeof *t->values[i]);
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

/* Computes rows from position `first` on, in both modes. */
static enum posenc_status compute_tables(struct tables *t, int64_t first, int64_t rows,
                                         struct posenc_error *error)
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    enum posenc_status status = POSENC_OK;
    args.positions.offset = first;
    worker_enter_kernel("tables");
    for (int i = 0; i < 2 && status == POSENC_OK; i++) {
        args.freqs = t->freqs[i];
        args.cos = posenc_tensor_2d(POSENC_DTYPE_F32, t->values[i], rows, t->pairs);
        args.sin =
            posenc_tensor_2d(POSENC_DTYPE_F32, t->values[i] + rows * t->pairs, rows, t->pairs);
        status = posenc_rope_table(NULL, &args, error);
    }
    worker_leave_kernel();
    return status;
}

/* Returns the largest difference of any cosine or sine of a row. */
static float row_difference(const struct tables *t, int64_t rows, int64_t row)
{
    float largest = 0.0f;
    for (int64_t array = 0; array < 2; array++) {
        const int64_t first = (array * rows + row) * t->pairs;
        for (int64_t i = first; i < first + t->pairs; i++)
            largest = fmaxf(largest, fabsf(t->values[0][i] - t->values[1][i]));
    }
    return largest;
}

/* Fills `first` of n limits in rising order. Tests positions from 0 on until the last limit is exceeded, at most
 * `length` positions. */
static enum posenc_status find_drift(const struct posenc_freqs_spec *spec, int64_t length,
                                     struct drift *drift, size_t n, struct posenc_error *error)
{
    struct tables t = { .pairs = 0 };
    enum posenc_status status = create_tables(spec, &t, error);
    size_t passed = 0;
    for (int64_t at = 0; at < length && passed < n && status == POSENC_OK; at += t.rows) {
        const int64_t rows = length - at < t.rows ? length - at : t.rows;
        status = compute_tables(&t, at, rows, error);
        for (int64_t row = 0; row < rows && status == POSENC_OK; row++) {
            const float difference = row_difference(&t, rows, row);
            while (passed < n && difference > (float)drift[passed].limit)
                drift[passed++].first = at + row;
        }
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
        find_drift(&p->freqs, p->first + p->tokens, drift, LIMITS, &error);
    if (status != POSENC_OK)
        return cli_reject_status(cli, "drift", status, &error);
    for (size_t i = 0; i < outputs->n; i++) {
        fputs("limit,position\n", outputs->output[i].stream);
        for (size_t k = 0; k < LIMITS; k++) {
            fprintf(outputs->output[i].stream, "%g,", drift[k].limit);
            fprintf(outputs->output[i].stream, drift[k].first < 0 ? "\n" : "%lld\n",
                    (long long)drift[k].first);
        }
    }
    return EXIT_OK;
}

int table_write_columns(struct cli *cli, enum table_kind kind, struct problem *problem,
                        const struct outputs *outputs)
{
    const bool rotates = problem->kernel == POSENC_KERNEL_ROPE_TABLE;
    if (kind == TABLE_ERRORS ? !rotates : !kernel_has_freqs(problem->kernel))
        return cli_reject(cli, "--problem", posenc_kernel_name(problem->kernel),
                          "has no %s: expected rope_table%s",
                          kind == TABLE_ERRORS ? "errors by position" : "frequencies",
                          kind == TABLE_ERRORS ? "" : " or sinusoidal");
    if (kind == TABLE_DRIFT && problem->tokens < 1)
        return problem_reject_empty(cli, problem);
    if (kind == TABLE_ERRORS && problem->freqs.dim % 2 != 0)
        return cli_reject(cli, "--problem", NULL, "rotary_dim: %lld: expected an even number",
                          (long long)problem->freqs.dim);
    if (kind == TABLE_ERRORS)
        return table_write_errors(cli, &problem->freqs, outputs);
    if (kind == TABLE_DRIFT)
        return write_drift(cli, problem, outputs);
    return write_frequencies(cli, &problem->freqs, outputs);
}
