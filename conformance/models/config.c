/*
 * Reads from a Hugging Face config.json what it says of positions: which type of model it is,
 * its sizes, and the parts it has.  Its keys have many spellings (huggingface/transformers,
 * configuration_*.py).  What is not known is refused by name, never guessed; what is known and
 * not covered is named in the model's notes.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/fields.h"
#include "config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ModernBERT rotates, and says "absolute", a word from its parent class that nobody reads. */
const struct encoding_words encodings[N_ENCODINGS] = {
    [SINUSOIDAL] = { "sinusoidal", "sinusoidal", "absolute sinusoidal" },
    [LEARNED] = { "learned", "learned", "absolute learned" },
    [ROPE_HALF] = { "rope_half", "rotation", "rope rotary absolute" },
    [ROPE_INTERLEAVED] = { "rope_interleaved", "rotation", "rope rotary absolute rope_gptj" },
    [ALIBI] = { "alibi", "alibi", "alibi" },
    [T5] = { "t5", "t5", "relative" },
    [DEBERTA] = { "deberta", "relative", "relative" },
    [TRANSFORMER_XL] = { "transformer_xl", "relative", "relative" },
    [SHAW] = { "shaw", "relative", "relative relative_key" },
    [DECOMPOSED] = { "decomposed", "decomposed", "" },
    [WINDOW] = { "window", "window", "relative" },
};

/* ---- which encoding ---- */

static bool find_encoding(const char *name, enum encoding *encoding)
{
    int i = 0;
    while (i < N_ENCODINGS && strcmp(encodings[i].name, name) != 0)
        i++;
    *encoding = (enum encoding)i;
    return i < N_ENCODINGS;
}

/* DeBERTa's classes have learned positions alone unless told otherwise.  Baichuan: 7B rotates, 13B
 * has ALiBi, and no member says so. */
static int encoding_of_type(const struct fields *f, const char *flags, struct part *p)
{
    const bool by_width = lists(flags, "by_width"),
               maybe_relative = lists(flags, "maybe_relative");
    if (members_read(f, by_width ? "by_width" : maybe_relative ? "maybe_relative" : "", p))
        return -1;
    if (maybe_relative && !p->relative)
        p->encoding = LEARNED;
    if (by_width && p->width != 4096 && p->width != 5120)
        return refuse(f,
                      "hidden_size is %lld: of a baichuan model 4096 (a rotation) or 5120 "
                      "(ALiBi) is needed to know its encoding",
                      (long long)p->width);
    if (by_width)
        p->encoding = p->width == 5120 ? ALIBI : ROPE_HALF;
    return 0;
}

/* "_posenc" of the file may name the encoding, which goes before that of its model_type. */
static int take_encoding(const struct fields *f, const json_t *ours,
                         const struct model_type *type, const char *name, struct part *p)
{
    const char *named = json_string_value(json_object_get(ours, "encoding"));
    if (named && find_encoding(named, &p->encoding))
        return 0;
    if (named)
        return refuse(f,
                      "_posenc.encoding '%.60s' is unknown; known: sinusoidal, learned, "
                      "rope_half, rope_interleaved, alibi, t5, deberta, transformer_xl, shaw, "
                      "decomposed, "
                      "window",
                      named);
    if (!type)
        return type_refuse(f, name);
    if (lists(type->flags, "unsupported"))
        return refuse(f, "model_type '%s' is not supported yet: %s", type->name, type->note);
    if (strcmp(type->encoding, "none") == 0)
        return refuse(
            f,
            "model_type '%s' has no positions in its attention or embeddings%s%s%s: there is "
            "nothing to check or to time",
            type->name, *type->note ? " (" : "", type->note, *type->note ? ")" : "");
    bool known = find_encoding(type->encoding, &p->encoding);
    assert(known), (void)known;
    return encoding_of_type(f, type->flags, p);
}

static bool rotates(enum encoding encoding)
{
    return encoding == ROPE_HALF || encoding == ROPE_INTERLEAVED;
}

/* Members that say which encoding it is, where a type has several. */
static int refine_encoding(const struct fields *f, const struct model_type *type,
                           struct part *p)
{
    const bool expected = p->encoding == ALIBI;
    p->alibi = expected;
    p->adjacent = p->encoding == ROPE_INTERLEAVED;
    if (members_read(f, "choice", p))
        return -1;
    if (expected && !p->alibi)
        return refuse(f,
                      "%s is false: such a model has no ALiBi, and this loader knows no other "
                      "encoding of its type",
                      member_find(f, "attn_config.alibi alibi").name);
    if (p->alibi && !expected && !json_object_get(f->defaults, "alibi"))
        return refuse(f,
                      "alibi is true: this loader does not know what that means for "
                      "model_type '%s'",
                      type ? type->name : "(none)");
    if (p->alibi && !expected) {
        note(f, "Its code adds ALiBi in bf16 before it scales the scores: what is checked and "
                "timed here is the bias in f32 onto scaled scores");
        p->encoding = ALIBI;
    }
    if (rotates(p->encoding))
        p->encoding = p->adjacent ? ROPE_INTERLEAVED : ROPE_HALF;
    return 0;
}

/* What decided which encoding it is. */
static void tell_encoding(const json_t *ours, struct part *p)
{
    static const int deciding[] = { OF_alibi, OF_adjacent, OF_relative };
    const char *key = json_object_get(ours, "encoding") ? "_posenc.encoding" : "model_type";
    for (size_t i = 0; i < sizeof deciding / sizeof *deciding; i++)
        if (p->origins[deciding[i]].kind == IN_FILE)
            key = p->origins[deciding[i]].text;
    origin_say(p, "encoding", "%s", key);
}

/* Models of speech say it in the plural, and have classes for several kinds. */
static int check_speech_type(const struct fields *f, enum encoding encoding)
{
    const json_t *j = json_object_get(f->file, "position_embeddings_type");
    const char *fitting = f->flags && lists(f->flags, "limits") ? "relative_key" : "relative";
    const char *s = json_string_value(j);
    return !j || encoding != SHAW || (s && strcmp(s, fitting) == 0)
               ? 0
               : refuse(
                     f,
                     "position_embeddings_type is %.60s: %s is what is read of this model_type",
                     s ? s : "no text", fitting);
}

/* Refuses relative positions of BERT and its like, and what else does not fit the encoding. */
static int check_embedding_type(const struct fields *f, enum encoding encoding)
{
    const json_t *j = member_value(f, "position_embedding_type");
    const bool rotary = f->flags && lists(f->flags, "where_rotary");
    const char *s = json_string_value(j),
               *fitting = rotary ? "rotary" : encodings[encoding].embedding_types;
    if (!j && rotary)
        return refuse(f, "position_embedding_type is missing: without it such a model has a "
                         "learned table; read is: rotary");
    if (!j && f->flags && lists(f->flags, "where_said"))
        return refuse(f,
                      "position_embedding_type is missing: without it such a model has no "
                      "positions; supported: %s",
                      fitting);
    return !j || (s && lists(fitting, s))
               ? 0
               : refuse(f,
                        "position_embedding_type '%.60s' is not supported here; supported: %s",
                        s ? s : "(no text)", fitting);
}

/* ---- what is there and not covered ---- */

static void note_others(const struct fields *f)
{
    if (member_value(f, "dual_chunk_attention_config"))
        note(f, "dual_chunk_attention_config is not covered: positions are those of short "
                "sequences");
}

/* Layers that do not rotate at all: by a list of them, or every so many. */
static int note_resting_layers(const struct fields *f, struct part *p)
{
    const struct member list = member_find(f, "no_rope_layers layer_rope_theta");
    const json_t *layers = list.value, *layer;
    size_t i, resting = 0;
    json_array_foreach(layers, i, layer) resting += json_number_value(layer) == 0.0;
    if (resting)
        note(f, "%zu of %zu layers do not rotate (%s)", resting, json_array_size(layers),
             list.name);
    if (json_array_size(layers)) {
        p->layers = (int64_t)(json_array_size(layers) - resting);
        origin_member(f, &list, (double)p->layers, &p->origins[OF_layers]);
        return 0;
    }
    if (members_read(f, "resting", p))
        return -1;
    if (p->every) /* the last of every so many, or of all and then backwards */
        p->layers -=
            (p->layers + (lists(f->flags, "last_rests") ? p->every - 1 : 0)) / p->every;
    return 0;
}

/* ---- parts ---- */

static int add_sinusoid(const struct fields *f, struct part *p, struct config *c)
{
    p->freqs.dim = p->width;
    if (f->flags && lists(f->flags, "endpoint"))
        p->freqs.convention = POSENC_ENDPOINT;
    c->parts[c->n_parts++] = *p;
    return config_try_freqs(f, p);
}

/* Whisper: sin | cos to the endpoint in the encoder, a learned table in the decoder. */
static int add_speech(const struct fields *f, struct part *p, struct config *c)
{
    struct part decoder = *p;
    p->name = p->stack = "encoder";
    p->freqs.convention = POSENC_ENDPOINT;
    p->decodes = false;
    decoder.name = decoder.stack = "decoder";
    decoder.encoding = LEARNED;
    decoder.length = decoder.rows;
    decoder.origins[OF_length] = decoder.origins[OF_rows];
    if (add_sinusoid(f, p, c))
        return -1;
    c->parts[c->n_parts++] = decoder;
    return 0;
}

/* A table, or terms, of each stack that the flags name, as own_encoder; the words of members.txt for its
 * size are encoder_table, encoder_terms.  One for all where they name none. */
static int add_stacks(const struct fields *f, const char *flags, const char *what,
                      const struct part *like, struct config *c)
{
    static const char *const names[] = {
        "encoder", "decoder", "text",   "image",  "rows", "columns", "spatial", "temporal",
        "stage1",  "stage2",  "stage3", "stage4", "seen", "full",    "sliding"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char flag[32], word[32];
        struct part p = *like;
        snprintf(flag, sizeof flag, "own_%s", names[i]);
        if (lists(flags, "axial_tables"))
            snprintf(word, sizeof word, "axial_%s", names[i]);
        else
            snprintf(word, sizeof word, "%s_%s", names[i], what);
        if (!lists(flags, flag))
            continue;
        p.name = p.stack = names[i];
        p.decodes = like->decodes && lists("decoder full sliding", names[i]);
        if (members_read(f, word, &p))
            return -1;
        c->parts[c->n_parts++] = p;
    }
    if (c->n_parts == 0)
        c->parts[c->n_parts++] = *like;
    return 0;
}

static int read_parts(const struct fields *f, const char *flags, struct part *like,
                      struct config *c, struct model *m)
{
    const bool speech = lists(flags, "speech"), stages = lists(flags, "stages"),
               own = speech || stages || lists(flags, "patches") || lists(flags, "counted") ||
                     lists(flags, "tubelets") || lists(flags, "series") ||
                     lists(flags, "patched_series") || lists(flags, "placed") ||
                     lists(flags, "pyramid") || lists(flags, "spread") ||
                     lists(flags, "stacked_frames") || lists(flags, "frames") ||
                     lists(flags, "spectrogram") || lists(flags, "in_blocks") ||
                     like->encoding == DECOMPOSED;
    char words[128];
    if (lists(flags, "tower")) {
        c->parts[c->n_parts++] = *like;
        return config_tower(f, flags, &c->parts[0]);
    }
    snprintf(words, sizeof words, "%s %s %s", flags, own ? "" : "sizes",
             own ? "" : encodings[like->encoding].name);
    if (members_read(f, words, like) || (like->encoding == DEBERTA && config_deberta(f, like)))
        return -1;
    if (speech)
        return add_speech(f, like, c);
    if (stages)
        return config_swin(f, flags, like, c);
    if (rotates(like->encoding))
        return note_resting_layers(f, like) ? -1 : config_rope(f, like, c, m);
    if (like->encoding == SINUSOIDAL)
        return add_sinusoid(f, like, c);
    if (like->encoding == LEARNED)
        return add_stacks(f, flags, "table", like, c);
    if (like->encoding == DECOMPOSED) /* its tables, in windows and over all of a picture */
        return config_decomposed(f, like, c);
    like->freqs.dim = like->both_ways ? like->width : 0; /* of its table of distances */
    return add_stacks(f, flags, "terms", like, c) ||
                   (like->both_ways && config_try_freqs(f, like))
               ? -1
               : 0;
}

/* ---- all of it ---- */

static void read_facts(const json_t *json, const json_t *ours, struct model *m)
{
    char title[sizeof m->title]; /* the file's name, until something says more */
    field_text(json, "_name_or_path", m->title, title, sizeof title);
    field_text(ours, "title", title, m->title, sizeof m->title);
    field_text(ours, "source", "the configuration given", m->source, sizeof m->source);
    field_text(ours, "checked", "", m->checked, sizeof m->checked);
    field_text(ours, "trained_profile", "", m->trained_profile, sizeof m->trained_profile);
}

static int read_text(const struct fields *f, const json_t *json, const struct model_type *type,
                     const char *name, struct config *c, struct model *m)
{
    const json_t *ours = json_object_get(json, "_posenc");
    const char *flags = type ? type->flags : "";
    struct part like = { .name = "", .freqs = posenc_freqs_spec_init() };
    like.decodes = !json_is_false(json_object_get(ours, "decodes"));
    if (take_encoding(f, ours, type, name, &like) || refine_encoding(f, type, &like) ||
        check_embedding_type(f, like.encoding) || check_speech_type(f, like.encoding))
        return -1;
    tell_encoding(ours, &like);
    read_facts(json, ours, m);
    if (type && *type->note)
        note(f, "%s", type->note);
    if (read_parts(f, flags, &like, c, m) || config_vision(f, json, c))
        return -1;
    note_others(f);
    config_storage(f, json, m);
    return 0;
}

/* Which type it is read as, and what says so. */
static void tell_type(const struct fields *f, const char *name, struct config *c)
{
    const struct member own = member_of(f->file, "model_type");
    const char *said = json_string_value(own.value);
    snprintf(c->type, sizeof c->type, "%.60s", name ? name : "(none)");
    if (name && said && strcmp(said, name) == 0)
        member_path(f, &own, c->type_from);
    else if (name)
        snprintf(c->type_from, sizeof c->type_from,
                 "assumed: what the class of the whole has for text");
}

int config_read(const json_t *json, struct config *c, struct model *m, char error[MODEL_ERROR])
{
    struct fields f = { .root = json, .error = error, .notes = m->notes };
    const char *name;
    *c = (struct config){ 0 };
    if (!json_is_object(json))
        return refuse(&f, "it holds %s: an object, {\"model_type\": ...}, is needed",
                      json_is_array(json) ? "an array" : "no object");
    if (type_of_text(&f, json, &name))
        return -1;
    const struct model_type *type = type_find(name);
    char assumed[MODEL_NOTES] = "";
    json_t *defaults = type_defaults(type);
    f.defaults = defaults;
    f.flags = type ? type->flags : "";
    f.assumed = type && lists(type->flags, "surveyed") ? assumed : NULL;
    tell_type(&f, name, c);
    json_t *layers = NULL;
    const bool tower = lists(f.flags, "tower");
    int status =
        !tower && config_layers(&f, &layers) ? -1 : read_text(&f, json, type, name, c, m);
    json_decref(layers);
    if (!status && *assumed)
        note(&f, "Not in the file, and taken as the classes of this model_type do: %s",
             assumed);
    json_decref(defaults);
    return status;
}
