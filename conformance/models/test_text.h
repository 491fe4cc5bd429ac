/* For the tests of models: a configuration as text, and what is looked up in a model. */
#ifndef POSENC_MODEL_TEST_TEXT_H
#define POSENC_MODEL_TEST_TEXT_H

#include "model.h"

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
        const char *id = m->cases[i].bench.id;
        size_t n = strlen(id), tail = strlen(end);
        if (strncmp(id, start, strlen(start)) == 0 && n > tail &&
            strcmp(id + n - tail, end) == 0)
            return &m->cases[i].bench.problem;
    }
    return NULL;
}

#define LLAMA                                                                                  \
    "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, "            \
    "\"max_position_embeddings\": 100"

#endif
