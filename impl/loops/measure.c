/*
 * Times the loops of loops.c (linked as the assembler that llvm-mca was given), all in the L1
 * cache: how far the estimate of the core at hand is off.  Prints
 *
 *     cycle NANOSECONDS
 *     NAME VECTORS CYCLES         vectors that a turn (one pass through the body) stores, and
 *                                 the cycles that it takes
 *
 * A cycle is what one of a chain of dependent additions takes, timed among the loops.  Minima of
 * many rounds: what disturbs only adds.
 */
#define _POSIX_C_SOURCE 200809L
#include "loops.h"

#include <stdio.h>
#include <time.h>

enum { RESULTS = 2048, ROUNDS = 400 };
static const int calls = 40, additions = 20000;

static const struct {
    const char *name;
    void (*run)(const struct loop *);
    int64_t vectors;
} loops[] = {
#define LOOP(kernel, profile, variant, vectors)                                                \
    { #kernel "__" #profile "__" #variant, LOOP_NAME(kernel, profile, variant), vectors },
#include "loops.def"
};
enum { N = sizeof loops / sizeof *loops };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds of one of a chain of additions, register to register: some cores add constants
 * without spending a cycle. */
static double time_addition(void)
{
    uint64_t sum = 0, one = 1;
    double begin = now_ns();
    for (int i = 0; i < additions / 8; i++)
#if defined(__x86_64__)
        __asm__ volatile("add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
                         "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
                         : "+r"(sum)
                         : "r"(one));
#elif defined(__aarch64__)
        __asm__ volatile("add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n"
                         "add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n add %0, %0, %1\n"
                         : "+r"(sum)
                         : "r"(one));
#else
#error "a chain of additions is known for x86-64 and AArch64 only"
#endif
    return (now_ns() - begin) / additions;
}

static double time_call(int i, const struct loop *loop)
{
    double begin = now_ns();
    for (int k = 0; k < calls; k++)
        loops[i].run(loop);
    return (now_ns() - begin) / calls;
}

/* Frequencies of 0.01 rad and tables of one angle: every row is evaluated, none is small. */
static const struct posenc_freqs *make_plan(void)
{
    enum { PAIRS = RESULTS / (2 * POSENC_GROUP) };
    static float omega[PAIRS];
    static double middle[4 * PAIRS], twice[PAIRS];
    static uint64_t turns[PAIRS];
    static struct posenc_freqs freqs = { .stride = PAIRS };

    for (int i = 0; i < PAIRS; i++) {
        middle[i] = middle[2 * PAIRS + i] = 0.8;
        middle[PAIRS + i] = middle[3 * PAIRS + i] = 0.6;
        twice[i] = 2.0;
        omega[i] = 0.01f;
    }
    freqs.middle = middle;
    freqs.twice_cos = twice;
    freqs.view.omega_f32 = omega;
    freqs.view.turn_hi = freqs.view.turn_lo = turns;
    return &freqs;
}

int main(void)
{
    static _Alignas(64) float x[RESULTS], table[RESULTS], out[2 * RESULTS];
    static _Alignas(64) double anchors[LOOP_ANCHORS];
    double least[N], cycle = 1e30;
    struct loop loop = { .freqs = make_plan(), .anchors = anchors, .x = x };

    for (int i = 0; i < RESULTS; i++)
        x[i] = table[i] = 0.5f;
    for (int i = 0; i < LOOP_ANCHORS; i++)
        anchors[i] = 0.5;
    loop.table = table;
    loop.out = out;
    loop.sines = out + RESULTS;
    loop.scale = 1.0f;
    loop.query = RESULTS;
    loop.vectors = RESULTS / lanes_of_loops();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            loop.turns = loop.vectors / loops[i].vectors;
            loop.stride = loops[i].vectors * lanes_of_loops();
            double ns = time_call(i, &loop);
            least[i] = round == 0 || ns < least[i] ? ns : least[i];
        }
        double ns = time_addition();
        cycle = ns < cycle ? ns : cycle;
    }
    printf("cycle %.6f\n", cycle);
    for (int i = 0; i < N; i++)
        printf("%s %lld %.4f\n", loops[i].name, (long long)loops[i].vectors,
               least[i] / cycle * (double)loops[i].vectors / (double)loop.vectors);
    return 0;
}
