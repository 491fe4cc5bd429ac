/*
 * Pairs: see pairs.h.
 */
#include "pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double complex pair_with(double real, double imaginary)
{
    const double parts[2] = { real, imaginary };
    double complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

double complex pair_turned(double angle) { return pair_with(cos(angle), sin(angle)); }

int64_t n_pairs(const struct problem *p)
{
    return (kernel_turns(p->kernel) ? p->rotary_dim : p->freqs.dim) / 2;
}

struct pair_columns pair_columns(const struct problem *p, int64_t i)
{
    const bool turns = kernel_turns(p->kernel);
    const int64_t from = p->rotary_offset, half = n_pairs(p);
    if (turns && kernel_pairs_adjacent(p->kernel))
        return (struct pair_columns){ from + 2 * i, from + 2 * i + 1 };
    if (turns)
        return (struct pair_columns){ from + i, from + half + i };
    return p->layout == POSENC_INTERLEAVED ? (struct pair_columns){ 2 * i + 1, 2 * i }
           : p->layout == POSENC_SIN_COS   ? (struct pair_columns){ half + i, i }
                                           : (struct pair_columns){ i, half + i };
}

static double complex pair_in(const struct problem *p, const float *row, int64_t i)
{
    const struct pair_columns at = pair_columns(p, i);
    return pair_with((double)row[at.real], (double)row[at.imaginary]);
}

double complex pair_of(const struct call *call, int64_t r, int64_t i)
{
    const float *first = call_row(call, 0, r);
    return call->n_outputs == 2 ? pair_with((double)first[i], (double)call_row(call, 1, r)[i])
                                : pair_in(&call->problem, first, i);
}

double complex x_pair_of(const struct call *call, int64_t r, int64_t i)
{
    return pair_in(&call->problem, call->x + r * call->problem.dim, i);
}

struct pair pair_at(const struct call *call, int64_t row, int64_t i)
{
    const int64_t n = call ? n_pairs(&call->problem) : 0;
    if (n > 0 && i == n)
        return pair_at(call, row + 1, 0);
    return n == 0 || row == call->outputs[0].rows
               ? (struct pair){ .call = NULL }
               : (struct pair){ call, row, i, pair_of(call, row, i) };
}

void require_near(struct tally *t, double complex got, double complex want, double bound,
                  const char *what)
{
    require_within(t, creal(got), creal(want), bound, what);
    require_within(t, cimag(got), cimag(want), bound, what);
}

double row_product(const struct call *table, int64_t a, int64_t b)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n_pairs(&table->problem); i++)
        sum += creal(pair_of(table, b, i) * conj(pair_of(table, a, i)));
    return sum;
}

double table_error(const struct problem *p)
{
    double last = (double)(llabs(p->first) + p->tokens);
    if (p->freqs.profile == POSENC_EXACT)
        return TABLE_ERROR;
    double iterated = p->freqs.profile == POSENC_GGML_F32 ? (double)p->freqs.dim / 50.0 : 0.0;
    return TABLE_ERROR + last * (1.0 + iterated) * 0x1p-24;
}
