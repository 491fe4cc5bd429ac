/* More records made up by tests: of checks that failed, and of what compare, counts and doctor say. */
#ifndef POSENC_TESTS_COMPARED_H
#define POSENC_TESTS_COMPARED_H

#include "fed.h"

/* Another machine; what follows is of it. */
static inline void feed_machine(json_t *records, const char *id, bool finished)
{
    feed(records, "{s:s,s:s,s:s,s:s,s:{s:s},s:{s:s},s:[s,s]}", "t", "header", "schema",
         RECORDS_SCHEMA, "mode", "full", "started", "2026-11-21T09:00:00Z", "tool", "version",
         "0.1.0", "vectors", "sha256", "91c4", "argv", "posenc", "report");
    feed(records, "{s:s,s:s,s:{s:s,s:s},s:{s:i,s:i},s:[{s:i,s:s,s:i,s:s}],s:{s:f}}", "t", "env",
         "env_id", id, "cpu", "key", id, "name", "a CPU of paper", "cpus", "online", 4,
         "allowed", 4, "caches", "level", 3, "type", "Unified", "bytes", 33554432, "shared_by",
         "0-1,4", "noise", "load1", 0.3);
    if (finished)
        feed(records, "{s:s,s:b}", "t", "footer", "complete", 1);
}

struct fed_check {
    const char *name, *backend, *status, *reason, *repro;
};

static inline void feed_check(json_t *records, struct fed_check c)
{
    char id[160];
    snprintf(id, sizeof id, "alibi/f32/given/%s", c.name);
    feed(records, "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "t", "conf", "case", id,
         "kernel", "alibi", "dtype", "f32", "profile", "given", "backend", c.backend, "family",
         c.backend, "suite", "vectors", "status", c.status, "reason", c.reason, "repro",
         c.repro);
}

struct fed_pair {
    const char *name, *backend, *verdict;
    double ratio;
    bool confirmed;
};

/* Of a budget of 3 %. */
static inline void feed_pair(json_t *records, struct fed_pair p)
{
    char id[160];
    snprintf(id, sizeof id, "alibi/f32/given/%s", p.name);
    feed(records,
         "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:{s:f,s:s},s:{s:f,s:s},s:f,s:{s:f,s:f,s:f},s:f,s:f,s:s,"
         "s:s,s:b,s:i,s:i,s:f}",
         "t", "pair", "case", id, "kernel", "alibi", "dtype", "f32", "profile", "given",
         "backend", p.backend, "family", p.backend, "base", "ns", 50.0, "code", "aa", "head",
         "ns", 50.0 * p.ratio, "code", "bb", "ratio", p.ratio, "ci", "level", 0.99, "lo",
         p.ratio - 0.01, "hi", p.ratio + 0.02, "floor", 0.01, "budget", 0.03, "verdict",
         p.verdict, "reason", "3 of 3 launches", "confirmed", p.confirmed, "launches", 3,
         "rounds", 31, "null_ratio", 1.001);
}

/* worse: 1, 0, or -1 of what only moved. */
static inline void feed_change(json_t *records, const char *name, double base, double head,
                               int worse)
{
    char id[160];
    snprintf(id, sizeof id, "alibi/f32/given/%s", name);
    feed(records,
         "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:{s:o},s:{s:o},s:s,s:f,s:s,s:i,s:i,s:s}",
         "t", "change", "case", id, "kernel", "alibi", "dtype", "f32", "profile", "given",
         "backend", "avx2", "family", "template", "suite", "accuracy", "what", "error", "worse",
         worse < 0 ? json_null() : json_boolean(worse), "base", "max", record_number(base),
         "head", "max", record_number(head), "metric", "ulp", "limit", 1.0, "witness",
         "position 7", "moved", 3, "of", 64, "problem", "alibi heads=8");
}

/* build: "base", "head", or NULL where there is one. */
static inline void feed_count(json_t *records, const char *name, const char *build,
                              int instructions)
{
    char id[160];
    snprintf(id, sizeof id, "alibi/f32/given/%s", name);
    json_t *count = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:s}", "t", "count",
                              "case", id, "kernel", "alibi", "dtype", "f32", "profile", "given",
                              "backend", "avx2", "family", "template", "instructions",
                              instructions, "loads", 7, "elements", 1000, "by", "single step");
    if (build)
        json_object_set_new(count, "build", json_string(build));
    json_array_append_new(records, count);
}

#endif
