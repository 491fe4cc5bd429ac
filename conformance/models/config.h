/* What the parts of the model loader hand to each other: what a configuration says, before it
 * becomes calls. */
#ifndef POSENC_MODEL_CONFIG_H
#define POSENC_MODEL_CONFIG_H

#include "model.h"

#include <jansson.h>

enum encoding {
    SINUSOIDAL,
    LEARNED,
    ROPE_HALF,
    ROPE_INTERLEAVED,
    ALIBI,
    T5,
    DEBERTA,
    TRANSFORMER_XL,
    WINDOW,
    N_ENCODINGS
};
extern const struct encoding_words {
    const char *name, *shapes;   /* what shapes.txt calls it */
    const char *embedding_types; /* position_embedding_type may be one of these */
} encodings[N_ENCODINGS];

/* One way in which a model encodes positions: most have one, some one for each type of layers
 * or for encoder and decoder. */
struct part {
    enum encoding encoding;
    const char *name; /* in ids: "full", "sliding", "encoder"; "" where it is the only one */
    struct posenc_freqs_spec freqs;
#define WHOLE(name)  int64_t name;
#define NUMBER(name) double name;
#define TRUTH(name)  bool name;
#define OF_PLAN(kind, name)
#include "part.def"
};

/* ---- its quantities by name: part.c ---- */

enum quantity_kind { IS_WHOLE, IS_NUMBER, IS_TRUTH };
struct quantity {
    const char *name;
    enum quantity_kind kind;
    size_t offset;
};
const struct quantity *quantity_find(const char *name, size_t length); /* NULL: there is none */
double quantity_get(const struct quantity *quantity, const struct part *part);
void quantity_set(const struct quantity *quantity, struct part *part, double value);

/* A formula of whole numbers and quantities, up to its end or a '}' or '?', as shapes.txt says. */
int64_t part_formula(const struct part *part, const char *formula);
/* A text with {formula} and [formula?text] in it. */
enum { PART_TEXT = 512 };
void part_text(const struct part *part, const char *from, char to[PART_TEXT]);

/* ---- the parts of a model ---- */

struct config {
    size_t n_parts;
    struct part parts[MODEL_MAX_PARTS];
};

/* Tokens along a side of the picture in cases: 896 x 896 pixels in patches of 14 x 14, of which
 * two and two are merged. */
enum { CONFIG_PICTURE = 32 };

struct fields; /* what is being read: fields.h */

/* Fills `config` and the facts of `model` (all but name and cases).  0, or -1 with
 * a message. */
int config_read(const json_t *json, struct config *config, struct model *model,
                char error[MODEL_ERROR]);

/* The parts of a model that rotates: `like` with heads, lengths and frequencies, one for each
 * type of layers.  Arrays of factors are owned by `model`. */
int config_rope(const struct fields *f, struct part *like, struct config *config,
                struct model *model);

/* The part of a model that rotates patches of pictures, after those for text; the notes say
 * where there is one that is not covered. */
int config_vision(const struct fields *f, const json_t *json, struct config *config);

/* What is left of those with terms by relative position, with biases in windows: config_relative.c.
 */
int config_deberta(const struct fields *f, struct part *part);
int config_swin(const struct fields *f, const struct part *like, struct config *config);

/* Fills rotary_dim and part->freqs, which has rope_theta already, by the rule that f->rope names. */
int config_scaling(const struct fields *f, struct part *part, struct model *model);

/* A plan is the last judge of its own parameters, at every length of sequence they are used. */
int config_try_freqs(const struct fields *f, const struct part *part);

/* Fills the cases and the problems to verify. */
void config_cases(const struct config *config, struct model *model);

#endif
