/*
 * Pictures of an encoding: a sinusoidal table, and errors against position.
 */
#define _POSIX_C_SOURCE 200809L
#include "colors.h"
#include "gnuplot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cells of a map beyond what a screen shows are left out evenly. */
enum { MAP_CELLS = 800, SIMILAR_CELLS = 256 };

static int64_t stride_for(int64_t n, int64_t cells) { return (n + cells - 1) / cells; }

static int64_t stride_count(int64_t n, int64_t every) { return (n + every - 1) / every; }

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

/* Those of plot_colors that are seen as lines on white: yellow is not. */
static const char *const line_colors[] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                           "#E69F00", "#56B4E9", "#999999", "#000000" };
enum { N_LINE_COLORS = sizeof line_colors / sizeof *line_colors };

/* The dimension not yet chosen whose wavelength is nearest to `wanted`, by their ratio; -1: none. */
static int64_t nearest(const struct plot_sinusoidal *plot, const double *wavelength,
                       double wanted)
{
    int64_t best = -1;
    double least = HUGE_VAL;
    for (int64_t d = 0; d < plot->dim; d++) {
        bool known = !(wavelength[d] > 0.0);
        for (int k = 0; k < plot->n_curves; k++)
            known = known || wavelength[d] == plot->wavelength[k];
        double apart = known ? HUGE_VAL : fabs(log(wavelength[d] / wanted));
        if (apart < least) {
            least = apart;
            best = d;
        }
    }
    return best;
}

void plot_choose_curves(struct plot_sinusoidal *plot, const double *wavelength)
{
    enum { CHOSEN = 4 };
    const double n = (double)plot->tokens, last = 3.0 * fmax(n, 8.0);
    const double from = fmax(n / 8.0, 8.0), ratio = pow(last / from, 1.0 / (CHOSEN - 1));
    plot->n_curves = 0;
    for (int k = 0; k < CHOSEN; k++) {
        int64_t d = nearest(plot, wavelength, from * pow(ratio, k));
        if (d < 0)
            break;
        plot->wavelength[plot->n_curves] = wavelength[d];
        plot->curve[plot->n_curves++] = d;
    }
}

/* Every `every_r`-th row and every `every_c`-th column. */
static float *thinned(const float *cells, int64_t rows, int64_t columns, int64_t every_r,
                      int64_t every_c)
{
    int64_t r = stride_count(rows, every_r), c = stride_count(columns, every_c);
    float *few = malloc((size_t)(r * c) * sizeof *few);
    for (int64_t i = 0; few && i < r * c; i++)
        few[i] = cells[i / c * every_r * columns + i % c * every_c];
    return few;
}

void plot_table_map(FILE *s, const float *table, int64_t rows, int64_t dim, int64_t first)
{
    int64_t every_r = stride_for(rows, MAP_CELLS), every_d = stride_for(dim, MAP_CELLS);
    float *cells = thinned(table, rows, dim, every_r, every_d);
    gnuplot_panel(s, 0.07, 0.89, 0.56, 0.885);
    fprintf(s,
            "unset key\nset xlabel 'dimension'\nset ylabel 'position'\nset cblabel 'value' "
            "offset -0.5,0\nset xrange [-0.5:%g]\nset yrange [%g:%g]\n",
            (double)dim - 0.5, (double)first - 0.5, (double)(first + rows) - 0.5);
    if (cells)
        gnuplot_map_scaled(s, &(struct gnuplot_map){ cells, stride_count(rows, every_r),
                                                     stride_count(dim, every_d), 0.0,
                                                     (double)first, (double)every_d,
                                                     (double)every_r });
    free(cells);
}

void plot_similarity_map(FILE *s, const float *table, int64_t rows, int64_t dim, int64_t first)
{
    int64_t every = stride_for(rows, SIMILAR_CELLS), n = stride_count(rows, every);
    double end = (double)(first + rows) - 0.5;
    float *cells = malloc((size_t)(n * n) * sizeof *cells);
    for (int64_t i = 0; cells && i < n * n; i++)
        cells[i] = (float)plot_cosine(table, dim, i / n * every, i % n * every);
    gnuplot_panel(s, 0.64, 0.90, 0.08, 0.44);
    fprintf(s,
            "set colorbox\nset offsets 0, 0, 0, 0\nset xlabel 'position'\nset ylabel "
            "'position'\nset cblabel 'cosine similarity' offset 1.5,0\nset xtics autofreq\nset "
            "ytics autofreq\nunset key\nset xrange [%g:%g]\nset yrange [%g:%g]\n",
            (double)first - 0.5, end, (double)first - 0.5, end);
    if (cells)
        gnuplot_map_scaled(s, &(struct gnuplot_map){ cells, n, n, (double)first, (double)first,
                                                     (double)every, (double)every });
    free(cells);
}

static void curve_data(FILE *s, const struct plot_sinusoidal *p)
{
    fputs("$curves << END\n", s);
    for (int64_t t = 0; t < p->tokens; t++) {
        fprintf(s, "%lld", (long long)(p->first + t));
        for (int k = 0; k < p->n_curves; k++)
            fprintf(s, " %.6g", (double)p->table[t * p->dim + p->curve[k]]);
        fputc('\n', s);
    }
    fputs("END\n", s);
}

/* Room above the curves for their key. */
static double most_of(const struct plot_sinusoidal *p)
{
    double most = 0.0;
    for (int64_t t = 0; t < p->tokens; t++)
        for (int k = 0; k < p->n_curves; k++)
            most = fmax(most, fabs((double)p->table[t * p->dim + p->curve[k]]));
    return most > 0.0 ? ceil(most * 50.0) / 50.0 : 1.0; /* so that the tics are short numbers */
}

static void draw_curves(FILE *s, const struct plot_sinusoidal *p)
{
    double most = most_of(p);
    gnuplot_panel(s, 0.07, 0.53, 0.08, 0.44);
    fprintf(s,
            "unset colorbox\nset title 'Single dimensions along the positions, and their "
            "wavelengths in positions'\n"
            "set xlabel 'position'\nset ylabel 'value'\nset xrange [%lld:%lld]\nset yrange "
            "[%g:%g]\nset key top center maxrows %d samplen 2 width 1\nset ytics %g, %g, "
            "%g\nplot ",
            (long long)p->first, (long long)(p->first + p->tokens - 1), -1.08 * most,
            (p->n_curves > 4 ? 1.75 : 1.4) * most, p->n_curves > 4 ? 4 : 2, -most, 0.5 * most,
            most);
    for (int k = 0; k < p->n_curves; k++) {
        fprintf(s, "%s$curves using 1:%d with lines lw 2 lc rgb '%s' title 'dimension %lld",
                k ? ", " : "", k + 2, line_colors[k], (long long)p->curve[k]);
        if (p->wavelength[k] > 0.0)
            fprintf(s, ": %.4g", p->wavelength[k]);
        fputc('\'', s);
    }
    fputc('\n', s);
}

int plot_sinusoidal(const struct plot_sinusoidal *plot, const struct plot_target *target,
                    char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1500, 1200, error);
    if (!s)
        return -1;
    char title[512];
    curve_data(s, plot);
    snprintf(title, sizeof title,
             "Sinusoidal encoding, %lld positions from %lld, %lld dimensions",
             (long long)plot->tokens, (long long)plot->first, (long long)plot->dim);
    gnuplot_title(s, "multiplot title", title, plot->caption);
    fputs("set title 'Encoding: value of each dimension at each position'\n", s);
    plot_table_map(s, plot->table, plot->tokens, plot->dim, plot->first);
    if (plot->n_curves > 0)
        draw_curves(s, plot);
    fputs("set title 'Cosine similarity of positions'\n", s);
    plot_similarity_map(s, plot->table, plot->tokens, plot->dim, plot->first);
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

/* Of curves that are of no backend: colours that none of them has. */
static const char *const common_colors[] = { "#009999", "#D4213D", "#7B5FD9", "#8A8A00",
                                             "#000000", "#6E6E6E", "#B5651D", "#3D7A00" };
enum { N_COMMON_COLORS = sizeof common_colors / sizeof *common_colors };

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
    size_t of_none = 0;
    for (size_t c = 0; c < n; c++) {
        fprintf(s,
                "%s$curve%zu using 1:2 with linespoints lw 2 dt %s pt %d ps 0.7 pointinterval "
                "-%zu lc rgb '%s' title ",
                c ? ", " : "", c, dashes[dash_of(curves, c) % N_DASHES], 4 + (int)c, 10 + 3 * c,
                curves[c].backend ? backend_color(NULL, curves[c].backend)
                                  : common_colors[of_none++ % N_COMMON_COLORS]);
        gnuplot_string(s, curves[c].label);
    }
    fputc('\n', s);
    return gnuplot_end(s, target, error);
}
