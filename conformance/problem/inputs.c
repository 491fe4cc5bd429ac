/*
 * Values of inputs. Golden vectors depend on these recipes, so they must never change. The default recipe "mix" draws
 * 64 bits for each element:
 *
 *     z = rng_u64(rng_u64(seed, stream), index)
 *     stream = 0 for x, 1 for a table that is always f32, 2 and 3 for the terms c2p and p2c
 *     sign = bit 63;  exponent = bits 60..62 - 4;  mantissa = bits 0..22
 *
 * The value is (-1)^sign 2^exponent (1 + mantissa / 2^23), with a magnitude in [2^-4, 2^4). `index` counts elements
 * in row order.
 *
 * With `special`, one element in eight (bits 32..34 are 0) is one of these instead, by bits 35..37: NaN, +inf, -inf,
 * +0, -0, a subnormal of either sign with the same mantissa and its lowest bit set, the least subnormal.
 *
 * x and terms are then rounded to problem.values_dtype and to problem.dtype. If one of these is f16 or bf16
 * (problem.values_dtype has precedence), subnormals are of that type, with the lowest bits of the mantissa. If bit 38
 * is also set, the infinities and zeros become the least value that rounds to +inf, the negative largest finite
 * value, and the largest values of either sign that round to 0.
 *
 * cos and sin of a rope call are the correctly rounded cos and sin of (row mod 4096) 10000^(-2i/r), rounded again if
 * the call stores 16 bits, where r is rotary_dim.
 *
 * "any" draws cos and sin from streams 4 and 5, never special, divided by 16. No product is then larger than its x.
 *
 * "edges" draws cos and sin from the same streams with either sign. Bits 35..37 choose: a subnormal or one of the
 * least normal numbers of the type, 0, 1, a number from 1 to 2 (1 with `special`, as products would overflow), any
 * magnitude below 1 (twice), a number as with "any". x is as with "mix". If bits 58..59 are 0, its exponent is from
 * -100 to 27, or from -14 to 13 for f16.
 *
 * "index" sets each element of streams 1 to 3 to its index modulo 2^24.
 *
 * The recipes of ONNX draw one sequence, numpy.random's after seed(seed), in this order:
 *
 *     X           (f32) u, [batch, heads, tokens, head_dim] or [batch, tokens, heads head_dim]
 *     positions   trunc(rows u), [batch, tokens], if there are position ids
 *     sin, cos    (f32) u, [rows, r/2] each, unrelated to any angle
 *
 * u = (a 2^26 + b) / 2^53, where a and b are the upper 27 and 26 bits of the next two words of MT19937 (Matsumoto and
 * Nishimura 1998, init_genrand and genrand_res53 of their 2002 version).
 */
#define _POSIX_C_SOURCE 200809L
#include "signature.h"
#include "conformance/exact/exact.h"
#include "storage.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ROWS = 4096 };

/* SplitMix64 (Steele, Lea and Flood 2014). */
uint64_t rng_u64(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t draw_bits(struct random_state *d) { return rng_u64(d->seed, d->next++); }

int64_t draw_between(struct random_state *d, int64_t least, int64_t most)
{
    return least + (int64_t)(draw_bits(d) % (uint64_t)(most - least + 1));
}

/* Returns one of eight kinds of values, as the bits of a draw choose it. */
static int kind_of(uint64_t z) { return (int)(z >> 35 & 7); }

/* Returns the special value of a draw, before it is rounded to the type. */
static float special_value(uint64_t z, enum posenc_dtype type)
{
    static const struct {
        uint32_t mantissa; /* bits of the fraction */
        /* The least subnormal; the largest number that rounds to 0; the least one that rounds to infinity; the
         * largest finite number. As f32 is not rounded, its last three are 0 and infinities. */
        float least, under, over, largest;
    } ends[] = {
        [POSENC_DTYPE_F32] = { 0x7fffff, 0x1p-149f, 0.0f, INFINITY, INFINITY },
        [POSENC_DTYPE_F16] = { 0x3ff, 0x1p-24f, 0x1p-25f, 0x1.ffep15f, 0x1.ffcp15f },
        [POSENC_DTYPE_BF16] = { 0x7f, 0x1p-133f, 0x1p-134f, 0x1.ffp127f, 0x1.fep127f },
    };
    const float subnormal = (float)(((uint32_t)z & ends[type].mantissa) | 1) * ends[type].least;
    float under = 0.0f, over = INFINITY, largest = INFINITY;
    if (z >> 38 & 1) { /* values that the type rounds to these */
        under = ends[type].under;
        over = ends[type].over;
        largest = ends[type].largest;
    }
    const float kinds[] = { NAN,    over,      -largest,   under,
                            -under, subnormal, -subnormal, ends[type].least };
    return kinds[kind_of(z)];
}

static float input_value(uint64_t z, bool specials, enum posenc_dtype type)
{
    const uint32_t sign = (uint32_t)(z >> 63) << 31, mantissa = (uint32_t)z & 0x7fffffu;
    return specials && (z >> 32 & 7) == 0
               ? special_value(z, type)
               : bits_to_float(sign | (123u + ((uint32_t)(z >> 60) & 7u)) << 23 | mantissa);
}

/* ---- The recipe "edges" ---- */

/* Bits of the fraction, and the exponent of the least normal number. */
static const struct {
    int fraction, least;
} formats[] = { [POSENC_DTYPE_F32] = { 23, -126 },
                [POSENC_DTYPE_F16] = { 10, -14 },
                [POSENC_DTYPE_BF16] = { 7, -126 } };

float inputs_draw_edge(uint64_t z, enum posenc_dtype type, float most, bool above)
{
    const int fraction = formats[type].fraction, least = formats[type].least;
    const double part = ldexp((double)(z & ((UINT64_C(1) << fraction) - 1)), -fraction);
    const int exponents = ilogbf(most) - least;
    const int below_most = 1 + (int)((z >> 40 & 0xffff) % (uint64_t)exponents);
    const double any_magnitude = ldexp((1.0 + part) * (double)most, -below_most);
    const double kinds[] = {
        ldexp(part, least),       /* a subnormal number */
        ldexp(1.0 + part, least), /* one of the least normal numbers */
        0.0,
        1.0,
        above ? 1.0 + part : 1.0,
        any_magnitude,
        any_magnitude,
        ldexp(1.0 + part, -(int)(z >> 60 & 7) - 1), /* as in the recipe "any" */
    };
    const double value = kinds[kind_of(z)];
    return (float)(z >> 63 ? -value : value);
}

/* Returns x of the recipe "edges" for z and its value of the recipe "mix". Special values, and others below 2^-4, are left
 * as they are. */
static float edge_x(uint64_t z, float value, enum posenc_dtype type)
{
    const bool is_f16 = type == POSENC_DTYPE_F16;
    const int least = is_f16 ? -14 : -100, exponents = is_f16 ? 28 : 128;
    if ((z >> 58 & 3) != 0 || !isfinite(value) || fabsf(value) < 0x1p-4f)
        return value;
    return ldexpf(value,
                  least + (int)((z >> 40 & 0xffff) % (uint64_t)exponents) - ilogbf(value));
}

/* ---- The recipes of ONNX ---- */

static bool is_onnx(enum input_recipe recipe)
{
    return recipe >= RECIPE_ONNX && recipe <= RECIPE_ONNX_NO_POSITION_IDS;
}

enum { TWISTER_WORDS = 624, TWISTER_MIDDLE = 397 }; /* n and m of MT19937 */

struct mt19937 {
    uint32_t word[TWISTER_WORDS];
    int next;
};

static void mt19937_refill(struct mt19937 *t)
{
    for (int i = 0; i < TWISTER_WORDS; i++) {
        uint32_t *w = t->word,
                 y = (w[i] & 0x80000000u) | (w[(i + 1) % TWISTER_WORDS] & 0x7fffffffu);
        w[i] = w[(i + TWISTER_MIDDLE) % TWISTER_WORDS] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->next = 0;
}

static uint32_t mt19937_u32(struct mt19937 *t)
{
    if (t->next == TWISTER_WORDS)
        mt19937_refill(t);
    uint32_t y = t->word[t->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Returns u in [0, 1). */
static double mt19937_real(struct mt19937 *t)
{
    uint32_t a = mt19937_u32(t) >> 5, b = mt19937_u32(t) >> 6;
    return ((double)a * 0x1p26 + (double)b) * 0x1p-53;
}

/* Starts the sequence of a problem at draw `first`. */
static void mt19937_seed(struct mt19937 *t, const struct problem *problem, int64_t first)
{
    t->word[0] = (uint32_t)problem->seed;
    for (uint32_t i = 1; i < TWISTER_WORDS; i++)
        t->word[i] = 1812433253u * (t->word[i - 1] ^ t->word[i - 1] >> 30) + i;
    t->next = TWISTER_WORDS;
    while (first-- > 0)
        mt19937_real(t);
}

static int64_t count_draws_of_x(const struct problem *p)
{
    return p->batch * p->heads * p->tokens * p->dim;
}

/* Draws x, and stores it in row order whatever the order of the draws. */
static void draw_x(float *to, const struct problem *p)
{
    const int64_t heads = p->heads, tokens = p->tokens;
    struct mt19937 generator;
    mt19937_seed(&generator, p, 0);
    for (int64_t i = 0; i < count_draws_of_x(p); i++) {
        const int64_t r = i / p->dim, b = r / tokens / heads, h = r / tokens % heads;
        const int64_t row =
            p->recipe == RECIPE_ONNX_3D ? r : (b * tokens + r % tokens) * heads + h;
        to[row * p->dim + i % p->dim] = (float)mt19937_real(&generator);
    }
}

int64_t problem_draw_position(const struct problem *problem, int64_t b, int64_t t)
{
    struct mt19937 generator;
    mt19937_seed(&generator, problem, count_draws_of_x(problem) + b * problem->tokens + t);
    return (int64_t)((double)problem->rows * mt19937_real(&generator));
}

/* Draws sines or, after them, cosines. */
static void draw_rotation(const struct problem *p, bool sines, float *to, int64_t n)
{
    const int64_t ids = problem_draws_positions(p) ? p->batch * p->tokens : 0;
    struct mt19937 generator;
    mt19937_seed(&generator, p, count_draws_of_x(p) + ids + (sines ? 0 : n));
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)mt19937_real(&generator);
}

/* ---- cos and sin of base 10000 ---- */

/* The first rows of cos and sin for one rotary_dim, as far as they have been computed. */
struct cos_sin_table {
    struct cos_sin_table *next;
    int64_t half, rows;
    float *values[2]; /* cos and sin, [TABLE_ROWS, half] */
    uint64_t turn[][3];
};

static struct cos_sin_table *cos_sin_table_create(int64_t half)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    const size_t n = (size_t)half, elements = TABLE_ROWS * n;
    struct cos_sin_table *table =
        calloc(1, sizeof *table + n * sizeof *table->turn + 2 * elements * sizeof(float));
    double factor;
    if (!table)
        return NULL;
    spec.dim = 2 * half;
    table->half = half;
    table->values[0] = (float *)(table->turn + n);
    table->values[1] = table->values[0] + elements;
    exact_freqs(&spec, half, table->turn, NULL, &factor);
    return table;
}

/* Copies rows of the table of a rotary_dim. Tables persist and grow to the last row requested, as suites and
 * benchmarks request the same rows repeatedly. */
static bool copy_rotations(int64_t half, int64_t first, int64_t rows, bool sines, float *to)
{
    const int64_t from = first % TABLE_ROWS,
                  end = rows < TABLE_ROWS - from ? from + rows : TABLE_ROWS;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct cos_sin_table *tables;
    pthread_mutex_lock(&lock);
    struct cos_sin_table *table = tables;
    while (table && table->half != half)
        table = table->next;
    if (!table && (table = cos_sin_table_create(half))) {
        table->next = tables;
        tables = table;
    }
    for (; table && table->rows < end; table->rows++)
        for (int64_t i = 0; i < half; i++) {
            double s, c;
            exact_sincos_turn(table->turn[i], table->rows, &s, &c);
            table->values[0][table->rows * half + i] = exact_round_f32(c);
            table->values[1][table->rows * half + i] = exact_round_f32(s);
        }
    for (int64_t r = 0; table && r < rows; r++)
        memcpy(to + r * half, table->values[sines] + (first + r) % TABLE_ROWS * half,
               (size_t)half * sizeof *to);
    pthread_mutex_unlock(&lock);
    return table != NULL;
}

/* ---- Streams ---- */

/* Recipe of one element. */
enum draw { DRAW_MIX, DRAW_INDEX, DRAW_EDGE_X, DRAW_EDGE_ANGLE, DRAW_ANY_ANGLE };

/* All that an element of a stream depends on, but its index. */
struct stream {
    uint64_t key;
    enum draw draw;
    bool special;
    enum posenc_dtype type;      /* of special values and edges */
    enum posenc_dtype stored[2]; /* types to which a value is rounded, one after the other */
};

static struct stream stream_of(const struct problem *p, enum stream_id id)
{
    const enum posenc_dtype f32 = POSENC_DTYPE_F32,
                            narrow = p->values_dtype != f32 ? p->values_dtype : p->dtype;
    struct stream s = { rng_u64(p->seed, id), DRAW_MIX, p->special, f32, { f32, f32 } };
    if (id == STREAM_COS || id == STREAM_SIN) {
        s.draw = p->recipe == RECIPE_EDGES ? DRAW_EDGE_ANGLE : DRAW_ANY_ANGLE;
        s.type = s.stored[0] = p->table_dtype;
        return s;
    }
    if (p->recipe == RECIPE_EDGES && id == STREAM_X)
        s.draw = DRAW_EDGE_X;
    if (p->recipe == RECIPE_INDEX && id != STREAM_X)
        s.draw = DRAW_INDEX;
    if (id != STREAM_TABLE) {
        s.type = narrow;
        s.stored[0] = p->values_dtype;
        s.stored[1] = p->dtype;
    }
    return s;
}

static float draw_value(const struct stream *s, int64_t i)
{
    const uint64_t z = rng_u64(s->key, (uint64_t)i);
    switch (s->draw) {
    case DRAW_INDEX:
        return (float)(i & 0xffffff);
    case DRAW_EDGE_X:
        return edge_x(z, input_value(z, s->special, s->type), s->type);
    case DRAW_EDGE_ANGLE:
        return inputs_draw_edge(z, s->type, 1.0f, !s->special);
    case DRAW_ANY_ANGLE:
        return 0x1p-4f * input_value(z, false, POSENC_DTYPE_F32);
    case DRAW_MIX:
        break;
    }
    return input_value(z, s->special, s->type);
}

static void draw_values(const struct stream *s, int64_t first, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = draw_value(s, first + i);
    for (int k = 0; k < 2; k++)
        storage_round_row(s->stored[k], to, n);
}

/* ---- Values kept for later calls ---- */

/* The first elements of a stream, as far as they have been drawn. */
struct drawn {
    struct stream stream;
    int64_t n;
    float *values;
};

enum {
    STREAMS_KEPT = 512,       /* places of a hash table */
    MOST_OF_STREAM = 1 << 22, /* streams with more elements are not kept */
    MOST_KEPT = 1 << 24       /* elements in all places, before some are emptied */
};
static struct drawn kept[STREAMS_KEPT];
static int64_t elements_kept;

static bool is_same_stream(const struct stream *a, const struct stream *b)
{
    return a->key == b->key && a->draw == b->draw && a->special == b->special &&
           a->type == b->type && a->stored[0] == b->stored[0] && a->stored[1] == b->stored[1];
}

static void drawn_forget(struct drawn *d)
{
    elements_kept -= d->n;
    free(d->values);
    *d = (struct drawn){ .n = 0 };
}

/* Returns the place of a stream, where its values are, or none yet. Forgets another stream in this place, and others if
 * too many elements are kept. */
static struct drawn *take_place(const struct stream *s)
{
    const int members[] = { (int)s->draw, s->special, s->type, s->stored[0], s->stored[1] };
    uint64_t place = s->key;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        place = rng_u64(place, (uint64_t)members[i]);
    struct drawn *d = &kept[place % STREAMS_KEPT];
    for (int i = 0; i < STREAMS_KEPT && elements_kept > MOST_KEPT; i++)
        drawn_forget(&kept[i]);
    if (!is_same_stream(&d->stream, s))
        drawn_forget(d);
    d->stream = *s;
    return d;
}

/* Copies the first n values of a stream. Suites make many calls whose tensors begin with the same values. */
static bool copy_values(const struct stream *s, int64_t n, float *to)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct drawn *d = take_place(s);
    float *grown = n > d->n ? realloc(d->values, (size_t)n * sizeof *grown) : d->values;
    if (grown && n > d->n) {
        draw_values(s, d->n, n - d->n, grown + d->n);
        elements_kept += n - d->n;
        d->n = n;
    }
    if (grown) {
        d->values = grown;
        memcpy(to, grown, (size_t)n * sizeof *to);
    }
    pthread_mutex_unlock(&lock);
    return grown != NULL;
}

/* Fills whole rows of [rows, rotary_dim / 2]; the ONNX recipes always fill from the first row. */
static bool fill_rotation(float *to, int64_t first, int64_t n, const struct problem *p,
                          bool sines)
{
    const int64_t half = p->rotary_dim / 2;
    if (is_onnx(p->recipe))
        draw_rotation(p, sines, to, n);
    else if (!copy_rotations(half, first / half, n / half, sines, to))
        return false;
    storage_round_row(p->table_dtype, to, n);
    return true;
}

bool inputs_fill(float *to, int64_t first, int64_t n, const struct problem *p,
                 enum stream_id id)
{
    const bool angle = id == STREAM_COS || id == STREAM_SIN;
    if (angle && (is_onnx(p->recipe) || p->recipe == RECIPE_MIX))
        return fill_rotation(to, first, n, p, id == STREAM_SIN);
    const struct stream stream = stream_of(p, id);
    if (is_onnx(p->recipe) && id == STREAM_X) {
        draw_x(to, p);
        for (int k = 0; k < 2; k++)
            storage_round_row(stream.stored[k], to, n);
    } else if (first > 0 || n > MOST_OF_STREAM) {
        draw_values(&stream, first, n, to);
    } else {
        return n == 0 || copy_values(&stream, n, to);
    }
    return true;
}
