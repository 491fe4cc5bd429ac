/* What the parts of the model loader hand to each other: what a configuration says, before it
 * becomes calls. */
#ifndef POSENC_MODEL_CONFIG_H
#define POSENC_MODEL_CONFIG_H

#include "fields.h"

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
    const char *name, *shapes;      /* what shapes.txt calls it */
    const char *embedding_types[3]; /* position_embedding_type may be one of these */
} encodings[N_ENCODINGS];

/* One way in which a model encodes positions: most have one, some one for each type of layers
 * or for encoder and decoder. */
struct part {
    enum encoding encoding;
    const char
        *name; /* in ids: "full", "sliding", "encoder", ...; "" where it is the only one */
    int64_t width, heads, key_heads, head_dim, rotary_dim;
    int64_t length;      /* positions it takes */
    int64_t first, rows; /* learned: the row of position 0, and rows in all */
    int64_t num_buckets,
        max_distance;       /* DeBERTa: position_buckets or 0, max_relative_positions */
    enum relative relative; /* DeBERTa, Transformer-XL; with these terms: */
    bool c2p, p2c;
    int64_t window, windows; /* patches along a side, and windows in a picture */
    bool window_class;       /* a class token besides */
    double alibi_bias_max, x_scale;
    enum posenc_layout layout;
    int norms;       /* of queries and keys: HEAD_NORM, UNIT_NORM, TOKEN_NORM */
    bool decodes;    /* generates token by token */
    int64_t picture; /* width and height in tokens of the pictures it is used on; 0: none */
    bool tower;      /* is used on pictures alone */
    struct posenc_freqs_spec freqs;
};

enum { MOST_PARTS = MODEL_MAX_PARTS };

/* Tokens along a side of the picture in cases: 896 x 896 pixels in patches of 14 x 14, of which
 * two and two are merged. */
enum { CONFIG_PICTURE = 32 };

struct config {
    size_t n_parts;
    struct part parts[MOST_PARTS];
};

/* What a model_type stands for in Hugging Face's library: a line of types.txt, whose columns may be
 * empty. */
struct model_type {
    const char *name, *encoding, *flags;
    const char *defaults; /* members of a JSON object, in the files' own spelling */
    const char *note;     /* what its code does besides */
};
enum type_flags {
    ENCODER = 1,    /* never decodes token by token */
    PAD_OFFSET = 2, /* learned: position 0 has the row after that of the padding token */
    TWO_OFFSET = 4, /* learned: two rows more than positions, before them */
    SPEECH = 8,     /* Whisper: a sinusoidal encoder, a learned decoder */
    BY_WIDTH = 16,  /* Baichuan: a rotation where hidden_size is 4096, ALiBi where it is 5120 */
    UNSUPPORTED = 32,     /* `note` says what it would take */
    SIN_THEN_COS = 64,    /* sinusoidal: all sines before all cosines */
    BY_EMBEDDING = 128,   /* learned: rows of embedding_size, which is not hidden_size */
    STAGES = 256,         /* Swin: sizes differ from stage to stage */
    MAYBE_RELATIVE = 512, /* DeBERTa: relative only where relative_attention is true */
    HEAD_NORM = 1024,     /* queries and keys are normalised before they turn, head by head */
    UNIT_NORM = 2048,     /* by weights that are stored less 1 */
    TOKEN_NORM = 4096     /* over all heads of a token */
};
int model_type_flags(const struct model_type *type);
/* NULL where it is unknown. */
const struct model_type *model_type_find(const char *name);
const struct model_type *model_type_at(size_t index); /* NULL past the end */

/* Fills `config` and the facts of `model` (all but name and cases).  0, or -1 with
 * a message. */
int config_read(const json_t *json, struct config *config, struct model *model,
                char error[MODEL_ERROR]);

/* The parts of a model that rotates: `like` with heads, lengths and frequencies, one for each
 * type of layers.  Arrays of factors are owned by `model`. */
int config_rope(const struct fields *f, const struct part *like, struct config *config,
                struct model *model);

/* The part of a model that rotates patches of pictures, after those for text; the notes say
 * where there is one that is not covered. */
int config_vision(const struct fields *f, const json_t *json, struct config *config);

/* Models with terms by relative position, with biases in windows: config_relative.c. */
int config_deberta(const struct fields *f, struct part *part);
int config_transformer_xl(const struct fields *f, struct part *part);
int config_beit(const struct fields *f, struct part *part);
int config_swin(const struct fields *f, const struct part *like, struct config *config);

/* What says how frequencies are scaled: rope_scaling, or rope_parameters as later releases of
 * that library call it, or the object in it for one type of layers. */
struct rope {
    const json_t *object; /* NULL: there is none */
    const char *name;     /* "rope_scaling", "rope_parameters" */
};
/* A number that may stand in the object for scaling and beside it: the same in both. */
int rope_number(const struct fields *f, const struct rope *rope, const char *inside,
                const char *const *names, double least, double most, double *value);
/* Whether a parameter counts for its rule. */
bool rope_takes(const struct rope *rope, const char *parameter);
/* Fills part->freqs, which has rope_theta and dim already, with the rule and its parameters. */
int config_scaling(const struct fields *f, const struct rope *rope, struct part *part,
                   struct model *model);

/* A plan is the last judge of its own parameters, at every length of sequence they are used. */
int config_try_freqs(const struct fields *f, const struct part *part);

/* Fills the cases and the problems to verify. */
void config_cases(const struct config *config, struct model *model);

#endif
