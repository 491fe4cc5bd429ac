/*
 * Where the quantities of a part are from: a key of the file, a default of the class of its type, a
 * formula of keys, or what C made of these.  members.c tells of those it reads, and they are copied
 * with the part.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/fields.h"
#include "base/text/text.h"
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the path of a member in its document ---- */

/* Numbers, texts and objects are in one place; true and false are told apart by their object and key. */
static bool is_member(const struct member *m, const json_t *object, const char *key,
                      const json_t *value)
{
    const char *dot = strrchr(m->name, '.');
    return value == m->value &&
           (!json_is_boolean(value) ||
            (object == m->object && strcmp(key, dot ? dot + 1 : m->name) == 0));
}

static bool find_path(const json_t *in, const struct member *m, const char *before,
                      char path[ORIGIN_TEXT]);

/* Whether the member is this one of an object or an array, or within it. */
static bool is_here(const json_t *in, const char *key, const json_t *value,
                    const struct member *m, const char *before, char path[ORIGIN_TEXT])
{
    char here[ORIGIN_TEXT];
    snprintf(here, sizeof here, "%.60s%.35s", before, key);
    if (is_member(m, in, key, value)) {
        text_plain(here, path, ORIGIN_TEXT);
        return true;
    }
    strcat(here, strlen(here) + 1 < sizeof here ? "." : "");
    return find_path(value, m, here, path);
}

static bool find_path(const json_t *in, const struct member *m, const char *before,
                      char path[ORIGIN_TEXT])
{
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)in, key, value)
    {
        if (is_here(in, key, value, m, before, path))
            return true;
    }
    json_array_foreach(in, i, value)
    {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        if (is_here(in, index, value, m, before, path))
            return true;
    }
    return false;
}

bool member_path(const struct fields *f, const struct member *m, char path[ORIGIN_TEXT])
{
    if (m->value && find_path(f->root, m, f->before ? f->before : "", path))
        return true;
    snprintf(path, ORIGIN_TEXT, "%s%s", f->before ? f->before : "", m->name);
    return false;
}

/* ---- what is remembered ---- */

void origin_member(const struct fields *f, const struct member *m, double value,
                   struct origin *to)
{
    const bool there = member_path(f, m, to->text);
    if (!there)
        find_path(f->defaults, m, "", to->text);
    to->kind = there ? IN_FILE : OF_CLASS;
    to->value = value;
    *to->formula = '\0';
}

/* A quantity in a formula as the key that says it, or as the formula that gives it where that is short. */
static void print_operand(const struct part *part, const struct quantity *q, bool alone,
                          char *to)
{
    enum { SHORT = 40 };
    const struct origin *o = &part->origins[q->origin];
    const double value = quantity_get(q, part);
    const bool same = value >= o->value && value <= o->value;
    if (same && (o->kind == IN_FILE || o->kind == OF_CLASS))
        snprintf(to, ORIGIN_TEXT, "%s", o->text);
    else if (same && *o->formula && strlen(o->formula) < SHORT)
        snprintf(to, ORIGIN_TEXT, strchr(o->formula, ' ') && !alone ? "(%.90s)" : "%s",
                 o->formula);
    else if (same && o->kind != UNSAID && !*o->formula)
        snprintf(to, ORIGIN_TEXT, "%.10g", value);
    else
        snprintf(to, ORIGIN_TEXT, "%s", q->name);
}

static size_t print_sign(char to[ORIGIN_TEXT], size_t n, char sign)
{
    return sign == '<'   ? append(to, ORIGIN_TEXT, n, ", at most ")
           : sign == '>' ? append(to, ORIGIN_TEXT, n, ", at least ")
           : sign        ? append(to, ORIGIN_TEXT, n, " %c ", sign)
                         : n;
}

/* What changes nothing is not said: a 0 that is added, a 1 that multiplies. */
static bool is_idle(const struct part *part, const struct quantity *q, char sign)
{
    const double value = q ? quantity_get(q, part) : (double)NAN;
    return ((sign == '+' || sign == '-') && fabs(value) <= 0.0) ||
           (sign == '*' && fabs(value - 1.0) <= 0.0);
}

/* "width/heads" as "hidden_size / num_attention_heads"; "" where it is of constants alone. */
static void print_formula(const struct part *part, const char *at, char to[ORIGIN_TEXT])
{
    bool keys = false, sum = false; /* something was added that a product must not take apart */
    size_t n = 0;
    for (char sign = '\0';; sign = *at++) {
        char operand[ORIGIN_TEXT];
        const size_t length = strcspn(at, "+-*/%<>=");
        const struct quantity *q = quantity_find(at, length);
        if (q)
            print_operand(part, q, !sign && !at[length], operand);
        else
            snprintf(operand, sizeof operand, "%.*s", (int)length, at);
        at += length;
        if (!is_idle(part, q, sign)) {
            if (sum && sign && strchr("*/%", sign)) {
                memmove(to + 1, to, ORIGIN_TEXT - 2);
                *to = '(';
                n = append(to, ORIGIN_TEXT, n + 1, ")");
                sum = false;
            }
            sum |= sign == '+' || sign == '-';
            n = append(to, ORIGIN_TEXT, print_sign(to, n, sign), "%s", operand);
            keys |= !isdigit((unsigned char)*operand);
        }
        if (!*at)
            break;
    }
    if (!keys)
        *to = '\0';
}

void origin_formula(const struct fields *f, const char *missing, const struct part *part,
                    const char *formula, double value, struct origin *to)
{
    char text[ORIGIN_TEXT] = "";
    print_formula(part, formula, text);
    snprintf(to->text, sizeof to->text, "%s%s", *missing && f->before ? f->before : "",
             missing);
    memcpy(to->formula, text, sizeof text);
    to->kind = *missing ? ASSUMED : FOLLOWS;
    to->value = value;
}

void origin_say(struct part *part, const char *quantity, const char *format, ...)
{
    const struct quantity *q = quantity_find(quantity, strlen(quantity));
    struct origin *to = &part->origins[q                                   ? q->origin
                                       : strcmp(quantity, "scaling") == 0  ? OF_scaling
                                       : strcmp(quantity, "encoding") == 0 ? OF_encoding
                                                                           : OF_mrope_section];
    va_list list;
    va_start(list, format);
    vsnprintf(to->formula, sizeof to->formula, format, list);
    va_end(list);
    to->kind = FOLLOWS;
    to->value = q ? quantity_get(q, part) : 0.0;
    *to->text = '\0';
}

/* ---- how it is said ---- */

bool origin_text(const struct origin *o, double value, char text[ORIGIN_SENTENCE])
{
    char found[48] = "";
    if (value < o->value || value > o->value)
        snprintf(found, sizeof found, ", %.10g there", o->value);
    switch (o->kind) {
    case UNSAID:
        *text = '\0';
        return false;
    case IN_FILE:
        snprintf(text, ORIGIN_SENTENCE, "%s%s%s", *found ? "from " : "", o->text, found);
        return true;
    case OF_CLASS:
        snprintf(text, ORIGIN_SENTENCE,
                 "assumed: the default of its class, as %s is not there%s", o->text, found);
        return true;
    case ASSUMED:
        snprintf(text, ORIGIN_SENTENCE, "assumed: %s%s%s is not there%s", o->formula,
                 *o->formula ? ", as " : "", o->text, found);
        return true;
    case FOLLOWS:
        snprintf(text, ORIGIN_SENTENCE, "%s%s", *o->formula ? o->formula : "what its code does",
                 found);
        return true;
    }
    return false;
}
