/*
 * A picture of a run's records: how many times as fast as plain C each backend is, in each case.
 */
#define _POSIX_C_SOURCE 200809L
#include "colors.h"
#include "gnuplot.h"
#include "query.h"
#include "show.h"

#include <math.h>
#include <string.h>

enum { MAX_CASES = 12, MAX_ROWS = 32, LABEL = 160 };

/* One case: plain C's row, and the other backends' in the order of the records. */
struct group {
    const struct bench_row *plain, *row[MAX_ROWS];
    size_t n;
};

struct speedups {
    struct results results;
    struct group group[MAX_CASES];
    size_t n, found; /* groups, and cases that would make one */
};

static const struct bench_row *timed(const struct results *r, const char *id,
                                     const char *backend)
{
    for (size_t i = 0; i < r->n_bench; i++)
        if (strcmp(r->bench[i].id, id) == 0 && strcmp(r->bench[i].backend, backend) == 0 &&
            !*r->bench[i].refused && r->bench[i].vs_libm > 0.0)
            return &r->bench[i];
    return NULL;
}

/* Cases that plain C was timed in, with another backend at least. */
static void speedups_gather(struct speedups *s)
{
    const struct results *r = &s->results;
    for (size_t c = 0; c < r->n_cases; c++) {
        struct group group = { .n = 0 }, *g = &group;
        for (size_t b = 0; b < r->n_backends && g->n < MAX_ROWS; b++) {
            const struct bench_row *row = timed(r, r->cases[c], r->backends[b].id);
            if (row && strcmp(row->family, "libm") == 0)
                g->plain = row;
            else if (row)
                g->row[g->n++] = row;
        }
        if (!g->plain || g->n == 0)
            continue;
        if (s->n < MAX_CASES)
            s->group[s->n++] = *g;
        s->found++;
    }
}

/* The ends of the quotient that the ends of both intervals allow. */
static double least_of(const struct group *g, const struct bench_row *b)
{
    return g->plain->lo > 0.0 && b->hi > 0.0 ? g->plain->lo / b->hi : b->vs_libm;
}

static double most_of(const struct group *g, const struct bench_row *b)
{
    return g->plain->hi > 0.0 && b->lo > 0.0 ? g->plain->hi / b->lo : b->vs_libm;
}

/* "rope_table\nL2, 512 KiB, exact" */
static void group_label(const struct bench_row *b, char text[LABEL])
{
    const char *last = strrchr(b->id, '/'), *dtype = narrow_name(b->dtype);
    const bool given = strcmp(b->profile, "given") == 0;
    snprintf(text, LABEL, "%s\n%s, %s%s%s%s%s", b->kernel,
             *b->footprint ? b->footprint : (last ? last + 1 : b->id), show_bytes(b->bytes),
             *dtype ? ", " : "", dtype, given ? "" : ", ", given ? "" : b->profile);
}

/* Group c has its bars around x = c.  A bar reaches from 1, plain C, to the speed. */
static void speedup_data(FILE *out, const struct speedups *s, const char *backend)
{
    for (size_t c = 0; c < s->n; c++)
        for (size_t k = 0; k < s->group[c].n; k++) {
            const struct bench_row *b = s->group[c].row[k];
            const double width = 0.84 / (double)s->group[c].n;
            const double x = (double)c - 0.42 + width * ((double)k + 0.5);
            char speed[32]; /* "4.3x" without its x: the axis says what it is */
            snprintf(speed, sizeof speed, "%.*s", (int)strcspn(show_times(b->vs_libm), "x"),
                     show_times(b->vs_libm));
            if (strcmp(b->backend, backend) == 0)
                fprintf(out, "%g %g %g %g 1 %g %g \"%s\"\n", x, b->vs_libm, x - 0.46 * width,
                        x + 0.46 * width, least_of(&s->group[c], b), most_of(&s->group[c], b),
                        speed);
        }
}

static void speedup_axes(FILE *out, const struct speedups *s)
{
    double least = 1.0, most = 1.0;
    for (size_t c = 0; c < s->n; c++)
        for (size_t k = 0; k < s->group[c].n; k++) {
            least = fmin(least, least_of(&s->group[c], s->group[c].row[k]));
            most = fmax(most, most_of(&s->group[c], s->group[c].row[k]));
        }
    fprintf(out,
            "set ylabel 'times as fast as plain C (logarithmic)'\nset logscale y\n"
            "set yrange [%g:%g]\nset xrange [-0.5:%g]\nset style fill solid 0.9 "
            "noborder\nset grid noxtics ytics\nset bmargin 6\nset key bmargin center bottom "
            "horizontal Left reverse "
            "samplen 1.2 noenhanced\nset xtics scale 0 noenhanced font ',13' (",
            0.8 * least, 1.6 * most, (double)s->n - 0.5);
    for (size_t c = 0; c < s->n; c++) {
        char label[LABEL];
        group_label(s->group[c].plain, label);
        fputs(c ? ", " : "", out);
        gnuplot_tic(out, label);
        fprintf(out, " %zu", c);
    }
    fputs(")\n", out);
}

static void speedup_title(FILE *out, const struct results *r)
{
    char title[400];
    snprintf(title, sizeof title,
             "Speed against plain C loops over the C library (libm = 1); 99 %% intervals\n"
             "%s, %s %s, %.10s, threads: %d",
             record_text(r->env, "cpu.name"), record_text(r->env, "build.cc"),
             record_text(r->env, "build.version"), record_text(r->header, "started"),
             r->bench[0].threads);
    fputs("set title ", out);
    gnuplot_string(out, title);
    fputs(" noenhanced font ',14'\n", out);
}

static void speedup_plot(FILE *out, const struct speedups *s)
{
    const struct results *r = &s->results;
    speedup_title(out, r);
    speedup_axes(out, s);
    for (size_t b = 0; b < r->n_backends; b++) {
        fprintf(out, "$b%zu << END\n", b);
        speedup_data(out, s, r->backends[b].id);
        fputs("END\n", out);
    }
    fputs("plot 1 lw 2 lc rgb 'black' title 'libm (plain C)'", out);
    for (size_t b = 0; b < r->n_backends; b++) {
        bool there = false;
        for (size_t c = 0; c < s->n; c++)
            there |= timed(r, s->group[c].plain->id, r->backends[b].id) &&
                     strcmp(r->backends[b].family, "libm") != 0;
        if (!there)
            continue;
        fprintf(out, ", $b%zu using 1:2:3:4:5:2 with boxxyerror lc rgb '%s' title ", b,
                backend_color(r, r->backends[b].id));
        gnuplot_string(out, r->backends[b].id);
        fprintf(out,
                ", $b%zu using 1:6:(0):($7-$6) with vectors heads size screen 0.004,90 lc rgb "
                "'#222222' notitle, $b%zu using 1:($7 > 1 ? $7 : 1):8 with labels offset 0,0.7 "
                "font ',12' notitle",
                b, b);
    }
    fputs("\n", out);
}

static int speedups_make(const json_t *records, struct speedups *s, char error[PLOT_ERROR])
{
    memset(s, 0, sizeof *s);
    if (results_make(records, 0, &s->results)) {
        snprintf(error, PLOT_ERROR, "out of memory");
        return -1;
    }
    speedups_gather(s);
    const size_t machines = results_machines(records);
    if (machines > 1)
        snprintf(error, PLOT_ERROR, "the records are of %zu machines; expected one", machines);
    else if (s->found == 0)
        snprintf(error, PLOT_ERROR,
                 "the records time no case with libm and another backend; expected those of "
                 "posenc bench --out jsonl:FILE");
    else if (s->found > MAX_CASES)
        snprintf(error, PLOT_ERROR,
                 "the records time %zu cases; expected at most %d (posenc bench --case GLOB)",
                 s->found, MAX_CASES);
    else
        return 0;
    results_free(&s->results);
    return -1;
}

int plot_speedup(const json_t *records, const struct plot_target *target,
                 char error[PLOT_ERROR])
{
    struct speedups s;
    if (speedups_make(records, &s, error) != 0)
        return -1;
    FILE *out = gnuplot_begin(target, 130 + 205 * (int)(s.n > 3 ? s.n : 3), 520, error);
    int status = out ? 0 : -1;
    if (out) {
        speedup_plot(out, &s);
        status = gnuplot_end(out, target, error);
    }
    results_free(&s.results);
    return status;
}

void plot_speedup_facts(const json_t *records, FILE *out)
{
    struct speedups s;
    char error[PLOT_ERROR];
    if (speedups_make(records, &s, error) != 0)
        return;
    fputs("times as fast as libm, plain C\n", out);
    for (size_t c = 0; c < s.n; c++)
        for (size_t k = 0; k < s.group[c].n; k++) {
            const struct bench_row *b = s.group[c].row[k];
            fprintf(out, "%s %s %s\n", b->id, b->backend, show_times(b->vs_libm));
        }
    results_free(&s.results);
}
