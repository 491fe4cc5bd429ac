/*
 * posenc table errors: the largest error of rope_table in each bin of positions, for every backend and numerics mode,
 * and for mode exact with tables, positions or frequencies in 16 bits (see table.h). Errors are differences from the
 * exact values of the oracle, in all numerics modes.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/oracle/oracle.h"
#include "conformance/problem/storage.h"
#include "worker.h"
#include "select.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>

enum { BINS_PER_OCTAVE = 4, BINS = 31 * BINS_PER_OCTAVE, SAMPLES = 12, ROWS = BINS * SAMPLES };
static const int64_t last_position = 2147483647;

static double first_position(int bin) { return floor(exp2((double)bin / BINS_PER_OCTAVE)); }

/* ---- Positions and exact values ---- */

struct reference {
    int64_t pairs;
    int64_t *positions;    /* [ROWS], SAMPLES of each bin */
    int64_t *rounded;      /* the same, rounded to bf16 */
    double *cosine, *sine; /* [ROWS][pairs], exact values; `cosine` owns all arrays */
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

static bool make_reference(const struct posenc_freqs_spec *spec, struct reference *r)
{
    r->pairs = spec->dim / 2;
    const size_t n = (size_t)(ROWS * r->pairs);
    uint64_t(*turn)[3] = calloc((size_t)r->pairs, sizeof *turn);
    float *inv_freq = calloc((size_t)r->pairs, sizeof *inv_freq);
    double factor = 1.0;
    const size_t bytes = n * 2 * (sizeof(double) + sizeof(float)) + ROWS * 2 * sizeof(int64_t);
    r->cosine = calloc(1, bytes);
    const bool made = turn && inv_freq && r->cosine;
    if (made) {
        r->sine = r->cosine + n;
        r->positions = (int64_t *)(r->sine + n);
        r->rounded = r->positions + ROWS;
        r->cos = (float *)(r->rounded + ROWS);
        r->sin = r->cos + n;
        exact_freqs(spec, r->pairs, turn, inv_freq, &factor);
        choose_positions(r);
    }
    for (int64_t k = 0; made && k < ROWS * r->pairs; k++) {
        exact_sincos_turn(turn[k % r->pairs], r->positions[k / r->pairs], &r->sine[k],
                          &r->cosine[k]);
        r->sine[k] *= factor;
        r->cosine[k] *= factor;
    }
    free(turn);
    free(inv_freq);
    return made;
}

/* ---- Curves ---- */

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
                    const int64_t *positions, enum posenc_dtype dtype, struct reference *r,
                    double error[BINS])
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.freqs = freqs;
    args.positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I64,
                                                .data = positions,
                                                .stride_token = 1 };
    args.cos = posenc_tensor_2d(POSENC_DTYPE_F32, r->cos, ROWS, r->pairs);
    args.sin = posenc_tensor_2d(POSENC_DTYPE_F32, r->sin, ROWS, r->pairs);
    args.cos.dtype = args.sin.dtype = dtype;
    worker_enter_kernel("rope_table");
    const enum posenc_status status = posenc_rope_table(backend, &args, NULL);
    worker_leave_kernel();
    for (int bin = 0; bin < BINS; bin++)
        error[bin] = 0.0;
    for (int64_t k = 0; status == POSENC_OK && k < ROWS * r->pairs; k++) {
        double *largest = &error[k / (SAMPLES * r->pairs)];
        const double cosine = (double)storage_get(dtype, r->cos, k),
                     sine = (double)storage_get(dtype, r->sin, k);
        *largest = fmax(*largest, fabs(cosine - r->cosine[k]));
        *largest = fmax(*largest, fabs(sine - r->sine[k]));
    }
    return status == POSENC_OK;
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

/* ---- Mode exact in 16 bits ---- */

/* Returns frequencies rounded to bf16; NULL without memory, or if there is an attention factor, which frequencies given
 * by value do not support. */
static struct posenc_freqs *round_freqs(const struct posenc_freqs *freqs)
{
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *rounded = NULL;
    const int64_t pairs = view.dim / 2;
    double *values = malloc((size_t)pairs * sizeof *values);
    for (int64_t i = 0; values && i < pairs; i++)
        values[i] = (double)storage_round(POSENC_DTYPE_BF16, (float)view.omega[i]);
    spec.dim = view.dim;
    spec.values = values;
    if (!values || view.attention_factor != 1.0 ||
        posenc_freqs_create(&spec, &rounded, NULL) != POSENC_OK)
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

/* ---- The command ---- */

static enum posenc_status write_all(const struct selection *selected,
                                    const struct posenc_freqs_spec *spec,
                                    const struct outputs *outputs, struct posenc_error *error)
{
    struct posenc_freqs_spec in_mode = *spec;
    struct posenc_freqs *freqs = NULL;
    struct reference r = { 0 };
    in_mode.numerics = POSENC_NUMERICS_EXACT;
    enum posenc_status status = posenc_freqs_create(&in_mode, &freqs, error);
    if (status == POSENC_OK && !make_reference(&in_mode, &r))
        status = POSENC_ERR_MEMORY;
    for (size_t i = 0; i < outputs->n; i++)
        fputs("numerics,storage,backend,position,error\n", outputs->output[i].stream);
    for (int p = 0; status == POSENC_OK && numerics_names[p]; p++) {
        in_mode.numerics = (enum posenc_numerics)p;
        status = write_backends(selected, &in_mode, &r, outputs, error);
    }
    if (status == POSENC_OK)
        write_storages(selected, freqs, &r, outputs);
    posenc_freqs_destroy(freqs);
    free(r.cosine);
    return status;
}

int table_write_errors(struct cli *cli, struct posenc_freqs_spec *spec,
                       const struct outputs *outputs)
{
    struct selection selected;
    struct posenc_error error = { 0 };
    if (select_all(cli, &selected, false) != EXIT_OK ||
        select_require(cli, &selected, POSENC_KERNEL_ROPE_TABLE) != EXIT_OK)
        return EXIT_USAGE;
    table_set_seq_len(cli, last_position, spec);
    const enum posenc_status status = write_all(&selected, spec, outputs, &error);
    return status == POSENC_OK ? EXIT_OK : cli_reject_status(cli, "errors", status, &error);
}
