/*
 * Parses --positions and --grid: positions or times of the rows of a table (see table.h).
 *
 * Coordinates of a picture are divided as DETR does it (Carion et al. 2005.12872; models/position_encoding.py): y /
 * (y_last + 1e-6) * scale, counted from 1, each step in f32.
 */
#define _POSIX_C_SOURCE 200809L
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 16, PIECE_BYTES = 80, MOST_ROWS = 1 << 29 };
static const int64_t position_max = 2147483647;
static const double time_max = 2147483520.0; /* the last f32 below 2^31 */

/* ---- Lists: numbers and ranges A..B between commas; ranges of times are A..B:STEP ---- */

struct number_range {
    double from, to, step;
};

static bool read_position(const char *text, bool is_time, double *position)
{
    int64_t whole;
    if (is_time)
        return parse_real(text, position) && fabs(*position) <= time_max;
    if (!parse_integer(text, -position_max, position_max, &whole))
        return false;
    *position = (double)whole;
    return true;
}

/* Parses the piece at *at, and advances *at to the next piece or NULL. */
static bool read_piece(const char **at, bool is_time, char text[PIECE_BYTES],
                       struct number_range *range)
{
    const size_t length = strcspn(*at, ",");
    char piece[PIECE_BYTES];
    snprintf(text, PIECE_BYTES, "%.*s", (int)(length < PIECE_BYTES ? length : PIECE_BYTES - 1),
             *at);
    memcpy(piece, text, sizeof piece);
    *at = (*at)[length] == '\0' ? NULL : *at + length + 1;
    char *dots = strstr(piece, ".."), *to = dots && dots[2] != '.' ? dots + 2 : NULL;
    char *colon = to && is_time ? strchr(to, ':') : NULL;
    if (to)
        *dots = '\0';
    if (colon)
        *colon = '\0';
    range->step = 1.0;
    return read_position(piece, is_time, &range->from) &&
           read_position(to ? to : piece, is_time, &range->to) && range->from <= range->to &&
           (!colon || (parse_real(colon + 1, &range->step) && range->step > 0.0));
}

/* Returns the number of rows of a range. B is included even if (B - A) / STEP is slightly below an integer. */
static int64_t range_rows(const struct number_range *range)
{
    return (int64_t)floor(fmin((range->to - range->from) / range->step, 0x1p53) + 1e-6) + 1;
}

/* Returns the number of rows of a list, or -1 and the malformed piece. Stores the rows if the table has memory. */
static int64_t expand_list(const char *list, bool is_time, struct number_table *table,
                           char bad[PIECE_BYTES])
{
    struct number_range range;
    int64_t n = 0;
    for (const char *at = list; at;) {
        if (!read_piece(&at, is_time, bad, &range))
            return -1;
        const int64_t rows = range_rows(&range);
        for (int64_t i = 0; i < rows && table->positions; i++) {
            const double position = fmin(range.from + (double)i * range.step, range.to);
            table->positions[n + i] = is_time ? (double)(float)position : floor(position);
        }
        n += rows < MOST_ROWS ? rows : MOST_ROWS + 1;
        if (n > MOST_ROWS)
            return n;
    }
    return n;
}

static void allocate_rows(const char *option, int64_t n, bool are_times,
                          struct number_table *table)
{
    if (n > MOST_ROWS)
        cli_reject(option, NULL, "too many rows: expected at most %d", MOST_ROWS);
    table->rows = n;
    table->are_times = are_times;
    table->positions = cli_allocate((size_t)(n * table->n_axes), sizeof *table->positions);
}

static void set_listed_rows(const struct cli *cli, struct problem *problem,
                            struct number_table *table)
{
    /* A range has two dots in a row, a fraction has one. */
    bool is_time =
        problem->position_kind == POSENC_POSITIONS_F32 || strchr(cli->positions, ':');
    for (const char *dot = strchr(cli->positions, '.'); dot; dot = strchr(dot, '.')) {
        const size_t dots = strspn(dot, ".");
        is_time |= dots == 1;
        dot += dots;
    }
    char bad[PIECE_BYTES];
    if (problem->tokens > 0 || problem->first != 0)
        cli_reject("--positions", NULL,
                   "has no effect with tokens, positions or position_offset in the problem");
    table->n_axes = 1;
    const int64_t n = expand_list(cli->positions, is_time, table, bad);
    if (n < 0)
        cli_reject(
            "--positions", bad, "expected %s, and ranges %s with A <= B%s, separated by commas",
            is_time ? "numbers between -2^31 and 2^31"
                    : "integers from -2147483647 to 2147483647",
            is_time ? "A..B or A..B:STEP" : "A..B", is_time ? " and a step above 0" : "");
    allocate_rows("--positions", n, is_time, table);
    expand_list(cli->positions, is_time, table, bad);
    problem->tokens = n;
}

/* ---- Pictures, row by row ---- */

struct grid {
    int64_t width;
    bool column_first; /* columns are the axis before rows */
    double scale;      /* 0: coordinates are whole numbers */
};

/* Reads WIDTH[,rows|columns][,SCALE]. */
static struct grid read_grid(const struct cli *cli, bool column_first)
{
    char text[PIECE_BYTES];
    const size_t length = strlen(cli->grid);
    bool is_valid = length > 0 && length < sizeof text && cli->grid[length - 1] != ',';
    snprintf(text, sizeof text, "%s", cli->grid);
    char *remaining = text, *width = notation_cut_text(&remaining, ','),
         *next = notation_cut_text(&remaining, ',');
    struct grid grid = { .column_first = column_first };
    is_valid = is_valid && width && parse_integer(width, 1, position_max, &grid.width);
    if (next && (strcmp(next, "rows") == 0 || strcmp(next, "columns") == 0)) {
        grid.column_first = strcmp(next, "columns") == 0;
        next = notation_cut_text(&remaining, ',');
    }
    if (next)
        is_valid = is_valid && parse_real(next, &grid.scale) && grid.scale > 0.0;
    if (!is_valid || remaining)
        cli_reject("--grid", cli->grid,
                   "expected WIDTH[,rows|columns][,SCALE]: a width from 1 to 2147483647, a "
                   "scale above 0");
    return grid;
}

/* Returns the coordinate of token t on an axis, and the number of coordinates. The last two axes are rows and columns;
 * on another axis the coordinate is 0. */
static int64_t coordinate(const struct grid *grid, int n_axes, int axis, int64_t t, int64_t n,
                          int64_t *of)
{
    const int64_t width = grid->width < n ? grid->width : n;
    const int column = n_axes - 1 - (n_axes > 1 && grid->column_first),
              row = 2 * n_axes - 3 - column;
    *of = 1;
    if (axis == column)
        *of = width;
    if (axis == row)
        *of = (n - 1) / width + 1;
    if (axis == column)
        return t % width;
    return axis == row ? t / width : 0;
}

static void set_grid_rows(const struct cli *cli, struct model_problem *input,
                          struct number_table *table)
{
    struct problem *problem = &input->problem;
    const struct grid grid = read_grid(cli, input->column_first);
    int64_t n = problem->tokens > 0 ? problem->tokens : DEFAULT_TOKENS, of;
    if (problem->freqs.mrope_section[0] == 0)
        cli_reject("--grid", NULL, "has no effect here: it needs mrope_section");
    if (grid.scale > 0.0 && problem->first != 0)
        cli_reject("--grid", cli->grid,
                   "counts from 1: expected no position_offset in the problem");
    for (table->n_axes = 1; table->n_axes < 3; table->n_axes++)
        if (problem->freqs.mrope_section[table->n_axes] == 0)
            break;
    allocate_rows("--grid", n, grid.scale > 0.0, table);
    for (int64_t i = 0; i < n * table->n_axes; i++) {
        const int64_t at = coordinate(&grid, table->n_axes, (int)(i / n), i % n, n, &of);
        if (problem->first > position_max - at)
            cli_reject("--grid", cli->grid, "expected positions up to %lld",
                       (long long)position_max);
        const float scaled = (float)(at + 1) / ((float)of + 1e-6f) * (float)grid.scale;
        table->positions[i] = grid.scale > 0.0 ? (double)scaled : (double)(problem->first + at);
    }
    problem->tokens = n;
}

void table_set_rows(const struct cli *cli, struct model_problem *input,
                    struct number_table *table)
{
    struct problem *problem = &input->problem;
    const bool has_freqs = kernel_has_freqs(problem->kernel);
    if ((cli->positions || cli->grid) && !has_freqs)
        cli_reject(cli->positions ? "--positions" : "--grid", NULL,
                   "has no effect here: %s is not computed from positions",
                   posenc_kernel_name(problem->kernel));
    if (cli->positions && cli->grid)
        cli_reject("--positions", cli->positions, "expected without --grid");
    if (cli->positions)
        set_listed_rows(cli, problem, table);
    else if (cli->grid)
        set_grid_rows(cli, input, table);
    else if (has_freqs && problem->tokens == 0)
        problem->tokens = DEFAULT_TOKENS;
}

void table_set_seq_len(const struct cli *cli, int64_t largest, struct posenc_freqs_spec *freqs)
{
    const bool longrope = freqs->scaling == POSENC_SCALING_LONGROPE;
    const double trained =
        longrope ? freqs->original_max_position_embeddings : freqs->max_position_embeddings;
    if (cli->model.n == 0 || freqs->seq_len != 0 || largest < 0 ||
        (!longrope && freqs->scaling != POSENC_SCALING_DYNAMIC))
        return;
    freqs->seq_len = largest + 1;
    if (trained > 0.0 && (double)freqs->seq_len > trained)
        cli_print_note(
            "posenc %s: %s of %lld tokens, the largest position and 1, where %.10g were "
            "trained on; --problem 'rope_table seq_len=N' takes another length\n",
            cli->command, longrope ? "longrope: the long factors," : "dynamic: the base",
            (long long)freqs->seq_len, trained);
}
