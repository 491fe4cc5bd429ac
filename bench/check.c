/*
 * Outputs of a call against scalar and against the oracle; the limits are derived in check.h.
 */
#include "check.h"
#include "conformance/oracle/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORACLE_ROWS = 64, OUTPUTS = 2 };
static const double U = 0x1p-20;

enum class_of_kernel { TABLE, ROTATION, SUM, TERMS, BIAS };

struct check {
    const struct call *call;
    enum class_of_kernel class;
    double amplitude; /* a */
    const char *family;
    float *reference[OUTPUTS]; /* dense, in row order */
    int64_t rows[OUTPUTS][ORACLE_ROWS];
    int n_rows[OUTPUTS];
    double *want[OUTPUTS], *mass[OUTPUTS]; /* [n_rows, width] */
};

static enum class_of_kernel class_of(const struct call *call)
{
    switch (kernel_signature(call->problem.kernel)) {
    case SIGNATURE_rope:
        return ROTATION;
    case SIGNATURE_rope_table:
        return TABLE;
    case SIGNATURE_sinusoidal:
        return call->x != NULL ? SUM : TABLE;
    case SIGNATURE_learned:
        return SUM;
    case SIGNATURE_learned_grad: /* f32 sums in an order that is given: one result is right */
    case SIGNATURE_relative_sum:
        return BIAS;
    case SIGNATURE_relative:
        return call->x != NULL ? SUM : TERMS;
    default:
        return call->x != NULL ? SUM : BIAS;
    }
}

static double largest(const float *list, int64_t n)
{
    double most = 0.0;
    for (int64_t i = 0; list != NULL && i < n; i++)
        if (fabs((double)list[i]) > most) /* gcc 12 for ARM fails on fmax here */
            most = fabs((double)list[i]);
    return most;
}

static double amplitude_of(const struct call *call)
{
    switch (kernel_signature(call->problem.kernel)) {
    case SIGNATURE_sinusoidal:
        return fabs(call->problem.scale);
    case SIGNATURE_rope_table:
        return fabs(posenc_freqs_view(call->freqs).attention_factor);
    case SIGNATURE_relative: {
        const struct problem *p = &call->problem;
        int64_t columns = p->batch * p->heads * call->columns;
        return fabs(p->scale) * (largest(call->c2p, columns * p->queries) +
                                 largest(call->p2c, columns * p->keys));
    }
    default:
        return 0.0;
    }
}

/* The first row, the last one, and random ones between. */
static void choose_rows(struct check *check, int o, uint64_t seed)
{
    int64_t total = check->call->outputs[o].rows;
    check->n_rows[o] = total < ORACLE_ROWS ? (int)total : ORACLE_ROWS;
    for (int i = 0; i < check->n_rows[o]; i++) {
        uint64_t any = mix64(seed + (uint64_t)o, (uint64_t)i) % (uint64_t)total;
        check->rows[o][i] = total <= ORACLE_ROWS ? i : (int64_t)any;
    }
    if (total > ORACLE_ROWS) {
        check->rows[o][0] = 0;
        check->rows[o][1] = total - 1;
    }
}

struct check *check_create(const struct call *call, uint64_t seed)
{
    struct check *check = calloc(1, sizeof(*check));
    struct oracle *oracle = oracle_create(call);
    if (check == NULL || oracle == NULL)
        goto fail;
    check->call = call;
    check->class = class_of(call);
    check->amplitude = amplitude_of(call);
    for (int o = 0; o < call->n_outputs; o++) {
        choose_rows(check, o, seed);
        size_t width = (size_t)call->outputs[o].width, n = (size_t)check->n_rows[o] * width;
        check->want[o] = malloc((n + 1) * sizeof(double));
        check->mass[o] = malloc((n + 1) * sizeof(double));
        if (check->want[o] == NULL || check->mass[o] == NULL)
            goto fail;
        for (size_t i = 0; i < (size_t)check->n_rows[o]; i++)
            oracle_row(oracle, o, check->rows[o][i], check->want[o] + i * width,
                       check->mass[o] + i * width);
    }
    oracle_destroy(oracle);
    return check;
fail:
    oracle_destroy(oracle);
    check_destroy(check);
    return NULL;
}

void check_destroy(struct check *check)
{
    if (check == NULL)
        return;
    for (int o = 0; o < OUTPUTS; o++) {
        free(check->reference[o]);
        free(check->want[o]);
        free(check->mass[o]);
    }
    free(check);
}

/* The other channel of a rotated pair, or -1. */
static int64_t partner(const struct problem *p, int64_t channel)
{
    int64_t i = channel - p->rotary_offset, half = p->rotary_dim / 2;
    if (i < 0 || i >= p->rotary_dim)
        return -1;
    bool interleaved = p->kernel == POSENC_KERNEL_rope_interleaved;
    return p->rotary_offset + (interleaved ? i ^ 1 : i < half ? i + half : i - half);
}

/* What element i of row r may differ by from a value near `want`, whose row is `row`. */
static double allowance(const struct check *check, const float *row, int64_t r, int64_t width,
                        int64_t i, double want)
{
    const struct problem *p = &check->call->problem;
    switch (check->class) {
    case TABLE:
    case TERMS:
        return U * check->amplitude;
    case ROTATION: {
        int64_t other = partner(p, i);
        return other < 0 ? 0.0 : U * fmax(fabs(want), fabs((double)row[other]));
    }
    case SUM: {
        double x = (double)check->call->x[r * width + i];
        return U * (fabs(x * (double)p->x_scale) + fabs(want) + check->amplitude);
    }
    default:
        return 0.0;
    }
}

static bool same_value(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* Results that are near in f32 may be rounded to neighbours. */
static double rounding(enum posenc_dtype type, float got, float want)
{
    double magnitude = fmax(fabs((double)got), fabs((double)want));
    return type == POSENC_F32 || !isfinite(magnitude) ? 0.0 : ulp_of(type, magnitude);
}

static bool row_near(const struct check *check, enum posenc_dtype type, const float *got,
                     const float *want, int64_t r, int64_t width, bool exactly, int64_t *where)
{
    if (memcmp(got, want, (size_t)width * sizeof(float)) == 0)
        return true;
    for (int64_t i = 0; i < width; i++) {
        if (same_value(got[i], want[i]))
            continue;
        double apart = fabs((double)got[i] - (double)want[i]);
        double most = allowance(check, want, r, width, i, (double)want[i]);
        if (exactly || most == 0.0 || !(apart <= most + rounding(type, got[i], want[i]))) {
            *where = i;
            return false;
        }
    }
    return true;
}

static bool full_check(const struct check *check, const struct posenc_backend *backend,
                       char *reason, size_t size)
{
    bool family = strcmp(backend->family, check->family) == 0;
    for (int o = 0; o < check->call->n_outputs; o++) {
        const struct output *out = &check->call->outputs[o];
        for (int64_t r = 0; r < out->rows; r++) {
            const float *got = call_row(check->call, o, r);
            const float *want = check->reference[o] + r * out->width;
            int64_t i = 0;
            if (row_near(check, out->tensor.dtype, got, want, r, out->width, family, &i))
                continue;
            snprintf(reason, size, "wrong: %s row %lld column %lld is %.9g, scalar has %.9g%s",
                     out->name, (long long)r, (long long)i, (double)got[i], (double)want[i],
                     family ? " (same family: same bits)" : "");
            return false;
        }
    }
    return true;
}

/* Against the oracle: what the f32 result of element i of its k-th row may be off by.  `got` is
 * the row. */
static double tolerance(const struct check *check, bool family, int o, int k, int64_t i,
                        const float *got)
{
    int64_t width = check->call->outputs[o].width, r = check->rows[o][k];
    double want = check->want[o][k * width + i], mass = check->mass[o][k * width + i];
    bool exact = check->call->problem.freqs.profile == POSENC_EXACT;
    switch (check->class) {
    case BIAS:
        return 0.5 * ulp_of(POSENC_F32, want);
    case ROTATION:
        return 2.0 * ulp_of(POSENC_F32, mass);
    case TABLE:
        if (family)
            return (exact ? 1.0 : 2.0) * ulp_of(POSENC_F32, want);
        break;
    case SUM:
    case TERMS:
        break;
    }
    return allowance(check, got, r, width, i, want);
}

static bool element_right(const struct check *check, bool family, int o, int k, int64_t i,
                          const float *got)
{
    const struct output *out = &check->call->outputs[o];
    double want = check->want[o][k * out->width + i];
    if ((double)got[i] == want) /* also zeros of either sign: the suites tell them apart */
        return true;
    if (isinf(want) || isnan(want))
        return ulp_error(got[i], want) == 0.0;
    double within = tolerance(check, family, o, k, i, got);
    if (out->tensor.dtype == POSENC_F32)
        return fabs((double)got[i] - want) <= within;
    struct stored_error stored = stored_error(out->tensor.dtype, got[i], want, within);
    return stored.error <= stored.limit;
}

static bool oracle_check(const struct check *check, const struct posenc_backend *backend,
                         char *reason, size_t size)
{
    bool family = strcmp(backend->family, check->family) == 0;
    for (int o = 0; o < check->call->n_outputs; o++) {
        const struct output *out = &check->call->outputs[o];
        for (int k = 0; k < check->n_rows[o]; k++) {
            const float *got = call_row(check->call, o, check->rows[o][k]);
            for (int64_t i = 0; i < out->width; i++) {
                if (element_right(check, family, o, k, i, got))
                    continue;
                snprintf(reason, size, "wrong: %s row %lld column %lld is %.9g, truth is %.9g",
                         out->name, (long long)check->rows[o][k], (long long)i, (double)got[i],
                         check->want[o][k * out->width + i]);
                return false;
            }
        }
    }
    return true;
}

bool check_reference(struct check *check, const struct posenc_backend *scalar, char *reason,
                     size_t size)
{
    check->family = scalar->family;
    if (!oracle_check(check, scalar, reason, size))
        return false;
    for (int o = 0; o < check->call->n_outputs; o++) {
        const struct output *out = &check->call->outputs[o];
        size_t row = (size_t)out->width * sizeof(float);
        check->reference[o] = malloc((size_t)out->rows * row + 1);
        if (check->reference[o] == NULL) {
            snprintf(reason, size, "no memory for the reference output");
            return false;
        }
        for (int64_t r = 0; r < out->rows; r++)
            memcpy(check->reference[o] + r * out->width, call_row(check->call, o, r), row);
    }
    return true;
}

bool check_output(const struct check *check, const struct posenc_backend *backend, char *reason,
                  size_t size)
{
    return oracle_check(check, backend, reason, size) &&
           full_check(check, backend, reason, size);
}
