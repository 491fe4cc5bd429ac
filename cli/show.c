/*
 * Writes times, counts and errors with as many digits as mean something (see
 * show.h).
 */
#include "show.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *buffer(void)
{
    static char buffers[16][48];
    static int next;
    return buffers[next++ % 16];
}

/* Three significant digits, without an exponent. */
static void three(char *text, size_t bytes, double x)
{
    double a = fabs(x);
    snprintf(text, bytes, a >= 99.95 ? "%.0f" : a >= 9.995 ? "%.1f" : "%.2f", x);
}

const char *show_time(double ns)
{
    char *text = buffer(), number[32];
    int unit = ns >= 999.5e6 ? 3 : ns >= 999.5e3 ? 2 : ns >= 999.5 ? 1 : 0;
    static const double scale[] = { 1.0, 1e-3, 1e-6, 1e-9 };
    static const char *const name[] = { "ns", "us", "ms", "s" };
    three(number, sizeof number, ns * scale[unit]);
    snprintf(text, 48, "%s %s", number, name[unit]);
    return text;
}

static const char *unit_of(const char *metric)
{
    return strcmp(metric, "pair_ulp") == 0 ? "pair ulp" : metric;
}

/* 0.500 ulp, 2.1e-02 abs, same bits; "-" without a metric. */
static void put_error(char text[48], double max, const char *metric)
{
    if (!*metric) {
        snprintf(text, 48, "-");
        return;
    }
    if (strcmp(metric, "exact") == 0) {
        snprintf(text, 48,
                 isinf(max)  ? "differs"
                 : max > 0.0 ? "%.3g differ"
                             : "same bits",
                 max);
        return;
    }
    bool ulp = strcmp(metric, "abs") != 0;
    const char *unit = unit_of(metric);
    if (isinf(max) || isnan(max))
        snprintf(text, 48, "%s %s", isnan(max) ? "NaN" : "infinite", unit);
    else if (max == 0.0)
        snprintf(text, 48, "0 %s", unit);
    else if (!ulp && max >= 0.01)
        snprintf(text, 48, "%.2g %s", max, unit);
    else if (ulp && max < 99.995)
        snprintf(text, 48, "%.2f %s", max, unit);
    else if (ulp && max < 9999.5)
        snprintf(text, 48, "%.0f %s", max, unit);
    else
        snprintf(text, 48, "%.1e %s", max, unit);
}

struct shown_error show_judged(double max, double limit, const char *metric)
{
    enum { DIGITS = 17 }; /* tell any two f64 apart */
    char *error = buffer(), *most = buffer();
    const bool is_number = *metric && strcmp(metric, "exact") != 0 && isfinite(max);
    put_error(error, max, metric);
    snprintf(most, 48, "%.3g", limit);
    for (int digits = 3; is_number && digits <= DIGITS; digits++) {
        if ((strtod(error, NULL) <= strtod(most, NULL)) == (max <= limit))
            break;
        snprintf(error, 48, "%.*g %s", digits, max, unit_of(metric));
        snprintf(most, 48, "%.*g", digits, limit);
    }
    return (struct shown_error){ error, most };
}

const char *show_count(double n)
{
    char *text = buffer(), digits[32];
    if (!(fabs(n) < 1e15)) { /* more than any run counts: only a file says so */
        snprintf(text, 48, "%.3g", n);
        return text;
    }
    int length = snprintf(digits, sizeof digits, "%.0f", n), at = 0, first = digits[0] == '-';
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0)
            text[at++] = ' ';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}
