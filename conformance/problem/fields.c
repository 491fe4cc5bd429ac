/* Fields of problems (see fields.h): the tables fields.csv and scalings.csv, the fields of each kernel, and values as
 * bits and as text. The build turns each row of a table into ROW(...). */
#include "fields.h"
#include "signature.h"
#include "base/text/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table of fields ---- */

/* In the order of enum input_recipe, enum woven and enum posenc_position_kind. */
static const char *const recipe_names[] = { "mix", "onnx",  "onnx_3d", "onnx_no_position_ids",
                                            "any", "edges", "index",   NULL };
static const char *const woven_names[] = { "none",   "rows",    "rows_swapped",
                                           "blocks", "tensors", NULL };
static const char *const position_kind_names[] = { "offset", "i32", "i64", "f32", NULL };

static const struct field shared_fields[] = {
#define ROW(name, member, kind, list, names)                                                   \
    { #name, FIELD_##kind, LIST_##list, offsetof(struct problem, member), names, NULL },
#include "fields.inc"
#undef ROW
};
enum { N_SHARED = sizeof shared_fields / sizeof *shared_fields };

/* Returns true for fields in problem.freqs. */
static bool is_in_freqs(const struct field *field)
{
    return field->offset >= MEMBER(freqs) &&
           field->offset < MEMBER(freqs) + sizeof(struct posenc_freqs_spec);
}

static bool field_applies(const struct field *field, enum posenc_kernel kernel)
{
    static const char common[] = "dtype batch in_place pad offset_bytes seed special";
    const size_t n = strlen(field->name);
    if (text_has_word(common, ' ', field->name, n))
        return true;
    if (strcmp(field->name, "woven") == 0)
        return kernel_woven_row(kernel) != NULL;
    /* Kernels with frequencies have the fields of freqs by these names, the others their own. */
    const bool shares_name = text_has_word("dim rotary_dim", ' ', field->name, n);
    return text_has_word(signature_of(kernel)->fields, ' ', field->name, n) &&
           (!shares_name || is_in_freqs(field) == kernel_has_freqs(kernel));
}

/* Fields of the layout of each tensor. */
static const struct field layout_fields[] = {
    { .name = "pad", .offset = offsetof(struct tensor_layout, pad) },
    { .name = "offset_bytes", .offset = offsetof(struct tensor_layout, offset_bytes) },
    { .name = "stride",
      .list = LIST_STRIDES,
      .offset = offsetof(struct tensor_layout, n_strides) },
};
enum { N_LAYOUT = sizeof layout_fields / sizeof *layout_fields };

struct field parameter_field(const struct parameter *own)
{
    return (struct field){
        .name = own->name, .kind = own->kind, .offset = own->from, .names = own->names
    };
}

void field_name(const struct field *field, char name[FIELD_TEXT])
{
    snprintf(name, FIELD_TEXT, "%s%s%s", field->tensor ? field->tensor : "",
             field->tensor ? "." : "", field->name);
}

/* ---- Fields of a kernel ---- */

enum { MOST_FIELDS = N_SHARED + MOST_PARAMETERS + MOST_TENSORS * N_LAYOUT };

/* Fields of each kernel, computed once, because each check of the suites prints its problem. */
static struct kernel_fields {
    int n;
    struct field fields[MOST_FIELDS];
} lists[POSENC_KERNEL_COUNT];

static void list_fields(struct kernel_fields *list, enum posenc_kernel kernel)
{
    const struct signature *s = signature_of(kernel);
    for (int i = 0; i < N_SHARED; i++)
        if (field_applies(&shared_fields[i], kernel))
            list->fields[list->n++] = shared_fields[i];
    for (EACH_PARAMETER(own, s))
        if (own->name)
            list->fields[list->n++] = parameter_field(own);
    for (EACH_TENSOR(spec, s))
        for (int k = 0; k < N_LAYOUT; k++) {
            struct field field = layout_fields[k];
            field.tensor = spec->name;
            field.offset +=
                MEMBER(layouts) + (size_t)(spec - s->tensors) * sizeof(struct tensor_layout);
            if (spec->form == FORM_TENSOR || spec->form == FORM_POSITIONS)
                list->fields[list->n++] = field;
        }
}

static void list_all_kernels(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        list_fields(&lists[k], (enum posenc_kernel)k);
}

static const struct kernel_fields *fields_of(enum posenc_kernel kernel)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list_all_kernels);
    return &lists[kernel];
}

bool kernel_field(enum posenc_kernel kernel, int i, struct field *field)
{
    const struct kernel_fields *list = fields_of(kernel);
    if (i < 0 || i >= list->n)
        return false;
    *field = list->fields[i];
    return true;
}

bool kernel_field_find(enum posenc_kernel kernel, const char *name, struct field *field)
{
    char full_name[FIELD_TEXT];
    for (int i = 0; kernel_field(kernel, i, field); i++) {
        if (field->tensor)
            field_name(field, full_name);
        if (strcmp(field->tensor ? full_name : field->name, name) == 0)
            return true;
    }
    return false;
}

struct problem problem_blank(enum posenc_kernel kernel)
{
    struct problem blank = {
        .kernel = kernel,
        .freqs = posenc_freqs_spec_init(),
        .scale = 1.0,
        .x_scale = 1.0f,
        .batch = 1,
        .alibi_bias_max = 8.0,
    };
    for (EACH_PARAMETER(own, signature_of(kernel))) {
        const struct field field = parameter_field(own);
        if (own->name)
            field_set_number(&field, &blank, own->value);
    }
    return blank;
}

bool field_is_real(const struct field *field)
{
    return field->kind == FIELD_F64 || field->kind == FIELD_F32;
}

bool field_is_array(const struct field *field) { return field->list > LIST_STRIDES; }

/* ---- Places in the struct ---- */

size_t value_size(enum field_kind kind)
{
    static const size_t sizes[] = {
        [FIELD_I64] = sizeof(int64_t), [FIELD_U64] = sizeof(uint64_t),
        [FIELD_F64] = sizeof(double),  [FIELD_F32] = sizeof(float),
        [FIELD_BOOL] = sizeof(bool),   [FIELD_ENUM] = sizeof(int)
    };
    return sizes[kind];
}

uint64_t value_get(enum field_kind kind, const void *at)
{
    union parameter_value value;
    memcpy(&value, at, value_size(kind));
    switch (kind) {
    case FIELD_BOOL:
        return value.flag;
    case FIELD_F32:
        return double_to_bits((double)value.f32);
    case FIELD_ENUM:
        return (uint64_t)value.member;
    default: /* 64-bit kinds are returned as they are stored */
        return (uint64_t)value.i64;
    }
}

void value_set(enum field_kind kind, void *at, uint64_t bits)
{
    union parameter_value value = { .i64 = (int64_t)bits };
    if (kind == FIELD_BOOL)
        value.flag = bits != 0;
    else if (kind == FIELD_F32)
        value.f32 = (float)bits_to_double(bits);
    else if (kind == FIELD_ENUM)
        value.member = (int)bits;
    memcpy(at, &value, value_size(kind));
}

/* Returns the address of the elements, or NULL if the problem has none. */
static const char *elements_of(const struct field *field, const struct problem *problem)
{
    const char *at = (const char *)problem + field->offset;
    if (field_is_array(field))
        memcpy(&at, (const void *)at, sizeof at);
    return field->list == LIST_STRIDES ? at + sizeof(int64_t) : at;
}

/* Returns the length that other fields prescribe for a list. For lists inside the struct, returns their own. */
static int64_t expected_length(const struct field *field, const struct problem *problem)
{
    int64_t n = N_SECTIONS;
    switch (field->list) {
    case LIST_NONE:
        return 1;
    case LIST_POSITIONS:
        return problem->tokens;
    case LIST_PAIRS:
        return (problem->freqs.dim + 1) / 2;
    case LIST_FACTORS:
        return problem->freqs.dim / 2;
    case LIST_STRIDES:
        memcpy(&n, (const char *)problem + field->offset, sizeof n);
        return n;
    case LIST_SECTIONS:
        while (n > 0 && problem->freqs.mrope_section[n - 1] == 0)
            n--;
    }
    return n;
}

int64_t field_length(const struct field *field, const struct problem *problem)
{
    return elements_of(field, problem) ? expected_length(field, problem) : 0;
}

uint64_t field_get(const struct field *field, const struct problem *problem, int64_t i)
{
    return value_get(field->kind,
                     elements_of(field, problem) + (size_t)i * value_size(field->kind));
}

void field_set(const struct field *field, struct problem *problem, uint64_t bits)
{
    value_set(field->kind, (char *)problem + field->offset, bits);
}

double field_number(const struct field *field, const struct problem *problem)
{
    const uint64_t bits = field_get(field, problem, 0);
    return field_is_real(field) ? bits_to_double(bits) : (double)(int64_t)bits;
}

void field_set_number(const struct field *field, struct problem *problem, double number)
{
    field_set(field, problem,
              field_is_real(field) ? double_to_bits(number) : (uint64_t)(int64_t)number);
}

bool field_is_blank(const struct field *field, const struct problem *problem)
{
    if (field->list != LIST_NONE)
        return field_length(field, problem) == 0;
    const struct problem blank = problem_blank(problem->kernel);
    return field_get(field, problem, 0) == field_get(field, &blank, 0);
}

/* ---- Values as text ---- */

/* Prints the shortest decimal that reads back as the same f64, or f32 if `narrow`. Whole numbers below a million are
 * printed in full. */
static void print_real(double value, bool narrow, char text[FIELD_TEXT])
{
    if (value == floor(value) && fabs(value) < 1e6) {
        snprintf(text, FIELD_TEXT, "%.0f", value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, FIELD_TEXT, "%.*g", digits, value);
        if (narrow ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            break;
    }
    char *exponent = strchr(text, 'e');
    if (!exponent)
        return;
    char *to = exponent + 1; /* e+06 becomes e6 */
    const char *from = to;
    if (*from == '-')
        *to++ = *from++;
    from += strspn(from, "+0");
    memmove(to, from, strlen(from) + 1);
}

const char *const *field_value_names(const struct field *field)
{
    static const char *const truths[] = { "false", "true", NULL };
    return field->kind == FIELD_BOOL ? truths : field->names;
}

size_t field_print(const struct field *field, const struct problem *problem, char *text,
                   size_t room, size_t at)
{
    const int64_t n = field_length(field, problem);
    for (int64_t i = 0; i < n; i++) {
        char value[FIELD_TEXT];
        const uint64_t bits = field_get(field, problem, i);
        if (field_is_real(field))
            print_real(bits_to_double(bits), field->kind == FIELD_F32, value);
        else if (field->kind == FIELD_U64)
            snprintf(value, sizeof value, "%" PRIu64, bits);
        else if (field->kind == FIELD_I64)
            snprintf(value, sizeof value, "%" PRId64, (int64_t)bits);
        else
            snprintf(value, sizeof value, "%s", field_value_names(field)[bits]);
        at = text_append(text, room, at, "%s%s", i > 0 ? "," : "", value);
    }
    return at;
}

/* ---- Text as values ---- */

/* Reads a number or a name that ends at a comma or at the end of the text. */
static bool read_value(const struct field *field, const char *text, const char **end,
                       uint64_t *bits)
{
    char *stop = (char *)text;
    const char *const *names = field_value_names(field);
    errno = 0;
    if (strchr(" \t\n\v\f\r+", text[0])) /* also if text is "": strchr() finds the NUL */
        return false;
    if (names) {
        const size_t n = strcspn(text, ",");
        for (*bits = 0; names[*bits]; ++*bits)
            if (strlen(names[*bits]) == n && strncmp(names[*bits], text, n) == 0)
                break;
        *end = text + n;
        return names[*bits];
    }
    if (field->kind == FIELD_F32)
        *bits = double_to_bits((double)strtof(text, &stop));
    else if (field->kind == FIELD_F64)
        *bits = double_to_bits(strtod(text, &stop));
    else if (field->kind == FIELD_U64)
        *bits = (uint64_t)strtoull(text, &stop, 10);
    else
        *bits = (uint64_t)(int64_t)strtoll(text, &stop, 10);
    *end = stop;
    const bool over =
        errno == ERANGE && (!field_is_real(field) || isinf(bits_to_double(*bits)));
    const bool minus = field->kind == FIELD_U64 && text[0] == '-';
    return stop != text && (*stop == '\0' || *stop == ',') && !over && !minus;
}

/* Describes the values that a field accepts. */
static void describe_expected(const struct field *field, char *text, size_t room)
{
    static const char *const kinds[] = { [FIELD_I64] = "a whole number",
                                         [FIELD_U64] = "a whole number from 0 to 2^64 - 1",
                                         [FIELD_F64] = "a number",
                                         [FIELD_F32] = "a number that f32 holds" };
    static const char *const accepted_lists[] = {
        [LIST_SECTIONS] = "one to three whole numbers with commas between",
        [LIST_STRIDES] = "one to three whole numbers with commas between",
        [LIST_POSITIONS] = "whole numbers with commas between",
        [LIST_PAIRS] = "numbers with commas between",
        [LIST_FACTORS] = "numbers with commas between",
    };
    const char *const *names = field_value_names(field);
    size_t n = 0;
    if (!names)
        text_append(text, room, 0, "%s",
                    field->list ? accepted_lists[field->list] : kinds[field->kind]);
    for (int i = 0; names && names[i]; i++) {
        const char *separator = names[i + 1] ? ", " : " or ";
        n = text_append(text, room, n, "%s%s", i > 0 ? separator : "", names[i]);
    }
}

static bool write_rejection(const struct field *field, const char *text,
                            char error[NOTATION_ERROR])
{
    char what[192], name[FIELD_TEXT];
    describe_expected(field, what, sizeof what);
    field_name(field, name);
    return notation_fail(error, "%s=%.100s: expected %s", name, text, what);
}

/* Sets a list outside the problem. Its length must agree with other fields. */
static bool set_list(const struct field *field, struct problem *problem, const uint64_t *list,
                     int64_t n, char error[NOTATION_ERROR])
{
    const bool positions = field->list == LIST_POSITIONS;
    if (positions && problem->tokens == 0)
        problem->tokens = n;
    memcpy((char *)problem + field->offset, &list, sizeof list);
    const int64_t length = expected_length(field, problem);
    return n == length ||
           notation_fail(error,
                         "%s has %" PRId64 " elements; expected %" PRId64 ", as %s=%" PRId64
                         " says",
                         field->name, n, length, positions ? "tokens" : "its dim",
                         positions ? problem->tokens : problem->freqs.dim);
}

bool field_read(const struct field *field, struct problem *problem, const char *text,
                struct arena *arena, char error[NOTATION_ERROR])
{
    uint64_t inside[N_SECTIONS] = { 0 },
             *list = inside; /* values that the problem itself holds */
    int64_t n = 1;
    for (const char *c = text; *c; c++)
        n += *c == ',';
    if (field_is_array(field))
        list = arena_get(arena, (size_t)n * sizeof *list);
    else if (n > (field->list == LIST_NONE ? 1 : N_SECTIONS))
        return write_rejection(field, text, error);
    if (!list)
        return notation_fail(error, "%s: no memory for %" PRId64 " elements", field->name, n);
    const char *at = text;
    for (int64_t i = 0; i < n; i++, at++)
        if (!read_value(field, at, &at, &list[i]))
            return write_rejection(field, text, error);
    if (field_is_array(field))
        return set_list(field, problem, list, n, error);
    if (field->list == LIST_NONE)
        field_set(field, problem, inside[0]);
    if (field->list == LIST_STRIDES)
        memcpy((char *)problem + field->offset, &n, sizeof n);
    if (field->list != LIST_NONE)
        memcpy((char *)elements_of(field, problem), inside, sizeof inside);
    return true;
}

/* ---- Messages ---- */

bool notation_fail(char error[NOTATION_ERROR], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, NOTATION_ERROR, format, args);
    va_end(args);
    return false;
}

size_t text_append(char *text, size_t room, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n =
        vsnprintf(at < room ? text + at : NULL, at < room ? room - at : 0, format, args);
    va_end(args);
    return at + (size_t)n;
}

/* ---- Scaling families ---- */

/* Numerics modes beside exact that support a family, and members of struct posenc_freqs_spec that it uses, each
 * separated by spaces. In the order of enum posenc_scaling. */
static const struct scaling_row {
    const char *numerics, *parameters;
} scaling_rows[] = {
#define ROW(name, numerics, parameters) { #numerics, #parameters },
#include "scalings.inc"
#undef ROW
};

const char *const scaling_names[] = {
#define ROW(name, numerics, parameters) #name,
#include "scalings.inc"
#undef ROW
    NULL
};

bool scaling_has_parameter(enum posenc_scaling scaling, const char *parameter, size_t length)
{
    return text_has_word(scaling_rows[scaling].parameters, ' ', parameter, length);
}

bool scaling_supports(enum posenc_scaling scaling, enum posenc_numerics numerics)
{
    const char *name = numerics_names[numerics];
    return numerics == POSENC_NUMERICS_EXACT ||
           text_has_word(scaling_rows[scaling].numerics, ' ', name, strlen(name));
}
