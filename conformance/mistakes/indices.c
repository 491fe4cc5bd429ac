/* Mistakes of indices: biases of windows, and terms and sums by relative position. */
#include "hypothesis.h"

#include "conformance/problem/signature.h"

#include <math.h>

/* ---- Indices ---- */

/* Limit of the elements of an index, which the oracle computes for each mistake. */
enum { MOST_ELEMENTS = 1 << 22 };

/* Asks the oracle for the index of each query and key: the index that an implementation has built may be wrong. The
 * rows of a bias whose table has its own row or column numbers are these indices. */
static bool read_index(struct hypothesis *h, const struct call *probe)
{
    const struct problem *p = &h->call->problem;
    if (p->keys > MOST_ELEMENTS / p->queries)
        return false;
    struct oracle *oracle = oracle_create(probe);
    double *row = arena_get(&h->arena, (size_t)(p->keys + 1) * sizeof *row);
    h->index = arena_get(&h->arena, (size_t)(p->queries * p->keys + 1) * sizeof *h->index);
    for (int64_t q = 0; oracle && row && h->index && q < p->queries; q++) {
        oracle_compute_row(oracle, 0, q, row, NULL);
        for (int64_t j = 0; j < p->keys; j++)
            h->index[q * p->keys + j] = (int32_t)row[j];
    }
    oracle_destroy(oracle);
    return oracle && row && h->index;
}

static bool edit_window_index(struct hypothesis *h)
{
    const int64_t heads = h->call->problem.heads,
                  n = problem_extent(&h->call->problem, DIM_ROW) * heads;
    struct call probe = h->edited;
    float *table = arena_get(&h->arena, (size_t)(n + 1) * sizeof *table);
    for (int64_t i = 0; table && i < n; i++)
        table[i] = (float)(i / heads);
    probe.problem.kernel = POSENC_KERNEL_WINDOW_BIAS;
    probe.table = table;
    return table && read_index(h, &probe);
}

static bool edit_relative_index(struct hypothesis *h)
{
    const int64_t queries = h->call->problem.queries, columns = h->call->columns;
    struct call probe = h->edited;
    float *terms = arena_get(&h->arena, (size_t)(queries * columns + 1) * sizeof *terms);
    for (int64_t i = 0; terms && i < queries * columns; i++)
        terms[i] = (float)(i % columns);
    probe.problem.kernel = POSENC_KERNEL_RELATIVE_BIAS;
    probe.problem.scale = 1.0;
    probe.outputs[0].width = probe.problem.keys;
    probe.c2p = terms;
    probe.p2c = NULL;
    return terms && read_index(h, &probe);
}

/* The bias of key and query, in a square of scores. */
static bool row_window_transposed(struct hypothesis *h, int o, int64_t r, double *want,
                                  double *magnitudes)
{
    const struct hypothesis_place at = hypothesis_place(h, r);
    const int64_t heads = h->call->problem.heads;
    (void)o;
    for (int64_t j = 0; j < h->call->problem.keys; j++)
        want[j] =
            (double)h->call->table[h->index[j * h->call->problem.keys + at.query] * heads +
                                   at.head % heads];
    hypothesis_finish_terms(h, r, want, magnitudes);
    return true;
}

/* ---- Terms by relative position ---- */

enum relative_error {
    INDEX_REVERSED,
    INDEX_NEXT,
    INDEX_NONE,
    SCALE_NONE,
    SCALE_C2P_TWICE,
    SCALE_P2C_NONE,
    P2C_OF_QUERY,
    P2C_REVERSED,
    SUM_LAST
};

/* Returns the column of query q and key j; from the other end of the index if it is read in reverse. */
static int64_t wrong_column(const struct hypothesis *h, int64_t q, int64_t j, bool reversed)
{
    const struct problem *p = &h->call->problem;
    const int64_t distance = reversed ? j - q + p->queries - p->keys : q - j;
    const int64_t query = distance > 0 ? distance : 0, columns = h->call->columns;
    const int64_t column = h->index[query * p->keys + query - distance];
    if (h->mistake->value == INDEX_NEXT)
        return column + 1 < columns ? column + 1 : columns - 1;
    return h->mistake->value == INDEX_NONE && j < columns ? j : column;
}

static bool row_relative(struct hypothesis *h, int o, int64_t r, double *want,
                         double *magnitudes)
{
    const struct call *call = h->call;
    const struct problem *p = &call->problem;
    const struct hypothesis_place at = hypothesis_place(h, r);
    const int kind = (int)h->mistake->value;
    const double scale = kind == SCALE_NONE ? 1.0 : (double)(float)p->scale;
    (void)o;
    for (int64_t j = 0; j < p->keys; j++) {
        const int64_t column = wrong_column(h, at.query, j, kind == INDEX_REVERSED);
        const int64_t p2c_column =
            wrong_column(h, at.query, j, kind == INDEX_REVERSED || kind == P2C_REVERSED);
        const int64_t key = kind == P2C_OF_QUERY && at.query < p->keys ? at.query : j;
        double first = 0.0, second = 0.0;
        if (call->c2p)
            first = scale * (double)call->c2p[r * call->columns + column] *
                    (kind == SCALE_C2P_TWICE ? scale : 1.0);
        if (call->p2c)
            second = (kind == SCALE_P2C_NONE ? 1.0 : scale) *
                     (double)call->p2c[(at.head * p->keys + key) * call->columns + p2c_column];
        want[j] = first + second;
        magnitudes[j] = fmax(fabs(first), fabs(second));
    }
    hypothesis_add_x(h, r, want);
    return true;
}

static bool edit_without_p2c(struct hypothesis *h)
{
    h->edited.p2c = NULL;
    return h->call->c2p;
}

static bool edit_without_c2p(struct hypothesis *h)
{
    h->edited.c2p = NULL;
    return h->call->p2c;
}

static bool edit_exchanged_terms(struct hypothesis *h)
{
    h->edited.c2p = h->call->p2c;
    h->edited.p2c = h->call->c2p;
    return h->call->problem.queries == h->call->problem.keys;
}

static bool row_relative_sum(struct hypothesis *h, int o, int64_t r, double *want,
                             double *magnitudes)
{
    const struct problem *p = &h->call->problem;
    const struct hypothesis_place at = hypothesis_place(h, r);
    (void)o;
    for (int64_t c = 0; c < h->call->columns; c++)
        want[c] = magnitudes[c] = 0.0;
    for (int64_t j = 0; j < p->keys; j++) {
        const double x = (double)h->call->x[r * p->keys + j];
        double *to = &want[wrong_column(h, at.query, j, h->mistake->value == INDEX_REVERSED)];
        *to = h->mistake->value == SUM_LAST ? x : (double)((float)*to + (float)x);
    }
    return true;
}

/* ---- The table ---- */

#define TERMS(kind)                                                                            \
    "relative", .edit = edit_relative_index, .row = row_relative, .value = (kind)
const struct mistake mistakes_of_indices[] = {
    { "query and key are exchanged in the index", "window", .edit = edit_window_index,
      .row = row_window_transposed },
    { "the index is read in reverse: by key - query", TERMS(INDEX_REVERSED) },
    { "each column is one too high", TERMS(INDEX_NEXT) },
    { "the relative shift is missing: the column is the key's index", TERMS(INDEX_NONE) },
    { "p2c is missing", "relative", .edit = edit_without_p2c },
    { "c2p is missing", "relative", .edit = edit_without_c2p },
    { "c2p and p2c are exchanged", "relative", .edit = edit_exchanged_terms },
    { "scale is ignored", TERMS(SCALE_NONE) },
    { "scale is applied twice", "relative", .fields = { { "scale", EDIT_POWER, 2.0 } } },
    { "the sign of scale is lost", "relative", .fields = { { "scale", EDIT_MAGNITUDE, 0.0 } } },
    { "c2p is scaled twice", TERMS(SCALE_C2P_TWICE) },
    { "p2c is not scaled", TERMS(SCALE_P2C_NONE) },
    { "p2c is read at the query, not at the key", TERMS(P2C_OF_QUERY) },
    { "the index is read in reverse for p2c", TERMS(P2C_REVERSED) },
    { "the index is read in reverse: by key - query", "relative_sum",
      .edit = edit_relative_index, .row = row_relative_sum, .value = INDEX_REVERSED },
    { "only the last weight of each column counts", "relative_sum", .edit = edit_relative_index,
      .row = row_relative_sum, .value = SUM_LAST },
    { .sentence = NULL },
};
