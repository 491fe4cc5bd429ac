/*
 * A picture of errors against position.
 */
#define _POSIX_C_SOURCE 200809L
#include "colors.h"
#include "gnuplot.h"

#include <math.h>
#include <string.h>

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
