/* Mistakes of biases: ALiBi, T5, values by distance, windows, and terms and sums by relative position. An example is
 * the distance key - query in place of query - key. */
#include "hypothesis.h"

#include "conformance/problem/signature.h"

#include <math.h>

/* ---- Distances ---- */

enum distance {
    DISTANCE_RIGHT,
    DISTANCE_NEGATED,
    DISTANCE_MAGNITUDE,
    DISTANCE_OF_KEY,
    DISTANCE_BEFORE_KEY,
    DISTANCE_BEFORE_LAST,
    DISTANCE_WITHOUT_OFFSET,
    DISTANCE_ONE_MORE,
    DISTANCE_ONE_LESS,
    DISTANCE_ROUNDED
};

/* Returns the distance of the row's query and a key: that of their positions. */
static int64_t right_distance(const struct hypothesis *h, int64_t key)
{
    return h->query + h->call->problem.query_offset - key;
}

/* Returns a wrong distance of the row's query and a key. */
static int64_t wrong_distance(const struct hypothesis *h, int64_t key)
{
    const int64_t distance = right_distance(h, key);
    switch ((enum distance)h->mistake->value) {
    case DISTANCE_NEGATED:
        return -distance;
    case DISTANCE_MAGNITUDE:
        return distance < 0 ? -distance : distance;
    case DISTANCE_OF_KEY:
        return key;
    case DISTANCE_BEFORE_KEY:
        return -key;
    case DISTANCE_BEFORE_LAST:
        return h->width - 1 - key;
    case DISTANCE_WITHOUT_OFFSET:
        return h->query - key;
    case DISTANCE_ONE_MORE:
        return distance + 1;
    case DISTANCE_ONE_LESS:
        return distance - 1;
    case DISTANCE_RIGHT:
    case DISTANCE_ROUNDED:
        break;
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
        break;
    }
    return exp2(-most * (double)(i + 1) / exp2(ceil(log2(n))));
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

/* Returns slope times -distance, where the distance may have a sign. */
static double alibi_bias(const struct hypothesis *h, double distance)
{
    const struct problem *p = &h->call->problem;
    const int64_t slope = p->slopes_by_batch ? h->head : h->head % p->heads;
    return (double)h->call->slopes[slope] * -distance;
}

static double score_alibi(struct hypothesis *h, int64_t key)
{
    const int64_t right = right_distance(h, key);
    const double magnitude = fabs((double)right);
    if (h->call->problem.causal && right < 0)
        return -(double)INFINITY;
    if (h->mistake->value == DISTANCE_ONE_MORE)
        return alibi_bias(h, magnitude + 1.0);
    if (h->mistake->value == DISTANCE_ROUNDED)
        return alibi_bias(h, hypothesis_round(h, magnitude));
    return alibi_bias(h, (double)wrong_distance(h, key));
}

/* Masks keys one late (value -1) or one early (1), or with another value than -infinity. */
static double score_mask(struct hypothesis *h, int64_t key)
{
    const double value = h->mistake->value;
    const bool is_shift = fabs(value) == 1.0;
    const int64_t right = right_distance(h, key),
                  first_unmasked = is_shift ? (int64_t)value : 0;
    if (h->call->problem.causal && right < first_unmasked)
        return is_shift ? -(double)INFINITY : value;
    return alibi_bias(h, fabs((double)right));
}

/* ---- T5 ---- */

/* Makes the oracle compute the bias of one distance, in a call of one query and one key. */
static bool edit_one_score(struct hypothesis *h)
{
    h->edited.problem.queries = 1;
    h->edited.outputs[0].width = 1;
    return hypothesis_remove_x(h);
}

static double score_t5(struct hypothesis *h, int64_t key)
{
    double score;
    h->edited.problem.query_offset = wrong_distance(h, key);
    oracle_compute_row(h->oracle, 0, h->head, &score, NULL);
    return score;
}

static bool edit_bidirectional(struct hypothesis *h)
{
    struct problem *p = &h->edited.problem;
    p->bidirectional = h->mistake->value != 0.0;
    return p->num_buckets >= 4; /* the oracle needs two buckets in each direction */
}

/* A smaller table lacks the buckets that the oracle would read. */
static bool edit_num_buckets(struct hypothesis *h)
{
    const struct problem *p = &h->edited.problem;
    return h->call->problem.num_buckets >= p->num_buckets && p->max_distance > p->num_buckets;
}

/* ---- Tables ---- */

enum table_edit {
    TABLE_NEXT_HEAD,
    TABLE_NEXT_ENTRY,
    TABLE_PREVIOUS_ENTRY,
    TABLE_TRANSPOSED,
    TABLE_WITHOUT_LAST
};

/* Exchanges the values of a table that a bias reads. It has an entry for each bucket, distance or row of a window. */
static bool edit_table(struct hypothesis *h)
{
    const struct problem *p = &h->call->problem;
    const bool heads_first = kernel_signature(p->kernel) == SIGNATURE_distance;
    const int64_t entries = problem_extent(p, heads_first ? DIM_COLUMN : DIM_ROW),
                  last = entries - 1, buckets = entries / (p->bidirectional ? 2 : 1);
    const int64_t step = heads_first ? 1 : p->heads, head_step = heads_first ? entries : 1;
    float *table = hypothesis_copy(h, h->call->table, entries * p->heads);
    for (int64_t i = 0; table && i < entries * p->heads; i++) {
        const int64_t entry = i / p->heads, head = i % p->heads;
        int64_t from = entry * step + head * head_step;
        float *to = &table[from];
        switch ((enum table_edit)h->mistake->value) {
        case TABLE_NEXT_HEAD:
            from = entry * step + (head + 1) % p->heads * head_step;
            break;
        case TABLE_NEXT_ENTRY:
            from += entry < last ? step : 0;
            break;
        case TABLE_PREVIOUS_ENTRY:
            from -= entry > 0 ? step : 0;
            break;
        case TABLE_TRANSPOSED:
            from = heads_first ? entry * p->heads + head : head * entries + entry;
            break;
        case TABLE_WITHOUT_LAST: /* T5: the last bucket of each direction is the one before it */
            from -= entry % buckets == buckets - 1 ? step : 0;
            break;
        }
        *to = h->call->table[from];
    }
    h->edited.table = table;
    return table;
}

/* Returns the value at a wrong distance. A table without that distance makes the bias unknown. */
static double score_distance(struct hypothesis *h, int64_t key)
{
    const int64_t columns = h->call->columns, first = h->call->args.distance.first;
    const int64_t column =
        h->mistake->value == DISTANCE_OF_KEY ? key : wrong_distance(h, key) - first;
    const float *values = h->call->table + h->head % h->call->problem.heads * columns;
    return column < 0 || column >= columns ? UNKNOWN_VALUE : (double)values[column];
}

/* Returns the bias of key and query, in a square of scores. */
static double score_window_transposed(struct hypothesis *h, int64_t key)
{
    const struct problem *p = &h->call->problem;
    const int64_t row = oracle_window_row(p, key, h->query);
    return (double)h->call->table[row * p->heads + h->head % p->heads];
}

/* ---- Terms and sums by relative position ---- */

enum relative_error {
    INDEX_REVERSED,
    INDEX_NEXT,
    INDEX_NONE,
    SCALE_C2P_TWICE,
    SCALE_P2C_NONE,
    P2C_OF_QUERY,
    P2C_REVERSED,
    SUM_LAST
};

/* Returns the column of the row's query and a key, from the other end of the index if it is read in reverse. */
static int64_t wrong_column(const struct hypothesis *h, int64_t key, bool reversed)
{
    const struct problem *p = &h->call->problem;
    const int64_t i = h->query - key + p->keys - 1, last = p->queries + p->keys - 2;
    const int64_t columns = h->call->columns,
                  column = oracle_columns(h->oracle)[reversed ? last - i : i];
    if (h->mistake->value == INDEX_NEXT)
        return column + 1 < columns ? column + 1 : columns - 1;
    return h->mistake->value == INDEX_NONE && key < columns ? key : column;
}

static void row_relative(struct hypothesis *h)
{
    const struct call *call = h->call;
    const enum relative_error error = (enum relative_error)h->mistake->value;
    const double scale = (double)(float)call->problem.scale,
                 c2p_scale = error == SCALE_C2P_TWICE ? scale * scale : scale,
                 p2c_scale = error == SCALE_P2C_NONE ? 1.0 : scale;
    const int64_t keys = call->problem.keys, columns = call->columns;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t key = error == P2C_OF_QUERY && h->query < keys ? h->query : j;
        const int64_t c2p = wrong_column(h, j, error == INDEX_REVERSED),
                      p2c =
                          wrong_column(h, j, error == INDEX_REVERSED || error == P2C_REVERSED);
        double first = 0.0, second = 0.0;
        if (call->c2p)
            first = c2p_scale * (double)call->c2p[h->row * columns + c2p];
        if (call->p2c)
            second = p2c_scale * (double)call->p2c[(h->head * keys + key) * columns + p2c];
        h->want[j] = first + second;
        h->magnitudes[j] = fmax(fabs(first), fabs(second));
    }
}

static bool edit_relative(struct hypothesis *h)
{
    h->is_term = true;
    return true;
}

enum { TERMS_WITHOUT_C2P, TERMS_WITHOUT_P2C, TERMS_EXCHANGED };

static bool edit_terms(struct hypothesis *h)
{
    const struct call *call = h->call;
    h->edited.c2p = NULL;
    h->edited.p2c = NULL;
    if (h->mistake->value != TERMS_WITHOUT_C2P)
        h->edited.c2p = h->mistake->value == TERMS_EXCHANGED ? call->p2c : call->c2p;
    if (h->mistake->value != TERMS_WITHOUT_P2C)
        h->edited.p2c = h->mistake->value == TERMS_EXCHANGED ? call->c2p : call->p2c;
    return h->mistake->value == TERMS_EXCHANGED ? call->problem.queries == call->problem.keys
                                                : h->edited.c2p || h->edited.p2c;
}

static void row_relative_sum(struct hypothesis *h)
{
    for (int64_t c = 0; c < h->width; c++)
        h->want[c] = 0.0;
    for (int64_t j = 0; j < h->call->problem.keys; j++) {
        const float x = h->call->x[h->row * h->call->problem.keys + j];
        double *to = &h->want[wrong_column(h, j, h->mistake->value == INDEX_REVERSED)];
        *to = (double)(h->mistake->value == SUM_LAST ? x : (float)*to + x);
    }
}

/* ---- The table ---- */

#define DISTANCE(kind) .value = DISTANCE_##kind
#define ALIBI(kind)    "alibi", .score = score_alibi, DISTANCE(kind)
#define MASK(number)   "alibi", .score = score_mask, .value = (number)
#define SLOPES(kind)   "alibi", .edit = edit_slopes, .value = SLOPES_##kind
#define T5(kind)       "t5", .edit = edit_one_score, .score = score_t5, DISTANCE(kind)
#define VALUES(kind)   "distance", .score = score_distance, DISTANCE(kind)
#define ENTRIES(kind)  .edit = edit_table, .value = TABLE_##kind
#define RELATIVE(kind) "relative", .edit = edit_relative, .row = row_relative, .value = (kind)
#define TERMS(kind)    "relative", .edit = edit_terms, .value = (kind)
#define COLUMNS(kind)  "relative_sum", .row = row_relative_sum, .value = (kind)
const struct mistake mistakes_of_scores[] = {
    { "causal is ignored: keys after the query are not masked", "alibi", SET("causal", 0.0) },
    { "keys after the query are masked without causal", "alibi", SET("causal", 1.0) },
    { "the causal mask begins one key late", MASK(-1.0) },
    { "the causal mask begins one key early: the query's own key is masked", MASK(1.0) },
    { "masked keys have -1e9 in place of -infinity", MASK(-1e9) },
    { "masked keys have -1e4 in place of -infinity", MASK(-1e4) },
    { "masked keys have the least f32 in place of -infinity", MASK(-0x1.fffffep127) },
    { "query_offset is ignored", "alibi t5 relative", SET("query_offset", 0.0) },
    { "query_offset is one too high", "alibi t5 relative", ADD("query_offset", 1.0) },
    { "query_offset is one too low", "alibi t5 relative", ADD("query_offset", -1.0) },
    { "keys after the query have a positive bias", ALIBI(RIGHT) },
    { "the bias is the slope times the distance, without the minus", ALIBI(NEGATED) },
    { "the bias counts keys from 0, as slope times key", ALIBI(BEFORE_KEY) },
    { "the bias counts keys from 0, as slope times -key", ALIBI(OF_KEY) },
    { "the bias counts keys from the last one, and not from the query", ALIBI(BEFORE_LAST) },
    { "every distance is one too large", ALIBI(ONE_MORE) },
    { "distances are rounded to bf16", ALIBI(ROUNDED), .type = POSENC_DTYPE_BF16 },
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
    { "max_distance is 128 whatever is given", "t5", SET("max_distance", 128.0) },
    { "num_buckets is 32 whatever is given", "t5", SET("num_buckets", 32.0),
      .edit = edit_num_buckets },
    { "the last bucket is never used", "t5", ENTRIES(WITHOUT_LAST) },
    { "the bucket is one too high", "t5", ENTRIES(NEXT_ENTRY) },
    { "the bucket is one too low", "t5", ENTRIES(PREVIOUS_ENTRY) },
    { "the sign of the distance is exchanged: key - query for query - key", VALUES(NEGATED) },
    { "the sign of the distance is lost", VALUES(MAGNITUDE) },
    { "the value is that of the key's index", VALUES(OF_KEY) },
    { "query_offset is ignored", VALUES(WITHOUT_OFFSET) },
    { "each distance is one too high", VALUES(ONE_MORE) },
    { "each distance is one too low", VALUES(ONE_LESS) },
    { "each index is one too high", "window", ENTRIES(NEXT_ENTRY) },
    { "the bias is that of the next head", "t5 distance window", ENTRIES(NEXT_HEAD) },
    { "rows and columns of the table are exchanged", "t5 distance window",
      ENTRIES(TRANSPOSED) },
    { "query and key are exchanged in the index", "window", .score = score_window_transposed },

    { "the index is read in reverse: by key - query", RELATIVE(INDEX_REVERSED) },
    { "each column is one too high", RELATIVE(INDEX_NEXT) },
    { "the relative shift is missing: the column is the key's index", RELATIVE(INDEX_NONE) },
    { "p2c is missing", TERMS(TERMS_WITHOUT_P2C) },
    { "c2p is missing", TERMS(TERMS_WITHOUT_C2P) },
    { "c2p and p2c are exchanged", TERMS(TERMS_EXCHANGED) },
    { "scale is ignored", "relative", SET("scale", 1.0) },
    { "scale is applied twice", "relative", POWER("scale", 2.0) },
    { "the sign of scale is lost", "relative", MAGNITUDE("scale") },
    { "c2p is scaled twice", RELATIVE(SCALE_C2P_TWICE) },
    { "p2c is not scaled", RELATIVE(SCALE_P2C_NONE) },
    { "p2c is read at the query, not at the key", RELATIVE(P2C_OF_QUERY) },
    { "the index is read in reverse for p2c", RELATIVE(P2C_REVERSED) },
    { "the index is read in reverse: by key - query", COLUMNS(INDEX_REVERSED) },
    { "only the last weight of each column counts", COLUMNS(SUM_LAST) },
    { .sentence = NULL },
};
