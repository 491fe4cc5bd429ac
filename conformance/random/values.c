/* Draws values: random numbers, numbers of a class, lists, and strides; see random.h. For "heads from 2 to 8" it draws a
 * number, for "x.stride backward" the strides of x with one of them negative. The classes of a list are the ways to
 * draw it, such as "dense", "gaps" and "backward". */
#include "random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Random numbers ---- */

bool draw_one_in(struct random_state *d, int64_t n) { return draw_between(d, 1, n) == 1; }

/* Computes modulo 2^64, as the values may be beyond the ends of an int64_t. */
int64_t draw_whole(struct random_state *d, int64_t present)
{
    /* Exponents of the interface's limits and of the ends of integer types. */
    static const int powers[] = { 0, 1, 4, 12, 24, 31, 31, 32, 40, 62, 63, 63 };
    const uint64_t same = (uint64_t)present, few = (uint64_t)draw_between(d, 0, 16);
    const uint64_t small = (uint64_t)draw_between(d, -4, 35);
    const uint64_t end = UINT64_C(1) << powers[draw_between(d, 0, 11)];
    const uint64_t at_end = end + (uint64_t)draw_between(d, -1, 1);
    const uint64_t bits = draw_bits(d), any = bits >> draw_between(d, 1, 33);
    const uint64_t values[] = { same + 1, same - 1,   same * 2,
                                0 - same, same + few, small,
                                at_end,   0 - at_end, draw_one_in(d, 2) ? any : 0 - any };
    return (int64_t)values[draw_between(d, 0, 8)];
}

double draw_real(struct random_state *d, double present)
{
    static const int powers[] = { -1074, -160, -149, -126, -64, -1, 0, 1, 16, 24, 40, 128 };
    static const double others[] = {
        0.0, -0.0, (double)NAN, (double)INFINITY, (double)FLT_MAX, 1e6, DBL_MAX
    };
    const double end = ldexp(1.0, powers[draw_between(d, 0, 11)]);
    const double beside_end = nextafter(end, draw_one_in(d, 2) ? 0.0 : DBL_MAX);
    const double times = ldexp(1.0, (int)draw_between(d, -4, 3));
    const double other = others[draw_between(d, 0, 6)], sign = draw_one_in(d, 3) ? -1.0 : 1.0;
    const double beside = nextafter(present, sign * DBL_MAX);
    const double values[] = { beside,       -present,   present * times,
                              sign * other, sign * end, sign * beside_end };
    return values[draw_between(d, 0, 5)];
}

/* ---- Numbers of a class ---- */

/* Returns the number to which `least` and `most` of a class above a bound are relative. */
static double find_bound(const struct field *field, const struct problem *p)
{
    switch (field->offset) {
    case MEMBER(rotary_dim):
        return (double)p->dim;
    case MEMBER(rotary_offset):
        return (double)(p->dim - p->rotary_dim);
    case MEMBER(query_offset):
        return (double)(p->keys - p->queries);
    case MEMBER(distances):
        return (double)(p->queries + p->keys - 1);
    case MEMBER(max_distance): /* the number of exact buckets */
        return (double)p->num_buckets /
               (kernel_signature(p->kernel) == SIGNATURE_t5 ? 2.0 : 1.0);
    default: /* of high_freq_factor */
        return p->freqs.low_freq_factor;
    }
}

/* Finds the ends of a class, even ones for even numbers. Returns false if no value lies between. */
static bool find_ends(const struct value_class *c, const struct problem *p, double *least,
                      double *most)
{
    const struct factor *f = c->factor;
    const double step = f->is_even ? 2.0 : 1.0;
    *least = c->least; /* may be -0.0, so 0.0 is not added */
    *most = c->most;
    if (c->kind == CLASS_ABOVE_BOUND) {
        *least += find_bound(&f->field, p);
        *most += find_bound(&f->field, p);
        if (c->least < 0.0) /* below its bound, but still a size */
            *least = fmax(*least, step);
    }
    if (!field_is_real(&f->field)) {
        *least = ceil(*least / step) * step;
        *most = floor(*most / step) * step;
    }
    return *least <= *most;
}

/* Draws a number evenly, or evenly by logarithm if the ends lie far apart. Reals have three digits, to keep lines of
 * the notation short. */
static double draw_number(const struct factor *f, struct random_state *d, double least,
                          double most)
{
    const double u = (double)(draw_bits(d) >> 11) * 0x1p-53; /* below 1 */
    const bool are_far_apart = least * most > 0.0 && fmax(most / least, least / most) > 50.0;
    double value = least + u * (most - least);
    char text[FIELD_TEXT];
    if (are_far_apart) {
        const double from = log(fabs(least)), to = log(fabs(most));
        value = copysign(exp(from + u * (to - from)), least);
    }
    if (least == most)
        return least;
    if (!field_is_real(&f->field))
        return f->is_even ? 2.0 * floor((value + 1.0) / 2.0) : floor(value + 0.5);
    snprintf(text, sizeof text, "%.3g", value);
    return fmin(fmax(strtod(text, NULL), least), most);
}

/* ---- Lists ---- */

/* Ways to draw lists. The index of a name of sections is the number of sections. */
enum position_way { CONSECUTIVE, SCATTERED, FALLING, ALIKE };
static const char *const position_names[] = { "consecutive", "scattered", "falling", "alike",
                                              NULL };
static const char *const section_names[] = { "none", "one", "two", "three", NULL };
static const char *const pair_names[] = { "none", "given", NULL };

static bool set_list(const struct factor *f, struct problem *p, const void *list)
{
    memcpy((char *)p + f->field.offset, &list, sizeof list);
    return true;
}

/* Draws positions near the first one, or rows that the table has. */
static bool draw_positions(const struct factor *f, enum position_way way, struct problem *p,
                           struct random_state *d, struct arena *arena)
{
    const int64_t near = 1000, far = INT64_C(2147400000);
    int64_t least = p->first - near > -far ? p->first - near : -far,
            most = p->first + near < far ? p->first + near : far;
    if (p->position_kind == POSENC_POSITIONS_OFFSET || p->tokens < 1 || way == CONSECUTIVE)
        return way == CONSECUTIVE;
    int64_t *list = arena_get(arena, (size_t)p->tokens * sizeof *list);
    if (!list)
        return false;
    if (!kernel_has_freqs(p->kernel)) {
        const int64_t last_shift = p->batch_shift * (p->batch - 1); /* of the last batch */
        least = last_shift < 0 ? -last_shift : 0;
        most = p->rows - 1 - (last_shift > 0 ? last_shift : 0);
        most = most > least + 2 ? most : least + 2;
    }
    const int64_t one = draw_between(d, least, most), other = draw_between(d, least, most);
    for (int64_t t = 0; t < p->tokens; t++)
        if (way == FALLING)
            list[t] = least + p->tokens - 1 - t;
        else if (way == ALIKE)
            list[t] = draw_one_in(d, 2) ? one : other;
        else
            list[t] = draw_between(d, least, most);
    return set_list(f, p, list);
}

/* Divides all pairs among n axes at random. */
static bool draw_sections(int n, struct problem *p, struct random_state *d)
{
    int64_t left = p->freqs.dim / 2;
    if (left < n)
        return false;
    for (int i = 0; i < n; i++) {
        const int64_t size = i == n - 1 ? left : draw_between(d, 1, left - (n - 1 - i));
        p->freqs.mrope_section[i] = size;
        left -= size;
    }
    return true;
}

/* Draws factors of LongRoPE, or frequencies of which some are 0: pairs that never rotate. */
static bool draw_pairs(const struct factor *f, bool given, struct problem *p,
                       struct random_state *d, struct arena *arena)
{
    const bool factors = f->field.list == LIST_FACTORS;
    const int64_t n = (p->freqs.dim + 1) / 2;
    if (!given)
        return true;
    if (p->freqs.scaling != (factors ? POSENC_SCALING_LONGROPE : POSENC_SCALING_NONE))
        return false;
    double *list = arena_get(arena, (size_t)n * sizeof *list);
    for (int64_t i = 0; list && i < n; i++)
        if (factors)
            list[i] = (double)draw_between(d, 20, 800) / 64.0;
        else if (!draw_one_in(d, 8)) {
            const int exponent = -(int)draw_between(d, 10, 30);
            list[i] = ldexp((double)draw_between(d, 1024, 2047), exponent);
        }
    return list && set_list(f, p, list);
}

/* ---- Strides of tensors ---- */

enum stride_way { DENSE, GAPS, BACKWARD, REPEATED, OVERLAPPING, SWAPPED };
static const char *const stride_names[] = { "dense",       "gaps",    "backward", "repeated",
                                            "overlapping", "swapped", NULL };

/* The dimensions of a tensor except the last one, which is always dense. */
struct outer_dims {
    int n;
    int64_t size[MOST_STRIDES];
    int64_t width; /* size of the last dimension */
};

static struct outer_dims find_outer_dims(const struct problem *p, const struct tensor_spec *row)
{
    struct outer_dims outer = { .n = tensor_dims(row) - 1 };
    for (int i = 0; i < outer.n; i++)
        outer.size[i] = problem_extent(p, row->dims[i]);
    outer.width = problem_extent(p, row->dims[outer.n]);
    return outer;
}

/* Sets strides so that no elements overlap; `order` lists the dimensions, the innermost first. Gaps are a few
 * elements, and one may be wide, as in a part of a larger tensor. */
static void set_strides(const struct outer_dims *outer, const int *order, bool gaps,
                        struct random_state *d, int64_t stride[MOST_STRIDES])
{
    const int wide = (int)draw_between(d, 0, 2 * outer->n);
    int64_t extent = outer->width > 0 ? outer->width : 1;
    for (int k = 0; k < outer->n; k++) {
        const int64_t n = outer->size[order[k]], few = draw_between(d, 1, 7),
                      gap = k == wide ? 2 * extent : few;
        stride[order[k]] = extent + (gaps ? gap : 0);
        extent += n > 0 ? (n - 1) * stride[order[k]] : 0;
    }
}

/* Multiplies some strides, at least one of a dimension with several elements if there is one. */
static void multiply_some(const struct outer_dims *outer, int64_t times, struct random_state *d,
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

/* Draws strides of all dimensions, as far as their sizes allow the way. */
static bool draw_strides(const struct factor *f, enum stride_way way, struct problem *p,
                         struct random_state *d)
{
    const struct outer_dims outer = find_outer_dims(p, f->row);
    struct tensor_layout *layout = &p->layouts[f->row - signature_of(p->kernel)->tensors];
    int order[MOST_STRIDES] = { outer.n - 1, outer.n - 2, outer.n - 3 };
    bool has_several = false; /* elements along one of the dimensions */
    for (int i = 0; i < outer.n; i++)
        has_several = has_several || outer.size[i] > 1;
    if (way == DENSE)
        return true;
    if (outer.n < (way == SWAPPED ? 2 : 1) || !has_several)
        return false;
    if (way == SWAPPED) {
        const int other = (int)draw_between(d, 1, outer.n - 1), innermost = order[0];
        order[0] = order[other];
        order[other] = innermost;
    }
    layout->n_strides = outer.n;
    set_strides(&outer, order, way == GAPS || draw_one_in(d, 4), d, layout->stride);
    if (way == BACKWARD || way == REPEATED)
        multiply_some(&outer, way == BACKWARD ? -1 : 0, d, layout->stride);
    for (int i = 0; i < outer.n && way == OVERLAPPING; i++)
        layout->stride[i] = draw_between(d, 1, outer.width > 1 ? outer.width - 1 : 1);
    return true;
}

/* ---- Strides of positions ---- */

enum token_way { TOKENS_DENSE, TOKENS_SPREAD, TOKENS_BACKWARD, TOKENS_APART, TOKENS_UNSAID };
static const char *const token_names[] = { "dense", "spread", "backward",
                                           "apart", "unsaid", NULL };

/* Draws strides by batch, token and axis. Batches share positions unless they have a shift or the way is "apart".
 * The token stride of "unsaid" is 0, which the library reads as 1. */
static bool draw_token_strides(const struct factor *f, enum token_way way, struct problem *p,
                               struct random_state *d)
{
    struct tensor_layout *layout = &p->layouts[f->row - signature_of(p->kernel)->tensors];
    const bool own_positions = p->batch_shift != 0 || way == TOKENS_APART;
    int64_t step = 1;
    if (way == TOKENS_SPREAD)
        step = draw_between(d, 2, 5);
    if (way == TOKENS_BACKWARD)
        step = -draw_between(d, 1, 2);
    if (way == TOKENS_DENSE)
        return true;
    if (p->position_kind == POSENC_POSITIONS_OFFSET || p->tokens < 2 ||
        (way == TOKENS_APART && p->batch < 2))
        return false;
    const int64_t batch = p->tokens * llabs(step) + draw_between(d, 0, 3);
    layout->n_strides = 3;
    layout->stride[0] = own_positions ? batch : 0;
    layout->stride[1] = way == TOKENS_UNSAID ? 0 : step;
    layout->stride[2] = problem_axes(p) > 1 ? (own_positions ? p->batch : 1) * batch : 0;
    if (way == TOKENS_BACKWARD && draw_one_in(d, 2))
        layout->stride[0] = -layout->stride[0];
    return true;
}

/* Elements of outputs never share memory, and only outer dimensions can be swapped. */
const char *const *value_list_names(const struct field *field, const struct tensor_spec *row,
                                    unsigned *members)
{
    if (field->list == LIST_POSITIONS)
        return position_names;
    if (field->list == LIST_SECTIONS)
        return section_names;
    if (field->list != LIST_STRIDES)
        return pair_names;
    if (row->form == FORM_POSITIONS)
        return token_names;
    if (row->role == ROLE_OUTPUT)
        *members &= ~(1u << REPEATED | 1u << OVERLAPPING);
    if (tensor_dims(row) < 3)
        *members &= ~(1u << SWAPPED);
    return stride_names;
}

bool value_class_draw(const struct value_class *c, struct problem *p, struct random_state *d,
                      struct arena *arena)
{
    const struct factor *f = c->factor;
    const int way = (int)c->least; /* to draw a list */
    double least, most;
    switch (f->field.list) {
    case LIST_POSITIONS:
        return draw_positions(f, (enum position_way)way, p, d, arena);
    case LIST_SECTIONS:
        return draw_sections(way, p, d);
    case LIST_STRIDES:
        return f->row->form == FORM_POSITIONS ? draw_token_strides(f, (enum token_way)way, p, d)
                                              : draw_strides(f, (enum stride_way)way, p, d);
    case LIST_PAIRS:
    case LIST_FACTORS:
        return draw_pairs(f, way > 0, p, d, arena);
    case LIST_NONE:
        break;
    }
    if (!find_ends(c, p, &least, &most))
        return false;
    field_set_number(&f->field, p, c->name ? least : draw_number(f, d, least, most));
    return true;
}

bool value_class_holds(const struct value_class *c, const struct problem *p)
{
    const struct field *field = &c->factor->field;
    double least, most;
    if (!factor_matters(c->factor, p))
        return false;
    if (field->list)
        return !field_is_blank(field, p) || c->least == 0.0;
    const double value = field_number(field, p);
    if (!find_ends(c, p, &least, &most))
        return false;
    if (field_is_real(field) && least == 0.0 && most == 0.0 && signbit(value) != signbit(least))
        return false;
    return value >= least - 1e-6 * fabs(least) && value <= most + 1e-6 * fabs(most);
}
