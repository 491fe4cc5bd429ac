/* For the tests of models: a configuration as text, and what is looked up in a model. */
#ifndef POSENC_MODEL_TEST_TEXT_H
#define POSENC_MODEL_TEST_TEXT_H

#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Loads text as a configuration by way of a file. */
static inline int load_text(const char *text, struct model *m, char error[MODEL_ERROR])
{
    char path[] = "/tmp/posenc-config-XXXXXX";
    int descriptor = mkstemp(path);
    size_t n = strlen(text);
    bool written = descriptor >= 0 && write(descriptor, text, n) == (ssize_t)n;
    if (descriptor >= 0)
        close(descriptor);
    int status = written ? model_from_config(path, m, error) : -2;
    unlink(path);
    return status;
}

/* The problem of the case whose id has this kernel and profile and ends in `end`. */
static inline const struct problem *find_case(const struct model *m, const char *start,
                                              const char *end)
{
    for (size_t i = 0; i < m->n_cases; i++) {
        const char *id = m->cases[i].id;
        size_t n = strlen(id), tail = strlen(end);
        if (strncmp(id, start, strlen(start)) == 0 && n > tail &&
            strcmp(id + n - tail, end) == 0)
            return &m->cases[i].problem;
    }
    return NULL;
}

/* Frequency of a pair and the factor of a problem's plan; NaN where there is none. */
static inline double omega_of(const struct problem *p, int64_t pair, double *attention)
{
    struct posenc_freqs *freqs;
    if (!p || posenc_freqs_create(&p->freqs, &freqs, NULL) != POSENC_OK)
        return (double)NAN;
    struct posenc_freqs_view view = posenc_freqs_view(freqs);
    double omega = pair < view.n_pairs ? view.omega[pair] : (double)NAN;
    if (attention)
        *attention = view.attention_factor;
    posenc_freqs_destroy(freqs);
    return omega;
}

/* What a configuration of a rotation decides of a problem; for tests that know of no NaN. */
static inline bool same_problem(const struct problem *p, const struct problem *q)
{
    const struct posenc_freqs_spec *a = &p->freqs, *b = &q->freqs;
    const double numbers[][2] = {
        { a->rope_theta, b->rope_theta },
        { a->factor, b->factor },
        { a->original_max_position_embeddings, b->original_max_position_embeddings },
        { a->attention_factor, b->attention_factor },
        { a->max_position_embeddings, b->max_position_embeddings },
        { a->partial_rotary_factor, b->partial_rotary_factor },
    };
    bool same = p->kernel == q->kernel && p->tokens == q->tokens && p->heads == q->heads &&
                p->dim == q->dim && p->rotary_dim == q->rotary_dim && p->rows == q->rows &&
                p->first == q->first && a->profile == b->profile && a->scaling == b->scaling &&
                a->dim == b->dim && a->seq_len == b->seq_len &&
                a->mrope_layout == b->mrope_layout && p->mrope_grid == q->mrope_grid &&
                p->position_kind == q->position_kind &&
                memcmp(a->mrope_section, b->mrope_section, sizeof a->mrope_section) == 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        same &= !(numbers[i][0] < numbers[i][1]) && !(numbers[i][0] > numbers[i][1]);
    return same;
}

/* Both models make the same calls, whatever they are called. */
static inline bool same_cases(const struct model *a, const struct model *b)
{
    bool same = a->n_cases == b->n_cases && a->n_verify == b->n_verify;
    for (size_t i = 0; same && i < a->n_cases; i++)
        same = same_problem(&a->cases[i].problem, &b->cases[i].problem);
    return same;
}

#define LLAMA                                                                                  \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, "            \
    "\"max_position_embeddings\": 100"

#define TEXT                                                                                   \
    "\"hidden_size\": 64, \"num_attention_heads\": 4, \"max_position_embeddings\": 100, "      \
    "\"rope_theta\": 10000.0, "

#endif
