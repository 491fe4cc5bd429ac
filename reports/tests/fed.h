/* Records made up by tests: what a run of a model on two backends or more might have said. */
#ifndef POSENC_TESTS_FED_H
#define POSENC_TESTS_FED_H

#include "reports/records.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static inline void feed(json_t *records, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    json_array_append_new(records, json_vpack_ex(NULL, 0, format, list));
    va_end(list);
}

/* A run on a machine of 2 CPUs, and the backends it has; the first one serves the kernel. */
static inline json_t *fed_run(const char *kernel, const char *const *backends)
{
    json_t *records = json_array();
    feed(records, "{s:s,s:s,s:s,s:[s]}", "t", "header", "schema", RECORDS_SCHEMA, "mode",
         "quick", "argv", "posenc");
    feed(records, "{s:s,s:s,s:{s:s,s:s},s:{s:i,s:i}}", "t", "env", "env_id", "paper", "cpu",
         "key", "paper", "name", "a CPU of paper", "cpus", "online", 2, "allowed", 2);
    for (size_t i = 0; backends[i]; i++) {
        json_t *serves = json_object();
        if (i == 0)
            json_object_set_new(serves, kernel, json_string("widest"));
        feed(records, "{s:s,s:s,s:s,s:s,s:b,s:o}", "t", "backend", "id", backends[i], "family",
             backends[i], "description", "", "available", 1, "serves", serves);
    }
    return records;
}

/* A model whose shapes are the cases "kernel/f32/given/SHAPE". */
static inline void feed_model(json_t *records, const char *kernel, const char *const *shapes)
{
    json_t *cases = json_array();
    for (size_t i = 0; shapes[i]; i++) {
        char id[96];
        snprintf(id, sizeof id, "%s/f32/given/%s", kernel, shapes[i]);
        feed(cases, "{s:s,s:s,s:s}", "case", id, "label", shapes[i], "kernel", kernel);
    }
    feed(records, "{s:s,s:s,s:s,s:o}", "t", "model", "name", "paper", "title", "Paper Model",
         "cases", cases);
}

/* A timing: its median, how wide its interval is to either side in %, and how far a copy was from
 * itself. */
struct fed_time {
    const char *backend;
    double us, width_pct, null_pct, roof;
};

static inline void feed_time(json_t *records, const char *kernel, const char *shape,
                             struct fed_time t)
{
    char id[96];
    double ns = 1e3 * t.us, share = t.width_pct / 100.0, roof = t.roof > 0.0 ? t.roof : 0.5;
    double low = share < 1.0 ? ns * (1.0 - share) : 0.4 * ns;
    snprintf(id, sizeof id, "%s/f32/given/%s", kernel, shape);
    feed(
        records,
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:f,s:f,s:f,s:{s:f,s:f,s:f},s:f,s:f,s:{s:s,s:f,s:f},s:i}",
        "t", "bench", "case", id, "kernel", kernel, "dtype", "f32", "profile", "given",
        "backend", t.backend, "family", t.backend, "median_ns", ns, "min_ns", low, "bytes", 1e6,
        "ci", "level", 0.99, "lo", low, "hi", ns * (1.0 + share), "gbps", 1e6 / ns, "null_pct",
        t.null_pct, "roof", "kind", "copy", "gbps", 1e6 / ns / roof, "ratio", roof, "threads",
        1);
}

/* A check that passed: the largest error it met. */
struct fed_error {
    const char *backend, *name, *metric;
    double max, limit;
};

static inline void feed_error(json_t *records, const char *kernel, const char *profile,
                              struct fed_error e)
{
    char id[96];
    snprintf(id, sizeof id, "%s/f32/%s/%s", kernel, profile, e.name);
    feed(records, "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:{s:s,s:o,s:f,s:s,s:s,s:i}}", "t",
         "conf", "case", id, "kernel", kernel, "dtype", "f32", "profile", profile, "backend",
         e.backend, "family", e.backend, "suite", "accuracy", "status", "pass", "err", "metric",
         e.metric, "max", record_number(e.max), "limit", e.limit, "witness", "position 7",
         "coverage", "sampled", "n", 100);
}

#endif
