/* Tests the statistics on cases that can be computed by hand. */
#include "base/statistics/stats.h"
#include "base/tap/tap.h"

#include <math.h>
#include <stdio.h>

static int near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static void test_medians(void)
{
    const double none = (double)NAN;
    const double odd[] = { 5.0, 1.0, 4.0 }, even[] = { 4.0, 1.0, 3.0, 2.0 };
    const double gaps[] = { none, 7.0, none, 9.0, 8.0 };
    require(stats_median(odd, 3) == 4.0, "the median of three is the middle one");
    require(stats_median(even, 4) == 2.5, "the median of four is the mean of the middle two");
    require(stats_median(gaps, 5) == 8.0, "samples that were not taken are left out");
    require(isnan(stats_median(gaps, 1)), "no sample has no median");
    require(isnan(stats_median(NULL, 0)), "nothing has no median");
}

static void test_coverage(void)
{
    require(near(stats_coverage(3, 1), 0.75), "the range of 3 covers the median with 3/4");
    require(near(stats_coverage(8, 1), 1.0 - 2.0 / 256.0), "the range of 8: 254/256");
    require(near(stats_coverage(8, 2), 1.0 - 18.0 / 256.0), "without both ends: 238/256");
    require(near(stats_coverage(10, 3), 1.0 - 2.0 * 56.0 / 1024.0), "third of 10: 912/1024");
    require(stats_coverage(1, 1) == 0.0, "one sample covers nothing");
    require(stats_coverage(4000, 1) == 1.0, "many samples do not underflow");
}

static void test_intervals(void)
{
    double v[31];
    for (int i = 0; i < 31; i++)
        v[i] = (double)((i * 7) % 31 + 1); /* 1 to 31, shuffled */
    struct stats_summary s = stats_summarise(v, 31);
    /* Binomial(31, 1/2): below 9 with probability 0.0053, below 8 with 0.0017. */
    require(s.n == 31 && s.median == 16.0 && s.min == 1.0 && s.max == 31.0, "1 to 31");
    require(s.interval.level == 0.99 && s.interval.low == 8.0 && s.interval.high == 24.0,
            "31 samples: 99 % from the 8th to the 24th");
    s = stats_summarise(v, 6);
    require(s.interval.level == 0.95 && s.interval.low == s.min && s.interval.high == s.max,
            "6 samples allow 95 %, of the range");
    s = stats_summarise(v, 3);
    require(near(s.interval.level, 0.75), "3 samples report their coverage");
    s = stats_summarise(v, 0);
    require(s.n == 0 && isnan(s.median), "nothing has no summary");
}

static void test_ratios(void)
{
    const double none = (double)NAN;
    /* The machine doubles its pace twice; the ratio within rounds stays 3. */
    const double a[] = { 3.0, 6.0, 12.0, none, 3.0 }, b[] = { 1.0, 2.0, 4.0, 5.0, none };
    require(stats_median_ratio(a, b, 5) == 3.0, "drift between rounds cancels in ratios");
    require(isnan(stats_median_ratio(a, b + 1, 0)), "no round has no ratio");
    require(isnan(stats_median_ratio(a + 3, b + 3, 2)), "rounds must have both");
}

/* Takes rounds of a kernel against its own copies as comparisons of 93. */
static void test_floors(void)
{
    enum { N = 93 * 200 };
    static double head[N], null[N];
    struct threshold_summary f = threshold_summarise(head, null, N);
    require(f.rounds == N && f.comparisons == 200 && f.median == 0.0 && f.largest == 0.0 &&
                near(f.detectable, 0.01),
            "a machine without noise detects 1 %, the least that the rule allows");
    for (int i = 0; i < N; i++) /* of each pair of rounds one is 3 % more, one 3 % less */
        head[i] = i % 2 ? -0.03 : 0.03;
    f = threshold_summarise(head, null, N);
    require(near(f.median, 0.03) && near(f.typical_process, 0.03) && f.detectable > 0.03,
            "even noise is not detected");
    for (int i = 0; i < N; i++) /* two comparisons in 200 are off by 20 % */
        head[i] = i / 93 % 100 == 7 ? 0.2 : 0.0;
    f = threshold_summarise(head, null, N);
    require(near(f.detectable, 0.01) && near(f.largest, 0.2), "99 of 100 comparisons count");
    for (int i = 0; i < N; i++) /* six are */
        head[i] = i / 93 % 33 == 7 ? 0.2 : 0.0;
    f = threshold_summarise(head, null, N);
    require(f.detectable > expm1(0.2) && f.detectable < 1.0,
            "what disturbs more of them does, too");
    for (int i = 0; i < N; i++)
        head[i] = i / 93 % 33 == 7 ? -0.2 : 0.0;
    require(near(threshold_summarise(head, null, N).detectable, f.detectable),
            "to either side alike");
    for (int i = 0; i < N; i++) /* one process of each comparison */
        head[i] = i / 31 % 3 == 1 ? 0.05 : 0.0;
    f = threshold_summarise(head, null, N);
    require(f.detectable > 0.05 && f.typical_process == 0.0,
            "a process that is off counts, though the median of all is not");
    for (int i = 0; i < N; i++) { /* only the third copy shows that the machine is unsteady */
        head[i] = 0.0;
        null[i] = i / 31 % 2 ? 0.08 : -0.08;
    }
    require(threshold_summarise(head, null, N).detectable > 0.08,
            "the null control counts as well");
}

/* One comparison whose processes differ: `bias` apart, and the control of the second one `peak` times as far off. The
 * wanted values are those of reports/posenc/verdict.py. */
static void test_differing_processes(void)
{
    static const struct {
        double bias, spread, peak, detectable;
        const char *sentence;
    } cases[] = {
        { 0.02, 0.0, 1.0, 0.09737991155432334, "Student's interval, twice the control" },
        { 0.001, 0.01, 1.0, 0.05227062660093435, "the interval of all rounds, 1 %" },
        { 0.02, 0.0, 4.0, 0.20424267028297455, "the control of one process" },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double head[93], control[93];
        for (int i = 0; i < 93; i++) {
            head[i] = cases[c].spread * (i * 7 % 31 - 15) + cases[c].bias * (i / 31 - 1);
            control[i] = cases[c].spread * (i * 11 % 31 - 15) +
                         cases[c].bias * (i / 31 == 1 ? cases[c].peak : 1.0);
        }
        const double got = threshold_summarise(head, control, 93).detectable;
        require(fabs(got - cases[c].detectable) <= 1e-9 * got, cases[c].sentence);
    }
}

static void test_few_rounds(void)
{
    double head[100] = { 0.0 }, null[100] = { 0.0 };
    head[0] = (double)NAN;
    null[1] = (double)INFINITY;
    struct threshold_summary f = threshold_summarise(head, null, 93);
    require(f.rounds == 91 && f.comparisons == 0 && near(f.detectable, 0.01),
            "rounds that were not taken are left out of floors");
    f = threshold_summarise(head, null, 2);
    require(f.rounds == 0 && isnan(f.detectable) && isnan(f.median), "no round has no floor");
    head[0] = 0.1;
    f = threshold_summarise(head, null, 1);
    require(f.rounds == 1 && near(f.median, 0.1) && isnan(f.detectable),
            "one round detects nothing");
}

int main(void)
{
    test_medians();
    test_coverage();
    test_intervals();
    test_ratios();
    test_floors();
    test_differing_processes();
    test_few_rounds();
    return tap_end();
}
