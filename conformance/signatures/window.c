/* window: a learned bias for each displacement in a window of an image (Swin, Liu et al. 2103.14030; BEiT, Bao et al.
 * 2106.08254). */
#include "shared.h"

/* Returns the number of rows that the index of a window uses; BEiT's class token has three of its own. */
static int64_t window_offsets(const struct problem *p)
{
    return (2 * p->window_height - 1) * (2 * p->window_width - 1) + (p->window_class ? 3 : 0);
}

/* Returns the number of rows of the table, which may be larger. A scattered index uses all of them. */
static int64_t table_rows(const struct problem *p)
{
    return p->distances > 0 ? p->distances : window_offsets(p);
}

static void derive_sizes(struct problem *p) { p->queries = p->keys = problem_window_size(p); }

static bool check_window(struct call *call)
{
    const struct problem *p = &call->problem;
    const int64_t least = p->scattered ? 1 : window_offsets(p);
    return call_check_range(call, POSENC_ERR_SHAPE, "window_height", p->window_height, 1,
                            256) &&
           call_check_range(call, POSENC_ERR_SHAPE, "window_width", p->window_width, 1, 256) &&
           (p->distances == 0 ||
            call_check_range(call, POSENC_ERR_SHAPE, "distances, rows of the table",
                             p->distances, least, INT32_MAX));
}

static bool fill_index(struct call *call, void *to, int64_t n)
{
    const struct problem *p = &call->problem;
    const struct implementation *by = call->implementation;
    const enum posenc_status status =
        p->window_class ? by->beit_index(p->window_height, p->window_width, to, &call->error)
                        : by->swin_index(p->window_height, p->window_width, to, &call->error);
    for (int64_t i = 0; i < n && p->scattered && status == POSENC_OK; i++)
        ((int32_t *)to)[i] = (int32_t)problem_scattered_index(p, i, table_rows(p));
    return status == POSENC_OK;
}

/* Returns the elements read by the index, which all batches share. */
static int64_t count_fetched(const struct call *call)
{
    const struct problem *p = &call->problem;
    return p->heads * p->queries * p->keys;
}

const struct signature signature_window = {
    BLANK(window),
    .tensors = { { OUT(window, out), SCORES },
                 { X(window), SCORES },
                 { TABLE(window, table), .dims = { DIM_ROW, DIM_HEAD } },
                 { INTEGERS(window, index), .dims = { DIM_QUERY, DIM_KEY },
                   .fill = fill_index } },
    .parameters = { PARAMETER(window, x_scale) },
    .rows = table_rows,
    .fields = "values_dtype heads x_scale window_height window_width window_class distances "
              "scattered recipe",
    .cuts = { DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_FETCH,
    .count_work = count_fetched,
    .derive = derive_sizes,
    .check = check_window,
};

/* ---- Expected rows ---- */

static void row_window(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const float *table = oracle->call->table;
    const int64_t query = r % width, head = r / width % problem->heads;
    for (int64_t j = 0; j < width; j++)
        want[j] = (double)table[oracle_window_row(problem, query, j) * problem->heads + head];
}

const struct oracle_functions oracle_window = { .row = row_window };
