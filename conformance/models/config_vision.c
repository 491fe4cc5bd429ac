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

/* The member with the size of all heads, by the tower's own type or that of the whole file: Qwen2-VL's
 * hidden_size is another.  NULL: such a tower is not known. */
static const char *find_width(const json_t *json, const json_t *vision)
{
    const char *type = json_string_value(json_object_get(vision, "model_type"));
    if (!type)
        type = json_string_value(json_object_get(json, "model_type"));
    if (type && lists("qwen2_vl qwen2_vl_vision", type))
        return "embed_dim";
    return type && lists("qwen2_5_vl qwen2_5_vl_vision qwen3_vl qwen3_vl_vision qwen3_vl_moe "
                         "qwen3_vl_moe_vision qwen3_5 qwen3_5_vision qwen3_5_moe "
                         "qwen3_5_moe_vision",
                         type)
               ? "hidden_size"
               : NULL;
}

bool config_has_tower(const json_t *json, const json_t *vision)
{
    return find_width(json, vision) != NULL;
}

static int read_tower(const struct fields *v, const char *width, struct part *p)
{
    if (members_read(v, width, p) || members_read(v, "tower", p))
        return -1;
    if (p->width % p->heads || p->head_dim % 4)
        return refuse(v, "%s is %lld for %lld heads: a multiple of 4 for each is needed", width,
                      (long long)p->width, (long long)p->heads);
    p->freqs.dim = p->head_dim;
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
    const struct fields v = { .root = json, .file = vision, .error = why, .notes = f->notes };
    const char *width = find_width(json, vision);
    if (width && !member_value(&v, width))
        note(f, "vision_config is not covered: it does not say its %s", width);
    if (!width || !member_value(&v, width))
        return 0;
    struct part *p = &c->parts[c->n_parts++];
    *p = (struct part){ .encoding = ROPE_HALF,
                        .name = "vision",
                        .stack = "vision",
                        .freqs = posenc_freqs_spec_init(),
                        .picture = CONFIG_PICTURE,
                        .tower = true };
    origin_say(p, "encoding", "vision_config");
    if (read_tower(&v, width, p))
        return refuse(f, "vision_config: %.1900s", why);
    if (member_value(&v, "num_position_embeddings"))
        note(f, "The learned embeddings that its vision tower interpolates and adds "
                "(num_position_embeddings) are not covered");
    return 0;
}
