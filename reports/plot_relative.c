/*
 * Pictures of what depends on the distance: biases, xPos, the indices of DeBERTa and Swin.
 */
#define _POSIX_C_SOURCE 200809L
#include "gnuplot.h"

#include <math.h>

/* ---- bias ---- */

static void bias_data(FILE *s, const struct plot_bias *bias)
{
    fputs("$bias << END\n", s);
    for (int64_t d = 0; d < bias->distances; d++) {
        fprintf(s, "%lld", (long long)d);
        for (int c = 0; c < BIAS_CURVES; c++)
            fprintf(s, " %.6g", (double)bias->bias[c * bias->distances + d]);
        fputc('\n', s);
    }
    fputs("END\n", s);
}

static void bias_curves(FILE *s, const struct plot_bias *bias)
{
    fputs("plot ", s);
    for (int c = 0; c < BIAS_CURVES; c++) {
        bool steps = c == BIAS_CURVES - 1;
        fprintf(s, "%s$bias using 1:%d with %s lw 2 dt %d lc rgb '%s' title ", c ? ", " : "",
                c + 2, steps ? "steps" : "lines", c + 1, plot_colors[c]);
        gnuplot_string(s, bias->names[c]);
    }
    fputc('\n', s);
}

int plot_bias(const struct plot_bias *bias, const struct plot_target *target,
              char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1400, 680, error);
    if (!s)
        return -1;
    bias_data(s, bias);
    gnuplot_title(s, "multiplot title", "Biases that depend on the distance alone",
                  bias->caption);
    gnuplot_panel(s, 0.07, 0.50, 0.11, 0.82);
    fprintf(s,
            "set title 'by distance: ALiBi is a straight line'\nset xlabel "
            "'distance, in tokens'\nset ylabel 'bias (added before the softmax)'\nset xrange "
            "[0:%lld]\nset key bottom left Left reverse samplen 4\n",
            (long long)(bias->distances - 1));
    bias_curves(s, bias);
    gnuplot_panel(s, 0.56, 0.98, 0.11, 0.82);
    fprintf(s,
            "set title 'the distance on a logarithmic axis: KERPLE is one'\nset ylabel ''\n"
            "set logscale x 2\nset xrange [1:%lld]\nunset key\n",
            (long long)(bias->distances > 2 ? bias->distances - 1 : 2));
    bias_curves(s, bias);
    fputs("unset multiplot\n", s);
    return gnuplot_end(s, target, error);
}

/* ---- xpos ---- */

int plot_xpos(const struct plot_xpos *xpos, const struct plot_target *target,
              char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1400, 680, error);
    if (!s)
        return -1;
    fputs("$products << END\n", s);
    for (int64_t o = 0; o < xpos->n_offsets; o++)
        fprintf(s, "%lld %.6g %.6g\n", (long long)o, xpos->product[0][o], xpos->product[1][o]);
    fputs("END\n", s);
    gnuplot_title(s, "multiplot title",
                  "xPos: a rotation whose fast pairs fade with the offset", xpos->caption);
    gnuplot_panel(s, 0.07, 0.56, 0.11, 0.82);
    fprintf(s,
            "set title 'product of a query and a key of ones, divided by head\\_dim'\nset "
            "xlabel 'offset m - n, in positions'\nset ylabel 'product'\nset xrange [0:%lld]\n"
            "set key top right Left reverse samplen 4\n"
            "plot $products using 1:2 with lines lw 1.5 lc rgb '%s' title 'RoPE', "
            "$products using 1:3 with lines lw 2.5 lc rgb '%s' title 'xPos'\n",
            (long long)(xpos->n_offsets - 1), plot_colors[5], plot_colors[1]);
    gnuplot_panel(s, 0.65, 0.98, 0.11, 0.82);
    fprintf(
        s,
        "set title 'factor of some pairs'\nset ylabel 'factor (logarithmic)'\nset logscale y\n"
        "set key bottom left Left reverse samplen 4\nset samples 400\nplot ");
    for (int k = 0; k < XPOS_PAIRS; k++)
        fprintf(s, "%s%.17g**(x/%.17g) with lines lw 2 dt %d lc rgb '%s' title 'pair %lld'",
                k ? ", " : "", xpos->zeta[k], xpos->scale_base, k + 1, plot_colors[k],
                (long long)xpos->pair[k]);
    fputs("\nunset multiplot\n", s);
    return gnuplot_end(s, target, error);
}

/* ---- deberta ---- */

int plot_deberta(const struct plot_deberta *deberta, const struct plot_target *target,
                 char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1400, 680, error);
    if (!s)
        return -1;
    long long reach = (long long)deberta->reach, max = (long long)deberta->max_distance;
    double middle = (double)deberta->columns / 2.0;
    fputs("$columns << END\n", s);
    for (int64_t i = 0; i <= 2 * deberta->reach; i++)
        fprintf(s, "%lld %g\n", (long long)(i - deberta->reach), (double)deberta->column[i]);
    fputs("END\n", s);
    gnuplot_title(s, "multiplot title",
                  "DeBERTa: which column of its terms a query and a key take, by distance",
                  deberta->caption);
    gnuplot_panel(s, 0.07, 0.50, 0.11, 0.82);
    fprintf(
        s,
        "set title 'column by distance'\nset xlabel 'query position - key position'\nset "
        "ylabel 'column'\nset xrange [%lld:%lld]\nset yrange [%g:%g]\nunset key\n"
        "do for [x in '-%lld %lld'] { set arrow from x, graph 0 to x, graph 1 nohead dt 3 lc "
        "rgb '#888888' }\n"
        "set label 'max\\_distance' at -%lld, graph 0.97 offset 0.5,0 textcolor rgb "
        "'#666666'\n"
        "plot $columns using 1:2 with histeps lw 2 lc rgb '%s'\n",
        -reach, reach, -0.03 * 2.0 * middle, 1.06 * 2.0 * middle, max, max, max,
        plot_colors[0]);
    gnuplot_panel(s, 0.56, 0.98, 0.11, 0.82);
    fprintf(
        s,
        "unset arrow\nunset label\nset title 'keys before the query: the distance on a "
        "logarithmic axis'\nset xlabel 'distance, in tokens'\nset ylabel 'column - middle'\n"
        "set logscale x 2\nset xrange [1:%lld]\nset yrange [0:%g]\nset key top left Left "
        "reverse samplen 3\nset samples 800\n"
        "plot x with lines lw 1.5 dt 2 lc rgb '#999999' title 'a column for each distance', "
        "$columns using ($1 > 0 ? $1 : NaN):($2 - %g) with steps lw 2 lc rgb '%s' title "
        "'bucket'\nunset multiplot\n",
        reach, 1.15 * middle, middle, plot_colors[0]);
    return gnuplot_end(s, target, error);
}

/* ---- swin ---- */

/* The rows that one query sees, as numbers on the window. */
static void swin_from(FILE *s, const struct plot_swin *swin, int64_t query)
{
    int64_t n = swin->height * swin->width;
    fprintf(s, "$from%lld << END\n", (long long)query);
    for (int64_t j = 0; j < n; j++)
        fprintf(s, "%lld %lld %g\n", (long long)(j % swin->width), (long long)(j / swin->width),
                (double)swin->row[query * n + j]);
    fputs("END\n", s);
}

static void draw_from(FILE *s, const struct plot_swin *swin, int64_t query, const char *where)
{
    const int64_t n = swin->height * swin->width;
    const struct gnuplot_map map = {
        swin->row + query * n, swin->height, swin->width, 0.0, 0.0, 1.0, 1.0
    };
    char more[400];
    snprintf(more, sizeof more,
             ", $from%lld using 1:2:(sprintf('%%d', $3)) with labels font ',%d' textcolor rgb "
             "'white', '+' using (%lld):(%lld) every ::0::0 with points pt 4 ps 4 lw 2 lc rgb "
             "'red'",
             (long long)query, swin->width > 10 ? 7 : 9, (long long)(query % swin->width),
             (long long)(query / swin->width));
    fprintf(s,
            "set title 'seen from the query %s'\nset xrange [-0.5:%g]\nset yrange [%g:-0.5]\n"
            "set xtics 1\nset ytics 1\n",
            where, (double)swin->width - 0.5, (double)swin->height - 0.5);
    gnuplot_map(s, &map, more);
}

int plot_swin(const struct plot_swin *swin, const struct plot_target *target,
              char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1400, 800, error);
    if (!s)
        return -1;
    int64_t n = swin->height * swin->width;
    int64_t middle = swin->height / 2 * swin->width + swin->width / 2;
    swin_from(s, swin, 0);
    swin_from(s, swin, middle);
    gnuplot_viridis_lines(s);
    gnuplot_title(s, "multiplot title",
                  "Swin: the row of the bias table for each query and key of a window",
                  swin->caption);
    gnuplot_panel(s, 0.06, 0.50, 0.09, 0.84);
    fprintf(
        s,
        "unset key\nset size ratio 1\nset cbrange [0:%lld]\nunset colorbox\nset title 'all "
        "queries and keys, row by row of the window'\nset xlabel 'key'\nset ylabel 'query'\n"
        "set xrange [-0.5:%g]\nset yrange [%g:-0.5]\nset xtics %lld\nset ytics %lld\n",
        (long long)(swin->rows - 1), (double)n - 0.5, (double)n - 0.5, (long long)swin->width,
        (long long)swin->width);
    gnuplot_map(s, &(struct gnuplot_map){ swin->row, n, n, 0.0, 0.0, 1.0, 1.0 }, "");
    fputs("set size noratio\nset xlabel ''\nset ylabel ''\n", s);
    gnuplot_panel(s, 0.60, 0.90, 0.53, 0.84);
    fputs("set colorbox user origin 0.925,0.09 size 0.015,0.75\nset cblabel 'row of the table' "
          "offset 0.5,0\n",
          s);
    draw_from(s, swin, 0, "at the top left");
    fputs("unset colorbox\n", s);
    gnuplot_panel(s, 0.60, 0.90, 0.09, 0.40);
    draw_from(s, swin, middle, "in the middle");
    fputs("unset multiplot\n", s);
    return gnuplot_end(s, target, error);
}
