/*
 * Members of a configuration: under any of their spellings, in range, or refused by name.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/columns.h"
#include "conformance/problem/fields.h"
#include "base/text/text.h"
#include "config.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *whose, *quantity, *spellings, *accepted, *otherwise;
} rows[] = {
#include "members.inc"
#include "keys.inc"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

int refuse(const struct fields *f, const char *format, ...)
{
    char sentence[MODEL_ERROR];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    text_plain(sentence, f->error, MODEL_ERROR);
    return -1;
}

void note(const struct fields *f, const char *format, ...)
{
    char sentence[MODEL_NOTES];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    const size_t n =
        append(f->notes, MODEL_NOTES, strlen(f->notes), "%s", *f->notes ? ".  " : "");
    if (n < MODEL_NOTES)
        text_plain(sentence, f->notes + n, MODEL_NOTES - n);
}

/* Whether two lists have a word in common. */
static bool share_word(const char *words, const char *others)
{
    for (; *words; words += strspn(words, " ")) {
        const size_t n = strcspn(words, " ");
        if (has_word(others, ' ', words, n))
            return true;
        words += n;
    }
    return false;
}

/* ---- members ---- */

struct member member_of(const json_t *object, const char *spellings)
{
    struct member first = { .value = NULL };
    for (const char *at = spellings; *at; at += strspn(at, " ")) {
        struct member one = { .value = object };
        char path[sizeof one.name], *rest;
        const size_t n = strcspn(at, " ");
        snprintf(one.name, sizeof one.name, "%.*s", (int)n, at);
        strcpy(path, one.name);
        for (char *key = strtok_r(path, ".", &rest); key; key = strtok_r(NULL, ".", &rest)) {
            one.object = one.value;
            one.value = json_is_array(one.value)
                            ? json_array_get(one.value, strtoul(key, NULL, 10))
                            : json_object_get(one.value, key);
        }
        if (one.value && !json_is_null(one.value))
            return one;
        if (at == spellings)
            memcpy(first.name, one.name, sizeof first.name);
        at += n;
    }
    return first;
}

/* The next of several spellings, up to the end or a "/"; false: there is none. */
static bool next_spelling(const char **at, char one[64])
{
    const size_t n = strcspn(*at, " ");
    snprintf(one, 64, "%.*s", (int)n, *at);
    *at += n;
    *at += strspn(*at, " ");
    return *one && strcmp(one, "/") != 0;
}

/* What the classes of the type take of a member, or of the list "a" that "a.0" is of. */
static const json_t *defaults_of(const struct fields *f, const char *name)
{
    const size_t n = strcspn(name, ".");
    const bool of_list = name[n] && isdigit((unsigned char)name[n + 1]);
    char list[64];
    snprintf(list, sizeof list, "%.*s", of_list ? (int)n : 63, name);
    return json_object_get(f->defaults, list);
}

/* Whether the classes of the type read a member of this name, one of the spellings from `group` on:
 * where they have another of these, they do not read those that they lack. */
static bool is_read(const struct fields *f, const char *group, const char *name)
{
    static const char rotations[] =
        "qk_rope_head_dim rotary_dim rotary_pct partial_rotary_factor rope_local_base_freq "
        "local_rope_theta global_rope_theta global_head_dim";
    const json_t *own = defaults_of(f, name);
    bool another = false;
    char one[64];
    if (own)
        return !json_is_string(own); /* "ignored" */
    if (f->assumed && lists(rotations, name))
        return false;
    while (f->assumed && next_spelling(&group, one))
        another |= defaults_of(f, one) != NULL;
    return !another;
}

/* The first spelling in the file that is read. */
static struct member find_own(const struct fields *f, const char *spellings)
{
    struct member first = { .value = NULL };
    for (const char *at = spellings, *group = at; *at;) {
        char one[64];
        if (!next_spelling(&at, one)) {
            group = at;
            continue;
        }
        const struct member own = member_of(f->file, one);
        if (!*first.name)
            memcpy(first.name, own.name, sizeof first.name);
        if (own.value && is_read(f, group, one))
            return own;
    }
    return first;
}

struct member member_find(const struct fields *f, const char *spellings)
{
    struct member first = { .value = NULL };
    for (const char *at = spellings; *at;) { /* a group of spellings after the other */
        char group[256] = "", one[64];
        size_t n = 0;
        while (*at && next_spelling(&at, one))
            n = append(group, sizeof group, n, "%s%s", n ? " " : "", one);
        const struct member own = find_own(f, group);
        if (own.value)
            return own;
        for (const char *each = group; *each;) {
            next_spelling(&each, one);
            const struct member usual = member_of(f->defaults, one);
            if (usual.value && !json_is_string(usual.value))
                return usual;
        }
        if (!*first.name)
            memcpy(first.name, own.name, sizeof first.name);
    }
    return first;
}

const json_t *member_value(const struct fields *f, const char *spellings)
{
    return member_find(f, spellings).value;
}

/* ---- values ---- */

/* A number, or a formula. */
static double amount(const struct part *part, const char *text)
{
    return isalpha((unsigned char)*text) ? (double)part_formula(part, text)
                                         : strtod(text, NULL);
}

struct range {
    double least, most, step, divides; /* 0: it need not be a multiple, or a divisor */
    char words[128];
};

static struct range range_of(enum quantity_kind kind, const char *accepted,
                             const struct part *part)
{
    struct range r = { .step = kind == IS_WHOLE };
    char first[32] = "", second[32] = "", third[32] = "";
    sscanf(accepted, "%31s %31s %31s", first, second, third);
    const bool even = strcmp(first, "even") == 0, divisor = strcmp(first, "divisor") == 0;
    r.least = divisor ? 1.0 : amount(part, even ? second : first);
    r.most = amount(part, even ? third : second);
    r.divides = divisor ? r.most : 0.0;
    r.step += even;
    if (divisor)
        snprintf(r.words, sizeof r.words, "a divisor of %s, %.10g,", second, r.most);
    else
        snprintf(r.words, sizeof r.words,
                 even         ? "an even number from %.10g to %.10g"
                 : r.step > 0 ? "a whole number from %.10g to %.10g"
                              : "a number from %g to %g",
                 r.least, r.most);
    return r;
}

static int check_range(const struct fields *f, const char *name, double d,
                       const struct range *r)
{
    if (d >= r->least && d <= r->most && !(r->step > 0.0 && fmod(d, r->step) != 0.0) &&
        !(r->divides > 0.0 && fmod(r->divides, d) != 0.0))
        return 0;
    return refuse(f, "%s is %.10g: %s is needed", name, d, r->words);
}

int value_read(const struct fields *f, const struct member *m, enum quantity_kind kind,
               const char *accepted, const struct part *part, double *value)
{
    if (kind == IS_TRUTH) {
        *value = json_is_true(m->value);
        return json_is_boolean(m->value)
                   ? 0
                   : refuse(f, "%s is neither true nor false: one of them is needed", m->name);
    }
    const struct range range = range_of(kind, accepted, part);
    *value = json_number_value(m->value);
    if (!m->value)
        return refuse(f, "%s is missing%s: %s is needed", m->name, f->whose ? f->whose : "",
                      range.words);
    if (!json_is_number(m->value))
        return refuse(f, "%s is %s: %s is needed", m->name,
                      json_is_null(m->value) ? "null" : "no number", range.words);
    return check_range(f, m->name, *value, &range);
}

/* ---- what is not said, or said twice ---- */

static void assume(const struct fields *f, const char *name, double value)
{
    char text[96];
    snprintf(text, sizeof text, "%s %.10g", name, value);
    if (f->assumed && !strstr(f->assumed, text))
        append(f->assumed, MODEL_NOTES, strlen(f->assumed), "%s%s", *f->assumed ? ", " : "",
               text);
}

/* Lengths and counts of layers are called many things at once, of which the first counts. */
static bool may_differ(const char *quantity) { return lists("length layers every", quantity); }

int members_agree(const struct fields *f, const char *spellings, const char *quantity,
                  double value)
{
    bool met = false;
    for (const char *at = spellings, *group = at; *at;) {
        char one[64];
        if (!next_spelling(&at, one)) {
            if (met)
                break;
            group = at;
            continue;
        }
        const struct member own = member_of(f->file, one);
        const double said = json_number_value(own.value);
        const struct member usual = member_of(f->defaults, one);
        met |= own.value || (usual.value && !json_is_string(usual.value));
        if (!json_is_number(own.value) || (said >= value && said <= value))
            continue;
        if (may_differ(quantity))
            note(f, "%s is %.10g, which does not count: %.10g does", one, said, value);
        else
            return refuse(f, "%s is %.10g%s, where %.10g counts: they must agree", one, said,
                          is_read(f, group, one)
                              ? ""
                              : ", which the classes of this model_type do not read",
                          value);
    }
    return 0;
}

/* ---- rows ---- */

/* The value of the member that was found, or what stands for one that was not: what the row says, or
 * what the quantity is already. */
static int choose_value(const struct fields *f, const struct row *row, const struct quantity *q,
                        const struct member *found, struct part *part, double *value)
{
    struct origin *from = &part->origins[q->origin];
    const double before = quantity_get(q, part);
    if (found->value || strcmp(row->otherwise, "needed") == 0) {
        if (value_read(f, found, q->kind, row->accepted, part, value))
            return -1;
        origin_member(f, found, *value, from);
        return 0;
    }
    if (!*row->otherwise) {
        *value = before;
        if (from->kind == UNSAID)
            origin_formula(f, found->name, part, "", before, from);
        return 0;
    }
    const bool of_itself = strncmp(row->otherwise, q->name, strlen(q->name)) == 0;
    *value = amount(part, row->otherwise);
    if (!of_itself || *value < before || *value > before)
        origin_formula(f, found->name, part, row->otherwise, *value, from);
    const struct range range = range_of(q->kind, row->accepted, part);
    return *row->accepted && strcmp(row->otherwise, "0") != 0
               ? check_range(f, found->name, *value, &range)
               : 0;
}

/* What stands in the object for scaling and beside it is the same in both. */
static int read_quantity(const struct fields *f, const struct row *row, struct part *part)
{
    const struct quantity *q = quantity_find(row->quantity, strlen(row->quantity));
    const bool read =
        strcmp(row->quantity, "rope_theta") == 0 || is_read(f, row->quantity, row->quantity);
    const struct member given = member_of(f->rope, row->quantity), none = { .value = NULL },
                        inner = read ? given : none, outer = member_of(f->file, row->spellings),
                        found = inner.value ? inner : member_find(f, row->spellings);
    double value, beside;
    assert(q);
    if (choose_value(f, row, q, &found, part, &value))
        return -1;
    if (!found.value && !*row->otherwise && !given.value)
        return members_agree(f, row->spellings, row->quantity, value);
    if (inner.value && outer.value) {
        if (value_read(f, &outer, q->kind, row->accepted, part, &beside))
            return -1;
        if (beside < value || beside > value)
            return refuse(f, "%s is %.9g, and %s in %s is %.9g: they must agree", outer.name,
                          beside, inner.name, f->rope_name, value);
    }
    quantity_set(q, part, value);
    if (q->kind == IS_TRUTH)
        return 0;
    if (given.value && !read && json_number_value(given.value) != value)
        return refuse(f,
                      "%s in %s is %.10g, which the classes of this model_type do not read: "
                      "leave it out",
                      row->quantity, f->rope_name, json_number_value(given.value));
    if (!inner.value && found.value && !find_own(f, row->spellings).value)
        assume(f, found.name, value);
    return members_agree(f, row->spellings, row->quantity, value);
}

int members_read(const struct fields *f, const char *words, struct part *part)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        char text[PART_TEXT];
        const bool refuses = strcmp(row->quantity, "refuse") == 0,
                   notes = strcmp(row->quantity, "note") == 0;
        if (!share_word(row->whose, words))
            continue;
        if (!refuses && !notes) {
            if (read_quantity(f, row, part))
                return -1;
            continue;
        }
        if (*row->spellings && part_formula(part, row->spellings) == 0)
            continue;
        part_text(part, row->accepted, text);
        if (refuses)
            return refuse(f, "%s", text);
        note(f, "%s", text);
    }
    return 0;
}

void field_text(const json_t *object, const char *name, const char *otherwise, char *into,
                size_t bytes)
{
    char line[512];
    const char *s = json_string_value(json_object_get(object, name));
    snprintf(line, sizeof line, "%.400s", s && *s ? s : otherwise);
    for (char *c = line; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c;
    text_plain(line, into, bytes);
}
