/*
 * The rule for verdicts: by hand, and by what it says of machines that are made up: with a drift, with
 * launches that differ from each other, with a noisy neighbour, with heavy tails.  Beside it stands the rule that
 * takes all rounds for independent, which is what one would write first.
 *
 *     test_verdict            a test: some hundred comparisons of each machine, the seed fixed
 *     test_verdict 100000     so many comparisons: the table of docs/verdicts.md
 */
#include "reports/statistics/stats.h"
#include "reports/statistics/verdict.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAUNCHES = 16, MOST_ROUNDS = 31 };

/* ---- By hand ---- */

/* A comparison of launches that all have the same rounds: y, or z, at its middle. */
struct fed {
    double head[MOST_LAUNCHES][MOST_ROUNDS], null[MOST_LAUNCHES][MOST_ROUNDS];
    const double *heads[MOST_LAUNCHES], *nulls[MOST_LAUNCHES];
    size_t rounds[MOST_LAUNCHES];
};

static struct verdict_pair pair_of(struct fed *f, size_t launches, size_t rounds)
{
    for (size_t l = 0; l < launches; l++) {
        f->heads[l] = f->head[l];
        f->nulls[l] = f->null[l];
        f->rounds[l] = rounds;
    }
    return (struct verdict_pair){
        .launches = launches, .rounds = f->rounds, .head = f->heads, .null = f->nulls
    };
}

/* Launches by their medians in per cent, the rounds 0.1 % around them. */
static struct verdict_pair feed(struct fed *f, size_t launches, const double *head,
                                const double *null)
{
    for (size_t l = 0; l < launches; l++)
        for (int r = 0; r < MOST_ROUNDS; r++) {
            const double around = 0.0002 * ((r * 7) % MOST_ROUNDS - MOST_ROUNDS / 2) / 3.0;
            f->head[l][r] = log1p(head[l] / 100.0) + around;
            f->null[l][r] = log1p(null[l] / 100.0) - around;
        }
    return pair_of(f, launches, MOST_ROUNDS);
}

static struct fed fed;

static bool says(const struct verdict_pair *pair, enum verdict_kind kind, const char *why)
{
    const struct verdict v = verdict_of(pair);
    const bool right = v.kind == kind && strstr(v.reason, why);
    if (!right)
        printf("# %s: %s, %.2f %% [%.2f, %.2f], floor %.2f %%, %zu/%zu\n", verdict_name[v.kind],
               v.reason, 100.0 * (v.ratio - 1.0), 100.0 * (v.lo - 1.0), 100.0 * (v.hi - 1.0),
               100.0 * v.floor, v.agree, v.launches);
    return right;
}

static void test_beyond(void)
{
    const double none[] = { 0.0, 0.1, -0.1, 0.1, -0.1 }, up[] = { 5.0, 5.1, 4.9, 5.1, 5.0 },
                 down[] = { -5.0, -5.1, -4.9, -5.1, -5.0 },
                 little[] = { 2.0, 2.1, 1.9, 2.0, 2.1 };
    struct verdict_pair p = feed(&fed, 3, up, none);
    struct verdict v = verdict_of(&p);
    require(says(&p, VERDICT_SLOWER, "over the budget of 3 %; 3/3 launches; not confirmed yet"),
            "5 % in three launches is slower");
    require(!v.confirmed && !v.fails, "and fails nothing before it was confirmed");
    require(fabs(v.ratio - 1.05) < 1e-3 && v.lo < 1.05 && v.hi > 1.05 && v.level == 0.99,
            "its ratio lies in the interval");
    p = feed(&fed, 5, up, none);
    p.confirming = 2;
    require(says(&p, VERDICT_SLOWER, "5/5 launches; confirmed") && verdict_of(&p).fails,
            "two further launches confirm it, and a gate fails");
    p.budget = 0.08;
    require(says(&p, VERDICT_SLOWER, "under the budget of 8 %") && !verdict_of(&p).fails,
            "below the budget it is slower, and fails nothing");
    p = feed(&fed, 5, down, none);
    p.confirming = 2;
    require(says(&p, VERDICT_FASTER, "5/5 launches; confirmed") && !verdict_of(&p).fails,
            "faster is the mirror image");
    p = feed(&fed, 5, little, none);
    p.confirming = 2;
    require(says(&p, VERDICT_SLOWER, "under the budget of 3 %") && !verdict_of(&p).fails,
            "2 % for sure is slower, within the budget");
    p.same_code = true;
    require(says(&p, VERDICT_IDENTICAL, "the same machine code: +2.0 % is layout or noise"),
            "the same machine code is no change, whatever the clock says");
}

static void test_unclear(void)
{
    const double none[] = { 0.0, 0.1, -0.1, 0.1, -0.1 }, up[] = { 5.0, 5.1, 4.9, 5.1, 5.0 },
                 same[] = { 0.2, -0.1, 0.1, 0.0, 0.1 }, spread[] = { 9.0, 1.2, 5.0, 0.9, 8.0 },
                 late[] = { 5.0, 5.1, 4.9, 5.0, 0.2 }, wild[] = { 4.0, -4.5, 5.0, -5.0, 4.4 },
                 up8[] = { 5.0, 5.1, 4.9, 5.0, 5.1, 5.0, 4.8, 5.2 },
                 wild8[] = { 6.0, -6.0, 5.8, -6.2, 6.0, -5.9, 6.1, -6.0 };
    struct verdict_pair p = feed(&fed, 3, same, none);
    require(says(&p, VERDICT_SAME, "within the budget of 3 %"), "no difference is the same");
    p = feed(&fed, 2, up, none);
    require(says(&p, VERDICT_UNCLEAR, "2 launches; 3 are the least"),
            "two launches say nothing");
    p = feed(&fed, 3, spread, none);
    require(says(&p, VERDICT_UNCLEAR, "noisy"), "launches far apart are unclear");
    require(verdict_of(&p).more > 0.2, "and more of them would tell");
    p = feed(&fed, 5, late, none);
    p.confirming = 2;
    require(says(&p, VERDICT_UNCLEAR, ""), "what one further launch denies is unclear");
    p = feed(&fed, 8, up8, wild8);
    require(verdict_of(&p).floor > 0.059, "base that is 6 % from its own copy lifts the floor");
    require(says(&p, VERDICT_UNCLEAR, ""), "and 5 % are within it");
    p = feed(&fed, 5, up, wild);
    require(says(&p, VERDICT_UNCLEAR, ""), "also where the launches of head agree");
    p = feed(&fed, 0, up, none);
    require(says(&p, VERDICT_UNCLEAR, "no launch has timed both"), "nothing is unclear");
}

/* Student's interval by hand: y is 4, 5 and 6 less half of z, which is 0.3, -0.6 and 0.3, in per cent of a
 * logarithm; the variance of one copy is (sum (y - mean)^2 / 1.5 + sum z^2 / 2) / 5. */
static void test_interval(void)
{
    static const double head[] = { 0.04, 0.05, 0.06 }, null[] = { 0.003, -0.006, 0.003 };
    struct verdict_pair p = pair_of(&fed, 3, MOST_ROUNDS);
    for (int l = 0; l < 3; l++)
        for (int r = 0; r < MOST_ROUNDS; r++) {
            fed.head[l][r] = head[l];
            fed.null[l][r] = null[l];
        }
    const double y[] = { 0.0385, 0.053, 0.0585 }, mean = 0.05,
                 squares = (y[0] - mean) * (y[0] - mean) + (y[1] - mean) * (y[1] - mean) +
                           (y[2] - mean) * (y[2] - mean),
                 variance = (squares / 1.5 + (9e-6 + 36e-6 + 9e-6) / 2.0) / 5.0,
                 half = 4.0321 * sqrt(1.5 * variance / 3.0);
    const struct verdict v = verdict_of(&p);
    require(fabs(log(v.ratio) - mean) < 1e-12 && fabs(log(v.hi) - mean - half) < 1e-6 &&
                fabs(mean - log(v.lo) - half) < 1e-6,
            "the interval is Student's, with the null control's share in the variance");
    for (int l = 0; l < 3; l++)
        for (int r = 0; r < MOST_ROUNDS; r++)
            fed.head[l][r] = 0.05 + 0.02 * ((r * 7) % MOST_ROUNDS - MOST_ROUNDS / 2);
    require(says(&p, VERDICT_UNCLEAR, "noisy"),
            "and never narrower than what the rounds tell of their median");
    const double steady[] = { 1.5, 1.5, 1.5 }, up[] = { 4.0, 4.0, 4.0 };
    p = feed(&fed, 3, up, steady);
    require(fabs(verdict_of(&p).floor - 0.0302) < 1e-3,
            "a copy that is always 1.5 % off doubles the floor");
}

/* Seven launches for it, three that one copy of base denies. */
static void test_agreement(void)
{
    const double head[] = { 6.0, 6.0, 6.1, 5.9, 6.0, 6.1, 6.0, 0.5, 0.5, 0.5 },
                 null[] = { 0.0, 0.1, -0.1, 0.1, 0.0, 0.0, 0.1, 1.5, 1.5, 1.5 },
                 wide[] = { -4.5, 0.5, -1.5 }, none[] = { 0.0, 0.1, -0.1 };
    struct verdict_pair p = feed(&fed, 10, head, null);
    require(says(&p, VERDICT_UNCLEAR, "launches disagree: slower than both copies in 7/10"),
            "an interval above the floor is not enough: both copies, in 80 % of the launches");
    p = feed(&fed, 3, wide, none);
    require(says(&p, VERDICT_UNCLEAR, "noisy"), "the same has to be so to both sides");
}

/* The second look is wider; rounds that were not taken, and launches without any, are left out. */
static void test_looks_and_gaps(void)
{
    const double none[] = { 0.1, 0.2, -0.2, 0.1 }, up[] = { 5.0, 5.5, 4.6, 5.0 };
    struct verdict_pair p = feed(&fed, 4, up, none);
    const struct verdict first = verdict_of(&p);
    p.look = 2;
    const struct verdict second = verdict_of(&p);
    require(second.level == 0.995 && second.hi - second.lo > first.hi - first.lo,
            "later looks have wider intervals");
    for (int r = 0; r < MOST_ROUNDS; r++)
        fed.head[3][r] = (double)NAN;
    fed.null[0][2] = fed.head[1][4] = (double)NAN;
    require(verdict_of(&p).launches == 3 && says(&p, VERDICT_SLOWER, "3/3"),
            "what was not taken is left out");
    require(verdict_find("unclear") == VERDICT_UNCLEAR &&
                verdict_find("removed") == VERDICT_REMOVED &&
                verdict_find("SLOWER") == VERDICT_KINDS,
            "verdicts have names");
}

static void test_shift(void)
{
    const double rows[] = { 0.10, 0.12, 0.11, 0.0, 0.01, -0.02, 0.10 },
                 with[] = { 0.10, 0.09, 0.07, 0.0, 0.00, 0.0, 0.0 },
                 without[] = { 0.0, 0.01, -0.1, 0.0, 0.0, 0.0, 0.0 };
    struct verdict_shift shift = verdict_shift_of(rows, with, 7);
    require(shift.machine && shift.moved == 3 && strstr(shift.reason, "3 of 7 rows"),
            "rows that move with their roofs are the machine's");
    require(!verdict_shift_of(rows, without, 7).machine, "rows that move alone are the code's");
    const double against[] = { -0.10, -0.09, -0.07, 0.0, 0.00, 0.0, -0.1 };
    require(!verdict_shift_of(rows, against, 7).machine, "or against their roofs");
    require(!verdict_shift_of(rows, with, 2).machine, "two rows are too few to say so");
}

/* ---- Machines made up ---- */

static uint64_t state;

static double uniform(void)
{
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return ((double)((x ^ (x >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2.0 * log(uniform())) * cos(2.0 * acos(-1.0) * uniform());
}

/* Sizes in per cent of a time. */
struct machine {
    const char *name;
    double launch; /* how far a copy is off for a whole launch: its pages, its addresses */
    double round;  /* one sample */
    double tail;   /* of the samples so many are five times as far off */
    double drift;  /* of the machine over a launch */
    double burst,
        among; /* a neighbour that comes and goes: by how much, in which share of the samples */
    double odd, rarely; /* a launch in which a copy is off by so much, of so many */
};

static const struct machine machines[] = {
    { "quiet, in cache", 0.2, 0.8, 0.02, 0.0, 0.0, 0.0, 0.0, 0.0 },
    { "drifting clock", 0.2, 0.8, 0.02, 8.0, 0.0, 0.0, 0.0, 0.0 },
    { "noisy neighbour, in cache", 0.3, 1.0, 0.05, 2.0, 15.0, 0.3, 0.0, 0.0 },
    { "memory", 0.8, 3.0, 0.05, 2.0, 0.0, 0.0, 0.0, 0.0 },
    { "memory, noisy neighbour", 1.2, 4.0, 0.1, 3.0, 25.0, 0.3, 0.0, 0.0 },
    { "launches differ by 2 %", 2.0, 0.8, 0.02, 1.0, 0.0, 0.0, 0.0, 0.0 },
    { "one launch in ten is off by 15 %", 0.3, 0.8, 0.02, 1.0, 0.0, 0.0, 15.0, 0.1 },
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* A neighbour stays for some samples, and is away for some. */
static bool neighbour(const struct machine *m, bool there)
{
    const double leaves = 0.15;
    if (m->among <= 0.0)
        return false;
    return there ? uniform() > leaves : uniform() < leaves * m->among / (1.0 - m->among);
}

static void simulate(const struct machine *m, double slower_pct, struct fed *f, size_t from,
                     size_t to)
{
    for (size_t l = from; l < to; l++) {
        double off[3];
        bool there = false;
        for (int c = 0; c < 3; c++)
            off[c] = m->launch * normal() + (uniform() < m->rarely ? m->odd : 0.0);
        for (int r = 0; r < MOST_ROUNDS; r++) {
            double t[3];
            for (int c = 0; c < 3; c++) {
                there = neighbour(m, there);
                t[c] = off[c] + m->drift * r / MOST_ROUNDS +
                       m->round * normal() * (uniform() < m->tail ? 5.0 : 1.0) +
                       (there ? m->burst * (0.5 + uniform()) : 0.0);
            }
            f->head[l][r] = (t[0] - t[1] + slower_pct) / 100.0;
            f->null[l][r] = (t[2] - t[1]) / 100.0;
        }
    }
}

/* What one would write first: all rounds are one sample, the launches have to agree in sign. */
static int pooled_rule(const struct verdict_pair *p)
{
    double all[MOST_LAUNCHES * MOST_ROUNDS], nulls[MOST_LAUNCHES * MOST_ROUNDS], floor = 0.01;
    size_t n = 0, above = 0, below = 0;
    for (size_t l = 0; l < p->launches; l++) {
        const double y = stats_median(p->head[l], p->rounds[l]);
        above += y > 0.0;
        below += y < 0.0;
        floor = fmax(floor, fabs(stats_median(p->null[l], p->rounds[l])));
        for (size_t r = 0; r < p->rounds[l]; r++, n++) {
            all[n] = p->head[l][r];
            nulls[n] = p->null[l][r];
        }
    }
    floor = log1p(fmax(floor, 2.0 * fabs(stats_median(nulls, n))));
    const struct stats_interval i = stats_interval(all, n, 0.99);
    const double most = p->launches <= 3 ? (double)p->launches : 0.8 * (double)p->launches;
    return i.low > floor && (double)above >= most     ? 1
           : i.high < -floor && (double)below >= most ? -1
                                                      : 0;
}

static int launch_rule(const struct verdict_pair *p)
{
    const struct verdict v = verdict_of(p);
    return v.kind == VERDICT_SLOWER ? 1 : v.kind == VERDICT_FASTER ? -1 : 0;
}

struct tally {
    size_t flagged, slower, faster; /* after the first launches; confirmed */
};

static void hold(int (*rule)(const struct verdict_pair *), size_t launches, struct tally *t)
{
    struct verdict_pair p = pair_of(&fed, launches, MOST_ROUNDS);
    if (rule(&p) == 0)
        return;
    t->flagged++;
    p = pair_of(&fed, launches + VERDICT_CONFIRMING, MOST_ROUNDS);
    p.confirming = VERDICT_CONFIRMING;
    const int said = rule(&p);
    t->slower += said > 0;
    t->faster += said < 0;
}

struct rates {
    struct tally pooled, launches;
};

static struct rates compare_often(const struct machine *m, double slower_pct, size_t launches,
                                  size_t times)
{
    struct rates rates = { 0 };
    for (size_t i = 0; i < times; i++) {
        simulate(m, slower_pct, &fed, 0, launches + VERDICT_CONFIRMING);
        hold(pooled_rule, launches, &rates.pooled);
        hold(launch_rule, launches, &rates.launches);
    }
    return rates;
}

static double pct(size_t n, size_t of) { return 100.0 * (double)n / (double)of; }

/* The table of docs/verdicts.md. */
static int print_table(size_t times)
{
    static const double sizes[] = { 0.0, 3.0, 5.0, 10.0 };
    printf(
        "| machine | launches | slower by | pooled: flagged | confirmed | launches: flagged | "
        "confirmed |\n|---|---:|---:|---:|---:|---:|---:|\n");
    for (int m = 0; m < MACHINES; m++)
        for (size_t k = 3; k <= 10; k += k == 3 ? 2 : 5)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                state = 1;
                const size_t n = sizes[s] > 0.0 ? times / 20 + 1 : times;
                const struct rates r = compare_often(&machines[m], sizes[s], k, n);
                const struct tally *a = &r.pooled, *b = &r.launches;
                printf("| %s | %zu | %.0f %% | %.3f %% | %.3f %% | %.3f %% | %.3f %% |\n",
                       machines[m].name, k, sizes[s], pct(a->flagged, n),
                       pct(a->slower + a->faster, n), pct(b->flagged, n),
                       pct(b->slower + b->faster, n));
            }
    return 0;
}

static void test_identical(size_t times)
{
    size_t pooled = 0, launches = 0, flagged = 0, loose = 0;
    for (int m = 0; m < MACHINES; m++) {
        state = 20261122u + (uint64_t)m;
        const struct rates r = compare_often(&machines[m], 0.0, 3, times);
        pooled += r.pooled.slower + r.pooled.faster;
        launches += r.launches.slower + r.launches.faster;
        flagged += r.launches.flagged;
        loose += r.pooled.flagged;
    }
    printf(
        "# identical code, %zu comparisons: all rounds as one sample flag %zu and confirm %zu, "
        "launches as the sample flag %zu and confirm %zu\n",
        times * MACHINES, loose, pooled, flagged, launches);
    require(launches == 0, "identical code is never called slower or faster");
    require(pooled > 0 && 4 * flagged < loose,
            "where taking all rounds for one sample does so");
}

static void test_power(size_t times)
{
    static const struct {
        int machine;
        size_t launches;
        double slower, least;
    } wanted[] = { { 0, 3, 5.0, 0.99 }, { 1, 3, 5.0, 0.99 },  { 2, 3, 5.0, 0.9 },
                   { 3, 3, 10.0, 0.9 }, { 4, 10, 10.0, 0.9 }, { 0, 3, 3.0, 0.9 } };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        state = 7u + i;
        const struct rates r = compare_often(&machines[wanted[i].machine], wanted[i].slower,
                                             wanted[i].launches, times);
        char sentence[128];
        snprintf(sentence, sizeof sentence,
                 "%s, %zu launches: %.0f %% slower is found in %.0f %%",
                 machines[wanted[i].machine].name, wanted[i].launches, wanted[i].slower,
                 pct(r.launches.slower, times));
        require(r.launches.faster == 0 &&
                    (double)r.launches.slower >= wanted[i].least * (double)times,
                sentence);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return print_table((size_t)strtoul(argv[1], NULL, 10));
    test_beyond();
    test_unclear();
    test_interval();
    test_agreement();
    test_looks_and_gaps();
    test_shift();
    test_identical(300);
    test_power(60);
    return tap_end();
}
