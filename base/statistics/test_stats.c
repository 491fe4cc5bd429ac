/* Tests the statistics of stats.h on samples whose results can be computed by hand. */
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
    require(stats_median(gaps, 5) == 8.0, "missing samples are ignored");
    require(isnan(stats_median(gaps, 1)), "only missing samples: the median is NaN");
    require(isnan(stats_median(NULL, 0)), "no samples: the median is NaN");
}

static void test_coverage(void)
{
    require(near(stats_coverage(3, 1), 0.75),
            "the range of 3 samples covers the median with 3/4");
    require(near(stats_coverage(8, 1), 1.0 - 2.0 / 256.0), "the range of 8 samples: 254/256");
    require(near(stats_coverage(8, 2), 1.0 - 18.0 / 256.0),
            "8 samples without the ends: 238/256");
    require(near(stats_coverage(10, 3), 1.0 - 2.0 * 56.0 / 1024.0),
            "from the third of 10 samples to the eighth: 912/1024");
    require(stats_coverage(1, 1) == 0.0, "one sample covers nothing");
    require(stats_coverage(4000, 1) == 1.0, "2^-4000 does not underflow");
}

static void test_intervals(void)
{
    double v[31];
    for (int i = 0; i < 31; i++)
        v[i] = (double)((i * 7) % 31 + 1); /* 1 to 31, shuffled */
    struct stats_summary s = stats_summarise(v, 31);
    /* Binomial(31, 1/2): below 9 with probability 0.0053, below 8 with 0.0017. */
    require(s.n == 31 && s.median == 16.0 && s.min == 1.0 && s.max == 31.0,
            "the numbers 1 to 31 have the median 16");
    require(s.interval.level == 0.99 && s.interval.low == 8.0 && s.interval.high == 24.0,
            "31 samples: 99 % from the 8th to the 24th");
    s = stats_summarise(v, 6);
    require(s.interval.level == 0.95 && s.interval.low == s.min && s.interval.high == s.max,
            "6 samples allow 95 %, of the range");
    s = stats_summarise(v, 3);
    require(near(s.interval.level, 0.75), "3 samples report their coverage");
    s = stats_summarise(v, 0);
    require(s.n == 0 && isnan(s.median), "no samples: the median of the summary is NaN");
}

static void test_ratios(void)
{
    const double none = (double)NAN;
    /* Times double from round to round; the ratio within rounds stays 3. */
    const double a[] = { 3.0, 6.0, 12.0, none, 3.0 }, b[] = { 1.0, 2.0, 4.0, 5.0, none };
    require(stats_median_ratio(a, b, 5) == 3.0, "drift between rounds cancels in ratios");
    require(isnan(stats_median_ratio(a, b, 0)), "no rounds: the ratio is NaN");
    require(isnan(stats_median_ratio(a + 3, b + 3, 2)), "no round with both samples: NaN");
}

/* ---- Noise threshold ---- */

enum { EACH = THRESHOLD_ROUNDS, COMPARISON = THRESHOLD_PROCESSES * EACH, N = 200 * COMPARISON };

static double head[N], control[N]; /* rounds of 200 comparisons */

/* Sets head to `noise` in the nth of `every` blocks of rounds, and to 0 in the others. */
static struct threshold_summary summarise_noise(double noise, int block, int nth, int every)
{
    for (int i = 0; i < N; i++)
        head[i] = i / block % every == nth ? noise : 0.0;
    return threshold_summarise(head, control, N);
}

static void test_thresholds(void)
{
    struct threshold_summary s = summarise_noise(0.0, 1, 0, 1);
    require(s.rounds == N && s.comparisons == 200 && s.median == 0.0 && s.largest == 0.0 &&
                near(s.detectable, 0.01),
            "a machine without noise detects 1 %, the least that the rule allows");
    s = summarise_noise(0.2, COMPARISON, 7, 100);
    require(near(s.detectable, 0.01) && near(s.largest, 0.2),
            "1 % of the comparisons may be disturbed");
    s = summarise_noise(0.2, COMPARISON, 7, 33);
    require(s.detectable > expm1(0.2) && s.detectable < 1.0,
            "3 % of the comparisons raise the threshold");
    require(near(summarise_noise(-0.2, COMPARISON, 7, 33).detectable, s.detectable),
            "noise of either sign counts the same");
    s = summarise_noise(0.05, EACH, 1, 3);
    require(s.detectable > 0.05 && s.typical_process == 0.0,
            "one of three processes counts, though the median of all processes is 0");
    for (int i = 0; i < N; i++)
        head[i] = i % 2 ? -0.03 : 0.03;
    s = threshold_summarise(head, control, N);
    require(near(s.median, 0.03) && near(s.typical_process, 0.03) && s.detectable > 0.03,
            "noise of 3 % in each round is not detected");
    for (int i = 0; i < N; i++) {
        head[i] = 0.0;
        control[i] = i / EACH % 2 ? 0.08 : -0.08;
    }
    require(threshold_summarise(head, control, N).detectable > 0.08,
            "noise of the control alone counts");
}

/* One comparison whose processes differ by `bias`, with a control that is `peak` times as far off in the second one. Rounds
 * of a process differ by `spread`. The wanted values are those of reports/posenc/verdict.py. */
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
        for (int i = 0; i < COMPARISON; i++) {
            const int process = i / EACH;
            head[i] = cases[c].spread * (i * 7 % EACH - 15) + cases[c].bias * (process - 1);
            control[i] = cases[c].spread * (i * 11 % EACH - 15) +
                         cases[c].bias * (process == 1 ? cases[c].peak : 1.0);
        }
        const double got = threshold_summarise(head, control, COMPARISON).detectable;
        require(fabs(got - cases[c].detectable) <= 1e-9 * got, cases[c].sentence);
    }
}

static void test_few_rounds(void)
{
    for (int i = 0; i < COMPARISON; i++)
        head[i] = control[i] = 0.0;
    head[0] = (double)NAN;
    control[1] = (double)INFINITY;
    struct threshold_summary s = threshold_summarise(head, control, COMPARISON);
    require(s.rounds == COMPARISON - 2 && s.comparisons == 0 && near(s.detectable, 0.01),
            "rounds without two finite ratios are ignored");
    s = threshold_summarise(head, control, 2);
    require(s.rounds == 0 && isnan(s.detectable) && isnan(s.median),
            "no rounds: threshold and median are NaN");
    head[0] = 0.1;
    s = threshold_summarise(head, control, 1);
    require(s.rounds == 1 && near(s.median, 0.1) && isnan(s.detectable),
            "one round detects nothing");
}

int main(void)
{
    test_medians();
    test_coverage();
    test_intervals();
    test_ratios();
    test_thresholds();
    test_differing_processes();
    test_few_rounds();
    return tap_end();
}
