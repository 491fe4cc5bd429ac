/*
 * Classes of what has no number: lists of positions, sections and frequencies, and the strides of
 * a tensor (see classes.h).
 */
#include "classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_named(const struct factor *factor, int c, const char *name)
{
    return strcmp(factor->classes[c].name, name) == 0;
}

static bool set_list(const struct factor *factor, struct problem *problem, const void *list)
{
    memcpy((char *)problem + factor->field.offset, &list, sizeof list);
    return true;
}

/* ---- Positions ---- */

/* From `least` to `most`: rows that there are, or around the first. */
static void positions_within(const struct problem *p, int64_t *least, int64_t *most)
{
    const int64_t far = p->batch_shift * (p->batch - 1), reach = INT64_C(2147400000);
    *least = p->first - 1000 > -reach ? p->first - 1000 : -reach;
    *most = p->first + 1000 < reach ? p->first + 1000 : reach;
    if (!kernel_has_freqs(p->kernel)) {
        *least = far < 0 ? -far : 0;
        *most = p->rows - 1 - (far > 0 ? far : 0);
        *most = *most > *least + 2 ? *most : *least + 2;
    }
}

static bool positions_draw(const struct factor *factor, int c, struct problem *p,
                           struct drawing *d)
{
    int64_t least, most;
    if (p->position_kind == POSENC_OFFSET || p->tokens < 1 ||
        is_named(factor, c, "consecutive"))
        return true;
    int64_t *list = arena_get(d->arena, (size_t)p->tokens * sizeof *list);
    if (!list)
        return false;
    positions_within(p, &least, &most);
    const int64_t two[] = { draw_between(d, least, most), draw_between(d, least, most) };
    for (int64_t t = 0; t < p->tokens; t++) {
        list[t] = draw_between(d, least, most);
        if (is_named(factor, c, "falling"))
            list[t] = least + p->tokens - 1 - t;
        if (is_named(factor, c, "alike"))
            list[t] = two[draw_coin(d)];
    }
    return set_list(factor, p, list);
}

static bool positions_have(const struct factor *factor, int c, const struct problem *p)
{
    const int64_t *list = p->positions;
    bool falling = true, rising = true, alike = true;
    if (!list || p->tokens < 2 || problem_axes(p) > 1)
        return !list && is_named(factor, c, "consecutive");
    for (int64_t t = 1; t < p->tokens; t++) {
        falling = falling && list[t] < list[t - 1];
        rising = rising && list[t] == list[t - 1] + 1;
        int64_t k = 0;
        while (k < t && list[k] != list[t])
            k++;
        alike = alike && (k < t || t == 1);
    }
    return falling                  ? is_named(factor, c, "falling")
           : rising                 ? is_named(factor, c, "consecutive")
           : alike && p->tokens > 2 ? is_named(factor, c, "alike")
                                    : is_named(factor, c, "scattered");
}

/* ---- Sections, factors, frequencies ---- */

static int sections_of(const struct factor *factor, int c)
{
    return is_named(factor, c, "three") ? 3
           : is_named(factor, c, "two") ? 2
                                        : is_named(factor, c, "one");
}

/* All pairs, in so many parts. */
static bool sections_draw(const struct factor *factor, int c, struct problem *p,
                          struct drawing *d)
{
    const int n = sections_of(factor, c);
    int64_t *section = p->freqs.mrope_section, left = p->freqs.dim / 2;
    if (left < n)
        return false;
    for (int i = 0; i < n; i++) {
        section[i] = i == n - 1 ? left : draw_between(d, 1, left - (n - 1 - i));
        left -= section[i];
    }
    return true;
}

static bool sections_have(const struct factor *factor, int c, const struct problem *p)
{
    int n = 0;
    while (n < N_SECTIONS && p->freqs.mrope_section[n] != 0)
        n++;
    return n == sections_of(factor, c);
}

/* One in eight frequencies is 0: a pair that does not turn. */
static bool pairs_draw(const struct factor *factor, int c, struct problem *p, struct drawing *d)
{
    const bool factors = factor->field.list == LIST_FACTORS;
    const int64_t n = (p->freqs.dim + 1) / 2;
    if (is_named(factor, c, "unsaid"))
        return true;
    if (p->freqs.scaling != (factors ? POSENC_SCALING_LONGROPE : POSENC_SCALING_NONE))
        return false;
    double *list = arena_get(d->arena, (size_t)n * sizeof *list);
    for (int64_t i = 0; list && i < n; i++)
        list[i] = factors                      ? (double)draw_between(d, 20, 800) / 64.0
                  : draw_between(d, 0, 7) == 0 ? 0.0
                                               : ldexp((double)draw_between(d, 1024, 2047),
                                                       -(int)draw_between(d, 10, 30));
    return list && set_list(factor, p, list);
}

bool list_draw(const struct factor *factor, int c, struct problem *problem,
               struct drawing *drawing)
{
    return factor->field.list == LIST_POSITIONS  ? positions_draw(factor, c, problem, drawing)
           : factor->field.list == LIST_SECTIONS ? sections_draw(factor, c, problem, drawing)
                                                 : pairs_draw(factor, c, problem, drawing);
}

bool list_has(const struct factor *factor, int c, const struct problem *problem)
{
    return factor->field.list == LIST_POSITIONS ? positions_have(factor, c, problem)
           : factor->field.list == LIST_SECTIONS
               ? sections_have(factor, c, problem)
               : (field_length(&factor->field, problem) == 0) == is_named(factor, c, "unsaid");
}

/* ---- Strides of tensors ---- */

/* Dimensions but the last, in the order of their strides. */
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

static void exchange(int *a, int *b)
{
    const int kept = *a;
    *a = *b;
    *b = kept;
}

/* Each stride past all that lies within; `order` from the innermost dimension out.  Gaps are of a
 * few elements, one of twice what lies within: a part of a wider tensor. */
static void lay_out(const struct outer *outer, const int *order, bool gaps, struct drawing *d,
                    int64_t stride[MOST_STRIDES])
{
    const int wide = (int)draw_between(d, 0, 2 * outer->n); /* or none */
    int64_t extent = outer->width > 0 ? outer->width : 1;
    for (int k = 0; k < outer->n; k++) {
        const int64_t n = outer->size[order[k]], gap = draw_between(d, 1, 7);
        stride[order[k]] = extent + (!gaps ? 0 : k == wide ? 2 * extent : gap);
        extent += n > 0 ? (n - 1) * stride[order[k]] : 0;
    }
}

/* Of some dimensions, one at least that is longer than 1 if there is one. */
static void change_some(const struct outer *outer, int64_t times, struct drawing *d,
                        int64_t stride[MOST_STRIDES])
{
    const int from = (int)draw_between(d, 0, outer->n - 1);
    bool done = false;
    for (int k = 0; k < outer->n; k++) {
        const int i = (from + k) % outer->n;
        if ((!done && outer->size[i] > 1) || draw_between(d, 0, 2) == 0)
            stride[i] *= times;
        done = done || outer->size[i] > 1;
    }
}

static bool tensor_draw(const struct factor *factor, int c, struct problem *p,
                        struct drawing *d)
{
    const struct outer outer = outer_of(p, factor->row);
    struct tensor_layout *layout = &p->layouts[factor->row - signature_of(p->kernel)->tensors];
    int order[MOST_STRIDES] = { outer.n - 1, outer.n - 2, outer.n - 3 };
    if (is_named(factor, c, "dense"))
        return true;
    if (is_named(factor, c, "swapped"))
        exchange(&order[0], &order[draw_between(d, 1, outer.n > 1 ? outer.n - 1 : 1)]);
    if (order[0] < 0)
        return false; /* one dimension has no order */
    layout->n_strides = outer.n;
    lay_out(&outer, order, is_named(factor, c, "gaps") || draw_between(d, 0, 3) == 0, d,
            layout->stride);
    if (is_named(factor, c, "backward"))
        change_some(&outer, -1, d, layout->stride);
    if (is_named(factor, c, "repeated"))
        change_some(&outer, 0, d, layout->stride);
    for (int i = 0; i < outer.n && is_named(factor, c, "overlapping"); i++)
        layout->stride[i] = draw_between(d, 1, outer.width > 1 ? outer.width - 1 : 1);
    return true;
}

/* What strides are like along the dimensions longer than 1. */
struct looks {
    bool repeated, backward, swapped, overlapping, gaps;
};

static struct looks looks_of(const struct outer *outer, const int64_t stride[MOST_STRIDES])
{
    struct looks looks = { 0 };
    int64_t extent = outer->width, last = 0;
    bool taken[MOST_STRIDES] = { false };
    for (int i = outer->n - 1; i >= 0; i--) {
        const int64_t step = stride[i] < 0 ? -stride[i] : stride[i];
        taken[i] = outer->size[i] < 2 || step == 0;
        looks.repeated = looks.repeated || (outer->size[i] > 1 && step == 0);
        looks.backward = looks.backward || (outer->size[i] > 1 && stride[i] < 0);
        looks.swapped = looks.swapped || (!taken[i] && step < last);
        last = taken[i] ? last : step;
    }
    for (int k = 0; k < outer->n; k++) { /* the shortest stride that is left */
        int at = -1;
        for (int i = 0; i < outer->n; i++)
            if (!taken[i] && (at < 0 || llabs(stride[i]) < llabs(stride[at])))
                at = i;
        if (at < 0)
            break;
        taken[at] = true;
        looks.overlapping = looks.overlapping || llabs(stride[at]) < extent;
        looks.gaps = looks.gaps || llabs(stride[at]) > extent;
        extent += llabs(stride[at]) * (outer->size[at] - 1);
    }
    return looks;
}

static bool tensor_has(const struct factor *factor, int c, const struct problem *p)
{
    const struct tensor_layout *layout = tensor_layout(p, factor->row);
    const struct outer outer = outer_of(p, factor->row);
    if (layout->n_strides == 0)
        return is_named(factor, c, "dense");
    const struct looks looks = looks_of(&outer, layout->stride);
    return (looks.repeated && is_named(factor, c, "repeated")) ||
           (looks.backward && is_named(factor, c, "backward")) ||
           (looks.swapped && is_named(factor, c, "swapped")) ||
           (looks.overlapping && is_named(factor, c, "overlapping")) ||
           (looks.gaps && is_named(factor, c, "gaps"));
}

/* ---- Strides of positions ---- */

/* [batch, token, axis]; batches without positions of their own share them, unless these lie
 * apart; a stride of tokens that is not said is 0 in the call. */
static bool positions_lay_out(const struct factor *factor, int c, struct problem *p,
                              struct drawing *d)
{
    struct tensor_layout *layout = &p->layouts[factor->row - signature_of(p->kernel)->tensors];
    const bool own = p->batch_shift != 0 || is_named(factor, c, "apart");
    int64_t step = 1;
    if (is_named(factor, c, "dense") || p->position_kind == POSENC_OFFSET || p->tokens < 1)
        return true;
    if (is_named(factor, c, "spread"))
        step = draw_between(d, 2, 5);
    if (is_named(factor, c, "backward"))
        step = -draw_between(d, 1, 2);
    const int64_t all = p->tokens * llabs(step), batch = all + draw_between(d, 0, 3);
    layout->n_strides = 3;
    layout->stride[0] = own ? batch : 0;
    layout->stride[1] = is_named(factor, c, "unsaid") ? 0 : step;
    layout->stride[2] = problem_axes(p) > 1 ? (own ? p->batch : 1) * batch : 0;
    if (is_named(factor, c, "backward") && draw_coin(d))
        layout->stride[0] = -layout->stride[0];
    return true;
}

static bool positions_lie(const struct factor *factor, int c, const struct problem *p)
{
    const struct tensor_layout *layout = tensor_layout(p, factor->row);
    const int64_t token = layout->stride[1], batch = layout->stride[0];
    const bool tokens = p->tokens > 1, batches = p->batch > 1;
    if (layout->n_strides == 0)
        return is_named(factor, c, "dense");
    return (tokens && llabs(token) > 1 && is_named(factor, c, "spread")) ||
           (batches && batch != 0 && p->batch_shift == 0 && is_named(factor, c, "apart")) ||
           (((tokens && token < 0) || (batches && batch < 0)) &&
            is_named(factor, c, "backward")) ||
           (tokens && token == 0 && is_named(factor, c, "unsaid"));
}

bool strides_draw(const struct factor *factor, int c, struct problem *problem,
                  struct drawing *drawing)
{
    return factor->row->form == FORM_POSITIONS ? positions_lay_out(factor, c, problem, drawing)
                                               : tensor_draw(factor, c, problem, drawing);
}

bool strides_has(const struct factor *factor, int c, const struct problem *problem)
{
    return factor->row->form == FORM_POSITIONS ? positions_lie(factor, c, problem)
                                               : tensor_has(factor, c, problem);
}
