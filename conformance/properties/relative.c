/*
 * Properties of terms by relative position: each gather against the encoding's own matrices,
 * transcribed as its authors wrote them.
 *
 *   shaw             q_i (a_clip(j-i))^T, gathered for each query and key
 *   transformer-xl   pad a zero column, read the rows one longer, drop the first: every key up
 *                    to the query
 *   deberta          c2p gathered by bucket(i - j); p2c gathered for keys by bucket(j - i),
 *                    negated, and transposed
 *   broken-line      an index that goes on by one, or not at all, but for one place, is gathered
 *                    and summed as it is
 *   distance         without content, terms by column alone, the bias depends on i - j
 *   adjoint          <relative_bias(A), W> = <A, relative_sum(W)>: a sum of at most n keys in
 *                    f32 is within n 2^-24 of the magnitudes
 *
 * Shaw et al. 1803.02155; Dai et al. 1901.02860 with kimiyoung/transformer-xl,
 * mem_transformer.py; He et al. 2006.03654 with Hugging Face modeling_deberta_v2.py.
 */
#include "properties.h"

#include <math.h>

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

/* ---- A broken line ---- */

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
    if (!require(t, out->columns <= MOST_COLUMNS, "more than %d columns", MOST_COLUMNS))
        return;
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

static void property_broken_line(struct tally *t, const struct problem *p)
{
    const bool sums = signature_of(p->kernel)->work == WORK_SUMS;
    for (int i = 0; i < 2 * BROKEN_PLACES; i++) {
        const int64_t at = BROKEN_FROM + i / 2, places = p->queries + p->keys - 1;
        for (enum line line = LINE_RISES; line <= LINE_STAYS && at + 1 < places; line++) {
            const struct broken_line broken = { line, i % 2 == 1, at };
            const struct property property = { .name = "broken-line",
                                               .holds = sums ? holds_sums : holds_gathered,
                                               .edit = edit_broken_line,
                                               .user = &broken };
            if (sums == (line == LINE_STAYS))
                property_check(t, &property, p);
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

const struct property properties_relative[] = {
    { "shaw", .by_hand = shaw_by_hand },
    { "transformer-xl", .by_hand = shifted_by_hand },
    { "deberta", .by_hand = deberta_by_hand },
    { "broken-line", .check = property_broken_line },
    { "distance", .holds = holds_by_distance, .problems = "relative-distance",
      .edit = edit_no_content },
    { "adjoint", .compares = compare_adjoint, .problems = "sums", .twin = "relative_bias" },
    { 0 },
};
