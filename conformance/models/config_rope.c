/*
 * What a configuration says of rotation: heads and the rotated part of them, the base, and the
 * types of layers that have their own (Gemma 3 and 4, ModernBERT).  What scales frequencies is in
 * config_scaling.c.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int config_try_freqs(const struct fields *f, const struct part *p)
{
    struct posenc_freqs_spec spec = p->freqs;
    for (int64_t beyond = 0; beyond < 2; beyond++) {
        spec.seq_len = p->length << beyond;
        struct posenc_freqs *freqs;
        struct posenc_error why = { 0 };
        if (posenc_freqs_create(&spec, &freqs, &why) == POSENC_OK) {
            posenc_freqs_destroy(freqs);
            continue;
        }
        char text[256];
        posenc_error_text(&why, text, sizeof text);
        return refuse(f, "its frequencies cannot be made: %s", text);
    }
    return 0;
}

/* Types of layers as layer_types and rope_parameters call them, and a part that is theirs. */
static const struct layers {
    const char *type, *name;
    const char *words; /* whose rows of members.txt are read */
} layers_known[] = { { "full_attention", "full", "full" },
                     { "sliding_attention", "sliding", "sliding" },
                     { "chunked_attention", "chunked", "chunked" },
                     { "hybrid", "hybrid", "every_layer" },
                     { "hybrid_sliding", "hybrid_sliding", "every_layer" } };
enum { N_LAYERS = sizeof layers_known / sizeof *layers_known };

static const struct layers all_layers = { "", "", "every_layer" };

/* Of a type, or of a part of this name; NULL: it is not known. */
static const struct layers *layers_find(const char *called)
{
    for (int i = 0; i < N_LAYERS; i++)
        if (strcmp(layers_known[i].type, called) == 0 ||
            strcmp(layers_known[i].name, called) == 0)
            return &layers_known[i];
    return NULL;
}

/* The rotation of all layers, or of those of a type. */
static int add_part(const struct fields *f, const struct part *like,
                    const struct layers *layers, const json_t *rope, struct config *c,
                    struct model *m)
{
    char whose[64] = "";
    if (*layers->name && json_is_false(json_object_get(rope, "truncate")))
        return refuse(f,
                      "truncate stands in the object for one type of layers: releases of that "
                      "library differ in whether it counts there");
    struct part *p = &c->parts[c->n_parts++];
    struct fields own = *f;
    own.rope = rope;
    own.whose = whose;
    if (*layers->name)
        snprintf(whose, sizeof whose, " for layers of type %s", layers->type);
    *p = *like;
    p->name = layers->name;
    if (members_read(&own, layers->words, p))
        return -1;
    const json_t *head = member_value(&own, "head_dim");
    if (p->latent && json_is_integer(head) && json_integer_value(head) != p->latent)
        return refuse(
            &own,
            "head_dim is %lld and qk_rope_head_dim %lld: they must agree (releases of "
            "that library differ in which turns)",
            (long long)json_integer_value(head), (long long)p->latent);
    if (p->latent) {
        p->head_dim = p->latent;
        p->origins[OF_head_dim] = p->origins[OF_latent];
    }
    if (p->latent || (p->single && !p->grouped)) {
        p->key_heads = 1;
        origin_say(p, "key_heads", "one for all, as %s is there",
                   p->origins[p->latent ? OF_latent : OF_single].text);
    }
    return config_scaling(&own, p, m);
}

/* The object's name where the file has none. */
static const char of_class[] = "the rope_parameters that its class takes";

static int find_rope(const struct fields *f, struct fields *with)
{
    static const char *const names[] = { "rope_scaling", "rope_parameters" };
    *with = *f;
    with->rope_name = names[0];
    for (int i = 0; i < 2; i++) {
        const json_t *j = member_of(f->file, names[i]).value;
        if (j && !json_is_object(j))
            return refuse(f,
                          "%s is no object: one such as {\"rope_type\": \"linear\", "
                          "\"factor\": 2}, or null, is needed",
                          names[i]);
        if (j && json_is_string(json_object_get(f->defaults, names[i])))
            return refuse(
                f,
                "%s is there, which the classes of this model_type do not read: %s is "
                "needed",
                names[i], names[!i]);
        if (j && with->rope && !json_equal(j, with->rope))
            return refuse(f, "rope_scaling and rope_parameters differ: one of them, or the "
                             "same twice, is needed");
        if (j && !with->rope) {
            with->rope = j;
            with->rope_name = names[i];
        }
    }
    if (!with->rope) {
        with->rope = member_of(f->defaults, names[1]).value;
        with->rope_name = of_class;
    }
    return 0;
}

static bool of_its_class(const struct fields *f) { return f->rope_name == of_class; }

/* {"full_attention": {...}, "sliding_attention": null}: every member is an object, or null where such
 * layers do not rotate. */
static bool by_layers(const json_t *rope)
{
    const char *key;
    json_t *value;
    size_t objects = 0;
    json_object_foreach((json_t *)rope, key, value)
    {
        if (!json_is_object(value) && !json_is_null(value))
            return false;
        objects += json_is_object(value);
    }
    return objects > 0;
}

/* A member beside objects for types of layers may count for those that lack it, for all or for none,
 * and beside those that a class has by default, too: it must say what all of them do. */
static int check_beside(const struct fields *f)
{
    static const char *const names[] = { "rope_theta", "partial_rotary_factor" };
    const json_t *objects = by_layers(f->rope) ? f->rope : NULL;
    const char *type;
    json_t *rope;
    for (int i = 0; i < 2; i++) {
        const json_t *own = member_of(f->file, names[i]).value;
        json_object_foreach((json_t *)objects, type, rope)
        {
            const json_t *said = json_object_get(rope, names[i]);
            const double value = said ? json_number_value(said) : 1.0;
            if (!json_is_number(own) || !json_is_object(rope) || (said && !of_its_class(f)) ||
                json_number_value(own) == value)
                continue;
            return refuse(f,
                          "%s is %.9g beside an object for layers of type %.40s%s that says "
                          "otherwise or nothing: rope_parameters with one for each type of "
                          "layers, with its %s, is needed",
                          names[i], json_number_value(own), type,
                          of_its_class(f) ? ", which its class has," : "", names[i]);
        }
    }
    return 0;
}

static int each_type(const struct fields *f, const struct part *like, struct config *c,
                     struct model *m)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)f->rope, key, value)
    {
        const struct layers *known = layers_find(key);
        if (!known || strcmp(known->type, key) != 0)
            return refuse(f,
                          "%s has layers of type '%.40s': known are full_attention, "
                          "sliding_attention, chunked_attention, hybrid and hybrid_sliding",
                          f->rope_name, key);
    }
    for (int i = 0; i < N_LAYERS; i++) { /* in our order, whatever that of the file */
        const json_t *rope = json_object_get(f->rope, layers_known[i].type);
        if (json_is_object(rope) && add_part(f, like, &layers_known[i], rope, c, m))
            return -1;
        if (json_is_null(rope))
            note(f, "Layers of type %s do not rotate", layers_known[i].type);
    }
    return 0;
}

/* Of Gemma's layers every sixth has full attention, of ModernBERT's the first of every three. */
static void by_pattern(const struct fields *f, struct config *c, const struct part *like)
{
    const bool first = member_find(f, "global_attn_every_n_layers").value;
    const int64_t full =
        like->every ? (like->layers + first * (like->every - 1)) / like->every : 0;
    for (size_t i = 0; i < c->n_parts; i++)
        c->parts[i].layers = !full                                   ? 0
                             : strcmp(c->parts[i].name, "full") == 0 ? full
                                                                     : like->layers - full;
    for (size_t i = 0; full && i < c->n_parts; i++)
        origin_say(&c->parts[i], "layers", "%s, one in %lld full (%s%s)",
                   origin_key(&like->origins[OF_layers]), (long long)like->every,
                   like->origins[OF_every].kind == IN_FILE ? "" : "assumed: ",
                   like->origins[OF_every].text);
}

/* How many layers each part stands for, and those that none does. */
static void note_layers(const struct fields *f, struct config *c, struct part *like)
{
    const struct member list = member_of(f->file, "layer_types");
    const json_t *layers = list.value, *layer;
    const size_t of = json_array_size(layers);
    size_t left = of, at;
    for (size_t i = 0; i < c->n_parts && of; i++) {
        const char *type = layers_find(c->parts[i].name)->type;
        size_t n = 0;
        json_array_foreach(layers, at, layer) n +=
            json_is_string(layer) && strcmp(json_string_value(layer), type) == 0;
        left -= n;
        c->parts[i].layers = (int64_t)n;
        origin_member(f, &list, (double)n, &c->parts[i].origins[OF_layers]);
        note(f, "%s is the rotation of %zu of %zu layers", type, n, of);
    }
    if (left)
        note(f, "%zu layers are of types without a rotation here", left);
    if (!of) { /* of text, such as "LLLG", nothing is noted */
        (void)members_read(f, "sliding_pattern", like);
        by_pattern(f, c, like);
    }
}

/* Forms of the object that the classes of a type do not take for what they say. */
static int check_form(const struct fields *f, bool local)
{
    const bool old_name = strcmp(f->rope_name, "rope_scaling") == 0,
               alone = lists(f->flags, "full_scaled") || (f->assumed && local);
    char one[64];
    snprintf(one, sizeof one, "one_%s", f->rope_name);
    if (!f->rope || of_its_class(f))
        return 0;
    if (by_layers(f->rope))
        return lists(f->flags, one) || (alone && old_name)
                   ? refuse(
                         f,
                         "%s has an object for each type of layers, which the classes of this "
                         "model_type do not take as they stand: %s is needed",
                         f->rope_name,
                         old_name ? "rope_parameters, with the same," : "one for all")
                   : 0;
    if (lists(f->flags, "layered") || (alone && !old_name))
        return refuse(
            f,
            "%s is one object for all layers, which the classes of this model_type take "
            "for some of them or for none: rope_parameters, with one for each type of "
            "layers, is needed",
            f->rope_name);
    return 0;
}

/* One object scales layers of full attention alone.  Of rope_theta beside it releases differ. */
static int full_alone(const struct fields *f, const struct part *like, const char *local,
                      struct config *c, struct model *m)
{
    struct layers sliding = *layers_find("sliding");
    const json_t *theta = member_of(f->file, "rope_theta").value,
                 *usual = member_of(f->defaults, "rope_theta").value;
    if (f->assumed && json_object_get(f->rope, "type") &&
        !json_object_get(f->rope, "rope_type"))
        return refuse(f,
                      "type stands in %s without rope_type: releases of that library differ "
                      "in whether it counts; rope_type is needed",
                      f->rope_name);
    if (f->rope && local && strcmp(local, "local_rope_theta") == 0)
        return refuse(f,
                      "%s beside local_rope_theta: releases of that library differ in "
                      "which layers it scales; an object for each type of layers is needed",
                      f->rope_name);
    if (!local && theta && json_number_value(theta) != json_number_value(usual))
        return refuse(
            f,
            "rope_theta is %.9g: releases of that library differ in whether layers of "
            "sliding attention have it, too; %.9g, or rope_parameters with an object "
            "for each type of layers, is needed",
            json_number_value(theta), json_number_value(usual));
    if (!local)
        sliding.words = all_layers.words;
    return add_part(f, like, layers_find("full"), f->rope, c, m) ||
                   add_part(f, like, &sliding, NULL, c, m)
               ? -1
               : 0;
}

int config_rope(const struct fields *plain, struct part *like, struct config *c,
                struct model *m)
{
    struct fields with;
    const struct fields *f = &with;
    static const char locals[] = "rope_local_base_freq local_rope_theta";
    const struct member local = member_find(plain, locals),
                        stray = member_of(plain->file, locals);
    if (stray.value && !local.value)
        return refuse(
            plain,
            "%s is there, which the classes of this model_type do not read: leave it out",
            stray.name);
    if (find_rope(plain, &with))
        return -1;
    if (check_form(f, local.value) || (!local.value && check_beside(f)))
        return -1;
    if (!by_layers(f->rope) && !local.value && !lists(f->flags, "full_scaled"))
        return add_part(f, like, &all_layers, f->rope, c, m);
    if (by_layers(f->rope) ? each_type(f, like, c, m)
                           : full_alone(f, like, local.value ? local.name : NULL, c, m))
        return -1;
    note_layers(f, c, like);
    return 0;
}
