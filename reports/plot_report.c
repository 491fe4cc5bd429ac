/*
 * Pictures of a report's records: how fast each backend is beside the roof, and what accuracy
 * costs.
 */
#define _POSIX_C_SOURCE 200809L
#include "colors.h"
#include "gnuplot.h"
#include "show.h"
#include "query.h"
#include "tradeoff.h"

#include <math.h>
#include <string.h>

enum { MAX_CASES = 12, MAX_ROWS = 32 };

/* The cases of a kernel with a number in them. */
static size_t cases_of(const struct results *r, const char *kernel, const char **cases,
                       size_t most)
{
    size_t n = 0;
    for (size_t c = 0; c < r->n_cases && n < most; c++) {
        const struct bench_row *rows[MAX_ROWS];
        if (rows_of_case(r, r->cases[c], rows, MAX_ROWS) > 0 &&
            strcmp(rows[0]->kernel, kernel) == 0 && !*rows[0]->refused)
            cases[n++] = r->cases[c];
    }
    return n;
}

static const struct bench_row *find(const struct results *r, const char *id,
                                    const char *backend)
{
    for (size_t i = 0; i < r->n_bench; i++)
        if (strcmp(r->bench[i].id, id) == 0 && strcmp(r->bench[i].backend, backend) == 0 &&
            !*r->bench[i].refused)
            return &r->bench[i];
    return NULL;
}

/* "llama-3.1-8b-decode\nL1, 40 KiB, hf_f32" */
static void case_label(const struct bench_row *b, char *text, size_t bytes)
{
    const char *last = strrchr(b->id, '/'), *comma = *b->footprint ? ", " : "";
    bool given = strcmp(b->profile, "given") == 0;
    const char *dtype = narrow_name(b->dtype);
    snprintf(text, bytes, "%s\n%s%s%s%s%s%s%s", last ? last + 1 : b->id, b->footprint, comma,
             show_bytes(b->bytes), *dtype ? ", " : "", dtype, given ? "" : ", ",
             given ? "" : b->profile);
}

/* Backends with a number in any of the cases, in the order of the records. */
static size_t backends_of(const struct results *r, const char *const *cases, size_t n,
                          size_t *which, size_t most)
{
    size_t found = 0;
    for (size_t b = 0; b < r->n_backends && found < most; b++)
        for (size_t c = 0; c < n; c++)
            if (find(r, cases[c], r->backends[b].id)) {
                which[found++] = b;
                break;
            }
    return found;
}

/* GB/s at the ends of the interval of the time. */
static double slowest(const struct bench_row *b)
{
    return b->hi > 0.0 ? b->gbps * b->median / b->hi : b->gbps;
}

static double quickest(const struct bench_row *b)
{
    return b->lo > 0.0 ? b->gbps * b->median / b->lo : b->gbps;
}

/* As far up as a picture reaches for a row: to the end of its interval, unless that is far off. */
static double top_of(const struct bench_row *b) { return fmin(quickest(b), 1.5 * b->gbps); }

/* Case c has its bars around x = c; the roof is a line over all of them. */
static void speed_data(FILE *s, const struct results *r, const char *const *cases, size_t n,
                       const size_t *which, size_t n_which)
{
    double width = 0.8 / (double)n_which;
    for (size_t k = 0; k < n_which; k++) {
        fprintf(s, "$backend%zu << END\n", k);
        for (size_t c = 0; c < n; c++) {
            const struct bench_row *b = find(r, cases[c], r->backends[which[k]].id);
            if (b)
                fprintf(s, "%g %g %g %g %g\n", (double)c - 0.4 + width * ((double)k + 0.5),
                        b->gbps, width * 0.92, slowest(b), quickest(b));
        }
        fputs("-100 0 0.1 0 0\nEND\n", s);
    }
    fputs("$roof << END\n", s);
    for (size_t c = 0; c < n; c++) {
        const struct bench_row *rows[MAX_ROWS];
        size_t n_rows = rows_of_case(r, cases[c], rows, MAX_ROWS);
        if (n_rows && rows[0]->roof_gbps > 0.0)
            fprintf(s, "%g %g 0.9 0\n", (double)c - 0.45, rows[0]->roof_gbps);
    }
    fputs("-100 0 0.1 0\nEND\n", s);
}

static int rows_threads(const struct results *r, const char *id)
{
    const struct bench_row *rows[MAX_ROWS];
    return rows_of_case(r, id, rows, MAX_ROWS) ? rows[0]->threads : 1;
}

/* Bars start at 0, unless the slowest would not be seen beside the roof: then the axis is
 * logarithmic and starts below it. */
static void speed_axis(FILE *s, const struct results *r, const char *const *cases, size_t n)
{
    double least = 1e300, most = 0.0;
    for (size_t c = 0; c < n; c++) {
        const struct bench_row *rows[MAX_ROWS];
        size_t n_rows = rows_of_case(r, cases[c], rows, MAX_ROWS);
        for (size_t i = 0; i < n_rows; i++) {
            if (!(rows[i]->gbps > 0.0))
                continue;
            least = fmin(least, rows[i]->gbps);
            most = fmax(most, fmax(top_of(rows[i]), rows[i]->roof_gbps));
        }
    }
    if (most > 100.0 * least)
        fprintf(s, "set ylabel 'GB/s (logarithmic)'\nset logscale y\nset yrange [%g:%g]\n",
                0.5 * least, 1.6 * most);
    else
        fprintf(s, "set ylabel 'GB/s'\nset yrange [0:%g]\n", 1.15 * most);
}

static void speed_plot(FILE *s, const struct results *r, const char *kernel,
                       const char *const *cases, size_t n, const size_t *which, size_t n_which)
{
    char title[200];
    snprintf(title, sizeof title,
             "%s: useful bytes per second with their intervals, and the roof\n%s, threads: %d",
             kernel, record_text(r->env, "cpu.name"), rows_threads(r, cases[0]));
    fputs("set title ", s);
    gnuplot_string(s, title);
    fprintf(s,
            " noenhanced font ',14'\nset offsets 0, 0, graph 0.06, 0\n"
            "set xrange [-0.6:%g]\n"
            "set bmargin 5\nset style fill solid 0.9 noborder\nset grid noxtics ytics\nset key "
            "outside right top "
            "vertical Left reverse samplen 1.5\n"
            "set xtics scale 0 noenhanced font ',10' (",
            (double)n - 0.4);
    for (size_t c = 0; c < n; c++) {
        const struct bench_row *rows[MAX_ROWS];
        char label[160];
        rows_of_case(r, cases[c], rows, MAX_ROWS);
        case_label(rows[0], label, sizeof label);
        fputs(c ? ", " : "", s);
        gnuplot_tic(s, label);
        fprintf(s, " %zu", c);
    }
    fputs(")\n", s);
    speed_axis(s, r, cases, n);
    fputs("plot ", s);
    for (size_t k = 0; k < n_which; k++) {
        fprintf(s, "$backend%zu using 1:2:3 with boxes lc rgb '%s' title ", k,
                backend_color(r, r->backends[which[k]].id));
        gnuplot_string(s, r->backends[which[k]].id);
        fputs(", ", s);
    }
    for (size_t k = 0; k < n_which; k++)
        fprintf(s,
                "$backend%zu using 1:4:(0):($5-$4) with vectors heads size screen 0.004,90 lc "
                "rgb '#222222' notitle, ",
                k);
    fputs("$roof using 1:2:3:4 with vectors nohead lw 2.5 lc rgb 'black' title 'roof'\n", s);
}

int plot_speed(const json_t *records, const char *kernel, const struct plot_target *target,
               char error[PLOT_ERROR])
{
    struct results r;
    if (results_make(records, 0, &r)) {
        snprintf(error, PLOT_ERROR, "out of memory");
        return -1;
    }
    const char *cases[MAX_CASES];
    size_t which[PLOT_COLORS + 5], n = cases_of(&r, kernel, cases, MAX_CASES);
    size_t n_which = backends_of(&r, cases, n, which, sizeof which / sizeof *which);
    int status = 1;
    if (n > 0) {
        FILE *s = gnuplot_begin(target, 420 + 190 * (int)(n > 3 ? n : 3), 640, error);
        status = s ? 0 : -1;
        if (s) {
            speed_data(s, &r, cases, n, which, n_which);
            speed_plot(s, &r, kernel, cases, n, which, n_which);
            status = gnuplot_end(s, target, error);
        }
    }
    results_free(&r);
    return status;
}

/* ---- Accuracy against speed ---- */

/* A logarithmic axis has no zero: it is drawn at half of the least error. */
static double error_of(const struct point *p, double least)
{
    return p->error->max > 0.0 ? p->error->max : least / 2.0;
}

/* Points whose labels would cover each other share one, at the first of them. */
static bool close_by(const struct point *a, const struct point *b, double fastest, double least)
{
    return fabs(log10(error_of(a, least) / error_of(b, least))) < 0.1 &&
           fabs(a->bench->gbps - b->bench->gbps) < 0.035 * fastest;
}

/* The backend; with a star where it errs in another metric than the axis's, too. */
static void label_name(FILE *s, const struct point *p)
{
    gnuplot_words(s, p->bench->backend);
    fputs(p->worst.n > 1 ? "*" : "", s);
}

/* What the star means: the worst of these errors. */
static void star_note(const struct point *points, size_t n, char *text, size_t bytes)
{
    const struct point *worst = NULL;
    size_t which = 0;
    char error[WORST_TEXT];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < points[i].worst.n; k++)
            if (points[i].worst.of[k] != points[i].error &&
                (!worst || points[i].worst.of[k]->max > worst->worst.of[which]->max)) {
                worst = &points[i];
                which = k;
            }
    *text = 0;
    if (worst) {
        one_worst_text(&worst->worst, which, false, error);
        snprintf(text, bytes, "\n* and up to %s", error);
    }
}

static void label_data(FILE *s, const struct point *points, size_t n, double fastest,
                       double least)
{
    bool named[MAX_ROWS] = { false };
    fputs("$labels << END\n", s);
    for (size_t i = 0; i < n; i++) {
        if (named[i])
            continue;
        fprintf(s, "%.6g %.6g \"", error_of(&points[i], least), points[i].bench->gbps);
        label_name(s, &points[i]);
        for (size_t k = i + 1; k < n; k++)
            if (!named[k] && close_by(&points[i], &points[k], fastest, least)) {
                fputs(", ", s);
                label_name(s, &points[k]);
                named[k] = true;
            }
        fputs("\"\n", s);
    }
    fputs("END\n", s);
}

static void tradeoff_axes(FILE *s, const struct results *r, const char *kernel,
                          const struct point *points, size_t n, double fastest, double least,
                          double most)
{
    char label[160], title[320], star[WORST_TEXT + 24], axis[WORST_TEXT + 96];
    case_label(points->bench, label, sizeof label);
    *strchr(label, '\n') = ' ';
    snprintf(title, sizeof title, "%s: accuracy against speed\n%s, %s", kernel, label,
             record_text(r->env, "cpu.name"));
    fputs("set termoption noenhanced\nset title ", s);
    gnuplot_string(s, title);
    const char *metric = points->error->metric;
    star_note(points, n, star, sizeof star);
    snprintf(axis, sizeof axis, "worst error met, %s (better to the left)%s",
             strcmp(metric, "abs") == 0        ? "absolute"
             : strcmp(metric, "pair_ulp") == 0 ? "ulp of the pair"
                                               : "ulp",
             star);
    fputs(" font ',14'\nset xlabel ", s);
    gnuplot_string(s, axis);
    fprintf(s,
            "\nset ylabel 'GB/s (better up)'\nset yrange [0:%g]\nset key below maxrows 1 "
            "samplen 1\nset bmargin %d\n",
            1.12 * fastest, *star ? 7 : 6);
    if (most < 10.0 * least)
        fprintf(s, "set xrange [0:%g]\n", 1.35 * most);
    else
        fprintf(s, "set logscale x\nset xrange [%g:%g]\n", least / 2.0, most * 4.0);
}

static void tradeoff_plot(FILE *s, const struct results *r, const char *kernel,
                          const struct point *points, size_t n)
{
    static const int shape[] = { 7, 7, 6 };
    static const double size[] = { 1.0, 2.2, 1.6 };
    static const char *const meaning[] = { "another is better", "none is better",
                                           "too noisy to tell" };
    double least = HUGE_VAL, most = 0.0, fastest = 0.0;
    for (size_t i = 0; i < n; i++) {
        double e = points[i].error->max;
        least = e > 0.0 && e < least ? e : least;
        most = fmax(most, e);
        fastest = fmax(fastest, top_of(points[i].bench));
    }
    if (most <= 0.0)
        least = most = 1.0; /* all are right: any scale will do */
    for (int kind = BEATEN; kind <= UNSETTLED; kind++) {
        fprintf(s, "$points%d << END\n", kind);
        for (size_t i = 0; i < n; i++)
            if ((int)points[i].kind == kind)
                fprintf(s, "%.6g %.6g %.6g %.6g 0x%s\n", error_of(&points[i], least),
                        points[i].bench->gbps, slowest(points[i].bench),
                        quickest(points[i].bench),
                        backend_color(r, points[i].bench->backend) + 1);
        fputs("NaN NaN NaN NaN 0\nEND\n",
              s); /* a block without a point would end the drawing */
    }
    label_data(s, points, n, fastest, least);
    tradeoff_axes(s, r, kernel, points, n, fastest, least, most);
    fputs("plot ", s);
    for (int kind = BEATEN; kind <= UNSETTLED; kind++)
        fprintf(s,
                "$points%d using 1:3:(0):($4-$3):5 with vectors heads size screen 0.004,90 lc "
                "rgb variable notitle, "
                "$points%d using 1:2:5 with points pt %d ps %g lc rgb variable notitle, "
                "NaN with points pt %d ps %g lc rgb '#444444' title '%s', ",
                kind, kind, shape[kind], size[kind], shape[kind], size[kind], meaning[kind]);
    fputs("$labels using 1:2:3 with labels left offset 1.2,0 notitle\n", s);
}

int plot_tradeoff(const json_t *records, const char *kernel, const struct plot_target *target,
                  char error[PLOT_ERROR])
{
    struct results r;
    if (results_make(records, 0, &r)) {
        snprintf(error, PLOT_ERROR, "out of memory");
        return -1;
    }
    struct point points[RANKED];
    size_t n = tradeoff_points(&r, kernel, points);
    int status = 1;
    if (n > 1) {
        FILE *s = gnuplot_begin(target, 1100, 700, error);
        status = s ? 0 : -1;
        if (s) {
            tradeoff_plot(s, &r, kernel, points, n);
            status = gnuplot_end(s, target, error);
        }
    }
    results_free(&r);
    return status;
}
