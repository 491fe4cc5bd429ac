/*
 * The rules by which frequencies are scaled, as rope_scaling and rope_parameters state them
 * (huggingface/transformers, modeling_rope_utils.py), into a struct posenc_freqs_spec.  A rule or
 * a member that is not known is refused by name; a member of another rule is noted: it counts
 * for nothing there.  M is max_position_embeddings, L original_max_position_embeddings.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of a rule besides those of the list of families. */
static const struct alias {
    const char *name;
    enum posenc_scaling scaling;
} aliases[] = {
    { "su", POSENC_SCALING_LONGROPE }, /* longrope in its first release */
    { "mrope", POSENC_SCALING_NONE },  /* default, of positions with three axes */
};
enum { N_ALIASES = sizeof aliases / sizeof *aliases };

struct rule {
    const char *name; /* NULL: none is said */
    enum posenc_scaling scaling;
};

/* Members of the object: those that count with any rule, with the rules whose family has a parameter of
 * that name, and nowhere, because they change no rotation; and where a number goes. */
#define NUMBER(name, least, most)                                                              \
    {                                                                                          \
#name, BY_RULE, least, most, offsetof(struct posenc_freqs_spec, name)                  \
    }
static const struct member {
    const char *name;
    enum { ANY, BY_RULE, NOWHERE } counts;
    double least, most;
    size_t offset;
} members[] = {
    { "rope_type", ANY, 0, 0, 0 },
    { "type", ANY, 0, 0, 0 },
    { "rope_theta", ANY, 0, 0, 0 },
    { "partial_rotary_factor", ANY, 0, 0, 0 },
    { "mrope_section", ANY, 0, 0, 0 },
    { "mrope_interleaved", ANY, 0, 0, 0 },
    NUMBER(factor, 1.0, 1e6),
    NUMBER(original_max_position_embeddings, 1.0, 1e9),
    NUMBER(low_freq_factor, 1e-6, 1e6),
    NUMBER(high_freq_factor, 1e-6, 1e6),
    NUMBER(attention_factor, 1e-6, 1e6),
    NUMBER(beta_fast, 1e-3, 1e6),
    NUMBER(beta_slow, 1e-3, 1e6),
    NUMBER(mscale, 0.0, 1e6),
    NUMBER(mscale_all_dim, 0.0, 1e6),
    { "truncate", BY_RULE, 0, 0, 0 },
    { "short_factor", BY_RULE, 0, 0, 0 },
    { "long_factor", BY_RULE, 0, 0, 0 },
    { "finetuned", NOWHERE, 0, 0, 0 },
    { "llama_4_scaling_beta", NOWHERE, 0, 0, 0 }, /* scales queries by their position */
};
#undef NUMBER
enum { N_MEMBERS = sizeof members / sizeof *members };

static bool takes(const struct rule *rule, const char *parameter)
{
    return scaling_takes(rule->scaling, parameter, strlen(parameter));
}

static const json_t *member(const struct rope *rope, const char *name)
{
    const json_t *j = json_object_get(rope->object, name);
    return json_is_null(j) ? NULL : j;
}

/* ---- the rule ---- */

static bool find_named(const char *name, struct rule *rule)
{
    for (int i = 0; scaling_names[i]; i++) {
        const char *type = scaling_rope_type((enum posenc_scaling)i);
        if (type && strcmp(type, name) == 0) {
            *rule = (struct rule){ type, (enum posenc_scaling)i };
            return true;
        }
    }
    for (int i = 0; i < N_ALIASES; i++)
        if (strcmp(aliases[i].name, name) == 0) {
            *rule = (struct rule){ aliases[i].name, aliases[i].scaling };
            return true;
        }
    return false;
}

/* "default, linear, ...": what may be said. */
static const char *known_rules(char text[256])
{
    size_t at = 0;
    for (int i = 0; scaling_names[i] && at < 256; i++) {
        const char *type = scaling_rope_type((enum posenc_scaling)i);
        if (type)
            at += (size_t)snprintf(text + at, 256 - at, "%s%s", i ? ", " : "", type);
    }
    for (int i = 0; i < N_ALIASES && at < 256; i++)
        at += (size_t)snprintf(text + at, 256 - at, ", %s", aliases[i].name);
    return text;
}

/* Under either spelling; without one, an object that scales nothing is the default. */
static int find_rule(const struct fields *f, const struct rope *rope, struct rule *rule)
{
    static const char *const spellings[] = { "rope_type", "type" };
    char known[256];
    *rule = (struct rule){ NULL, POSENC_SCALING_NONE };
    for (int i = 0; i < 2; i++) {
        const json_t *j = member(rope, spellings[i]);
        const char *name = json_string_value(j);
        struct rule this;
        if (!j)
            continue;
        if (!name)
            return refuse(f, "%s of %s is no text; known: %s", spellings[i], rope->name,
                          known_rules(known));
        if (!find_named(name, &this))
            return refuse(f, "%s '%.60s' of %s is unknown; known: %s", spellings[i], name,
                          rope->name, known_rules(known));
        if (rule->name && rule->scaling != this.scaling)
            return refuse(f, "%s has rope_type '%s' and type '%s': they must agree", rope->name,
                          rule->name, this.name);
        if (!rule->name || strcmp(this.name, "mrope") == 0)
            *rule = this;
    }
    if (rule->name)
        return 0;
    rule->name = scaling_rope_type(POSENC_SCALING_NONE);
    for (int i = 0; i < N_MEMBERS; i++)
        if (members[i].counts != ANY && member(rope, members[i].name))
            return refuse(f, "%s has no rope_type; known: %s", rope->name, known_rules(known));
    return 0;
}

bool rope_takes(const struct rope *rope, const char *parameter)
{
    const char *type = json_string_value(member(rope, "rope_type"));
    struct rule rule;
    if (!type)
        type = json_string_value(member(rope, "type"));
    return type && find_named(type, &rule) && takes(&rule, parameter);
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
        if (json_is_null(value) ||
            (i < N_MEMBERS &&
             (members[i].counts == ANY || (members[i].counts == BY_RULE && takes(rule, name)))))
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

/* Those of the rule that are plain numbers. */
static int read_numbers(const struct fields *f, const struct rope *rope,
                        const struct rule *rule, bool needed, struct posenc_freqs_spec *spec)
{
    for (const struct member *m = members; m < members + N_MEMBERS; m++) {
        const json_t *j = member(rope, m->name);
        if (m->most == 0 || !takes(rule, m->name))
            continue;
        if (!j && needed)
            return refuse(f, "%s is missing: %s of type %s needs it, a number from %g to %g",
                          m->name, rope->name, rule->name, m->least, m->most);
        if (number_in(f, j, m->name, m->least, m->most, (double *)((char *)spec + m->offset)))
            return -1;
    }
    return 0;
}

/* L: in the object or beside it (Phi 3), the same in both; else 0. */
static int read_original(const struct fields *f, const struct rope *rope, double *original)
{
    static const char name[] = "original_max_position_embeddings";
    *original = 0.0;
    return rope_number(f, rope, name, NAMES(name), 1.0, 1e9, original);
}

static int read_yarn(const struct fields *f, const struct rope *rope, const struct rule *rule,
                     struct part *p)
{
    struct posenc_freqs_spec *spec = &p->freqs;
    double length = (double)p->length, original;
    spec->factor = 0.0;
    if (read_original(f, rope, &original) || read_numbers(f, rope, rule, false, spec))
        return -1;
    bool stated = spec->factor > 0.0;
    if (!stated && original <= 0.0)
        return refuse(f,
                      "factor is missing: %s of type %s needs it, or "
                      "original_max_position_embeddings, to divide max_position_embeddings "
                      "by",
                      rope->name, rule->name);
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
    return 0;
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

static int read_longrope(const struct fields *f, const struct rope *rope,
                         const struct rule *rule, struct part *p, struct model *m)
{
    struct posenc_freqs_spec *spec = &p->freqs;
    const int64_t pairs = p->rotary_dim / 2;
    double *original = &spec->original_max_position_embeddings;
    spec->factor = 0.0;
    if (read_numbers(f, rope, rule, false, spec) || read_original(f, rope, original))
        return -1;
    const double given = spec->factor;
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
    struct rule rule;
    struct posenc_freqs_spec *spec = &p->freqs;
    if (find_rule(f, rope, &rule) || check_members(f, rope, &rule) ||
        read_axes(f, rope, &rule, p))
        return -1;
    spec->scaling = rule.scaling;
    if (takes(&rule, "short_factor"))
        return read_longrope(f, rope, &rule, p, m);
    if (takes(&rule, "beta_fast"))
        return read_yarn(f, rope, &rule, p);
    if (takes(&rule, "max_position_embeddings"))
        spec->max_position_embeddings = (double)p->length;
    /* A share of the pairs that turn may go without a factor. */
    return read_numbers(f, rope, &rule, !takes(&rule, "partial_rotary_factor"), spec);
}
