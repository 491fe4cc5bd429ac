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

/* Types of layers whose rotations differ, as layer_types and rope_parameters call them, and
 * where else their numbers may be. */
static const struct layers {
    const char *type, *name;
    const char *theta[3], *head_dim[3], *key_heads[4];
} kinds[] = {
    { "",
      "",
      { "rope_theta", "rotary_emb_base" },
      { "head_dim" },
      { "num_key_value_heads", "num_kv_heads", "n_head_kv" } },
    { "full_attention",
      "full",
      { "rope_theta", "global_rope_theta" },
      { "global_head_dim", "head_dim" },
      { "num_global_key_value_heads", "num_key_value_heads" } },
    { "sliding_attention",
      "sliding",
      { "rope_local_base_freq", "local_rope_theta" },
      { "head_dim" },
      { "num_key_value_heads" } },
    { "chunked_attention",
      "chunked",
      { "rope_theta" },
      { "head_dim" },
      { "num_key_value_heads" } },
};
enum { ALL_LAYERS, FULL, SLIDING, N_KINDS = sizeof kinds / sizeof *kinds };

int rope_number(const struct fields *f, const struct rope *rope, const char *inside,
                const char *const *names, double least, double most, double *value)
{
    double inner = (double)NAN, outer = inner;
    const char *name;
    const json_t *j = find_field_of_file(f, names, &name);
    if (number_in(f, json_object_get(rope->object, inside), inside, least, most, &inner) ||
        number_in(f, j, name, least, most, &outer))
        return -1;
    if (!isnan(inner) && !isnan(outer) && (inner < outer || inner > outer))
        return refuse(f, "%s is %.9g, and %s in %s is %.9g: they must agree", name, outer,
                      inside, rope->name, inner);
    if (!isnan(inner) || !isnan(outer)) {
        *value = isnan(inner) ? outer : inner;
        return 0;
    }
    return field_number(f, names, least, most, value);
}

/* One key head for all query heads (Falcon 7B; DeepSeek's latent attention), or as many as the
 * file says, or as query heads. */
static int read_heads(const struct fields *f, const struct layers *kind, struct part *p)
{
    bool single = false, grouped = false;
    if (field_whole(f, NAMES("qk_rope_head_dim"), MOST, -1, &p->head_dim))
        return -1;
    if (p->head_dim > 0) {
        p->key_heads = 1;
        return 0;
    }
    if (field_truth(f, NAMES("multi_query"), &single) ||
        field_truth(f, NAMES("new_decoder_architecture"), &grouped) ||
        field_whole(f, kind->head_dim, MOST, p->width / p->heads, &p->head_dim) ||
        field_whole(f, kind->key_heads, p->heads, p->heads, &p->key_heads))
        return -1;
    if (single && !grouped)
        p->key_heads = 1;
    if (p->heads % p->key_heads)
        return refuse(f, "%s is %lld: a divisor of the %lld heads is needed",
                      kind->key_heads[0], (long long)p->key_heads, (long long)p->heads);
    return 0;
}

static int read_share(const struct fields *f, const struct rope *rope, struct part *p)
{
    double share = 1.0;
    const json_t *dim = find_field(f, NAMES("rotary_dim"), NULL);
    if (rope_number(f, rope, "partial_rotary_factor",
                    NAMES("partial_rotary_factor", "rotary_pct"), 0.0, 1.0, &share))
        return -1;
    if (rope_takes(rope, "partial_rotary_factor")) {
        p->freqs.partial_rotary_factor = share;
        p->rotary_dim = p->head_dim;
    } else if (!dim)
        p->rotary_dim = (int64_t)((double)p->head_dim * share);
    else if (field_whole(f, NAMES("rotary_dim"), MOST, 0, &p->rotary_dim))
        return -1;
    if (p->rotary_dim > p->head_dim)
        return refuse(f, "rotary_dim is %lld: at most head_dim, %lld, is possible",
                      (long long)p->rotary_dim, (long long)p->head_dim);
    if (p->rotary_dim < 2 || p->rotary_dim % 2)
        return refuse(f, "rotary_dim is %lld: an even number from 2 is needed",
                      (long long)p->rotary_dim);
    return 0;
}

int config_try_freqs(const struct fields *f, const struct part *p)
{
    struct posenc_freqs_spec spec = p->freqs;
    for (int64_t beyond = 0; beyond < 2; beyond++) {
        spec.seq_len = p->length << beyond;
        struct posenc_freqs *freqs;
        struct posenc_error why = { 0 };
        enum posenc_status status = posenc_freqs_create(&spec, &freqs, &why);
        if (status == POSENC_OK) {
            posenc_freqs_destroy(freqs);
            continue;
        }
        char range[64] = "";
        if (why.least <= why.most)
            snprintf(range, sizeof range, "; from %g to %g is possible", why.least, why.most);
        return refuse(f, "its frequencies cannot be made: %s (%s is %.10g%s)",
                      posenc_status_string(status), why.what ? why.what : "a parameter",
                      why.value, range);
    }
    return 0;
}

static int add_part(const struct fields *f, const struct part *like, const struct layers *kind,
                    const struct rope *rope, struct config *c, struct model *m)
{
    struct part *p = &c->parts[c->n_parts++];
    *p = *like;
    p->name = kind->name;
    p->freqs = posenc_freqs_spec_init();
    p->freqs.rope_theta = 0.0;
    if (rope_number(f, rope, "rope_theta", kind->theta, 1e-6, 1e30, &p->freqs.rope_theta))
        return -1;
    if (p->freqs.rope_theta <= 0.0)
        return refuse(f, "%s is missing%s%s: a number above 0 is needed", kind->theta[0],
                      *kind->type ? " for layers of type " : "", kind->type);
    if (read_heads(f, kind, p) || read_share(f, rope, p))
        return -1;
    p->freqs.dim = p->rotary_dim;
    return config_scaling(f, rope, p, m) || config_try_freqs(f, p) ? -1 : 0;
}

/* ---- types of layers ---- */

static int find_rope(const struct fields *f, struct rope *rope)
{
    static const char *const names[] = { "rope_scaling", "rope_parameters" };
    *rope = (struct rope){ NULL, names[0] };
    for (int i = 0; i < 2; i++) {
        const json_t *j = find_field_of_file(f, NAMES(names[i]), NULL);
        if (j && !json_is_object(j))
            return refuse(f,
                          "%s is no object: one such as {\"rope_type\": \"linear\", "
                          "\"factor\": 2}, or null, is needed",
                          names[i]);
        if (j && rope->object && !json_equal(j, rope->object))
            return refuse(f, "rope_scaling and rope_parameters differ: one of them, or the "
                             "same twice, is needed");
        if (j && !rope->object)
            *rope = (struct rope){ j, names[i] };
    }
    return 0;
}

/* {"full_attention": {...}, "sliding_attention": {...}}: every member is an object. */
static bool by_layers(const struct rope *rope)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)rope->object, key,
                        value) if (!json_is_object(value)) return false;
    return json_object_size(rope->object) > 0;
}

static int each_kind(const struct fields *f, const struct part *like, const struct rope *rope,
                     struct config *c, struct model *m)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)rope->object, key, value)
    {
        int k = FULL;
        while (k < N_KINDS && strcmp(kinds[k].type, key) != 0)
            k++;
        if (k == N_KINDS)
            return refuse(f,
                          "%s has layers of type '%.40s': known are full_attention, "
                          "sliding_attention and chunked_attention",
                          rope->name, key);
    }
    for (int k = FULL; k < N_KINDS; k++) { /* in our order, whatever that of the file */
        const struct rope one = { json_object_get(rope->object, kinds[k].type), rope->name };
        if (one.object && add_part(f, like, &kinds[k], &one, c, m))
            return -1;
    }
    return 0;
}

/* How many of layer_types are `type`. */
static size_t count_layers(const json_t *layers, const char *type)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *s = json_string_value(json_array_get(layers, i));
        n += s && strcmp(s, type) == 0;
    }
    return n;
}

/* How many layers each part stands for, and those that none does. */
static void note_layers(const struct fields *f, const struct config *c)
{
    const json_t *layers = find_field_of_file(f, NAMES("layer_types"), NULL);
    size_t of = json_array_size(layers), left = of;
    for (size_t i = 0; i < c->n_parts && of; i++)
        for (int k = FULL; k < N_KINDS; k++)
            if (strcmp(kinds[k].name, c->parts[i].name) == 0) {
                size_t n = count_layers(layers, kinds[k].type);
                left -= n;
                note(f, "%s is the rotation of %zu of %zu layers", kinds[k].type, n, of);
            }
    if (left)
        note(f, "%zu layers are of types without a rotation here", left);
    double every = 0.0;
    if (!of &&
        !field_number(f,
                      NAMES("sliding_window_pattern", "_sliding_window_pattern",
                            "global_attn_every_n_layers"),
                      1.0, (double)MOST, &every) &&
        every > 0.0)
        note(f, "One layer in %g has full attention, the others slide", every);
}

int config_rope(const struct fields *f, const struct part *like, struct config *c,
                struct model *m)
{
    struct rope rope;
    const char *local;
    if (find_rope(f, &rope))
        return -1;
    if (by_layers(&rope)) {
        if (each_kind(f, like, &rope, c, m))
            return -1;
    } else if (find_field(f, kinds[SLIDING].theta, &local)) {
        const struct rope none = { NULL, rope.name };
        if (rope.object && strcmp(local, "local_rope_theta") == 0)
            return refuse(f,
                          "%s beside local_rope_theta: releases of that library differ in "
                          "which layers it scales; an object for each type of layers is needed",
                          rope.name);
        if (add_part(f, like, &kinds[FULL], &rope, c, m) ||
            add_part(f, like, &kinds[SLIDING], &none, c, m))
            return -1;
    } else
        return add_part(f, like, &kinds[ALL_LAYERS], &rope, c, m);
    note_layers(f, c);
    return 0;
}
