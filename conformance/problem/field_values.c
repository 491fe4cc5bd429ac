/*
 * The values of fields in a problem, as bits and as text: see fields.h.
 */
#include "signature.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Of a value of one number, where it lives. */
static size_t size_of(enum field_kind kind)
{
    return kind == FIELD_BOOL   ? sizeof(bool)
           : kind == FIELD_F32  ? sizeof(float)
           : kind == FIELD_ENUM ? sizeof(int)
                                : sizeof(uint64_t);
}

uint64_t field_get(const struct field *field, const struct problem *problem)
{
    union own value;
    memcpy(&value, (const char *)problem + field->offset, size_of(field->kind));
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
    union own value = { .i64 = (int64_t)bits };
    if (field->kind == FIELD_BOOL)
        value.flag = bits != 0;
    else if (field->kind == FIELD_F32)
        value.f32 = (float)bits_to_double(bits);
    else if (field->kind == FIELD_ENUM)
        value.member = (int)bits;
    memcpy((char *)problem + field->offset, &value, size_of(field->kind));
}

/* ---- Lists ---- */

bool field_is_list(const struct field *field) { return field->kind >= FIELD_SECTIONS; }

/* Where the elements of a list are, NULL where the problem has none. */
static const void *elements_of(const struct field *field, const struct problem *problem)
{
    const char *at = (const char *)problem + field->offset;
    const void *elements;
    if (field->kind == FIELD_SECTIONS || field->kind == FIELD_STRIDES)
        return at + (field->kind == FIELD_STRIDES) * sizeof(int64_t);
    memcpy(&elements, at, sizeof elements);
    return elements;
}

/* How many elements a list has that is given. */
static int64_t expected_length(const struct field *field, const struct problem *problem)
{
    int64_t n;
    switch (field->kind) {
    case FIELD_POSITIONS:
        return problem->tokens;
    case FIELD_PAIRS:
        return (problem->freqs.dim + 1) / 2;
    case FIELD_FACTORS:
        return problem->freqs.dim / 2;
    case FIELD_STRIDES:
        memcpy(&n, (const char *)problem + field->offset, sizeof n);
        return n;
    default:
        return N_SECTIONS;
    }
}

int64_t field_length(const struct field *field, const struct problem *problem)
{
    if (!elements_of(field, problem))
        return 0;
    int64_t n = expected_length(field, problem);
    if (field->kind == FIELD_SECTIONS)
        while (n > 0 && problem->freqs.mrope_section[n - 1] == 0)
            n--;
    return n;
}

uint64_t field_element(const struct field *field, const struct problem *problem, int64_t i)
{
    uint64_t bits;
    memcpy(&bits, (const char *)elements_of(field, problem) + i * (int64_t)sizeof bits,
           sizeof bits);
    return bits;
}

bool field_is_blank(const struct field *field, const struct problem *problem)
{
    if (field_is_list(field))
        return field_length(field, problem) == 0;
    const struct problem blank = problem_blank(problem->kernel);
    return field_get(field, problem) == field_get(field, &blank);
}

/* ---- Values as text ---- */

/* The shortest decimal that is read as the same f64, or as the same f32; whole numbers below
 * a million as such. */
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
    char *to = exponent + 1; /* e+06 is e6 */
    const char *from = to;
    if (*from == '-')
        *to++ = *from++;
    from += strspn(from, "+0");
    memmove(to, from, strlen(from) + 1);
}

void field_print(const struct field *field, uint64_t bits, char text[FIELD_TEXT])
{
    switch (field->kind) {
    case FIELD_U64:
        snprintf(text, FIELD_TEXT, "%llu", (unsigned long long)bits);
        return;
    case FIELD_F64:
    case FIELD_F32:
    case FIELD_PAIRS:
    case FIELD_FACTORS:
        print_real(bits_to_double(bits), field->kind == FIELD_F32, text);
        return;
    case FIELD_BOOL:
        snprintf(text, FIELD_TEXT, "%s", bits ? "true" : "false");
        return;
    case FIELD_ENUM:
        snprintf(text, FIELD_TEXT, "%s", field->names[bits]);
        return;
    case FIELD_I64:
    case FIELD_SECTIONS:
    case FIELD_STRIDES:
    case FIELD_POSITIONS:
        break;
    }
    snprintf(text, FIELD_TEXT, "%lld", (long long)(int64_t)bits);
}

size_t field_print_all(const struct field *field, const struct problem *problem, char *text,
                       size_t room)
{
    char value[FIELD_TEXT];
    if (!field_is_list(field)) {
        field_print(field, field_get(field, problem), value);
        return (size_t)snprintf(text, room, "%s", value);
    }
    size_t length = 0;
    const int64_t n = field_length(field, problem);
    for (int64_t i = 0; i < n; i++) {
        const bool fits = length < room;
        field_print(field, field_element(field, problem, i), value);
        length += (size_t)snprintf(fits ? text + length : NULL, fits ? room - length : 0,
                                   "%s%s", i > 0 ? "," : "", value);
    }
    return length;
}

/* ---- Text as values ---- */

static bool is_real(enum field_kind kind)
{
    return kind == FIELD_F64 || kind == FIELD_F32 || kind == FIELD_PAIRS ||
           kind == FIELD_FACTORS;
}

/* A number that ends where it should, at a comma or at the end of the text. */
static bool read_number(enum field_kind kind, const char *text, const char **end,
                        uint64_t *bits)
{
    char *stop;
    errno = 0;
    if (strchr(" \t\n\v\f\r+", text[0])) /* also the empty one; what strtod() and others skip */
        return false;
    if (kind == FIELD_F32)
        *bits = double_to_bits((double)strtof(text, &stop));
    else if (is_real(kind))
        *bits = double_to_bits(strtod(text, &stop));
    else if (kind == FIELD_U64)
        *bits = (uint64_t)strtoull(text, &stop, 10);
    else
        *bits = (uint64_t)(int64_t)strtoll(text, &stop, 10);
    *end = stop;
    const bool over = errno == ERANGE && (!is_real(kind) || isinf(bits_to_double(*bits)));
    const bool minus = kind == FIELD_U64 && text[0] == '-';
    return stop != text && (*stop == '\0' || *stop == ',') && !over && !minus;
}

static bool read_name(const struct field *field, const char *text, uint64_t *bits)
{
    static const char *const truths[] = { "false", "true", NULL };
    const char *const *names = field->kind == FIELD_BOOL ? truths : field->names;
    for (*bits = 0; names[*bits]; ++*bits)
        if (strcmp(names[*bits], text) == 0)
            return true;
    return false;
}

/* What a field accepts, for a message. */
static void expected(const struct field *field, char *text, size_t room)
{
    static const char *const kinds[] = { "a whole number",
                                         "a whole number from 0 to 2^64 - 1",
                                         "a number",
                                         "a number that f32 holds",
                                         "true or false",
                                         "",
                                         "one to three whole numbers with commas between",
                                         "one to three whole numbers with commas between",
                                         "whole numbers with commas between",
                                         "numbers with commas between",
                                         "numbers with commas between" };
    int n = snprintf(text, room, "%s", kinds[field->kind]);
    for (int i = 0; field->kind == FIELD_ENUM && field->names[i]; i++)
        n += snprintf(text + n, room - (size_t)n, "%s%s",
                      i == 0                ? ""
                      : field->names[i + 1] ? ", "
                                            : " or ",
                      field->names[i]);
}

static bool refuse(const struct field *field, const char *text, char error[NOTATION_ERROR])
{
    char what[192], name[FIELD_TEXT];
    expected(field, what, sizeof what);
    field_name(field, name);
    snprintf(error, NOTATION_ERROR, "%s=%.100s: expected %s", name, text, what);
    return false;
}

static bool read_list(const struct field *field, struct problem *problem, const char *text,
                      struct arena *arena, char error[NOTATION_ERROR])
{
    int64_t n = 1;
    for (const char *c = text; *c; c++)
        n += *c == ',';
    const bool inside = field->kind == FIELD_SECTIONS || field->kind == FIELD_STRIDES;
    if (inside && n > N_SECTIONS)
        return refuse(field, text, error);
    uint64_t *list = arena_get(arena, (size_t)n * sizeof *list);
    if (!list) {
        snprintf(error, NOTATION_ERROR, "%s: no memory for %lld elements", field->name,
                 (long long)n);
        return false;
    }
    const char *at = text;
    for (int64_t i = 0; i < n; i++, at++)
        if (!read_number(field->kind, at, &at, &list[i]))
            return refuse(field, text, error);
    char *to = (char *)problem + field->offset;
    if (field->kind == FIELD_STRIDES) {
        memcpy(to, &n, sizeof n);
        to += sizeof n;
    }
    if (inside) {
        memset(to, 0, N_SECTIONS * sizeof *list);
        memcpy(to, list, (size_t)n * sizeof *list);
        return true;
    }
    if (field->kind == FIELD_POSITIONS && problem->tokens == 0)
        problem->tokens = n;
    memcpy(to, &list, sizeof list);
    if (n == expected_length(field, problem))
        return true;
    snprintf(
        error, NOTATION_ERROR, "%s has %lld elements; expected %lld, as %s=%lld says",
        field->name, (long long)n, (long long)expected_length(field, problem),
        field->kind == FIELD_POSITIONS ? "tokens" : "its dim",
        (long long)(field->kind == FIELD_POSITIONS ? problem->tokens : problem->freqs.dim));
    return false;
}

bool field_read(const struct field *field, struct problem *problem, const char *text,
                struct arena *arena, char error[NOTATION_ERROR])
{
    const char *end = "";
    uint64_t bits;
    if (field_is_list(field))
        return read_list(field, problem, text, arena, error);
    const bool named = field->kind == FIELD_BOOL || field->kind == FIELD_ENUM;
    if (named ? !read_name(field, text, &bits)
              : !read_number(field->kind, text, &end, &bits) || *end != '\0')
        return refuse(field, text, error);
    field_set(field, problem, bits);
    return true;
}
