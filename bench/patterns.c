/*
 * Times access patterns (impl/loops/patterns.h) and the bare loop of sums, of sizes that `posenc bench --full`
 * has, and prints what docs/performance.md says of them:
 *
 *     patterns [ROUNDS]
 *
 * Of each the median of ROUNDS, 11 where none are named, in microseconds, for every instruction set that runs
 * here; in each round all of them take a turn.  Each is checked before; with 0 rounds that is all.
 */
#include "buffers.h"
#include "clock.h"
#include "impl/loops/bare.h"
#include "impl/loops/patterns.h"
#include "posenc.h"
#include "base/statistics/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Patterns ---- */

enum pattern_kind {
#define KIND(name, unused) PATTERN_##name,
    PATTERN_KINDS(KIND, )
#undef KIND
        PATTERN_sums, /* bare.h, of sixteen rows of x after the other */
    PATTERN_KIND_COUNT
};
static const char *const kind_names[] = {
#define KIND(name, unused) [PATTERN_##name] = #name,
    PATTERN_KINDS(KIND, )[PATTERN_sums] = "sums",
#undef KIND
};

struct isa {
    const char *name;
    void (*pattern[PATTERN_KIND_COUNT])(const struct pattern_data *data);
};

enum { SUM_ROWS = 16 };
#define ISA(name)                                                                              \
    static void sums_##name(const struct pattern_data *data)                                   \
    {                                                                                          \
        for (int64_t r = 0; r + SUM_ROWS <= data->rows; r += SUM_ROWS)                         \
            BARE_NAME(sums, name)                                                              \
        (data->out + r, data->x + r * data->row, NULL, (size_t)(SUM_ROWS * data->row));        \
    }
BARE_ISAS
#undef ISA

static const struct isa isas[] = {
#define KIND(kind, isa) [PATTERN_##kind] = PATTERN_NAME(kind, isa),
#define ISA(name)       { #name, { PATTERN_KINDS(KIND, name)[PATTERN_sums] = sums_##name } },
    BARE_ISAS
#undef ISA
#undef KIND
};
enum { ISAS = sizeof isas / sizeof *isas };

/* ---- What is timed ---- */

static const struct line {
    enum pattern_kind kind;
    int64_t rows, row;
    bool far;
    const char *what;
} lines[] = {
    { PATTERN_copy, 128, 512, false, "copied, 256 KiB" },
    { PATTERN_eights, 128, 512, false, "the same, eight rows side by side" },
    { PATTERN_copy, 65536, 512, true, "copied past the caches, 128 MiB" },
    { PATTERN_near, 131072, 512, true, "eight rows made nearby, then sent past them, 256 MiB" },
    { PATTERN_near, 1048576, 64, true, "the same, rows of 64" },
    { PATTERN_near_add, 65536, 512, true, "the same, added to x on their way, 128 MiB" },
    { PATTERN_windows, 145 * 588, 49, false, "a window's biases added in place, 16 MiB" },
    { PATTERN_windows, 2330 * 588, 49, true, "the same, 256 MiB" },
    { PATTERN_c2p, 5 * 512, 512, false, "lines of c2p, 10 MiB" },
    { PATTERN_p2c, 5 * 512, 512, false, "lines of p2c" },
    { PATTERN_both, 5 * 512, 512, false, "lines of both, 15 MiB" },
    { PATTERN_turned, 5 * 512, 512, false, "both terms, columns known, 15 MiB" },
    { PATTERN_both, 12 * 336, 336, false, "lines of both, 12 heads of 336" },
    { PATTERN_turned, 12 * 336, 336, false, "both terms, columns known, 12 heads of 336" },
    { PATTERN_turned_add, 12 * 336, 336, false, "the same, added in place" },
    { PATTERN_c2p, 84 * 512, 512, true, "lines of c2p, 168 MiB" },
    { PATTERN_p2c, 84 * 512, 512, true, "lines of p2c" },
    { PATTERN_both, 84 * 512, 512, true, "lines of both, 252 MiB" },
    { PATTERN_turned, 84 * 512, 512, true, "both terms, columns known, 252 MiB" },
    { PATTERN_turned_add, 84 * 512, 512, true, "the same, added in place" },
    { PATTERN_sums, 64, 2048, false, "sixteen rows of 2048 side by side, summed, 512 KiB" },
    { PATTERN_sums, 2048, 2048, false, "the same, 16 MiB" },
    { PATTERN_sums, 32768, 2048, true, "the same, 256 MiB" },
};
enum { LINES = sizeof lines / sizeof *lines, MOST_ROUNDS = 99 };

static bool runs_here(const struct isa *isa)
{
    const struct posenc_backend *backend = posenc_backend_find(isa->name);
    return backend && !posenc_backend_obstacle(backend);
}

/* ---- Whether each does what it is named after ---- */

enum { SMALL = PATTERN_HEADS * PATTERN_PLANE, GUARD = 64, UNTOUCHED = -77 };
static _Alignas(64) float small_out[SMALL + GUARD], small_x[SMALL + GUARD];

/* Both terms of a query and a key, halved, and what was there before. */
static bool is_turned(int64_t query, int64_t key, int64_t row, float before)
{
    const int32_t column = pattern_column(query - key, row);
    const float c2p = small_x[query * row + column], p2c = small_x[key * row + column];
    return fabsf(small_out[query * row + key] - before - 0.5f * (c2p + p2c)) < 1e-4f;
}

static bool is_written(enum pattern_kind kind, int64_t i, int64_t row)
{
    const float out = small_out[i];
    float sum = 0.0f;
    switch (kind) {
    case PATTERN_copy:
    case PATTERN_eights:
    case PATTERN_near_add:
        return out == small_x[i] + 0.5f;
    case PATTERN_near:
        return out == 0.5f;
    case PATTERN_sums: /* multiples of 1/256, which add up without rounding */
        for (int64_t k = 0; k < row; k++)
            sum += small_x[i * row + k];
        return out == sum;
    case PATTERN_turned:
        return is_turned(i / row, i % row, row, 0.0f);
    case PATTERN_turned_add:
        return is_turned(i / row, i % row, row, (float)UNTOUCHED);
    default: /* sixteen elements at most of each key's row, and one of the query's for each key */
        return out >= 0.5f && out < 1.5f * (float)(17 * row);
    }
}

/* Four vectors of the longest are left, and what is before a line. */
static bool are_windows_added(bool far)
{
    enum { LEFT = 16 + 256 };
    bool right = true;
    for (int64_t plane = 0; plane < PATTERN_HEADS; plane++)
        for (int64_t i = 0; i < PATTERN_PLANE; i++) {
            const int64_t at = plane * PATTERN_PLANE + i;
            const int64_t from = (far ? plane % 4 : 0) * PATTERN_PLANE + i;
            const float added = small_out[at] - small_x[at];
            const bool end = i < 16 || i >= PATTERN_PLANE - LEFT;
            right = right && (added == (float)(from % 11) || (end && added == 0.0f));
        }
    return right;
}

static bool is_right(const struct isa *isa, enum pattern_kind kind, bool far)
{
    enum { SQUARE = 64 };
    const bool windows = kind == PATTERN_windows;
    const int64_t row = windows ? PATTERN_PLANE : SQUARE,
                  rows = windows ? PATTERN_HEADS : SQUARE;
    const int64_t n = kind == PATTERN_sums ? rows : rows * row;
    bool right = true;
    for (int64_t i = 0; i < SMALL + GUARD; i++) {
        small_x[i] = 0.5f + (float)(i % 251) / 256.0f;
        small_out[i] = windows && i < n ? small_x[i] : (float)UNTOUCHED;
    }
    const struct pattern_data data = { small_out, small_x, small_x, rows, row, far };
    isa->pattern[kind](&data);
    for (int64_t i = 0; i < n && !windows; i++)
        right = right && is_written(kind, i, row);
    for (int64_t i = n; i < SMALL + GUARD; i++)
        right = right && small_out[i] == (float)UNTOUCHED;
    return right && (!windows || are_windows_added(far));
}

static bool are_right(void)
{
    bool right = true;
    for (int i = 0; i < ISAS; i++)
        for (int kind = 0; runs_here(&isas[i]) && kind < PATTERN_KIND_COUNT; kind++)
            if (!is_right(&isas[i], (enum pattern_kind)kind, false) ||
                !is_right(&isas[i], (enum pattern_kind)kind, true)) {
                fprintf(stderr, "patterns: %s of %s does not do what it is named after\n",
                        kind_names[kind], isas[i].name);
                right = false;
            }
    return right;
}

/* ---- Timing ---- */

/* Seconds of one pass, of as many as the clock needs. */
static double time_once(const struct isa *isa, const struct line *line,
                        const struct pattern_data *data)
{
    int64_t passes = 0;
    isa->pattern[line->kind](data);
    const double begin = clock_now(), least = clock_least_sample();
    double end = begin;
    for (; end - begin < least; passes++, end = clock_now())
        isa->pattern[line->kind](data);
    return (end - begin) / (double)passes;
}

static void time_line(const struct line *line, float *memory[3], int rounds)
{
    const struct pattern_data data = { memory[0],  memory[1], memory[2],
                                       line->rows, line->row, line->far };
    double seconds[ISAS][MOST_ROUNDS];
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < ISAS; i++)
            if (runs_here(&isas[i]))
                seconds[i][round] = time_once(&isas[i], line, &data);
    printf("%-55s", line->what);
    for (int i = 0; i < ISAS; i++)
        if (runs_here(&isas[i]))
            printf(" %12.1f", stats_median(seconds[i], (size_t)rounds) * 1e6);
    printf("\n");
    fflush(stdout);
}

/* Three arrays as large as the largest line needs, and one block of queries more, which asks for what is past
 * the last; ordinary numbers.  Each begins elsewhere in its page, as the tensors of bench do. */
static bool fill(float *memory[3], struct memory buffers)
{
    const size_t bytes = (size_t)257 << 20;
    for (int k = 0; k < 3; k++) {
        memory[k] = buffers.get(buffers.user, bytes, 0, 'p');
        for (size_t i = 0; memory[k] && i < bytes / sizeof *memory[k]; i++)
            memory[k][i] = 0.5f + (float)(i % 256) / 256.0f;
    }
    return memory[0] && memory[1] && memory[2];
}

static int print_all(int rounds)
{
    unsigned count;
    float *memory[3];
    const struct memory buffers = bench_memory(&count);
    if (!fill(memory, buffers)) {
        fprintf(stderr, "patterns: 771 MiB of memory are not to be had\n");
        return 1;
    }
    printf("%-55s", "us, one thread");
    for (int i = 0; i < ISAS; i++)
        if (runs_here(&isas[i]))
            printf(" %12s", isas[i].name);
    printf("\n");
    for (int i = 0; i < LINES; i++)
        time_line(&lines[i], memory, rounds);
    for (int i = 0; i < 3; i++)
        buffers.free(buffers.user, memory[i]);
    return 0;
}

int main(int argc, char **argv)
{
    char *end = "";
    const long rounds = argc > 1 ? strtol(argv[1], &end, 10) : 11;
    if (argc > 2 || *end || (argc > 1 && end == argv[1]) || rounds < 0 ||
        rounds > MOST_ROUNDS) {
        fprintf(stderr, "patterns: rounds: '%s', expected one number from 0 to %d\n",
                argc > 1 ? argv[argc - 1] : "", MOST_ROUNDS);
        return 2;
    }
    if (!are_right())
        return 1;
    return rounds > 0 ? print_all((int)rounds) : 0;
}
