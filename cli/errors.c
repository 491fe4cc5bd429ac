/*
 * Error of rope_table against position, see errors.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "../conformance/oracle.h"
#include "errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bin b holds positions from 2^(b/4) to 2^((b+1)/4). */
enum { PER_OCTAVE = 4, N_BINS = 31 * PER_OCTAVE, SAMPLES = 12, N_POSITIONS = N_BINS * SAMPLES };

static double edge(int b) { return floor(exp2(b / (double)PER_OCTAVE)); }

static void choose_positions(int64_t *positions)
{
    for (int b = 0; b < N_BINS; b++) {
        int64_t from = (int64_t)edge(b), to = (int64_t)edge(b + 1) - 1;
        uint64_t width = to > from ? (uint64_t)(to - from) + 1 : 1;
        for (int s = 0; s < SAMPLES; s++) {
            positions[b * SAMPLES + s] =
                from + (int64_t)(mix64((uint64_t)b, (uint64_t)s) % width);
        }
    }
}

struct reference {
    int64_t dim, pairs;
    int64_t *positions;    /* [N_POSITIONS] */
    double *cosine, *sine; /* [N_POSITIONS][pairs] */
    float *cos, *sin;      /* what a backend gives */
};

static int make_reference(const struct posenc_freqs_spec *spec, struct reference *r)
{
    r->dim = spec->dim;
    r->pairs = spec->dim / 2;
    size_t n = (size_t)(N_POSITIONS * r->pairs);
    uint64_t(*turn)[3] = calloc((size_t)r->pairs, sizeof *turn);
    float *inv_freq = calloc((size_t)r->pairs, sizeof *inv_freq);
    r->positions = calloc(N_POSITIONS, sizeof *r->positions);
    r->cosine = calloc(n, sizeof *r->cosine);
    r->sine = calloc(n, sizeof *r->sine);
    r->cos = calloc(n, sizeof *r->cos);
    r->sin = calloc(n, sizeof *r->sin);
    bool made = turn && inv_freq && r->positions && r->cosine && r->sine && r->cos && r->sin;
    double factor;
    if (made) {
        oracle_freqs(spec, r->pairs, turn, inv_freq, &factor);
        choose_positions(r->positions);
    }
    for (int64_t t = 0; made && t < N_POSITIONS; t++) {
        for (int64_t i = 0; i < r->pairs; i++) {
            oracle_sincos_turn(turn[i], r->positions[t], &r->sine[t * r->pairs + i],
                               &r->cosine[t * r->pairs + i]);
        }
    }
    free(turn);
    free(inv_freq);
    return made ? 0 : -1;
}

static void free_reference(struct reference *r)
{
    free(r->positions);
    free(r->cosine);
    free(r->sine);
    free(r->cos);
    free(r->sin);
}

static bool measure(const struct posenc_backend *backend, const struct posenc_freqs *freqs,
                    struct reference *r, double *error)
{
    struct posenc_rope_table_args args = POSENC_ROPE_TABLE_ARGS;
    args.freqs = freqs;
    args.positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I64,
                                                .data = r->positions,
                                                .stride_token = 1 };
    args.cos = posenc_dense(r->cos, 2, N_POSITIONS, r->pairs, 0, 0);
    args.sin = posenc_dense(r->sin, 2, N_POSITIONS, r->pairs, 0, 0);
    if (posenc_rope_table(backend, &args) != POSENC_OK) {
        return false;
    }
    for (int b = 0; b < N_BINS; b++) {
        double largest = 0.0;
        for (int64_t k = b * SAMPLES * r->pairs; k < (b + 1) * SAMPLES * r->pairs; k++) {
            largest = fmax(largest, fabs((double)r->cos[k] - r->cosine[k]));
            largest = fmax(largest, fabs((double)r->sin[k] - r->sine[k]));
        }
        error[b] = largest;
    }
    return true;
}

/* "template (scalar, avx2)  exact": adds the backend to its family's curve, if that is the
 * same. */
static bool joins(struct errors *errors, const struct posenc_backend *backend,
                  const char *profile, const double *error)
{
    char start[64];
    int length = snprintf(start, sizeof start, "%s (", backend->family);
    for (size_t c = 0; c < errors->n; c++) {
        struct plot_curve *curve = &errors->curves[c];
        char *label = errors->labels[c];
        if (strncmp(label, start, (size_t)length) == 0 &&
            strcmp(curve->profile, profile) == 0 &&
            memcmp(curve->error, error, N_BINS * sizeof *error) == 0) {
            char *end = strrchr(label, ')');
            snprintf(end, 160 - (size_t)(end - label), ", %s)  %s", backend->name, profile);
            return true;
        }
    }
    return false;
}

static void add_curve(struct errors *errors, const struct posenc_backend *backend,
                      const char *profile, const struct posenc_freqs *freqs,
                      struct reference *r)
{
    double *error = errors->values + errors->n * N_BINS;
    if (errors->n == CURVES_MAX || !measure(backend, freqs, r, error) ||
        joins(errors, backend, profile, error)) {
        return;
    }
    snprintf(errors->labels[errors->n], sizeof errors->labels[0], "%s (%s)  %s",
             backend->family, backend->name, profile);
    errors->curves[errors->n] = (struct plot_curve){ .label = errors->labels[errors->n],
                                                     .profile = profile,
                                                     .n = N_BINS,
                                                     .position = errors->position,
                                                     .error = error };
    errors->n++;
}

int errors_measure(const struct selection *selected, int64_t dim, double rope_theta,
                   struct errors *errors)
{
    struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
    struct reference r = { 0 };
    *errors = (struct errors){ 0 };
    spec.dim = dim;
    spec.rope_theta = rope_theta;
    errors->position = calloc(N_BINS, sizeof *errors->position);
    errors->values = calloc((size_t)CURVES_MAX * N_BINS, sizeof *errors->values);
    int status = errors->position && errors->values ? make_reference(&spec, &r) : -1;
    for (int b = 0; status == 0 && b < N_BINS; b++) {
        errors->position[b] = edge(b);
    }
    snprintf(errors->caption, sizeof errors->caption, "rope_table, dim %lld, rope_theta %g",
             (long long)dim, rope_theta);
    for (int p = 0; status == 0 && profile_names[p] != NULL; p++) {
        struct posenc_freqs *freqs = NULL;
        spec.profile = (enum posenc_profile)p;
        status = posenc_freqs_create(&spec, &freqs, NULL) == POSENC_OK ? 0 : -1;
        for (size_t i = 0; status == 0 && i < selected->n; i++) {
            if (posenc_backend_obstacle(selected->backends[i]) == NULL) {
                add_curve(errors, selected->backends[i], profile_names[p], freqs, &r);
            }
        }
        posenc_freqs_destroy(freqs);
    }
    free_reference(&r);
    if (status != 0) {
        errors_free(errors);
    }
    return status;
}

void errors_facts(const struct errors *errors, FILE *out)
{
    static const int powers[] = { 10, 17, 20, 24, 31 };
    fprintf(out, "%s: largest |error| of cos and sin\n%-54s", errors->caption, "");
    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
        fprintf(out, "   <2^%d", powers[k]);
    }
    fputc('\n', out);
    for (size_t c = 0; c < errors->n; c++) {
        fprintf(out, "%-54s", errors->labels[c]);
        int b = 0;
        double largest = 0.0;
        for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
            for (; b < powers[k] * PER_OCTAVE; b++) {
                largest = fmax(largest, errors->curves[c].error[b]);
            }
            fprintf(out, " %7.1e", largest);
        }
        fputc('\n', out);
    }
}

void errors_free(struct errors *errors)
{
    free(errors->position);
    free(errors->values);
    *errors = (struct errors){ 0 };
}
