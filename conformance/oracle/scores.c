/*
 * Rows of scores and biases: what a query gives each key.  Sums are f32 adds in the order the
 * header states, so they are emulated one by one.
 */
#include "rows.h"

#include <math.h>

/* Query, head and the two together with the batch, of row r. */
static int64_t query_of(const struct problem *problem, int64_t r)
{
    return r % problem->queries;
}

static int64_t head_of(const struct problem *problem, int64_t r)
{
    return r / problem->queries % problem->heads;
}

float add_f32(float a, float b) { return (float)((double)a + (double)b); }

/* -slope |d| of two f32 values is an f64; +0 at distance 0. */
static void row_alibi(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const int64_t query = query_of(problem, r) + problem->query_offset;
    const int64_t head = problem->slopes_by_batch ? r / problem->queries : head_of(problem, r);
    const double slope = (double)oracle->call->slopes[head];
    for (int64_t j = 0; j < width; j++) {
        const int64_t distance = query > j ? query - j : j - query;
        want[j] = problem->causal && j > query ? -(double)INFINITY : slope * (double)-distance;
    }
}

static void row_t5(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const int64_t query = query_of(problem, r) + problem->query_offset;
    const int64_t head = head_of(problem, r);
    for (int64_t j = 0; j < width; j++) {
        int64_t distance = query - j, base = 0;
        if (distance < 0) {
            distance = problem->bidirectional ? -distance : 0;
            base = problem->bidirectional ? oracle->n_thresholds : 0;
        }
        int64_t bucket = oracle->n_thresholds - 1;
        while (oracle->thresholds[bucket] > distance)
            bucket--;
        want[j] = (double)oracle->call->table[(base + bucket) * problem->heads + head];
    }
}

/* The values of a head begin at the least distance of the call, that of query 0 and the last
 * key. */
static void row_distance(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const float *values = oracle->call->table + head_of(problem, r) * oracle->call->columns +
                          query_of(problem, r);
    for (int64_t j = 0; j < width; j++)
        want[j] = (double)values[width - 1 - j];
}

static void row_window(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const int64_t query = r % width, head = r / width % problem->heads;
    for (int64_t j = 0; j < width; j++)
        want[j] =
            (double)oracle->call->table[window_row(problem, query, j) * problem->heads + head];
}

/* fl(scale a), then one fma with the other term.  The product of two f32 is an f64. */
static void row_relative(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const double scale = (double)(float)problem->scale;
    const int64_t query = query_of(problem, r), above = r / problem->queries;
    for (int64_t j = 0; j < width; j++) {
        const int64_t column = oracle->columns[query - j + width - 1];
        const double first =
            call->c2p ? scale * (double)call->c2p[r * call->columns + column] : 0.0;
        if (!call->p2c) {
            want[j] = first;
            continue;
        }
        const double second =
            scale * (double)call->p2c[(above * width + j) * call->columns + column];
        want[j] = call->c2p ? add_to_odd(second, (double)odd_to_f32(first)) : second;
    }
}

static void row_relative_sum(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const int64_t query = query_of(problem, r), keys = problem->keys;
    for (int64_t c = 0; c < width; c++)
        want[c] = 0.0;
    for (int64_t j = 0; j < keys; j++) {
        double *sum = want + oracle->columns[query - j + keys - 1];
        *sum = (double)add_f32((float)*sum, call->x[r * keys + j]);
    }
}

const struct oracle_rows oracle_alibi = { row_alibi, NULL, NULL };
const struct oracle_rows oracle_t5 = { row_t5, create_thresholds, NULL };
const struct oracle_rows oracle_distance = { row_distance, NULL, NULL };
const struct oracle_rows oracle_window = { row_window, NULL, NULL };
const struct oracle_rows oracle_relative = { row_relative, create_columns, NULL };
const struct oracle_rows oracle_relative_sum = { row_relative_sum, create_columns, NULL };
