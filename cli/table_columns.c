/*
 * posenc table frequencies, drift and errors: columns of numbers, as CSV. Each table has a section below.
 *
 * Errors are differences of rope_table from the exact values of the oracle, in all numerics modes: the largest in each
 * bin of positions, for every backend and mode, and for mode exact with tables, positions or frequencies in 16 bits.
 * A line "hf_f32,,avx2,4987896,0.03071" has the mode, the storage, the backend, the first position and the error.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/oracle/oracle.h"
#include "conformance/problem/storage.h"
#include "problem.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes frequencies in a numerics mode, or rejects them. If `may_skip`, returns NULL, after a note, for a mode other than
 * exact that does not support them. */
static struct posenc_freqs *create_freqs(const struct posenc_freqs_spec *spec,
                                         enum posenc_numerics numerics, bool may_skip)
{
    struct posenc_freqs_spec in_mode = *spec;
    struct posenc_freqs *freqs = NULL;
    struct posenc_error error = { 0 };
    in_mode.numerics = numerics;
    const enum posenc_status status = posenc_freqs_create(&in_mode, &freqs, &error);
    if (may_skip && status == POSENC_ERR_ARGUMENT && numerics != POSENC_NUMERICS_EXACT)
        cli_print_note("posenc table: skipped: %s: %s\n", numerics_names[numerics], error.what);
    else if (status != POSENC_OK)
        cli_reject_status("frequencies", status, &error);
    return freqs;
}

/* ---- frequencies ---- */

static const double full_turn = 6.283185307179586;

/* Writes radians per position and positions per turn, which is empty for a pair that does not rotate. */
static void write_angle(double radians, FILE *out)
{
    fprintf(out, ",%.17g,", radians);
    if (radians > 0.0)
        fprintf(out, "%.17g", full_turn / radians);
}

/* Writes a row for each pair, with scaling and without. */
static void write_frequencies(const struct posenc_freqs_spec *spec, FILE *out)
{
    struct posenc_freqs_spec unscaled = *spec;
    unscaled.scaling = POSENC_SCALING_NONE;
    unscaled.attention_factor = 0.0;
    unscaled.partial_rotary_factor = 1.0;
    struct posenc_freqs *freqs = create_freqs(spec, spec->numerics, false),
                        *plain = create_freqs(&unscaled, spec->numerics, false);
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
    posenc_freqs_destroy(freqs);
    posenc_freqs_destroy(plain);
}

/* ---- Cosines and sines ---- */

/* Computes the cosines [rows][pairs] of positions, then the sines. */
static enum posenc_status compute_rows(const struct posenc_backend *backend,
                                       const struct posenc_freqs *freqs,
                                       struct posenc_positions positions,
                                       enum posenc_dtype dtype, int64_t rows, float *values,
                                       struct posenc_error *error)
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    const int64_t pairs = posenc_freqs_view_of(freqs).n_pairs;
    args.freqs = freqs;
    args.positions = positions;
    args.cos = posenc_tensor_2d(POSENC_DTYPE_F32, values, rows, pairs);
    args.sin = posenc_tensor_2d(POSENC_DTYPE_F32, values + rows * pairs, rows, pairs);
    args.cos.dtype = args.sin.dtype = dtype;
    worker_enter_kernel("rope_table");
    const enum posenc_status status = posenc_rope_table(backend, &args, error);
    worker_leave_kernel();
    return status;
}

/* ---- drift ---- */

/* Returns the largest difference of a cosine or sine of a row, between two tables [cos, sin][rows][pairs]. */
static float row_difference(float *const values[2], int64_t rows, int64_t pairs, int64_t row)
{
    float largest = 0.0f;
    for (int64_t first = row * pairs; first < 2 * rows * pairs; first += rows * pairs)
        for (int64_t i = first; i < first + pairs; i++)
            largest = fmaxf(largest, fabsf(values[0][i] - values[1][i]));
    return largest;
}

/* Computes tables of the same positions with two frequencies. */
static void compute_both(struct posenc_freqs *const freqs[2], int64_t first_position,
                         int64_t rows, float *const values[2])
{
    const struct posenc_positions positions = { .offset = first_position };
    struct posenc_error error = { 0 };
    for (int i = 0; i < 2; i++) {
        const enum posenc_status status =
            compute_rows(NULL, freqs[i], positions, POSENC_DTYPE_F32, rows, values[i], &error);
        if (status != POSENC_OK)
            cli_reject_status("drift", status, &error);
    }
}

/* Writes the first position below `length` at which the mode differs from exact by more than each of two limits. */
static void write_drift(const struct posenc_freqs_spec *spec, int64_t length, FILE *out)
{
    enum { TABLE_FLOATS = 1 << 16 }; /* they fit a cache */
    struct {
        double limit;
        int64_t position; /* -1: none */
    } drifts[] = { { 1e-3, -1 }, { 1e-2, -1 } };
    enum { LIMITS = sizeof drifts / sizeof *drifts };
    struct posenc_freqs *freqs[] = { create_freqs(spec, spec->numerics, false),
                                     create_freqs(spec, POSENC_NUMERICS_EXACT, false) };
    const int64_t pairs = (spec->dim + 1) / 2,
                  block = spec->dim < TABLE_FLOATS ? TABLE_FLOATS / spec->dim : 1;
    float *values[2];
    size_t n_exceeded = 0; /* limits */
    for (int i = 0; i < 2; i++)
        values[i] = cli_allocate((size_t)(2 * block * pairs), sizeof *values[i]);
    for (int64_t first = 0; first < length && n_exceeded < LIMITS; first += block) {
        const int64_t rows = length - first < block ? length - first : block;
        compute_both(freqs, first, rows, values);
        for (int64_t row = 0; row < rows; row++) {
            const float difference = row_difference(values, rows, pairs, row);
            while (n_exceeded < LIMITS && difference > (float)drifts[n_exceeded].limit)
                drifts[n_exceeded++].position = first + row;
        }
    }
    fputs("limit,position\n", out);
    for (size_t k = 0; k < LIMITS; k++)
        fprintf(out, drifts[k].position < 0 ? "%g,\n" : "%g,%lld\n", drifts[k].limit,
                (long long)drifts[k].position);
    for (int i = 0; i < 2; i++) {
        posenc_freqs_destroy(freqs[i]);
        free(values[i]);
    }
}

/* ---- errors ---- */

/* Bins of positions below 2^31, and positions that are drawn from each. */
enum { BINS_PER_OCTAVE = 4, BINS = 31 * BINS_PER_OCTAVE, SAMPLES = 12, ROWS = BINS * SAMPLES };
static const int64_t last_position = 2147483647;

static double first_position(int bin) { return floor(exp2((double)bin / BINS_PER_OCTAVE)); }

/* Exact tables of random positions, and memory for those of a backend. */
struct reference {
    int64_t pairs;
    int64_t positions[ROWS]; /* SAMPLES of each bin */
    int64_t rounded[ROWS];   /* the same, rounded to bf16 */
    double *exact;           /* [cos, sin][ROWS][pairs] */
    float *values;           /* the same, of a backend, in any dtype */
};

/* Chooses random positions in each bin, the same in each run. */
static void choose_positions(struct reference *r)
{
    for (int bin = 0; bin < BINS; bin++) {
        const int64_t from = (int64_t)first_position(bin),
                      end = (int64_t)first_position(bin + 1);
        const uint64_t width = end > from ? (uint64_t)(end - from) : 1;
        for (int s = 0; s < SAMPLES; s++) {
            const int64_t position =
                from + (int64_t)(rng_u64((uint64_t)bin, (uint64_t)s) % width);
            const float rounded = storage_round(POSENC_DTYPE_BF16, (float)position);
            r->positions[bin * SAMPLES + s] = position;
            r->rounded[bin * SAMPLES + s] =
                (int64_t)fminf(rounded, 0x1.fep30f); /* positions are below 2^31 */
        }
    }
}

static struct reference *make_reference(const struct posenc_freqs_spec *spec)
{
    struct reference *r = cli_allocate(1, sizeof *r);
    r->pairs = spec->dim / 2;
    const int64_t n = ROWS * r->pairs;
    uint64_t(*turn)[3] = cli_allocate((size_t)r->pairs, sizeof *turn);
    float *inv_freq = cli_allocate((size_t)r->pairs, sizeof *inv_freq);
    double factor = 1.0;
    r->exact = cli_allocate(2 * (size_t)n, sizeof *r->exact);
    r->values = cli_allocate(2 * (size_t)n, sizeof *r->values);
    exact_freqs(spec, r->pairs, turn, inv_freq, &factor);
    choose_positions(r);
    for (int64_t k = 0; k < n; k++)
        exact_sincos_turn(turn[k % r->pairs], r->positions[k / r->pairs], &r->exact[n + k],
                          &r->exact[k]);
    for (int64_t k = 0; k < 2 * n; k++)
        r->exact[k] *= factor;
    free(turn);
    free(inv_freq);
    return r;
}

/* Name of a curve, in columns: "exact,,scalar" or "exact,tables in f16,". */
struct curve_name {
    const char *numerics, *storage, *backend;
};

/* Writes the largest error of a backend in each bin, unless the backend cannot compute the tables. */
static void write_curve(struct curve_name name, const struct posenc_backend *backend,
                        const struct posenc_freqs *freqs, const int64_t *positions,
                        enum posenc_dtype dtype, struct reference *r, FILE *out)
{
    const struct posenc_positions listed = { .kind = POSENC_POSITIONS_I64,
                                             .data = positions,
                                             .stride_token = 1 };
    const int64_t n = ROWS * r->pairs; /* cosines, and sines */
    double errors[BINS] = { 0.0 };
    if (compute_rows(backend, freqs, listed, dtype, ROWS, r->values, NULL) != POSENC_OK)
        return;
    for (int64_t k = 0; k < 2 * n; k++) {
        double *largest = &errors[k % n / (SAMPLES * r->pairs)];
        const double value = (double)storage_get(dtype, r->values + k / n * n, k % n);
        *largest = fmax(*largest, fabs(value - r->exact[k]));
    }
    for (int bin = 0; bin < BINS; bin++)
        fprintf(out, "%s,%s,%s,%.10g,%.6g\n", name.numerics, name.storage, name.backend,
                first_position(bin), errors[bin]);
}

/* Returns frequencies rounded to bf16. Returns NULL if there is an attention factor, which given values lack. */
static struct posenc_freqs *round_freqs(const struct posenc_freqs *freqs)
{
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *rounded = NULL;
    double *values = cli_allocate((size_t)view.dim / 2, sizeof *values);
    for (int64_t i = 0; i < view.dim / 2; i++)
        values[i] = (double)storage_round(POSENC_DTYPE_BF16, (float)view.omega[i]);
    spec.dim = view.dim;
    spec.values = values;
    if (view.attention_factor != 1.0 || posenc_freqs_create(&spec, &rounded, NULL) != POSENC_OK)
        rounded = NULL;
    free(values);
    return rounded;
}

/* Writes the errors of 16-bit tables, frequencies and positions on one backend: others of its family have the same. */
static void write_storages(const struct posenc_backend *backend,
                           const struct posenc_freqs *freqs, struct reference *r, FILE *out)
{
    static const struct curve_name names[] = { { "exact", "tables in f16", "" },
                                               { "exact", "tables in bf16", "" },
                                               { "exact", "frequencies in bf16", "" },
                                               { "exact", "positions in bf16", "" } };
    struct posenc_freqs *rounded = round_freqs(freqs);
    write_curve(names[0], backend, freqs, r->positions, POSENC_DTYPE_F16, r, out);
    write_curve(names[1], backend, freqs, r->positions, POSENC_DTYPE_BF16, r, out);
    if (rounded)
        write_curve(names[2], backend, rounded, r->positions, POSENC_DTYPE_F32, r, out);
    else
        cli_print_note("posenc table: skipped: frequencies in bf16: it takes no attention "
                       "factor\n");
    write_curve(names[3], backend, freqs, r->rounded, POSENC_DTYPE_F32, r, out);
    posenc_freqs_destroy(rounded);
}

/* Writes the curves of all backends in a numerics mode, unless it does not support these frequencies. */
static void write_mode(const struct selection *selected, const struct posenc_freqs_spec *spec,
                       enum posenc_numerics numerics, struct reference *r, FILE *out)
{
    struct posenc_freqs *freqs = create_freqs(spec, numerics, true);
    for (size_t i = 0; freqs && i < selected->n; i++)
        write_curve(
            (struct curve_name){ numerics_names[numerics], "", selected->backends[i]->name },
            selected->backends[i], freqs, r->positions, POSENC_DTYPE_F32, r, out);
    posenc_freqs_destroy(freqs);
}

static void write_errors(const struct cli *cli, struct posenc_freqs_spec *spec, FILE *out)
{
    struct selection selected;
    select_all(cli, &selected, false);
    const struct posenc_backend *first =
        select_require(cli, &selected, POSENC_KERNEL_ROPE_TABLE);
    table_set_seq_len(cli, last_position, spec);
    spec->numerics = POSENC_NUMERICS_EXACT;
    struct posenc_freqs *freqs = create_freqs(spec, spec->numerics, false);
    struct reference *r = make_reference(spec);
    fputs("numerics,storage,backend,position,error\n", out);
    for (int numerics = 0; numerics_names[numerics]; numerics++)
        write_mode(&selected, spec, (enum posenc_numerics)numerics, r, out);
    write_storages(first, freqs, r, out);
    posenc_freqs_destroy(freqs);
    free(r->exact);
    free(r->values);
    free(r);
}

/* ---- The command ---- */

void table_write_columns(const struct cli *cli, enum table_kind kind, struct problem *problem,
                         const struct output_file *output)
{
    const bool is_rope_table = problem->kernel == POSENC_KERNEL_ROPE_TABLE;
    if (strcmp(output->format->name, "csv") != 0)
        cli_reject("--out", output->format->name,
                   "it cannot hold columns of several types: expected csv");
    if (kind == TABLE_ERRORS ? !is_rope_table : !kernel_has_freqs(problem->kernel))
        cli_reject("--problem", posenc_kernel_name(problem->kernel),
                   "has no %s: expected rope_table%s",
                   kind == TABLE_ERRORS ? "errors by position" : "frequencies",
                   kind == TABLE_ERRORS ? "" : " or sinusoidal");
    if (kind == TABLE_DRIFT && problem->tokens < 1)
        problem_reject_empty(cli, problem);
    if (kind == TABLE_ERRORS && problem->freqs.dim % 2 != 0)
        cli_reject("--problem", NULL, "rotary_dim: %lld: expected an even number",
                   (long long)problem->freqs.dim);
    if (kind == TABLE_ERRORS)
        write_errors(cli, &problem->freqs, output->stream);
    else if (kind == TABLE_DRIFT)
        write_drift(&problem->freqs, problem->first + problem->tokens, output->stream);
    else
        write_frequencies(&problem->freqs, output->stream);
}
