/*
 * Towers that rotate: each pair of a head turns by one position of a patch, its row, its column or its
 * time, as many pairs by each, and frequencies begin anew with each, theta^(-j/n) for j < n pairs (Wang
 * et al. 2409.12191; huggingface/transformers, rope_type "axial"), or those of the whole head are dealt
 * out to them (Pixtral).  types.txt says which types are
 * towers, by flag, and members.txt which members give their sizes.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The object with its base may name no other rule. */
static int check_rule(const struct fields *f)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)f->rope, key, value)
    {
        const char *rule = json_string_value(value);
        if (lists("rope_type type", key) && (!rule || !lists("axial default", rule)))
            return refuse(f, "%s in %s is '%.40s': axial or default is needed for a tower", key,
                          f->rope_name, rule ? rule : "(no text)");
        if (!lists("rope_type type rope_theta", key))
            return refuse(
                f, "%s has '%.40s': rope_type and rope_theta are what is known of a tower",
                f->rope_name, key);
    }
    return 0;
}

/* Members of layers of their own may say what has nothing to do with positions. */
static int check_layers(const struct fields *f)
{
    const char *layer, *key;
    json_t *says, *value;
    json_object_foreach(json_object_get(f->file, "per_layer_config"), layer, says)
    {
        json_object_foreach(says, key, value)
        {
            if (!lists("num_local_experts num_experts_per_tok", key))
                return refuse(
                    f,
                    "per_layer_config has '%.40s' for layer %.10s: of a tower this is "
                    "not known",
                    key, layer);
        }
    }
    return 0;
}

int config_tower(const struct fields *plain, const char *flags, struct part *p)
{
    struct fields with;
    const struct fields *f = &with;
    char words[256];
    p->picture = CONFIG_PICTURE;
    snprintf(words, sizeof words, "%s axial", flags);
    if (config_find_rope(plain, &with) || check_rule(f) || check_layers(f) ||
        members_read(f, words, p))
        return -1;
    p->freqs.dim = p->rotary_dim;
    if (p->fractions) {
        p->freqs.dim /= 2;
        p->freqs.scaling = POSENC_SCALING_LINEAR;
        p->freqs.factor = (double)p->length / 6.283185307179586;
        origin_say(p, "scaling", "frequencies of fractions, times 2 pi, are those of patches");
        origin_say(p, "factor", "patches a side / 2 pi");
        return config_try_freqs(f, p);
    }
    if (p->halves)
        return config_try_freqs(f, p);
    for (int64_t axis = 0; axis < p->axes; axis++)
        p->freqs.mrope_section[axis] = p->rotary_dim / 2 / p->axes;
    p->freqs.mrope_layout = p->dealt         ? POSENC_MROPE_DEALT
                            : p->alternating ? POSENC_MROPE_ALTERNATING
                                             : POSENC_MROPE_RESTARTED;
    return config_try_freqs(f, p);
}

int config_vision(const struct fields *f, const json_t *json, struct config *c)
{
    const struct tower tower = types_of_others(f, json);
    if (!tower.file)
        return 0;
    char why[MODEL_ERROR], notes[MODEL_NOTES] = "", assumed[MODEL_NOTES] = "";
    json_t *defaults = type_defaults(tower.type);
    const struct fields v = { .root = json,
                              .file = tower.file,
                              .defaults = defaults,
                              .flags = tower.type->flags,
                              .error = why,
                              .notes = notes,
                              .assumed = assumed };
    assert(c->n_parts < MODEL_MAX_PARTS);
    struct part *p = &c->parts[c->n_parts++];
    *p =
        (struct part){ .name = "vision", .stack = "vision", .freqs = posenc_freqs_spec_init() };
    p->encoding = strcmp(tower.type->encoding, "rope_half") == 0 ? ROPE_HALF : ROPE_INTERLEAVED;
    origin_say(p, "encoding", "%s", tower.key);
    const int status = config_tower(&v, tower.type->flags, p);
    json_decref(defaults);
    if (status)
        return refuse(f, "%s: %.1900s", tower.key, why);
    if (*tower.type->note)
        note(&v, "%s", tower.type->note);
    if (*assumed)
        note(&v, "Not in the file, and taken as the classes of %s do: %s", tower.type->name,
             assumed);
    if (*notes)
        note(f, "Of %s: %s", tower.key, notes);
    return 0;
}
