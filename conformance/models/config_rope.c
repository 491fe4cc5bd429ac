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

/* The rotation of all layers, "", or of those of a type: "full" of full_attention, as layer_types and
 * rope_parameters call it. */
static int add_part(const struct fields *f, const struct part *like, const char *layers,
                    const json_t *rope, struct config *c, struct model *m)
{
    char whose[64] = "";
    if (*layers && json_is_false(json_object_get(rope, "truncate")))
        return refuse(f,
                      "truncate stands in the object for one type of layers: releases of that "
                      "library differ in whether it counts there");
    struct part *p = &c->parts[c->n_parts++];
    struct fields own = *f;
    own.rope = rope;
    own.whose = whose;
    if (*layers)
        snprintf(whose, sizeof whose, " for layers of type %s_attention", layers);
    *p = *like;
    p->name = layers;
    if (members_read(&own, *layers ? layers : "every_layer", p))
        return -1;
    const json_t *head = member_value(&own, "head_dim");
    if (p->latent && json_is_integer(head) && json_integer_value(head) != p->latent)
        return refuse(
            &own,
            "head_dim is %lld and qk_rope_head_dim %lld: they must agree (releases of "
            "that library differ in which turns)",
            (long long)json_integer_value(head), (long long)p->latent);
    if (p->latent)
        p->head_dim = p->latent;
    if (p->latent || (p->single && !p->grouped))
        p->key_heads = 1;
    return config_scaling(&own, p, m);
}

int config_find_rope(const struct fields *f, struct fields *with)
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
        if (j && with->rope && !json_equal(j, with->rope))
            return refuse(f, "rope_scaling and rope_parameters differ: one of them, or the "
                             "same twice, is needed");
        if (j && !with->rope) {
            with->rope = j;
            with->rope_name = names[i];
        }
    }
    if (!with->rope)
        with->rope = member_of(f->defaults, names[1]).value;
    return 0;
}

/* {"full_attention": {...}, "sliding_attention": {...}}: every member is an object. */
static bool by_layers(const json_t *rope)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)rope, key, value) if (!json_is_object(value)) return false;
    return json_object_size(rope) > 0;
}

static int each_type(const struct fields *f, const struct part *like, struct config *c,
                     struct model *m)
{
    static const char *const types[] = { "full", "sliding", "chunked" };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)f->rope, key, value)
    {
        if (!lists("full_attention sliding_attention chunked_attention", key))
            return refuse(f,
                          "%s has layers of type '%.40s': known are full_attention, "
                          "sliding_attention and chunked_attention",
                          f->rope_name, key);
    }
    for (int i = 0; i < 3; i++) { /* in our order, whatever that of the file */
        char type[32];
        snprintf(type, sizeof type, "%s_attention", types[i]);
        const json_t *rope = json_object_get(f->rope, type);
        if (rope && add_part(f, like, types[i], rope, c, m))
            return -1;
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
}

/* How many layers each part stands for, and those that none does. */
static void note_layers(const struct fields *f, struct config *c, struct part *like)
{
    const json_t *layers = member_of(f->file, "layer_types").value, *layer;
    const size_t of = json_array_size(layers);
    size_t left = of, at;
    for (size_t i = 0; i < c->n_parts && of; i++) {
        char type[32];
        size_t n = 0;
        snprintf(type, sizeof type, "%s_attention", c->parts[i].name);
        json_array_foreach(layers, at, layer) n +=
            json_is_string(layer) && strcmp(json_string_value(layer), type) == 0;
        left -= n;
        c->parts[i].layers = (int64_t)n;
        note(f, "%s is the rotation of %zu of %zu layers", type, n, of);
    }
    if (left)
        note(f, "%zu layers are of types without a rotation here", left);
    if (!of) { /* of text, such as "LLLG", nothing is noted */
        (void)members_read(f, "sliding_pattern", like);
        by_pattern(f, c, like);
    }
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
    if (config_find_rope(plain, &with))
        return -1;
    if (f->rope && !by_layers(f->rope) &&
        f->rope != member_of(f->defaults, f->rope_name).value &&
        (lists(f->flags, "layered") ||
         (f->assumed && local.value && strcmp(f->rope_name, "rope_parameters") == 0)))
        return refuse(
            f,
            "%s is one object for all layers: releases of that library differ in which "
            "it scales; one for each type of layers is needed",
            f->rope_name);
    const bool old_name =
        f->assumed && local.value && strcmp(f->rope_name, "rope_scaling") == 0;
    if (by_layers(f->rope) && (lists(f->flags, "one_object") || old_name) &&
        f->rope != member_of(f->defaults, "rope_parameters").value)
        return refuse(f,
                      "%s has an object for each type of layers, which the classes of this "
                      "model_type do not take as they stand: one for all is needed",
                      f->rope_name);
    if (by_layers(f->rope)) {
        if (each_type(f, like, c, m))
            return -1;
    } else if (local.value) {
        if (f->assumed && json_object_get(f->rope, "type") &&
            !json_object_get(f->rope, "rope_type"))
            return refuse(
                f,
                "type stands in %s without rope_type: releases of that library differ "
                "in whether it counts; rope_type is needed",
                f->rope_name);
        if (f->rope && strcmp(local.name, "local_rope_theta") == 0)
            return refuse(f,
                          "%s beside local_rope_theta: releases of that library differ in "
                          "which layers it scales; an object for each type of layers is needed",
                          f->rope_name);
        if (add_part(f, like, "full", f->rope, c, m) ||
            add_part(f, like, "sliding", NULL, c, m))
            return -1;
    } else
        return add_part(f, like, "", f->rope, c, m);
    note_layers(f, c, like);
    return 0;
}
