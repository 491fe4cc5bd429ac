/*
 * Vision towers that rotate: those of Qwen2-VL and its successors turn the first half of a
 * head's pairs with the row of a patch and the second half with its column, by the same
 * frequencies, theta^(-4j/head_dim), j < head_dim/4 (Wang et al. 2409.12191;
 * huggingface/transformers, modeling_qwen2_vl.py, modeling_qwen2_5_vl.py,
 * modeling_qwen3_vl.py, modeling_qwen3_5.py).
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

/* `width` is the member with the size of all heads: Qwen2-VL has another hidden_size. */
static const struct tower {
    const char *type, *width;
} towers[] = {
    { "qwen2_vl", "embed_dim" },   { "qwen2_5_vl", "hidden_size" },
    { "qwen3_vl", "hidden_size" }, { "qwen3_vl_moe", "hidden_size" },
    { "qwen3_5", "hidden_size" },  { "qwen3_5_moe", "hidden_size" },
};
enum { N_TOWERS = sizeof towers / sizeof *towers };

/* Its own type, with or without "_vision" at the end, or that of the whole file. */
static const struct tower *find_tower(const json_t *json, const json_t *vision)
{
    const char *type = json_string_value(json_object_get(vision, "model_type"));
    if (!type)
        type = json_string_value(json_object_get(json, "model_type"));
    for (int i = 0; type && i < N_TOWERS; i++) {
        size_t n = strlen(towers[i].type);
        if (strncmp(towers[i].type, type, n) == 0 &&
            (!type[n] || strcmp(type + n, "_vision") == 0))
            return &towers[i];
    }
    return NULL;
}

static int read_tower(const struct fields *v, const struct tower *tower, struct part *p)
{
    const json_t *rope = json_object_get(v->file, "rope_parameters");
    int64_t merged;
    if (field_whole(v, NAMES(tower->width), MOST, 0, &p->width) ||
        field_whole(v, NAMES("num_heads", "num_attention_heads"), MOST_HEADS, 0, &p->heads) ||
        field_whole(v, NAMES("spatial_merge_size"), 16, 2, &merged) ||
        number_in(v, json_object_get(rope, "rope_theta"), "rope_theta", 1e-6, 1e30,
                  &p->freqs.rope_theta))
        return -1;
    p->head_dim = p->rotary_dim = p->freqs.dim = p->width / p->heads;
    if (p->width % p->heads || p->head_dim % 4)
        return refuse(v, "%s is %lld for %lld heads: a multiple of 4 for each is needed",
                      tower->width, (long long)p->width, (long long)p->heads);
    p->key_heads = p->heads;
    p->length = p->picture = CONFIG_PICTURE * merged;
    p->freqs.mrope_section[0] = p->freqs.mrope_section[1] = p->head_dim / 4;
    p->freqs.mrope_layout = POSENC_MROPE_RESTARTED;
    return config_try_freqs(v, p);
}

int config_vision(const struct fields *f, const json_t *json, struct config *c)
{
    const json_t *vision = json_object_get(json, "vision_config");
    if (!json_is_object(vision))
        return 0;
    char why[MODEL_ERROR];
    const struct fields v = { .file = vision, .error = why, .notes = f->notes };
    const struct tower *tower = find_tower(json, vision);
    if (!tower) {
        note(f, "vision_config is not covered: this is the model of text alone");
        return 0;
    }
    if (!find_field_of_file(&v, NAMES(tower->width), NULL)) {
        note(f, "vision_config is not covered: it does not say its %s", tower->width);
        return 0;
    }
    struct part *p = &c->parts[c->n_parts++];
    *p = (struct part){ .encoding = ROPE_HALF, .name = "vision", .tower = true };
    p->freqs = posenc_freqs_spec_init();
    if (read_tower(&v, tower, p))
        return refuse(f, "vision_config: %.1900s", why);
    if (find_field_of_file(&v, NAMES("num_position_embeddings"), NULL))
        note(f, "The learned embeddings that its vision tower interpolates and adds "
                "(num_position_embeddings) are not covered");
    return 0;
}
