/*
 * The model types of types.txt, and what their columns mean.
 */
#include "conformance/problem/columns.h"
#include "config.h"

#include <assert.h>
#include <string.h>

static const struct model_type types[] = {
#include "types.inc"
};
enum { N_TYPES = sizeof types / sizeof *types };

static const char *const flag_names[] = { "encoder",        "pad_offset",   "two_offset",
                                          "speech",         "by_width",     "unsupported",
                                          "sin_then_cos",   "by_embedding", "stages",
                                          "maybe_relative", "head_norm",    "unit_norm",
                                          "token_norm" };

const struct model_type *model_type_at(size_t index)
{
    return index < N_TYPES ? &types[index] : NULL;
}

const struct model_type *model_type_find(const char *name)
{
    for (int i = 0; i < N_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

int model_type_flags(const struct model_type *type)
{
    int flags = 0;
    for (const char *at = type->flags; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        size_t i = 0;
        while (i < sizeof flag_names / sizeof *flag_names &&
               (strlen(flag_names[i]) != n || strncmp(flag_names[i], at, n) != 0))
            i++;
        assert(i < sizeof flag_names / sizeof *flag_names);
        flags |= 1 << i;
        at += n;
    }
    return flags;
}
