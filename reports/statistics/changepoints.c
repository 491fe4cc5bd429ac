/*
 * E-divisive on ranks, with a permutation test; see changepoints.h.
 */
#include "changepoints.h"
#include "stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What is worth testing against its neighbours. */
#define CANDIDATE_P 0.02

enum {
    SHUFFLES = 9999,
    ALLOWED = 9, /* of them may differ as much: (1 + 9) / (1 + 9999) is CHANGEPOINTS_P */
    REACH = 2 * CHANGEPOINTS_WINDOW, /* values of one test at most */
    CANDIDATES = 64,
};

static uint64_t next_random(uint64_t *state) /* splitmix64 (Steele, Lea and Flood 2014) */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Ranks, doubled to be whole where equal values share one, and what each is away from all others in sum. */
struct ranks {
    size_t n;
    int rank[REACH], sum[2 * REACH + 2]; /* sum: by rank */
};

static int distance(int a, int b) { return a > b ? a - b : b - a; }

static void rank_values(const double *x, size_t n, struct ranks *r)
{
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        int below = 0, equal = 0;
        for (size_t k = 0; k < n; k++) {
            below += x[k] < x[i];
            equal += x[k] == x[i];
        }
        r->rank[i] = 2 * below + equal + 1;
    }
    for (size_t i = 0; i < n; i++) {
        int sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += distance(r->rank[i], r->rank[k]);
        r->sum[r->rank[i]] = sum;
    }
}

static void shuffle(struct ranks *r, uint64_t *state)
{
    for (size_t i = r->n - 1; i > 0; i--) {
        const size_t k = (size_t)((next_random(state) >> 32) * (uint64_t)(i + 1) >> 32);
        const int swapped = r->rank[i];
        r->rank[i] = r->rank[k];
        r->rank[k] = swapped;
    }
}

/* A split and how much its sides differ. */
struct split {
    size_t at;
    double energy;
};

/* The weighted energy distance of both sides: `across` is the sum of distances between them, the others those of pairs
 * within each. */
static double energy_of(size_t left, size_t right, int across, int within_left,
                        int within_right)
{
    const double l = (double)left, r = (double)right;
    return l * r / (l + r) *
           (2.0 * across / (l * r) - 2.0 * within_left / (l * (l - 1.0)) -
            2.0 * within_right / (r * (r - 1.0)));
}

/* The split of the largest energy.  Value after value goes from the right to the left. */
static struct split best_split(const struct ranks *r)
{
    struct split best = { 0, -HUGE_VAL };
    int across = 0, left = 0, right = 0;
    for (size_t i = 0; i < r->n; i++)
        right += r->sum[r->rank[i]];
    right /= 2;
    for (size_t i = 0; i + CHANGEPOINTS_SIDE < r->n; i++) {
        int to_left = 0;
        for (size_t k = 0; k < i; k++)
            to_left += distance(r->rank[i], r->rank[k]);
        const int to_right = r->sum[r->rank[i]] - to_left;
        const size_t at = i + 1;
        left += to_left;
        right -= to_right;
        across += to_right - to_left;
        if (at < CHANGEPOINTS_SIDE)
            continue;
        const double energy = energy_of(at, r->n - at, across, left, right);
        if (energy > best.energy)
            best = (struct split){ at, energy };
    }
    return best;
}

/* p of an energy: the share of shuffles with a split of as much.  Shuffling ends when that is known to be above
 * CHANGEPOINTS_P (Besag and Clifford 1991). */
static double test_energy(struct ranks *r, double energy, uint64_t seed)
{
    uint64_t state = seed;
    int as_much = 0;
    for (int i = 1; i <= SHUFFLES; i++) {
        shuffle(r, &state);
        as_much += best_split(r).energy >= energy;
        if (as_much > ALLOWED)
            return (double)as_much / i;
    }
    return (1.0 + as_much) / (1.0 + SHUFFLES);
}

/* The best split of n values and its p. */
static struct changepoint test_values(const double *x, size_t n, uint64_t seed)
{
    struct ranks r;
    if (n < CHANGEPOINTS_LEAST)
        return (struct changepoint){ .p = 1.0 };
    rank_values(x, n, &r);
    const struct split split = best_split(&r);
    return (struct changepoint){ .at = split.at, .p = test_energy(&r, split.energy, seed) };
}

/* ---- Candidates ---- */

struct search {
    const double *x;
    uint64_t seed;
    size_t n, at[CANDIDATES]; /* candidates in their order */
};

static void add_candidate(struct search *s, size_t at)
{
    size_t k = s->n;
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i] == at)
            return;
    if (s->n == CANDIDATES)
        return;
    for (; k > 0 && s->at[k - 1] > at; k--)
        s->at[k] = s->at[k - 1];
    s->at[k] = at;
    s->n++;
}

/* Splits [from, to) as long as its sides differ. */
static void divide(struct search *s, size_t from, size_t to)
{
    const struct changepoint found = test_values(s->x + from, to - from, s->seed + from);
    if (found.p > CANDIDATE_P)
        return;
    add_candidate(s, from + found.at);
    divide(s, from, from + found.at);
    divide(s, from + found.at, to);
}

/* Windows of a length that overlap by half; the last one ends with the values. */
static void search_windows(struct search *s, size_t n, size_t length)
{
    for (size_t from = 0;; from += length / 2) {
        const bool last = n - from <= length;
        const size_t begin = last && n > length ? n - length : from;
        divide(s, begin, last ? n : from + length);
        if (last)
            return;
    }
}

/* ---- What holds against its neighbours ---- */

/* The values on both sides of candidate i, up to the next ones and no farther than a window. */
static void sides_of(const struct search *s, size_t n, size_t i, size_t *from, size_t *to)
{
    const size_t at = s->at[i];
    *from = i > 0 ? s->at[i - 1] : 0;
    *to = i + 1 < s->n ? s->at[i + 1] : n;
    if (at - *from > CHANGEPOINTS_WINDOW)
        *from = at - CHANGEPOINTS_WINDOW;
    if (*to - at > CHANGEPOINTS_WINDOW)
        *to = at + CHANGEPOINTS_WINDOW;
}

/* Candidate i moves to where the values between its neighbours are split best. */
static struct changepoint settle(struct search *s, size_t n, size_t i)
{
    size_t from, to;
    sides_of(s, n, i, &from, &to);
    struct changepoint found = test_values(s->x + from, to - from, s->seed + from);
    found.from = from;
    found.to = to;
    if (found.p <= CHANGEPOINTS_P) {
        found.at += from;
        s->at[i] = found.at;
        found.before = stats_median(s->x + from, found.at - from);
        found.after = stats_median(s->x + found.at, to - found.at);
    }
    return found;
}

/* The one with the largest p above CHANGEPOINTS_P; s->n: all hold. */
static size_t weakest(const struct search *s, const struct changepoint *found)
{
    size_t worst = s->n;
    double p = CHANGEPOINTS_P;
    for (size_t i = 0; i < s->n; i++)
        if (found[i].p > p) {
            worst = i;
            p = found[i].p;
        }
    return worst;
}

size_t changepoints_find(const double *x, size_t n, uint64_t seed, struct changepoint *found,
                         size_t most)
{
    struct search s = { .x = x, .seed = seed };
    struct changepoint settled[CANDIDATES];
    if (n < CHANGEPOINTS_LEAST)
        return 0;
    /* Down and up again: neither stands out where a window is longer than both. */
    for (size_t part = 1; part <= 3; part++)
        if (part == 1 || n > CHANGEPOINTS_WINDOW / part)
            search_windows(&s, n, CHANGEPOINTS_WINDOW / part);
    for (;;) {
        for (size_t i = 0; i < s.n; i++)
            settled[i] = settle(&s, n, i);
        const size_t gone = weakest(&s, settled);
        if (gone == s.n)
            break;
        memmove(s.at + gone, s.at + gone + 1, (s.n - gone - 1) * sizeof *s.at);
        s.n--;
    }
    const size_t kept = s.n < most ? s.n : most;
    memcpy(found, settled, kept * sizeof *found);
    return kept;
}
