/*
 * How llama.cpp scales frequencies by the metadata of a GGUF file (ggml-org/llama.cpp,
 * src/llama-context.cpp; ggml-org/ggml, ggml_rope_ext).
 */
#include "config_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list of factors, one for each pair. */
static int take_factors(struct gguf *g, const char *name, int64_t pairs, double by, double **to)
{
    const json_t *list = json_object_get(json_object_get(g->f.file, "tensors"), name), *one;
    size_t i;
    *to = NULL;
    if (!list)
        return 0;
    if ((int64_t)json_array_size(list) < pairs)
        return refuse(&g->f,
                      "the tensor %s has %zu factors: %lld, one for each pair, are needed",
                      name, json_array_size(list), (long long)pairs);
    double *factors = calloc((size_t)pairs, sizeof *factors);
    if (!factors)
        return refuse(&g->f, "no memory for %lld factors", (long long)pairs);
    g->model->owned[g->model->n_owned++] = *to = factors;
    json_array_foreach(list, i, one)
    {
        struct member m = { .value = one };
        snprintf(m.name, sizeof m.name, "%.40s[%zu]", name, i);
        if ((int64_t)i < pairs &&
            value_read(&g->f, &m, IS_NUMBER, "0.0009765625 1e38", NULL, &factors[i]))
            return -1;
    }
    for (int64_t k = 0; k < pairs; k++)
        factors[k] *= by;
    return 0;
}

/* Factors that stop pairs, as the converter of Gemma 4 writes 1e30, are beyond what a plan takes:
 * where they follow those that are alike, the first pairs turn and the others do not.  How many do;
 * 0: it is not so. */
static int64_t count_turning(const double *factors, int64_t pairs, double factor)
{
    enum { STOPS = 1 << 30 };
    int64_t n = 0, still = 0;
    while (n < pairs && fabs(factors[n] - factor) <= 0.0)
        n++;
    for (int64_t i = n; i < pairs; i++)
        still += factors[i] >= (double)STOPS * STOPS;
    return still == pairs - n && still ? n : 0;
}

/* The factors that divide angles: rope_freqs at any length, else the short ones up to the context
 * trained on and the long ones past it. */
static int scale_by_tensors(struct gguf *g, struct part *p, const char *type)
{
    static const char *const names[] = { "rope_freqs.weight", "rope_factors_short.weight",
                                         "rope_factors_long.weight" };
    struct posenc_freqs_spec *spec = &p->freqs;
    const bool longrope = strcmp(type, "longrope") == 0,
               reads[] = { gguf_is(g, "factors") && !longrope,
                           gguf_is(g, "always_long") || (gguf_is(g, "long") && longrope) };
    double *factors[3];
    for (int i = 0; i < 3; i++) {
        const bool there = json_object_get(json_object_get(g->f.file, "tensors"), names[i]);
        if (there && !reads[i > 0])
            return refuse(&g->f, "the tensor %s: such a model has none where its scaling is %s",
                          names[i], type);
        if (take_factors(g, names[i], p->rotary_dim / 2, spec->factor, &factors[i]))
            return -1;
    }
    if (!factors[0] && !factors[1] && !factors[2])
        return 0;
    if (!factors[0] && (!factors[1] || !factors[2]))
        return refuse(&g->f, "the tensor %s is missing beside %s", names[factors[1] ? 2 : 1],
                      names[factors[1] ? 1 : 2]);
    if (strcmp(type, "yarn") == 0)
        return refuse(&g->f,
                      "rope.scaling.type is yarn beside a tensor of factors: one of them "
                      "is needed");
    const int64_t turning =
        factors[0] ? count_turning(factors[0], p->rotary_dim / 2, spec->factor) : 0;
    origin_say(p, "scaling", "the tensor %s", names[factors[0] ? 0 : 1]);
    if (turning) {
        note(&g->f,
             "The factors of %s stop all pairs but the first %lld; of such a scaling "
             "profile ggml_f32 has no tables",
             names[0], (long long)turning);
        spec->partial_rotary_factor = ((double)turning + 0.5) / (double)(p->rotary_dim / 2);
        spec->scaling = POSENC_SCALING_PROPORTIONAL;
        return 0;
    }
    spec->scaling = POSENC_SCALING_LONGROPE;
    spec->factor = 1.0;
    spec->short_factor = factors[0] ? factors[0] : factors[1];
    spec->long_factor = factors[0] ? factors[0] : factors[2];
    if (factors[0])
        spec->original_max_position_embeddings = (double)p->length;
    else
        note(&g->f,
             "llama.cpp takes the long factors where the context it was given is longer "
             "than %.10g, here they count past that length",
             spec->original_max_position_embeddings);
    return 0;
}

/* YaRN's factor of cosines and sines for a factor of the context. */
static double magnitude(double factor, double mscale)
{
    return 0.1 * mscale * log(factor) + 1.0;
}

static void scale_yarn(const struct gguf *g, struct posenc_freqs_spec *spec)
{
    double all = spec->mscale_all_dim * (gguf_is(g, "log10") ? 10.0 : 1.0);
    const bool own = strcmp(g->a->name, "deepseek2") == 0 && fabs(all - 1.0) > 1e-6;
    spec->attention_factor *=
        all > 0.0 ? magnitude(spec->factor, own ? all : 1.0) / magnitude(spec->factor, all)
                  : magnitude(spec->factor, 1.0);
    spec->mscale_all_dim = 0.0;
    spec->scaling = POSENC_SCALING_YARN;
}

static int read_type(const struct gguf *g, const char **type)
{
    const struct member m = member_find(&g->f, "rope.scaling.type");
    *type = m.value ? json_string_value(m.value) : "linear";
    return *type && lists("none linear yarn longrope", *type)
               ? 0
               : refuse(&g->f,
                        "rope.scaling.type is '%.60s': known are none, linear, yarn, "
                        "longrope",
                        *type ? *type : "(no text)");
}

/* Grok's own key may switch YaRN off and on; every file that is known has it on. */
static int check_extrapolation(const struct gguf *g, const char *type)
{
    const json_t *extends = member_value(&g->f, "rope.scaling.yarn_ext_factor");
    const double by = extends ? json_number_value(extends) : 1.0;
    return !lists("grok", g->a->name) || !extends ||
                   (fabs(by - 1.0) < 1e-9 && strcmp(type, "yarn") == 0)
               ? 0
               : refuse(&g->f,
                        "rope.scaling.yarn_ext_factor is %g with a scaling of type %s: 1 "
                        "with yarn is needed",
                        by, type);
}

int gguf_scale(struct gguf *g, struct part *p)
{
    struct posenc_freqs_spec *spec = &p->freqs;
    const char *type;
    const struct member named = member_find(&g->f, "rope.scaling.type");
    if (named.value)
        origin_member(&g->f, &named, 0.0, &p->origins[OF_scaling]);
    if (read_type(g, &type) || check_extrapolation(g, type))
        return -1;
    if (spec->factor <= 0.0 || strcmp(type, "none") == 0)
        spec->factor = 1.0;
    if (spec->factor < 1.0)
        return refuse(&g->f, "rope.scaling.factor is %g: 0 or a number from 1 is needed",
                      spec->factor);
    if (spec->original_max_position_embeddings <= 0.0)
        spec->original_max_position_embeddings = (double)p->length;
    if (spec->mscale > 0.0) { /* alpha */
        if (spec->factor > 1.0)
            return refuse(&g->f,
                          "rope.scaling.alpha beside a factor of %g: one of them is needed",
                          spec->factor);
        spec->factor = spec->mscale;
        spec->scaling = POSENC_SCALING_NTK;
        origin_say(p, "scaling", "%srope.scaling.alpha", g->f.before);
    } else if (scale_by_tensors(g, p, type))
        return -1;
    spec->mscale = 0.0;
    if (spec->scaling != POSENC_SCALING_NONE || spec->factor <= 1.0)
        return 0;
    if (strcmp(type, "yarn") == 0)
        scale_yarn(g, spec);
    else
        spec->scaling = POSENC_SCALING_LINEAR;
    return 0;
}
