/*
 * JSON as Google Benchmark writes it, for its compare.py and for whatever else reads that.  An entry a
 * timing, with the median as its time: records hold no single samples, so there are no repetitions, and
 * compare.py makes no test of significance.  Of a pair there are two entries, NAME/base and NAME/head:
 * compare.py filters FILE /base /head.
 *
 * What was not timed has no entry, since readers take one without a time for a time of 0.
 */
#include "reports/exported.h"
#include "reports/formats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "0-3,8" -> 5 */
static int count_cpus(const char *list)
{
    int n = 0;
    while (*list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            return n;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        n += last >= first && last - first < 65536 ? (int)(last - first) + 1 : 0;
        list = end + (*end == ',');
    }
    return n;
}

/* A count that a file may say anything of. */
static json_int_t whole(const json_t *record, const char *path)
{
    double value = record_value(record, path, 0.0);
    return value >= 0.0 && value <= 9e15 ? (json_int_t)value : 0;
}

static json_t *caches_of(const json_t *env)
{
    json_t *list = json_array();
    const json_t *caches = json_object_get(env, "caches");
    for (size_t i = 0; i < json_array_size(caches); i++) {
        const json_t *c = json_array_get(caches, i);
        json_array_append_new(
            list, json_pack("{s:s,s:I,s:I,s:i}", "type", record_text(c, "type"), "level",
                            whole(c, "level"), "size", whole(c, "bytes"), "num_sharing",
                            count_cpus(record_text(c, "shared_by"))));
    }
    return list;
}

/* Of the first machine; Google's members, then ours, which are texts. */
static json_t *context_of(const struct results *r, size_t machines)
{
    const json_t *env = r->env;
    const char *governor = record_text(env, "freq.governor");
    json_t *load = json_array();
    if (record_value(env, "noise.load1", -1.0) >= 0.0)
        json_array_append_new(load, json_real(record_value(env, "noise.load1", 0.0)));
    bool scaling = *governor && strcmp(governor, "performance") != 0 &&
                   strcmp(governor, "not exposed") != 0;
    return json_pack(
        "{s:s,s:s,s:s,s:I,s:i,s:b,s:o,s:o,s:s,s:s,s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s}",
        "executable", "posenc", "date", record_text(r->header, "started"), "host_name",
        record_text(env, "env_id"), "num_cpus", whole(env, "cpus.online"), "mhz_per_cpu",
        0, /* not known */
        "cpu_scaling_enabled", scaling, "caches", caches_of(env), "load_avg", load,
        "library_version", record_text(r->header, "tool.version"), "library_build_type",
        strcmp(record_text(env, "build.type"), "debug") == 0 ? "debug" : "release",
        "json_schema_version", 1, "cpu", record_text(env, "cpu.name"), "cpu_key",
        record_text(env, "cpu.key"), "mode", record_text(r->header, "mode"), "finished",
        r->finished < r->runs ? "no" : "yes", "cpu_time",
        "not measured: real_time stands in its place", "machines",
        machines > 1 ? "several: names begin with theirs, this is of the first" : "1",
        "vectors",
        *vectors_note(r) ? vectors_note(r) : record_text(r->header, "vectors.sha256"));
}

struct gbench {
    struct exported list;
    const struct results *results;
    const char *machine;
    int family, instance;
    char last[EXPORTED_NAME]; /* the case of the entry before: its family */
};

static json_t *entry_of(struct gbench *g, const char *name, const char *id, int threads,
                        json_int_t rounds, double ns)
{
    if (strcmp(g->last, id) != 0) {
        g->family += *g->last != 0;
        g->instance = 0;
    }
    snprintf(g->last, sizeof g->last, "%.400s", id);
    return json_pack("{s:s,s:i,s:i,s:s,s:s,s:i,s:i,s:i,s:I,s:f,s:f,s:s}", "name", name,
                     "family_index", g->family, "per_family_instance_index", g->instance++,
                     "run_name", name, "run_type", "iteration", "repetitions", 1,
                     "repetition_index", 0, "threads", threads, "iterations", rounds,
                     "real_time", ns, "cpu_time", ns, "time_unit", "ns");
}

static void add_timing(struct gbench *g, const struct bench_row *b)
{
    char name[EXPORTED_NAME], label[120];
    if (*b->refused || !isfinite(b->median))
        return;
    exported_name(name, g->machine, b->id, b->backend, b->threads, "");
    snprintf(label, sizeof label, "%.40s, median of %d rounds", b->backend, b->rounds);
    json_t *entry = entry_of(g, name, b->id, b->threads, b->rounds, b->median);
    if (entry) {
        const struct {
            const char *name;
            double value;
        } counters[] = {
            { "bytes_per_second", b->gbps * 1e9 },
            { "min_ns", b->min },
            { "ci_low_ns", b->lo },
            { "ci_high_ns", b->hi },
            { "ci_level", b->level },
            { "roof_share", record_value(b->json, "roof.ratio", 0.0) },
            { "null_pct", b->null_pct },
            { "instructions_per_element", exported_count(g->results, b) },
        };
        for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
            if (counters[i].value > 0.0)
                exported_number(entry, counters[i].name, counters[i].value);
        json_object_set_new(entry, "label", json_string(label));
    }
    exported_entry(&g->list, NULL, entry);
}

static void add_side(struct gbench *g, const json_t *pair, const char *build)
{
    char name[EXPORTED_NAME], side[EXPORTED_NAME + 8], path[16];
    const char *id = record_text(pair, "case");
    snprintf(path, sizeof path, "%s.ns", build);
    double ns = record_value(pair, path, 0.0);
    if (!(ns > 0.0) || !isfinite(ns))
        return;
    exported_name(name, g->machine, id, record_text(pair, "backend"), 1, "");
    snprintf(side, sizeof side, "%s/%s", name, build);
    json_t *entry = entry_of(g, side, id, 1, whole(pair, "rounds"), ns);
    if (entry)
        json_object_set_new(entry, "label", json_string(record_text(pair, "verdict")));
    exported_entry(&g->list, NULL, entry);
}

static int add_machine(struct gbench *g, const json_t *records, size_t machine, size_t machines)
{
    struct results r;
    if (results_make(records, machine, &r))
        return -1;
    if (machine == 0) {
        json_t *context = context_of(&r, machines);
        struct exported begin = { .out = g->list.out };
        exported_entry(&begin, "context", context);
        fputs(",\n\"benchmarks\":[", g->list.out);
        g->list.failed |= begin.failed;
    }
    g->results = &r;
    g->machine = exported_machine(records, &r);
    for (size_t i = 0; i < r.n_bench; i++)
        add_timing(g, &r.bench[i]);
    for (size_t i = 0; i < r.n_pairs; i++) {
        add_side(g, r.pairs[i], "base");
        add_side(g, r.pairs[i], "head");
    }
    results_free(&r);
    return g->list.failed ? -1 : 0;
}

int format_gbench(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct gbench g = { .list = { .out = out } };
    size_t machines = results_machines(records);
    int status = 0;
    fputc('{', out);
    for (size_t m = 0; status == 0 && m < machines; m++)
        status = add_machine(&g, records, m, machines);
    fputs("\n]\n}\n", out);
    return status;
}
