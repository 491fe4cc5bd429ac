/*
 * Models as data: the keys of a Hugging Face config.json become the calls that the model makes
 * of a library of positional encodings.
 *
 * Rotations take the query and key heads in one call, as they lie side by side behind a fused
 * QKV projection: heads = query heads + key heads; cos and sin are given for the call's tokens
 * only. "prefill" is 512 tokens (fewer where the model takes fewer), "decode" one token at the
 * model's last position; batch 1.
 *
 * Frequencies that depend on the length of the sequence (dynamic, longrope) are those at the last
 * position of a call, plus one.  Besides, "original" is the last position before longrope changes
 * its factors, and "beyond" the last of twice what a dynamic model takes.  Types of layers that
 * rotate differently have cases of their own, "full-decode" and "sliding-decode"; so have an
 * encoder and a decoder.
 *
 * "image" is one picture, of 32 x 32 tokens after the prompt for a model whose positions have
 * three axes, and of the patches those are merged from for its vision tower ("vision-image"):
 * row by row, where the towers' own code goes by blocks of what is merged, which are the same
 * rows in another order.
 */
#ifndef POSENC_MODEL_H
#define POSENC_MODEL_H

#include "conformance/problem/problem.h"

#include <stdio.h>

enum { MODEL_ERROR = 2048, MODEL_NOTES = 2048, MODEL_MAX_PARTS = 4, MODEL_MAX_CASES = 48 };

struct model_case {
    char id[96];    /* "rope_half/f32/given/llama-3.1-8b-decode" */
    char label[64]; /* "decode, 1 token, 32 + 8 heads of 128" */
    char step
        [24]; /* what the model does when it makes this call: "decode", "vision-image"; "" where
                       it makes another in its place */
    int64_t times; /* how often, then; 0: the configuration does not say */
    /* "full_attention", as files call them, "vision", "encoder": whose it is, "" of all. */
    char layers[24];
    struct problem problem;
};

struct model {
    char name[48];     /* "llama-3.1-8b", [a-z0-9_.-] */
    char title[96];    /* "Llama 3.1 8B" */
    char source[256];  /* where its numbers were published */
    char checked[256]; /* what they were checked against */
    /* Sentences: what of the configuration is not covered, or counts for nothing; "". */
    char notes[MODEL_NOTES];
    char encoding[24];        /* sinusoidal, learned, rope_half, rope_interleaved, alibi, t5 */
    char trained_profile[16]; /* how the code it was trained or published with forms its angles:
                                 a profile's name; "" where unknown or there are none */
    int64_t max_position_embeddings;
    enum posenc_dtype storage; /* of its tensors: f32 where the configuration says nothing */
    char storage_from[32];     /* the member that says so, "torch_dtype"; "" where none does */
    bool has_freqs;
    struct posenc_freqs_spec freqs; /* profile exact; of the first type of layers */
    size_t n_cases;
    struct model_case cases[MODEL_MAX_CASES];
    size_t n_verify; /* for conf_options.problem: its shapes with few tokens, at the first and
                        at the last positions it takes */
    struct problem verify[MODEL_MAX_CASES];
    size_t n_owned;
    void *owned[MODEL_MAX_PARTS]; /* factors that freqs and the problems point to */
};

/* A built-in model by name, or a config.json by its path, which contains a '/' or ends in ".json".
 * 0, or -1 with a message: what, which value, and what would be accepted (near names, the model
 * and rope types known).  A configuration with a shape that takes more than a sixteenth of this
 * machine's memory is refused. */
int model_load(const char *name_or_path, struct model *model, char error[MODEL_ERROR]);
/* The same, and besides what it says of each of its parts (config.h). */
struct config;
int model_read(const char *name_or_path, struct config *config, struct model *model,
               char error[MODEL_ERROR]);
/* The same of an open file, which is called so. */
int model_from_file(FILE *file, const char *path, struct model *model, char error[MODEL_ERROR]);
/* Frees what a model that was loaded owns; its problems are then of no use. */
void model_free(struct model *model);

/* A model_type of Hugging Face's library or an architecture of GGUF files. */
struct model_kind {
    const char *name, *encoding;
    const char *note; /* what its code does besides, or why it is refused; "" */
    bool refused;
};
/* The types that --config reads and those it refuses by name; false past the end. */
bool model_type_at(size_t index, struct model_kind *kind);
bool model_architecture_at(size_t index, struct model_kind *kind);

/* Names of the built-in models; NULL past the end. */
const char *model_name_at(size_t index);

#endif
