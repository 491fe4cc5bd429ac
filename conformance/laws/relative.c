/*
 * Laws of terms by relative position: each gather against the encoding's own matrices,
 * transcribed as its authors wrote them.
 *
 *   columns          terms that are their column's number come out as the index
 *   shaw             q_i (a_clip(j-i))^T, gathered for each query and key
 *   transformer-xl   pad a zero column, read the rows one longer, drop the first: every key up
 *                    to the query
 *   deberta          c2p gathered by bucket(i - j); p2c gathered for keys by bucket(j - i),
 *                    negated, and transposed
 *   any-index        an index that no builder makes, in no order, is gathered and summed as it
 *                    is
 *   distance         without content, terms by column alone, the bias depends on i - j
 *   adjoint          <relative_bias(A), W> = <A, relative_sum(W)>: a sum of at most n keys in
 *                    f32 is within n 2^-24 of the magnitudes
 *   whole-row        what a row sums to stays
 *
 * Shaw et al. 1803.02155; Dai et al. 1901.02860 with kimiyoung/transformer-xl,
 * mem_transformer.py; He et al. 2006.03654 with Hugging Face modeling_deberta_v2.py.
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Columns ---- */

static void edit_columns(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *const terms[] = { owned(&call->args.relative.c2p),
                                            owned(&call->args.relative.p2c) };
    for (int k = 0; k < 2; k++)
        for (int64_t r = 0, n = terms[k]->data ? storage_rows(terms[k]) : 0; r < n; r++)
            for (int64_t c = 0; c < call->columns; c++)
                tensor_row(terms[k], r)[c] = (float)(k == 0 ? c : 1000 * c);
}

static float column_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t column = inputs->args.relative.index[r % p->queries - j + p->keys - 1];
    return (float)((p->without_c2p ? 0 : column) + (p->with_p2c ? 1000 * column : 0));
}

/* ---- Each encoding by hand ---- */

static float shaw_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t i = r % p->queries + p->query_offset, most = p->max_distance;
    const int64_t distance = j - i < -most ? -most : j - i > most ? most : j - i;
    return (float)p->scale * inputs->c2p[r * (2 * most + 1) + distance + most];
}

/* The terms of a head, [queries, keys], stand for distances keys - 1 ... 0.  After a zero
 * before each row they are read as [keys + 1, queries] and the first row dropped: what is read
 * as (i, j) is element queries + i keys + j of the padded ones.  Keys after the query are
 * anybody's: there it is what the index of the library says. */
static float shifted_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t head = r / p->queries, i = r % p->queries, wide = p->keys + 1;
    if (j > i + p->keys - p->queries)
        return inputs->c2p[r * p->keys + inputs->args.relative.index[i - j + p->keys - 1]];
    const int64_t n =
        p->queries + i * p->keys + j; /* past the first row of [keys + 1, queries] */
    const int64_t row = n / wide, column = n % wide;
    return column == 0 ? 0.0f : inputs->c2p[(head * p->queries + row) * p->keys + column - 1];
}

/* make_log_bucket_position, one element of it. */
static int64_t log_bucket(int64_t relative, int64_t buckets, int64_t most)
{
    const int64_t middle = buckets / 2, sign = (relative > 0) - (relative < 0);
    const double far =
        relative < middle && relative > -middle ? (double)(middle - 1) : fabs((double)relative);
    if (far <= (double)middle)
        return relative;
    const double log_position =
        ceil(log(far / (double)middle) / log((double)(most - 1) / (double)middle) *
             (double)(middle - 1)) +
        (double)middle;
    return (int64_t)log_position * sign;
}

static int64_t clamp(int64_t value, int64_t span)
{
    return value < 0 ? 0 : value > 2 * span - 1 ? 2 * span - 1 : value;
}

static int64_t deberta_bucket(const struct problem *p, int64_t relative)
{
    return p->num_buckets ? log_bucket(relative, p->num_buckets, p->max_distance) : relative;
}

/* disentangled_attention_bias: gather of c2p along its last dimension at clamp(rel + span);
 * gather of p2c at clamp(-rel + span) with rel of the keys as queries, then its transpose. */
static float deberta_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t i = r % p->queries, head = r / p->queries, offset = p->query_offset;
    const int64_t span = p->num_buckets ? p->num_buckets : p->max_distance;
    const int64_t c2p_at = clamp(deberta_bucket(p, i + offset - j) + span, span);
    const int64_t p2c_at = clamp(-deberta_bucket(p, j - (i + offset)) + span, span);
    const float scale = (float)p->scale, c2p = inputs->c2p[r * 2 * span + c2p_at],
                p2c = inputs->p2c[(head * p->keys + j) * 2 * span + p2c_at];
    return fmaf(scale, p2c, scale * c2p);
}

/* ---- Any index ---- */

/* Some of them the same column again and again, some one after the other, most anyhow. */
static int32_t any_column(int64_t place, int64_t columns)
{
    const uint64_t z = mix64(31, (uint64_t)place / 40);
    return (int32_t)(z % 4 == 0   ? z / 4 % (uint64_t)columns
                     : z % 4 == 1 ? (z / 4 + (uint64_t)place) % (uint64_t)columns
                                  : mix64(z, (uint64_t)place) % (uint64_t)columns);
}

static void edit_any_index(struct call *call, const void *user)
{
    (void)user;
    const struct problem *p = &call->problem;
    for (EACH_TENSOR(row, signature_of(p->kernel))) {
        const void *index = row->form == FORM_INTEGERS ? call_data(call, row) : NULL;
        for (int64_t i = 0; index && i < p->queries + p->keys - 1; i++)
            ((int32_t *)(uintptr_t)index)[i] = any_column(i, call->columns);
    }
}

static float any_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t columns = inputs->columns,
                  column = any_column(r % p->queries - j + p->keys - 1, columns);
    const float scale = (float)p->scale, c2p = inputs->c2p[r * columns + column];
    if (!inputs->p2c)
        return scale * c2p;
    return fmaf(scale, inputs->p2c[(r / p->queries * p->keys + j) * columns + column],
                scale * c2p);
}

/* One add after the other, in the order of the keys. */
static void law_any_sums(struct tally *t, const struct problem *p)
{
    const struct call *out = tally_run(t, p, edit_any_index, NULL);
    const int64_t columns = problem_extent(p, DIM_COLUMN);
    float *sums = calloc((size_t)columns, sizeof *sums);
    for (int64_t r = 0; sums && out && r < out->outputs[0].rows; r++) {
        memset(sums, 0, (size_t)columns * sizeof *sums);
        for (int64_t j = 0; j < p->keys; j++)
            sums[any_column(r % p->queries - j + p->keys - 1, columns)] +=
                out->x[r * p->keys + j];
        require_same_bits(t, call_row(out, 0, r), sums, columns,
                          "sums in the order of the keys");
    }
    free(sums);
}

/* ---- By distance alone ---- */

/* Every query's and every key's terms are the first one's; an add's x is 1. */
static void edit_no_content(struct call *call, const void *user)
{
    struct posenc_tensor *const terms[] = { owned(&call->args.relative.c2p),
                                            owned(&call->args.relative.p2c) };
    for (int k = 0; k < 2; k++)
        for (int64_t r = 1, n = terms[k]->data ? storage_rows(terms[k]) : 0; r < n; r++)
            memcpy(tensor_row(terms[k], r), tensor_row(terms[k], 0),
                   (size_t)call->columns * sizeof(float));
    edit_x(call, user);
}

static void law_distance(struct tally *t, const struct problem *p)
{
    static const float one = 1.0f;
    const struct call *out = tally_run(t, p, edit_no_content, &one);
    for (int64_t r = 1; out && r < out->outputs[0].rows; r++)
        if (r % p->queries)
            require_same_bits(t, call_row(out, 0, r) + 1, call_row(out, 0, r - 1), p->keys - 1,
                              "one query and one key on");
}

/* ---- Sums ---- */

/* <bias, w> over scores, <terms, sums> over columns, and the magnitudes. */
static void law_adjoint(struct tally *t, const struct problem *back)
{
    struct problem p = *back;
    p.kernel = POSENC_KERNEL_relative_bias;
    if (!law_needs(t, p.kernel))
        return;
    const struct call *bias = tally_run(t, &p, NULL, NULL),
                      *sums = tally_run(t, back, NULL, NULL);
    double forward = 0.0, backward = 0.0, mass = 0.0;
    if (!bias || !sums)
        return;
    for (int64_t r = 0; r < bias->outputs[0].rows; r++) {
        for (int64_t j = 0; j < p.keys; j++) {
            const double term =
                (double)call_row(bias, 0, r)[j] * (double)sums->x[r * p.keys + j];
            forward += term;
            mass += fabs(term);
        }
        for (int64_t c = 0; c < bias->columns; c++)
            backward +=
                (double)bias->c2p[r * bias->columns + c] * (double)call_row(sums, 0, r)[c];
    }
    require_within(t, backward, forward, (double)p.keys * 0x1p-24 * mass,
                   "<A, relative_sum(W)> and <relative_bias(A), W>");
}

static void law_whole_row(struct tally *t, const struct problem *p)
{
    const struct call *sums = tally_run(t, p, NULL, NULL);
    for (int64_t r = 0; sums && r < sums->outputs[0].rows; r++) {
        double got = 0.0, want = 0.0, mass = 0.0;
        for (int64_t c = 0; c < sums->columns; c++)
            got += (double)call_row(sums, 0, r)[c];
        for (int64_t j = 0; j < p->keys; j++) {
            want += (double)sums->x[r * p->keys + j];
            mass += fabs((double)sums->x[r * p->keys + j]);
        }
        require_within(t, got, want, (double)p->keys * 0x1p-24 * mass, "sum of a row");
    }
}

const struct law laws_relative[] = {
    BY_HAND("columns", column_by_hand, .edit = edit_columns),
    BY_HAND("shaw", shaw_by_hand),
    BY_HAND("transformer-xl", shifted_by_hand),
    BY_HAND("deberta", deberta_by_hand),
    BY_HAND("any-index", any_by_hand, .edit = edit_any_index, .problems = "any-index-of-terms"),
    LAW("any-index", law_any_sums, .problems = "any-index-of-sums"),
    LAW("distance", law_distance, .problems = "relative-distance"),
    LAW("adjoint", law_adjoint, .problems = "sums"),
    LAW("whole-row", law_whole_row, .problems = "sums"),
    { 0 },
};
