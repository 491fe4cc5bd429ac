/* Values of fields that are no number: lists of positions, sections, frequencies; strides. */
#include "problems.h"

#include <math.h>
#include <stdlib.h>

/* ---- Names of classes ---- */

enum { CONSECUTIVE, SCATTERED, FALLING, ALIKE };
enum { DENSE, GAPS, BACKWARD, REPEATED, OVERLAPPING, SWAPPED, OUTPUT_SWAPPED = REPEATED };
enum { SPREAD = 1, APART = 3, UNSAID };

static const char *const of_positions[] = { "consecutive", "scattered", "falling", "alike",
                                            NULL };
static const char *const of_sections[] = { "none", "one", "two", "three", NULL };
static const char *const of_pairs[] = { "none", "given", NULL };
static const char *const of_inputs[] = { "dense",       "gaps",    "backward", "repeated",
                                         "overlapping", "swapped", NULL };
static const char *const of_rows[] = { "dense",    "gaps",        "backward",
                                       "repeated", "overlapping", NULL };
static const char *const of_outputs[] = { "dense", "gaps", "backward", "swapped", NULL };
static const char *const of_output_rows[] = { "dense", "gaps", "backward", NULL };
static const char *const of_tokens[] = {
    "dense", "spread", "backward", "apart", "unsaid", NULL
};

const char *const *layout_classes(const struct field *field, const struct tensor_row *row)
{
    if (field->list == LIST_STRIDES)
        return row->form == FORM_POSITIONS ? of_tokens
               : row->role == ROLE_OUTPUT ? (tensor_dims(row) < 3 ? of_output_rows : of_outputs)
               : tensor_dims(row) < 3     ? of_rows
                                          : of_inputs;
    return field->list == LIST_POSITIONS  ? of_positions
           : field->list == LIST_SECTIONS ? of_sections
                                          : of_pairs;
}

/* ---- Lists ---- */

static bool set_list(const struct factor *f, struct problem *p, const void *list)
{
    memcpy((char *)p + f->field.offset, &list, sizeof list);
    return true;
}

/* Positions near the first one, or rows that the table has. */
static bool draw_positions(const struct factor *f, int c, struct problem *p, struct draws *d,
                           struct arena *arena)
{
    const int64_t far = p->batch_shift * (p->batch - 1), reach = INT64_C(2147400000);
    int64_t least = p->first - 1000 > -reach ? p->first - 1000 : -reach,
            most = p->first + 1000 < reach ? p->first + 1000 : reach;
    if (p->position_kind == POSENC_OFFSET || p->tokens < 1 || c == CONSECUTIVE)
        return c == CONSECUTIVE;
    int64_t *list = arena_get(arena, (size_t)p->tokens * sizeof *list);
    if (!list)
        return false;
    if (!kernel_has_freqs(p->kernel)) {
        least = far < 0 ? -far : 0;
        most = p->rows - 1 - (far > 0 ? far : 0);
        most = most > least + 2 ? most : least + 2;
    }
    const int64_t two[] = { draw_between(d, least, most), draw_between(d, least, most) };
    for (int64_t t = 0; t < p->tokens; t++)
        list[t] = c == FALLING ? least + p->tokens - 1 - t
                  : c == ALIKE ? two[draw_one_in(d, 2)]
                               : draw_between(d, least, most);
    return set_list(f, p, list);
}

/* Shares all pairs among c axes. */
static bool draw_sections(int c, struct problem *p, struct draws *d)
{
    int64_t left = p->freqs.dim / 2;
    if (left < c)
        return false;
    for (int i = 0; i < c; i++) {
        const int64_t n = i == c - 1 ? left : draw_between(d, 1, left - (c - 1 - i));
        p->freqs.mrope_section[i] = n;
        left -= n;
    }
    return true;
}

/* Factors of LongRoPE, or frequencies of which some are 0: pairs that never rotate. */
static bool draw_pairs(const struct factor *f, int c, struct problem *p, struct draws *d,
                       struct arena *arena)
{
    const bool factors = f->field.list == LIST_FACTORS;
    const int64_t n = (p->freqs.dim + 1) / 2;
    if (c == 0)
        return true;
    if (p->freqs.scaling != (factors ? POSENC_SCALING_LONGROPE : POSENC_SCALING_NONE))
        return false;
    double *list = arena_get(arena, (size_t)n * sizeof *list);
    for (int64_t i = 0; list && i < n; i++)
        list[i] = factors             ? (double)draw_between(d, 20, 800) / 64.0
                  : draw_one_in(d, 8) ? 0.0
                                      : ldexp((double)draw_between(d, 1024, 2047),
                                              -(int)draw_between(d, 10, 30));
    return list && set_list(f, p, list);
}

/* ---- Strides of tensors ---- */

/* The dimensions of a tensor but the last, which is always dense. */
struct outer {
    int n;
    int64_t width, size[MOST_STRIDES];
};

static struct outer outer_of(const struct problem *p, const struct tensor_row *row)
{
    struct outer outer = { .n = tensor_dims(row) - 1 };
    for (int i = 0; i < outer.n; i++)
        outer.size[i] = problem_extent(p, row->dims[i]);
    outer.width = problem_extent(p, row->dims[outer.n]);
    return outer;
}

/* Sets each stride past everything within it, dimensions in `order` from the innermost out.  Gaps
 * are a few elements; one in a tensor may be wide, as in a part of a larger tensor. */
static void lay_out(const struct outer *outer, const int *order, bool gaps, struct draws *d,
                    int64_t stride[MOST_STRIDES])
{
    const int wide = (int)draw_between(d, 0, 2 * outer->n);
    int64_t extent = outer->width > 0 ? outer->width : 1;
    for (int k = 0; k < outer->n; k++) {
        const int64_t n = outer->size[order[k]], gap = draw_between(d, 1, 7);
        stride[order[k]] = extent + (!gaps ? 0 : k == wide ? 2 * extent : gap);
        extent += n > 0 ? (n - 1) * stride[order[k]] : 0;
    }
}

/* Multiplies some strides, one of a dimension longer than 1 among them if there is one. */
static void multiply_some(const struct outer *outer, int64_t times, struct draws *d,
                          int64_t stride[MOST_STRIDES])
{
    const int from = (int)draw_between(d, 0, outer->n - 1);
    bool done = false;
    for (int k = 0; k < outer->n; k++) {
        const int i = (from + k) % outer->n;
        if ((!done && outer->size[i] > 1) || draw_one_in(d, 3))
            stride[i] *= times;
        done = done || outer->size[i] > 1;
    }
}

static bool draw_strides(const struct factor *f, int c, struct problem *p, struct draws *d)
{
    const struct outer outer = outer_of(p, f->row);
    struct tensor_layout *layout = &p->layouts[f->row - signature_of(p->kernel)->tensors];
    int order[MOST_STRIDES] = { outer.n - 1, outer.n - 2, outer.n - 3 };
    bool longer = false;
    if (f->row->role == ROLE_OUTPUT && c == OUTPUT_SWAPPED)
        c = SWAPPED;
    for (int i = 0; i < outer.n; i++)
        longer = longer || outer.size[i] > 1;
    if (c == DENSE)
        return true;
    if (outer.n < (c == SWAPPED ? 2 : 1) || !longer)
        return false; /* no stride counts */
    if (c == SWAPPED) {
        const int at = (int)draw_between(d, 1, outer.n - 1), kept = order[0];
        order[0] = order[at];
        order[at] = kept;
    }
    layout->n_strides = outer.n;
    lay_out(&outer, order, c == GAPS || draw_one_in(d, 4), d, layout->stride);
    if (c == BACKWARD || c == REPEATED)
        multiply_some(&outer, c == BACKWARD ? -1 : 0, d, layout->stride);
    for (int i = 0; i < outer.n && c == OVERLAPPING; i++)
        layout->stride[i] = draw_between(d, 1, outer.width > 1 ? outer.width - 1 : 1);
    return true;
}

/* ---- Strides of positions ---- */

/* By batch, token and axis.  Batches share positions unless they have a shift or lie apart; a stride
 * of tokens that is not given is 0 in the call. */
static bool draw_token_strides(const struct factor *f, int c, struct problem *p,
                               struct draws *d)
{
    struct tensor_layout *layout = &p->layouts[f->row - signature_of(p->kernel)->tensors];
    const bool own = p->batch_shift != 0 || c == APART;
    const int64_t step = c == SPREAD     ? draw_between(d, 2, 5)
                         : c == BACKWARD ? -draw_between(d, 1, 2)
                                         : 1;
    if (c == DENSE)
        return true;
    if (p->position_kind == POSENC_OFFSET || p->tokens < 2 || (c == APART && p->batch < 2))
        return false;
    const int64_t batch = p->tokens * llabs(step) + draw_between(d, 0, 3);
    layout->n_strides = 3;
    layout->stride[0] = own ? batch : 0;
    layout->stride[1] = c == UNSAID ? 0 : step;
    layout->stride[2] = problem_axes(p) > 1 ? (own ? p->batch : 1) * batch : 0;
    if (c == BACKWARD && draw_one_in(d, 2))
        layout->stride[0] = -layout->stride[0];
    return true;
}

bool layout_draw(const struct factor *f, int c, struct problem *p, struct draws *d,
                 struct arena *arena)
{
    return f->kind == FACTOR_STRIDES
               ? (f->row->form == FORM_POSITIONS ? draw_token_strides(f, c, p, d)
                                                 : draw_strides(f, c, p, d))
           : f->field.list == LIST_POSITIONS ? draw_positions(f, c, p, d, arena)
           : f->field.list == LIST_SECTIONS  ? draw_sections(c, p, d)
                                             : draw_pairs(f, c, p, d, arena);
}
