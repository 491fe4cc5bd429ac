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

/* A call whose loops can be run; `fine` where it could be made.  Given back whatever became of it. */
struct opened {
    struct call call;
    struct timed_call timed;
    struct team *team;
    bool fine;
};

static void open_call(struct opened *o, const struct problem *problem, int threads)
{
    *o = (struct opened){ .team = team_create(threads) };
    o->fine = o->team && call_create(&o->call, problem, &memory_plain) == POSENC_OK &&
              timed_call_open(&o->timed, &o->call, o->team, threads);
}

static void close_call(struct opened *o)
{
    timed_call_close(&o->timed);
    call_destroy(&o->call);
    team_destroy(o->team);
}

/* The loop of the call's work, over its tensors where it can go there; run once. */
static struct contender run_in_tensors(const struct opened *o)
{
    struct contender c = contender_of_loop_in_tensors(
        &o->timed, scalar_loop(o->timed.work.kind), &o->timed.work);
    contender_call(&c);
    return c;
}

/* The first output as it is now; malloc'ed, NULL where there is none. */
static float *copy_of(const struct opened *o)
{
    const size_t bytes = o->fine ? (size_t)o->timed.n[0] * sizeof(float) : 0;
    float *copy = bytes > 0 ? malloc(bytes) : NULL;
    if (copy)
        memcpy(copy, o->timed.dst[0], bytes);
    return copy;
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
    struct opened o;
    open_call(&o, &problem, threads);
    float *before = copy_of(&o);
    bool right = before;
    int64_t written = 0;
    if (before) {
        const float *scores = o.timed.dst[0];
        const int64_t n = o.timed.n[0];
        const struct contender c = run_in_tensors(&o);
        for (int64_t i = 0, at = 0; i < n; i++) {
            const bool changed = memcmp(&scores[i], &before[i], sizeof *before) != 0;
            written += changed;
            at = changed && i > 0 && (scores[i] - before[i]) < 0.3f ? 0
                                                                    : at; /* a thread's first */
            right = right && (!changed || near((double)scores[i] - (double)before[i],
                                               0.25 * (double)(at + 1)));
            at = at + 1 < problem.keys ? at + 1 : 0;
        }
        right = right && o.timed.work.kind == ROOF_BARE_slope && c.blocks == 0 &&
                written > n - threads * LOOPED_BLOCK &&
                near(c.times * (double)written, (double)o.timed.work.floats);
    }
    free(before);
    close_call(&o);
    return right;
}

/* Whether a kernel's loop goes over its tensors, of so many bytes, each of those that are written. */
static bool is_over_tensors(enum posenc_kernel kernel, size_t bytes)
{
    const struct problem problem = problem_realistic(kernel, POSENC_F32, bytes);
    struct opened o;
    open_call(&o, &problem, 1);
    bool over = o.fine;
    for (int k = 0; o.fine && k < 2 && o.timed.n[k] > 0; k++)
        o.timed.dst[k][0] = -77.0f;
    over = over && run_in_tensors(&o).blocks == 0;
    for (int k = 0; o.fine && k < 2 && o.timed.n[k] > 0; k++)
        over = over && o.timed.dst[k][0] != -77.0f;
    close_call(&o);
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
    struct opened o;
    open_call(&o, &problem, threads);
    float *before = copy_of(&o);
    bool right = before;
    if (before) {
        const struct timed_call *timed = &o.timed;
        const int64_t n = timed->n[0];
        struct contender c = run_in_tensors(&o);
        const int64_t turned = pairs_turned(type, before, timed->dst[0], n, &right);
        right = right && c.blocks == 0 && timed->work.floats == n &&
                turned > n - threads * LOOPED_BLOCK &&
                near(c.times * (double)turned, (double)n);
        c = contender_of_loop(timed, scalar_loop(timed->work.kind), &timed->work);
        contender_call(&c);
        const int64_t in_block = pairs_turned(type, timed->blocks[0].stored,
                                              timed->blocks[0].out, LOOPED_BLOCK, &right);
        right = right && c.blocks > 0 && in_block == LOOPED_BLOCK;
    }
    free(before);
    close_call(&o);
    return right;
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
    struct opened o;
    open_call(&o, &problem, 1);
    bool right = o.fine && o.timed.n[0] == TOKENS * DIM;
    if (right) {
        const float *table = o.timed.dst[0];
        memset(o.timed.dst[0], 0, TOKENS * DIM * sizeof *table);
        const struct contender c = run_in_tensors(&o);
        right = c.blocks == 0 && near(c.times, 1.0);
        for (int64_t i = 0; i < o.timed.n[0];
             i += i % (DIM / 2) == DIM / 2 - 1 ? DIM / 2 + 1 : 1)
            right = right && near(hypot((double)table[i], (double)table[i + DIM / 2]), 1.0);
    }
    close_call(&o);
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
