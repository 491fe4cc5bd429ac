/*
 * Change points in series of which the answer is known: how often noise alone is called a change, and how often a change
 * is found where it is.
 */
#include "reports/statistics/changepoints.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 200, MOST = 16 };

static int failures;

static void require(int holds, const char *sentence)
{
    printf("%s - %s\n", holds ? "ok" : "not ok", sentence);
    failures += !holds;
}

/* ---- Noise ---- */

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 33) + 0.5) / 2147483648.0;
}

/* Of mean 0 and standard deviation 1, by Box and Muller. */
static double normal(uint64_t *state)
{
    const double r = sqrt(-2.0 * log(uniform(state)));
    return r * cos(6.283185307179586 * uniform(state));
}

/* Without mean or variance. */
static double cauchy(uint64_t *state)
{
    return tan(3.141592653589793 * (uniform(state) - 0.5));
}

/* ln of a share of the roof: 0.77, with noise of so many per cent. */
static void fill(double *x, size_t n, double pct, double (*noise)(uint64_t *), uint64_t seed)
{
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < n; i++)
        x[i] = log(0.77) + 0.01 * pct * noise(&state);
}

static void step(double *x, size_t from, size_t to, double pct)
{
    for (size_t i = from; i < to; i++)
        x[i] += log1p(0.01 * pct);
}

/* ---- False alarms ---- */

/* Of so many series without a change, those in which one was found. */
static size_t alarms(size_t series, size_t n, double (*noise)(uint64_t *))
{
    double x[POINTS];
    struct changepoint found[MOST];
    size_t count = 0;
    for (size_t s = 0; s < series; s++) {
        fill(x, n, 2.0, noise, 1000 * n + s);
        count += changepoints_find(x, n, s, found, MOST) > 0;
    }
    printf("# %zu of %zu series of %zu values\n", count, series, n);
    return count;
}

static void noise_alone(void)
{
    require(alarms(500, 30, normal) <= 1, "noise of 30 values: at most 1 alarm in 500");
    require(alarms(500, 50, cauchy) <= 1, "wild values of no variance: at most 1 in 500");
    require(alarms(500, 14, normal) <= 1, "the shortest series: at most 1 in 500");
    require(alarms(500, 75, uniform) <= 2, "two windows: at most 2 in 500");
}

/* ---- Changes that are there ---- */

static int near(const struct changepoint *c, size_t at, size_t off)
{
    return c->at + off >= at && c->at <= at + off;
}

/* Of so many tries those that find exactly one change, no farther off than that. */
static size_t hits(size_t tries, size_t n, size_t at, double pct, size_t off)
{
    double x[POINTS];
    struct changepoint found[MOST];
    size_t count = 0;
    for (size_t s = 0; s < tries; s++) {
        fill(x, n, 2.0, normal, 77 * s);
        step(x, at, n, pct);
        count += changepoints_find(x, n, s, found, MOST) == 1 && near(found, at, off);
    }
    printf("# %zu of %zu: %+g %% at %zu of %zu\n", count, tries, pct, at, n);
    return count;
}

static void steps(void)
{
    require(hits(20, 40, 25, -5.0, 3) >= 18, "5 % in noise of 2 % is found, within 3 values");
    require(hits(20, 40, 25, 5.0, 3) >= 18, "as much faster, likewise");
    require(hits(20, 30, 24, -10.0, 1) >= 18, "10 % six values ago, within 1");
    require(hits(10, 120, 60, -5.0, 3) >= 9, "in a series of several windows, once");
    require(hits(20, 14, 7, -10.0, 1) >= 18, "in the shortest series 10 % in its middle");
    require(hits(10, 13, 7, -50.0, 13) == 0, "13 values are too few for any change");
}

static void several(void)
{
    double x[POINTS];
    struct changepoint found[MOST];
    size_t n, good = 0, lone = 0;
    for (uint64_t s = 0; s < 10; s++) {
        fill(x, 45, 2.0, normal, s);
        step(x, 15, 30, -8.0);
        n = changepoints_find(x, 45, s, found, MOST);
        good += n == 2 && near(&found[0], 15, 2) && near(&found[1], 30, 2) &&
                found[0].after < found[0].before && found[1].after > found[1].before;
        fill(x, 40, 2.0, normal, s);
        x[11] += 1.0;
        x[27] -= 3.0;
        lone += changepoints_find(x, 40, s, found, MOST) > 0;
    }
    printf("# both steps in %zu of 10, outliers called in %zu of 10\n", good, lone);
    require(good >= 9, "down and up again: both steps, with their directions");
    require(lone == 0, "values that stand alone are no change");
}

static void outliers(void)
{
    double x[POINTS];
    struct changepoint found[MOST];
    size_t good = 0;
    for (uint64_t s = 0; s < 10; s++) {
        fill(x, 40, 2.0, normal, s);
        step(x, 20, 40, -8.0);
        x[4] -= 2.0; /* each a machine that was busy */
        x[13] -= 0.7;
        x[33] += 0.5;
        const size_t n = changepoints_find(x, 40, s, found, MOST);
        good +=
            n == 1 && near(found, 20, 3) && fabs(found->after - found->before + 0.08) < 0.03;
    }
    printf("# %zu of 10\n", good);
    require(good >= 9, "a step among outliers, and its size");
}

/* A drift has no step: it is called one or more, all in its direction, or none where it is within the noise. */
static void drift(void)
{
    double x[POINTS];
    struct changepoint found[MOST];
    size_t none = 0, wrong = 0, large = 0;
    for (uint64_t s = 0; s < 10; s++) {
        fill(x, 40, 2.0, normal, s);
        for (size_t i = 0; i < 40; i++)
            x[i] -= 0.0001 * (double)i;
        none += changepoints_find(x, 40, s, found, MOST) == 0;
        for (size_t i = 0; i < 40; i++)
            x[i] -= 0.005 * (double)i;
        const size_t n = changepoints_find(x, 40, s, found, MOST);
        large += n >= 1 && n <= 3;
        for (size_t i = 0; i < n; i++)
            wrong += found[i].after >= found[i].before;
    }
    printf("# small: none in %zu of 10; large: one to three in %zu of 10\n", none, large);
    require(none >= 9, "a drift far below the noise is none");
    require(large == 10 && wrong == 0, "one far above it is called, in its direction");
}

static void exactly(void)
{
    double x[POINTS];
    struct changepoint a[MOST] = { { 0 } }, b[MOST] = { { 0 } };
    for (size_t i = 0; i < 30; i++)
        x[i] = i < 20 ? 0.5 : 0.25;
    require(changepoints_find(x, 30, 1, a, MOST) == 1 && a->at == 20 && a->before == 0.5 &&
                a->after == 0.25 && a->from == 0 && a->to == 30 && a->p <= CHANGEPOINTS_P,
            "without noise: the first value of the new level, and both levels");
    fill(x, 60, 2.0, normal, 5);
    step(x, 20, 60, -6.0);
    const size_t n = changepoints_find(x, 60, 9, a, MOST);
    require(n == changepoints_find(x, 60, 9, b, MOST) && memcmp(a, b, n * sizeof *a) == 0,
            "the same seed gives the same");
    for (size_t i = 0; i < 30; i++)
        x[i] = 0.5;
    require(changepoints_find(x, 30, 1, a, MOST) == 0, "values that are all equal have none");
    require(changepoints_find(x, 0, 1, a, MOST) == 0, "nothing has none");
    for (size_t i = 0; i < POINTS; i++)
        x[i] = i / 20 % 2 ? 1.0 : 2.0;
    require(changepoints_find(x, POINTS, 1, a, 3) == 3, "no more than there is room for");
}

int main(void)
{
    noise_alone();
    steps();
    several();
    outliers();
    drift();
    exactly();
    return failures != 0;
}
