/*
 * Laws of terms by relative position: each gather against the encoding's own matrices,
 * transcribed as its authors wrote them.
 *
 *   columns          terms that are their column's number come out as the index
 *   shaw             q_i (a_clip(j-i))^T, gathered for each query and key
 *   transformer-xl   pad a zero column, read the rows one longer, drop the first: every key up
 *   to
 *                    the query
 *   deberta          c2p gathered by bucket(i - j); p2c gathered for keys by bucket(j - i),
 *                    negated, and transposed
 *   any-index        an index that no builder makes, in no order, is gathered and summed as it
 *   is
 *   distance         without content, terms by column alone, the bias depends on i - j
 *   adjoint          <relative_bias(A), W> = <A, relative_sum(W)>: a sum of at most n keys in
 *                    f32 is within n 2^-24 of the magnitudes
 *   whole-row        what a row sums to stays
 *
 * Shaw et al. 1803.02155; Dai et al. 1901.02860 with kimiyoung/transformer-xl,
 * mem_transformer.py; He et al. 2006.03654 with Hugging Face modeling_deberta_v2.py.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/signature.h"
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct problem relative_problem(enum posenc_kernel kernel, enum relative relative,
                                       int64_t queries, int64_t keys)
{
    struct problem p = problem_default(kernel);
    p.relative = relative;
    p.num_buckets = relative == RELATIVE_DEBERTA ? 8 : 0;
    p.max_distance = relative == RELATIVE_DEBERTA ? 32 : 5;
    p.with_p2c = relative == RELATIVE_DEBERTA && kernel != POSENC_KERNEL_relative_sum;
    p.heads = 2;
    p.batch = 2;
    p.queries = queries;
    p.keys = keys;
    p.query_offset = keys - queries;
    p.scale = 1.0;
    return p;
}

/* What a gather of one element should give: `want` for row r and key j, in f32. */
typedef float by_hand(const struct call *pristine, int64_t r, int64_t j);

/* Elements that `concerns` leaves out are anybody's. */
static void check_gather(struct tally *t, const struct problem *p, call_edit *edit,
                         by_hand *want_of,
                         bool (*concerns)(const struct problem *, int64_t i, int64_t j))
{
    struct copy out = { .n = 0 };
    struct call pristine;
    if (run_problem(t, p, edit, NULL, &out) &&
        require(t, call_create(&pristine, p, &memory_plain) == POSENC_OK, "no inputs")) {
        for (int64_t r = 0; r < out.rows[0]; r++)
            for (int64_t j = 0; j < p->keys; j++) {
                if (concerns && !concerns(p, r % p->queries, j))
                    continue;
                float want = want_of(&pristine, r, j);
                if (pristine.x)
                    want = fmaf(pristine.x[r * p->keys + j], p->x_scale, want);
                require_same_bits(t, &copy_row(&out, 0, r)[j], &want, 1, "gathered by hand");
            }
        call_destroy(&pristine);
    }
    copy_free(&out);
    t->problem = NULL;
}

/* ---- Columns ---- */

static void edit_columns(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *const terms[] = { owned(&call->args.relative.c2p),
                                            owned(&call->args.relative.p2c) };
    for (int k = 0; k < 2; k++)
        for (int64_t r = 0, n = terms[k]->data ? tensor_rows(terms[k]) : 0; r < n; r++)
            for (int64_t c = 0; c < call->columns; c++)
                tensor_row(terms[k], r)[c] = (float)(k == 0 ? c : 1000 * c);
}

static float column_by_hand(const struct call *call, int64_t r, int64_t j)
{
    const struct problem *p = &call->problem;
    const int64_t column = call->args.relative.index[r % p->queries - j + p->keys - 1];
    return (float)((p->without_c2p ? 0 : column) + (p->with_p2c ? 1000 * column : 0));
}

static void law_columns(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 12; k++) {
        struct problem p = relative_problem(kernel, (enum relative)(k % 3), k < 6 ? 7 : 20, 37);
        p.without_c2p = k / 3 % 2 == 1;
        p.with_p2c = p.with_p2c || p.without_c2p;
        check_gather(t, &p, edit_columns, column_by_hand, NULL);
    }
}

/* ---- Each encoding by hand ---- */

static float shaw_by_hand(const struct call *call, int64_t r, int64_t j)
{
    const struct problem *p = &call->problem;
    const int64_t i = r % p->queries + p->query_offset, most = p->max_distance;
    const int64_t distance = j - i < -most ? -most : j - i > most ? most : j - i;
    return (float)p->scale * call->c2p[r * (2 * most + 1) + distance + most];
}

static void law_shaw(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 4; k++) {
        struct problem p = relative_problem(kernel, RELATIVE_SHAW, k % 2 ? 20 : 5, 33);
        p.query_offset = k < 2 ? p.query_offset : 3;
        p.scale = 0.125;
        check_gather(t, &p, NULL, shaw_by_hand, NULL);
    }
}

/* The terms of a head, [queries, keys], stand for distances keys - 1 ... 0.  After a zero
 * before each row they are read as [keys + 1, queries] and the first row dropped: what is read
 * as (i, j) is element queries + i keys + j of the padded ones. */
static float shifted_by_hand(const struct call *call, int64_t r, int64_t j)
{
    const struct problem *p = &call->problem;
    const int64_t head = r / p->queries, i = r % p->queries, wide = p->keys + 1;
    const int64_t n =
        p->queries + i * p->keys + j; /* past the first row of [keys + 1, queries] */
    const int64_t row = n / wide, column = n % wide;
    return column == 0 ? 0.0f : call->c2p[(head * p->queries + row) * p->keys + column - 1];
}

static bool up_to_the_query(const struct problem *p, int64_t i, int64_t j)
{
    return j <= i + p->keys - p->queries;
}

static void law_transformer_xl(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 3; k++) {
        struct problem p =
            relative_problem(kernel, RELATIVE_TRANSFORMER_XL, k ? 9 : 21, k == 2 ? 35 : 21);
        check_gather(t, &p, NULL, shifted_by_hand, up_to_the_query);
    }
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
static float deberta_by_hand(const struct call *call, int64_t r, int64_t j)
{
    const struct problem *p = &call->problem;
    const int64_t i = r % p->queries, head = r / p->queries, offset = p->query_offset;
    const int64_t span = p->num_buckets ? p->num_buckets : p->max_distance;
    const int64_t c2p_at = clamp(deberta_bucket(p, i + offset - j) + span, span);
    const int64_t p2c_at = clamp(-deberta_bucket(p, j - (i + offset)) + span, span);
    const float scale = (float)p->scale, c2p = call->c2p[r * 2 * span + c2p_at],
                p2c = call->p2c[(head * p->keys + j) * 2 * span + p2c_at];
    return fmaf(scale, p2c, scale * c2p);
}

static void law_by_matrices(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 6; k++) {
        struct problem p =
            relative_problem(kernel, RELATIVE_DEBERTA, k % 3 ? 40 : 3, k % 3 == 2 ? 40 : 100);
        p.num_buckets = k < 3 ? 16 : 0;
        p.max_distance = k < 3 ? 50 : 24;
        p.scale = 0.07216878364870322; /* 1/sqrt(3 64) */
        check_gather(t, &p, NULL, deberta_by_hand, NULL);
    }
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
    const bool sums = kernel_signature(call->problem.kernel) == SIGNATURE_relative_sum;
    const int32_t *index = sums ? call->args.relative_sum.index : call->args.relative.index;
    for (int64_t i = 0; i < call->problem.queries + call->problem.keys - 1; i++)
        ((int32_t *)(uintptr_t)index)[i] = any_column(i, call->columns);
}

static float any_by_hand(const struct call *call, int64_t r, int64_t j)
{
    const struct problem *p = &call->problem;
    const int64_t column = any_column(r % p->queries - j + p->keys - 1, call->columns);
    const float scale = (float)p->scale, c2p = call->c2p[r * call->columns + column];
    if (!call->p2c)
        return scale * c2p;
    const int64_t key = r / p->queries * p->keys + j;
    return fmaf(scale, call->p2c[key * call->columns + column], scale * c2p);
}

static void law_any_index(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 4; k++) {
        struct problem p = relative_problem(kernel, k % 2 ? RELATIVE_SHAW : RELATIVE_DEBERTA,
                                            k < 2 ? 11 : 19, k < 2 ? 70 : 600);
        if (k >= 2) { /* rows wider than any vector */
            p.num_buckets = k % 2 ? 0 : 128;
            p.max_distance = k % 2 ? 40 : 256;
        }
        p.scale = 0.3;
        check_gather(t, &p, edit_any_index, any_by_hand, NULL);
    }
}

/* One add after the other, in the order of the keys. */
static void law_any_sums(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 4; k++) {
        struct problem p =
            relative_problem(kernel, RELATIVE_SHAW, k % 2 ? 11 : 19, k < 2 ? 70 : 300);
        p.max_distance = k < 2 ? 9 : 400;
        struct copy out = { .n = 0 };
        struct call pristine;
        float *sums = calloc((size_t)problem_extent(&p, DIM_COLUMN), sizeof *sums);
        if (sums && run_problem(t, &p, edit_any_index, NULL, &out) &&
            call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
            for (int64_t r = 0; r < out.rows[0]; r++) {
                memset(sums, 0, (size_t)out.width[0] * sizeof *sums);
                for (int64_t j = 0; j < p.keys; j++)
                    sums[any_column(r % p.queries - j + p.keys - 1, out.width[0])] +=
                        pristine.x[r * p.keys + j];
                require_same_bits(t, copy_row(&out, 0, r), sums, out.width[0],
                                  "sums in the order of the keys");
            }
            call_destroy(&pristine);
        }
        copy_free(&out);
        free(sums);
        t->problem = NULL;
    }
}

/* ---- By distance alone ---- */

/* Every query's and every key's terms are the first one's; an add's x is 1. */
static void edit_no_content(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *const terms[] = { owned(&call->args.relative.c2p),
                                            owned(&call->args.relative.p2c) };
    struct posenc_tensor *x = call_x(call);
    for (int k = 0; k < 2; k++)
        for (int64_t r = 1, n = terms[k]->data ? tensor_rows(terms[k]) : 0; r < n; r++)
            memcpy(tensor_row(terms[k], r), tensor_row(terms[k], 0),
                   (size_t)call->columns * sizeof(float));
    for (int64_t r = 0, n = x->data ? tensor_rows(x) : 0; r < n; r++)
        for (int64_t c = 0; c < x->shape[x->rank - 1]; c++)
            tensor_row(x, r)[c] = 1.0f;
}

static void law_distance(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 6; k++) {
        struct problem p =
            relative_problem(kernel, (enum relative)(k % 3), k < 3 ? 37 : 11, 37);
        struct copy out = { .n = 0 };
        p.scale = 0.3;
        if (run_problem(t, &p, edit_no_content, NULL, &out))
            for (int64_t r = 1; r < out.rows[0]; r++)
                if (r % p.queries)
                    require_same_bits(t, copy_row(&out, 0, r) + 1, copy_row(&out, 0, r - 1),
                                      p.keys - 1, "one query and one key on");
        copy_free(&out);
        t->problem = NULL;
    }
}

/* ---- Sums ---- */

/* <bias, w> over scores, <terms, sums> over columns, and the magnitudes. */
static void require_adjoint(struct tally *t, const struct copy *bias,
                            const struct call *pristine_bias, const struct copy *sums,
                            const struct call *pristine_sums)
{
    double forward = 0.0, backward = 0.0, mass = 0.0;
    const int64_t keys = bias->width[0], columns = sums->width[0];
    for (int64_t r = 0; r < bias->rows[0]; r++) {
        for (int64_t j = 0; j < keys; j++) {
            const double term =
                (double)copy_row(bias, 0, r)[j] * (double)pristine_sums->x[r * keys + j];
            forward += term;
            mass += fabs(term);
        }
        for (int64_t c = 0; c < columns; c++)
            backward +=
                (double)pristine_bias->c2p[r * columns + c] * (double)copy_row(sums, 0, r)[c];
    }
    require_within(t, backward, forward, (double)keys * 0x1p-24 * mass,
                   "<A, relative_sum(W)> and <relative_bias(A), W>");
}

static void law_adjoint(struct tally *t, enum posenc_kernel kernel)
{
    if (!law_needs(t, POSENC_KERNEL_relative_bias))
        return;
    for (int k = 0; k < 6; k++) {
        const enum relative relative = (enum relative)(k % 3);
        struct problem back = relative_problem(kernel, relative, k < 3 ? 37 : 11, 37),
                       p = relative_problem(POSENC_KERNEL_relative_bias, relative, back.queries,
                                            back.keys);
        struct copy bias = { .n = 0 }, sums = { .n = 0 };
        struct call of_bias, of_sums;
        p.with_p2c = false;
        if (run_problem(t, &p, NULL, NULL, &bias) && run_problem(t, &back, NULL, NULL, &sums) &&
            call_create(&of_bias, &p, &memory_plain) == POSENC_OK) {
            if (call_create(&of_sums, &back, &memory_plain) == POSENC_OK) {
                require_adjoint(t, &bias, &of_bias, &sums, &of_sums);
                call_destroy(&of_sums);
            }
            call_destroy(&of_bias);
        }
        copy_free(&bias);
        copy_free(&sums);
        t->problem = NULL;
    }
}

static void law_whole_row(struct tally *t, enum posenc_kernel kernel)
{
    for (int k = 0; k < 6; k++) {
        struct problem p =
            relative_problem(kernel, (enum relative)(k % 3), k < 3 ? 37 : 11, 37);
        struct copy sums = { .n = 0 };
        struct call pristine;
        if (run_problem(t, &p, NULL, NULL, &sums) &&
            call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
            for (int64_t r = 0; r < sums.rows[0]; r++) {
                double got = 0.0, want = 0.0, mass = 0.0;
                for (int64_t c = 0; c < sums.width[0]; c++)
                    got += (double)copy_row(&sums, 0, r)[c];
                for (int64_t j = 0; j < p.keys; j++) {
                    want += (double)pristine.x[r * p.keys + j];
                    mass += fabs((double)pristine.x[r * p.keys + j]);
                }
                require_within(t, got, want, (double)p.keys * 0x1p-24 * mass, "sum of a row");
            }
            call_destroy(&pristine);
        }
        copy_free(&sums);
        t->problem = NULL;
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_relative[] = {
    { "columns", law_columns, KERNELS(K(relative_bias), K(relative_bias_add)) },
    { "shaw", law_shaw, KERNELS(K(relative_bias), K(relative_bias_add)) },
    { "transformer-xl", law_transformer_xl, KERNELS(K(relative_bias), K(relative_bias_add)) },
    { "deberta", law_by_matrices, KERNELS(K(relative_bias), K(relative_bias_add)) },
    { "any-index", law_any_index, KERNELS(K(relative_bias), K(relative_bias_add)) },
    { "any-index", law_any_sums, KERNELS(K(relative_sum)) },
    { "distance", law_distance, KERNELS(K(relative_bias), K(relative_bias_add)) },
    { "adjoint", law_adjoint, KERNELS(K(relative_sum)) },
    { "whole-row", law_whole_row, KERNELS(K(relative_sum)) },
};
const int n_laws_relative = sizeof laws_relative / sizeof laws_relative[0];
