/*
 * posenc table frequencies, drift and errors: columns of numbers (see table.h).
 *
 * Errors are differences of rope_table from the exact values of the oracle, in all numerics modes: the largest in each
 * bin of positions, for every backend and mode, and for mode exact with tables, positions or frequencies in 16 bits.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/oracle/oracle.h"
#include "conformance/problem/storage.h"
#include "select.h"
#include "table.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

static void write_frequencies(const struct posenc_freqs_spec *spec,
                              const struct outputs *outputs)
{
    struct posenc_freqs *freqs = NULL, *plain = NULL;
    struct posenc_error error = { 0 };
    struct posenc_freqs_spec base = *spec; /* without scaling */
    base.scaling = POSENC_SCALING_NONE;
    base.attention_factor = 0.0;
    base.partial_rotary_factor = 1.0;
    enum posenc_status status = posenc_freqs_create(spec, &freqs, &error);
    if (status == POSENC_OK)
        status = posenc_freqs_create(&base, &plain, &error);
    if (status != POSENC_OK)
        cli_reject_status("frequencies", status, &error);
    for (size_t i = 0; i < outputs->n; i++)
        write_pairs(freqs, plain, outputs->output[i].stream);
    posenc_freqs_destroy(freqs);
    posenc_freqs_destroy(plain);
}

/* ---- Cosines and sines ---- */

/* Computes the cosines [rows][pairs] of positions, then the sines. */
static enum posenc_status compute_rows(const struct posenc_backend *backend,
                                       const struct posenc_freqs *freqs,
                                       const struct posenc_positions *positions,
                                       enum posenc_dtype dtype, int64_t rows, float *values,
                                       struct posenc_error *error)
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    const int64_t pairs = posenc_freqs_view_of(freqs).n_pairs;
    args.freqs = freqs;
    args.positions = *positions;
    args.cos = posenc_tensor_2d(POSENC_DTYPE_F32, values, rows, pairs);
    args.sin = posenc_tensor_2d(POSENC_DTYPE_F32, values + rows * pairs, rows, pairs);
    args.cos.dtype = args.sin.dtype = dtype;
    worker_enter_kernel("rope_table");
    const enum posenc_status status = posenc_rope_table(backend, &args, error);
    worker_leave_kernel();
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
    t->pairs = (spec->dim + 1) / 2;
    t->rows = spec->dim < TABLE_FLOATS ? TABLE_FLOATS / spec->dim : 1;
    for (int i = 0; i < 2 && status == POSENC_OK; i++) {
        in_mode.numerics = i == 0 ? spec->numerics : POSENC_NUMERICS_EXACT;
        status = posenc_freqs_create(&in_mode, &t->freqs[i], error);
        t->values[i] = cli_allocate((size_t)(2 * t->rows * t->pairs), sizeof *t->values[i]);
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
        const struct posenc_positions positions = { .offset = at };
        for (int i = 0; i < 2 && status == POSENC_OK; i++)
            status = compute_rows(NULL, t.freqs[i], &positions, POSENC_DTYPE_F32, rows,
                                  t.values[i], error);
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
static void write_drift(const struct problem *p, const struct outputs *outputs)
{
    struct drift drift[] = { { 1e-3, -1 }, { 1e-2, -1 } };
    enum { LIMITS = sizeof drift / sizeof *drift };
    struct posenc_error error = { 0 };
    const enum posenc_status status =
        find_drift(&p->freqs, p->first + p->tokens, drift, LIMITS, &error);
    if (status != POSENC_OK)
        cli_reject_status("drift", status, &error);
    for (size_t i = 0; i < outputs->n; i++) {
        fputs("limit,position\n", outputs->output[i].stream);
        for (size_t k = 0; k < LIMITS; k++) {
            fprintf(outputs->output[i].stream, "%g,", drift[k].limit);
            fprintf(outputs->output[i].stream, drift[k].first < 0 ? "\n" : "%lld\n",
                    (long long)drift[k].first);
        }
    }
}

/* ---- errors ---- */

enum { BINS_PER_OCTAVE = 4, BINS = 31 * BINS_PER_OCTAVE, SAMPLES = 12, ROWS = BINS * SAMPLES };
static const int64_t last_position = 2147483647;

static double first_position(int bin) { return floor(exp2((double)bin / BINS_PER_OCTAVE)); }

struct reference {
    int64_t pairs;
    int64_t *positions;    /* [ROWS], SAMPLES of each bin */
    int64_t *rounded;      /* the same, rounded to bf16 */
    double *cosine, *sine; /* [ROWS][pairs], exact values */
    float *cos, *sin;      /* output of a backend, in any dtype */
};

/* Chooses random positions in each bin, the same in each run. */
static void choose_positions(struct reference *r)
{
    for (int bin = 0; bin < BINS; bin++) {
        const int64_t from = (int64_t)first_position(bin),
                      end = (int64_t)first_position(bin + 1);
        const uint64_t width = end > from ? (uint64_t)(end - from) : 1;
        for (int s = 0; s < SAMPLES; s++) {
            const int64_t at = from + (int64_t)(rng_u64((uint64_t)bin, (uint64_t)s) % width);
            const float rounded = storage_round(POSENC_DTYPE_BF16, (float)at);
            r->positions[bin * SAMPLES + s] = at;
            r->rounded[bin * SAMPLES + s] =
                (int64_t)fminf(rounded, 0x1.fep30f); /* positions are below 2^31 */
        }
    }
}

static void make_reference(const struct posenc_freqs_spec *spec, struct reference *r)
{
    r->pairs = spec->dim / 2;
    const size_t n = (size_t)(ROWS * r->pairs);
    uint64_t(*turn)[3] = cli_allocate((size_t)r->pairs, sizeof *turn);
    float *inv_freq = cli_allocate((size_t)r->pairs, sizeof *inv_freq);
    double factor = 1.0;
    r->cosine = cli_allocate(2 * n, sizeof *r->cosine);
    r->sine = r->cosine + n;
    r->positions = cli_allocate(2 * (size_t)ROWS, sizeof *r->positions);
    r->rounded = r->positions + ROWS;
    r->cos = cli_allocate(2 * n, sizeof *r->cos);
    r->sin = r->cos + n;
    exact_freqs(spec, r->pairs, turn, inv_freq, &factor);
    choose_positions(r);
    for (int64_t k = 0; k < ROWS * r->pairs; k++) {
        exact_sincos_turn(turn[k % r->pairs], r->positions[k / r->pairs], &r->sine[k],
                          &r->cosine[k]);
        r->sine[k] *= factor;
        r->cosine[k] *= factor;
    }
    free(turn);
    free(inv_freq);
}

static void free_reference(struct reference *r)
{
    free(r->cosine);
    free(r->positions);
    free(r->cos);
}

/* Names of a curve; "" if it depends on no backend or storage. */
struct curve {
    const char *numerics, *backend, *storage;
};

static void write_curve(const struct curve *curve, const double error[BINS],
                        const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++)
        for (int bin = 0; bin < BINS; bin++)
            fprintf(outputs->output[i].stream, "%s,%s,%s,%.10g,%.6g\n", curve->numerics,
                    curve->storage, curve->backend, first_position(bin), error[bin]);
}

/* Computes the tables of all positions and stores the largest error of each bin. Returns false if the backend cannot. */
static bool measure(const struct posenc_backend *backend, const struct posenc_freqs *freqs,
                    const int64_t *at, enum posenc_dtype dtype, struct reference *r,
                    double error[BINS])
{
    const struct posenc_positions positions = { .kind = POSENC_POSITIONS_I64,
                                                .data = at,
                                                .stride_token = 1 };
    const bool computed =
        compute_rows(backend, freqs, &positions, dtype, ROWS, r->cos, NULL) == POSENC_OK;
    for (int bin = 0; bin < BINS; bin++)
        error[bin] = 0.0;
    for (int64_t k = 0; computed && k < ROWS * r->pairs; k++) {
        double *largest = &error[k / (SAMPLES * r->pairs)];
        const double cosine = (double)storage_get(dtype, r->cos, k),
                     sine = (double)storage_get(dtype, r->sin, k);
        *largest = fmax(*largest, fabs(cosine - r->cosine[k]));
        *largest = fmax(*largest, fabs(sine - r->sine[k]));
    }
    return computed;
}

static bool runs_here(const struct posenc_backend *backend)
{
    return !posenc_backend_unavailable_reason(backend) &&
           posenc_backend_provides(backend, POSENC_KERNEL_ROPE_TABLE);
}

/* Measures all backends in the numerics mode of `spec`. Skips a mode that does not support these frequencies. */
static enum posenc_status write_backends(const struct selection *selected,
                                         const struct posenc_freqs_spec *spec,
                                         struct reference *r, const struct outputs *outputs,
                                         struct posenc_error *error)
{
    struct posenc_freqs *freqs = NULL;
    struct curve curve = { .numerics = numerics_names[spec->numerics], .storage = "" };
    double errors[BINS];
    const enum posenc_status status = posenc_freqs_create(spec, &freqs, error);
    if (status == POSENC_ERR_ARGUMENT && spec->numerics != POSENC_NUMERICS_EXACT) {
        cli_print_note("posenc table: skipped: %s: %s\n", curve.numerics, error->what);
        return POSENC_OK;
    }
    for (size_t i = 0; status == POSENC_OK && i < selected->n; i++) {
        curve.backend = selected->backends[i]->name;
        if (runs_here(selected->backends[i]) &&
            measure(selected->backends[i], freqs, r->positions, POSENC_DTYPE_F32, r, errors))
            write_curve(&curve, errors, outputs);
    }
    posenc_freqs_destroy(freqs);
    return status;
}

/* Returns frequencies rounded to bf16; NULL if there is an attention factor, which frequencies given by value do not
 * support. */
static struct posenc_freqs *round_freqs(const struct posenc_freqs *freqs)
{
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *rounded = NULL;
    const int64_t pairs = view.dim / 2;
    double *values = cli_allocate((size_t)pairs, sizeof *values);
    for (int64_t i = 0; i < pairs; i++)
        values[i] = (double)storage_round(POSENC_DTYPE_BF16, (float)view.omega[i]);
    spec.dim = view.dim;
    spec.values = values;
    if (view.attention_factor != 1.0 || posenc_freqs_create(&spec, &rounded, NULL) != POSENC_OK)
        rounded = NULL;
    free(values);
    return rounded;
}

/* Measures the first backend that runs here, since in mode exact all backends of a family return the same bits. */
static void write_storages(const struct selection *selected, const struct posenc_freqs *freqs,
                           struct reference *r, const struct outputs *outputs)
{
    struct posenc_freqs *rounded = round_freqs(freqs);
    const struct {
        const char *name;
        const struct posenc_freqs *freqs;
        const int64_t *positions;
        enum posenc_dtype dtype;
    } storages[] = {
        { "tables in f16", freqs, r->positions, POSENC_DTYPE_F16 },
        { "tables in bf16", freqs, r->positions, POSENC_DTYPE_BF16 },
        { "frequencies in bf16", rounded, r->positions, POSENC_DTYPE_F32 },
        { "positions in bf16", freqs, r->rounded, POSENC_DTYPE_F32 },
    };
    size_t first = 0;
    while (first < selected->n && !runs_here(selected->backends[first]))
        first++;
    for (size_t s = 0; s < sizeof storages / sizeof *storages && first < selected->n; s++) {
        const struct curve curve = { "exact", "", storages[s].name };
        double error[BINS];
        if (!storages[s].freqs)
            cli_print_note("posenc table: skipped: %s: it takes no attention factor\n",
                           storages[s].name);
        else if (measure(selected->backends[first], storages[s].freqs, storages[s].positions,
                         storages[s].dtype, r, error))
            write_curve(&curve, error, outputs);
    }
    posenc_freqs_destroy(rounded);
}

static enum posenc_status write_curves(const struct selection *selected,
                                       const struct posenc_freqs_spec *spec,
                                       const struct outputs *outputs,
                                       struct posenc_error *error)
{
    struct posenc_freqs_spec in_mode = *spec;
    struct posenc_freqs *freqs = NULL;
    struct reference r = { 0 };
    in_mode.numerics = POSENC_NUMERICS_EXACT;
    enum posenc_status status = posenc_freqs_create(&in_mode, &freqs, error);
    if (status == POSENC_OK)
        make_reference(&in_mode, &r);
    for (size_t i = 0; i < outputs->n; i++)
        fputs("numerics,storage,backend,position,error\n", outputs->output[i].stream);
    for (int p = 0; status == POSENC_OK && numerics_names[p]; p++) {
        in_mode.numerics = (enum posenc_numerics)p;
        status = write_backends(selected, &in_mode, &r, outputs, error);
    }
    if (status == POSENC_OK)
        write_storages(selected, freqs, &r, outputs);
    posenc_freqs_destroy(freqs);
    free_reference(&r);
    return status;
}

static void write_errors(const struct cli *cli, struct posenc_freqs_spec *spec,
                         const struct outputs *outputs)
{
    struct selection selected;
    struct posenc_error error = { 0 };
    select_all(cli, &selected, false);
    select_require(cli, &selected, POSENC_KERNEL_ROPE_TABLE);
    table_set_seq_len(cli, last_position, spec);
    const enum posenc_status status = write_curves(&selected, spec, outputs, &error);
    if (status != POSENC_OK)
        cli_reject_status("errors", status, &error);
}

/* ---- The command ---- */

void table_write_columns(const struct cli *cli, enum table_kind kind, struct problem *problem,
                         const struct outputs *outputs)
{
    const bool rotates = problem->kernel == POSENC_KERNEL_ROPE_TABLE;
    if (kind == TABLE_ERRORS ? !rotates : !kernel_has_freqs(problem->kernel))
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
        write_errors(cli, &problem->freqs, outputs);
    else if (kind == TABLE_DRIFT)
        write_drift(problem, outputs);
    else
        write_frequencies(&problem->freqs, outputs);
}
