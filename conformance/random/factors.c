/*
 * Factors of a kernel: which values of each field are drawn.
 *
 * Sizes lie around the length of every vector, and beyond those of any model.  Fields are drawn in
 * the order of the table, since a later one may be bounded by those before it; types, enums and
 * flags come before all of them.
 */
#include "problems.h"

#include "base/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table ---- */

/* Flags of a rule: the kernels that it is for, and how sizes are drawn. */
enum {
    GIVEN = 1,   /* positions are rows of a table */
    PLANNED = 2, /* positions are computed with */
    APART = 4,   /* kernels that cannot work in place */
    SINGLE = 8,  /* kernels without a batch dimension */
    SIZE = 16,   /* halved in problems that cost too much */
    EVEN = 32    /* odd values are never drawn */
};

struct value_rule {
    const char *fields, *signatures; /* names with spaces between; NULL: any */
    unsigned flags;
    int n; /* of classes; none: the field keeps its default */
    const struct value_class *classes;
    unsigned members; /* of an enum; 0: all */
};

#define CLASSES(...)                                                                           \
    (int)(sizeof((const struct value_class[]){ __VA_ARGS__ }) / sizeof(struct value_class)),   \
        (const struct value_class[])                                                           \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }
#define ONE(value)                                                                             \
    {                                                                                          \
        value, value, false, false                                                             \
    }
#define FROM(least, most)                                                                      \
    {                                                                                          \
        least, most, false, false                                                              \
    }
#define ABOVE_BOUND(least, most)                                                               \
    {                                                                                          \
        least, most, true, false                                                               \
    }
#define LARGE(least, most)                                                                     \
    {                                                                                          \
        least, most, false, true                                                               \
    }
#define VECTORS    FROM(3, 5), FROM(7, 9), FROM(15, 17), FROM(31, 33), FROM(63, 65)
#define COUNTS     ONE(1), FROM(2, 8), VECTORS, FROM(10, 40)
#define KINDS(...) 0, NULL, __VA_ARGS__

static const struct value_rule rules[] = {
    { "seed", NULL, 0, 0, NULL, 0 },
    { "recipe", "alibi", 0, KINDS(1u << RECIPE_MIX | 1u << RECIPE_EDGES) },
    { "recipe", "rope rope_qk_norm", 0, KINDS(1u << RECIPE_ANY | 1u << RECIPE_EDGES) },
    { "distances", "window", 0, 0, NULL, 0 },
    { "position_kind", NULL, GIVEN,
      KINDS(1u << POSENC_OFFSET | 1u << POSENC_POSITIONS_I32 | 1u << POSENC_POSITIONS_I64) },
    { "in_place", NULL, APART, 0, NULL, 0 },
    { "batch", NULL, SINGLE, 0, NULL, 0 },
    { "mrope_layout", "sinusoidal", 0, KINDS(1u << POSENC_MROPE_RESTARTED) },

    /* Counts and widths. */
    { "batch", NULL, SIZE, CLASSES(ONE(0), ONE(1), FROM(2, 8), FROM(9, 17)), 0 },
    { "heads", NULL, SIZE, CLASSES(COUNTS, FROM(41, 130), LARGE(48, 128)), 0 },
    { "tokens", NULL, SIZE | PLANNED, CLASSES(ONE(0), COUNTS, FROM(41, 130), LARGE(1024, 1100)),
      0 },
    { "tokens", NULL, SIZE, CLASSES(ONE(0), COUNTS, FROM(41, 130), LARGE(300, 1100)), 0 },
    { "queries keys", NULL, SIZE, CLASSES(ONE(0), COUNTS, FROM(66, 300), LARGE(301, 1030)), 0 },
    { "dim", "sinusoidal", SIZE,
      CLASSES(COUNTS, FROM(127, 129), FROM(130, 400), LARGE(1024, 1300)), 0 },
    { "rotary_dim", NULL, SIZE | EVEN | PLANNED,
      CLASSES(ONE(2), FROM(4, 8), FROM(14, 18), FROM(30, 34), FROM(62, 66), FROM(126, 130),
              FROM(10, 40), FROM(132, 400), LARGE(1024, 1300)),
      0 },
    { "dim", NULL, SIZE,
      CLASSES(FROM(2, 8), VECTORS, FROM(10, 40), FROM(127, 129), FROM(130, 600),
              LARGE(700, 1300)),
      0 },
    { "head_dim", NULL, SIZE,
      CLASSES(FROM(2, 8), VECTORS, FROM(10, 40), FROM(127, 129), FROM(130, 600), LARGE(64, 64),
              LARGE(128, 256)),
      0 },
    { "rows", NULL, SIZE, CLASSES(ONE(1), FROM(2, 8), FROM(9, 40), FROM(41, 130)), 0 },
    { "window_height window_width", NULL, SIZE,
      CLASSES(ONE(1), FROM(2, 5), FROM(6, 8), FROM(9, 17)), 0 },
    { "num_buckets", "t5", SIZE, CLASSES(FROM(2, 4), FROM(5, 16), ONE(32), FROM(64, 320)), 0 },
    { "position_buckets", NULL, SIZE | EVEN, CLASSES(ONE(0), ONE(4), FROM(6, 16), FROM(18, 64)),
      0 },
    { "max_distance", "relative relative_sum", SIZE,
      CLASSES(ONE(1), FROM(2, 8), FROM(9, 40), FROM(41, 130), ABOVE_BOUND(1, 4)), 0 },

    /* Frequencies.  Parameters of a scaling are drawn where it takes them. */
    { "rope_theta", NULL, 0,
      CLASSES(ONE(1e4), FROM(1.5, 100), FROM(100001, 1e7), FROM(0.05, 0.9)), 0 },
    { "factor", NULL, 0, CLASSES(ONE(1), FROM(1.1, 1.9), FROM(2, 40), FROM(100, 1e5)), 0 },
    { "original_max_position_embeddings", NULL, 0,
      CLASSES(FROM(2, 64), FROM(512, 8192), FROM(16384, 1e6)), 0 },
    { "low_freq_factor", NULL, 0, CLASSES(ONE(1), FROM(0.2, 0.9), FROM(1.5, 4)), 0 },
    { "high_freq_factor", NULL, 0, CLASSES(ABOVE_BOUND(0, 0), ABOVE_BOUND(0.5, 8)), 0 },
    { "beta_fast", NULL, 0, CLASSES(ONE(32), FROM(33, 100), FROM(8, 30)), 0 },
    { "beta_slow", NULL, 0, CLASSES(ONE(1), FROM(1.5, 6), FROM(0.2, 0.9)), 0 },
    { "attention_factor mscale mscale_all_dim", NULL, 0,
      CLASSES(ONE(0), ONE(1), ONE(0.5), ONE(4), FROM(0.3, 0.9), FROM(1.1, 1.9), FROM(2.1, 100)),
      0 },
    { "max_position_embeddings", NULL, 0, CLASSES(FROM(2, 64), FROM(512, 8192)), 0 },
    { "seq_len", NULL, 0, CLASSES(ONE(0), FROM(1, 64), FROM(1e4, 2e5)), 0 },
    { "partial_rotary_factor", NULL, 0, CLASSES(ONE(1), FROM(0.3, 0.9)), 0 },
    { "short_factor_last long_factor_last", NULL, 0,
      CLASSES(ONE(1), FROM(1.5, 8), FROM(0.2, 0.9)), 0 },
    { "short_factor long_factor inv_freq mrope_section", NULL, 0, 0, NULL, 0 },
    { "mrope_grid", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 5), FROM(17, 40)), 0 },
    { "xpos_scale_base", NULL, 0, CLASSES(ONE(0), ONE(512), FROM(1, 16), FROM(1e4, 1e6)), 0 },
    { "xpos_centre", NULL, 0, CLASSES(ONE(0), FROM(-64, -1), FROM(1, 64)), 0 },

    /* Positions.  Beyond 2^24 f32 no longer holds each whole number. */
    { "position_offset", NULL, PLANNED,
      CLASSES(ONE(0), FROM(1, 1000), FROM(-1000, -1), FROM(65537, 1e6), FROM(0x1p20, 0x1p24),
              FROM(16777217, 2e8), FROM(1.5e9, 2147480000), FROM(-2147480000, -1.5e9)),
      0 },
    { "position_offset", NULL, 0, CLASSES(ONE(0), FROM(1, 9), FROM(10, 60)), 0 },
    { "batch_shift", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 9), FROM(-9, -1)), 0 },
    { "time_step", NULL, 0,
      CLASSES(ONE(0), FROM(0.01, 0.9), FROM(-0.9, -0.01), FROM(50.5, 900)), 0 },
    { "positions", NULL, 0, 0, NULL, 0 },
    { "query_offset", "alibi t5 distance", 0,
      CLASSES(ONE(0), FROM(1, 100), FROM(-100, -1), FROM(1e5, 8e6), FROM(-8e6, -1e5),
              ABOVE_BOUND(0, 0)),
      0 },
    { "query_offset", NULL, 0, CLASSES(ONE(0), FROM(1, 100), FROM(-100, -1), ABOVE_BOUND(0, 0)),
      0 },
    { "max_distance", NULL, 0,
      CLASSES(ABOVE_BOUND(1, 4), ABOVE_BOUND(5, 24), ABOVE_BOUND(25, 600), FROM(1000, 1e6)),
      0 },
    { "distances", NULL, 0, CLASSES(ONE(0), ABOVE_BOUND(0, 0), ABOVE_BOUND(1, 41)), 0 },
    { "rotary_dim", NULL, EVEN, CLASSES(ONE(2), ABOVE_BOUND(-1, 0), ABOVE_BOUND(-1200, -2)),
      0 },
    { "rotary_offset", NULL, 0, CLASSES(ONE(0), ABOVE_BOUND(0, 0), ABOVE_BOUND(-1200, -1)), 0 },

    /* Factors of values. */
    { "alibi_bias_max", NULL, 0, CLASSES(ONE(8), FROM(0.1, 0.9), FROM(1.5, 7.5), FROM(16, 64)),
      0 },
    { "epsilon", NULL, 0,
      CLASSES(FROM(1e-6, 1e-5), FROM(6e-20, 1e-18), FROM(0.5, 100), FROM(1e6, 1e30)), 0 },
    { "weight_offset", NULL, 0,
      CLASSES(ONE(0), ONE(1), ONE(-1), FROM(-8, -1.1), FROM(0.1, 0.9), FROM(10, 1000),
              FROM(1e6, 1e20)),
      0 },
    { "scale", "sinusoidal", 0,
      CLASSES(ONE(1), ONE(-1), ONE(4), ONE(-0.25), FROM(-8, -0.01), FROM(-1000, -9),
              FROM(0.01, 0.9), FROM(1.1, 9), FROM(10, 1000), FROM(1e-30, 1e-10)),
      0 },
    { "pad", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 9), FROM(30, 70)), 0 },
    { "offset_bytes", NULL, 0, CLASSES(ONE(0), ONE(4), ONE(16), ONE(60)), 0 },

    /* Layouts of one tensor, then all other numbers. */
    { "*.stride", NULL, 0, 0, NULL, 0 },
    { "*.pad", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 9)), 0 },
    { "*.offset_bytes", NULL, 0, CLASSES(ONE(0), ONE(2), ONE(4), ONE(16), FROM(60, 62)), 0 },
    { "*", NULL, 0,
      CLASSES(ONE(1), ONE(-1), ONE(0), ONE(-0.0), ONE(2), ONE(0.125), FROM(-8, -0.01),
              FROM(-1e30, -9), FROM(-1e-10, -1e-37), FROM(0.01, 0.9), FROM(1.1, 999),
              FROM(1000, 1e30), FROM(1e-37, 1e-10), FROM(1e-43, 1e-39)),
      0 },
};
enum { N_RULES = sizeof rules / sizeof *rules };

static bool has(const char *words, const char *word)
{
    return has_word(words, ' ', word, strlen(word));
}

static bool rule_is_for(const struct value_rule *rule, enum posenc_kernel kernel)
{
    const bool planned = kernel_has_freqs(kernel);
    return (!rule->signatures || has(rule->signatures, signature_of(kernel)->name)) &&
           !((rule->flags & GIVEN) && planned) && !((rule->flags & PLANNED) && !planned) &&
           !((rule->flags & APART) && kernel_in_place(kernel)) &&
           !((rule->flags & SINGLE) && kernel_has_batch(kernel));
}

/* The first rule that names the field, or "*" for a number of a problem; -1: none. */
static int find_rule(const struct factor *f, enum posenc_kernel kernel)
{
    char name[FIELD_TEXT];
    snprintf(name, sizeof name, "%s%s", f->row ? "*." : "", f->field.name);
    for (int i = 0; i < N_RULES; i++)
        if ((has(rules[i].fields, name) ||
             (strcmp(rules[i].fields, "*") == 0 && f->kind == FACTOR_NUMBER)) &&
            rule_is_for(&rules[i], kernel))
            return i;
    return -1;
}

/* ---- Factors ---- */

static enum factor_kind kind_of(const struct field *field)
{
    return field->list == LIST_STRIDES ? FACTOR_STRIDES
           : field->list != LIST_NONE  ? FACTOR_LIST
           : field->names || field->kind == FIELD_BOOL || field->kind == FIELD_ENUM
               ? FACTOR_MEMBER
               : FACTOR_NUMBER;
}

static int count_members(const struct field *field)
{
    int n = 0;
    while (field->names && field->names[n])
        n++;
    return field->names ? n : 2;
}

/* The classes of numbers; large sizes, which stand last, are left out of quick runs. */
static void take_classes(struct factor *f, const struct value_rule *rule, bool narrow,
                         bool large)
{
    const unsigned every = (1u << count_members(&f->field)) - 1;
    switch (f->kind) {
    case FACTOR_NUMBER:
        f->classes = rule->classes;
        f->n = rule->n;
        while (f->n > 0 && f->classes[f->n - 1].large && !large)
            f->n--;
        break;
    case FACTOR_MEMBER:
        f->members = rule ? rule->members : every;
        if (f->field.names == dtype_names && !narrow)
            f->members = 1u << POSENC_F32;
        f->n = __builtin_popcount(f->members);
        break;
    default:
        f->names = layout_classes(&f->field, f->row);
        while (f->names[f->n])
            f->n++;
    }
}

static struct factor make_factor(const struct field *field, enum posenc_kernel kernel,
                                 bool narrow, bool large)
{
    struct factor f = { .field = *field, .kind = kind_of(field) };
    for (EACH_TENSOR(row, signature_of(kernel)))
        if (field->tensor && strcmp(row->name, field->tensor) == 0)
            f.row = row;
    f.order = find_rule(&f, kernel);
    const struct value_rule *rule = f.order < 0 ? NULL : &rules[f.order];
    f.size = rule && (rule->flags & SIZE);
    f.even = rule && (rule->flags & EVEN);
    const bool unread = f.row && f.row->role == ROLE_X && !kernel_takes_x(kernel),
               padded = f.row && f.row->form == FORM_POSITIONS && f.kind == FACTOR_NUMBER &&
                        strcmp(field->name, "pad") == 0;
    if (!unread && !padded)
        take_classes(&f, rule, narrow, large);
    return f;
}

static int by_order(const void *a, const void *b)
{
    const struct factor *f = a, *g = b;
    return f->order != g->order                ? f->order - g->order
           : f->field.offset < g->field.offset ? -1
                                               : f->field.offset > g->field.offset;
}

void factors_list(struct factors *factors, enum posenc_kernel kernel, bool narrow, bool large)
{
    struct field field;
    *factors = (struct factors){ .kernel = kernel };
    for (int i = 0; kernel_field(kernel, i, &field) && factors->n < MOST_FACTORS; i++) {
        factors->all[factors->n] = make_factor(&field, kernel, narrow, large);
        factors->n += factors->all[factors->n].n > 0;
    }
    qsort(factors->all, (size_t)factors->n, sizeof *factors->all, by_order);
    for (int f = 0; f < factors->n; f++) {
        factors->all[f].first = factors->n_classes;
        factors->n_classes += factors->all[f].n;
    }
}

const struct factor *factors_find(const struct factors *factors, int number)
{
    const struct factor *f = factors->all;
    while (number >= f->first + f->n)
        f++;
    return f;
}

int factor_large(const struct factor *f)
{
    const int last = f->n - 1;
    return f->kind == FACTOR_NUMBER && last >= 0 && f->classes[last].large ? last : -1;
}

bool factor_scales(const struct factor *f)
{
    const char *name = f->field.name, *last = strstr(name, "_last");
    const size_t n = last ? (size_t)(last - name) : strlen(name);
    bool scales = false;
    for (int s = 0; scaling_names[s] && !f->row; s++)
        scales = scales || scaling_takes((enum posenc_scaling)s, name, n);
    return scales;
}

/* Class c of an enum or a flag. */
static int member_of(const struct factor *f, int c)
{
    int member = 0;
    while (!(f->members >> member & 1u) || c-- > 0)
        member++;
    return member;
}

void factors_print_class(const struct factors *factors, int number, char text[CLASS_TEXT])
{
    const struct factor *f = factors_find(factors, number);
    const int c = number - f->first;
    char name[FIELD_TEXT];
    field_name(&f->field, name);
    if (f->kind == FACTOR_NUMBER)
        snprintf(text, CLASS_TEXT, "%s from %g to %g%s", name, f->classes[c].least,
                 f->classes[c].most, f->classes[c].relative ? " above its bound" : "");
    else if (f->kind == FACTOR_MEMBER)
        snprintf(text, CLASS_TEXT, "%s %s", name,
                 f->field.names    ? f->field.names[member_of(f, c)]
                 : member_of(f, c) ? "true"
                                   : "false");
    else
        snprintf(text, CLASS_TEXT, "%s %s", name, f->names[c]);
}

/* ---- Numbers ---- */

/* What the relative classes of a field are added to. */
static double base_of(const struct field *field, const struct problem *p)
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
    case MEMBER(max_distance):
        return (double)p->num_buckets /
               (kernel_signature(p->kernel) == SIGNATURE_t5 ? 2.0 : 1.0);
    default:
        return p->freqs.low_freq_factor;
    }
}

/* The ends of a class; of even numbers even ones.  Returns false if there is no value between. */
static bool find_ends(const struct factor *f, int c, const struct problem *p, double *least,
                      double *most)
{
    const struct value_class *class = &f->classes[c];
    const double base = class->relative ? base_of(&f->field, p) : 0.0;
    const double step = f->even ? 2.0 : 1.0;
    *least = class->relative ? base + class->least : class->least;
    *most = class->relative ? base + class->most : class->most;
    if (class->relative &&
        class->least < 0.0) /* a class below its bound: never under the least size */
        *least = fmax(*least, f->even ? 2.0 : 1.0);
    if (!field_is_real(&f->field)) {
        *least = ceil(*least / step) * step;
        *most = floor(*most / step) * step;
    }
    return *least <= *most;
}

/* Draws evenly, or by magnitude where the ends lie far apart; reals have three digits, so that a
 * line of the notation is short. */
static double draw_number(const struct factor *f, struct draws *d, double least, double most)
{
    const double u = draw_fraction(d);
    const bool far = least * most > 0.0 && fmax(most / least, least / most) > 50.0;
    double value = least + u * (most - least);
    char text[FIELD_TEXT];
    if (far)
        value =
            copysign(exp(log(fabs(least)) + u * (log(fabs(most)) - log(fabs(least)))), least);
    if (least == most)
        return least;
    if (!field_is_real(&f->field))
        return f->even ? 2.0 * floor((value + 1.0) / 2.0) : floor(value + 0.5);
    snprintf(text, sizeof text, "%.3g", value);
    return fmin(fmax(strtod(text, NULL), least), most);
}

static double number_of(const struct factor *f, const struct problem *p)
{
    const uint64_t bits = field_get(&f->field, p, 0);
    return field_is_real(&f->field) ? bits_to_double(bits) : (double)(int64_t)bits;
}

int64_t factor_least(const struct factor *f, int c, const struct problem *p)
{
    double least, most;
    return find_ends(f, c, p, &least, &most) && least >= 1.0 ? (int64_t)least : 1;
}

bool factor_draw(const struct factor *f, int c, struct problem *p, struct draws *d,
                 struct arena *arena)
{
    double least, most;
    if (f->kind == FACTOR_MEMBER) {
        field_set(&f->field, p, (uint64_t)member_of(f, c));
        return true;
    }
    if (f->kind != FACTOR_NUMBER)
        return layout_draw(f, c, p, d, arena);
    if (!find_ends(f, c, p, &least, &most))
        return false;
    const double value = draw_number(f, d, least, most);
    field_set(&f->field, p,
              field_is_real(&f->field) ? double_to_bits(value) : (uint64_t)(int64_t)value);
    return true;
}

/* ---- Classes of a problem ---- */

/* Dense tensors alone follow pad and token_major of the problem. */
static bool some_is_dense(const struct problem *p)
{
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (row->form == FORM_TENSOR && tensor_present(p, row) &&
            tensor_layout(p, row)->n_strides == 0)
            return true;
    return false;
}

bool factor_seen(const struct factor *f, const struct problem *p)
{
    const char *name = f->field.name, *last = strstr(name, "_last");
    const bool offset = p->position_kind == POSENC_OFFSET;
    if (f->row)
        return tensor_present(p, f->row) && !tensor_shares_output(p, f->row) &&
               !(f->row->form == FORM_POSITIONS && offset) &&
               !(strcmp(name, "pad") == 0 && tensor_layout(p, f->row)->n_strides);
    if (factor_scales(f))
        return scaling_takes(p->freqs.scaling, name,
                             last ? (size_t)(last - name) : strlen(name));
    if (has("positions batch_shift time_step mrope_grid", name) && offset)
        return false;
    if (has("mrope_layout mrope_grid", name))
        return p->freqs.mrope_section[0] != 0;
    return strcmp(name, "batch_shift") == 0        ? p->batch > 1
           : strcmp(name, "time_step") == 0        ? p->position_kind == POSENC_POSITIONS_F32
           : strcmp(name, "woven") == 0            ? !p->in_place
           : strcmp(name, "rope_theta") == 0       ? !p->freqs.values
           : strcmp(name, "position_buckets") == 0 ? p->relative == RELATIVE_DEBERTA
           : has("pad token_major", name)          ? some_is_dense(p)
                                                   : true;
}

bool factor_holds(const struct factor *f, int c, const struct problem *p)
{
    double least, most;
    if (!factor_seen(f, p))
        return false;
    if (f->kind == FACTOR_MEMBER)
        return field_get(&f->field, p, 0) == (uint64_t)member_of(f, c);
    if (f->kind != FACTOR_NUMBER)
        return !field_is_blank(&f->field, p) || c == 0;
    const double value = number_of(f, p);
    const bool zero = find_ends(f, c, p, &least, &most) && least == most && least == 0.0;
    return least <= most && value >= least - 1e-6 * fabs(least) &&
           value <= most + 1e-6 * fabs(most) &&
           !(zero && field_is_real(&f->field) && signbit(value) != signbit(least));
}
