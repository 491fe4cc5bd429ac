/*
 * params.json, as Meta's and Mistral's own releases have it beside their weights.  Both turn pairs
 * of neighbours (meta-llama/llama-models, models/llama3/model.py and models/llama4/model.py;
 * mistralai/mistral-inference, rope.py; YaRN's keys as vllm-project/vllm reads them,
 * transformers_utils/configs/mistral.py).  keys.txt says which key is which quantity.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys that tell one from the other, and those that change no position. */
static const char metas[] =
    "multiple_of ffn_dim_multiplier use_scaled_rope rope_scaling_factor rope_high_freq_factor "
    "nope_layer_interval";
static const char mistrals[] = "head_dim hidden_dim yarn llama_4_scaling qk_rope_head_dim";
static const char both[] = "dim n_layers n_heads n_kv_heads rope_theta max_seq_len norm_eps "
                           "vocab_size max_batch_size model_parallel_size";
static const char harmless[] =
    "ffn_exp use_qk_norm quantization_args lora_args moe_args max_position_embeddings "
    "model_type "
    "moe lora sliding_window tied_embeddings q_lora_rank kv_lora_rank qk_nope_head_dim "
    "v_head_dim "
    "qk_head_dim quantization activation causal use_biases attention_chunk_size dtype";
static const char uncovered[] =
    "vision_encoder multimodal vision_args vision_chunk_size vision_max_num_chunks "
    "vision_num_cross_attention_layers vision_model llama_4_scaling attn_temperature_tuning "
    "floor_scale attn_scale";

/* DistilBERT's config.json has dim and n_layers, too, and a type of its own. */
bool config_is_params(const json_t *json)
{
    const json_t *type = json_object_get(json, "model_type");
    return json_object_get(json, "dim") && json_object_get(json, "n_layers") &&
           !json_object_get(json, "hidden_size") &&
           (!type ||
            (json_is_string(type) && lists("transformer mamba", json_string_value(type))));
}

/* Any key of the list that is there, or NULL. */
static const char *find_any(const json_t *json, const char *words)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key,
                        value) if (!json_is_null(value) && lists(words, key)) return key;
    return NULL;
}

/* A key that is not known may matter where its name says positions or heads; else it is noted. */
static int check_keys(const struct fields *f, const char *own)
{
    static const char *const telling[] = { "rope", "rotary", "theta", "yarn", "scal",
                                           "pos",  "head",   "alibi", "nope" };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)f->file, key, value)
    {
        if (!json_is_null(value) && lists(uncovered, key))
            note(f, "%s is not covered", key);
        if (json_is_null(value) || lists(uncovered, key) || lists(own, key) ||
            lists(both, key) || lists(harmless, key))
            continue;
        for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
            if (strstr(key, telling[i]))
                return refuse(f,
                              "'%.60s' is a key that this reader does not know: it may change "
                              "the numbers",
                              key);
        note(f, "%.60s is not read", key);
    }
    return 0;
}

/* ---- Meta ---- */

static int read_meta(const struct fields *f, struct part *p)
{
    const json_t *scaled = member_value(f, "use_scaled_rope");
    struct posenc_freqs_spec *spec = &p->freqs;
    if (members_read(f, "meta", p))
        return -1;
    if (p->every)
        p->layers -= p->layers / p->every;
    if (!member_value(f, "rope_theta"))
        note(f, "rope_theta is missing: 10000 is taken, the constant of Llama 2's code");
    if (!member_value(f, "max_seq_len"))
        note(f, "max_seq_len is missing: 2048 positions are taken, the default of Meta's code");
    if (scaled && !json_is_boolean(scaled))
        return refuse(f, "use_scaled_rope is neither true nor false: one of them is needed");
    if (!json_is_true(scaled))
        return 0;
    spec->scaling = POSENC_SCALING_LLAMA3;
    origin_say(p, "scaling", "use_scaled_rope");
    if (!member_value(f, "rope_scaling_factor"))
        note(f,
             "use_scaled_rope scales by 8, the constant of Meta's code (Hugging Face's files "
             "of Llama 3.2 say 32)");
    return members_read(f, "meta_scaled", p);
}

/* ---- Mistral ---- */

static int read_yarn(const struct fields *f, struct part *p)
{
    const json_t *yarn = member_value(f, "yarn"), *scales;
    struct posenc_freqs_spec *spec = &p->freqs;
    const char *key;
    json_t *value;
    if (!yarn)
        return 0;
    if (!json_is_object(yarn))
        return refuse(f, "yarn is no object: one such as {\"factor\": 16, "
                         "\"original_max_position_embeddings\": 16384}, or null, is needed");
    json_object_foreach((json_t *)yarn, key, value)
    {
        if (!lists("alpha beta factor original_max_position_embeddings apply_scale", key))
            return refuse(f,
                          "yarn has '%.60s', which this reader does not know: it may change "
                          "the numbers",
                          key);
    }
    scales = json_object_get(yarn, "apply_scale");
    if (scales && !json_is_boolean(scales))
        return refuse(f, "yarn.apply_scale is neither true nor false: one of them is needed");
    spec->scaling = POSENC_SCALING_YARN;
    if (members_read(f, "mistral_yarn", p))
        return -1;
    spec->attention_factor = json_is_false(scales) ? 1.0 : 0.1 * log(spec->factor) + 1.0;
    origin_say(p, "scaling", "yarn");
    origin_say(p, "attention_factor", "%s",
               json_is_false(scales) ? "yarn.apply_scale" : "0.1 ln(yarn.factor) + 1");
    return 0;
}

static int read_mistral(const struct fields *f, struct part *p)
{
    const json_t *kind = member_value(f, "model_type");
    if (kind && !(json_is_string(kind) && lists("transformer", json_string_value(kind))))
        return refuse(f, "model_type is '%.60s': only 'transformer' has positions in attention",
                      json_is_string(kind) ? json_string_value(kind) : "(no text)");
    if (members_read(f, "mistral", p))
        return -1;
    if (!member_value(f, "max_position_embeddings max_seq_len"))
        note(f, "max_position_embeddings is missing: 128000 positions are taken, as vLLM does");
    if (p->latent) {
        p->head_dim = p->rotary_dim = p->latent;
        p->key_heads = 1;
        origin_say(p, "head_dim", "qk_rope_head_dim");
        origin_say(p, "rotary_dim", "qk_rope_head_dim");
        origin_say(p, "key_heads", "one for all, as qk_rope_head_dim is there");
    }
    return read_yarn(f, p);
}

/* ---- all of it ---- */

int config_params(const json_t *json, struct config *c, struct model *m,
                  char error[MODEL_ERROR])
{
    const struct fields f = { .root = json, .file = json, .error = error, .notes = m->notes };
    const char *meta = find_any(json, metas), *mistral = find_any(json, mistrals);
    struct part *p = &c->parts[0];
    *c = (struct config){ .type = "params.json", .n_parts = 1 };
    snprintf(c->type_from, sizeof c->type_from, "%s", meta ? meta : mistral ? mistral : "");
    *p = (struct part){ .name = "",
                        .encoding = ROPE_INTERLEAVED,
                        .freqs = posenc_freqs_spec_init(),
                        .decodes = true };
    origin_say(p, "encoding", "%s", c->type_from);
    if (meta && mistral)
        return refuse(&f,
                      "it has %s, as Meta's params.json has, and %s, as Mistral's has: one of "
                      "them is needed",
                      meta, mistral);
    if (!meta && !mistral)
        return refuse(&f,
                      "it is like a params.json, but has none of the keys by which Meta's "
                      "(%s) and Mistral's (%s) are told apart",
                      metas, mistrals);
    note(&f, "As %s's own code reads it (params.json)", meta ? "Meta" : "Mistral");
    if (check_keys(&f, meta ? metas : mistrals) || (meta ? read_meta : read_mistral)(&f, p))
        return -1;
    p->freqs.dim = p->rotary_dim;
    snprintf(m->source, sizeof m->source, "the params.json given");
    return config_try_freqs(&f, p);
}
