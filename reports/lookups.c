/*
 * What sections look up in the results of a machine (see query.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "query.h"
#include "statistics/stats.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *narrow_name(const char *dtype) { return strcmp(dtype, "f32") == 0 ? "" : dtype; }

const char *default_backend(const struct results *r, const char *kernel)
{
    for (size_t i = 0; i < r->n_backends; i++)
        if (json_object_get(json_object_get(r->backends[i].json, "serves"), kernel))
            return r->backends[i].id;
    return "";
}

const char *header_vectors_note(const json_t *header)
{
    const json_t *vectors = json_object_get(header, "vectors");
    return json_is_false(json_object_get(vectors, "official")) ? "not the official vectors"
                                                               : "";
}

const char *vectors_note(const struct results *r)
{
    const char *note = header_vectors_note(r->header);
    for (size_t i = 0; i < r->n_headers && !*note; i++)
        note = header_vectors_note(r->headers[i]);
    return note;
}

static int faster_first(const void *a, const void *b)
{
    const struct bench_row *x = *(const struct bench_row *const *)a,
                           *y = *(const struct bench_row *const *)b;
    if (!*x->refused != !*y->refused)
        return *x->refused ? 1 : -1;
    return (x->median > y->median) - (x->median < y->median);
}

size_t rows_of_case(const struct results *r, const char *id, const struct bench_row **rows,
                    size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < r->n_bench && found < n; i++)
        if (strcmp(r->bench[i].id, id) == 0)
            rows[found++] = &r->bench[i];
    qsort(rows, found, sizeof *rows, faster_first);
    return found;
}

double median_null(const struct results *r)
{
    double *values = malloc((r->n_bench + 1) * sizeof *values);
    size_t n = 0;
    if (!values)
        return -1.0;
    for (size_t c = 0; c < r->n_cases; c++)
        for (size_t i = 0; i < r->n_bench; i++)
            if (strcmp(r->bench[i].id, r->cases[c]) == 0 && !*r->bench[i].refused) {
                values[n++] =
                    r->bench[i].null_pct; /* one value a case: all of its rows share it */
                break;
            }
    double median = n ? stats_median(values, n) : -1.0;
    free(values);
    return median;
}

const json_t *model_case(const struct results *r, const char *id, const json_t **model)
{
    for (size_t m = 0; m < r->n_models; m++) {
        const json_t *cases = json_object_get(r->models[m], "cases");
        for (size_t i = 0; i < json_array_size(cases); i++)
            if (strcmp(record_text(json_array_get(cases, i), "case"), id) == 0) {
                if (model)
                    *model = r->models[m];
                return json_array_get(cases, i);
            }
    }
    return NULL;
}

const char *short_shape(const char *id, const json_t *model)
{
    const char *slash = strrchr(id, '/'), *last = slash ? slash + 1 : id;
    const char *name = record_text(model, "name");
    size_t n = strlen(name);
    if (n && strncmp(last, name, n) == 0 && last[n] == '-')
        return last + n + 1;
    return last;
}

void command_of(const json_t *header, char *text, size_t bytes)
{
    const json_t *argv = json_object_get(header, "argv");
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < json_array_size(argv); i++) {
        const char *word = json_string_value(json_array_get(argv, i));
        if (!word)
            continue;
        bool plain = *word != 0;
        for (const char *p = word; *p; p++)
            plain = plain && (isalnum((unsigned char)*p) || strchr("-_./:=,+@%", *p));
        int n = snprintf(text + at, bytes - at, plain ? "%s%s" : "%s'%s'", i ? " " : "", word);
        if (n < 0 || (size_t)n >= bytes - at)
            return;
        at += (size_t)n;
    }
}
