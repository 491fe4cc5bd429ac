/*
 * The results of several machines side by side.
 */
#ifndef POSENC_MACHINES_H
#define POSENC_MACHINES_H

#include "query.h"

enum { MACHINE_NAME = 64 };

struct machines {
    size_t n;
    struct results *of;
    char (*name)
        [MACHINE_NAME]; /* the CPU's key; where two have one key, with what tells them apart */
};

/* Of all records, each narrowed as its own report is.  -1: no memory. */
int machines_make(const json_t *records, struct machines *machines);
void machines_free(struct machines *machines);

/* Names in the order in which the machines' records have them, each once: to be freed; NULL: no memory. */
const char **machines_kernels(const struct machines *machines, size_t *n);
const char **machines_backends(const struct machines *machines, size_t *n);
/* Cases that were timed, likewise: those of models first. */
const char **machines_cases(const struct machines *machines, size_t *n);

/* The backend of a machine; NULL: its records do not know one of that name. */
const struct backend_row *machine_backend(const struct results *results, const char *id);
/* The model's case of that id on the first machine that has it; NULL: none. */
const json_t *machines_model_case(const struct machines *machines, const char *id,
                                  const json_t **model);

#endif
