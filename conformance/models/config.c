/*
 * Reads from a Hugging Face config.json what it says of positions: which type of model it is,
 * its sizes, and the parts it has.  Its keys have many spellings (huggingface/transformers,
 * configuration_*.py).  What is not known is refused by name, never guessed; what is known and
 * not covered is named in the model's notes.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* "absolute" of rotations: of the class that ModernBERT's is made from, and read by neither. */
const struct encoding_words encodings[N_ENCODINGS] = {
    [SINUSOIDAL] = { "sinusoidal", "sinusoidal", { "absolute", "sinusoidal" } },
    [LEARNED] = { "learned", "learned", { "absolute", "learned" } },
    [ROPE_HALF] = { "rope_half", "rotation", { "rope", "rotary", "absolute" } },
    [ROPE_INTERLEAVED] = { "rope_interleaved", "rotation", { "rope", "rotary", "absolute" } },
    [ALIBI] = { "alibi", "alibi", { "alibi" } },
    [T5] = { "t5", "t5", { "relative" } },
    [DEBERTA] = { "deberta", "relative", { "relative" } },
    [TRANSFORMER_XL] = { "transformer_xl", "relative", { "relative" } },
    [WINDOW] = { "window", "window", { "relative" } },
};

enum { MOST_BUCKETS = 4096 };

/* ---- which encoding ---- */

static int refuse_type(const struct fields *f, const char *name)
{
    char known[1536] = "";
    size_t at = 0;
    const struct model_type *type;
    for (size_t i = 0; (type = model_type_at(i)) && at < sizeof known; i++)
        if (!(model_type_flags(type) & UNSUPPORTED))
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "",
                                   type->name);
    return refuse(f,
                  "model_type '%.60s' is unknown; known: %s.  Or say how it encodes positions: "
                  "\"_posenc\": {\"encoding\": \"rope_half\"}",
                  name ? name : "(none)", known);
}

/* Baichuan: 7B rotates, 13B has ALiBi, and no member says so. */
static int encoding_by_width(const struct fields *f, enum encoding *encoding)
{
    int64_t width;
    if (field_whole(f, NAMES("hidden_size"), MOST, 0, &width))
        return -1;
    if (width != 4096 && width != 5120)
        return refuse(f,
                      "hidden_size is %lld: of a baichuan model 4096 (a rotation) or 5120 "
                      "(ALiBi) is needed to know its encoding",
                      (long long)width);
    *encoding = width == 5120 ? ALIBI : ROPE_HALF;
    return 0;
}

/* DeBERTa's classes have learned positions alone unless told otherwise. */
static int encoding_if_relative(const struct fields *f, enum encoding *encoding)
{
    bool relative = false;
    if (field_truth(f, NAMES("relative_attention"), &relative))
        return -1;
    *encoding = relative ? DEBERTA : LEARNED;
    return 0;
}

static bool find_encoding(const char *name, enum encoding *encoding)
{
    int i = 0;
    while (i < N_ENCODINGS && strcmp(encodings[i].name, name) != 0)
        i++;
    *encoding = (enum encoding)i;
    return i < N_ENCODINGS;
}

/* Our own word for it stands in for a model_type that is not known, or is more special. */
static int take_encoding(const struct fields *f, const json_t *ours,
                         const struct model_type *type, const char *name,
                         enum encoding *encoding)
{
    const char *named = json_string_value(json_object_get(ours, "encoding"));
    if (named && find_encoding(named, encoding))
        return 0;
    if (named)
        return refuse(f,
                      "_posenc.encoding '%.60s' is unknown; known: sinusoidal, learned, "
                      "rope_half, rope_interleaved, alibi, t5, deberta, transformer_xl, window",
                      named);
    if (!type)
        return refuse_type(f, name);
    const int flags = model_type_flags(type);
    if (flags & UNSUPPORTED)
        return refuse(f, "model_type '%s' is not supported yet: %s", type->name, type->note);
    bool known = find_encoding(type->encoding, encoding);
    assert(known), (void)known;
    if (flags & MAYBE_RELATIVE)
        return encoding_if_relative(f, encoding);
    return flags & BY_WIDTH ? encoding_by_width(f, encoding) : 0;
}

static bool rotates(enum encoding encoding)
{
    return encoding == ROPE_HALF || encoding == ROPE_INTERLEAVED;
}

/* Members that say which encoding it is, where a type has several.  MPT: attn_config.alibi. */
static int refine_encoding(const struct fields *f, const struct model_type *type,
                           enum encoding *encoding)
{
    bool alibi = *encoding == ALIBI, pairs = *encoding == ROPE_INTERLEAVED;
    const json_t *attention = find_field(f, NAMES("attn_config"), NULL);
    const json_t *nested = json_object_get(attention, "alibi");
    if (field_truth(f, NAMES("alibi"), &alibi) ||
        field_truth(f, NAMES("rope_interleave"), &pairs))
        return -1;
    if (nested)
        alibi = json_is_true(nested);
    if (*encoding == ALIBI && !alibi)
        return refuse(f,
                      "%salibi is false: such a model has no ALiBi, and this loader knows no "
                      "other encoding of its type",
                      nested ? "attn_config." : "");
    if (*encoding != ALIBI && alibi) {
        if (!json_object_get(f->defaults, "alibi"))
            return refuse(f,
                          "alibi is true: this loader does not know what that means for "
                          "model_type '%s'",
                          type ? type->name : "(none)");
        note(f, "Its code adds ALiBi in bf16 before it scales the scores: what is checked and "
                "timed here is the bias in f32 onto scaled scores");
        *encoding = ALIBI;
    }
    if (rotates(*encoding))
        *encoding = pairs ? ROPE_INTERLEAVED : ROPE_HALF;
    return 0;
}

/* Relative positions of BERT and its like, and whatever else is not the encoding of the type.
 */
static int check_embedding_type(const struct fields *f, enum encoding encoding)
{
    const char *const *fitting = encodings[encoding].embedding_types;
    const json_t *j = find_field(f, NAMES("position_embedding_type"), NULL);
    const char *s = json_string_value(j);
    for (int i = 0; s && i < 3 && fitting[i]; i++)
        if (strcmp(s, fitting[i]) == 0)
            return 0;
    if (!j)
        return 0;
    return refuse(f, "position_embedding_type '%.60s' is not supported here; supported: %s",
                  s ? s : "(no text)", fitting[0]);
}

/* ---- sizes ---- */

/* The library judges buckets, too: its encoder's, in both directions, and its decoder's. */
static int try_buckets(const struct fields *f, const struct part *p)
{
    int32_t thresholds[MOST_BUCKETS];
    enum posenc_status status =
        posenc_t5_thresholds(p->num_buckets, p->max_distance, true, thresholds);
    if (status == POSENC_OK)
        status = posenc_t5_thresholds(p->num_buckets, p->max_distance, false, thresholds);
    if (status == POSENC_ERR_SHAPE)
        return refuse(f,
                      "relative_attention_num_buckets is %lld: an even number from 4 to %d is "
                      "needed",
                      (long long)p->num_buckets, MOST_BUCKETS);
    if (status != POSENC_OK)
        return refuse(f,
                      "relative_attention_max_distance is %lld: a whole number from %lld (more "
                      "than half of the buckets) to 16777215 is needed",
                      (long long)p->max_distance, (long long)(p->num_buckets / 2 + 1));
    return 0;
}

/* Rows of a learned table: as many as positions, or some before them (RoBERTa's for padding,
 * OPT's two). */
static int read_rows(const struct fields *f, int flags, struct part *p)
{
    p->rows = p->length;
    if (flags & TWO_OFFSET) {
        p->first = 2;
        p->rows = p->length + 2;
    }
    if (!(flags & PAD_OFFSET))
        return 0;
    double pad = 1.0;
    if (field_number(f, NAMES("pad_token_id"), 0.0, (double)MOST, &pad))
        return -1;
    p->first = (int64_t)pad + 1;
    p->length -= p->first;
    if (p->length < 1 || pad != floor(pad))
        return refuse(f,
                      "pad_token_id is %.10g: a whole number below max_position_embeddings - 1 "
                      "is needed",
                      pad);
    return 0;
}

/* Heads are needed wherever an encoding is given or used per head. */
static int read_sizes(const struct fields *f, int flags, struct part *p)
{
    bool headless = p->encoding == LEARNED || p->encoding == SINUSOIDAL, scaled = false;
    if (field_whole(f,
                    NAMES("max_position_embeddings", "n_positions", "seq_length", "max_seq_len",
                          "model_max_length", "n_ctx"),
                    MOST, 0, &p->length) ||
        field_whole(f, NAMES("hidden_size", "n_embd", "n_embed", "d_model"), MOST, 0,
                    &p->width) ||
        field_whole(f, NAMES("num_attention_heads", "n_head", "n_heads", "num_heads"),
                    MOST_HEADS, headless ? 1 : 0, &p->heads) ||
        field_truth(f, NAMES("scale_embedding"), &scaled))
        return -1;
    p->x_scale = scaled ? sqrt((double)p->width) : 1.0;
    if ((flags & BY_EMBEDDING) && field_whole(f, NAMES("embedding_size"), MOST, 0, &p->width))
        return -1;
    int64_t head_dim = p->width / p->heads ? p->width / p->heads : 1;
    if (field_whole(f, NAMES("d_kv"), MOST, head_dim, &p->head_dim) ||
        field_whole(f, NAMES("relative_attention_num_buckets"), MOST, 32, &p->num_buckets) ||
        field_whole(f, NAMES("relative_attention_max_distance"), MOST, 128, &p->max_distance))
        return -1;
    if (p->encoding == T5)
        return try_buckets(f, p);
    return p->encoding == LEARNED ? read_rows(f, flags, p) : 0;
}

static int read_bias(const struct fields *f, struct part *p)
{
    const json_t *attention = find_field(f, NAMES("attn_config"), NULL);
    return number_in(f, json_object_get(attention, "alibi_bias_max"), "alibi_bias_max", 1e-3,
                     64.0, &p->alibi_bias_max);
}

static int read_sinusoid(const struct fields *f, struct part *p)
{
    p->freqs = posenc_freqs_spec_init();
    p->freqs.dim = p->width;
    return field_number(f, NAMES("rope_theta"), 1e-6, 1e30, &p->freqs.rope_theta) ||
                   config_try_freqs(f, p)
               ? -1
               : 0;
}

/* Whisper: sin | cos to the endpoint in the encoder, a learned table in the decoder. */
static int read_speech(const struct fields *f, const struct part *like, struct config *c)
{
    struct part *encoder = &c->parts[0], *decoder = &c->parts[1];
    *encoder = *decoder = *like;
    encoder->x_scale = decoder->x_scale = 1.0;
    if (field_whole(f, NAMES("d_model"), MOST, 0, &encoder->width) ||
        field_whole(f, NAMES("max_source_positions"), MOST, 0, &encoder->length) ||
        field_whole(f, NAMES("max_target_positions"), MOST, 0, &decoder->length) ||
        read_sinusoid(f, encoder))
        return -1;
    encoder->name = "encoder";
    encoder->freqs.convention = POSENC_ENDPOINT;
    encoder->layout = POSENC_SIN_COS;
    encoder->decodes = false;
    decoder->name = "decoder";
    decoder->encoding = LEARNED;
    decoder->width = encoder->width;
    decoder->rows = decoder->length;
    c->n_parts = 2;
    return 0;
}

/* ---- what is there and not covered ---- */

static void note_others(const struct fields *f, const json_t *json)
{
    if (json_is_object(json_object_get(json, "audio_config")))
        note(f, "audio_config is not covered");
    if (find_field(f, NAMES("dual_chunk_attention_config"), NULL))
        note(f, "dual_chunk_attention_config is not covered: positions are those of short "
                "sequences");
}

/* Layers that do not rotate at all. */
static int note_resting_layers(const struct fields *f)
{
    const json_t *layers = find_field(f, NAMES("no_rope_layers"), NULL);
    int64_t every, resting = 0;
    for (size_t i = 0; i < json_array_size(layers); i++)
        resting += json_number_value(json_array_get(layers, i)) == 0.0;
    if (json_array_size(layers)) {
        if (resting)
            note(f, "%lld of %zu layers do not rotate (no_rope_layers)", (long long)resting,
                 json_array_size(layers));
        return 0;
    }
    if (!find_field(f, NAMES("no_rope_layer_interval"), NULL))
        return 0;
    if (field_whole(f, NAMES("no_rope_layer_interval"), MOST, 0, &every))
        return -1;
    note(f, "One layer in %lld does not rotate (no_rope_layer_interval)", (long long)every);
    return 0;
}

/* ---- all of it ---- */

/* The part of the file about text, and its type: nested files name both. */
static int find_text(struct fields *f, const json_t *json, const char **name)
{
    const json_t *text = json_object_get(json, "text_config");
    *name = json_string_value(json_object_get(json, "model_type"));
    f->file = json;
    if (!text || json_is_null(text))
        return 0;
    if (!json_is_object(text))
        return refuse(f, "text_config is no object: one with the sizes of the text model, or "
                         "null, is needed");
    f->file = text;
    const char *inner = json_string_value(json_object_get(text, "model_type"));
    *name = inner ? inner : *name;
    return 0;
}

static void read_facts(const json_t *json, const json_t *ours, struct model *m)
{
    char title[sizeof m->title]; /* the file's name, until something says more */
    field_text(json, "_name_or_path", m->title, title, sizeof title);
    field_text(ours, "title", title, m->title, sizeof m->title);
    field_text(ours, "source", "the configuration given", m->source, sizeof m->source);
    field_text(ours, "checked", "", m->checked, sizeof m->checked);
    field_text(ours, "trained_profile", "", m->trained_profile, sizeof m->trained_profile);
}

static int read_parts(const struct fields *f, int flags, struct part *like, struct config *c,
                      struct model *m)
{
    if (flags & SPEECH)
        return read_speech(f, like, c);
    if (flags & STAGES)
        return config_swin(f, like, c);
    if (read_sizes(f, flags, like))
        return -1;
    if ((like->encoding == DEBERTA && config_deberta(f, like)) ||
        (like->encoding == TRANSFORMER_XL && config_transformer_xl(f, like)) ||
        (like->encoding == WINDOW && config_beit(f, like)))
        return -1;
    if (rotates(like->encoding))
        return note_resting_layers(f) ? -1 : config_rope(f, like, c, m);
    if ((like->encoding == ALIBI && read_bias(f, like)) ||
        (like->encoding == SINUSOIDAL && read_sinusoid(f, like)))
        return -1;
    c->parts[c->n_parts++] = *like;
    return 0;
}

static int read_text(const struct fields *f, const json_t *json, const struct model_type *type,
                     const char *name, struct config *c, struct model *m)
{
    const json_t *ours = json_object_get(json, "_posenc");
    const int flags = type ? model_type_flags(type) : 0;
    struct part like = { .name = "", .alibi_bias_max = 8.0 };
    if (take_encoding(f, ours, type, name, &like.encoding) ||
        refine_encoding(f, type, &like.encoding) || check_embedding_type(f, like.encoding))
        return -1;
    like.layout = flags & SIN_THEN_COS ? POSENC_SIN_COS : POSENC_INTERLEAVED;
    like.norms = flags & (HEAD_NORM | UNIT_NORM | TOKEN_NORM);
    like.decodes = !json_is_false(json_object_get(ours, "decodes")) && !(flags & ENCODER);
    read_facts(json, ours, m);
    if (type && *type->note)
        note(f, "%s", type->note);
    if (read_parts(f, flags, &like, c, m) || config_vision(f, json, c))
        return -1;
    note_others(f, json);
    m->max_position_embeddings = c->parts[0].length;
    m->has_freqs = c->parts[0].freqs.size != 0;
    m->freqs = c->parts[0].freqs;
    snprintf(m->encoding, sizeof m->encoding, "%s", encodings[c->parts[0].encoding].name);
    return 0;
}

int config_read(const json_t *json, struct config *c, struct model *m, char error[MODEL_ERROR])
{
    struct fields f = { .error = error, .notes = m->notes };
    const char *name;
    *c = (struct config){ 0 };
    if (!json_is_object(json))
        return refuse(&f, "it holds %s: an object, {\"model_type\": ...}, is needed",
                      json_is_array(json) ? "an array" : "no object");
    if (find_text(&f, json, &name))
        return -1;
    const struct model_type *type = name ? model_type_find(name) : NULL;
    char members[512];
    snprintf(members, sizeof members, "{%s}", type ? type->defaults : "");
    json_t *defaults = json_loads(members, 0, NULL);
    assert(defaults);
    f.defaults = defaults;
    int status = read_text(&f, json, type, name, c, m);
    json_decref(defaults);
    return status;
}
