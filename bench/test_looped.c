/*
 * Which bare loop a call has, and what it goes over: the call's tensors, each float once, or blocks, so many
 * times.  That loops do what their names say: test_bare.c.
 */
#include "contender.h"
#include "conformance/problem/storage.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * (1.0 + fabs(b)); }

static void samples(void)
{
    static const int64_t floats[] = { 1, 2048, 5000, 1 << 26 };
    bool all = true;
    for (int threads = 1; threads < 4; threads++)
        for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
            const int64_t row = i % 2 == 0 ? 0 : 91,
                          block = row ? LOOPED_BLOCK / row * row : LOOPED_BLOCK;
            const struct looped looped = { .kind = ROOF_BARE_line,
                                           .floats = floats[i],
                                           .wide = true,
                                           .row = row,
                                           .at_once = 1 };
            double times = 0.0;
            const int64_t blocks = looped_sample(&looped, threads, &times);
            all = all && blocks > 0 && blocks <= 32 &&
                  near(times * (double)(blocks * block * threads), (double)floats[i]);
        }
    require(all, "a sample of a loop, so many times for each thread, is all of the call");
}

/* The loop of a kind by plain C, which runs on every CPU. */
static const struct roof_variant *scalar_loop(enum roof_kind kind)
{
    for (size_t i = 0; roof_variant_at(i); i++)
        if (roof_variant_at(i)->kind == kind && strcmp(roof_variant_at(i)->name, "scalar") == 0)
            return roof_variant_at(i);
    return NULL;
}

/* Slopes onto the scores of a call: all that loops of whole blocks cover, each once, and nothing else. */
static bool goes_over_scores(int threads)
{
    struct problem problem = problem_default(POSENC_KERNEL_alibi_add);
    problem.heads = 3;
    problem.queries = 64;
    problem.keys = 91;
    problem.in_place = true;
    problem_settle(&problem);
    struct call call;
    struct timed_call timed = { 0 };
    struct team *team = team_create(threads);
    bool right = team && call_create(&call, &problem, &memory_plain) == POSENC_OK;
    right = right && timed_call_open(&timed, &call, team, threads);
    const int64_t n = right ? timed.n[0] : 0;
    float *before = right ? malloc((size_t)n * sizeof *before) : NULL;
    int64_t written = 0;
    if (before) {
        const float *scores = timed.dst[0];
        memcpy(before, scores, (size_t)n * sizeof *before);
        struct contender c =
            contender_of_loop_in_tensors(&timed, scalar_loop(ROOF_BARE_slope), &timed.work);
        contender_call(&c);
        for (int64_t i = 0, at = 0; i < n; i++) {
            const bool changed = memcmp(&scores[i], &before[i], sizeof *before) != 0;
            written += changed;
            at = changed && i > 0 && (scores[i] - before[i]) < 0.3f ? 0
                                                                    : at; /* a thread's first */
            right = right && (!changed || near((double)scores[i] - (double)before[i],
                                               0.25 * (double)(at + 1)));
            at = at + 1 < problem.keys ? at + 1 : 0;
        }
        right = right && c.blocks == 0 && written > n - threads * LOOPED_BLOCK &&
                near(c.times * (double)written, (double)timed.work.floats);
    }
    free(before);
    timed_call_close(&timed);
    call_destroy(&call);
    team_destroy(team);
    return right && before;
}

/* Whether a kernel's loop goes over its tensors, of so many bytes, each of those that are written. */
static bool is_over_tensors(enum posenc_kernel kernel, size_t bytes)
{
    const struct problem problem = problem_realistic(kernel, POSENC_F32, bytes);
    struct call call;
    struct timed_call timed = { 0 };
    struct team *team = team_create(1);
    bool over = team && call_create(&call, &problem, &memory_plain) == POSENC_OK;
    if (over && timed_call_open(&timed, &call, team, 1)) {
        struct contender c =
            contender_of_loop_in_tensors(&timed, scalar_loop(timed.work.kind), &timed.work);
        for (int o = 0; o < 2 && timed.n[o] > 0; o++)
            timed.dst[o][0] = -77.0f;
        contender_call(&c);
        over = c.blocks == 0;
        for (int o = 0; o < 2 && timed.n[o] > 0; o++)
            over = over && timed.dst[o][0] != -77.0f;
    }
    timed_call_close(&timed);
    call_destroy(&call);
    team_destroy(team);
    return over;
}

static enum roof_kind loop_of(enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    struct problem problem = problem_default(kernel);
    problem.dtype = dtype;
    problem_settle(&problem);
    struct call call;
    const bool made = call_create(&call, &problem, &memory_plain) == POSENC_OK;
    const enum roof_kind kind = made ? looped_work(&call).kind : ROOF_KIND_COUNT;
    if (made)
        call_destroy(&call);
    return kind;
}

/* How many of n interleaved pairs of 16 bits are turned by (0.8, 0.6), a pair in the room of each float; the others
 * are as they were. */
static int64_t pairs_turned(enum posenc_dtype type, const float *before, const float *after,
                            int64_t n, bool *right)
{
    int64_t turned = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = (double)storage_get(type, before + i, 0),
                     b = (double)storage_get(type, before + i, 1);
        const double first = (double)storage_get(type, after + i, 0),
                     second = (double)storage_get(type, after + i, 1);
        const double off = 0x1p-8 * hypot(a, b);
        const bool changed = memcmp(before + i, after + i, sizeof *before) != 0;
        *right = *right && (!changed || (fabs(first - (0.8 * a - 0.6 * b)) <= off &&
                                         fabs(second - (0.8 * b + 0.6 * a)) <= off));
        turned += changed;
    }
    return turned;
}

/* A loop of 16 bits, over a call's tensor and over a block. */
static bool turns_what_is_stored(enum posenc_dtype type, int threads)
{
    struct problem problem = problem_realistic(POSENC_KERNEL_rope_interleaved, type, 1 << 18);
    problem.in_place = true;
    struct call call;
    struct timed_call timed = { 0 };
    struct team *team = team_create(threads);
    bool right = team && call_create(&call, &problem, &memory_plain) == POSENC_OK;
    right = right && timed_call_open(&timed, &call, team, threads);
    const int64_t n = right ? timed.n[0] : 0;
    float *before = right ? malloc((size_t)n * sizeof *before) : NULL;
    if (before) {
        memcpy(before, timed.dst[0], (size_t)n * sizeof *before);
        const struct roof_variant *loop = scalar_loop(timed.work.kind);
        struct contender c = contender_of_loop_in_tensors(&timed, loop, &timed.work);
        contender_call(&c);
        const int64_t turned = pairs_turned(type, before, timed.dst[0], n, &right);
        right = right && c.blocks == 0 && timed.work.floats == n &&
                turned > n - threads * LOOPED_BLOCK &&
                near(c.times * (double)turned, (double)n);
        c = contender_of_loop(&timed, loop, &timed.work);
        contender_call(&c);
        const int64_t in_block = pairs_turned(type, timed.blocks[0].stored, timed.blocks[0].out,
                                              LOOPED_BLOCK, &right);
        right = right && c.blocks > 0 && in_block == LOOPED_BLOCK;
    }
    free(before);
    timed_call_close(&timed);
    call_destroy(&call);
    team_destroy(team);
    return right && before;
}

/* The loop of a table whose rows are longer than a block: in each, sines are half a row from cosines. */
static bool goes_in_rows(void)
{
    enum { TOKENS = 24, DIM = 512 };
    struct problem problem = problem_default(POSENC_KERNEL_sinusoidal);
    problem.batch = 1;
    problem.tokens = TOKENS;
    problem.freqs.dim = DIM;
    problem.layout = POSENC_SIN_COS;
    problem_settle(&problem);
    struct call call;
    struct timed_call timed = { 0 };
    struct team *team = team_create(1);
    bool right = team && call_create(&call, &problem, &memory_plain) == POSENC_OK;
    right = right && timed_call_open(&timed, &call, team, 1) && timed.n[0] == TOKENS * DIM;
    if (right) {
        struct contender c =
            contender_of_loop_in_tensors(&timed, scalar_loop(timed.work.kind), &timed.work);
        memset(timed.dst[0], 0, TOKENS * DIM * sizeof *timed.dst[0]);
        contender_call(&c);
        right = c.blocks == 0 && near(c.times, 1.0);
        for (int64_t i = 0; i < timed.n[0]; i += i % (DIM / 2) == DIM / 2 - 1 ? DIM / 2 + 1 : 1)
            right =
                right &&
                near(hypot((double)timed.dst[0][i], (double)timed.dst[0][i + DIM / 2]), 1.0);
    }
    timed_call_close(&timed);
    call_destroy(&call);
    team_destroy(team);
    return right;
}

static void tensors(void)
{
    for (int threads = 1; threads < 4; threads++)
        require(goes_over_scores(threads), "a loop goes over the tensors of its call, once");
    require(is_over_tensors(POSENC_KERNEL_rope_table, 1 << 16), "of a table's two, too");
    require(loop_of(POSENC_KERNEL_rope_half, POSENC_F32) == ROOF_BARE_turn &&
                loop_of(POSENC_KERNEL_rope_interleaved, POSENC_F32) == ROOF_BARE_pairs,
            "of halves one that turns halves, of interleaved pairs one that swaps them,");
    require(loop_of(POSENC_KERNEL_rope_half, POSENC_F16) == ROOF_BARE_turn_f16 &&
                loop_of(POSENC_KERNEL_rope_half, POSENC_BF16) == ROOF_BARE_turn_bf16 &&
                loop_of(POSENC_KERNEL_rope_interleaved, POSENC_F16) == ROOF_BARE_pairs_f16 &&
                loop_of(POSENC_KERNEL_rope_interleaved, POSENC_BF16) == ROOF_BARE_pairs_bf16,
            "of 16 bits one that converts, too,");
    for (int threads = 1; threads < 4; threads++)
        require(turns_what_is_stored(POSENC_F16, threads) &&
                    turns_what_is_stored(POSENC_BF16, threads),
                "over all that is stored, once, or over a block of such elements,");
    require(goes_in_rows(), "in rows as long as the call's,");
    require(!is_over_tensors(POSENC_KERNEL_alibi, 1 << 12),
            "but not what is less than a block");
    require(!is_over_tensors(POSENC_KERNEL_rope_qk_norm, 1 << 16), "nor what would grow,");
    require(!is_over_tensors(POSENC_KERNEL_relative_sum, 1 << 16), "nor what reads more,");
    require(bench_in_caches(4096) && !bench_in_caches(SIZE_MAX), "nor what no cache holds");
}

int main(void)
{
    samples();
    tensors();
    return tap_end();
}
