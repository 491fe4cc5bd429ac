/*
 * Calls of positional encodings that a model makes, as problems to check and time.
 *
 * The Python reader of model files (reports/posenc/models) makes a JSON record of a file, which this
 * module reads. The records of the presets are compiled in.
 *
 * A rotation takes the query and key heads in one call, side by side as after a fused QKV projection:
 * heads = query heads + key heads. The inputs cos and sin have rows for the tokens of the call only.
 *
 * Names of steps:
 *
 *   prefill        512 tokens, or as many as the model takes; batch 1, as for all steps
 *   decode         one token at the last position of the model
 *   original       the last position before longrope changes its factors
 *   beyond         one token at the last of twice the positions of a model with dynamic scaling
 *   full-decode, sliding-decode
 *                  decode in layer types that rotate differently; encoder and decoder are named likewise
 *   image          32 x 32 tokens of a picture after the prompt, if positions have three axes
 *   vision-image   the patches of such a picture in the vision tower, row by row; the models' own
 *                  code visits the same rows in blocks of merged patches
 *
 * Frequencies that depend on the sequence length (dynamic, longrope) are those of a sequence that ends
 * with the call.
 */
#ifndef POSENC_MODEL_H
#define POSENC_MODEL_H

#include "conformance/problem/problem.h"
#include "conformance/problem/arena.h"

enum { MODEL_ERROR = 2048, MODEL_NOTES = 2048, MODEL_MAX_PARTS = 4, MODEL_MAX_CASES = 48 };

struct model_case {
    char id[96];       /* "rope_half/f32/given/llama-3.1-8b-decode" */
    char label[64];    /* "decode, 1 token, 32 + 8 heads of 128" */
    char step[24];     /* "decode", "vision-image"; "" if the call replaces another */
    int64_t times;     /* calls in a step; 0: unknown */
    char layers[24];   /* "full_attention", "vision", "encoder", ...; "" for all layers */
    bool column_first; /* positions of a patch are its column, then its row */
    struct problem problem;
};

struct model {
    char name[48];           /* "llama-3.1-8b", [a-z0-9_.-] */
    char title[96];          /* "Llama 3.1 8B" */
    char source[256];        /* publication of its numbers */
    char checked[256];       /* reference that its numbers were compared with */
    char notes[MODEL_NOTES]; /* sentences on members that are not supported or have no effect */
    char encoding[24]; /* sinusoidal, learned, rope_half, rope_interleaved, alibi, t5, ... */
    char trained_numerics[16]; /* numerics mode of its training or published code, or "" */
    char trained[256];         /* a sentence about this mode, also if it is unknown */
    int64_t max_position_embeddings;
    enum posenc_dtype storage; /* dtype of its tensors; f32 if the file does not say */
    char storage_from[32];     /* member with the dtype, "torch_dtype", or "" */
    size_t n_cases;
    struct model_case cases[MODEL_MAX_CASES];
    /* Problems of conf_options.problem: its shapes with few tokens, at the first and the last positions. */
    size_t n_verify;
    struct problem verify[MODEL_MAX_CASES];
    struct arena arena; /* lists that problems point to */
};

/* Reads a preset by name. Returns 0, or -1 and a message with known names. */
int model_load(const char *name, struct model *model, char error[MODEL_ERROR]);

/* Reads a record, {"name": "llama-3.1-8b", "cases": [{"problem": "rope_half heads=40", ...}], ...}.
 * Returns 0, or -1 and a message if it is no such record, or if a shape needs more than a sixteenth of
 * the memory of this machine. */
int model_from_record(const char *json, struct model *model, char error[MODEL_ERROR]);

/* Frees the memory of a loaded model and of its problems. */
void model_free(struct model *model);

/* Returns the name of a preset, or NULL past the last one. */
const char *model_name_at(size_t index);

#endif
