/* Mistakes of biases: ALiBi, T5, values by distance, and tables that biases are read from. */
#include "hypothesis.h"

#include <math.h>
#include <string.h>

/* ---- Distances ---- */

/* Wrong distances of a query and a key. */
enum distance {
    DISTANCE_RIGHT,
    DISTANCE_NEGATED,
    DISTANCE_MAGNITUDE,
    DISTANCE_OF_KEY,
    DISTANCE_BEFORE_KEY,
    DISTANCE_BEFORE_LAST,
    DISTANCE_WITHOUT_OFFSET,
    DISTANCE_ONE_MORE,
    DISTANCE_ONE_LESS
};

static int64_t wrong_distance(const struct hypothesis *h, int64_t query, int64_t key)
{
    const int64_t distance = query + h->call->problem.query_offset - key;
    switch ((enum distance)h->mistake->value) {
    case DISTANCE_RIGHT:
        break;
    case DISTANCE_NEGATED:
        return -distance;
    case DISTANCE_MAGNITUDE:
        return distance < 0 ? -distance : distance;
    case DISTANCE_OF_KEY:
        return key;
    case DISTANCE_BEFORE_KEY:
        return -key;
    case DISTANCE_BEFORE_LAST:
        return h->call->outputs[0].width - 1 - key;
    case DISTANCE_WITHOUT_OFFSET:
        return query - key;
    case DISTANCE_ONE_MORE:
        return distance + 1;
    case DISTANCE_ONE_LESS:
        return distance - 1;
    }
    return distance;
}

/* ---- ALiBi ---- */

enum slopes {
    SLOPES_REVERSED,
    SLOPES_FIRST,
    SLOPES_SHARED,
    SLOPES_GEOMETRIC,
    SLOPES_FROM_0,
    SLOPES_OF_POWER
};

static double wrong_slope(const struct hypothesis *h, int64_t heads, int64_t i)
{
    const float *slopes = h->call->slopes;
    const double most = h->call->problem.alibi_bias_max, n = (double)heads;
    double power = 1.0;
    switch ((enum slopes)h->mistake->value) {
    case SLOPES_REVERSED:
        return (double)slopes[i - i % heads + heads - 1 - i % heads];
    case SLOPES_FIRST:
        return (double)slopes[i - i % heads];
    case SLOPES_SHARED:
        return (double)slopes[i % heads];
    case SLOPES_GEOMETRIC:
        return exp2(-most * (double)(i + 1) / n);
    case SLOPES_FROM_0:
        return exp2(-most * (double)i / n);
    case SLOPES_OF_POWER:
        while (power < n)
            power *= 2.0;
        return exp2(-most * (double)(i + 1) / power);
    }
    return 0.0;
}

static bool edit_slopes(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const int64_t n = p->heads * (p->slopes_by_batch ? p->batch : 1);
    float *slopes = hypothesis_copy(h, h->call->slopes, n);
    for (int64_t i = 0; slopes && i < n; i++)
        slopes[i] = (float)wrong_slope(h, p->heads, i);
    h->edited.slopes = slopes;
    return slopes;
}

static double slope_of(const struct hypothesis *h, int64_t head)
{
    const struct problem *p = &h->call->problem;
    return (double)h->call->slopes[p->slopes_by_batch ? head : head % p->heads];
}

/* The bias is slope times -distance, which has a sign here. */
static bool row_alibi_distance(struct hypothesis *h, int o, int64_t r, double *want,
                               double *magnitudes)
{
    const struct hypothesis_place at = hypothesis_place(h, r);
    const struct problem *p = &h->call->problem;
    (void)o;
    for (int64_t j = 0; j < h->call->outputs[0].width; j++) {
        const bool masked = p->causal && j > at.query + p->query_offset;
        double distance = (double)wrong_distance(h, at.query, j);
        if (h->mistake->value == DISTANCE_ONE_MORE)
            distance = fabs((double)(at.query + p->query_offset - j)) + 1.0;
        want[j] = masked ? -(double)INFINITY : slope_of(h, at.head) * -distance;
    }
    hypothesis_finish_terms(h, r, want, magnitudes);
    return true;
}

static bool row_alibi_bf16(struct hypothesis *h, int o, int64_t r, double *want,
                           double *magnitudes)
{
    const struct hypothesis_place at = hypothesis_place(h, r);
    const struct problem *p = &h->call->problem;
    (void)o;
    for (int64_t j = 0; j < h->call->outputs[0].width; j++) {
        const int64_t query = at.query + p->query_offset, distance = query - j;
        const float rounded =
            storage_round(POSENC_DTYPE_BF16, (float)(distance < 0 ? -distance : distance));
        want[j] = p->causal && j > query ? -(double)INFINITY
                                         : slope_of(h, at.head) * -(double)rounded;
    }
    hypothesis_finish_terms(h, r, want, magnitudes);
    return true;
}

/* Masks keys from another distance on, or with a finite value below 0. */
static bool row_alibi_mask(struct hypothesis *h, int o, int64_t r, double *want,
                           double *magnitudes)
{
    const struct hypothesis_place at = hypothesis_place(h, r);
    const struct problem *p = &h->call->problem;
    const double value = h->mistake->value;
    const bool is_shift = fabs(value) == 1.0;
    (void)o;
    for (int64_t j = 0; j < h->call->outputs[0].width; j++) {
        const int64_t distance = at.query + p->query_offset - j;
        const bool masked = p->causal && distance < (is_shift ? (int64_t)value : 0);
        want[j] = !masked    ? slope_of(h, at.head) * -fabs((double)distance)
                  : is_shift ? -(double)INFINITY
                             : value;
    }
    hypothesis_finish_terms(h, r, want, magnitudes);
    return true;
}

/* ---- T5 ---- */

/* Makes the oracle compute the bias of one distance, in a call of one query and one key. */
static bool edit_one_score(struct hypothesis *h)
{
    h->edited.problem.queries = 1;
    h->edited.outputs[0].width = 1;
    return hypothesis_remove_x(h);
}

static bool row_t5_distance(struct hypothesis *h, int o, int64_t r, double *want,
                            double *magnitudes)
{
    const struct hypothesis_place at = hypothesis_place(h, r);
    for (int64_t j = 0; j < h->call->outputs[0].width; j++) {
        double magnitude;
        h->edited.problem.query_offset = wrong_distance(h, at.query, j);
        hypothesis_oracle_row(h, o, at.head, &want[j], &magnitude);
    }
    hypothesis_finish_terms(h, r, want, magnitudes);
    return true;
}

static bool edit_bidirectional(struct hypothesis *h)
{
    struct problem *p = &h->edited.problem;
    p->bidirectional = h->mistake->value != 0.0;
    return p->num_buckets >= 4; /* the oracle needs two buckets in each direction */
}

/* ---- Tables ---- */

/* Rows and columns of a table that a bias reads: a row or a column for each head. */
struct table_shape {
    int64_t rows, columns;
    bool heads_last;
};

static struct table_shape shape_of(const struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    if (kernel_signature(p->kernel) == SIGNATURE_distance)
        return (struct table_shape){ p->heads, h->call->columns, false };
    const int64_t window =
        (2 * p->window_height - 1) * (2 * p->window_width - 1) + (p->window_class ? 3 : 0);
    const int64_t rows = kernel_signature(p->kernel) == SIGNATURE_t5 ? p->num_buckets
                         : p->distances > 0                          ? p->distances
                                                                     : window;
    return (struct table_shape){ rows, p->heads, true };
}

enum table_edit { TABLE_NEXT_HEAD, TABLE_NEXT_ENTRY, TABLE_PREVIOUS_ENTRY, TABLE_TRANSPOSED };

static int64_t wrong_element(enum table_edit kind, const struct table_shape *shape, int64_t i)
{
    const int64_t n = shape->rows * shape->columns, row = i / shape->columns,
                  column = i % shape->columns;
    const int64_t head_step = shape->heads_last ? 1 : shape->columns;
    const int64_t step = kind == TABLE_PREVIOUS_ENTRY ? -1 : 1;
    if (kind == TABLE_TRANSPOSED)
        return column * shape->rows + row;
    if (kind != TABLE_NEXT_HEAD) { /* the entry of the same head, which ends do not have */
        const int64_t entry = shape->heads_last ? row + step : column + step;
        const int64_t most = (shape->heads_last ? shape->rows : shape->columns) - 1;
        return entry < 0 || entry > most ? i
                                         : i + step * (shape->heads_last ? shape->columns : 1);
    }
    return head_step == 1 ? row * shape->columns + (column + 1) % shape->columns
                          : (i + head_step) % n;
}

static bool edit_table(struct hypothesis *h)
{
    const struct table_shape shape = shape_of(h);
    float *table = hypothesis_copy(h, h->call->table, shape.rows * shape.columns);
    for (int64_t i = 0; table && i < shape.rows * shape.columns; i++)
        table[i] = h->call->table[wrong_element((enum table_edit)h->mistake->value, &shape, i)];
    h->edited.table = table;
    return table;
}

/* Replaces the last bucket of each direction by the one before it. */
static bool edit_without_last(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const int64_t buckets = p->num_buckets / (p->bidirectional ? 2 : 1);
    float *table = hypothesis_copy(h, h->call->table, p->num_buckets * p->heads);
    for (int64_t i = 0; table && i < p->num_buckets * p->heads; i++)
        if (i / p->heads % buckets == buckets - 1)
            table[i] = h->call->table[i - p->heads];
    h->edited.table = table;
    return table && buckets > 1;
}

/* A bias whose table has no entry for a wrong distance is unknown. */
static bool row_distance(struct hypothesis *h, int o, int64_t r, double *want,
                         double *magnitudes)
{
    const struct hypothesis_place at = hypothesis_place(h, r);
    const struct problem *p = &h->call->problem;
    const int64_t columns = h->call->columns, first = h->call->args.distance.first;
    const float *values = h->call->table + at.head % p->heads * columns;
    (void)o;
    for (int64_t j = 0; j < h->call->outputs[0].width; j++) {
        const int64_t column =
            h->mistake->value == DISTANCE_OF_KEY ? j : wrong_distance(h, at.query, j) - first;
        want[j] = column < 0 || column >= columns ? UNKNOWN_VALUE : (double)values[column];
        magnitudes[j] = fabs(want[j]);
        if (want[j] != UNKNOWN_VALUE && kernel_takes_x(p->kernel))
            want[j] +=
                (double)h->call->x[r * h->call->outputs[0].width + j] * (double)p->x_scale;
    }
    return true;
}

/* ---- The table ---- */

#define OFFSET         "alibi t5 relative"
#define DISTANCE(kind) .value = DISTANCE_##kind
#define ALIBI(kind)    "alibi", .row = row_alibi_distance, DISTANCE(kind)
#define T5(kind)       "t5", .edit = edit_one_score, .row = row_t5_distance, DISTANCE(kind)
#define VALUES(kind)   "distance", .row = row_distance, DISTANCE(kind)
#define SLOPES(kind)   "alibi", .edit = edit_slopes, .value = SLOPES_##kind
#define MASK(number)   "alibi", .row = row_alibi_mask, .value = (number)
#define ELEMENT(kind)  .edit = edit_table, .value = TABLE_##kind
const struct mistake mistakes_of_scores[] = {
    { "causal is ignored: keys after the query are not masked", "alibi",
      .fields = { { "causal", EDIT_SET, 0.0 } } },
    { "keys after the query are masked without causal", "alibi",
      .fields = { { "causal", EDIT_SET, 1.0 } } },
    { "the causal mask begins one key late", MASK(-1.0) },
    { "the causal mask begins one key early: the query's own key is masked", MASK(1.0) },
    { "masked keys have -1e9 in place of -infinity", MASK(-1e9) },
    { "masked keys have -1e4 in place of -infinity", MASK(-1e4) },
    { "masked keys have the least f32 in place of -infinity", MASK(-0x1.fffffep127) },
    { "query_offset is ignored", OFFSET, .fields = { { "query_offset", EDIT_SET, 0.0 } } },
    { "query_offset is one too high", OFFSET, .fields = { { "query_offset", EDIT_ADD, 1.0 } } },
    { "query_offset is one too low", OFFSET, .fields = { { "query_offset", EDIT_ADD, -1.0 } } },
    { "keys after the query have a positive bias", ALIBI(RIGHT) },
    { "the bias is the slope times the distance, without the minus", ALIBI(NEGATED) },
    { "the bias counts keys from 0, as slope times key", ALIBI(BEFORE_KEY) },
    { "the bias counts keys from 0, as slope times -key", ALIBI(OF_KEY) },
    { "the bias counts keys from the last one, and not from the query", ALIBI(BEFORE_LAST) },
    { "every distance is one too large", ALIBI(ONE_MORE) },
    { "distances are rounded to bf16", "alibi", .row = row_alibi_bf16 },
    { "the slopes are in reverse order", SLOPES(REVERSED) },
    { "every head has the slope of the first one", SLOPES(FIRST) },
    { "every batch has the slopes of the first one", SLOPES(SHARED) },
    { "the slopes are 2^(-8i/n) for any number n of heads", SLOPES(GEOMETRIC) },
    { "the exponents of the slopes begin at 0", SLOPES(FROM_0) },
    { "the slopes are the first ones of the next power of two", SLOPES(OF_POWER) },
    { "bidirectional is ignored: buckets are those of one direction", "t5",
      .edit = edit_bidirectional, .value = 0.0 },
    { "buckets are those of both directions without bidirectional", "t5",
      .edit = edit_bidirectional, .value = 1.0 },
    { "the sign of the distance is exchanged: key - query for query - key", T5(NEGATED) },
    { "keys after the query have the bucket of their distance", T5(MAGNITUDE) },
    { "the bucket is that of the key's index", T5(OF_KEY) },
    { "the bucket is that of the key's index", T5(BEFORE_KEY) },
    { "max_distance is 128 whatever is given", "t5",
      .fields = { { "max_distance", EDIT_SET, 128.0 } } },
    { "the last bucket is never used", "t5", .edit = edit_without_last },
    { "the bucket is one too high", "t5", ELEMENT(NEXT_ENTRY) },
    { "the bucket is one too low", "t5", ELEMENT(PREVIOUS_ENTRY) },
    { "the sign of the distance is exchanged: key - query for query - key", VALUES(NEGATED) },
    { "the sign of the distance is lost", VALUES(MAGNITUDE) },
    { "the value is that of the key's index", VALUES(OF_KEY) },
    { "query_offset is ignored", VALUES(WITHOUT_OFFSET) },
    { "each distance is one too high", VALUES(ONE_MORE) },
    { "each distance is one too low", VALUES(ONE_LESS) },
    { "each index is one too high", "window", ELEMENT(NEXT_ENTRY) },
    { "the bias is that of the next head", "t5 distance window", ELEMENT(NEXT_HEAD) },
    { "rows and columns of the table are exchanged", "t5 distance window",
      ELEMENT(TRANSPOSED) },
    { .sentence = NULL },
};
