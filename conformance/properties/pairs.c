/* Reads and compares pairs as complex numbers; see pairs.h. */
#include "pairs.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double complex pair_make(double real, double imaginary)
{
    const double parts[2] = { real, imaginary };
    double complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

double complex pair_from_angle(double angle) { return pair_make(cos(angle), sin(angle)); }

int64_t pair_count(const struct problem *p)
{
    return (kernel_rotates(p->kernel) ? p->rotary_dim : p->freqs.dim) / 2;
}

struct pair_columns pair_columns(const struct problem *p, int64_t i)
{
    const bool rotates = kernel_rotates(p->kernel);
    const int64_t from = p->rotary_offset, half = pair_count(p);
    if (rotates && kernel_pairs_adjacent(p->kernel))
        return (struct pair_columns){ from + 2 * i, from + 2 * i + 1 };
    if (rotates)
        return (struct pair_columns){ from + i, from + half + i };
    return p->layout == POSENC_LAYOUT_INTERLEAVED ? (struct pair_columns){ 2 * i + 1, 2 * i }
           : p->layout == POSENC_LAYOUT_SIN_COS   ? (struct pair_columns){ half + i, i }
                                                  : (struct pair_columns){ i, half + i };
}

double complex pair_from_output(const struct call *call, int64_t r, int64_t i)
{
    const struct pair_columns at = pair_columns(&call->problem, i);
    const struct posenc_tensor *out = &call->outputs[0].tensor, *sin = &call->outputs[1].tensor;
    const void *row = storage_row(out, r);
    if (call->n_outputs == 2)
        return pair_make((double)storage_get(out->dtype, row, i),
                         (double)storage_get(sin->dtype, storage_row(sin, r), i));
    return pair_make((double)storage_get(out->dtype, row, at.real),
                     (double)storage_get(out->dtype, row, at.imaginary));
}

double complex pair_from_x(const struct call *call, int64_t r, int64_t i)
{
    const struct pair_columns at = pair_columns(&call->problem, i);
    const float *row = call->x + r * call->problem.dim;
    return pair_make((double)row[at.real], (double)row[at.imaginary]);
}

struct pair pair_at(const struct call *call, int64_t row, int64_t i)
{
    const int64_t n = call ? pair_count(&call->problem) : 0;
    if (n > 0 && i == n)
        return pair_at(call, row + 1, 0);
    return n == 0 || row == call->outputs[0].rows
               ? (struct pair){ .call = NULL }
               : (struct pair){ call, row, i, pair_from_output(call, row, i) };
}

void pair_require(struct tally *t, const struct pair *at, double complex want, double bound,
                  const char *what)
{
    const double complex off = at->z - want;
    require(t, fabs(creal(off)) <= bound && fabs(cimag(off)) <= bound,
            "%s: row %lld pair %lld is %.9g, %.9g, not within %.3g of %.9g, %.9g", what,
            (long long)at->row, (long long)at->i, creal(at->z), cimag(at->z), bound,
            creal(want), cimag(want));
}

double pair_table_error(const struct problem *p)
{
    const double farthest = (double)(llabs(p->first) + p->tokens);
    if (p->freqs.numerics == POSENC_NUMERICS_EXACT)
        return TABLE_ERROR;
    const double powers =
        p->freqs.numerics == POSENC_NUMERICS_GGML_F32 ? (double)p->freqs.dim / 50.0 : 0.0;
    return TABLE_ERROR + farthest * (1.0 + powers) * 0x1p-24;
}
