/*
 * Draws the samples of a pair, and the intervals of many; see evidence.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "evidence.h"
#include "statistics/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Samples ---- */

struct launch {
    double *value; /* per cent */
    size_t n;
    double median;
};

struct samples {
    size_t n;                   /* launches */
    struct launch *head, *null; /* null: as many, some of them empty */
    double *all;                /* of both */
    size_t n_all;
};

/* Those of one launch, behind what was read before. */
static struct launch read_launch(const json_t *list, struct samples *s)
{
    struct launch launch = { s->all + s->n_all, 0, (double)NAN };
    for (size_t i = 0; i < json_array_size(list); i++) {
        const double x = record_double(json_array_get(list, i), (double)NAN);
        if (isfinite(x) && fabs(x) < 10.0)
            launch.value[launch.n++] = 100.0 * expm1(x);
    }
    s->n_all += launch.n;
    launch.median = stats_median(launch.value, launch.n);
    return launch;
}

static void free_samples(struct samples *s)
{
    free(s->head);
    free(s->null);
    free(s->all);
}

static bool read_samples(const struct pair_row *row, struct samples *s)
{
    const json_t *both = json_object_get(row->json, "samples"),
                 *head = json_object_get(both, "head"), *null = json_object_get(both, "null");
    size_t room = 1;
    for (size_t l = 0; l < json_array_size(head); l++)
        room +=
            json_array_size(json_array_get(head, l)) + json_array_size(json_array_get(null, l));
    *s = (struct samples){ .n = json_array_size(head) };
    s->head = calloc(s->n + 1, sizeof *s->head);
    s->null = calloc(s->n + 1, sizeof *s->null);
    s->all = calloc(room, sizeof *s->all);
    for (size_t l = 0; s->head && s->null && s->all && l < s->n; l++) {
        s->head[l] = read_launch(json_array_get(head, l), s);
        s->null[l] = read_launch(json_array_get(null, l), s);
    }
    if (s->n_all > 0)
        return true;
    free_samples(s);
    return false;
}

/* ---- The axis ---- */

struct axis {
    double from, to; /* per cent */
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearly all samples, nothing, floor and interval; a sample far off lies at its end. */
static struct axis axis_of(const struct pair_row *row, const struct samples *s)
{
    double *sorted = malloc(s->n_all * sizeof *sorted), from = 0.0, to = 0.0;
    if (sorted) {
        memcpy(sorted, s->all, s->n_all * sizeof *sorted);
        qsort(sorted, s->n_all, sizeof *sorted, by_value);
        from = sorted[s->n_all / 50];
        to = sorted[s->n_all - 1 - s->n_all / 50];
        free(sorted);
    }
    const double floor = row->floor > 0.0 ? 100.0 * row->floor : 1.0;
    from = fmin(from, -1.2 * floor);
    to = fmax(to, 1.2 * floor);
    if (!isnan(row->lo)) {
        from = fmin(from, 100.0 * (row->lo - 1.0));
        to = fmax(to, 100.0 * (row->hi - 1.0));
    }
    const double room = 0.04 * (to - from);
    return (struct axis){ from - room, to + room };
}

/* Where it lies, as a share of the axis, its ends where it lies beyond them. */
static double place(struct axis a, double x)
{
    const double share = (x - a.from) / (a.to - a.from);
    return share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
}

/* ---- Text ---- */

enum { STRIP = 56 };

static int column(struct axis a, double x)
{
    const int c = (int)(place(a, x) * STRIP);
    return c < STRIP ? c : STRIP - 1;
}

/* More points in a column, a heavier sign. */
static char sign_of(int n)
{
    return n == 1 ? '.' : n == 2 ? ':' : n <= 4 ? 'o' : n <= 8 ? 'O' : '@';
}

static void write_strip(FILE *out, struct axis a, const char *name, size_t number,
                        const struct launch *launch, const struct pair_row *row)
{
    char line[STRIP + 1];
    int points[STRIP] = { 0 };
    memset(line, ' ', STRIP);
    line[STRIP] = 0;
    line[column(a, 0.0)] = '|';
    if (row->floor > 0.0) {
        line[column(a, -100.0 * row->floor)] = '(';
        line[column(a, 100.0 * row->floor)] = ')';
    }
    for (size_t i = 0; i < launch->n; i++)
        points[column(a, launch->value[i])]++;
    for (int c = 0; c < STRIP; c++)
        if (points[c] > 0)
            line[c] = sign_of(points[c]);
    fprintf(out, "%s %-2zu %s %+.1f %%\n", name, number, line, launch->median);
}

static void write_axis(FILE *out, struct axis a)
{
    char line[STRIP + 16], ends[2][16];
    const int nothing = column(a, 0.0);
    memset(line, ' ', sizeof line);
    snprintf(ends[0], sizeof ends[0], "%+.1f %%", a.from);
    snprintf(ends[1], sizeof ends[1], "%+.1f %%", a.to);
    memcpy(line + STRIP - strlen(ends[1]), ends[1], strlen(ends[1]) + 1);
    if (nothing > (int)strlen(ends[0]) && nothing < STRIP - 1 - (int)strlen(ends[1]))
        line[nothing] = '0';
    memcpy(line, ends[0], strlen(ends[0]));
    fprintf(out, "        %s\n", line);
}

char *evidence_strip(const struct pair_row *row)
{
    struct samples s;
    char *text = NULL;
    size_t size;
    if (!read_samples(row, &s))
        return NULL;
    FILE *out = open_memstream(&text, &size);
    const struct axis a = axis_of(row, &s);
    for (size_t l = 0; out && l < s.n; l++)
        write_strip(out, a, "head", l + 1, &s.head[l], row);
    for (size_t l = 0; out && l < s.n; l++)
        if (s.null[l].n > 0)
            write_strip(out, a, "base", l + 1, &s.null[l], row);
    if (out) {
        write_axis(out, a);
        fclose(out);
    }
    free_samples(&s);
    return text;
}

/* ---- Pictures ---- */

static const char *const head_color = "#D55E00", *const base_color = "#0072B2";

enum { LEFT = 380, PLOT = 560, RIGHT = 140, ROW = 22, TOP = 34 };

static double x_of(struct axis a, double x) { return LEFT + PLOT * place(a, x); }

static void begin_svg(FILE *out, size_t rows)
{
    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" width=\"%d\" "
        "font-family=\"system-ui,sans-serif\" font-size=\"12\" fill=\"#222\" role=\"img\">\n",
        LEFT + PLOT + RIGHT, TOP + ROW * (rows + 1), LEFT + PLOT + RIGHT);
}

static void text_at(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++)
        if (*text == '<' || *text == '>' || *text == '&')
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
    fputs("</text>\n", out);
}

/* A band of the axis behind rows. */
static void band(FILE *out, struct axis a, double from, double to, double y, double height,
                 const char *color)
{
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
            x_of(a, from), y, x_of(a, to) - x_of(a, from), height, color);
}

static void line(FILE *out, double x1, double x2, double y1, double y2, const char *color,
                 double width)
{
    fprintf(out,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"%.1f\"/>\n",
            x1, x2, y1, y2, color, width);
}

/* A step of 1, 2 or 5 that gives some eight marks. */
static double step_of(struct axis a)
{
    const double wanted = (a.to - a.from) / 8.0, ten = pow(10.0, floor(log10(wanted)));
    return wanted < 2.0 * ten ? 2.0 * ten : wanted < 5.0 * ten ? 5.0 * ten : 10.0 * ten;
}

static void ticks(FILE *out, struct axis a, size_t rows)
{
    const double step = step_of(a), bottom = TOP + ROW * (double)rows;
    for (double x = step * ceil(a.from / step); x <= a.to; x += step) {
        char text[32];
        const bool nothing = fabs(x) < 0.01 * step;
        snprintf(text, sizeof text, nothing ? "0" : "%+.3g %%", x);
        line(out, x_of(a, x), x_of(a, x), TOP - 4, bottom, nothing ? "#444" : "#ddd",
             nothing ? 1.5 : 0.5);
        text_at(out, x_of(a, x), TOP - 10, "middle", text);
    }
}

static void points(FILE *out, struct axis a, size_t row, const char *name, size_t number,
                   const struct launch *launch, const char *color)
{
    const double middle = TOP + ROW * ((double)row + 0.5);
    char text[64];
    snprintf(text, sizeof text, "%s, launch %zu", name, number);
    text_at(out, LEFT - 10, middle + 4, "end", text);
    for (size_t i = 0; i < launch->n; i++)
        fprintf(
            out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"%s\" fill-opacity=\"0.45\"/>\n",
            x_of(a, launch->value[i]), middle + 5.0 * ((double)(i * 7 % 11) / 5.0 - 1.0),
            color);
    line(out, x_of(a, launch->median), x_of(a, launch->median), middle - 9, middle + 9, "#000",
         2.0);
    snprintf(text, sizeof text, "%+.2f %%", launch->median);
    text_at(out, LEFT + PLOT + 10, middle + 4, "start", text);
}

char *evidence_svg(const struct pair_row *row)
{
    struct samples s;
    char *text = NULL;
    size_t size;
    if (!read_samples(row, &s))
        return NULL;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        const struct axis a = axis_of(row, &s);
        const double floor = row->floor > 0.0 ? 100.0 * row->floor : 0.0;
        begin_svg(out, 2 * s.n);
        band(out, a, -floor, floor, TOP, ROW * 2.0 * (double)s.n, "#eee");
        if (!isnan(row->lo))
            band(out, a, 100.0 * (row->lo - 1.0), 100.0 * (row->hi - 1.0), TOP,
                 ROW * (double)s.n, "#fde3d0");
        ticks(out, a, 2 * s.n);
        for (size_t l = 0; l < s.n; l++)
            points(out, a, l, "head / base", l + 1, &s.head[l], head_color);
        for (size_t l = 0; l < s.n; l++)
            points(out, a, s.n + l, "base again / base", l + 1, &s.null[l], base_color);
        fputs("</svg>\n", out);
        fclose(out);
    }
    free_samples(&s);
    return text;
}

/* ---- Many rows ---- */

enum { FOREST = 60 }; /* rows at most */

static struct axis forest_axis(const struct comparison *c)
{
    struct axis a = { -4.0, 4.0 };
    for (size_t i = 0; i < c->n && i < FOREST; i++) {
        const struct pair_row *row = &c->rows[i];
        const double at = 100.0 * (row->ratio - 1.0);
        if (isnan(row->ratio))
            continue; /* an interval may leave the picture, an estimate not */
        a.from = fmin(a.from, fmax(100.0 * (row->lo - 1.0), at - 5.0));
        a.to = fmax(a.to, fmin(100.0 * (row->hi - 1.0), at + 5.0));
    }
    const double room = 0.04 * (a.to - a.from);
    return (struct axis){ a.from - room, a.to + room };
}

static void forest_row(FILE *out, struct axis a, size_t at, const struct pair_row *row)
{
    const double top = TOP + ROW * (double)at, middle = top + 0.5 * ROW;
    const char *color = row->kind == VERDICT_SLOWER   ? "#c62828"
                        : row->kind == VERDICT_FASTER ? "#1a7f37"
                                                      : "#444";
    char text[200];
    snprintf(text, sizeof text, "%.120s  %.32s", row->id, row->backend);
    text_at(out, LEFT - 10, middle + 4, "end", text);
    if (row->floor > 0.0)
        band(out, a, -100.0 * row->floor, 100.0 * row->floor, top + 3, ROW - 6, "#e4e4e4");
    line(out, x_of(a, 100.0 * (row->lo - 1.0)), x_of(a, 100.0 * (row->hi - 1.0)), middle,
         middle, color, 2.0);
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n",
            x_of(a, 100.0 * (row->ratio - 1.0)), middle, color);
    snprintf(text, sizeof text, "%+.1f %%  %s", 100.0 * (row->ratio - 1.0),
             row->kind == VERDICT_IDENTICAL ? "identical" : verdict_word(row->kind));
    text_at(out, LEFT + PLOT + 10, middle + 4, "start", text);
}

/* The yardstick: how far base was from its own copy, a point a row. */
static void null_row(FILE *out, struct axis a, const struct comparison *c)
{
    const double middle = TOP + 0.5 * ROW;
    char text[64];
    text_at(out, LEFT - 10, middle + 4, "end", "base against itself");
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].null_ratio > 0.0)
            fprintf(out,
                    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"%s\" "
                    "fill-opacity=\"0.45\"/>\n",
                    x_of(a, 100.0 * (c->rows[i].null_ratio - 1.0)),
                    middle + 4.0 * ((double)(i * 7 % 11) / 5.0 - 1.0), base_color);
    snprintf(text, sizeof text, "%.1f %% (median)", 100.0 * c->null_median);
    text_at(out, LEFT + PLOT + 10, middle + 4, "start", text);
}

char *evidence_forest(const struct comparison *c)
{
    char *text = NULL;
    size_t size, shown = 0;
    for (size_t i = 0; i < c->n && shown < FOREST; i++)
        shown += isnan(c->rows[i].ratio) ? 0 : 1;
    FILE *out = shown ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    const struct axis a = forest_axis(c);
    const double budget = c->rows[0].budget > 0.0 ? 100.0 * c->rows[0].budget : 3.0;
    begin_svg(out, shown + 1);
    band(out, a, -budget, budget, TOP, ROW * (double)(shown + 1), "#f4f6f8");
    ticks(out, a, shown + 1);
    null_row(out, a, c);
    for (size_t i = 0, at = 1; i < c->n && at <= shown; i++)
        if (!isnan(c->rows[i].ratio))
            forest_row(out, a, at++, &c->rows[i]);
    fputs("</svg>\n", out);
    fclose(out);
    return text;
}
