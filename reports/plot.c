/*
 * Pictures of an encoding: a sinusoidal table, and errors against position.
 */
#define _POSIX_C_SOURCE 200809L
#include "gnuplot.h"

#include <math.h>
#include <string.h>

/* Cells of a map beyond what a screen shows are left out evenly. */
enum { MAP_CELLS = 800, SIMILAR_CELLS = 256 };

static int64_t stride_for(int64_t n, int64_t cells) { return (n + cells - 1) / cells; }

/* ---- Similarity ---- */

static double dot(const float *a, const float *b, int64_t dim)
{
    double sum = 0.0;
    for (int64_t i = 0; i < dim; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

double plot_cosine(const float *table, int64_t dim, int64_t a, int64_t b)
{
    const float *x = table + a * dim, *y = table + b * dim;
    double norms = sqrt(dot(x, x, dim) * dot(y, y, dim));
    return norms > 0.0 ? dot(x, y, dim) / norms : 0.0;
}

void plot_sinusoidal_facts(const float *table, int64_t tokens, int64_t dim, FILE *out)
{
    static const int64_t offsets[] = { 1, 4, 16, 32 };
    float least = table[0], most = table[0];
    for (int64_t i = 1; i < tokens * dim; i++) {
        least = table[i] < least ? table[i] : least;
        most = table[i] > most ? table[i] : most;
    }
    fprintf(out, "shape [%lld, %lld]\nmin %.3f\nmax %.3f\n", (long long)tokens, (long long)dim,
            (double)least, (double)most);
    for (int k = 0; k < 4; k++) {
        double sum = 0.0;
        int64_t n = tokens - offsets[k];
        for (int64_t t = 0; t < n; t++)
            sum += plot_cosine(table, dim, t, t + offsets[k]);
        if (n > 0)
            fprintf(out, "average cosine similarity at offset %lld: %.3f\n",
                    (long long)offsets[k], sum / (double)n);
        else
            fprintf(out, "average cosine similarity at offset %lld: too few positions\n",
                    (long long)offsets[k]);
    }
}

/* ---- The table ---- */

static void map_data(FILE *s, const float *table, int64_t tokens, int64_t dim, int64_t every_t,
                     int64_t every_d)
{
    fputs("$map << END\n", s);
    for (int64_t t = 0; t < tokens; t += every_t) {
        for (int64_t d = 0; d < dim; d += every_d)
            fprintf(s, "%.4g ", (double)table[t * dim + d]);
        fputc('\n', s);
    }
    fputs("END\n$similar << END\n", s);
    int64_t every = stride_for(tokens, SIMILAR_CELLS);
    for (int64_t a = 0; a < tokens; a += every) {
        for (int64_t b = 0; b < tokens; b += every)
            fprintf(s, "%.4g ", plot_cosine(table, dim, a, b));
        fputc('\n', s);
    }
    fputs("END\n", s);
}

static const int64_t curve_dims[] = { 0, 2, 10, 30 };
enum { N_CURVES = 4 };

static void curve_data(FILE *s, const float *table, int64_t tokens, int64_t dim, int64_t first)
{
    fputs("$curves << END\n", s);
    for (int64_t t = 0; t < tokens; t++) {
        fprintf(s, "%lld", (long long)(first + t));
        for (int k = 0; k < N_CURVES; k++)
            fprintf(s, " %.6g",
                    curve_dims[k] < dim ? (double)table[t * dim + curve_dims[k]] : 0.0);
        fputc('\n', s);
    }
    fputs("END\n", s);
}

static void draw_map(FILE *s, int64_t tokens, int64_t dim, int64_t first, int64_t every_t,
                     int64_t every_d)
{
    fprintf(
        s,
        "set lmargin at screen 0.07\nset rmargin at screen 0.90\nset tmargin at screen 0.885\n"
        "set bmargin at screen 0.56\nset title 'Encoding: value of each dimension at each "
        "position'\n"
        "set xlabel 'dimension'\nset ylabel 'position'\nset cblabel 'value'\nunset key\n"
        "set xrange [-0.5:%g]\nset yrange [%g:%g]\nset autoscale cb\n"
        "plot $map matrix using ($1*%lld):(%lld+$2*%lld):3 with image\n",
        (double)dim - 0.5, (double)first - 0.5, (double)(first + tokens) - 0.5,
        (long long)every_d, (long long)first, (long long)every_t);
}

/* Room above the curves for their key. */
static double most_of(const float *table, int64_t tokens, int64_t dim)
{
    double most = 0.0;
    for (int64_t t = 0; t < tokens; t++)
        for (int k = 0; k < N_CURVES && curve_dims[k] < dim; k++) {
            double value = fabs((double)table[t * dim + curve_dims[k]]);
            most = value > most ? value : most;
        }
    return most > 0.0 ? ceil(most * 50.0) / 50.0 : 1.0; /* so that the tics are short numbers */
}

static void draw_curves(FILE *s, double most, int64_t tokens, int64_t dim, int64_t first)
{
    fprintf(s,
            "unset colorbox\nset lmargin at screen 0.07\nset rmargin at screen 0.53\nset "
            "tmargin at screen 0.44\n"
            "set bmargin at screen 0.08\nset title 'Single dimensions along the positions'\n"
            "set xlabel 'position'\nset ylabel 'value'\nset xrange [%lld:%lld]\nset yrange "
            "[%g:%g]\n"
            "set key top center horizontal samplen 3.5 width 1\nset ytics %g, %g, %g\nplot ",
            (long long)first, (long long)(first + tokens - 1), -1.08 * most, 1.3 * most, -most,
            0.5 * most, most);
    for (int k = 0; k < N_CURVES && curve_dims[k] < dim; k++)
        fprintf(s,
                "%s$curves using 1:%d with lines lw 2 dt %d lc rgb '%s' title 'dimension %lld'",
                k ? ", " : "", k + 2, k + 1, plot_colors[k], (long long)curve_dims[k]);
    fputc('\n', s);
}

static void draw_similarity(FILE *s, int64_t tokens, int64_t first)
{
    long long every = (long long)stride_for(tokens, SIMILAR_CELLS);
    double end = (double)(first + tokens) - 0.5;
    fprintf(s,
            "set offsets 0, 0, 0, 0\nset colorbox\nset lmargin at screen 0.64\nset rmargin at "
            "screen 0.90\n"
            "set tmargin at screen 0.44\nset bmargin at screen 0.08\n"
            "set title 'Cosine similarity of positions'\nset xlabel 'position'\nset ylabel "
            "'position'\n"
            "set cblabel 'cosine similarity' offset 1.5,0\nset ytics autofreq\nunset key\nset "
            "xrange [%g:%g]\nset yrange [%g:%g]\n"
            "set autoscale cb\nplot $similar matrix using (%lld+$1*%lld):(%lld+$2*%lld):3 with "
            "image\n",
            (double)first - 0.5, end, (double)first - 0.5, end, (long long)first, every,
            (long long)first, every);
}

int plot_sinusoidal(const float *table, int64_t tokens, int64_t dim, int64_t first,
                    const char *caption, const struct plot_target *target,
                    char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1500, 1200, error);
    if (!s)
        return -1;
    int64_t every_t = stride_for(tokens, MAP_CELLS), every_d = stride_for(dim, MAP_CELLS);
    map_data(s, table, tokens, dim, every_t, every_d);
    curve_data(s, table, tokens, dim, first);
    gnuplot_viridis(s);
    char title[512];
    snprintf(title, sizeof title,
             "Sinusoidal encoding, %lld positions from %lld, %lld dimensions\n%s",
             (long long)tokens, (long long)first, (long long)dim, caption);
    fputs("set multiplot title ", s);
    gnuplot_string(s, title);
    fputs(" noenhanced font ',15'\n", s);
    draw_map(s, tokens, dim, first, every_t, every_d);
    draw_curves(s, most_of(table, tokens, dim), tokens, dim, first);
    draw_similarity(s, tokens, first);
    fputs("unset multiplot\n", s);
    return gnuplot_end(s, target, error);
}

/* ---- Errors ---- */

/* The least error above zero: zeros are drawn a little below it. */
static double least_error(const struct plot_curve *curves, size_t n)
{
    double least = 1.0;
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < curves[c].n; i++)
            if (curves[c].error[i] > 0.0 && curves[c].error[i] < least)
                least = curves[c].error[i];
    return least;
}

/* Long enough to be told apart: a line, dashes, long dashes, dashes and dots. */
static const char *const dashes[] = { "1", "'-'", "'_'", "'_.'", "'_..'" };
enum { N_DASHES = sizeof dashes / sizeof *dashes };

/* Those of plot_colors that are seen as lines on white: yellow is not. */
static const char *const line_colors[] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                           "#E69F00", "#56B4E9", "#999999", "#000000" };
enum { N_LINE_COLORS = sizeof line_colors / sizeof *line_colors };

/* Curves of a profile share a dash: the k-th profile met gets the k-th. */
static int dash_of(const struct plot_curve *curves, size_t at)
{
    int dash = 0;
    for (size_t c = 0; c < at; c++) {
        if (strcmp(curves[c].profile, curves[at].profile) == 0)
            return dash_of(curves, c);
        bool new_profile = true;
        for (size_t d = 0; d < c; d++)
            new_profile = new_profile && strcmp(curves[d].profile, curves[c].profile) != 0;
        dash += new_profile;
    }
    return dash;
}

int plot_error(const struct plot_curve *curves, size_t n, const char *caption,
               const struct plot_target *target, char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1300, 640 + 26 * (int)n, error);
    if (!s)
        return -1;
    double bottom = least_error(curves, n) / 3.0;
    for (size_t c = 0; c < n; c++) {
        fprintf(s, "$curve%zu << END\n", c);
        for (size_t i = 0; i < curves[c].n; i++)
            if (curves[c].position[i] > 0.0)
                fprintf(s, "%.10g %.4g\n", curves[c].position[i],
                        curves[c].error[i] > 0.0 ? curves[c].error[i] : bottom);
        fputs("END\n", s);
    }
    char title[512];
    snprintf(title, sizeof title, "Error of cosines and sines by position\n%s", caption);
    fputs("set title ", s);
    gnuplot_string(s, title);
    fprintf(
        s,
        " noenhanced font ',14'\nset logscale xy\nset format x '10^{%%L}'\nset format y "
        "'10^{%%L}'\n"
        "set xlabel 'position'\nset ylabel 'largest absolute error against real mathematics'\n"
        "set yrange [%g:4]\nset xrange [0.9:3e9]\nset lmargin 12\nset rmargin 4\n"
        "set key below left Left reverse maxcols 1 samplen 4\n"
        /* half an ulp of a value in [1/2, 1): what correct rounding to f32 leaves */
        "half = 2.0**-25\nset arrow from graph 0, first half to graph 1, first half nohead dt "
        "3 lc rgb '#888888'\n"
        "set label 'half an ulp just below 1: correct rounding' at graph 0.01, first half "
        "offset 0, -0.8 "
        "textcolor rgb '#666666'\n"
        "plot ",
        bottom / 2.0);
    for (size_t c = 0; c < n; c++) {
        fprintf(s,
                "%s$curve%zu using 1:2 with linespoints lw 2 dt %s pt %d ps 0.7 pointinterval "
                "-%zu lc rgb '%s' title ",
                c ? ", " : "", c, dashes[dash_of(curves, c) % N_DASHES], 4 + (int)c, 10 + 3 * c,
                line_colors[c % N_LINE_COLORS]);
        gnuplot_string(s, curves[c].label);
    }
    fputc('\n', s);
    return gnuplot_end(s, target, error);
}
