/*
 * Factors of a kernel: the table of classes for each field of a problem; see random.h. This row divides the heads of all
 * signatures into 1, 2 to 8, the neighbours of each vector width, and so on, up to 128 in full runs:
 *
 *     { "heads", NULL, SIZE, CLASSES(COUNTS, FROM(41, 130), LARGE(48, 128)) },
 *
 * Fields are drawn in the order of the table, because earlier fields may bound later ones. Types, enums and flags
 * without a row are drawn first.
 */
#include "random.h"
#include "base/text/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Flags of a row: restrictions to some kernels, and how sizes are drawn. */
enum {
    WITH_TABLE = 1,   /* kernels whose positions are rows of a table */
    WITH_FREQS = 2,   /* kernels that compute with positions */
    OUT_OF_PLACE = 4, /* kernels that cannot work in place */
    ONE_BATCH = 8,    /* kernels without a batch dimension */
    SIZE = 16,        /* halved in problems that cost too much */
    EVEN = 32         /* only even values are drawn */
};

enum { MOST_CLASSES_OF_RULE = 14 };

/* Classes of fields. The first row with the name of a field, among those for the kernel, applies. "*" names all
 * numbers, and "*.pad" the member pad of each tensor. Classes of lists and strides are in values.c; a row for them only
 * sets when they are drawn. */
struct value_rule {
    const char *fields, *signatures; /* names with spaces between; NULL: any signature */
    unsigned flags;
    /* Classes of a number, up to the first CLASS_UNUSED. Without any, the field keeps its default. */
    struct value_class classes[MOST_CLASSES_OF_RULE + 1];
    unsigned members; /* of an enum, as bits */
};

/* Members of a row. DEFAULT keeps the default of the field. */
#define CLASSES(...)  .classes = { __VA_ARGS__ }
#define MEMBERS(bits) .members = (bits)
#define DEFAULT       .members = 0
#define CLASS(kind, from, to)                                                                  \
    {                                                                                          \
        kind, from, to, NULL, NULL                                                             \
    }
#define FROM(from, to)        CLASS(CLASS_PLAIN, from, to)
#define ABOVE_BOUND(from, to) CLASS(CLASS_ABOVE_BOUND, from, to)
#define LARGE(from, to)       CLASS(CLASS_LARGE, from, to)
#define ONE(value)            FROM(value, value)
/* Around the vector widths of 4 to 64 elements. */
#define VECTORS FROM(3, 5), FROM(7, 9), FROM(15, 17), FROM(31, 33), FROM(63, 65)
#define COUNTS  ONE(1), FROM(2, 8), VECTORS, FROM(10, 40)

static const struct value_rule rules[] = {
    { "seed", NULL, 0, DEFAULT },
    { "recipe", "alibi", 0, MEMBERS(1u << RECIPE_MIX | 1u << RECIPE_EDGES) },
    { "recipe", "rope rope_qk_norm", 0, MEMBERS(1u << RECIPE_ANY | 1u << RECIPE_EDGES) },
    { "distances", "window", 0, DEFAULT },
    { "position_kind", NULL, WITH_TABLE,
      MEMBERS(1u << POSENC_POSITIONS_OFFSET | 1u << POSENC_POSITIONS_I32 |
              1u << POSENC_POSITIONS_I64) },
    { "in_place", NULL, OUT_OF_PLACE, DEFAULT },
    { "batch", NULL, ONE_BATCH, DEFAULT },
    { "mrope_layout", "sinusoidal", 0, MEMBERS(1u << POSENC_MROPE_LAYOUT_QWEN2_VL_VISION) },

    /* Counts and widths. */
    { "batch", NULL, SIZE, CLASSES(ONE(0), ONE(1), FROM(2, 8), FROM(9, 17)) },
    { "heads", NULL, SIZE, CLASSES(COUNTS, FROM(41, 130), LARGE(48, 128)) },
    { "tokens", NULL, SIZE | WITH_FREQS,
      CLASSES(ONE(0), COUNTS, FROM(41, 130), LARGE(1024, 1100)) },
    { "tokens", NULL, SIZE, CLASSES(ONE(0), COUNTS, FROM(41, 130), LARGE(300, 1100)) },
    { "queries keys", NULL, SIZE, CLASSES(ONE(0), COUNTS, FROM(66, 300), LARGE(301, 1030)) },
    { "dim", "sinusoidal", SIZE,
      CLASSES(COUNTS, FROM(127, 129), FROM(130, 400), LARGE(1024, 1300)) },
    { "rotary_dim", NULL, SIZE | EVEN | WITH_FREQS,
      CLASSES(ONE(2), FROM(4, 8), FROM(14, 18), FROM(30, 34), FROM(62, 66), FROM(126, 130),
              FROM(10, 40), FROM(132, 400), LARGE(1024, 1300)) },
    { "dim", NULL, SIZE,
      CLASSES(FROM(2, 8), VECTORS, FROM(10, 40), FROM(127, 129), FROM(130, 600),
              LARGE(700, 1300)) },
    { "head_dim", NULL, SIZE,
      CLASSES(FROM(2, 8), VECTORS, FROM(10, 40), FROM(127, 129), FROM(130, 600), LARGE(64, 64),
              LARGE(128, 256)) },
    { "rows", NULL, SIZE, CLASSES(ONE(1), FROM(2, 8), FROM(9, 40), FROM(41, 130)) },
    { "window_height window_width", NULL, SIZE,
      CLASSES(ONE(1), FROM(2, 5), FROM(6, 8), FROM(9, 17)) },
    { "num_buckets", "t5", SIZE, CLASSES(FROM(2, 4), FROM(5, 16), ONE(32), FROM(64, 320)) },
    { "position_buckets", NULL, SIZE | EVEN,
      CLASSES(ONE(0), ONE(4), FROM(6, 16), FROM(18, 64)) },
    { "max_distance", "relative relative_sum", SIZE,
      CLASSES(ONE(1), FROM(2, 8), FROM(9, 40), FROM(41, 130), ABOVE_BOUND(1, 4)) },

    /* Frequencies. Parameters of a scaling are drawn only with this scaling. */
    { "rope_theta", NULL, 0,
      CLASSES(ONE(1e4), FROM(1.5, 100), FROM(100001, 1e7), FROM(0.05, 0.9)) },
    { "factor", NULL, 0, CLASSES(ONE(1), FROM(1.1, 1.9), FROM(2, 40), FROM(100, 1e5)) },
    { "original_max_position_embeddings", NULL, 0,
      CLASSES(FROM(2, 64), FROM(512, 8192), FROM(16384, 1e6)) },
    { "low_freq_factor", NULL, 0, CLASSES(ONE(1), FROM(0.2, 0.9), FROM(1.5, 4)) },
    { "high_freq_factor", NULL, 0, CLASSES(ABOVE_BOUND(0, 0), ABOVE_BOUND(0.5, 8)) },
    { "beta_fast", NULL, 0, CLASSES(ONE(32), FROM(33, 100), FROM(8, 30)) },
    { "beta_slow", NULL, 0, CLASSES(ONE(1), FROM(1.5, 6), FROM(0.2, 0.9)) },
    { "attention_factor mscale mscale_all_dim", NULL, 0,
      CLASSES(ONE(0), ONE(1), ONE(0.5), ONE(4), FROM(0.3, 0.9), FROM(1.1, 1.9),
              FROM(2.1, 100)) },
    { "max_position_embeddings", NULL, 0, CLASSES(FROM(2, 64), FROM(512, 8192)) },
    { "seq_len", NULL, 0, CLASSES(ONE(0), FROM(1, 64), FROM(1e4, 2e5)) },
    { "partial_rotary_factor", NULL, 0, CLASSES(ONE(1), FROM(0.3, 0.9)) },
    { "short_factor_last long_factor_last", NULL, 0,
      CLASSES(ONE(1), FROM(1.5, 8), FROM(0.2, 0.9)) },
    { "short_factor long_factor inv_freq mrope_section", NULL, 0, DEFAULT },
    { "mrope_grid", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 5), FROM(17, 40)) },
    { "xpos_scale_base", NULL, 0, CLASSES(ONE(0), ONE(512), FROM(1, 16), FROM(1e4, 1e6)) },
    { "xpos_centre", NULL, 0, CLASSES(ONE(0), FROM(-64, -1), FROM(1, 64)) },

    /* Positions. Beyond 2^24, f32 cannot represent each integer. */
    { "position_offset", NULL, WITH_FREQS,
      CLASSES(ONE(0), FROM(1, 1000), FROM(-1000, -1), FROM(65537, 1e6), FROM(0x1p20, 0x1p24),
              FROM(16777217, 2e8), FROM(1.5e9, 2147480000), FROM(-2147480000, -1.5e9)) },
    { "position_offset", NULL, 0, CLASSES(ONE(0), FROM(1, 9), FROM(10, 60)) },
    { "batch_shift", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 9), FROM(-9, -1)) },
    { "time_step", NULL, 0,
      CLASSES(ONE(0), FROM(0.01, 0.9), FROM(-0.9, -0.01), FROM(50.5, 900)) },
    { "positions", NULL, 0, DEFAULT },
    { "query_offset", "alibi t5 distance", 0,
      CLASSES(ONE(0), FROM(1, 100), FROM(-100, -1), FROM(1e5, 8e6), FROM(-8e6, -1e5),
              ABOVE_BOUND(0, 0)) },
    { "query_offset", NULL, 0,
      CLASSES(ONE(0), FROM(1, 100), FROM(-100, -1), ABOVE_BOUND(0, 0)) },
    { "max_distance", NULL, 0,
      CLASSES(ABOVE_BOUND(1, 4), ABOVE_BOUND(5, 24), ABOVE_BOUND(25, 600), FROM(1000, 1e6)) },
    { "distances", NULL, 0, CLASSES(ONE(0), ABOVE_BOUND(0, 0), ABOVE_BOUND(1, 41)) },
    { "rotary_dim", NULL, EVEN, CLASSES(ONE(2), ABOVE_BOUND(-1, 0), ABOVE_BOUND(-1200, -2)) },
    { "rotary_offset", NULL, 0, CLASSES(ONE(0), ABOVE_BOUND(0, 0), ABOVE_BOUND(-1200, -1)) },

    /* Factors of values. */
    { "alibi_bias_max", NULL, 0,
      CLASSES(ONE(8), FROM(0.1, 0.9), FROM(1.5, 7.5), FROM(16, 64)) },
    { "epsilon", NULL, 0,
      CLASSES(FROM(1e-6, 1e-5), FROM(6e-20, 1e-18), FROM(0.5, 100), FROM(1e6, 1e30)) },
    { "weight_offset", NULL, 0,
      CLASSES(ONE(0), ONE(1), ONE(-1), FROM(-8, -1.1), FROM(0.1, 0.9), FROM(10, 1000),
              FROM(1e6, 1e20)) },
    { "scale", "sinusoidal", 0,
      CLASSES(ONE(1), ONE(-1), ONE(4), ONE(-0.25), FROM(-8, -0.01), FROM(-1000, -9),
              FROM(0.01, 0.9), FROM(1.1, 9), FROM(10, 1000), FROM(1e-30, 1e-10)) },
    { "pad", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 9), FROM(30, 70)) },
    { "offset_bytes", NULL, 0, CLASSES(ONE(0), ONE(4), ONE(16), ONE(60)) },

    /* Layouts of one tensor, then all other numbers. */
    { "*.stride", NULL, 0, DEFAULT },
    { "*.pad", NULL, 0, CLASSES(ONE(0), ONE(1), FROM(2, 9)) },
    { "*.offset_bytes", NULL, 0, CLASSES(ONE(0), ONE(2), ONE(4), ONE(16), FROM(60, 62)) },
    { "*", NULL, 0,
      CLASSES(ONE(1), ONE(-1), ONE(0), ONE(-0.0), ONE(2), ONE(0.125), FROM(-8, -0.01),
              FROM(-1e30, -9), FROM(-1e-10, -1e-37), FROM(0.01, 0.9), FROM(1.1, 999),
              FROM(1000, 1e30), FROM(1e-37, 1e-10), FROM(1e-43, 1e-39)) },
};
enum { N_RULES = sizeof rules / sizeof *rules };

static bool has_word(const char *words, const char *word)
{
    return text_has_word(words, ' ', word, strlen(word));
}

static bool rule_applies(const struct value_rule *rule, enum posenc_kernel kernel)
{
    const bool with_freqs = kernel_has_freqs(kernel);
    return (!rule->signatures || has_word(rule->signatures, signature_of(kernel)->name)) &&
           !((rule->flags & WITH_TABLE) && with_freqs) &&
           !((rule->flags & WITH_FREQS) && !with_freqs) &&
           !((rule->flags & OUT_OF_PLACE) && kernel_in_place(kernel)) &&
           !((rule->flags & ONE_BATCH) && kernel_has_batch(kernel));
}

static bool is_number(const struct field *field)
{
    return !field->list && !field_value_names(field);
}

/* Returns the index of the first rule that names the field, or "*" for a number of a problem. Returns
 * -1 if there is none. */
static int find_rule(const struct factor *f, enum posenc_kernel kernel)
{
    char name[FIELD_TEXT];
    snprintf(name, sizeof name, "%s%s", f->row ? "*." : "", f->field.name);
    for (int i = 0; i < N_RULES; i++)
        if ((has_word(rules[i].fields, name) ||
             (strcmp(rules[i].fields, "*") == 0 && is_number(&f->field))) &&
            rule_applies(&rules[i], kernel))
            return i;
    return -1;
}

/* ---- Making factors ---- */

static void add_class(struct factors *factors, struct factor *f, struct value_class c)
{
    assert(factors->n_classes < MOST_CLASSES);
    c.factor = f;
    factors->classes[factors->n_classes++] = c;
    f->n_classes++;
}

/* Adds the classes of a number. Only the last of several large ones counts as large. */
static void add_number_classes(struct factors *factors, struct factor *f, bool with_large)
{
    if (f->rule < 0)
        return;
    for (const struct value_class *c = rules[f->rule].classes; c->kind; c++) {
        struct value_class own = *c;
        if (c->kind == CLASS_LARGE && c[1].kind)
            own.kind = CLASS_PLAIN;
        if (with_large || c->kind != CLASS_LARGE)
            add_class(factors, f, own);
    }
}

/* Adds the classes of any other field: those that its rule allows, or all. */
static void add_named_classes(struct factors *factors, struct factor *f, bool with_16_bits)
{
    unsigned allowed = f->rule < 0 || f->field.list ? ~0u : rules[f->rule].members;
    const char *const *names = f->field.list ? value_list_names(&f->field, f->row, &allowed)
                                             : field_value_names(&f->field);
    if (names == dtype_names && !with_16_bits)
        allowed = 1u << POSENC_DTYPE_F32;
    for (int i = 0; names[i]; i++)
        if (allowed >> i & 1u)
            add_class(factors, f,
                      (struct value_class){ CLASS_PLAIN, i, i, names[i], .factor = NULL });
}

static void add_classes(struct factors *factors, struct factor *f, bool with_16_bits,
                        bool with_large)
{
    const bool is_unread = f->row && f->row->role == ROLE_X && !kernel_takes_x(factors->kernel),
               is_pad_of_positions = f->row && f->row->form == FORM_POSITIONS &&
                                     strcmp(f->field.name, "pad") == 0;
    f->classes = &factors->classes[factors->n_classes];
    if (is_unread || is_pad_of_positions)
        return;
    if (is_number(&f->field))
        add_number_classes(factors, f, with_large);
    else
        add_named_classes(factors, f, with_16_bits);
}

/* Finds the scalings that have a parameter. Compares its name without "_last": the field LIST_last is a short form of
 * LIST, with evenly rising elements. */
static unsigned find_scalings(const struct field *field)
{
    const char *name = field->name, *suffix = strstr(name, "_last");
    unsigned found = 0;
    for (int s = 0; scaling_names[s] && !field->tensor; s++)
        if (scaling_has_parameter((enum posenc_scaling)s, name,
                                  suffix ? (size_t)(suffix - name) : strlen(name)))
            found |= 1u << s;
    return found;
}

static struct factor make_factor(const struct field *field, enum posenc_kernel kernel)
{
    struct factor f = { .field = *field, .scalings = find_scalings(field) };
    for (EACH_TENSOR(row, signature_of(kernel)))
        if (field->tensor && strcmp(row->name, field->tensor) == 0)
            f.row = row;
    f.rule = find_rule(&f, kernel);
    f.is_size = f.rule >= 0 && (rules[f.rule].flags & SIZE);
    f.is_even = f.rule >= 0 && (rules[f.rule].flags & EVEN);
    return f;
}

/* Orders factors by their rows of the table, then by the place of the field in a problem. */
static int compare_factors(const void *a, const void *b)
{
    const struct factor *one = a, *other = b;
    const size_t place = one->field.offset, other_place = other->field.offset;
    if (one->rule != other->rule)
        return one->rule - other->rule;
    return (place > other_place) - (place < other_place);
}

void factors_init(struct factors *factors, enum posenc_kernel kernel, bool with_16_bits,
                  bool with_large)
{
    struct field field;
    int n = 0;
    *factors = (struct factors){ .kernel = kernel };
    while (n < MOST_FACTORS && kernel_field(kernel, n, &field))
        factors->all[n++] = make_factor(&field, kernel);
    qsort(factors->all, (size_t)n, sizeof *factors->all, compare_factors);
    for (int i = 0; i < n; i++) { /* keeps those that have classes */
        struct factor *f = &factors->all[factors->n];
        *f = factors->all[i];
        add_classes(factors, f, with_16_bits, with_large);
        factors->n += f->n_classes > 0;
    }
}

/* Returns true if a tensor has no strides of its own, and so depends on pad and token_major of the problem. */
static bool has_dense_tensor(const struct problem *p)
{
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (row->form == FORM_TENSOR && tensor_present(p, row) &&
            tensor_layout(p, row)->n_strides == 0)
            return true;
    return false;
}

bool factor_matters(const struct factor *f, const struct problem *p)
{
    const char *name = f->field.name;
    const bool is_offset = p->position_kind == POSENC_POSITIONS_OFFSET;
    if (f->row)
        return tensor_present(p, f->row) && !tensor_shares_output(p, f->row) &&
               !(f->row->form == FORM_POSITIONS && is_offset) &&
               !(strcmp(name, "pad") == 0 && tensor_layout(p, f->row)->n_strides);
    if (f->scalings)
        return f->scalings >> p->freqs.scaling & 1u;
    if (has_word("positions batch_shift time_step mrope_grid", name) && is_offset)
        return false;
    if (has_word("mrope_layout mrope_grid", name))
        return p->freqs.mrope_section[0] != 0;
    if (has_word("pad token_major", name))
        return has_dense_tensor(p);
    switch (f->field.offset) {
    case MEMBER(batch_shift):
        return p->batch > 1;
    case MEMBER(time_step):
        return p->position_kind == POSENC_POSITIONS_F32;
    case MEMBER(woven):
        return !p->in_place;
    case MEMBER(freqs.rope_theta):
        return !p->freqs.values;
    default:
        return strcmp(name, "position_buckets") != 0 || p->relative == RELATIVE_DEBERTA;
    }
}

void value_class_print(const struct value_class *c, char text[CLASS_TEXT])
{
    char name[FIELD_TEXT];
    field_name(&c->factor->field, name);
    if (c->name)
        snprintf(text, CLASS_TEXT, "%s %s", name, c->name);
    else
        snprintf(text, CLASS_TEXT, "%s from %g to %g%s", name, c->least, c->most,
                 c->kind == CLASS_ABOVE_BOUND ? " above its bound" : "");
}
