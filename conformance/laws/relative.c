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
 *   published        DeBERTa-v3's buckets
 *   any-index        an index that no builder makes, in no order, is gathered and summed as it
 *                    is
 *   broken-line      so is one that goes on by one, or not at all, but for one place
 *   distance         without content, terms by column alone, the bias depends on i - j
 *   adjoint          <relative_bias(A), W> = <A, relative_sum(W)>: a sum of at most n keys in
 *                    f32 is within n 2^-24 of the magnitudes
 *   whole-row        what a row sums to stays
 *
 * Shaw et al. 1803.02155; Dai et al. 1901.02860 with kimiyoung/transformer-xl,
 * mem_transformer.py; He et al. 2006.03654 with Hugging Face modeling_deberta_v2.py.
 */
#include "laws.h"

#include <math.h>

/* ---- Columns ---- */

static void edit_columns(struct call *call, const void *user)
{
    (void)user;
    for (EACH_PLACE(at, input_as_writable(&call->args.relative.c2p)))
        place_put(at, (float)at.column);
    for (EACH_PLACE(at, input_as_writable(&call->args.relative.p2c)))
        place_put(at, (float)(1000 * at.column));
}

static float column_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t column = inputs->args.relative.index[r % p->queries - j + p->keys - 1];
    return (float)((p->without_c2p ? 0 : column) + (p->with_p2c ? 1000 * column : 0));
}

/* ---- Each encoding by hand ---- */

/* Terms of the query's and of the key's content at columns. */
static float gathered(const struct call *inputs, int64_t r, int64_t j, int64_t c2p_at,
                      int64_t p2c_at)
{
    const struct problem *p = &inputs->problem;
    const int64_t columns = inputs->columns, key = r / p->queries * p->keys + j;
    const float scale = (float)p->scale, c2p = inputs->c2p[r * columns + c2p_at];
    return inputs->p2c ? fmaf(scale, inputs->p2c[key * columns + p2c_at], scale * c2p)
                       : scale * c2p;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static float shaw_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t i = r % p->queries + p->query_offset, most = p->max_distance;
    return gathered(inputs, r, j, clamp(j - i, -most, most) + most, 0);
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

static int64_t deberta_bucket(const struct problem *p, int64_t relative)
{
    return p->num_buckets ? log_bucket(relative, p->num_buckets, p->max_distance) : relative;
}

/* disentangled_attention_bias: gather of c2p along its last dimension at clamp(rel + span);
 * gather of p2c at clamp(-rel + span) with rel of the keys as queries, then its transpose. */
static float deberta_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t i = r % p->queries + p->query_offset;
    const int64_t span = p->num_buckets ? p->num_buckets : p->max_distance;
    return gathered(inputs, r, j, clamp(deberta_bucket(p, i - j) + span, 0, 2 * span - 1),
                    clamp(-deberta_bucket(p, j - i) + span, 0, 2 * span - 1));
}

/* DeBERTa-v3's columns (256 buckets, 512 positions, span 256) at some distances: the bucket, plus the
 * span. */
static void holds_deberta(struct tally *t, const struct call *out)
{
    static const int printed[][2] = {
        { -600, 0 },         { -512, 0 },        { -511, 256 - 255 }, { -256, 256 - 192 },
        { -128, 256 - 128 }, { -1, 256 - 1 },    { 0, 256 },          { 128, 256 + 128 },
        { 129, 256 + 129 },  { 256, 256 + 192 }, { 510, 256 + 255 },  { 511, 256 + 255 },
        { 512, 511 },        { 600, 511 }
    };
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        const int32_t column = out->args.relative.index[printed[i][0] + out->problem.keys - 1];
        require(t, column == printed[i][1], "distance %d has column %d, not %d", printed[i][0],
                (int)column, printed[i][1]);
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

/* The index of a call, which holds it as one that is only read; NULL: it has none. */
static int32_t *index_of(const struct call *call)
{
    for (EACH_TENSOR(row, signature_of(call->problem.kernel)))
        if (row->form == FORM_INTEGERS)
            return (int32_t *)(uintptr_t)call_data(call, row);
    return NULL;
}

static int64_t places_of(const struct call *call)
{
    return call->problem.queries + call->problem.keys - 1;
}

static void edit_any_index(struct call *call, const void *user)
{
    (void)user;
    int32_t *index = index_of(call);
    for (int64_t i = 0; index && i < places_of(call); i++)
        index[i] = any_column(i, call->columns);
}

static float any_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t column = any_column(r % p->queries - j + p->keys - 1, inputs->columns);
    return gathered(inputs, r, j, column, column);
}

/* ---- A broken line ---- */

/* Columns that rise with the place, fall or stay, but for one place: two are exchanged there, or one comes
 * twice; where they stay, one is another, or all that follow. */
enum line { LINE_RISES, LINE_FALLS, LINE_STAYS };
struct broken_line {
    enum line line;
    bool exchanged;
    int64_t at;
};

static int32_t broken_column(const struct broken_line *broken, int64_t place, int64_t places,
                             int64_t columns)
{
    const bool here = place == broken->at, next = place == broken->at + 1;
    const int64_t from = broken->exchanged ? place + here - next : place - (place > broken->at);
    if (broken->line == LINE_STAYS)
        return (int32_t)(columns / 2 + (broken->exchanged ? here : place > broken->at));
    return (int32_t)(broken->line == LINE_RISES ? from : places - 1 - from);
}

static void edit_broken_line(struct call *call, const void *user)
{
    int32_t *index = index_of(call);
    for (int64_t i = 0; index && i < places_of(call); i++)
        index[i] = broken_column(user, i, places_of(call), call->columns);
}

static void holds_gathered(struct tally *t, const struct call *out)
{
    const struct problem *p = &out->problem;
    for (EACH_ELEMENT(at, out)) {
        const int32_t column =
            out->args.relative.index[at.row % p->queries - at.column + p->keys - 1];
        const float term = gathered(out, at.row, at.column, column, column);
        require_element(t, &at, out->x ? fmaf(x_of(&at), p->x_scale, term) : term, "by hand");
    }
}

/* One add after the other, in the order of the keys. */
static void holds_sums(struct tally *t, const struct call *out)
{
    enum { MOST_COLUMNS = 1024 };
    const struct problem *p = &out->problem;
    for (int64_t r = 0; r < out->outputs[0].rows; r++) {
        const int32_t *index = out->args.relative_sum.index + r % p->queries + p->keys - 1;
        float sums[MOST_COLUMNS] = { 0.0f };
        for (int64_t j = 0; j < p->keys; j++)
            sums[index[-j]] += out->x[r * p->keys + j];
        require_same_bits(t, call_row(out, 0, r), sums, out->columns,
                          "sums in the order of the keys");
    }
}

/* As many places one after the other as kernels look at together. */
enum { BROKEN_PLACES = 64, BROKEN_FROM = 20 };

static void law_broken_line(struct tally *t, const struct problem *p)
{
    const bool sums = signature_of(p->kernel)->work == WORK_SUMS;
    for (int i = 0; i < 2 * BROKEN_PLACES; i++) {
        const int64_t at = BROKEN_FROM + i / 2, places = p->queries + p->keys - 1;
        for (enum line line = LINE_RISES; line <= LINE_STAYS && at + 1 < places; line++) {
            const struct broken_line broken = { line, i % 2 == 1, at };
            const struct law law = { .name = "broken-line",
                                     .holds = sums ? holds_sums : holds_gathered,
                                     .edit = edit_broken_line,
                                     .user = &broken };
            if (sums == (line == LINE_STAYS))
                law_check(t, &law, p);
        }
    }
}

/* ---- By distance alone ---- */

/* Every query's and every key's terms are the first one's; an add's x is 1. */
static void edit_no_content(struct call *call, const void *user)
{
    (void)user;
    repeat_rows(input_as_writable(&call->args.relative.c2p), 1);
    repeat_rows(input_as_writable(&call->args.relative.p2c), 1);
    edit_x(call, &one);
}

/* ---- Sums ---- */

static void compare_adjoint(struct tally *t, const struct call *sums, const struct call *bias)
{
    double mass = 0.0, other = 0.0;
    const double forward = product_of(bias, sums->x, &mass);
    require_within(t, product_of(sums, bias->c2p, &other), forward,
                   (double)sums->problem.keys * 0x1p-24 * mass,
                   "<A, relative_sum(W)> and <relative_bias(A), W>");
}

static void holds_whole_row(struct tally *t, const struct call *sums)
{
    const int64_t keys = sums->problem.keys;
    double got = 0.0, want = 0.0, mass = 0.0;
    for (EACH_ELEMENT(at, sums)) {
        got += (double)at.value;
        if (at.column < sums->columns - 1)
            continue;
        for (int64_t j = 0; j < keys; j++) {
            want += (double)sums->x[at.row * keys + j];
            mass += fabs((double)sums->x[at.row * keys + j]);
        }
        require_within(t, got, want, (double)keys * 0x1p-24 * mass, "sum of a row");
        got = want = mass = 0.0;
    }
}

const struct law laws_relative[] = {
    { "columns", .by_hand = column_by_hand, .edit = edit_columns },
    { "shaw", .by_hand = shaw_by_hand },
    { "transformer-xl", .by_hand = shifted_by_hand },
    { "deberta", .by_hand = deberta_by_hand },
    { "published", .holds = holds_deberta, .problems = "published-buckets" },
    { "any-index", .by_hand = any_by_hand, .edit = edit_any_index,
      .problems = "any-index-of-terms" },
    { "any-index", .by_hand = any_by_hand, .edit = edit_any_index,
      .problems = "any-index-in-f16", .dtype = POSENC_F16 },
    { "any-index", .by_hand = any_by_hand, .edit = edit_any_index,
      .problems = "any-index-in-bf16", .dtype = POSENC_BF16 },
    { "any-index", .holds = holds_sums, .problems = "any-index-of-sums",
      .edit = edit_any_index },
    { "broken-line", .check = law_broken_line },
    { "distance", .holds = holds_by_distance, .problems = "relative-distance",
      .edit = edit_no_content },
    { "adjoint", .compares = compare_adjoint, .problems = "sums", .twin = "relative_bias" },
    { "whole-row", .holds = holds_whole_row, .problems = "sums" },
    { 0 },
};
