/*
 * Gathers the results of several machines; see machines.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "machines.h"

#include <stdlib.h>
#include <string.h>

/* ---- Machines and their names ---- */

/* A name heads a column: it has none of the marks that tell columns apart. */
static void name_machine(const struct machines *m, size_t i)
{
    const char *key = record_text(m->of[i].env, "cpu.key");
    bool alone = *key != '\0';
    for (size_t k = 0; k < m->n; k++)
        alone = alone && (k == i || strcmp(record_text(m->of[k].env, "cpu.key"), key) != 0);
    const char *name = alone ? key : record_text(m->of[i].env, "env_id");
    snprintf(m->name[i], MACHINE_NAME, "%s", *name ? name : "not recorded");
    for (char *p = m->name[i]; *p; p++)
        *p = strchr("|;>~!=?", *p) ? '_' : *p;
}

int machines_make(const json_t *records, struct machines *m)
{
    const size_t n = results_machines(records);
    *m = (struct machines){ .of = calloc(n, sizeof *m->of), .name = calloc(n, MACHINE_NAME) };
    bool fine = m->of && m->name;
    for (; fine && m->n < n; m->n += fine) {
        fine = results_make(records, m->n, &m->of[m->n]) == 0;
        if (fine)
            results_narrow(&m->of[m->n]);
    }
    for (size_t i = 0; fine && i < n; i++)
        name_machine(m, i);
    if (fine)
        return 0;
    machines_free(m);
    return -1;
}

void machines_free(struct machines *m)
{
    for (size_t i = 0; i < m->n; i++)
        results_free(&m->of[i]);
    free(m->of);
    free(m->name);
    *m = (struct machines){ 0 };
}

/* ---- What they have ---- */

struct names {
    const char **list;
    size_t n, room;
    bool failed;
};

static void add_name(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->list[i], name) == 0)
            return;
    if (names->n == names->room) {
        const size_t room = 2 * names->room + 16;
        const char **list = realloc(names->list, room * sizeof *list);
        names->failed = names->failed || !list;
        if (!list)
            return;
        names->list = list;
        names->room = room;
    }
    names->list[names->n++] = name;
}

static const char **names_of(struct names *names, size_t *n)
{
    *n = names->failed ? 0 : names->n;
    if (!names->failed && names->list)
        return names->list;
    free(names->list);
    return names->failed ? NULL : calloc(1, sizeof *names->list);
}

const char **machines_kernels(const struct machines *m, size_t *n)
{
    struct names names = { 0 };
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->of[i].n_kernels; k++)
            add_name(&names, m->of[i].kernels[k]);
    return names_of(&names, n);
}

const char **machines_backends(const struct machines *m, size_t *n)
{
    struct names names = { 0 };
    for (size_t i = 0; i < m->n; i++)
        for (size_t b = 0; b < m->of[i].n_backends; b++)
            add_name(&names, m->of[i].backends[b].id);
    return names_of(&names, n);
}

static bool is_timed(const struct machines *m, const char *id)
{
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->of[i].n_bench; k++)
            if (strcmp(m->of[i].bench[k].id, id) == 0)
                return true;
    return false;
}

static void add_model_cases(const struct machines *m, const struct results *r,
                            struct names *names)
{
    for (size_t k = 0; k < r->n_models; k++) {
        const json_t *cases = json_object_get(r->models[k], "cases");
        for (size_t c = 0; c < json_array_size(cases); c++) {
            const char *id = record_text(json_array_get(cases, c), "case");
            if (is_timed(m, id))
                add_name(names, id);
        }
    }
}

/* The others kernel by kernel. */
const char **machines_cases(const struct machines *m, size_t *n)
{
    struct names names = { 0 };
    size_t n_kernels;
    const char **kernels = machines_kernels(m, &n_kernels);
    for (size_t i = 0; i < m->n; i++)
        add_model_cases(m, &m->of[i], &names);
    for (size_t k = 0; k < n_kernels; k++)
        for (size_t i = 0; i < m->n; i++)
            for (size_t b = 0; b < m->of[i].n_bench; b++)
                if (strcmp(m->of[i].bench[b].kernel, kernels[k]) == 0)
                    add_name(&names, m->of[i].bench[b].id);
    names.failed = names.failed || !kernels;
    free(kernels);
    return names_of(&names, n);
}

const struct backend_row *machine_backend(const struct results *r, const char *id)
{
    for (size_t b = 0; b < r->n_backends; b++)
        if (strcmp(r->backends[b].id, id) == 0)
            return &r->backends[b];
    return NULL;
}

const json_t *machines_model_case(const struct machines *m, const char *id,
                                  const json_t **model)
{
    const json_t *one = NULL;
    *model = NULL;
    for (size_t i = 0; i < m->n && !one; i++)
        one = model_case(&m->of[i], id, model);
    return one;
}
