/*
 * Configurations as they are published, in their old and new spellings: what becomes of them;
 * and those that must be refused, each naming what is wrong, its value and what would be
 * accepted.
 */
#define _XOPEN_SOURCE 700
#include "conformance/tap/tap.h"
#include "test_text.h"

#include <math.h>
#include <stdio.h>

static struct model m, other;
static char error[MODEL_ERROR];

static bool loads(const char *text)
{
    model_free(&m);
    if (load_text(text, &m, error) == 0)
        return true;
    printf("# %s\n", error);
    return false;
}

static bool built_in(const char *name)
{
    model_free(&m);
    return model_by_name(name, &m, error) == 0;
}

static bool near(double got, double want) { return fabs(got - want) <= 1e-6 * fabs(want); }

static bool same_text(const char *a, const char *b)
{
    bool loaded = loads(a) && load_text(b, &other, error) == 0, same = false;
    if (loaded) {
        same = same_cases(&m, &other);
        model_free(&other);
    } else
        printf("# %s\n", error);
    return same;
}

/* ---- as published ---- */

static void test_layers(void)
{
    const struct problem *p;
    require(built_in("gemma-3-4b") && m.max_position_embeddings == 131072 &&
                (p = find_case(&m, "rope_half/f32/given", "gemma-3-4b-decode")) &&
                p->heads == 12 && p->dim == 256,
            "Gemma 3 4B rotates 8 + 4 heads of 256, the defaults of its class");
    require((p = find_case(&m, "rope_table/f32/exact", "full-decode")) &&
                p->freqs.scaling == POSENC_SCALING_LINEAR && p->freqs.factor == 8.0 &&
                p->freqs.rope_theta == 1e6 && p->first == 131071,
            "its layers of full attention have base 1e6 and linear scaling by 8");
    require((p = find_case(&m, "rope_table/f32/exact", "sliding-decode")) &&
                p->freqs.scaling == POSENC_SCALING_NONE && p->freqs.rope_theta == 1e4,
            "those that slide base 1e4 and no scaling");
    require(strstr(m.notes, "vision_config is not covered") &&
                strstr(m.notes, "One layer in 6"),
            "its notes name the vision tower and say which layers slide");
    require(built_in("gemma-4-e2b") &&
                (p = find_case(&m, "rope_half/f32/given", "full-decode")) && p->heads == 9 &&
                p->dim == 512 && p->rotary_dim == 512 &&
                (p = find_case(&m, "rope_half/f32/given", "sliding-decode")) && p->dim == 256,
            "Gemma 4 has heads of 512 in layers of full attention, of 256 in those that slide");
    p = find_case(&m, "rope_table/f32/exact", "full-decode");
    require(p && p->freqs.scaling == POSENC_SCALING_PROPORTIONAL && p->freqs.dim == 512 &&
                near(omega_of(p, 63, NULL), pow(1e6, -126.0 / 512.0)) &&
                omega_of(p, 64, NULL) == 0.0,
            "and turns 64 of 256 pairs there, by exponents over 512");
    require(strstr(m.notes, "full_attention is the rotation of 7 of 35 layers"),
            "its notes count the layers");
    require(built_in("modernbert-base") && strstr(m.notes, "One layer in 3") &&
                (p = find_case(&m, "rope_table/f32/exact", "full-prefill")) &&
                p->freqs.rope_theta == 160000.0 &&
                (p = find_case(&m, "rope_table/f32/exact", "sliding-prefill")) &&
                p->freqs.rope_theta == 10000.0 && p->freqs.dim == 64 &&
                find_case(&m, "rope_half/f32/given", "-prefill") &&
                !find_case(&m, "rope_", "decode"),
            "ModernBERT has a base for each type of layers, and does not decode");
    require(same_text("{\"model_type\": \"modernbert\", " TEXT
                      "\"position_embedding_type\": \"absolute\"}",
                      "{\"model_type\": \"modernbert\", " TEXT
                      "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e4}, "
                      "\"sliding_attention\": {\"rope_type\": \"default\"}}}"),
            "in later spellings, too");
    require(built_in("llama-4-scout") && strstr(m.notes, "12 of 48 layers do not rotate") &&
                (p = find_case(&m, "rope_interleaved/f32/given", "decode")) && p->heads == 48 &&
                m.max_position_embeddings == 10485760,
            "Llama 4 Scout rotates interleaved pairs, and not in every layer");
}

#define GEMMA3(rope)                                                                           \
    "{\"model_type\": \"gemma3_text\", \"hidden_size\": 640, \"max_position_embeddings\": "    \
    "4096, " rope "}"

static void test_spellings(void)
{
    require(same_text(GEMMA3("\"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}"),
                      GEMMA3("\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": "
                             "\"default\", \"rope_theta\": 10000.0}, \"full_attention\": "
                             "{\"rope_type\": \"linear\", \"factor\": 8.0, \"rope_theta\": "
                             "1000000.0}}")),
            "an object for each type of layers says what rope_local_base_freq said");
    require(same_text(GEMMA3("\"rope_theta\": 5e5, \"rope_local_base_freq\": 2e4"),
                      GEMMA3("\"rope_theta\": 5e5, \"rope_local_base_freq\": 2e4, "
                             "\"rope_parameters\": {\"full_attention\": {\"rope_type\": "
                             "\"default\"}, \"sliding_attention\": {\"rope_type\": "
                             "\"default\"}}")),
            "such objects without a base take that beside them");
    require(same_text(LLAMA ", \"rope_theta\": 5e5, \"rope_scaling\": {\"type\": \"linear\", "
                            "\"factor\": 4}}",
                      LLAMA ", \"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4, "
                            "\"rope_theta\": 5e5}}") &&
                m.freqs.scaling == POSENC_SCALING_LINEAR && m.freqs.rope_theta == 5e5,
            "rope_parameters say the same as rope_scaling, rope_type the same as type");
    require(same_text(LLAMA "}", LLAMA ", \"rope_parameters\": {\"rope_theta\": 10000}}") &&
                same_text(LLAMA "}", LLAMA ", \"rope_scaling\": {}}"),
            "an object that scales nothing is the default");
    require(same_text(LLAMA ", \"rotary_emb_base\": 500, \"rotary_pct\": 0.5}",
                      LLAMA ", \"rope_theta\": 500, \"partial_rotary_factor\": 0.5}") &&
                m.freqs.dim == 8,
            "rotary_emb_base and rotary_pct are the base and the share");
    require(same_text(LLAMA ", \"rotary_dim\": 8}",
                      LLAMA ", \"rope_parameters\": {\"rope_type\": \"default\", "
                            "\"partial_rotary_factor\": 0.5}}"),
            "rotary_dim is the share of head_dim");
    require(loads("{\"model_type\": \"deepseek_v3\", \"hidden_size\": 64, "
                  "\"num_attention_heads\": 4, \"max_position_embeddings\": 100, "
                  "\"rope_interleave\": false, \"qk_rope_head_dim\": 8}") &&
                find_case(&m, "rope_half/f32/given", "decode") &&
                strcmp(m.encoding, "rope_half") == 0,
            "rope_interleave false is the half-split pairing");
    require(loads("{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_head\": 4, \"n_ctx\": 32}") &&
                m.max_position_embeddings == 32,
            "n_ctx is a length");
}

static void test_lengths(void)
{
    const struct problem *p;
    double attention = 0.0;
    require(built_in("phi-4-mini") && m.freqs.dim == 96 && m.freqs.factor == 32.0 &&
                (p = find_case(&m, "rope_table/f32/exact", "-prefill")) &&
                p->freqs.seq_len == 512 &&
                near(omega_of(p, 47, &attention), pow(1e4, -94.0 / 96.0)),
            "Phi-4 mini has its short factors, all 1, for a prompt of 512");
    require(near(attention, sqrt(1.0 + log(32.0) / log(4096.0))) &&
                fabs(attention - 1.190238) < 1e-6,
            "and its attention factor there, too");
    require((p = find_case(&m, "rope_table/f32/exact", "-original")) && p->first == 4095 &&
                near(omega_of(p, 47, NULL), pow(1e4, -94.0 / 96.0)),
            "short ones still at position 4095");
    require((p = find_case(&m, "rope_table/f32/exact", "-decode")) && p->first == 131071 &&
                near(omega_of(p, 47, NULL), pow(1e4, -94.0 / 96.0) / 47.77) &&
                near(omega_of(p, 1, NULL), pow(1e4, -2.0 / 96.0) / 1.118320672),
            "long ones, to 47.77, at its last position");
    bool before = false, after = false;
    for (size_t i = 0; i < m.n_verify; i++) {
        const struct problem *v = &m.verify[i];
        before |= v->first + v->tokens == 4096 && v->freqs.seq_len == 4096;
        after |= v->first + v->tokens == 4097 && v->freqs.seq_len == 4097;
    }
    require(before && after, "and both sides of 4096 are verified");
    require(built_in("internlm2.5-7b") && m.freqs.scaling == POSENC_SCALING_DYNAMIC &&
                m.freqs.max_position_embeddings == 32768.0 &&
                (p = find_case(&m, "rope_table/f32/exact", "-decode")) &&
                near(omega_of(p, 63, NULL), pow(1e6, -126.0 / 128.0)),
            "a dynamic model has its own base up to its own length");
    require((p = find_case(&m, "rope_table/f32/exact", "-beyond")) && p->first == 65535 &&
                near(omega_of(p, 63, NULL), pow(1e6 * pow(3.0, 128.0 / 126.0), -126.0 / 128.0)),
            "and a larger one beyond it: factor 2 at twice the length makes 3^(128/126)");
    require(built_in("qwen3-8b-yarn") && m.freqs.factor == 4.0 &&
                m.freqs.original_max_position_embeddings == 32768.0 &&
                !strstr(m.notes, "factor"),
            "Qwen3 8B stretched four times");
    require(loads(LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}}") &&
                m.freqs.original_max_position_embeddings == 100.0,
            "yarn without an original length takes the model's");
    require(loads(LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", "
                        "\"original_max_position_embeddings\": 25}}") &&
                m.freqs.factor == 4.0,
            "without a factor the ratio of both");
    require(loads(LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
                        "\"original_max_position_embeddings\": 80}}") &&
                m.freqs.factor == 4.0 && strstr(m.notes, "factor is 4 where"),
            "where they disagree the factor counts, and the notes say so");
    require(loads(LLAMA ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2, "
                        "\"attention_factor\": 3, \"finetuned\": true}}") &&
                m.freqs.attention_factor == 0.0 && strstr(m.notes, "attention_factor of") &&
                strstr(m.notes, "finetuned of"),
            "members of other rules count for nothing, and the notes say so");
}

static void test_not_rotated(void)
{
    const struct problem *p;
    require(built_in("whisper-large-v3") && m.max_position_embeddings == 1500 &&
                (p = find_case(&m, "sinusoidal_add/f32/exact", "encoder-prefill")) &&
                p->freqs.convention == POSENC_ENDPOINT && p->layout == POSENC_SIN_COS &&
                p->freqs.dim == 1280 && p->x_scale == 1.0f &&
                !find_case(&m, "sinusoidal_add/f32/exact", "encoder-decode"),
            "Whisper's encoder adds sin | cos to the endpoint, and does not decode");
    require((p = find_case(&m, "learned_add/f32/given", "decoder-decode")) && p->rows == 448 &&
                p->first == 447,
            "its decoder a learned table of 448 rows");
    require(built_in("roberta-base") && m.max_position_embeddings == 512 &&
                (p = find_case(&m, "learned_add/f32/given", "prefill")) && p->rows == 514 &&
                p->first == 2 && p->tokens == 512,
            "RoBERTa's 514 rows are 512 positions from row 2 on");
    require(built_in("opt-1.3b") && m.max_position_embeddings == 2048 &&
                (p = find_case(&m, "learned_add/f32/given", "decode")) && p->rows == 2050 &&
                p->first == 2049,
            "OPT's 2048 positions have rows 2 to 2049");
    require(built_in("falcon-7b") && (p = find_case(&m, "rope_half/f32/given", "decode")) &&
                p->heads == 72 && p->dim == 64,
            "Falcon 7B rotates 71 query heads and one key head");
    require(built_in("falcon-rw-1b") && (p = find_case(&m, "alibi_add/f32/given", "decode")) &&
                p->heads == 32 && p->keys == 2048 && strstr(m.notes, "before it scales"),
            "Falcon RW has ALiBi, and its notes say how its code differs");
    require(
        loads("{\"model_type\": \"falcon\", \"hidden_size\": 8192, \"num_attention_heads\": "
              "128, \"num_kv_heads\": 8, \"new_decoder_architecture\": true, "
              "\"multi_query\": true}") &&
            (p = find_case(&m, "rope_half/f32/given", "decode")) && p->heads == 136,
        "Falcon 40B groups its key heads");
    require(built_in("baichuan2-13b") && (p = find_case(&m, "alibi_add/f32/given", "decode")) &&
                p->heads == 40 && p->keys == 4096 &&
                loads("{\"model_type\": \"baichuan\", \"hidden_size\": 4096, "
                      "\"num_attention_heads\": 32, \"max_position_embeddings\": 4096}") &&
                find_case(&m, "rope_half/f32/given", "decode"),
            "Baichuan 13B has ALiBi, 7B rotates");
    require(built_in("mt5-base") && (p = find_case(&m, "t5_bias_add/f32/given", "prefill")) &&
                p->num_buckets == 32 && p->max_distance == 128,
            "mT5 has 32 buckets to a distance of 128");
    require(built_in("albert-base-v2") &&
                (p = find_case(&m, "learned_add/f32/given", "prefill")) && p->dim == 128 &&
                p->rows == 512 && !find_case(&m, "learned_add", "decode"),
            "ALBERT's rows are 128 wide, as its embeddings, not 768");
    require(built_in("opus-mt-en-de") &&
                (p = find_case(&m, "sinusoidal_add/f32/exact", "prefill")) &&
                p->layout == POSENC_SIN_COS && p->freqs.convention == POSENC_EXPONENT &&
                p->x_scale == (float)sqrt(512.0) && p->freqs.dim == 512 &&
                find_case(&m, "sinusoidal_add/f32/exact", "decode"),
            "Marian adds sines, then cosines, to scaled embeddings");
    require(built_in("glm-4-9b") &&
                (p = find_case(&m, "rope_interleaved/f32/given", "decode")) && p->heads == 34 &&
                p->dim == 128 && p->rotary_dim == 64,
            "GLM-4 rotates neighbours, 64 of 128 channels");
    require(built_in("bloom-560m") && (p = find_case(&m, "alibi_add/f32/given", "decode")) &&
                p->heads == 16 && p->keys == 2048,
            "BLOOM 560M has 16 heads over 2048 keys");
}

/* ---- refused ---- */

#define ROPE(members) LLAMA ", \"rope_scaling\": {" members "}}"
#define EIGHT         "1, 1, 1, 1, 1, 1, 1, 1"
#define LONGROPE(more)                                                                         \
    ROPE("\"type\": \"longrope\", \"original_max_position_embeddings\": 50, " more)

#define DEBERTA                                                                                \
    "{\"model_type\": \"deberta-v2\", \"hidden_size\": 64, \"num_attention_heads\": 4, "       \
    "\"max_position_embeddings\": 512, \"relative_attention\": true"

static const struct {
    const char *text, *named;
} bad[] = {
    /* types */
    { "{\"model_type\": \"swinv2\"}", "not supported yet: a network that makes the bias" },
    { "{\"model_type\": \"xlnet\"}", "not supported yet: relative positions in both" },
    { DEBERTA ", \"pos_att_type\": \"c2p|p2p\"}", "pos_att_type 'p2p' is unknown; known: c2p" },
    { DEBERTA "}", "pos_att_type is missing or empty: c2p, p2c or both" },
    { DEBERTA ", \"pos_att_type\": [\"c2p\"], \"position_buckets\": 600}",
      "position_buckets is 600 with 512 relative positions" },
    { "{\"model_type\": \"swin\", \"embed_dim\": 96, \"num_heads\": [5]}",
      "num_heads of stage 1 is 5: a divisor of its width, 96" },
    { "{\"model_type\": \"swin\", \"embed_dim\": 96, \"num_heads\": 3}",
      "num_heads is no list of 1 to 4" },
    { "{\"model_type\": \"beit\", \"hidden_size\": 64, \"num_attention_heads\": 4}",
      "use_relative_position_bias and use_shared_relative_position_bias are false" },
    { "{\"model_type\": \"beit\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
      "\"use_relative_position_bias\": true, \"image_size\": 225}",
      "image_size is 225: a multiple of patch_size, 16" },
    { "{\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"mamba2\"}}",
      "model_type 'mamba2' is unknown; known: transformer, marian" },
    { "{\"model_type\": \"gemma3\", \"text_config\": 3}", "text_config is no object" },
    { "{\"model_type\": 7}", "model_type '(none)' is unknown" },
    { "{\"model_type\": \"baichuan\", \"hidden_size\": 1024}",
      "hidden_size is 1024: of a bai" },
    { LLAMA ", \"alibi\": true}", "alibi is true" },
    { LLAMA ", \"_posenc\": {\"encoding\": \"fire\"}}", "_posenc.encoding 'fire'" },
    { "{\"model_type\": \"bert\", \"hidden_size\": 64, \"max_position_embeddings\": 8, "
      "\"position_embedding_type\": \"relative_key\"}",
      "position_embedding_type 'relative_key' is not supported here; supported: absolute" },
    { "{\"model_type\": \"roberta\", \"hidden_size\": 64, \"max_position_embeddings\": 2, "
      "\"pad_token_id\": 1}",
      "pad_token_id is 1" },
    { "{\"model_type\": \"whisper\", \"d_model\": 64, \"max_source_positions\": 8}",
      "max_target_positions is missing" },
    /* rules */
    { ROPE("\"rope_type\": \"ntk-by-parts\", \"factor\": 2"),
      "rope_type 'ntk-by-parts' of rope_scaling is unknown; known: default, linear, llama3, "
      "yarn, dynamic, longrope, proportional, " },
    { ROPE("\"type\": \"dynamic-yarn\", \"factor\": 2"), "type 'dynamic-yarn'" },
    { ROPE("\"type\": \"resonance\""), "type 'resonance' of rope_scaling is unknown" },
    { ROPE("\"type\": \"resonance_yarn\""),
      "factor is missing: rope_scaling of type resonance_yarn" },
    { ROPE("\"factor\": 2"), "rope_scaling has no rope_type; known: default" },
    { ROPE("\"rope_type\": 3, \"factor\": 2"), "rope_type of rope_scaling is no text" },
    { ROPE("\"rope_type\": \"yarn\", \"type\": \"linear\", \"factor\": 2"), "must agree" },
    { LLAMA ", \"rope_scaling\": [2]}", "rope_scaling is no object: one such as" },
    { LLAMA ", \"rope_parameters\": \"yarn\"}", "rope_parameters is no object" },
    { LLAMA ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, \"rope_parameters\": "
            "{\"type\": \"linear\", \"factor\": 3}}",
      "rope_scaling and rope_parameters differ" },
    { ROPE("\"rope_type\": \"linear\", \"factor\": 2, \"attn_factor\": 2"),
      "rope_scaling has 'attn_factor', which this loader does not know" },
    { LONGROPE("\"short_mscale\": 1.2"), "'short_mscale'" },
    /* members */
    { ROPE("\"rope_type\": \"linear\", \"factor\": null"), "factor is missing" },
    { ROPE("\"rope_type\": \"linear\", \"factor\": \"2\""), "factor is no number: a number" },
    { ROPE("\"rope_type\": \"linear\", \"factor\": 0.5"), "factor is 0.5: a number from 1 to" },
    { ROPE("\"rope_type\": \"dynamic\""), "factor is missing: rope_scaling of type dynamic" },
    { ROPE("\"rope_type\": \"dynamic\", \"factor\": 1e7"),
      "factor is 10000000: a number from" },
    { ROPE("\"rope_type\": \"yarn\""), "factor is missing: rope_scaling of type yarn" },
    { ROPE("\"rope_type\": \"yarn\", \"factor\": 2, \"truncate\": 0"), "truncate is neither" },
    { ROPE("\"rope_type\": \"yarn\", \"factor\": 2, \"beta_fast\": 0.5"), "beta_fast" },
    { ROPE("\"rope_type\": \"llama3\", \"factor\": 2"), "original_max_position" },
    { ROPE("\"rope_type\": \"llama3\", \"factor\": 8, \"high_freq_factor\": 4, "
           "\"original_max_position_embeddings\": 50"),
      "low_freq_factor is missing" },
    { ROPE("\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
           "\"original_max_position_embeddings\": 50"),
      "high_freq_factor is missing" },
    { ROPE("\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
           "\"high_freq_factor\": 1, \"original_max_position_embeddings\": 50"),
      "its frequencies cannot be made" },
    { ROPE("\"rope_type\": \"proportional\", \"partial_rotary_factor\": 0.05"),
      "its frequencies cannot be made" },
    { ROPE("\"rope_type\": \"longrope\", \"short_factor\": [" EIGHT
           "], \"long_factor\": [" EIGHT "]"),
      "original_max_position_embeddings is missing: rope_scaling of type longrope" },
    { LONGROPE("\"long_factor\": [" EIGHT "]"), "short_factor is missing" },
    { LONGROPE("\"short_factor\": 1, \"long_factor\": [" EIGHT "]"),
      "short_factor is no array" },
    { LONGROPE("\"short_factor\": [" EIGHT "], \"long_factor\": [1, 2]"),
      "long_factor has 2 numbers: 8, half of rotary_dim, are needed" },
    { LONGROPE("\"short_factor\": [" EIGHT ", 1], \"long_factor\": [" EIGHT "]"),
      "short_factor has 9 numbers" },
    { LONGROPE("\"short_factor\": [1, 1, 1, \"x\", 1, 1, 1, 1], \"long_factor\": [" EIGHT "]"),
      "short_factor[3] is no number" },
    { LONGROPE("\"short_factor\": [" EIGHT "], \"long_factor\": [1, 1, 1, 1, 1, 1, 1, null]"),
      "long_factor[7] is null" },
    { LONGROPE("\"short_factor\": [" EIGHT "], \"long_factor\": [0, 1, 1, 1, 1, 1, 1, 1]"),
      "long_factor[0] is 0: a number from" },
    { LONGROPE("\"short_factor\": [" EIGHT "], \"long_factor\": [" EIGHT "], \"factor\": 4"),
      "factor is 4 where max_position_embeddings / original_max_position_embeddings is 2" },
    { LLAMA ", \"original_max_position_embeddings\": 20, \"rope_scaling\": {\"type\": "
            "\"longrope\", \"original_max_position_embeddings\": 50}}",
      "original_max_position_embeddings is 20, and in rope_scaling 50: they must agree" },
    { ROPE("\"rope_type\": \"mrope\""), "mrope_section is missing" },
    { ROPE("\"rope_type\": \"mrope\", \"mrope_section\": [4, 4]"), "no array of three" },
    { ROPE("\"rope_type\": \"mrope\", \"mrope_section\": [16, 24, 24]"),
      "mrope_section adds up to 64 pairs: 8, half of rotary_dim, are needed" },
    { ROPE("\"rope_type\": \"default\", \"mrope_section\": [\"t\", 1, 1]"),
      "mrope_section[0] is no number" },
    { ROPE("\"rope_type\": \"default\", \"mrope_section\": [4, 4, 0]"),
      "mrope_section[2] is 0: a whole number from 1" },
    { ROPE("\"rope_type\": \"default\", \"mrope_section\": [4, null, 4]"),
      "mrope_section[1] is 0: a whole number from 1" },
    { ROPE("\"rope_type\": \"default\", \"mrope_section\": [2.5, 2.5, 3]"),
      "mrope_section[0] is 2.5: a whole" },
    { ROPE("\"rope_type\": \"default\", \"mrope_interleaved\": true"),
      "mrope_section is missing" },
    { ROPE("\"rope_type\": \"default\", \"mrope_section\": [3, 3, 2], "
           "\"mrope_interleaved\": 1"),
      "mrope_interleaved is neither true nor false" },
    { LLAMA ", \"rope_theta\": 1e4, \"rope_parameters\": {\"rope_theta\": 1e6}}",
      "rope_theta is 10000, and rope_theta in rope_parameters is 1000000: they must agree" },
    { LLAMA ", \"partial_rotary_factor\": 2}", "partial_rotary_factor is 2: a number from 0" },
    { LLAMA ", \"partial_rotary_factor\": 0.03}", "rotary_dim is 0: an even number" },
    /* layers */
    { "{\"model_type\": \"modernbert\", " TEXT "\"local_rope_theta\": 1e4, \"rope_scaling\": "
      "{\"type\": \"linear\", \"factor\": 2}}",
      "rope_scaling beside local_rope_theta: releases of that library differ" },
    { GEMMA3("\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}, "
             "\"mamba\": {\"rope_type\": \"default\"}}"),
      "rope_parameters has layers of type 'mamba': known are full_attention" },
    { GEMMA3("\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"warp\"}}"),
      "'warp'" },
    { GEMMA3("\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}, "
             "\"rope_theta\": 5}"),
      "rope_parameters has 'full_attention', which" },
    { LLAMA ", \"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"default\"}}}",
      "rope_local_base_freq is missing for layers of type sliding_attention" },
    { GEMMA3("\"num_global_key_value_heads\": 3"), "num_global_key_value_heads is 3" },
    { "{\"model_type\": \"llama4_text\", " TEXT "\"no_rope_layer_interval\": -4}",
      "no_rope_layer_interval is -4" },
    /* files */
    { ROPE("\"rope_type\": \"linear\", \"factor\": NaN"), "line 1" },
    { ROPE("\"rope_type\": \"linear\", \"factor\": 1e999"), "line 1: real number overflow" },
    { LLAMA ", \"rope_theta\": 99999999999999999999}", "line 1: too big integer" },
    { LLAMA ", \"rope_theta\": 1e31}", "rope_theta is 1e+31: a number from" },
    { LLAMA ", \"head_dim\": 1e12}", "head_dim is 1e+12" },
    { LLAMA ", \"multi_query\": 1}", "multi_query is neither true nor false" },
    { LLAMA ", \"max_position_embeddings\": 8}", "line 1: duplicate" },
    { ROPE("\"rope_type\": \"linear\", \"factor\": 2, \"factor\": 3"), "line 1: duplicate" },
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char sentence[160];
        *error = 0;
        int status = load_text(bad[i].text, &m, error);
        snprintf(sentence, sizeof sentence, "refused, naming %s", bad[i].named);
        require(status == -1 && strstr(error, bad[i].named) && m.n_owned == 0, sentence);
        if (!strstr(error, bad[i].named))
            printf("# %s\n", error);
    }
}

/* A file of brackets alone: the parser gives up, and does not run out of stack. */
static void test_nesting(void)
{
    enum { DEEP = 100000 };
    static char text[2 * DEEP];
    size_t at = (size_t)sprintf(text, LLAMA ", \"rope_scaling\": ");
    memset(text + at, '[', DEEP);
    require(load_text(text, &m, error) == -1 && strstr(error, "depth"),
            "a hundred thousand brackets are refused");
}

int main(void)
{
    test_layers();
    test_spellings();
    test_lengths();
    test_not_rotated();
    test_refusals();
    test_nesting();
    model_free(&m);
    return tap_end();
}
