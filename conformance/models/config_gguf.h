/*
 * What the two parts of the reader of GGUF files share.
 */
#ifndef POSENC_MODEL_CONFIG_GGUF_H
#define POSENC_MODEL_CONFIG_GGUF_H

#include "config.h"

/* A row of architectures.txt. */
struct architecture {
    const char *name, *what, *flags, *pattern, *note;
};

/* What is being read. */
struct gguf {
    struct fields f;
    const struct architecture *a;
    struct config *config;
    struct model *model;
};

static inline bool gguf_is(const struct gguf *g, const char *flag)
{
    return lists(g->a->flags, flag);
}

/* Makes of the factors that keys.txt read into part->freqs, and of tensors of factors, the scaling
 * that llama.cpp makes of them.  0, or -1: refused. */
int gguf_scale(struct gguf *g, struct part *part);

#endif
