/*
 * Reference outputs of what a query gives each key: slopes by MPFR, buckets, rows and columns
 * by exact integers, sums one f32 add after the other.
 *
 * References: Press et al. 2108.12409; Raffel et al. 1910.10683; Liu et al. 2103.14030; Bao et
 * al. 2106.08254; He et al. 2006.03654; Shaw et al. 1803.02155; Dai et al. 1901.02860.
 */
#include "golden.h"

#include <math.h>

/* ---- ALiBi ---- */

float reference_slope(int64_t heads, double bias_max, int64_t h)
{
    int64_t power = 1;
    while (2 * power <= heads)
        power *= 2;
    const int64_t numerator = h < power ? h + 1 : 2 * (h - power) + 1;
    const number whole = mp_mul(mp_of(-bias_max), mp_of((double)numerator));
    const number share = mp_of((double)(h < power ? power : 2 * power));
    return mp_float(mp_pow(mp_of(2), mp_div(whole, share)));
}

void output_alibi(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t keys = call->outputs[o].width;
    const struct problem *p = &call->problem;
    const int64_t query = r % p->queries + p->query_offset;
    const int64_t heads = p->heads * (p->slopes_by_batch ? p->batch : 1);
    const double slope =
        (double)reference_slope(heads, p->alibi_bias_max, r / p->queries % heads);
    for (int64_t j = 0; j < keys; j++)
        want[j] = p->causal && j > query ? -(double)INFINITY
                                         : slope * (double)(j < query ? j - query : query - j);
}

/* ---- T5 ---- */

/* Sign of n^all - most^k least^(all - k). */
static int compare_powers(int64_t n, int64_t all, int64_t most, int64_t k, int64_t least)
{
    mpz_t power, bound, factor;
    mpz_inits(power, bound, factor, (mpz_ptr)0);
    mpz_ui_pow_ui(power, (unsigned long)n, (unsigned long)all);
    mpz_ui_pow_ui(bound, (unsigned long)most, (unsigned long)k);
    mpz_ui_pow_ui(factor, (unsigned long)least, (unsigned long)(all - k));
    mpz_mul(bound, bound, factor);
    const int sign = mpz_cmp(power, bound);
    mpz_clears(power, bound, factor, (mpz_ptr)0);
    return sign;
}

/* The bucket by its definition in integers, with n distance, e exact buckets of N:
 * e + k for the greatest k < N - e with n^(N-e) >= M^k e^(N-e-k). */
int64_t reference_bucket(int64_t distance, int64_t num_buckets, int64_t max_distance,
                         bool bidirectional)
{
    const int64_t buckets = bidirectional ? num_buckets / 2 : num_buckets, exact = buckets / 2;
    int64_t n = distance, base = 0; /* distance = query - key */
    if (n < 0) {
        base = bidirectional ? buckets : 0;
        n = bidirectional ? -n : 0;
    }
    if (n < exact)
        return base + n;
    int64_t k = buckets - exact - 1;
    while (k > 0 && compare_powers(n, buckets - exact, max_distance, k, exact) < 0)
        k--;
    return base + exact + k;
}

void output_t5(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t keys = call->outputs[o].width;
    const struct problem *p = &call->problem;
    const int64_t query = r % p->queries + p->query_offset;
    const int64_t head = r / p->queries % p->heads;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t bucket =
            reference_bucket(query - j, p->num_buckets, p->max_distance, p->bidirectional);
        want[j] = (double)call->table[bucket * p->heads + head];
    }
}

/* ---- Distances and windows ---- */

/* values[head, distance - first], the first distance that of query 0 and the last key. */
void output_distance(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t keys = call->outputs[o].width;
    const struct problem *p = &call->problem;
    const int64_t first = p->query_offset - (keys - 1);
    const int64_t head = r / p->queries % p->heads;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t distance = r % p->queries + p->query_offset - j;
        want[j] = (double)call->table[head * call->columns + distance - first];
    }
}

/* Differences down and right, from the least on; a class token, where there is one, is token 0
 * and has three rows after theirs. */
int64_t reference_window_row(const struct problem *p, int64_t query, int64_t key)
{
    const int64_t height = p->window_height, width = p->window_width;
    const int64_t downs = 2 * height - 1, rights = 2 * width - 1;
    if (p->window_class && (query == 0 || key == 0))
        return downs * rights + (query != 0 ? 1 : key != 0 ? 0 : 2);
    const int64_t q = query - p->window_class, k = key - p->window_class;
    const int64_t down = q / width - k / width, right = q % width - k % width;
    return (down + height - 1) * rights + (right + width - 1);
}

void output_window(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t keys = call->outputs[o].width;
    const struct problem *p = &call->problem;
    const int64_t head = r / keys % p->heads;
    for (int64_t j = 0; j < keys; j++)
        want[j] = (double)call->table[reference_window_row(p, r % keys, j) * p->heads + head];
}

/* ---- Terms by relative position ---- */

/* ceil(ln(n/m) / ln(most/m) (m-1)) + m in integers: m + k for the least k with
 * n^(m-1) <= most^k m^(m-1-k).  From 2m on, where the table ends, whatever it is. */
static int64_t log_bucket(int64_t n, int64_t m, int64_t most)
{
    int64_t k = 0;
    while (k < m && compare_powers(n, m - 1, most, k, m) > 0)
        k++;
    return m + k;
}

int64_t reference_deberta_column(int64_t distance, int64_t buckets, int64_t max_distance)
{
    const int64_t n = distance < 0 ? -distance : distance, m = buckets / 2;
    const int64_t span = buckets > 0 ? buckets : max_distance;
    const int64_t bucket = buckets > 0 && n > m ? log_bucket(n, m, max_distance - 1) : n;
    const int64_t column = distance < 0 ? span - bucket : span + bucket;
    return column < 0 ? 0 : column > 2 * span - 1 ? 2 * span - 1 : column;
}

int64_t reference_column(const struct problem *p, int64_t query, int64_t key)
{
    const int64_t distance = query + p->query_offset - key;
    switch (p->relative) {
    case RELATIVE_DEBERTA:
        return reference_deberta_column(distance, p->num_buckets, p->max_distance);
    case RELATIVE_SHAW:
        if (distance > p->max_distance)
            return 0;
        return distance < -p->max_distance ? 2 * p->max_distance : p->max_distance - distance;
    case RELATIVE_TRANSFORMER_XL:
        break;
    }
    return distance > 0 ? p->keys - 1 - distance : p->keys - 1; /* later keys: any column */
}

/* Of one term the product, exact in f64; of two one fma onto the first, rounded. */
void output_relative(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t keys = call->outputs[o].width;
    const struct problem *p = &call->problem;
    const int64_t heads = r / p->queries; /* of all batches */
    const double scale = (double)(float)p->scale;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t column = reference_column(p, r % p->queries, j);
        const double own =
            p->without_c2p ? 0 : scale * (double)call->c2p[r * call->columns + column];
        want[j] = own;
        if (!p->with_p2c)
            continue;
        const double term = (double)call->p2c[(heads * keys + j) * call->columns + column];
        want[j] = p->without_c2p
                      ? scale * term
                      : reference_sum_of_products(scale, term, reference_nearest_f32(own), 1);
    }
}

void output_relative_sum(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t columns = call->outputs[o].width;
    const struct problem *p = &call->problem;
    for (int64_t c = 0; c < columns; c++)
        want[c] = 0;
    for (int64_t j = 0; j < p->keys; j++) {
        double *sum = want + reference_column(p, r % p->queries, j);
        *sum = reference_add_f32(*sum, (double)call->x[r * p->keys + j]);
    }
}
