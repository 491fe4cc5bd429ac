/*
 * Reads classes.txt for a kernel, draws numbers from its classes and finds them again: see
 * classes.h.
 */
#include "classes.h"

#include "conformance/problem/columns.h"
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct line {
    const char *fields, *of, *classes, *unused, *unused_too;
} lines[] = {
#include "classes.inc"
};
enum { N_LINES = sizeof lines / sizeof *lines };

/* ---- Random numbers ---- */

uint64_t draw_bits(struct drawing *d) { return mix64(d->seed, d->next++); }

int64_t draw_between(struct drawing *d, int64_t least, int64_t most)
{
    return least + (int64_t)(draw_bits(d) % (uint64_t)(most - least + 1));
}

bool draw_coin(struct drawing *d) { return draw_bits(d) >> 63; }

/* In [0, 1). */
static double draw_fraction(struct drawing *d)
{
    return (double)(draw_bits(d) >> 11) * 0x1p-53;
}

/* ---- Which line is of a field ---- */

static bool has(const char *words, const char *word)
{
    return has_word(words, ' ', word, strlen(word));
}

/* Words that are neither of these name signatures, of which one has to be the kernel's. */
static bool applies(const char *of, enum posenc_kernel kernel, const struct tensor_row *row)
{
    static const char others[] = "size even given planned apart single input output positions";
    bool named = false, found = false;
    for (const char *word = of; *word; word += strspn(word, " ")) {
        const size_t n = strcspn(word, " ");
        const char *name = signature_of(kernel)->name;
        const bool signature = !has_word(others, ' ', word, n);
        named = named || signature;
        found = found || (signature && strlen(name) == n && strncmp(name, word, n) == 0);
        word += n;
    }
    const bool positions = row && row->form == FORM_POSITIONS,
               output = row && row->role == ROLE_OUTPUT;
    return (!named || found) && !(has(of, "given") && kernel_has_freqs(kernel)) &&
           !(has(of, "planned") && !kernel_has_freqs(kernel)) &&
           !(has(of, "apart") && kernel_in_place(kernel)) &&
           !(has(of, "single") && kernel_has_batch(kernel)) &&
           !(has(of, "positions") && !positions) && !(has(of, "output") && !output) &&
           !(has(of, "input") && (output || positions));
}

/* -1: none. */
static int line_of(const struct factor *factor, enum posenc_kernel kernel)
{
    char name[FIELD_TEXT];
    snprintf(name, sizeof name, "%s%s", factor->row ? "." : "", factor->field.name);
    for (int i = 0; i < N_LINES; i++)
        if ((has(lines[i].fields, name) || (strcmp(lines[i].fields, "*") == 0 && !factor->row &&
                                            factor->how == DRAWN_NUMBER)) &&
            applies(lines[i].of, kernel, factor->row))
            return i;
    return -1;
}

/* ---- What a line says ---- */

/* A number, or one and a field: "8", "2head_dim", "keys". */
static bool read_term(const char **at, enum posenc_kernel kernel, double sign, struct end *end)
{
    const char *from = *at;
    char name[FIELD_TEXT], *after;
    struct field field;
    const double number = strtod(from, &after), times = after == from ? 1.0 : number;
    const size_t n = strcspn(after, "+-:, ");
    snprintf(name, sizeof name, "%.*s", (int)n, after);
    *at = after + n;
    if (n == 0 && after != from) {
        end->constant += sign * number;
        return true;
    }
    if (n == 0 || end->n == MOST_TERMS || !kernel_field_find(kernel, name, &field))
        return false;
    end->terms[end->n++] =
        (struct term){ (float)(sign * times), (uint16_t)field.offset, field.kind == FIELD_F64 };
    return true;
}

static bool read_end(const char **at, enum posenc_kernel kernel, struct end *end)
{
    *end = (struct end){ .constant = **at == '-' ? -0.0 : 0.0 };
    do {
        const double sign = **at == '-' ? -1.0 : 1.0;
        *at += **at == '-' || **at == '+';
        if (!read_term(at, kernel, sign, end))
            return false;
    } while (**at == '+' || **at == '-');
    return true;
}

/* A name, and ranges if there are any. */
static bool read_class(const char **at, enum posenc_kernel kernel, struct value_class *c)
{
    size_t n = strcspn(*at, ", ");
    *c = (struct value_class){ .n = 0 };
    snprintf(c->name, sizeof c->name, "%.*s", (int)n, *at);
    *at += n;
    while (**at == ' ') {
        struct range *range = &c->ranges[c->n++];
        ++*at;
        if (c->n > MOST_RANGES || !read_end(at, kernel, &range->least))
            return false;
        range->most = range->least;
        if (**at == ':' && (++*at, !read_end(at, kernel, &range->most)))
            return false;
    }
    *at += strspn(*at, ", ");
    return true;
}

/* Of an enum or a flag all members have a class, unless a line names some. */
static void take_members(struct factor *factor)
{
    static const char *const truths[] = { "false", "true", NULL };
    const char *const *names = factor->field.names ? factor->field.names : truths;
    const int most = factor->n;
    struct value_class named[MOST_CLASSES];
    memcpy(named, factor->classes, sizeof named);
    factor->n = 0;
    for (int i = 0; names[i] && factor->n < MOST_CLASSES; i++) {
        bool wanted = factor->line < 0;
        for (int c = 0; c < most; c++)
            wanted = wanted || strcmp(named[c].name, names[i]) == 0;
        struct value_class *c = &factor->classes[factor->n];
        *c = (struct value_class){ .member = i };
        snprintf(c->name, sizeof c->name, "%s", names[i]);
        factor->n += wanted;
    }
}

static bool read_classes(struct factor *factor, enum posenc_kernel kernel)
{
    const char *at = factor->line < 0 ? "" : lines[factor->line].classes;
    while (*at) {
        struct value_class *c = &factor->classes[factor->n];
        if (factor->n == MOST_CLASSES || !read_class(&at, kernel, c))
            return false;
        c->member = factor->n++;
        if ((c->n > 0) != (factor->how == DRAWN_NUMBER))
            return false;
    }
    if (factor->how == DRAWN_MEMBER && (factor->line < 0 || factor->n > 0))
        take_members(factor);
    return true;
}

/* ---- The factors of a kernel ---- */

/* Whether some family of scaling takes a parameter of that name; "short_factor_last" is of those
 * that take short_factor. */
static const char *parameter_of(const struct factor *factor)
{
    const char *name = factor->field.name, *last = strstr(name, "_last");
    const size_t n = last ? (size_t)(last - name) : strlen(name);
    for (int s = 0; scaling_names[s]; s++)
        if (scaling_takes((enum posenc_scaling)s, name, n))
            return name;
    return NULL;
}

static void describe(struct factor *factor, enum posenc_kernel kernel)
{
    const struct field *field = &factor->field;
    for (EACH_TENSOR(row, signature_of(kernel)))
        if (field->tensor && strcmp(row->name, field->tensor) == 0)
            factor->row = row;
    factor->how = field->list == LIST_STRIDES ? DRAWN_STRIDES
                  : field->list != LIST_NONE  ? DRAWN_LIST
                  : field->names || field->kind == FIELD_BOOL || field->kind == FIELD_ENUM
                      ? DRAWN_MEMBER
                      : DRAWN_NUMBER;
    factor->line = line_of(factor, kernel);
    factor->parameter = factor->row ? NULL : parameter_of(factor);
    factor->size = factor->line >= 0 && has(lines[factor->line].of, "size");
    factor->even = factor->line >= 0 && has(lines[factor->line].of, "even");
}

static int by_line(const void *a, const void *b)
{
    const struct factor *f = a, *g = b;
    return f->line != g->line                  ? f->line - g->line
           : f->field.offset < g->field.offset ? -1
                                               : f->field.offset > g->field.offset;
}

static void drop_class(struct factor *factor, const char *name)
{
    int n = 0;
    for (int c = 0; c < factor->n; c++)
        if (strcmp(factor->classes[c].name, name) != 0)
            factor->classes[n++] = factor->classes[c];
    factor->n = n;
}

bool space_make(struct space *space, enum posenc_kernel kernel, bool narrow, bool large,
                char error[NOTATION_ERROR])
{
    *space = (struct space){ .kernel = kernel };
    struct field field;
    for (int i = 0; kernel_field(kernel, i, &field); i++) {
        struct factor factor = { .field = field };
        char name[FIELD_TEXT];
        field_name(&field, name);
        describe(&factor, kernel);
        if (!read_classes(&factor, kernel))
            return write_error(error, "classes.txt: %s of %s: %.200s", name,
                               posenc_kernel_name(kernel), lines[factor.line].classes);
        if (!narrow && field.names == dtype_names)
            factor.n = 1;
        if (factor.row && tensor_dims(factor.row) < 3)
            drop_class(&factor, "swapped"); /* one dimension beside the last has no order */
        if (factor.size && !large)
            drop_class(&factor, "large");
        if (factor.row && factor.row->role == ROLE_X && !kernel_takes_x(kernel))
            continue;
        if (factor.n > 0 && space->n_factors < MOST_FACTORS)
            space->factors[space->n_factors++] = factor;
    }
    qsort(space->factors, (size_t)space->n_factors, sizeof *space->factors, by_line);
    for (int f = 0; f < space->n_factors; f++) {
        space->factors[f].first = space->n_classes;
        space->n_classes += space->factors[f].n;
    }
    return true;
}

int factor_large(const struct factor *f)
{
    int c = f->size ? f->n - 1 : -1;
    while (c >= 0 && strcmp(f->classes[c].name, "large") != 0)
        c--;
    return c;
}

void class_name(const struct space *space, int number, char name[FIELD_TEXT + CLASS_NAME])
{
    const struct factor *f = space->factors;
    while (number >= f->first + f->n)
        f++;
    field_name(&f->field, name);
    const size_t n = strlen(name);
    snprintf(name + n, FIELD_TEXT + CLASS_NAME - n, " %s", f->classes[number - f->first].name);
}

/* ---- Numbers ---- */

static double end_value(const struct end *end, const struct problem *problem)
{
    double value = end->constant;
    for (int i = 0; i < end->n; i++) {
        union parameter_value own;
        memcpy(&own, (const char *)problem + end->terms[i].member, sizeof own);
        value += (double)end->terms[i].times * (end->terms[i].real ? own.f64 : (double)own.i64);
    }
    return value;
}

/* The ends of a range: of integers whole, of even ones even. */
static bool ends_of(const struct factor *factor, const struct range *range,
                    const struct problem *problem, double *least, double *most)
{
    const double step = factor->even ? 2.0 : 1.0;
    *least = end_value(&range->least, problem);
    *most = end_value(&range->most, problem);
    if (!field_is_real(&factor->field)) {
        *least = ceil(*least / step) * step;
        *most = floor(*most / step) * step;
    }
    return *least <= *most;
}

/* Evenly, or by magnitude where that spans far. */
static double draw_number(struct drawing *d, double least, double most, bool real)
{
    const double u = draw_fraction(d);
    const bool far = least * most > 0.0 && fmax(most / least, least / most) > 50.0;
    if (least == most)
        return least;
    if (far)
        return copysign(exp(log(fabs(least)) + u * (log(fabs(most)) - log(fabs(least)))),
                        least);
    return real ? least + u * (most - least) : floor(least + u * (most - least + 1.0));
}

/* A real in a few digits, so that a line of the notation is short. */
static double shortened(double value)
{
    char text[FIELD_TEXT];
    snprintf(text, sizeof text, "%.3g", value);
    return strtod(text, NULL);
}

static bool number_draw(const struct factor *factor, int c, struct problem *problem,
                        struct drawing *d)
{
    const struct value_class *class = &factor->classes[c];
    const bool real = field_is_real(&factor->field);
    const int from = (int)draw_between(d, 0, class->n - 1);
    for (int i = 0; i < class->n; i++) {
        double least, most;
        if (!ends_of(factor, &class->ranges[(from + i) % class->n], problem, &least, &most))
            continue;
        double value = draw_number(d, least, most, real);
        if (real && least < most)
            value = fmin(fmax(shortened(value), least), most);
        else if (!real)
            value = factor->even ? 2.0 * floor(value / 2.0) : floor(value);
        field_set(&factor->field, problem,
                  real ? double_to_bits(value) : (uint64_t)(int64_t)value);
        return true;
    }
    return false;
}

static double number_of(const struct factor *factor, const struct problem *problem)
{
    const uint64_t bits = field_get(&factor->field, problem, 0);
    return field_is_real(&factor->field) ? bits_to_double(bits) : (double)(int64_t)bits;
}

static bool number_has(const struct factor *factor, int c, const struct problem *problem)
{
    const struct value_class *class = &factor->classes[c];
    const double value = number_of(factor, problem);
    bool found = false;
    for (int i = 0; i < class->n && !found; i++) {
        double least, most;
        /* A zero has the sign that the class gives it; f32 rounds the ends. */
        found =
            ends_of(factor, &class->ranges[i], problem, &least, &most) &&
            (value == 0.0 && least == most
                 ? least == 0.0 && (!field_is_real(&factor->field) ||
                                    (signbit(value) != 0) == (signbit(least) != 0))
                 : value >= least - 1e-6 * fabs(least) && value <= most + 1e-6 * fabs(most));
    }
    return found;
}

bool class_least(const struct factor *factor, int c, const struct problem *problem,
                 int64_t *least)
{
    const struct value_class *class = &factor->classes[c];
    bool found = false;
    for (int i = 0; i < class->n; i++) {
        double low, high;
        if (!ends_of(factor, &class->ranges[i], problem, &low, &high))
            continue;
        *least = found && (double)*least < low ? *least : (int64_t)low;
        found = true;
    }
    return found;
}

/* ---- Classes ---- */

bool class_draw(const struct factor *factor, int c, struct problem *problem,
                struct drawing *drawing)
{
    switch (factor->how) {
    case DRAWN_MEMBER:
        field_set(&factor->field, problem, (uint64_t)factor->classes[c].member);
        return true;
    case DRAWN_LIST:
        return list_draw(factor, c, problem, drawing);
    case DRAWN_STRIDES:
        return strides_draw(factor, c, problem, drawing);
    default:
        return number_draw(factor, c, problem, drawing);
    }
}

bool class_has(const struct factor *factor, int c, const struct problem *problem)
{
    switch (factor->how) {
    case DRAWN_MEMBER:
        return field_get(&factor->field, problem, 0) == (uint64_t)factor->classes[c].member;
    case DRAWN_LIST:
        return list_has(factor, c, problem);
    case DRAWN_STRIDES:
        return strides_has(factor, c, problem);
    default:
        return number_has(factor, c, problem);
    }
}

/* ---- What reaches a kernel ---- */

static bool is_of_positions(const char *name)
{
    return has("positions batch_shift time_step mrope_grid", name);
}

/* Of what lies at strides of its own pad and token_major of the problem say nothing. */
static bool some_is_dense(const struct problem *problem)
{
    bool some = false;
    for (EACH_TENSOR(row, signature_of(problem->kernel)))
        some = some || (row->form == FORM_TENSOR && tensor_present(problem, row) &&
                        tensor_layout(problem, row)->n_strides == 0);
    return some;
}

bool factor_reaches(const struct factor *factor, const struct problem *problem)
{
    const char *name = factor->field.name, *parameter = factor->parameter;
    const size_t n = parameter ? strlen(parameter) : 0,
                 last = parameter && strstr(parameter, "_last") ? strlen("_last") : 0;
    if (factor->row)
        return tensor_present(problem, factor->row) &&
               !tensor_shares_output(problem, factor->row) &&
               !(factor->row->form == FORM_POSITIONS &&
                 problem->position_kind == POSENC_OFFSET) &&
               !(strcmp(name, "pad") == 0 && tensor_layout(problem, factor->row)->n_strides);
    if (parameter)
        return scaling_takes(problem->freqs.scaling, parameter, n - last);
    if (is_of_positions(name) && problem->position_kind == POSENC_OFFSET)
        return false;
    if (strcmp(name, "batch_shift") == 0)
        return problem->batch > 1;
    if (strcmp(name, "woven") == 0)
        return !problem->in_place;
    if (strcmp(name, "time_step") == 0)
        return problem->position_kind == POSENC_POSITIONS_F32;
    if (strcmp(name, "mrope_layout") == 0 || strcmp(name, "mrope_grid") == 0)
        return problem->freqs.mrope_section[0] != 0;
    if (strcmp(name, "rope_theta") == 0)
        return !problem->freqs.values;
    if (strcmp(name, "position_buckets") == 0)
        return problem->relative == RELATIVE_DEBERTA;
    return !has("pad token_major", name) || some_is_dense(problem);
}
