/*
 * Settings and pairs of tables: see pairs.h.
 */
#include "pairs.h"

#include <stdlib.h>

struct problem table_problem(enum posenc_kernel kernel, int64_t dim, int setting, int64_t first,
                             int64_t tokens)
{
    struct problem p = problem_default(kernel);
    p.freqs.dim = dim;
    p.first = first;
    p.tokens = tokens;
    p.freqs.profile = setting == 6   ? POSENC_GGML_F32
                      : setting == 7 ? POSENC_TORCH_EXP_F32
                      : setting & 1  ? POSENC_HF_F32
                                     : POSENC_EXACT;
    if (kernel == POSENC_KERNEL_sinusoidal) {
        p.layout = (enum posenc_layout)(setting % 3);
        p.freqs.convention = setting < 3 || setting == 6 ? POSENC_EXPONENT : POSENC_ENDPOINT;
    } else if (setting >= 4 && setting != 6) {
        p.freqs.rope_theta = 500000.0;
    }
    return p;
}

double table_error(const struct problem *p)
{
    double last = (double)(llabs(p->first) + p->tokens);
    if (p->freqs.profile == POSENC_EXACT)
        return TABLE_ERROR;
    double iterated = p->freqs.profile == POSENC_GGML_F32 ? (double)p->freqs.dim / 50.0 : 0.0;
    return TABLE_ERROR + last * (1.0 + iterated) * 0x1p-24;
}

int64_t sine_at(const struct problem *p, int64_t i)
{
    int64_t half = p->freqs.dim / 2;
    return p->layout == POSENC_INTERLEAVED ? 2 * i : p->layout == POSENC_SIN_COS ? i : half + i;
}

int64_t cosine_at(const struct problem *p, int64_t i)
{
    int64_t half = p->freqs.dim / 2;
    return p->layout == POSENC_INTERLEAVED ? 2 * i + 1
           : p->layout == POSENC_SIN_COS   ? half + i
                                           : i;
}

struct pair pair_at(const struct problem *p, const struct copy *table, int64_t r, int64_t i)
{
    if (table->n == 2) /* rope_table: cos, sin */
        return (struct pair){ (double)copy_row(table, 1, r)[i],
                              (double)copy_row(table, 0, r)[i] };
    const float *row = copy_row(table, 0, r);
    return (struct pair){ (double)row[sine_at(p, i)], (double)row[cosine_at(p, i)] };
}
