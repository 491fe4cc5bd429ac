/*
 * The rules by which frequencies are scaled, as rope_scaling and rope_parameters state them
 * (huggingface/transformers, modeling_rope_utils.py), into a struct posenc_freqs_spec.  A rule or
 * a member that is not known is refused by name; a member of another rule is noted: it counts
 * for nothing there.  M is max_position_embeddings, L original_max_position_embeddings.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a member counts. */
enum member_of {
    DEFAULT = 1,
    LINEAR = 2,
    DYNAMIC = 4,
    YARN = 8,
    LONGROPE = 16,
    LLAMA3 = 32,
    PROPORTIONAL = 64,
    ANY = 127,
    NOWHERE = 0 /* known, and of no effect on a rotation */
};

static const struct rule {
    const char *name;
    enum member_of bit;
    enum posenc_scaling scaling;
} rules[] = {
    { "default", DEFAULT, POSENC_SCALING_NONE },
    { "linear", LINEAR, POSENC_SCALING_LINEAR },
    { "dynamic", DYNAMIC, POSENC_SCALING_DYNAMIC },
    { "yarn", YARN, POSENC_SCALING_YARN },
    { "longrope", LONGROPE, POSENC_SCALING_LONGROPE },
    { "su", LONGROPE, POSENC_SCALING_LONGROPE }, /* longrope in its first release */
    { "llama3", LLAMA3, POSENC_SCALING_LLAMA3 },
    { "proportional", PROPORTIONAL, POSENC_SCALING_PROPORTIONAL },
    { "mrope", DEFAULT, POSENC_SCALING_NONE }, /* default, of positions with three axes */
};
enum { N_RULES = sizeof rules / sizeof *rules };
#define KNOWN_RULES "default, linear, dynamic, yarn, longrope (su), llama3, proportional, mrope"

static const struct member {
    const char *name;
    int where; /* bits of member_of */
} members[] = {
    { "rope_type", ANY },
    { "type", ANY },
    { "rope_theta", ANY },
    { "partial_rotary_factor", ANY },
    { "mrope_section", ANY },
    { "mrope_interleaved", ANY },
    { "factor", ANY & ~DEFAULT },
    { "original_max_position_embeddings", YARN | LONGROPE | LLAMA3 },
    { "attention_factor", YARN | LONGROPE },
    { "beta_fast", YARN },
    { "beta_slow", YARN },
    { "truncate", YARN },
    { "mscale", YARN },
    { "mscale_all_dim", YARN },
    { "short_factor", LONGROPE },
    { "long_factor", LONGROPE },
    { "low_freq_factor", LLAMA3 },
    { "high_freq_factor", LLAMA3 },
    { "finetuned", NOWHERE },
    { "llama_4_scaling_beta", NOWHERE }, /* scales queries by their position */
};
enum { N_MEMBERS = sizeof members / sizeof *members };

static const json_t *member(const struct rope *rope, const char *name)
{
    const json_t *j = json_object_get(rope->object, name);
    return json_is_null(j) ? NULL : j;
}

/* ---- the rule ---- */

static const struct rule *rule_named(const char *name)
{
    for (int i = 0; name && i < N_RULES; i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

/* Under either spelling; without one, an object that scales nothing is the default. */
static int find_rule(const struct fields *f, const struct rope *rope, const struct rule **rule)
{
    static const char *const spellings[] = { "rope_type", "type" };
    *rule = NULL;
    for (int i = 0; i < 2; i++) {
        const json_t *j = member(rope, spellings[i]);
        const char *name = json_string_value(j);
        if (!j)
            continue;
        if (!name)
            return refuse(f, "%s of %s is no text; known: " KNOWN_RULES, spellings[i],
                          rope->name);
        const struct rule *this = rule_named(name);
        if (!this)
            return refuse(f, "%s '%.60s' of %s is unknown; known: " KNOWN_RULES, spellings[i],
                          name, rope->name);
        if (*rule && (*rule)->bit != this->bit)
            return refuse(f, "%s has rope_type '%s' and type '%s': they must agree", rope->name,
                          (*rule)->name, this->name);
        if (!*rule || strcmp(this->name, "mrope") == 0)
            *rule = this;
    }
    if (*rule)
        return 0;
    *rule = &rules[0];
    for (int i = 0; i < N_MEMBERS; i++)
        if (members[i].where != ANY && member(rope, members[i].name))
            return refuse(f, "%s has no rope_type; known: " KNOWN_RULES, rope->name);
    return 0;
}

bool rope_is_proportional(const struct rope *rope)
{
    const char *type = json_string_value(member(rope, "rope_type"));
    if (!type)
        type = json_string_value(member(rope, "type"));
    return type && strcmp(type, "proportional") == 0;
}

static int check_members(const struct fields *f, const struct rope *rope,
                         const struct rule *rule)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)rope->object, name, value)
    {
        int i = 0;
        while (i < N_MEMBERS && strcmp(members[i].name, name) != 0)
            i++;
        if (json_is_null(value) || (i < N_MEMBERS && (members[i].where & (int)rule->bit)))
            continue;
        if (i == N_MEMBERS)
            return refuse(f,
                          "%s has '%.60s', which this loader does not know: it may change the "
                          "numbers; the rule is %s",
                          rope->name, name, rule->name);
        note(f, "%s of %s does not change a rotation of type %s", name, rope->name, rule->name);
    }
    return 0;
}

/* ---- its parameters ---- */

static int optional(const struct fields *f, const struct rope *rope, const char *name,
                    double least, double most, double *value)
{
    return number_in(f, member(rope, name), name, least, most, value);
}

/* As optional(), of a rule that cannot do without. */
static int needed(const struct fields *f, const struct rope *rope, const struct rule *rule,
                  const char *name, double least, double most, double *value)
{
    if (!member(rope, name))
        return refuse(f, "%s is missing: %s of type %s needs it, a number from %g to %g", name,
                      rope->name, rule->name, least, most);
    return optional(f, rope, name, least, most, value);
}

/* L: in the object or beside it (Phi 3), the same in both. */
static int read_original(const struct fields *f, const struct rope *rope, double *original)
{
    static const char name[] = "original_max_position_embeddings";
    double inner = 0.0, outer = 0.0;
    if (optional(f, rope, name, 1.0, 1e9, &inner) ||
        field_number(f, NAMES(name), 1.0, 1e9, &outer))
        return -1;
    if (inner > 0.0 && outer > 0.0 && (inner < outer || inner > outer))
        return refuse(f, "%s is %.10g, and in %s %.10g: they must agree", name, outer,
                      rope->name, inner);
    *original = inner > 0.0 ? inner : outer;
    return 0;
}

static int read_yarn(const struct fields *f, const struct rope *rope, struct part *p)
{
    struct posenc_freqs_spec *spec = &p->freqs;
    double length = (double)p->length, original;
    spec->factor = 0.0;
    if (read_original(f, rope, &original) ||
        optional(f, rope, "factor", 1.0, 1e6, &spec->factor))
        return -1;
    bool stated = spec->factor > 0.0;
    if (!stated && original <= 0.0)
        return refuse(f,
                      "factor is missing: %s of type yarn needs it, or "
                      "original_max_position_embeddings, to divide max_position_embeddings "
                      "by",
                      rope->name);
    spec->original_max_position_embeddings = original > 0.0 ? original : length;
    if (!stated)
        spec->factor = fmax(1.0, length / original);
    else if (original > 0.0 && fabs(spec->factor * original - length) > 0.5)
        note(f,
             "factor is %.9g where max_position_embeddings / "
             "original_max_position_embeddings is %.9g: the factor counts",
             spec->factor, length / original);
    const json_t *truncate = member(rope, "truncate");
    if (truncate && !json_is_boolean(truncate))
        return refuse(f, "truncate is neither true nor false: one of them is needed");
    if (truncate)
        spec->truncate = json_is_true(truncate);
    return optional(f, rope, "beta_fast", 1e-3, 1e6, &spec->beta_fast) ||
                   optional(f, rope, "beta_slow", 1e-3, 1e6, &spec->beta_slow) ||
                   optional(f, rope, "attention_factor", 1e-6, 1e6, &spec->attention_factor) ||
                   optional(f, rope, "mscale", 0.0, 1e6, &spec->mscale) ||
                   optional(f, rope, "mscale_all_dim", 0.0, 1e6, &spec->mscale_all_dim)
               ? -1
               : 0;
}

static int read_llama3(const struct fields *f, const struct rope *rope, const struct rule *rule,
                       struct posenc_freqs_spec *spec)
{
    return needed(f, rope, rule, "factor", 1.0, 1e6, &spec->factor) ||
                   needed(f, rope, rule, "original_max_position_embeddings", 1.0, 1e9,
                          &spec->original_max_position_embeddings) ||
                   needed(f, rope, rule, "low_freq_factor", 1e-6, 1e6,
                          &spec->low_freq_factor) ||
                   needed(f, rope, rule, "high_freq_factor", 1e-6, 1e6, &spec->high_freq_factor)
               ? -1
               : 0;
}

/* An array of longrope: a factor for each pair. */
static int read_factors(const struct fields *f, const struct rope *rope, const char *name,
                        int64_t pairs, double *factors)
{
    const json_t *array = member(rope, name);
    if (!json_is_array(array))
        return refuse(f,
                      "%s is %s: %s of type longrope needs an array of %lld numbers, half of "
                      "rotary_dim",
                      name, array ? "no array" : "missing", rope->name, (long long)pairs);
    if ((int64_t)json_array_size(array) != pairs)
        return refuse(f, "%s has %zu numbers: %lld, half of rotary_dim, are needed", name,
                      json_array_size(array), (long long)pairs);
    for (int64_t i = 0; i < pairs; i++) {
        char element[64];
        const json_t *j = json_array_get(array, (size_t)i);
        snprintf(element, sizeof element, "%s[%lld]", name, (long long)i);
        factors[i] = 0.0;
        if (number_in(f, j, element, 0x1p-10, 1e9, &factors[i]))
            return -1;
        if (factors[i] <= 0.0)
            return refuse(f, "%s is null: a number is needed", element);
    }
    return 0;
}

static int read_longrope(const struct fields *f, const struct rope *rope, struct part *p,
                         struct model *m)
{
    struct posenc_freqs_spec *spec = &p->freqs;
    const int64_t pairs = p->rotary_dim / 2;
    double *original = &spec->original_max_position_embeddings, given = 0.0;
    if (read_original(f, rope, original) || optional(f, rope, "factor", 1.0, 1e6, &given) ||
        optional(f, rope, "attention_factor", 1e-6, 1e6, &spec->attention_factor))
        return -1;
    if (*original <= 0.0)
        return refuse(f,
                      "original_max_position_embeddings is missing: %s of type longrope "
                      "needs it",
                      rope->name);
    spec->factor = fmax(1.0, (double)p->length / *original);
    if (given > 0.0 && fabs(given - spec->factor) > 1e-6 * spec->factor)
        return refuse(f,
                      "factor is %.9g where max_position_embeddings / "
                      "original_max_position_embeddings is %.9g: they must agree (releases of "
                      "that library differ in which they take)",
                      given, spec->factor);
    double *factors = calloc(2 * (size_t)pairs, sizeof *factors);
    if (!factors)
        return refuse(f, "no memory for %lld factors", 2 * (long long)pairs);
    m->owned[m->n_owned++] = factors;
    spec->short_factor = factors;
    spec->long_factor = factors + pairs;
    return read_factors(f, rope, "short_factor", pairs, factors) ||
                   read_factors(f, rope, "long_factor", pairs, factors + pairs)
               ? -1
               : 0;
}

/* Whether axes take pairs by turns: a member says so, unless the code of the type decides. */
static int read_turns(const struct fields *f, const struct rope *rope, bool *turns)
{
    const json_t *given = member(rope, "mrope_interleaved"),
                 *known = json_object_get(f->defaults, "mrope_interleaved");
    if (given && !json_is_boolean(given))
        return refuse(f, "mrope_interleaved is neither true nor false");
    if (given && known && json_is_true(given) != json_is_true(known))
        return refuse(f,
                      "mrope_interleaved is %s: the code of this model_type takes %s sections, "
                      "whatever it says",
                      json_is_true(given) ? "true" : "false",
                      json_is_true(known) ? "interleaved" : "chunked");
    *turns = json_is_true(given ? given : known);
    return 0;
}

/* Three axes, time, height and width, share the pairs of a head. */
static int read_axes(const struct fields *f, const struct rope *rope, const struct rule *rule,
                     struct part *p)
{
    const json_t *sections = member(rope, "mrope_section");
    struct posenc_freqs_spec *spec = &p->freqs;
    double sum = 0.0, count = 0.0;
    bool turns = false;
    if (read_turns(f, rope, &turns))
        return -1;
    if (!sections)
        sections = json_object_get(f->defaults, "mrope_section");
    if (!sections && strcmp(rule->name, "mrope") != 0 && !member(rope, "mrope_interleaved"))
        return 0;
    if (json_array_size(sections) != 3)
        return refuse(f,
                      "mrope_section is %s: three numbers of pairs, such as [16, 24, 24], "
                      "are needed",
                      !sections ? "missing" : "no array of three");
    for (size_t i = 0; i < 3; i++) {
        char element[32];
        snprintf(element, sizeof element, "mrope_section[%zu]", i);
        count = 0.0;
        if (number_in(f, json_array_get(sections, i), element, 0.0, (double)MOST, &count))
            return -1;
        if (count < 1.0 || count > floor(count))
            return refuse(f, "%s is %.10g: a whole number from 1 is needed", element, count);
        spec->mrope_section[i] = (int64_t)count;
        sum += count;
    }
    if (fabs(sum - (double)(p->rotary_dim / 2)) > 0.25)
        return refuse(f,
                      "mrope_section adds up to %.10g pairs: %lld, half of rotary_dim, are "
                      "needed",
                      sum, (long long)(p->rotary_dim / 2));
    spec->mrope_layout = turns ? POSENC_MROPE_INTERLEAVED : POSENC_MROPE_CHUNKED;
    p->picture = CONFIG_PICTURE;
    return 0;
}

int config_scaling(const struct fields *f, const struct rope *rope, struct part *p,
                   struct model *m)
{
    const struct rule *rule;
    struct posenc_freqs_spec *spec = &p->freqs;
    if (find_rule(f, rope, &rule) || check_members(f, rope, rule) ||
        read_axes(f, rope, rule, p))
        return -1;
    spec->scaling = rule->scaling;
    switch (spec->scaling) {
    case POSENC_SCALING_DYNAMIC:
        spec->max_position_embeddings = (double)p->length;
        return needed(f, rope, rule, "factor", 1.0, 1e6, &spec->factor);
    case POSENC_SCALING_LINEAR:
        return needed(f, rope, rule, "factor", 1.0, 1e6, &spec->factor);
    case POSENC_SCALING_YARN:
        return read_yarn(f, rope, p);
    case POSENC_SCALING_LLAMA3:
        return read_llama3(f, rope, rule, spec);
    case POSENC_SCALING_LONGROPE:
        return read_longrope(f, rope, p, m);
    case POSENC_SCALING_PROPORTIONAL:
        return optional(f, rope, "factor", 1.0, 1e6, &spec->factor);
    case POSENC_SCALING_NTK: /* no rule of that library */
    case POSENC_SCALING_NONE:
        break;
    }
    return 0;
}
