/*
 * Laws that docs/encodings.md quotes: each is a claim of that text, with its numbers.  Those of
 * its sentences are in words.c.
 *
 *   one-product-is-not-enough     sin p sin (p+1) depends on p; the sum over the pair does not
 *   nearer-is-not-always-alike    128 dimensions: offset 12 is more similar than offset 11
 *   low-pairs-are-fast            each slower than the last; pair 63 turns in 54 410.14
 *   positions sandwich-is-a-product         Sandwich is the product of two sinusoidal encodings
 *   kerple-has-alibi              KERPLE's power 1 is ALiBi
 *   rotates-nothing-into-nothing  a rotation adds nothing to a zero vector
 *   one-seed                      tokens and table from one seed: a multiple of the tokens
 *   distances-left                what bf16 leaves of 2048 biases
 *   cosines-left                  what bf16 leaves of 4096 positions
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sine and cosine of pair i in row r: of rope_table's two outputs, of an interleaved row. */
static double sine(const struct copy *table, int64_t r, int64_t i)
{
    return (double)(table->n == 2 ? copy_row(table, 1, r)[i] : copy_row(table, 0, r)[2 * i]);
}

static double cosine(const struct copy *table, int64_t r, int64_t i)
{
    return (double)(table->n == 2 ? copy_row(table, 0, r)[i]
                                  : copy_row(table, 0, r)[2 * i + 1]);
}

static struct problem table_of(enum posenc_kernel kernel, int64_t dim, int64_t tokens)
{
    struct problem p = problem_default(kernel);
    p.freqs.dim = dim;
    p.tokens = tokens;
    return p;
}

/* ---- Sines ---- */

static void law_one_product(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = table_of(kernel, 128, 3);
    struct copy table;
    if (run_problem(t, &p, NULL, NULL, &table)) {
        double zero = sine(&table, 0, 0) * sine(&table, 1, 0),
               one = sine(&table, 1, 0) * sine(&table, 2, 0);
        require(t, zero == 0.0, "sin 0 sin 1 is %.9g", zero);
        require_within(t, one, 0.7651474012342926, 2 * TABLE_ERROR, "sin 1 sin 2");
        for (int64_t r = 0; r < 2; r++)
            require_within(t,
                           sine(&table, r, 0) * sine(&table, r + 1, 0) +
                               cosine(&table, r, 0) * cosine(&table, r + 1, 0),
                           cos(1.0), 3 * TABLE_ERROR, "the sum over the pair, cos 1");
    }
    copy_free(&table);
}

/* The average over the pairs of the product of rows 0 and k. */
static double similarity(const struct copy *table, int64_t k, int64_t pairs)
{
    double sum = 0.0;
    for (int64_t i = 0; i < pairs; i++)
        sum +=
            sine(table, 0, i) * sine(table, k, i) + cosine(table, 0, i) * cosine(table, k, i);
    return sum / (double)pairs;
}

static void law_nearer(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = table_of(kernel, 128, 13);
    struct copy table;
    if (run_problem(t, &p, NULL, NULL, &table)) {
        double eleven = similarity(&table, 11, 64), twelve = similarity(&table, 12, 64);
        require_within(t, eleven, 0.6616, 0.5e-4, "similarity at offset 11");
        require_within(t, twelve, 0.6622, 0.5e-4, "similarity at offset 12");
    }
    copy_free(&table);
}

/* 2 pi 10000^(126/128) = 54410.14: the sine of pair 63 is above 0 for half of that, then below,
 * and a wavelength of 2 pi 10000 = 62831.85 it has not. */
static void law_low_pairs(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t positions[] = { 1, 27205, 27206, 54410, 54411, 62832 };
    static const bool positive[] = { true, true, false, false, true, true };
    enum { N = sizeof positions / sizeof positions[0] };
    struct problem p = table_of(kernel, 128, N);
    struct copy table;
    p.position_kind = POSENC_POSITIONS_I64;
    p.positions = positions;
    if (run_problem(t, &p, NULL, NULL, &table)) {
        for (int64_t i = 1; i < 64; i++)
            require(t, sine(&table, 0, i) < sine(&table, 0, i - 1),
                    "pair %lld is no slower than the one before it", (long long)i);
        for (int r = 0; r < N; r++)
            require(t, (sine(&table, r, 63) > 0.0) == positive[r],
                    "the sine of pair 63 is %.9g at position %lld", sine(&table, r, 63),
                    (long long)positions[r]);
        require(t, sine(&table, N - 1, 63) > 0.8, "2 pi 10000 is a turn of pair 63");
    }
    copy_free(&table);
}

/* A product of n pairs within 3 E n of the real one, as in table.c; Sandwich is rounded
 * once, to 2^-24 of at most 2 n. */
static void law_sandwich(struct tally *t, enum posenc_kernel kernel)
{
    enum { DIM = 64, N = 40 };
    struct problem p = table_of(kernel, DIM, N);
    float scale = 1.0f, values[N];
    struct copy table;
    bool made = posenc_sandwich(DIM, 1, &scale, 0, N, values) == POSENC_OK;
    if (require(t, made, "posenc_sandwich failed") && run_problem(t, &p, NULL, NULL, &table)) {
        for (int64_t k = 0; k < N; k++)
            require_within(t, (double)values[k],
                           (similarity(&table, k, DIM / 2) - 1.0) * (DIM / 2),
                           (3 * TABLE_ERROR + 0x1p-23) * (DIM / 2), "Sandwich");
        copy_free(&table);
    }
}

/* ---- Biases, rotations, tables ---- */

static void law_kerple(struct tally *t, enum posenc_kernel kernel)
{
    enum { HEADS = 12, KEYS = 300 };
    struct problem p = problem_default(kernel);
    float ones[HEADS], slopes[HEADS], values[HEADS * KEYS];
    struct copy out;
    for (int h = 0; h < HEADS; h++)
        ones[h] = 1.0f;
    p.heads = HEADS;
    p.queries = 1;
    p.keys = KEYS;
    p.query_offset = KEYS - 1;
    bool made = posenc_alibi_slopes(HEADS, 8.0, slopes) == POSENC_OK &&
                posenc_kerple_power(HEADS, ones, slopes, 0, KEYS, values) == POSENC_OK;
    if (require(t, made, "posenc_kerple_power failed") &&
        run_problem(t, &p, NULL, NULL, &out)) {
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t j = 0; j < KEYS; j++) {
                float alibi = copy_row(&out, 0, h)[j], kerple = values[h * KEYS + KEYS - 1 - j];
                require(t, alibi == kerple, "head %lld key %lld: %.9g, by KERPLE %.9g",
                        (long long)h, (long long)j, (double)alibi, (double)kerple);
            }
        copy_free(&out);
    }
}

static void edit_zeros(struct call *call, const void *user)
{
    (void)user;
    for (int64_t r = 0, n = tensor_rows(call_x(call)); r < n; r++)
        memset(tensor_row(call_x(call), r), 0, (size_t)call->problem.dim * sizeof(float));
}

static void law_rotates_nothing(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    struct copy out;
    p.tokens = p.rows = 16;
    if (run_problem(t, &p, edit_zeros, NULL, &out))
        for (int64_t r = 0; r < out.rows[0]; r++)
            for (int64_t c = 0; c < out.width[0]; c++)
                require(t, copy_row(&out, 0, r)[c] == 0.0f, "zero rotated is %.9g",
                        (double)copy_row(&out, 0, r)[c]);
    copy_free(&out);
}

enum { DRAWN_ROWS = 64, DRAWN_DIM = 128, DRAWN = DRAWN_ROWS * DRAWN_DIM };
struct drawn {
    float tokens[DRAWN], table[DRAWN];
};

static void edit_drawn(struct call *call, const void *user)
{
    const struct drawn *drawn = user;
    struct posenc_learned_args *args = &call->args.learned;
    for (int64_t r = 0; r < DRAWN_ROWS; r++) {
        memcpy(tensor_row(owned(&args->x), r), drawn->tokens + r * DRAWN_DIM,
               DRAWN_DIM * sizeof(float));
        memcpy(tensor_row(owned(&args->table), r), drawn->table + r * DRAWN_DIM,
               DRAWN_DIM * sizeof(float));
    }
}

/* How far out is from 1.02 x, in units of the largest x. */
static double distance_to_multiple(const struct copy *out, const struct drawn *drawn)
{
    double most = 0.0, largest = 0.0;
    for (int64_t k = 0; k < DRAWN; k++) {
        double x = (double)drawn->tokens[k], far = fabs((double)out->data[0][k] - 1.02 * x);
        most = far > most ? far : most;
        largest = fabs(x) > largest ? fabs(x) : largest;
    }
    return most / largest;
}

/* Tokens of deviation 1 and a table of deviation 0.02: from one seed the sum is 1.02 times the
 * tokens, within the rounding of a product and a sum; from another it differs by some 0.02. */
static void law_one_seed(struct tally *t, enum posenc_kernel kernel)
{
    struct drawn *drawn = malloc(sizeof *drawn);
    struct problem p = problem_default(kernel);
    p.tokens = p.rows = DRAWN_ROWS;
    p.dim = DRAWN_DIM;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct copy out = { .n = 0 };
        bool made =
            drawn != NULL &&
            posenc_normal(1, 0, DRAWN_ROWS, DRAWN_DIM, 1.0, drawn->tokens) == POSENC_OK &&
            posenc_normal(seed, 0, DRAWN_ROWS, DRAWN_DIM, 0.02, drawn->table) == POSENC_OK;
        if (require(t, made, "posenc_normal failed") &&
            run_problem(t, &p, edit_drawn, drawn, &out)) {
            double far = distance_to_multiple(&out, drawn);
            require(t, seed == 1 ? far < 0x1p-22 : far > 0.01,
                    "tokens from seed 1, table from seed %d: %.9g from 1.02 times the tokens",
                    (int)seed, far);
        }
        copy_free(&out);
    }
    free(drawn);
}

/* ---- bf16 ---- */

static void law_bf16_distances(struct tally *t, enum posenc_kernel kernel)
{
    enum { KEYS = 2048 };
    struct problem p = problem_default(kernel);
    struct copy out;
    p.dtype = POSENC_BF16;
    p.heads = 8;
    p.queries = 1;
    p.keys = KEYS;
    p.query_offset = KEYS - 1;
    if (run_problem(t, &p, NULL, NULL, &out)) {
        const float *row = copy_row(&out, 0, 0); /* slope 1/2 */
        int64_t different = 1;
        double most = 0.0;
        for (int64_t j = 0; j < KEYS; j++) {
            different += j > 0 && row[j] != row[j - 1];
            most = fmax(most, fabs((double)row[j] + 0.5 * (double)(KEYS - 1 - j)));
        }
        require(t, different == 641, "%lld values are left of 2048", (long long)different);
        require(t, most == 2.0, "one of them is %.9g off", most);
    }
    copy_free(&out);
}

/* Pair 63 of 64 turns by 1.2e-4 a position: as bf16 it stands still at 3315 of 4095 steps; one
 * or two of these next to a tie of bf16 may fall the other way where f32 was rounded
 * otherwise. */
static void law_bf16_cosines(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = table_of(kernel, 128, 4096);
    struct copy table;
    p.dtype = POSENC_BF16;
    if (run_problem(t, &p, NULL, NULL, &table)) {
        int64_t still = 0;
        double least = 1.0, most = 1.0;
        for (int64_t r = 0; r < p.tokens; r++) {
            still += r > 0 && sine(&table, r, 63) == sine(&table, r - 1, 63) &&
                     cosine(&table, r, 63) == cosine(&table, r - 1, 63);
            for (int64_t i = 0; i < 64; i++) {
                double norm = hypot(sine(&table, r, i), cosine(&table, r, i));
                least = fmin(least, norm);
                most = fmax(most, norm);
            }
        }
        require(t, llabs(still - 3315) <= 2, "pair 63 stands still %lld times",
                (long long)still);
        require_within(t, least, 0.9973, 0.5e-4, "least norm of a pair");
        require_within(t, most, 1.0028, 0.5e-4, "greatest norm of a pair");
    }
    copy_free(&table);
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_text[] = {
    { "one-product-is-not-enough", law_one_product, KERNELS(K(sinusoidal), K(rope_table)) },
    { "nearer-is-not-always-alike", law_nearer, KERNELS(K(sinusoidal), K(rope_table)) },
    { "low-pairs-are-fast", law_low_pairs, KERNELS(K(sinusoidal), K(rope_table)) },
    { "sandwich-is-a-product", law_sandwich, KERNELS(K(sinusoidal)) },
    { "kerple-has-alibi", law_kerple, KERNELS(K(alibi)) },
    { "rotates-nothing-into-nothing", law_rotates_nothing,
      KERNELS(K(rope_half), K(rope_interleaved)) },
    { "one-seed", law_one_seed, KERNELS(K(learned_add)) },
    { "distances-left", law_bf16_distances, KERNELS_OF(POSENC_BF16, false, K(alibi)) },
    { "cosines-left", law_bf16_cosines, KERNELS_OF(POSENC_BF16, false, K(rope_table)) },
};
const int n_laws_text = sizeof laws_text / sizeof laws_text[0];
