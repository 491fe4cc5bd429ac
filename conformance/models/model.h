/*
 * Models as data: the calls that a model makes of a library of positional encodings.
 *
 * The reader of model files is written in Python (reports/posenc/models). What it gives of a file is a record, in JSON,
 * of which this is the reader. The records of the presets are compiled in.
 *
 * Rotations take the query and key heads in one call, as they lie side by side behind a fused QKV projection:
 * heads = query heads + key heads; cos and sin are given for the call's tokens only. "prefill" is 512 tokens (fewer
 * where the model takes fewer), "decode" one token at the model's last position; batch 1.
 *
 * Frequencies that depend on the length of the sequence (dynamic, longrope) are those at the last position of a call,
 * plus one. Besides, "original" is the last position before longrope changes its factors, and "beyond" the last of
 * twice what a dynamic model takes. Types of layers that rotate differently have cases of their own, "full-decode" and
 * "sliding-decode"; so have an encoder and a decoder.
 *
 * "image" is one picture, of 32 x 32 tokens after the prompt for a model whose positions have three axes, and of the
 * patches those are merged from for its vision tower ("vision-image"): row by row, where the towers' own code goes by
 * blocks of what is merged, which are the same rows in another order.
 */
#ifndef POSENC_MODEL_H
#define POSENC_MODEL_H

#include "conformance/problem/problem.h"
#include "conformance/problem/arena.h"

enum { MODEL_ERROR = 2048, MODEL_NOTES = 2048, MODEL_MAX_PARTS = 4, MODEL_MAX_CASES = 48 };

struct model_case {
    char id[96];    /* "rope_half/f32/given/llama-3.1-8b-decode" */
    char label[64]; /* "decode, 1 token, 32 + 8 heads of 128" */
    char step[24];  /* what the model does when it makes this call: "decode", "vision-image"; ""
                         where it makes another in its place */
    int64_t times;  /* how often, then; 0: the configuration does not say */
    char layers
        [24]; /* whose it is: "full_attention", as files call them, "vision", "encoder", "" of all */
    bool column_first; /* positions of a patch are its column, then its row */
    struct problem problem;
};

struct model {
    char name[48];     /* "llama-3.1-8b", [a-z0-9_.-] */
    char title[96];    /* "Llama 3.1 8B" */
    char source[256];  /* where its numbers were published */
    char checked[256]; /* what they were checked against */
    char notes
        [MODEL_NOTES]; /* sentences: what of the file is not covered, or counts for nothing; "" */
    char encoding[24]; /* sinusoidal, learned, rope_half, rope_interleaved, alibi, t5, ... */
    char trained_profile
        [16];          /* how the code it was trained or published with forms its angles: a
                                 profile's name; "" where unknown or there are none */
    char trained[256]; /* the same as a sentence, also where it is not known */
    int64_t max_position_embeddings;
    enum posenc_dtype storage; /* of its tensors: f32 where the file says nothing */
    char storage_from[32];     /* the member that says so, "torch_dtype"; "" where none does */
    size_t n_cases;
    struct model_case cases[MODEL_MAX_CASES];
    size_t
        n_verify; /* for conf_options.problem: its shapes with few tokens, at the first and at
                        the last positions it takes */
    struct problem verify[MODEL_MAX_CASES];
    struct arena arena; /* lists that problems point to */
};

/* Reads a preset by name. Returns 0, or -1 with a message, which names those that are near. */
int model_load(const char *name, struct model *model, char error[MODEL_ERROR]);

/* Reads a record, {"name": "llama-3.1-8b", "cases": [{"problem": "rope_half heads=40", ...}], ...}. Returns 0, or -1
 * with a message: where it is no such record, or a shape takes more than a sixteenth of this machine's memory. */
int model_from_record(const char *json, struct model *model, char error[MODEL_ERROR]);

/* Frees what a model that was loaded owns; its problems are then of no use. */
void model_free(struct model *model);

/* Names of the presets; NULL past the end. */
const char *model_name_at(size_t index);

#endif
