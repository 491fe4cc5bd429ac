/*
 * One picture: a script for gnuplot, its run, and the file it becomes.
 */
#ifndef POSENC_GNUPLOT_H
#define POSENC_GNUPLOT_H

#include "plot.h"

/* Colours that people with any colour vision tell apart (Okabe and Ito), as gnuplot
 * takes them. */
extern const char *const plot_colors[];
enum { PLOT_COLORS = 9 };

/* The script begun for a picture of that size in pixels; NULL with a message. */
FILE *gnuplot_begin(const struct plot_target *target, int width, int height,
                    char error[PLOT_ERROR]);
/* Runs it (the script is closed) and puts the picture in its place. */
int gnuplot_end(FILE *script, const struct plot_target *target, char error[PLOT_ERROR]);

/* A string of which gnuplot interprets nothing; as the label of a tic, which is a format. */
void gnuplot_string(FILE *script, const char *text);
void gnuplot_tic(FILE *script, const char *text);
/* Words within the quotes of a column of data. */
void gnuplot_words(FILE *script, const char *text);
/* set palette: viridis (van der Walt and Smith), from dark to bright, for lines on white without
 * its bright end. */
void gnuplot_viridis_lines(FILE *script);
/* Palette and range of a map's values: where some are below 0, colours diverge around a white 0 and
 * the range reaches as far on both sides; else viridis from `least` on. */
void gnuplot_scale(FILE *script, double least, double most);

/* A heat map: columns of a row to the right, rows upwards, cells[0] with its centre at (left,
 * bottom), each cell dx wide and dy high.  Nothing is drawn between cells. */
struct gnuplot_map {
    const float *cells;
    int64_t rows, columns;
    double left, bottom, dx, dy;
};
/* "plot" of it, and of what `more` says: ", $data with labels ..." or "". */
void gnuplot_map(FILE *script, const struct gnuplot_map *map, const char *more);
/* The same with its scale by the values. */
void gnuplot_map_scaled(FILE *script, const struct gnuplot_map *map);

/* "set title 'TITLE\nCAPTION'", or "multiplot title"; where on the screen the next panel goes.
 */
void gnuplot_title(FILE *script, const char *set, const char *first, const char *caption);
void gnuplot_panel(FILE *script, double left, double right, double bottom, double top);

/* Panels that tables share, across the top and at the bottom right: the values of `rows` rows from
 * the row `first` on, and how alike they are.  Their titles are set before. */
void plot_table_map(FILE *script, const float *table, int64_t rows, int64_t dim, int64_t first);
void plot_similarity_map(FILE *script, const float *table, int64_t rows, int64_t dim,
                         int64_t first);

/* Cosine of the angle between rows a and b of a table; 0 where one of them is 0. */
double plot_cosine(const float *table, int64_t dim, int64_t a, int64_t b);

#endif
