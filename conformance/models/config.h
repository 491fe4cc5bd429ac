/* What the parts of the model loader hand to each other, and to who explains it: what a configuration
 * says and where, before it becomes calls. */
#ifndef POSENC_MODEL_CONFIG_H
#define POSENC_MODEL_CONFIG_H

#include "conformance/problem/spelling.h"
#include "model.h"

#include <jansson.h>
#include <string.h>

enum encoding {
    SINUSOIDAL,
    LEARNED,
    ROPE_HALF,
    ROPE_INTERLEAVED,
    ALIBI,
    T5,
    DEBERTA,
    TRANSFORMER_XL,
    SHAW,
    DECOMPOSED,
    WINDOW,
    N_ENCODINGS
};
extern const struct encoding_words {
    const char *name, *shapes;   /* what shapes.txt calls it */
    const char *embedding_types; /* position_embedding_type may be one of these */
} encodings[N_ENCODINGS];

/* Where the value of a quantity is from. */
enum origin_kind {
    UNSAID,   /* what it is where nobody says anything */
    IN_FILE,  /* text: its key in the file, "rope_parameters.full_attention.rope_theta" */
    OF_CLASS, /* text: the key that the file lacks, whose default the class of the type has */
    ASSUMED, /* text: the key that the file lacks; formula: what is taken in its place, of keys, or "" */
    FOLLOWS /* formula: from which keys, "max_position_embeddings + 2", or "" of what its code does */
};
enum { ORIGIN_TEXT = 96 };
struct origin {
    enum origin_kind kind;
    char text[ORIGIN_TEXT], formula[ORIGIN_TEXT];
    double value; /* that was found there, of which the loader may have made another */
};
/* One for each quantity, and for what is none. */
enum {
#define WHOLE(name)         OF_##name,
#define NUMBER(name)        OF_##name,
#define TRUTH(name)         OF_##name,
#define OF_PLAN(kind, name) OF_##name,
#include "part.def"
    N_QUANTITIES,
    OF_encoding = N_QUANTITIES,
    OF_scaling,
    OF_mrope_section,
    OF_short_factor,
    OF_long_factor,
    N_ORIGINS
};

/* One way in which a model encodes positions: most have one, some one for each type of layers
 * or for encoder and decoder. */
struct part {
    enum encoding encoding;
    const char *name;  /* in ids: "full", "sliding", "encoder"; "" where it is the only one */
    const char *stack; /* layers whose steps are their own: "encoder", "vision"; or NULL */
    struct posenc_freqs_spec freqs;
#define WHOLE(name)  int64_t name;
#define NUMBER(name) double name;
#define TRUTH(name)  bool name;
#define OF_PLAN(kind, name)
#include "part.def"
    struct origin origins[N_ORIGINS];
};

/* ---- its quantities by name: part.c ---- */

enum quantity_kind { IS_WHOLE, IS_NUMBER, IS_TRUTH };
struct quantity {
    const char *name;
    enum quantity_kind kind;
    size_t offset, origin; /* in a part, and among its origins */
};
const struct quantity *quantity_find(const char *name, size_t length); /* NULL: there is none */
double quantity_get(const struct quantity *quantity, const struct part *part);
void quantity_set(const struct quantity *quantity, struct part *part, double value);

/* The formula of whole numbers and quantities that begins at `at`, up to its end or a '}' or '?', as
 * shapes.txt says. */
int64_t part_formula(const struct part *part, const char *at);
/* A text with {formula} and [formula?text] in it. */
enum { PART_TEXT = 512 };
void part_text(const struct part *part, const char *from, char to[PART_TEXT]);

/* ---- members of a configuration: members.c ---- */

struct fields {
    const json_t *root;     /* all of the document, in which keys are told by their paths */
    const char *before;     /* what they begin with besides, "llama."; or NULL */
    const json_t *file;     /* a model's configuration, or the part of it about text */
    const json_t *defaults; /* of its model_type, where the file says nothing; or NULL */
    /* rope_scaling, or rope_parameters as later releases call it, or the object in it for one type
     * of layers: a quantity may stand there, too, under its own name.  NULL: there is none. */
    const json_t *rope;
    const char *rope_name;
    const char *flags;   /* of its model_type in types.txt; or NULL */
    const char *whose;   /* what follows "is missing" in a refusal; or NULL */
    char *error, *notes; /* MODEL_ERROR and MODEL_NOTES bytes */
    /* Of a type that was surveyed the defaults name all members that its classes read, with null
     * where they follow from others; what it takes of them is told here, MODEL_NOTES bytes.  NULL:
     * any spelling counts. */
    char *assumed;
};

/* Always -1. */
__attribute__((format(printf, 2, 3))) int refuse(const struct fields *f, const char *format,
                                                 ...);
/* Adds a sentence to the model's notes: what is there and does not count, or is not covered. */
__attribute__((format(printf, 2, 3))) void note(const struct fields *f, const char *format,
                                                ...);

/* Whether words with blanks between have this one. */
static inline bool lists(const char *words, const char *word)
{
    return has_word(words, ' ', word, strlen(word));
}

struct member {
    const json_t *value;  /* NULL: there is none */
    const json_t *object; /* that has it */
    char name[64];        /* the spelling met, or the first */
};
/* The first of several spellings that is there and not null, with blanks between; "a.b" is the b of
 * an object a.  The file comes before the defaults whatever the spelling. */
struct member member_find(const struct fields *f, const char *spellings);
const json_t *member_value(const struct fields *f, const char *spellings);
/* The same of one object. */
struct member member_of(const json_t *object, const char *spellings);

/* The value of a member that is accepted, in the words of members.txt.  0, or -1: it is refused. */
int value_read(const struct fields *f, const struct member *member, enum quantity_kind kind,
               const char *accepted, const struct part *part, double *value);

/* ---- where they are from: origin.c ---- */

/* "text_config.rope_theta", or the member's name where the document does not have it.  Whether it
 * has. */
bool member_path(const struct fields *f, const struct member *member, char path[ORIGIN_TEXT]);
/* The value of a member that was found in the file or among the defaults of the class. */
void origin_member(const struct fields *f, const struct member *member, double value,
                   struct origin *to);
/* That of a formula of quantities, or "": it is a constant; where no member is meant `missing` is "". */
void origin_formula(const struct fields *f, const char *missing, const struct part *part,
                    const char *formula, double value, struct origin *to);
/* The key or the formula of keys. */
static inline const char *origin_key(const struct origin *origin)
{
    return origin->kind == IN_FILE || origin->kind == OF_CLASS ? origin->text : origin->formula;
}
/* What C made of others, or of what is no quantity. */
__attribute__((format(printf, 3, 4))) void origin_say(struct part *part, const char *quantity,
                                                      const char *format, ...);
/* A sentence without a full stop, ORIGIN_TEXT bytes twice and more; false: nobody said anything. */
enum { ORIGIN_SENTENCE = 320 };
bool origin_text(const struct origin *origin, double value, char text[ORIGIN_SENTENCE]);

/* Reads the quantities of members.txt that belong to one of the words, refuses and notes what stands
 * there. */
int members_read(const struct fields *f, const char *words, struct part *part);

/* The value by its own name, or all spellings of it that are there, must be the one that counts: what else
 * is said, by a spelling that the classes of the type do not read or by two that they do, is refused. */
int members_agree(const struct fields *f, const char *spellings, const char *quantity,
                  double value);

/* A text that is there and not empty, on one line, cut between characters; else `otherwise`. */
void field_text(const json_t *object, const char *name, const char *otherwise, char *into,
                size_t bytes);

/* ---- types of models: config_types.c ---- */

struct model_type {
    const char *name, *encoding, *flags;
    const char *defaults; /* members of a JSON object, in the files' own spelling */
    const char *note;     /* what its code does besides */
};
const struct model_type *type_at(size_t index); /* NULL past the end */
const struct model_type *type_find(const char *name);
/* Always -1: it is unknown, and these are near. */
int type_refuse(const struct fields *f, const char *name);
/* Sets f->file to the part of the file about text, which may be missing, and `name` to its type. */
int type_of_text(struct fields *f, const json_t *json, const char **name);
/* The members of its defaults, owned by the caller. */
json_t *type_defaults(const struct model_type *type);

/* A part of a model of several that is a tower of a type that is read. */
struct tower {
    const char *key;
    const json_t *file; /* NULL: there is none */
    const struct model_type *type;
};
/* The first tower of a model, to be read beside its text; notes what becomes of the other parts. */
struct tower types_of_others(const struct fields *f, const json_t *json);

/* Replaces f->file by a copy in which members by layer are members of types of layers, owned by the
 * caller. */
int config_layers(struct fields *f, json_t **owned);

/* ---- the parts of a model ---- */

struct config {
    char type[64],
        type_from[ORIGIN_TEXT]; /* model_type or architecture, and which key says it */
    size_t n_parts;
    struct part parts[MODEL_MAX_PARTS];
};

/* Tokens along a side of the picture in cases: 896 x 896 pixels in patches of 14 x 14, of which
 * two and two are merged. */
enum { CONFIG_PICTURE = 32 };

/* Fills `config` and the facts of `model` (all but name, cases and what config_cases() knows).  0, or -1 with
 * a message. */
int config_read(const json_t *json, struct config *config, struct model *model,
                char error[MODEL_ERROR]);

/* The parts of a model that rotates: `like` with heads, lengths and frequencies, one for each
 * type of layers.  Arrays of factors are owned by `model`. */
int config_rope(const struct fields *plain, struct part *like, struct config *config,
                struct model *model);

/* The object for scaling and its name, in `with`, which is `f` otherwise. */
int config_find_rope(const struct fields *f, struct fields *with);

/* A tower that rotates patches of pictures, `part`, which has its encoding; and the one that a model of
 * several parts has, after those for text: the notes say what becomes of the others. */
int config_tower(const struct fields *plain, const char *flags, struct part *part);
int config_vision(const struct fields *f, const json_t *json, struct config *config);

/* What is left of those with terms by relative position, with biases in windows: config_relative.c.
 */
int config_decomposed(const struct fields *f, struct part *like, struct config *c);
int config_deberta(const struct fields *f, struct part *part);
int config_swin(const struct fields *f, const char *flags, const struct part *like,
                struct config *config);

/* Fills rotary_dim and part->freqs, which has rope_theta already, by the rule that f->rope names. */
int config_scaling(const struct fields *f, struct part *part, struct model *model);

/* The same of what gguf_read() gives, as llama.cpp reads it, which is changed; and of a params.json
 * of Meta or Mistral, which json may be. */
int config_gguf(json_t *json, struct config *config, struct model *model,
                char error[MODEL_ERROR]);
bool config_is_params(const json_t *json);
int config_params(const json_t *json, struct config *config, struct model *model,
                  char error[MODEL_ERROR]);

/* Fills what the model is stored as; notes what is no type of storage. */
void config_storage(const struct fields *f, const json_t *json, struct model *model);

/* A plan is the last judge of its own parameters, at every length of sequence they are used. */
int config_try_freqs(const struct fields *f, const struct part *part);

/* Fills what its first part says of the model, the cases and the problems to verify. */
void config_cases(const struct config *config, struct model *model);

#endif
