/*
 * The quantities of a part by name, in formulas and in texts: see config.h.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct quantity quantities[] = {
#define WHOLE(name)         { #name, IS_WHOLE, offsetof(struct part, name), OF_##name },
#define NUMBER(name)        { #name, IS_NUMBER, offsetof(struct part, name), OF_##name },
#define TRUTH(name)         { #name, IS_TRUTH, offsetof(struct part, name), OF_##name },
#define OF_PLAN(kind, name) { #name, IS_##kind, offsetof(struct part, freqs.name), OF_##name },
#include "part.def"
};

const struct quantity *quantity_find(const char *name, size_t length)
{
    for (const struct quantity *q = quantities; q < quantities + N_QUANTITIES; q++)
        if (strlen(q->name) == length && strncmp(q->name, name, length) == 0)
            return q;
    return NULL;
}

double quantity_get(const struct quantity *q, const struct part *part)
{
    const void *at = (const char *)part + q->offset;
    return q->kind == IS_NUMBER  ? *(const double *)at
           : q->kind == IS_WHOLE ? (double)*(const int64_t *)at
                                 : (double)*(const bool *)at;
}

void quantity_set(const struct quantity *q, struct part *part, double value)
{
    void *at = (char *)part + q->offset;
    if (q->kind == IS_NUMBER)
        *(double *)at = value;
    else if (q->kind == IS_WHOLE)
        *(int64_t *)at = (int64_t)value;
    else
        *(bool *)at = value > 0.0;
}

int64_t part_formula(const struct part *part, const char *at)
{
    static const char signs[] = "+-*/%<>=";
    int64_t value = 0;
    for (char sign = '+'; sign; sign = *at && strchr(signs, *at) ? *at++ : '\0') {
        const size_t n = strcspn(at, "+-*/%<>=}?");
        const struct quantity *q = quantity_find(at, n);
        assert(q || (*at >= '0' && *at <= '9'));
        const int64_t b = q ? (int64_t)quantity_get(q, part) : strtoll(at, NULL, 10);
        value = sign == '+'                    ? value + b
                : sign == '-'                  ? value - b
                : sign == '*'                  ? value * b
                : sign == '/'                  ? value / b
                : sign == '%'                  ? value % b
                : sign == '='                  ? value == b
                : (sign == '<') == (value < b) ? value
                                               : b;
        at += n;
    }
    return value;
}

/* What {...} stands for. */
static int print_value(const struct part *part, const char *at, size_t n, char *to, size_t room)
{
    const struct quantity *q = quantity_find(at, n);
    if (strncmp(at, "encoding", n) == 0)
        return snprintf(to, room, "%s", encodings[part->encoding].name);
    if (q && q->kind == IS_NUMBER)
        return snprintf(to, room, "%.17g", quantity_get(q, part));
    return snprintf(to, room, "%lld", (long long)part_formula(part, at));
}

void part_text(const struct part *part, const char *from, char to[PART_TEXT])
{
    size_t at = 0;
    for (; *from && at < PART_TEXT; from++) {
        if (*from == '{') {
            const size_t n = strcspn(++from, "}");
            at += (size_t)print_value(part, from, n, to + at, PART_TEXT - at);
            from += n;
        } else if (*from == '[') {
            const bool shown = part_formula(part, from + 1) != 0;
            from += strcspn(from, shown ? "?" : "]");
        } else if (*from != ']')
            to[at++] = *from;
    }
    assert(at < PART_TEXT);
    to[at] = '\0';
}
