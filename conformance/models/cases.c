/*
 * Makes of what a configuration says the calls that the model makes: at prefill, and decoding
 * one token at its last position.  shapes.txt lists the calls; this file knows the names that
 * stand there for what differs between models.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/columns.h"
#include "conformance/problem/fields.h"
#include "conformance/problem/signature.h"
#include "config.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFILL = 512, CHECKED = 8, NARROW = 3, MOST_NAMES = 48, TEXT = 512 };

static const struct row {
    const char *what, *where, *end, *label, *fields;
} rows[] = {
#include "shapes.inc"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- names ---- */

struct names {
    size_t n;
    struct {
        const char *name;
        char text[64]; /* what it stands for */
    } list[MOST_NAMES];
};

__attribute__((format(printf, 3, 4))) static void
add_text(struct names *names, const char *name, const char *format, ...)
{
    va_list list;
    assert(names->n < MOST_NAMES);
    names->list[names->n].name = name;
    va_start(list, format);
    vsnprintf(names->list[names->n++].text, sizeof names->list->text, format, list);
    va_end(list);
}

/* A number in words where it is told, nothing where it is not. */
static void add_told(struct names *names, const char *name, bool told, const char *before,
                     int64_t value, const char *after)
{
    if (told)
        add_text(names, name, "%s%lld%s", before, (long long)value, after);
    else
        add_text(names, name, "%s", "");
}

static void add(struct names *names, const char *name, int64_t value)
{
    add_text(names, name, "%lld", (long long)value);
}

static void add_truth(struct names *names, const char *name, bool value)
{
    add_text(names, name, "%s", value ? "true" : "false");
}

static const char *find_name(const struct names *names, const char *name, size_t length)
{
    for (size_t i = 0; i < names->n; i++)
        if (strlen(names->list[i].name) == length &&
            strncmp(names->list[i].name, name, length) == 0)
            return names->list[i].text;
    return NULL;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* What depends on lengths and pictures. */
static void add_lengths(struct names *names, const struct part *part)
{
    const int64_t length = part->length, n = least(PREFILL, length),
                  side = least(part->picture, length), before = least(PREFILL, length - side),
                  original = (int64_t)part->freqs.original_max_position_embeddings;
    const enum posenc_scaling scaling = part->freqs.scaling;
    add(names, "length", length);
    add(names, "n", n);
    add(names, "few", least(CHECKED, length));
    add(names, "middle", part->encoding == TRANSFORMER_XL ? n - least(CHECKED, n) : n / 2);
    add(names, "side", side);
    add(names, "patches", side * side);
    add(names, "before", before);
    add(names, "narrow", least(NARROW, length));
    add(names, "original", original);
    add(names, "longer", scaling == POSENC_SCALING_LONGROPE && original < length);
    add(names, "dynamic", scaling == POSENC_SCALING_DYNAMIC);
    add(names, "picture", part->picture);
    add(names, "tower", part->tower);
    add(names, "text", !part->tower);
    add(names, "norms", part->tower ? 0 : part->norms);
    add(names, "normed_step", part->tower || !part->decodes ? 0 : part->norms);
    add(names, "decodes", part->decodes);
    add_told(names, "after", !part->tower, " after ", before, " of text");
}

/* What depends on widths, heads and windows. */
static void add_sizes(struct names *names, const struct part *part)
{
    const double terms = part->encoding == DEBERTA ? 1.0 + part->c2p + part->p2c : 1.0;
    const bool whole = part->rotary_dim >= part->head_dim;
    add(names, "width", part->width);
    add(names, "rows", part->rows);
    add(names, "first", part->first);
    add_told(names, "from_row", part->first != 0, " from row ", part->first, "");
    add(names, "heads", part->heads);
    add(names, "key_heads", part->key_heads);
    add(names, "head_dim", part->head_dim);
    add(names, "rotary_dim", part->rotary_dim);
    add_told(names, "share", !whole, ", ", part->rotary_dim, " rotated");
    add(names, "pairs", part->freqs.dim / 2);
    add(names, "num_buckets", part->num_buckets);
    add(names, "max_distance", part->max_distance);
    add(names, "window", part->window);
    add(names, "windows", part->windows);
    add_text(names, "x_scale", "%.17g", part->x_scale);
    add_text(names, "scale", "%.17g", 1.0 / sqrt((double)part->head_dim * terms));
    add_text(names, "alibi_bias_max", "%.17g", part->alibi_bias_max);
}

static void add_words(struct names *names, const struct part *part, enum posenc_profile profile)
{
    add_text(names, "profile", "%s", profile_names[profile]);
    add_text(names, "layout", "%s", layout_names[part->layout]);
    add_text(names, "relative", "%s", relative_names[part->relative]);
    add_text(names, "kernel", "%s", encodings[part->encoding].name);
    add_text(names, "weights", "%s",
             part->norms & TOKEN_NORM  ? "across_heads=true"
             : part->norms & UNIT_NORM ? "weight.stride=0 weight_offset=1"
                                       : "weight.stride=0");
    add_text(names, "class", "%s", part->window_class ? " + 1" : "");
    add_truth(names, "window_class", part->window_class);
    add_truth(names, "without_c2p", !part->c2p);
    add_truth(names, "with_p2c", part->p2c);
}

/* ---- lines ---- */

/* The value of "a+b<c", up to `end`: from left to right. */
static int64_t formula(const struct names *names, const char *at, const char *end)
{
    int64_t value = 0;
    for (char sign = '+'; at < end; sign = *at++) {
        const size_t n = strcspn(at, "+-*<>}");
        const char *text = find_name(names, at, n);
        const int64_t operand = strtoll(text ? text : at, NULL, 10);
        assert(text || (*at >= '0' && *at <= '9'));
        value = sign == '+'                          ? value + operand
                : sign == '-'                        ? value - operand
                : sign == '*'                        ? value * operand
                : (sign == '<') == (value < operand) ? value
                                                     : operand;
        at += n;
    }
    return value;
}

/* The text of a line with {...} in it. */
static void expand(const struct names *names, const char *from, char to[TEXT])
{
    size_t at = 0;
    while (*from && at < TEXT) {
        const size_t plain = strcspn(from, "{"), inner = strcspn(from + plain, "}");
        at += (size_t)snprintf(to + at, TEXT - at, "%.*s", (int)plain, from);
        from += plain;
        if (!*from)
            break;
        const char *text = find_name(names, from + 1, inner - 1);
        if (text)
            at += (size_t)snprintf(to + at, TEXT - at, "%s", text);
        else
            at += (size_t)snprintf(to + at, TEXT - at, "%lld",
                                   (long long)formula(names, from + 1, from + inner));
        from += inner + 1;
    }
    assert(at < TEXT);
}

static void set_fields(const struct names *names, const char *fields, struct problem *p)
{
    char text[TEXT] = "", why[NOTATION_ERROR];
    struct arena arena = { NULL };
    expand(names, fields, text);
    for (char *rest, *name = strtok_r(text, " ", &rest); name;
         name = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(name, '=');
        struct field field;
        *value++ = '\0';
        bool read = kernel_field_find(p->kernel, name, &field) &&
                    field_read(&field, p, value, &arena, why);
        /* Numbers that live in the problem, so that the arena may go. */
        assert(read && field.list <= LIST_STRIDES);
        (void)read;
    }
    arena_free(&arena);
}

/* The problem of a line: what `with` says, then the line itself. */
static struct problem problem_of(const struct names *names, const struct part *part,
                                 const char *with, const char *fields)
{
    char kernel[TEXT] = "";
    expand(names, fields, kernel);
    kernel[strcspn(kernel, " ")] = '\0';
    int k = 0;
    while (k < POSENC_KERNEL_COUNT &&
           strcmp(posenc_kernel_name((enum posenc_kernel)k), kernel) != 0)
        k++;
    assert(k < POSENC_KERNEL_COUNT);
    struct problem p = problem_default((enum posenc_kernel)k);
    if (kernel_has_plan(p.kernel))
        p.freqs = part->freqs;
    set_fields(names, with, &p);
    set_fields(names, fields + strcspn(fields, " "), &p);
    problem_settle(&p);
    return p;
}

static void add_case(struct model *m, const struct part *part, const struct names *names,
                     const struct row *row, const struct problem *p)
{
    assert(m->n_cases < MODEL_MAX_CASES);
    struct model_case *c = &m->cases[m->n_cases++];
    const char *profile =
        kernel_has_plan(p->kernel) ? profile_names[p->freqs.profile] : "given";
    char label[TEXT] = "", name[sizeof m->name]; /* a copy: the id lies in the model, too */
    memcpy(name, m->name, sizeof name);
    expand(names, row->label, label);
    snprintf(c->id, sizeof c->id, "%s/f32/%s/%s%s%s-%s", posenc_kernel_name(p->kernel), profile,
             name, *part->name ? "-" : "", part->name, row->end);
    int n = snprintf(c->label, sizeof c->label, "%s%s", part->name, *part->name ? ": " : "");
    snprintf(c->label + n, sizeof c->label - (size_t)n, "%.*s", (int)sizeof c->label - 1 - n,
             label);
    c->problem = *p;
}

/* The lines of what a part is. */
static void add_lines(struct model *m, const struct part *part, const char *what,
                      enum posenc_profile profile)
{
    struct names names = { 0 };
    const char *with = "";
    add_lengths(&names, part);
    add_sizes(&names, part);
    add_words(&names, part, profile);
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        if (strcmp(row->what, what) != 0 ||
            (*row->where && formula(&names, row->where, row->where + strlen(row->where)) == 0))
            continue;
        if (strcmp(row->end, "with") == 0) {
            with = row->fields;
            continue;
        }
        const struct problem p = problem_of(&names, part, with, row->fields);
        if (*row->end)
            add_case(m, part, &names, row, &p);
        else {
            assert(m->n_verify < MODEL_MAX_CASES);
            m->verify[m->n_verify++] = p;
        }
    }
}

/* Types of layers that rotate the same channels of the same heads make the same call. */
static bool rotates_alike(const struct part *a, const struct part *b)
{
    return a->tower == b->tower && a->heads == b->heads && a->key_heads == b->key_heads &&
           a->head_dim == b->head_dim && a->rotary_dim == b->rotary_dim;
}

static void add_rope(const struct config *c, size_t at, struct model *m)
{
    static const enum posenc_profile profiles[] = { POSENC_EXACT, POSENC_HF_F32 };
    struct part whole = c->parts[at];
    const struct part *part = &c->parts[at];
    bool alike = !part->tower, again = false;
    for (size_t i = 0; i < c->n_parts; i++) {
        alike &= rotates_alike(part, &c->parts[i]) || c->parts[i].tower;
        again |= i < at && rotates_alike(part, &c->parts[i]);
    }
    if (alike)
        whole.name = "";
    if (!again)
        add_lines(m, &whole, encodings[part->encoding].shapes, POSENC_EXACT);
    for (int i = 0; i < 2; i++)
        if (scaling_in_profile(part->freqs.scaling, profiles[i]))
            add_lines(m, part, "table", profiles[i]);
}

void config_cases(const struct config *c, struct model *m)
{
    m->n_cases = m->n_verify = 0;
    for (size_t i = 0; i < c->n_parts; i++) {
        const enum encoding encoding = c->parts[i].encoding;
        if (encoding == ROPE_HALF || encoding == ROPE_INTERLEAVED)
            add_rope(c, i, m);
        else
            add_lines(m, &c->parts[i], encodings[encoding].shapes, POSENC_EXACT);
    }
}
