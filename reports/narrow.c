/*
 * A report by model shows the kernels that its models use; what was checked besides is counted and
 * named.  See query.h.
 */
#include "query.h"

#include <stdlib.h>
#include <string.h>

static bool is_used(const struct results *r, const char *kernel)
{
    for (size_t m = 0; m < r->n_models; m++) {
        const json_t *cases = json_object_get(r->models[m], "cases");
        for (size_t i = 0; i < json_array_size(cases); i++)
            if (strcmp(record_text(json_array_get(cases, i), "kernel"), kernel) == 0)
                return true;
    }
    return false;
}

/* Those of used kernels first, in their order; how many they are. */
static size_t used_checks(const struct results *r, struct conf_row *rows, size_t n)
{
    struct conf_row *others = malloc((n + 1) * sizeof *others);
    size_t kept = 0, left = 0;
    for (size_t i = 0; others && i < n; i++) {
        if (is_used(r, rows[i].kernel))
            rows[kept++] = rows[i];
        else
            others[left++] = rows[i];
    }
    if (!others)
        return n;
    memcpy(rows + kept, others, left * sizeof *rows);
    free(others);
    return kept;
}

void results_narrow(struct results *r)
{
    if (r->n_models == 0 || r->by_model < r->runs)
        return;
    size_t n = r->n_conf, kernels = 0;
    r->n_conf = used_checks(r, r->conf, n);
    r->n_others = n - r->n_conf;
    for (size_t k = 0; k < r->n_kernels; k++)
        if (is_used(r, r->kernels[k]))
            r->kernels[kernels++] = r->kernels[k];
    r->n_kernels = kernels;
}

struct counts count_others(const struct results *r)
{
    struct results others = { .conf = r->conf + r->n_conf, .n_conf = r->n_others };
    return count_conf(&others, NULL, NULL, NULL);
}

struct counts count_all(const struct results *r)
{
    struct results all = { .conf = r->conf, .n_conf = r->n_conf + r->n_others };
    return count_conf(&all, NULL, NULL, NULL);
}

size_t other_kernels(const struct results *r, bool failed, const char **names, size_t most)
{
    size_t n = 0;
    for (const struct conf_row *c = r->conf + r->n_conf; c < r->conf + r->n_conf + r->n_others;
         c++) {
        bool bad = strcmp(c->status, "fail") == 0 || strcmp(c->status, "crash") == 0;
        size_t k = 0;
        while (k < n && strcmp(names[k], c->kernel) != 0)
            k++;
        if (k == n && n < most && (bad || !failed))
            names[n++] = c->kernel;
    }
    return n;
}
