/*
 * Error of rope_table against position, see errors.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/oracle/oracle.h"
#include "conformance/problem/storage.h"
#include "worker.h"
#include "errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 12, N_POSITIONS = ERROR_BINS * SAMPLES };

double errors_position(int bin) { return floor(exp2(bin / 4.0)); }

static void choose_positions(int64_t *positions)
{
    for (int b = 0; b < ERROR_BINS; b++) {
        int64_t from = (int64_t)errors_position(b), to = (int64_t)errors_position(b + 1) - 1;
        uint64_t width = to > from ? (uint64_t)(to - from) + 1 : 1;
        for (int s = 0; s < SAMPLES; s++)
            positions[b * SAMPLES + s] =
                from + (int64_t)(mix64((uint64_t)b, (uint64_t)s) % width);
    }
}

struct reference {
    int64_t dim, pairs;
    int64_t *positions;    /* [N_POSITIONS] */
    int64_t *rounded;      /* to bf16 */
    double *cosine, *sine; /* [N_POSITIONS][pairs] */
    float *cos, *sin;      /* what a backend gives, of any type */
};

static int make_reference(const struct posenc_freqs_spec *spec, struct reference *r)
{
    r->dim = spec->dim;
    r->pairs = spec->dim / 2;
    size_t n = (size_t)(N_POSITIONS * r->pairs);
    uint64_t(*turn)[3] = calloc((size_t)r->pairs, sizeof *turn);
    float *inv_freq = calloc((size_t)r->pairs, sizeof *inv_freq);
    r->positions = calloc(N_POSITIONS, sizeof *r->positions);
    r->rounded = calloc(N_POSITIONS, sizeof *r->rounded);
    r->cosine = calloc(n, sizeof *r->cosine);
    r->sine = calloc(n, sizeof *r->sine);
    r->cos = calloc(n, sizeof *r->cos);
    r->sin = calloc(n, sizeof *r->sin);
    bool made = turn && inv_freq && r->positions && r->rounded && r->cosine && r->sine &&
                r->cos && r->sin;
    double factor = 1.0;
    if (made) {
        exact_freqs(spec, r->pairs, turn, inv_freq, &factor);
        choose_positions(r->positions);
    }
    for (int64_t t = 0; made && t < N_POSITIONS; t++) {
        float rounded = storage_round(POSENC_BF16, (float)r->positions[t]);
        r->rounded[t] = (int64_t)fminf(rounded, 0x1.fep30f); /* 2^31 is no position */
    }
    for (int64_t t = 0; made && t < N_POSITIONS; t++) {
        for (int64_t i = 0; i < r->pairs; i++) {
            double *sine = &r->sine[t * r->pairs + i], *cosine = &r->cosine[t * r->pairs + i];
            exact_sincos_turn(turn[i], r->positions[t], sine, cosine);
            *sine *= factor;
            *cosine *= factor;
        }
    }
    free(turn);
    free(inv_freq);
    return made ? 0 : -1;
}

static void free_reference(struct reference *r)
{
    free(r->positions);
    free(r->rounded);
    free(r->cosine);
    free(r->sine);
    free(r->cos);
    free(r->sin);
}

static bool measure(const struct posenc_backend *backend, const struct posenc_freqs *freqs,
                    const int64_t *positions, enum posenc_dtype dtype, struct reference *r,
                    double *error)
{
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.freqs = freqs;
    args.positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I64,
                                                .data = positions,
                                                .stride_token = 1 };
    args.cos = posenc_dense(r->cos, 2, N_POSITIONS, r->pairs, 0, 0);
    args.sin = posenc_dense(r->sin, 2, N_POSITIONS, r->pairs, 0, 0);
    args.cos.dtype = args.sin.dtype = dtype;
    worker_enter("rope_table");
    const enum posenc_status status = posenc_rope_table(backend, &args);
    worker_leave();
    if (status != POSENC_OK)
        return false;
    for (int b = 0; b < ERROR_BINS; b++) {
        double largest = 0.0;
        for (int64_t k = b * SAMPLES * r->pairs; k < (b + 1) * SAMPLES * r->pairs; k++) {
            double cosine = (double)storage_get(dtype, r->cos, k);
            double sine = (double)storage_get(dtype, r->sin, k);
            largest = fmax(largest, fabs(cosine - r->cosine[k]));
            largest = fmax(largest, fabs(sine - r->sine[k]));
        }
        error[b] = largest;
    }
    return true;
}

/* ---- curves ---- */

/* A line's width on a logarithmic axis of eight decades, and for the f32 profiles, whose
 * distance from real mathematics this is about, what rounding a cosine in f32 can make of it.
 */
static bool look_alike(enum posenc_profile profile, const double *a, const double *b)
{
    double rounding = profile == POSENC_EXACT ? 0.0 : 0x1p-22;
    for (int i = 0; i < ERROR_BINS; i++)
        if (fabs(a[i] - b[i]) > 0.01 * fmax(a[i], b[i]) + rounding)
            return false;
    return true;
}

/* A new curve; `members` 0: one of storage. */
static struct error_curve *begin_curve(struct errors *errors, const char *profile,
                                       uint32_t members, const double *error)
{
    struct error_curve *curve = &errors->curves[errors->n++];
    *curve = (struct error_curve){ .profile = profile, .members = members };
    memcpy(curve->error, error, sizeof curve->error);
    return curve;
}

/* Adds the curve of backend i, or the backend to a curve that looks the same. */
static void add_curve(struct errors *errors, enum posenc_profile profile, size_t i,
                      const double *error)
{
    for (size_t c = 0; c < errors->n; c++) {
        struct error_curve *other = &errors->curves[c];
        if (strcmp(other->profile, profile_names[profile]) == 0 &&
            look_alike(profile, other->error, error)) {
            other->members |= (uint32_t)1 << i;
            for (int b = 0; b < ERROR_BINS; b++)
                other->error[b] = fmax(other->error[b], error[b]);
            return;
        }
    }
    begin_curve(errors, profile_names[profile], (uint32_t)1 << i, error);
}

/* Backends that run here and are of the family of backend i. */
static uint32_t family_of(const struct selection *selected, size_t i)
{
    uint32_t family = 0;
    for (size_t k = 0; k < selected->n; k++)
        if (strcmp(selected->backends[k]->family, selected->backends[i]->family) == 0 &&
            !posenc_backend_obstacle(selected->backends[k]))
            family |= (uint32_t)1 << k;
    return family;
}

/* Returns true if a profile has this curve alone. It then describes the profile rather than a
 * backend, unless it is that of one backend in profile exact. */
static bool all_share(const struct errors *errors, const struct error_curve *curve)
{
    bool alone =
        (curve->members & (curve->members - 1)) != 0 || strcmp(curve->profile, "exact") != 0;
    for (const struct error_curve *c = errors->curves; c < errors->curves + errors->n; c++)
        alone &= c == curve || c->members == 0 || strcmp(c->profile, curve->profile) != 0;
    return alone;
}

/* "exact: native, libm": a family by name where all of it is in the curve, else backends. */
static void name_curve(const struct errors *errors, const struct selection *selected,
                       struct error_curve *curve)
{
    size_t at = (size_t)snprintf(curve->label, sizeof curve->label, "%s", curve->profile);
    uint32_t left = curve->members;
    const bool shared = all_share(errors, curve);
    for (size_t i = 0; i < selected->n && at < sizeof curve->label; i++) {
        if (!(left >> i & 1u))
            continue;
        const uint32_t family = family_of(selected, i);
        const bool whole = (family & left) == family;
        if (!shared && !curve->backend)
            curve->backend = selected->backends[i]->name;
        at += (size_t)snprintf(curve->label + at, sizeof curve->label - at, "%s %s",
                               left == curve->members ? ":" : ",",
                               whole ? selected->backends[i]->family
                                     : selected->backends[i]->name);
        left &= ~(whole ? family : (uint32_t)1 << i);
    }
}

static void leave_out(struct errors *errors, const char *what, const char *why)
{
    size_t at = strlen(errors->left_out);
    snprintf(errors->left_out + at, sizeof errors->left_out - at, "%s%s: %s",
             at > 0 ? "; " : "", what, why);
}

/* All backends in one profile; one that cannot make these frequencies is left out, but exact.
 */
static enum posenc_status measure_profile(struct errors *errors,
                                          const struct selection *selected,
                                          const struct posenc_freqs_spec *spec,
                                          struct reference *r, struct posenc_error *error)
{
    struct posenc_freqs *freqs = NULL;
    enum posenc_status status = posenc_freqs_create(spec, &freqs, error);
    if (status == POSENC_ERR_ARGUMENT && spec->profile != POSENC_EXACT) {
        leave_out(errors, profile_names[spec->profile], error->what);
        return POSENC_OK;
    }
    double values[ERROR_BINS];
    for (size_t i = 0; status == POSENC_OK && i < selected->n; i++)
        if (!posenc_backend_obstacle(selected->backends[i]) &&
            measure(selected->backends[i], freqs, r->positions, POSENC_F32, r, values))
            add_curve(errors, spec->profile, i, values);
    posenc_freqs_destroy(freqs);
    return status;
}

/* ---- what 16 bits make of profile exact ---- */

/* The same plan with its frequencies rounded to bf16: NULL where it has an attention factor,
 * which frequencies of one's own do not take, or memory runs out. */
static struct posenc_freqs *rounded_plan(const struct posenc_freqs *freqs)
{
    struct posenc_freqs_view view = posenc_freqs_view(freqs);
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *plan = NULL;
    int64_t pairs = view.dim / 2;
    double *values = malloc((size_t)pairs * sizeof *values);
    for (int64_t i = 0; values && i < pairs; i++)
        values[i] = (double)storage_round(POSENC_BF16, (float)view.omega[i]);
    spec.dim = view.dim;
    spec.values = values;
    if (!values || view.attention_factor != 1.0 ||
        posenc_freqs_create(&spec, &plan, NULL) != POSENC_OK)
        plan = NULL;
    free(values);
    return plan;
}

/* The first backend that runs here: its family promises the same bits of all. */
static void measure_storages(struct errors *errors, const struct selection *selected,
                             const struct posenc_freqs *freqs, struct reference *r)
{
    struct posenc_freqs *rounded = rounded_plan(freqs);
    const struct {
        const char *label;
        const struct posenc_freqs *freqs;
        const int64_t *positions;
        enum posenc_dtype dtype;
    } storages[STORAGES] = {
        { "tables in f16", freqs, r->positions, POSENC_F16 },
        { "tables in bf16", freqs, r->positions, POSENC_BF16 },
        { "frequencies in bf16", rounded, r->positions, POSENC_F32 },
        { "positions in bf16", freqs, r->rounded, POSENC_F32 },
    };
    size_t first = 0;
    while (first < selected->n &&
           (posenc_backend_obstacle(selected->backends[first]) ||
            !posenc_provides(selected->backends[first], POSENC_KERNEL_rope_table)))
        first++;
    for (int s = 0; s < STORAGES && first < selected->n; s++) {
        double values[ERROR_BINS];
        if (!storages[s].freqs) {
            leave_out(errors, storages[s].label, "the attention factor");
        } else if (measure(selected->backends[first], storages[s].freqs, storages[s].positions,
                           storages[s].dtype, r, values)) {
            struct error_curve *curve = begin_curve(errors, "storage", 0, values);
            snprintf(curve->label, sizeof curve->label, "exact, %s", storages[s].label);
        }
    }
    posenc_freqs_destroy(rounded);
}

enum posenc_status errors_measure(const struct selection *selected,
                                  const struct posenc_freqs_spec *spec, struct errors *errors,
                                  struct posenc_error *error)
{
    struct posenc_freqs_spec asked = *spec;
    struct posenc_freqs *freqs = NULL;
    struct reference r = { 0 };
    *errors = (struct errors){ 0 };
    asked.profile = POSENC_EXACT;
    enum posenc_status status = posenc_freqs_create(&asked, &freqs, error);
    if (status != POSENC_OK)
        return status;
    if (make_reference(&asked, &r) != 0)
        status = POSENC_ERR_MEMORY;
    for (int p = 0; status == POSENC_OK && profile_names[p] && p < PROFILES_MAX; p++) {
        asked.profile = (enum posenc_profile)p;
        status = measure_profile(errors, selected, &asked, &r, error);
    }
    for (size_t c = 0; status == POSENC_OK && c < errors->n; c++)
        name_curve(errors, selected, &errors->curves[c]);
    if (status == POSENC_OK)
        measure_storages(errors, selected, freqs, &r);
    posenc_freqs_destroy(freqs);
    free_reference(&r);
    return status;
}
