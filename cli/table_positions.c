/*
 * The command line -> where the rows of a table are: consecutive positions, a list of them, a
 * picture's rows and columns, or times with fractions.
 *
 * A picture's coordinates are divided as DETR does it (Carion et al. 2005.12872;
 * models/position_encoding.py): y / (y_last + 1e-6) * scale, counted from 1, each step in f32.
 */
#define _POSIX_C_SOURCE 200809L
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 16 };
static const int64_t position_max = 2147483647;
static const double time_max = 2147483520.0; /* the last f32 below 2^31 */

/* ---- lists: pieces between commas, each one number or a range A..B ---- */

struct piece {
    char text[80];
    char *to; /* of a range: after the dots, in `text`; or NULL */
};

/* Cuts the piece at `at` off, and says where the next one begins: NULL after the last. */
static const char *next_piece(const char *at, struct piece *piece)
{
    size_t length = strcspn(at, ",");
    snprintf(piece->text, sizeof piece->text, "%.*s", (int)(length < 79 ? length : 79), at);
    char *dots = strstr(piece->text, "..");
    piece->to = dots && dots[2] != '.' ? dots + 2 : NULL;
    if (piece->to)
        *dots = '\0';
    return at[length] == '\0' ? NULL : at + length + 1;
}

static void mend(struct piece *piece) /* for a message */
{
    if (piece->to)
        piece->to[-2] = '.';
}

/* How many numbers the piece stands for, written to `out` where that is not NULL; 0: malformed.
 */
typedef int64_t (*expand_piece)(const struct piece *piece, void *out, int64_t at);

static int64_t expand_positions(const struct piece *piece, void *out, int64_t at)
{
    int64_t from, to, *positions = out;
    if (!parse_integer(piece->text, -position_max, position_max, &from) ||
        !parse_integer(piece->to ? piece->to : piece->text, -position_max, position_max, &to) ||
        from > to)
        return 0;
    for (int64_t p = from; p <= to && positions; p++)
        positions[at + p - from] = p;
    return to - from + 1;
}

static bool parse_time(const char *text, double *time)
{
    return parse_real(text, time) && fabs(*time) <= time_max;
}

/* "T", "A..B" or "A..B:STEP".  B is the last one also where the step is no binary fraction, and
 * (B - A)/STEP a little below a whole number. */
static int64_t expand_times(const struct piece *piece, void *out, int64_t at)
{
    double from, to, step = 1.0;
    float *times = out;
    char end[80];
    snprintf(end, sizeof end, "%s", piece->to ? piece->to : piece->text);
    char *colon = piece->to ? strchr(end, ':') : NULL;
    if (colon)
        *colon = '\0';
    if (!parse_time(piece->text, &from) || !parse_time(end, &to) || from > to ||
        (colon && !(parse_real(colon + 1, &step) && step > 0.0)))
        return 0;
    double steps = fmin((to - from) / step, 0x1p53); /* refused for its size */
    int64_t n = (int64_t)floor(steps + 1e-6) + 1;
    for (int64_t i = 0; i < n && times; i++)
        times[at + i] = (float)fmin(from + (double)i * step, to);
    return n;
}

/* All of them together; -1: a piece is malformed, and `bad` is that. */
static int64_t expand(const char *list, expand_piece each, void *out, struct piece *bad)
{
    int64_t n = 0;
    for (const char *at = list; at;) {
        at = next_piece(at, bad);
        int64_t more = each(bad, out, n);
        if (more == 0 || n > INT64_MAX / 2 - more) {
            mend(bad);
            return -1;
        }
        n += more;
    }
    return n;
}

/* ---- rows ---- */

static int refuse_size(const struct cli *cli, int64_t n, int64_t dim)
{
    char text[80];
    snprintf(text, sizeof text, "%lld rows of %lld numbers", (long long)n, (long long)dim);
    return cli_refuse(cli, "size", text, "expected at most %lld GiB in all",
                      (long long)(TABLE_BYTES >> 30));
}

/* Memory for n rows of `dim` numbers, and for their positions. */
static int allot(const struct cli *cli, int64_t n, int64_t dim, struct number_table *table)
{
    if (n > TABLE_BYTES / 4 / dim)
        return refuse_size(cli, n, dim);
    table->rows = n;
    void *memory = malloc((size_t)(n * table->n_axes) * sizeof(int64_t));
    if (!memory)
        return refuse_size(cli, n, dim);
    if (cli->times || !isnan(cli->grid_scale))
        table->times = memory;
    else
        table->positions = memory;
    return EXIT_FINE;
}

static int take_list(const struct cli *cli, int64_t dim, struct number_table *table)
{
    bool times = cli->times != NULL;
    const char *option = times ? "--times" : "--positions";
    const char *list = times ? cli->times : cli->positions;
    if (cli->tokens != INT64_MIN || cli->first != INT64_MIN || cli->grid != INT64_MIN ||
        (times && cli->positions)) {
        return cli_refuse(cli, option, list, "expected without --tokens, --first%s and --grid",
                          times ? ", --positions" : "");
    }
    expand_piece each = times ? expand_times : expand_positions;
    struct piece bad;
    int64_t n = expand(list, each, NULL, &bad);
    if (n < 0 && times)
        return cli_refuse(
            cli, option, bad.text,
            "expected numbers between -2^31 and 2^31 and ranges A..B or A..B:STEP "
            "with A <= B and a step above 0, separated by commas");
    if (n < 0)
        return cli_refuse(cli, option, bad.text,
                          "expected integers from %lld to %lld and ranges A..B with A <= B, "
                          "separated by commas",
                          (long long)-position_max, (long long)position_max);
    if (allot(cli, n, dim, table) != EXIT_FINE)
        return EXIT_USAGE;
    expand(list, each, times ? (void *)table->times : (void *)table->positions, &bad);
    return EXIT_FINE;
}

/* The coordinate of token t on an axis, in a picture of that width; and how many there are. */
static int64_t coordinate(const struct cli *cli, int n_axes, int axis, int64_t t, int64_t width,
                          int64_t n, int64_t *of)
{
    int column = n_axes - 1 - (n_axes > 1 && cli->grid_order == COLUMNS_FIRST);
    int row = 2 * n_axes - 3 - column; /* the other one of the last two */
    *of = axis == column ? width : axis == row ? (n - 1) / width + 1 : 1;
    return axis == column ? t % width : axis == row ? t / width : 0;
}

static void place(const struct cli *cli, int64_t first, int64_t width,
                  struct number_table *table)
{
    int64_t n = table->rows, of;
    for (int axis = 0; axis < table->n_axes; axis++) {
        for (int64_t t = 0; t < n; t++) {
            int64_t at = coordinate(cli, table->n_axes, axis, t, width, n, &of);
            if (table->times) {
                table->times[axis * n + t] =
                    (float)(at + 1) / ((float)of + 1e-6f) * (float)cli->grid_scale;
            } else {
                table->positions[axis * n + t] = first + at;
            }
        }
    }
}

/* Tokens in a row, or those of a picture, row by row: the last two axes are its rows and
 * columns, and another stays where it is. */
static int take_tokens(const struct cli *cli, int64_t dim, struct number_table *table)
{
    if (!isnan(cli->grid_scale) && cli->first != INT64_MIN)
        return cli_refuse(cli, "--first", NULL,
                          "has no effect here: --grid-scale counts from 1");
    int64_t first = cli->first != INT64_MIN ? cli->first : 0;
    int64_t n = cli->tokens != INT64_MIN ? cli->tokens : DEFAULT_TOKENS;
    int64_t width = cli->grid != INT64_MIN && cli->grid < n ? cli->grid : n;
    int64_t highest = (n - 1) / width;
    highest = highest > width - 1 ? highest : width - 1;
    if (first + highest > position_max) {
        char text[96];
        int at = snprintf(text, sizeof text, "%lld tokens from %lld", (long long)n,
                          (long long)first);
        if (cli->grid != INT64_MIN)
            snprintf(text + at, sizeof text - (size_t)at, " in rows of %lld", (long long)width);
        return cli_refuse(cli, "positions", text, "expected positions up to %lld",
                          (long long)position_max);
    }
    if (allot(cli, n, dim, table) != EXIT_FINE)
        return EXIT_USAGE;
    place(cli, first, width, table);
    return EXIT_FINE;
}

int table_positions(const struct cli *cli, int n_axes, int64_t dim, struct number_table *table)
{
    table->places = "position";
    table->n_axes = cli->grid != INT64_MIN ? n_axes : 1;
    return cli->positions || cli->times ? take_list(cli, dim, table)
                                        : take_tokens(cli, dim, table);
}
