/*
 * Sparklines and pictures of histories; see sparkline.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "sparkline.h"
#include "statistics/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLOT_COLORS = 9 };
static const char *const plot_colors[] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                                           "#56B4E9", "#999999", "#F0E442", "#000000" };

static const json_t *points_of(const json_t *history)
{
    return json_object_get(history, "points");
}

static double roof_at(const json_t *history, size_t i)
{
    const double roof = record_value(json_array_get(points_of(history), i), "roof", 0.0);
    return roof >= 0.0 && roof < 1e6 ? roof : 0.0; /* whatever a file says */
}

void name_run(const json_t *point, char text[RUN_NAME])
{
    const char *commit = record_text(point, "commit"), *day = record_text(point, "started");
    if (*commit)
        snprintf(text, RUN_NAME, "%.7s%s", commit,
                 json_is_true(json_object_get(point, "dirty")) ? "+" : "");
    else
        snprintf(text, RUN_NAME, "%.10s", *day ? day : "not told");
}

void sparkline(const json_t *history, char text[SPARKLINE])
{
    static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    const size_t n = json_array_size(points_of(history)), shown = n < SPARKS ? n : SPARKS;
    double value[SPARKS], least = HUGE_VAL, most = -HUGE_VAL;
    for (size_t s = 0; s < shown; s++) {
        double some[64];
        size_t m = 0;
        for (size_t i = s * n / shown; i < (s + 1) * n / shown && m < 64; i++)
            some[m++] = roof_at(history, i);
        value[s] = stats_median(some, m);
        least = fmin(least, value[s]);
        most = fmax(most, value[s]);
    }
    const double room = 0.5 * fmax(0.0, 0.2 * most - (most - least)); /* noise stays low */
    least -= room;
    most += room;
    size_t at = 0;
    text[0] = 0;
    for (size_t s = 0; s < shown && at + 5 < SPARKLINE; s++) {
        const double height = most > least ? (value[s] - least) / (most - least) : 0.5;
        at += (size_t)snprintf(text + at, SPARKLINE - at, "%s",
                               heights[(int)(7.0 * height + 0.5 + 1e-9)]);
    }
}

/* ---- Pictures ---- */

enum { LEFT = 60, TOP = 20, WIDE = 620, HIGH = 220, NAMES = 230, ROW = 18 };

struct axes {
    double least, most; /* of the share of the roof */
    size_t runs;
};

static struct axes axes_of(const json_t *const *histories, size_t n)
{
    struct axes a = { HUGE_VAL, 0.0, 2 };
    for (size_t h = 0; h < n; h++)
        for (size_t i = 0; i < json_array_size(points_of(histories[h])); i++) {
            const json_t *point = json_array_get(points_of(histories[h]), i);
            const double run = record_value(point, "run", 0.0);
            a.least = fmin(a.least, roof_at(histories[h], i));
            a.most = fmax(a.most, roof_at(histories[h], i));
            if (run >= 0.0 && run < 1e6 && (size_t)run + 1 > a.runs)
                a.runs = (size_t)run + 1;
        }
    a.least = a.least > 0.6 * a.most ? floor(18.0 * a.least) / 20.0 : 0.0; /* else from 0 */
    a.most *= 1.05;
    return a;
}

static double x_of(const struct axes *a, double run)
{
    return LEFT + WIDE * run / (double)(a->runs - 1);
}

static double y_of(const struct axes *a, double roof)
{
    return TOP + HIGH * (a->most - roof) / (a->most - a->least);
}

static void write_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++)
        if (strchr("<>&", *text))
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
    fputs("</text>\n", out);
}

static void write_line(FILE *out, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
            style);
}

static void write_axes(FILE *out, const struct axes *a, const json_t *longest)
{
    char text[RUN_NAME + 8];
    const double span = a->most - a->least, step = span > 0.4 ? 0.2 : span > 0.15 ? 0.1 : 0.02;
    for (double roof = step * ceil(a->least / step); roof <= a->most; roof += step) {
        snprintf(text, sizeof text, "%.0f %%", 100.0 * roof);
        write_line(out, LEFT, y_of(a, roof), LEFT + WIDE, y_of(a, roof), "stroke=\"#ddd\"");
        write_text(out, LEFT - 8, y_of(a, roof) + 4, "end", text);
    }
    const size_t n = json_array_size(points_of(longest)), each = n / 8 + 1;
    for (size_t i = 0; i < n; i += each) {
        const json_t *point = json_array_get(points_of(longest), i);
        name_run(point, text);
        write_text(out, x_of(a, record_value(point, "run", 0.0)), TOP + HIGH + 20, "middle",
                   text);
    }
}

/* A point for each run, and its level as a line between changes. */
static void write_points(FILE *out, const struct axes *a, const json_t *history,
                         const char *color)
{
    for (size_t i = 0; i < json_array_size(points_of(history)); i++) {
        const json_t *point = json_array_get(points_of(history), i);
        fprintf(
            out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"%s\" fill-opacity=\"0.6\"/>\n",
            x_of(a, record_value(point, "run", 0.0)), y_of(a, roof_at(history, i)), color);
    }
}

static void write_level(FILE *out, const struct axes *a, const json_t *history, size_t from,
                        size_t to, const char *color)
{
    const json_t *points = points_of(history);
    double *some = calloc(to - from + 1, sizeof *some);
    char style[64];
    for (size_t i = from; some && i < to; i++)
        some[i - from] = roof_at(history, i);
    const double level = some ? stats_median(some, to - from) : (double)NAN;
    free(some);
    if (isnan(level))
        return;
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"1.6\"", color);
    write_line(out, x_of(a, record_value(json_array_get(points, from), "run", 0.0)),
               y_of(a, level),
               x_of(a, record_value(json_array_get(points, to - 1), "run", 0.0)),
               y_of(a, level), style);
}

static void write_history(FILE *out, const struct axes *a, const json_t *history,
                          const char *color)
{
    const json_t *changes = json_object_get(history, "changes");
    const size_t n = json_array_size(points_of(history));
    size_t from = 0;
    write_points(out, a, history, color);
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const double at = record_value(json_array_get(changes, i), "at", 0.0);
        if (!(at > (double)from && at < (double)n))
            continue;
        const double run =
            record_value(json_array_get(points_of(history), (size_t)at), "run", 0.0) - 0.5;
        write_level(out, a, history, from, (size_t)at, color);
        write_line(out, x_of(a, run), TOP, x_of(a, run), TOP + HIGH,
                   "stroke=\"#888\" stroke-dasharray=\"4 3\"");
        from = (size_t)at;
    }
    if (from < n)
        write_level(out, a, history, from, n, color);
}

char *history_svg(const json_t *const *histories, size_t n)
{
    char *text = NULL;
    size_t size, longest = 0;
    FILE *out = n ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    const struct axes a = axes_of(histories, n);
    const int high = TOP + HIGH + 30, keys = TOP + ROW * (int)n + 10;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n",
            LEFT + WIDE + NAMES, high > keys ? high : keys, LEFT + WIDE + NAMES);
    for (size_t h = 1; h < n; h++)
        if (json_array_size(points_of(histories[h])) >
            json_array_size(points_of(histories[longest])))
            longest = h;
    write_axes(out, &a, histories[longest]);
    for (size_t h = 0; h < n; h++) {
        const char *color = plot_colors[h % PLOT_COLORS];
        const double y = TOP + ROW * ((double)h + 0.5);
        write_history(out, &a, histories[h], color);
        fprintf(out, "<circle cx=\"%d\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", LEFT + WIDE + 22,
                y, color);
        write_text(out, LEFT + WIDE + 34, y + 4, "start", record_text(histories[h], "backend"));
    }
    fputs("</svg>\n", out);
    fclose(out);
    return text;
}
