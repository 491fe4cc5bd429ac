/* Values of fields as bits and as text; see fields.h. */
#include "signature.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool write_error(char error[NOTATION_ERROR], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, NOTATION_ERROR, format, args);
    va_end(args);
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
    signature_own_defaults(signature_of(kernel), &blank);
    return blank;
}

double bits_to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t double_to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

bool field_is_real(const struct field *field)
{
    return field->kind == FIELD_F64 || field->kind == FIELD_F32;
}

/* ---- Places in the struct ---- */

static size_t size_of(enum field_kind kind)
{
    return kind == FIELD_BOOL   ? sizeof(bool)
           : kind == FIELD_F32  ? sizeof(float)
           : kind == FIELD_ENUM ? sizeof(int)
                                : sizeof(uint64_t);
}

/* Returns the address of the elements, or NULL if the problem has none. */
static const char *elements_of(const struct field *field, const struct problem *problem)
{
    const char *at = (const char *)problem + field->offset;
    if (field->list > LIST_STRIDES)
        memcpy(&at, (const void *)at, sizeof at);
    return field->list == LIST_STRIDES ? at + sizeof(int64_t) : at;
}

/* Returns the length of a list that is present. */
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
    union parameter_value value;
    const size_t size = size_of(field->kind);
    memcpy(&value, elements_of(field, problem) + (size_t)i * size, size);
    switch (field->kind) {
    case FIELD_BOOL:
        return value.flag;
    case FIELD_F32:
        return double_to_bits((double)value.f32);
    case FIELD_ENUM:
        return (uint64_t)value.member;
    default:
        return (uint64_t)value.i64;
    }
}

void field_set(const struct field *field, struct problem *problem, uint64_t bits)
{
    union parameter_value value = { .i64 = (int64_t)bits };
    if (field->kind == FIELD_BOOL)
        value.flag = bits != 0;
    else if (field->kind == FIELD_F32)
        value.f32 = (float)bits_to_double(bits);
    else if (field->kind == FIELD_ENUM)
        value.member = (int)bits;
    memcpy((char *)problem + field->offset, &value, size_of(field->kind));
}

bool field_is_blank(const struct field *field, const struct problem *problem)
{
    if (field->list != LIST_NONE)
        return field_length(field, problem) == 0;
    const struct problem blank = problem_blank(problem->kernel);
    return field_get(field, problem, 0) == field_get(field, &blank, 0);
}

/* ---- Values as text ---- */

size_t text_append(char *text, size_t room, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n =
        vsnprintf(at < room ? text + at : NULL, at < room ? room - at : 0, format, args);
    va_end(args);
    return at + (size_t)n;
}

/* Prints the shortest decimal that reads back as the same f64, or f32 if `narrow`. Whole numbers
 * below a million are printed in full. */
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

/* Returns the names of the values, or NULL if they are numbers. */
static const char *const *value_names(const struct field *field)
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
            snprintf(value, sizeof value, "%s", value_names(field)[bits]);
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
    const char *const *names = value_names(field);
    errno = 0;
    if (strchr(" \t\n\v\f\r+", text[0])) /* "" and what strtod() would skip */
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
    static const char *const kinds[] = { "a whole number", "a whole number from 0 to 2^64 - 1",
                                         "a number", "a number that f32 holds" };
    static const char *const lists[] = { "",
                                         "one to three whole numbers with commas between",
                                         "one to three whole numbers with commas between",
                                         "whole numbers with commas between",
                                         "numbers with commas between",
                                         "numbers with commas between" };
    const char *const *names = value_names(field);
    size_t n = text_append(text, room, 0, "%s",
                           names         ? ""
                           : field->list ? lists[field->list]
                                         : kinds[field->kind]);
    for (int i = 0; names && names[i]; i++)
        n = text_append(text, room, n, "%s%s",
                        i == 0         ? ""
                        : names[i + 1] ? ", "
                                       : " or ",
                        names[i]);
}

static bool write_rejection(const struct field *field, const char *text,
                            char error[NOTATION_ERROR])
{
    char what[192], name[FIELD_TEXT];
    describe_expected(field, what, sizeof what);
    field_name(field, name);
    return write_error(error, "%s=%.100s: expected %s", name, text, what);
}

/* Sets a list in an array of its own. Its length must agree with other fields. */
static bool set_list(const struct field *field, struct problem *problem, const uint64_t *list,
                     int64_t n, char error[NOTATION_ERROR])
{
    const bool positions = field->list == LIST_POSITIONS;
    if (positions && problem->tokens == 0)
        problem->tokens = n;
    memcpy((char *)problem + field->offset, &list, sizeof list);
    const int64_t length = expected_length(field, problem);
    return n == length || write_error(error,
                                      "%s has %" PRId64 " elements; expected %" PRId64
                                      ", as %s=%" PRId64 " says",
                                      field->name, n, length, positions ? "tokens" : "its dim",
                                      positions ? problem->tokens : problem->freqs.dim);
}

bool field_read(const struct field *field, struct problem *problem, const char *text,
                struct arena *arena, char error[NOTATION_ERROR])
{
    uint64_t few[N_SECTIONS] = { 0 }, *list = few;
    int64_t n = 1;
    for (const char *c = text; *c; c++)
        n += *c == ',';
    if (field->list > LIST_STRIDES)
        list = arena_get(arena, (size_t)n * sizeof *list);
    else if (n > (field->list == LIST_NONE ? 1 : N_SECTIONS))
        return write_rejection(field, text, error);
    if (!list)
        return write_error(error, "%s: no memory for %" PRId64 " elements", field->name, n);
    const char *at = text;
    for (int64_t i = 0; i < n; i++, at++)
        if (!read_value(field, at, &at, &list[i]))
            return write_rejection(field, text, error);
    if (field->list > LIST_STRIDES)
        return set_list(field, problem, list, n, error);
    if (field->list == LIST_NONE)
        field_set(field, problem, few[0]);
    if (field->list == LIST_STRIDES)
        memcpy((char *)problem + field->offset, &n, sizeof n);
    if (field->list != LIST_NONE)
        memcpy((char *)elements_of(field, problem), few, sizeof few);
    return true;
}
