/*
 * Reads the rule by which frequencies are scaled, as rope_scaling or rope_parameters states it
 * (huggingface/transformers, modeling_rope_utils.py), into a struct posenc_freqs_spec.  A rule or
 * a member that is not known is refused by name.  A member that belongs to another rule counts
 * for nothing, and a note says so.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/fields.h"
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    const char *name; /* as the configuration calls it */
    enum posenc_scaling scaling;
};

/* Members of the object that count with any rule; with rules whose family has a parameter of
 * that name; and with none, as they change no rotation (llama_4_scaling_beta scales queries by
 * their position). */
static const char any_rule[] = "rope_type type rope_theta partial_rotary_factor mrope_section "
                               "mrope_interleaved";
static const char by_rule[] = "factor original_max_position_embeddings low_freq_factor "
                              "high_freq_factor attention_factor beta_fast beta_slow mscale "
                              "mscale_all_dim truncate short_factor long_factor";
static const char no_rule[] =
    "finetuned llama_4_scaling_beta max_position_embeddings interleaved";

static bool takes(const struct rule *rule, const char *parameter)
{
    return scaling_takes(rule->scaling, parameter, strlen(parameter));
}

/* ---- the rule ---- */

/* Finds a rule by what configurations call it: "su" is longrope in its first release, as is "yarn" to types
 * with the flag yarn_is_longrope; "mrope" the default of positions with three axes. */
static bool find_named(const struct fields *f, const char *name, struct rule *rule)
{
    const bool renamed = f->flags && lists(f->flags, "yarn_is_longrope");
    const char *called = strcmp(name, "su") == 0 || (renamed && strcmp(name, "yarn") == 0)
                             ? "longrope"
                         : strcmp(name, "mrope") == 0 ? "default"
                                                      : name;
    for (int i = 0; scaling_names[i]; i++) {
        const char *type = scaling_rope_type((enum posenc_scaling)i);
        if (type && strcmp(type, called) == 0) {
            *rule = (struct rule){ name, (enum posenc_scaling)i };
            return true;
        }
    }
    return false;
}

/* "default, linear, ...": the names that a configuration may give. */
static const char *known_rules(char text[256])
{
    size_t at = 0;
    for (int i = 0; scaling_names[i]; i++) {
        const char *type = scaling_rope_type((enum posenc_scaling)i);
        at = append(text, 256, at, "%s%s", type ? type : "", type ? ", " : "");
    }
    append(text, 256, at, "su, mrope");
    return text;
}

/* Under either spelling, or both if they agree.  An object with neither must scale nothing. */
static int find_rule(const struct fields *f, struct rule *rule)
{
    static const char *const spellings[] = { "rope_type", "type" };
    char known[256];
    *rule = (struct rule){ NULL, POSENC_SCALING_NONE };
    for (int i = 0; i < 2; i++) {
        const json_t *j = member_of(f->rope, spellings[i]).value;
        const char *name = json_string_value(j);
        struct rule this;
        if (!j)
            continue;
        if (!name)
            return refuse(f, "%s of %s is no text; known: %s", spellings[i], f->rope_name,
                          known_rules(known));
        if (!find_named(f, name, &this))
            return refuse(f, "%s '%.60s' of %s is unknown; known: %s", spellings[i], name,
                          f->rope_name, known_rules(known));
        if (rule->name && rule->scaling != this.scaling)
            return refuse(f, "%s has rope_type '%s' and type '%s': they must agree",
                          f->rope_name, rule->name, this.name);
        if (!rule->name || strcmp(this.name, "mrope") == 0)
            *rule = this;
    }
    if (rule->name)
        return 0;
    rule->name = scaling_rope_type(POSENC_SCALING_NONE);
    return member_of(f->rope, by_rule).value || member_of(f->rope, no_rule).value
               ? refuse(f, "%s has no rope_type; known: %s", f->rope_name, known_rules(known))
               : 0;
}

static int check_members(const struct fields *f, const struct rule *rule)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)f->rope, name, value)
    {
        const bool counts =
            lists(any_rule, name) || (lists(by_rule, name) && takes(rule, name));
        if (counts || json_is_null(value))
            continue;
        if (!lists(by_rule, name) && !lists(no_rule, name))
            return refuse(f,
                          "%s has '%.60s', which this loader does not know: it may change the "
                          "numbers; the rule is %s",
                          f->rope_name, name, rule->name);
        note(f, "%s of %s does not change a rotation of type %s", name, f->rope_name,
             rule->name);
    }
    return 0;
}

/* ---- its parameters ---- */

static int fill_yarn(const struct fields *f, struct part *p)
{
    struct posenc_freqs_spec *spec = &p->freqs;
    double length = (double)p->length, *original = &spec->original_max_position_embeddings;
    bool stated = spec->factor > 0.0;
    if (!stated && *original <= 0.0)
        return refuse(f,
                      "factor is missing%s: a number, or original_max_position_embeddings, to "
                      "divide max_position_embeddings by, is needed",
                      f->whose);
    if (!stated)
        spec->factor = fmax(1.0, length / *original);
    else if (*original > 0.0 && fabs(spec->factor * *original - length) > 0.5)
        note(f,
             "factor is %.9g where max_position_embeddings / "
             "original_max_position_embeddings is %.9g: the factor counts",
             spec->factor, length / *original);
    if (!stated)
        origin_say(p, "factor", "max_position_embeddings / original_max_position_embeddings");
    if (*original <= 0.0) {
        *original = length;
        p->origins[OF_original_max_position_embeddings] = p->origins[OF_length];
    }
    return 0;
}

/* Reads an array of n numbers; in a refusal `needed` says more of what they are. */
static int read_array(const struct fields *f, const struct member *m, int64_t n,
                      const char *needed, enum quantity_kind kind, const char *accepted,
                      double *to)
{
    const json_t *element;
    char words[128];
    size_t i;
    snprintf(words, sizeof words, "an array of %lld numbers%s is needed", (long long)n, needed);
    if (!json_is_array(m->value))
        return refuse(f, "%s is %s%s: %s", m->name, m->value ? "no array" : "missing", f->whose,
                      words);
    if ((int64_t)json_array_size(m->value) != n)
        return refuse(f, "%s has %zu numbers: %s", m->name, json_array_size(m->value), words);
    json_array_foreach(m->value, i, element)
    {
        struct member one = { .value = element };
        snprintf(one.name, sizeof one.name, "%.40s[%zu]", m->name, i);
        if (value_read(f, &one, kind, accepted, NULL, &to[i]))
            return -1;
    }
    return 0;
}

static int fill_longrope(const struct fields *f, struct part *p, struct model *m)
{
    static const char *const names[] = { "short_factor", "long_factor" };
    struct posenc_freqs_spec *spec = &p->freqs;
    const int64_t pairs = p->rotary_dim / 2;
    const double given = spec->factor, original = spec->original_max_position_embeddings;
    spec->factor = fmax(1.0, (double)p->length / original);
    origin_say(p, "factor", "max_position_embeddings / original_max_position_embeddings");
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
    for (int i = 0; i < 2; i++) {
        const struct member array = member_of(f->file, names[i]);
        if (read_array(f, &array, pairs, ", half of rotary_dim,", IS_NUMBER, "0.0009765625 1e9",
                       factors + i * pairs))
            return -1;
        origin_member(f, &array, 0.0, &p->origins[OF_short_factor + i]);
    }
    return 0;
}

/* Three axes, time, height and width, share the pairs of a head: by turns where a member says so,
 * which the code of the type must not contradict. */
static int read_axes(const struct fields *f, const struct rule *rule, struct part *p)
{
    const struct member sections = member_find(f, "mrope_section"),
                        by_turns = member_find(f, "mrope_interleaved");
    const json_t *known = json_object_get(f->defaults, "mrope_interleaved");
    double turns = 0.0, pairs[3];
    if (by_turns.value && value_read(f, &by_turns, IS_TRUTH, "", p, &turns))
        return -1;
    if (known && json_is_true(known) != (turns > 0.0))
        return refuse(f,
                      "mrope_interleaved is %s: the code of this model_type takes %s sections, "
                      "whatever it says",
                      turns > 0.0 ? "true" : "false",
                      json_is_true(known) ? "interleaved" : "chunked");
    if (!sections.value && strcmp(rule->name, "mrope") != 0 &&
        !member_of(f->file, "mrope_interleaved").value)
        return 0;
    if (read_array(f, &sections, 3, " of pairs, such as [16, 24, 24],", IS_WHOLE, "1 16777216",
                   pairs))
        return -1;
    const double sum = pairs[0] + pairs[1] + pairs[2];
    if (fabs(sum - (double)(p->rotary_dim / 2)) > 0.25)
        return refuse(f,
                      "mrope_section adds up to %.10g pairs: %lld, half of rotary_dim, are "
                      "needed",
                      sum, (long long)(p->rotary_dim / 2));
    for (int i = 0; i < 3; i++)
        p->freqs.mrope_section[i] = (int64_t)pairs[i];
    origin_member(f, &sections, 0.0, &p->origins[OF_mrope_section]);
    p->freqs.mrope_layout = turns > 0.0 ? POSENC_MROPE_INTERLEAVED : POSENC_MROPE_CHUNKED;
    p->picture = CONFIG_PICTURE;
    return 0;
}

/* Where the share is that of the channels that turn of all of a head, which other members say, too. */
static int check_latent(const struct fields *f, const struct part *p)
{
    const struct member still = member_find(f, "qk_nope_head_dim");
    const double all = json_number_value(still.value) + (double)p->latent;
    const json_t *said[] = { f->rope, f->file };
    for (int i = 0; i < 2; i++) {
        const struct member share = member_of(said[i], "partial_rotary_factor");
        const double turned = floor(all * json_number_value(share.value));
        if (share.value && fabs(turned - (double)p->latent) > 0.0)
            return refuse(
                f,
                "partial_rotary_factor is %.9g, where qk_rope_head_dim is %.9g of the "
                "%.9g channels of a head: they must agree",
                json_number_value(share.value), (double)p->latent, all);
    }
    return 0;
}

/* The rotated channels: a share of those of a head, unless the rule makes use of the share. */
static int read_share(const struct fields *f, const struct rule *rule, struct part *p)
{
    double *share = &p->freqs.partial_rotary_factor;
    if (*p->name && lists(f->flags, "needs_share") &&
        !member_of(f->rope, "partial_rotary_factor").value)
        return refuse(
            f,
            "partial_rotary_factor is missing%s, of which the classes of this model_type "
            "take different ones: a number from 0 to 1 is needed",
            f->whose);
    if (lists(f->flags, "latent_share")
            ? check_latent(f, p)
            : members_read(f, lists(f->flags, "half") ? "half share" : "share", p))
        return -1;
    if (rule->scaling == POSENC_SCALING_NONE && lists(f->flags, "scaled_share") && *share < 1.0)
        return refuse(
            f,
            "partial_rotary_factor is %.9g with rope_type %s, with which the classes of "
            "this model_type do not read it: leave it out",
            *share, rule->name);
    const bool counted = takes(rule, "partial_rotary_factor");
    p->rotary_dim = counted ? p->head_dim : (int64_t)((double)p->head_dim * *share);
    origin_say(p, "rotary_dim", "all of head_dim");
    if (p->rotary_dim < p->head_dim) {
        const struct origin *from = &p->origins[OF_partial_rotary_factor];
        origin_say(p, "rotary_dim", "%.10g of head_dim (%s%s)", *share,
                   from->kind == IN_FILE ? "" : "assumed: the default of its class of ",
                   from->text);
    }
    *share = counted ? *share : 1.0;
    const int status =
        members_read(f, lists(f->flags, "projected") ? "turned_projected" : "turned", p);
    p->freqs.dim = p->rotary_dim;
    return status;
}

int config_scaling(const struct fields *f, struct part *p, struct model *m)
{
    struct rule rule;
    struct posenc_freqs_spec *spec = &p->freqs;
    struct fields both = *f, in = *f; /* the file and the object; the object alone */
    char whose[96];
    in.file = f->rope;
    in.rope = NULL;
    in.assumed = NULL;
    in.whose = both.whose = whose;
    if (find_rule(f, &rule) || check_members(f, &rule) || read_share(f, &rule, p))
        return -1;
    const struct member named = member_of(f->rope, "rope_type type");
    if (named.value)
        origin_member(f, &named, 0.0, &p->origins[OF_scaling]);
    const json_t *inner = json_object_get(f->rope, "original_max_position_embeddings"),
                 *outer = json_object_get(f->file, "original_max_position_embeddings");
    if (takes(&rule, "low_freq_factor") && json_is_number(inner) && json_is_number(outer) &&
        !json_equal(inner, outer))
        return refuse(
            f, "original_max_position_embeddings differs from that in %s: they must agree",
            f->rope_name);
    snprintf(whose, sizeof whose, " for %s of type %s", f->rope_name, rule.name);
    const bool longrope = takes(&rule, "short_factor"), yarn = takes(&rule, "beta_fast");
    spec->scaling = rule.scaling;
    if (longrope || yarn)
        spec->factor = 0.0;
    if (read_axes(&in, &rule, p) || members_read(&in, scaling_names[rule.scaling], p) ||
        members_read(&both,
                     longrope ? "longrope_length"
                     : yarn   ? "yarn_length"
                              : "",
                     p))
        return -1;
    if (takes(&rule, "max_position_embeddings"))
        spec->max_position_embeddings = (double)p->length;
    if ((longrope && fill_longrope(&in, p, m)) || (yarn && fill_yarn(&in, p)))
        return -1;
    return config_try_freqs(f, p);
}
