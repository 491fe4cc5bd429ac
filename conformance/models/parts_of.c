/*
 * parts_of: reads configurations, one JSON text a line, and prints what becomes of each, one JSON
 * object a line: its parts with their frequencies, and its notes; or the refusal.
 *
 *   {"parts": [{"name": "full", "encoding": "rope_half", ..., "omega": [...], "attention": 1}], "notes": "..."}
 *   {"refused": "..."}
 *
 * Frequencies are those of a sequence of one token, "beyond" those of one twice as long as the model
 * takes, where they differ.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

static void add_plan(json_t *to, const struct part *p, const char *name, int64_t seq_len)
{
    struct posenc_freqs_spec spec = p->freqs;
    struct posenc_freqs *freqs;
    spec.seq_len = seq_len;
    if (posenc_freqs_create(&spec, &freqs, NULL) != POSENC_OK)
        return;
    const struct posenc_freqs_view view = posenc_freqs_view(freqs);
    json_t *omega = json_array(), *axes = json_array();
    for (int64_t i = 0; i < view.n_pairs; i++) {
        json_array_append_new(omega, json_real(view.omega[i]));
        if (view.axis)
            json_array_append_new(axes, json_integer(view.axis[i]));
    }
    json_object_set_new(to, name, omega);
    json_object_set_new(to, "attention", json_real(view.attention_factor));
    if (view.axis)
        json_object_set(to, "axes", axes);
    json_decref(axes);
    posenc_freqs_destroy(freqs);
}

static json_t *describe_part(const struct part *p)
{
    static const char *const sizes[] = {
        "length",         "width",          "heads",        "key_heads", "head_dim",
        "rotary_dim",     "layers",         "first",        "rows",      "num_buckets",
        "scaled",         "decoder_layers", "max_distance", "window",    "window_class",
        "alibi_bias_max", "sin_cos",        "cos_first",    "shrunk",    "norms",
        "column_first",   "origin",         "both_ways",    "backward",  "of_values",
        "halves",         "bare",           "left",         "right",     "side",
        "windows"
    };
    json_t *part = json_object();
    json_object_set_new(part, "name", json_string(p->name));
    json_object_set_new(part, "encoding", json_string(encodings[p->encoding].name));
    if (p->stack)
        json_object_set_new(part, "stack", json_string(p->stack));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const double value = quantity_get(quantity_find(sizes[i], strlen(sizes[i])), p);
        if (value < 0.0 || value > 0.0)
            json_object_set_new(part, sizes[i], json_real(value));
    }
    if (p->encoding == ROPE_HALF || p->encoding == ROPE_INTERLEAVED ||
        p->encoding == SINUSOIDAL) {
        add_plan(part, p, "beyond", 2 * p->length);
        add_plan(part, p, "omega", 1);
        if (json_equal(json_object_get(part, "beyond"), json_object_get(part, "omega")))
            json_object_del(part, "beyond");
    }
    return part;
}

static json_t *describe(const char *line)
{
    static struct config config;
    static struct model model;
    char error[MODEL_ERROR];
    json_error_t where;
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, &where), *said = json_object();
    memset(&model, 0, sizeof model);
    if (!json || config_read(json, &config, &model, error)) {
        json_object_set_new(said, "refused", json_string(json ? error : where.text));
    } else {
        json_t *parts = json_array();
        for (size_t i = 0; i < config.n_parts; i++)
            json_array_append_new(parts, describe_part(&config.parts[i]));
        json_object_set_new(said, "parts", parts);
        json_object_set_new(said, "notes", json_string(model.notes));
    }
    model_free(&model);
    json_decref(json);
    return said;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        json_t *said = describe(line);
        json_dumpf(said, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        fflush(stdout);
        json_decref(said);
    }
    free(line);
    return 0;
}
