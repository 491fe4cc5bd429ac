/* Made-up runs on machines of three kinds, as files of records. */
#ifndef POSENC_TESTS_MACHINES_H
#define POSENC_TESTS_MACHINES_H

#include "fed.h"

/* A CPU, and the backends that it can run; the first of them serves by default. */
struct fed_machine {
    const char *key, *name, *virt;
    const char *backends[5];
    const char *cannot; /* one that is known there and cannot run; NULL: none */
};

static const struct fed_machine fed_avx512 = {
    "amd-1a-02-1", "AMD EPYC 9575F", "KVM", { "avx512", "avx2", "scalar", "libm" }, "neon"
};
static const struct fed_machine fed_avx2 = {
    "intel-06-9e-d", "Intel Core i7-9700", NULL, { "avx2", "scalar", "libm" }, "avx512"
};
static const struct fed_machine fed_arm = {
    "arm-41-d4f-r0p1", "Neoverse V2", NULL, { "neon", "scalar", "libm" }, "avx2"
};

/* A file of one run: shard i of n (n 0: all of it) of `cases` checks of alibi on each backend. */
struct fed_file {
    const char *name;
    const struct fed_machine *machine;
    const char *run_id;
    int i, n, cases;
    const char *vectors, *mode, *version, *suite; /* NULL: what the others have */
    const char *ends; /* "whole", "interrupted", "killed"; NULL: whole */
    int differs;      /* the check of that number says something else; 0: none does */
};

static inline const char *fed_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static inline void feed_beginning(json_t *records, const struct fed_file *f,
                                  const char *command)
{
    const struct fed_machine *m = f->machine;
    char env_id[96];
    snprintf(env_id, sizeof env_id, "%s%s%s", m->key, m->virt ? "/" : "", fed_or(m->virt, ""));
    feed(records, "{s:s,s:s,s:s,s:s,s:{s:s},s:{s:s},s:s,s:s,s:{s:s},s:[s,s],s:s}", "t",
         "header", "schema", RECORDS_SCHEMA, "run_id", f->run_id, "started",
         "2026-11-22T10:00:00Z", "tool", "version", fed_or(f->version, "0.1.0"), "vectors",
         "sha256", fed_or(f->vectors, "91c4"), "mode", fed_or(f->mode, "quick"), "command",
         command, "options", "suite", fed_or(f->suite, "memory"), "argv", "posenc", command,
         "seed", "0x0");
    if (f->n > 0)
        json_object_set_new(json_array_get(records, 0), "shard",
                            json_pack("{s:i,s:i}", "i", f->i, "n", f->n));
    feed(records, "{s:s,s:s,s:{s:s,s:s},s:{s:s*},s:{s:i,s:i},s:{s:s},s:{s:f}}", "t", "env",
         "env_id", env_id, "cpu", "key", m->key, "name", m->name, "virt", "kind", m->virt,
         "cpus", "online", 8, "allowed", 8, "build", "cc", "gcc", "timer", "overhead_ns",
         20.0 + f->i);
    feed(records, "{s:s,s:s,s:s}", "t", "kernel", "id", "alibi", "stage", "apply");
    for (int b = 0; m->backends[b]; b++) {
        json_t *serves = json_object();
        if (b == 0)
            json_object_set_new(serves, "alibi", json_string("widest"));
        feed(records, "{s:s,s:s,s:s,s:s,s:b,s:o}", "t", "backend", "id", m->backends[b],
             "family", m->backends[b], "description", "", "available", 1, "serves", serves);
    }
    if (m->cannot)
        feed(records, "{s:s,s:s,s:s,s:s,s:b,s:s,s:{}}", "t", "backend", "id", m->cannot,
             "family", "template", "description", "", "available", 0, "reason", "not this CPU",
             "serves");
}

static inline void feed_end(json_t *records, const char *ends)
{
    if (!ends || strcmp(ends, "killed") != 0)
        feed(records, "{s:s,s:b,s:s}", "t", "footer", "complete",
             !ends || strcmp(ends, "interrupted") != 0, "finished", "2026-11-22T10:01:00Z");
}

/* As posenc verify --shard writes it: each check with its place in the whole run. */
static inline json_t *fed_records(const struct fed_file *f)
{
    json_t *records = json_array();
    feed_beginning(records, f, "verify");
    for (int b = 0, place = 0; f->machine->backends[b]; b++)
        for (int c = 0; c < f->cases; c++, place++) {
            char id[96];
            snprintf(id, sizeof id, "alibi/f32/given/case-%d", c);
            if (f->n > 0 && c * 7 % f->n != f->i)
                continue;
            feed(records, "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "t", "conf", "kernel",
                 "alibi", "dtype", "f32", "profile", "given", "case", id, "backend",
                 f->machine->backends[b], "family", f->machine->backends[b], "suite", "memory",
                 "status", f->differs && c == f->differs ? "fail" : "pass");
            if (f->n > 0)
                json_object_set_new(json_array_get(records, json_array_size(records) - 1),
                                    "place", json_integer(place));
        }
    feed_end(records, f->ends);
    return records;
}

#endif
