/*
 * Numbers that need no tensor, by the parameters they follow from: slopes of ALiBi as exact
 * hexadecimal f32, least distances of T5's buckets, rows of a window's table for each query and
 * key, columns of terms for each query - key from the least on.
 */
#include "numbers.h"

#include "conformance/problem/signature.h"

#include <stdio.h>

enum { KEY_BYTES = 128, MOST_SLOPES = 128 };

static json_t *slopes_of(const struct problem *p, char key[KEY_BYTES])
{
    const int64_t n = p->heads * (p->slopes_by_batch ? p->batch : 1);
    float values[MOST_SLOPES];
    json_t *list = json_array();
    snprintf(key, KEY_BYTES, "heads=%d max=%g", (int)n, p->alibi_bias_max);
    reference_slopes(n, p->alibi_bias_max, values);
    for (int64_t h = 0; h < n; h++) {
        char text[32];
        snprintf(text, sizeof text, "%a", (double)values[h]);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *thresholds_of(const struct problem *p, char key[KEY_BYTES])
{
    json_t *list = json_array();
    int64_t last = -1;
    snprintf(key, KEY_BYTES, "num_buckets=%d max_distance=%d %s", (int)p->num_buckets,
             (int)p->max_distance, p->bidirectional ? "bidirectional" : "unidirectional");
    for (int64_t n = 0; n <= p->max_distance; n++) {
        const int64_t bucket =
            reference_bucket(n, p->num_buckets, p->max_distance, p->bidirectional);
        for (; last < bucket; last++)
            json_array_append_new(list, json_integer(n));
    }
    return list;
}

static json_t *rows_of(const struct problem *p, char key[KEY_BYTES])
{
    const int64_t n = p->window_height * p->window_width + p->window_class;
    json_t *list = json_array();
    snprintf(key, KEY_BYTES, "height=%d width=%d%s", (int)p->window_height,
             (int)p->window_width, p->window_class ? " class" : "");
    for (int64_t i = 0; i < n * n; i++)
        json_array_append_new(list, json_integer(reference_window_row(p, i / n, i % n)));
    return list;
}

static json_t *columns_of(const struct problem *p, char key[KEY_BYTES])
{
    json_t *list = json_array();
    snprintf(key, KEY_BYTES, "%s buckets=%d max_distance=%d queries=%d keys=%d query_offset=%d",
             relative_names[p->relative], (int)p->num_buckets, (int)p->max_distance,
             (int)p->queries, (int)p->keys, (int)p->query_offset);
    for (int64_t d = 1 - p->keys; d < p->queries; d++)
        json_array_append_new(list,
                              json_integer(reference_column(p, d > 0 ? d : 0, d > 0 ? 0 : -d)));
    return list;
}

/* The numbers of a case, under which names; NULL where it has none. */
static json_t *numbers_of(const struct problem *p, const char **name, char key[KEY_BYTES])
{
    static const struct {
        const struct signature *signature;
        const char *name;
        json_t *(*list)(const struct problem *p, char key[KEY_BYTES]);
    } of[] = {
        { &signature_alibi, "alibi_slopes", slopes_of },
        { &signature_t5, "t5_thresholds", thresholds_of },
        { &signature_window, "window_rows", rows_of },
        { &signature_relative, "relative_columns", columns_of },
        { &signature_relative_sum, "relative_columns", columns_of },
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (of[i].signature == signature_of(p->kernel)) {
            *name = of[i].name;
            return of[i].list(p, key);
        }
    return NULL;
}

void numbers_add(json_t *root, const struct golden *golden, const struct group *group)
{
    for (size_t i = group->first; i < group->first + group->n; i++) {
        char key[KEY_BYTES];
        const char *name;
        json_t *list = numbers_of(&golden->vectors.cases[i].problem, &name, key);
        if (!list)
            continue;
        if (!json_object_get(root, name))
            json_object_set_new(root, name, json_object());
        json_object_set_new(json_object_get(root, name), key, list);
    }
}
