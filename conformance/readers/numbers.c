/*
 * Numbers that need no tensor, by the parameters they follow from: slopes of ALiBi as exact
 * hexadecimal f32, least distances of T5's buckets, rows of a window's table for each query and
 * key, columns of terms for each query - key from the least on.
 */
#include "numbers.h"

#include "conformance/oracle/rows.h"
#include "conformance/problem/signature.h"

#include <stdio.h>

enum { KEY_BYTES = 128 };

static json_t *slopes_of(const struct oracle *oracle, char key[KEY_BYTES])
{
    const struct problem *p = &oracle->call->problem;
    const int64_t n = p->heads * (p->slopes_by_batch ? p->batch : 1);
    json_t *list = json_array();
    snprintf(key, KEY_BYTES, "heads=%d max=%g", (int)n, p->alibi_bias_max);
    for (int64_t h = 0; h < n; h++) {
        char text[32];
        snprintf(text, sizeof text, "%a", (double)oracle->call->slopes[h]);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *thresholds_of(const struct oracle *oracle, char key[KEY_BYTES])
{
    const struct problem *p = &oracle->call->problem;
    json_t *list = json_array();
    snprintf(key, KEY_BYTES, "num_buckets=%d max_distance=%d %s", (int)p->num_buckets,
             (int)p->max_distance, p->bidirectional ? "bidirectional" : "unidirectional");
    for (int64_t b = 0; b < oracle->n_thresholds; b++)
        json_array_append_new(list, json_integer(oracle->thresholds[b]));
    return list;
}

static json_t *rows_of(const struct oracle *oracle, char key[KEY_BYTES])
{
    const struct problem *p = &oracle->call->problem;
    const int64_t n = problem_window(p);
    json_t *list = json_array();
    snprintf(key, KEY_BYTES, "height=%d width=%d%s", (int)p->window_height,
             (int)p->window_width, p->window_class ? " class" : "");
    for (int64_t i = 0; i < n * n; i++)
        json_array_append_new(list, json_integer(window_row(p, i / n, i % n)));
    return list;
}

static json_t *columns_of(const struct oracle *oracle, char key[KEY_BYTES])
{
    const struct problem *p = &oracle->call->problem;
    json_t *list = json_array();
    snprintf(key, KEY_BYTES, "%s buckets=%d max_distance=%d queries=%d keys=%d query_offset=%d",
             relative_names[p->relative], (int)p->num_buckets, (int)p->max_distance,
             (int)p->queries, (int)p->keys, (int)p->query_offset);
    for (int64_t i = 0; i < problem_distances(p->queries, p->keys); i++)
        json_array_append_new(list, json_integer(oracle->columns[i]));
    return list;
}

/* The numbers of a call, under which names; NULL where it has none. */
static json_t *numbers_of(const struct oracle *oracle, const char **name, char key[KEY_BYTES])
{
    static const struct {
        const struct signature *signature;
        const char *name;
        json_t *(*list)(const struct oracle *oracle, char key[KEY_BYTES]);
    } of[] = {
        { &signature_alibi, "alibi_slopes", slopes_of },
        { &signature_t5, "t5_thresholds", thresholds_of },
        { &signature_window, "window_rows", rows_of },
        { &signature_relative, "relative_columns", columns_of },
        { &signature_relative_sum, "relative_columns", columns_of },
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (of[i].signature == signature_of(oracle->call->problem.kernel)) {
            *name = of[i].name;
            return of[i].list(oracle, key);
        }
    return NULL;
}

bool numbers_add(json_t *root, const struct problem *problem)
{
    struct call call;
    if (!kernel_on_scores(problem->kernel))
        return true;
    if (call_create(&call, problem, &memory_plain) != POSENC_OK)
        return false;
    struct oracle *oracle = oracle_create(&call);
    char key[KEY_BYTES];
    const char *name;
    json_t *list = oracle ? numbers_of(oracle, &name, key) : NULL;
    if (list && !json_object_get(root, name))
        json_object_set_new(root, name, json_object());
    if (list)
        json_object_set_new(json_object_get(root, name), key, list);
    const bool good = oracle != NULL;
    oracle_destroy(oracle);
    call_destroy(&call);
    return good;
}
