/*
 * Converts results to records of schema posenc.results/2 (base/records.h; see session.h). The member "t" is the kind of
 * a record. The record of a check begins with
 *
 *     {"t":"check","kernel":"alibi","dtype":"f32","numerics":"given","stage":"apply","case":"alibi/f32/given/l2", ...
 */
#define _POSIX_C_SOURCE 200809L
#include "session.h"
#include "conformance/engine/judge.h"
#include "plugins.h"
#include "problem.h"
#include "base/machine/machine.h"
#include "conformance/readers/vectors.h"
#include "base/machine/env.h"
#include "commit.h"
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Writes the time in UTC. */
static void print_time(char text[32])
{
    time_t t = time(NULL);
    struct tm utc;
    gmtime_r(&t, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* Writes an id for this run, from the time and the process. */
static void print_run_id(char id[33])
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    const uint64_t ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
                   process = (uint64_t)getpid();
    snprintf(id, 33, "%016llx%016llx", (unsigned long long)rng_u64(ns, process),
             (unsigned long long)rng_u64(process, ns));
}

/* Returns {version, commit, dirty} of this build; the last two only if known. */
static json_t *build_record(void)
{
    static const char mark[] = "-dirty"; /* as git describe(1) writes it */
    char commit[96] = POSENC_COMMIT;
    const size_t n = strlen(commit);
    const bool dirty = n > strlen(mark) && strcmp(commit + n - strlen(mark), mark) == 0;
    if (dirty)
        commit[n - strlen(mark)] = '\0';
    return json_pack("{s:s,s:s*,s:o*}", "version", posenc_version(), "commit",
                     n > 0 ? commit : NULL, "dirty", n > 0 ? json_boolean(dirty) : NULL);
}

/* Returns {sha256, official} of the golden vectors; official: they are those of this version. */
static json_t *vectors_record(const struct vectors *vectors)
{
    return vectors->n > 0 ? json_pack("{s:s,s:b}", "sha256", vectors->sha256, "official",
                                      vectors->official)
                          : json_pack("{s:n}", "sha256");
}

static const char *mode_of(const struct cli *cli)
{
    return cli->exhaustive ? "exhaustive" : cli->full ? "full" : "quick";
}

static json_t *emit_header(const struct session *session)
{
    const struct cli *cli = session->cli;
    const struct shard *shard = &session->shard;
    char id[33], started[32], seed[24];
    print_run_id(id);
    print_time(started);
    snprintf(seed, sizeof seed, "0x%llx",
             cli->seed != INT64_MIN ? (unsigned long long)cli->seed : 0);
    json_t *argv = json_array();
    for (int i = 0; i < cli->argc; i++)
        json_array_append_new(argv, record_string(i == 0 ? "posenc" : cli->argv[i]));
    return json_pack(
        "{s:s,s:s,s:s,s:s,s:o,s:o,s:s,s:s,s:o,s:o,s:s,s:O*,s:o*}", "t", "header", "schema",
        RECORDS_SCHEMA, "run_id", id, "started", started, "tool", build_record(), "vectors",
        vectors_record(&session->vectors), "mode", mode_of(cli), "command", cli->command,
        "options", cli_options(cli), "argv", argv, "seed", seed, "compare", session->compare,
        "shard", shard->n > 0 ? json_pack("{s:i,s:i}", "i", shard->i, "n", shard->n) : NULL);
}

static json_t *emit_env(void)
{
    struct env_library library = { posenc_version(), posenc_cpu_key(), posenc_cpu_features(),
                                   machine_emulator(), posenc_build_id() };
    return env_record(&library);
}

static json_t *emit_backend(const struct posenc_backend *backend)
{
    const char *unavailable_reason = posenc_backend_unavailable_reason(backend);
    const bool has_lanes = backend->lanes && !unavailable_reason;
    json_t *dtypes = json_array(), *kernels = json_array(), *default_for = json_object();
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        json_array_append_new(dtypes, json_string(dtype_names[dtype]));
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const char *name = posenc_kernel_name(kernel);
        const struct posenc_selection selection =
            posenc_selection_of(kernel, POSENC_DTYPE_F32, 0);
        if (posenc_backend_provides(backend, kernel))
            json_array_append_new(kernels, json_string(name));
        if (selection.backend == backend)
            json_object_set_new(default_for, name, json_string(selection.reason));
    }
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:b,s:s?,s:b,s:i,s:o,s:o}", "t", "backend", "id",
                     backend->name, "family", backend->family, "description",
                     backend->description, "required_features",
                     record_words(backend->required_features), "dtypes", dtypes, "available",
                     !unavailable_reason, "unavailable_reason", unavailable_reason, "fma",
                     backend->fused, "vector_width", has_lanes ? plugins_lanes(backend) : 0,
                     "kernels", kernels, "default_for", default_for);
}

/* Returns the record of a kernel, with the encodings that use it. */
static json_t *emit_kernel(enum posenc_kernel kernel)
{
    json_t *encodings = json_array();
    const char *name = posenc_kernel_name(kernel), *list = topic_summary("kernel", name);
    char encoding[64];
    while (list && *list != '\0') {
        list = topic_next_name(list, encoding, sizeof encoding);
        json_array_append_new(encodings, json_string(encoding));
    }
    return json_pack("{s:s,s:s,s:s,s:s,s:o}", "t", "kernel", "id", name, "stage",
                     kernel_stage(kernel), "summary", posenc_kernel_summary(kernel),
                     "encodings", encodings);
}

/* Returns the member "cases" of a model for a call in a dtype. The label of a 16-bit type names it. */
static json_t *model_case_record(const struct model_case *c, enum posenc_dtype dtype)
{
    const struct bench_case one = case_with_dtype(c, dtype);
    const bool is_16_bit = dtype != POSENC_DTYPE_F32;
    char label[80];
    snprintf(label, sizeof label, "%s%s%s", c->label, is_16_bit ? ", " : "",
             is_16_bit ? dtype_names[dtype] : "");
    json_t *record = json_pack("{s:s,s:s,s:s}", "case", one.id, "label", label, "kernel",
                               posenc_kernel_name(one.problem.kernel));
    if (*c->step) {
        json_object_set_new(record, "step", json_string(c->step));
        json_object_set_new(record, "calls", json_integer((json_int_t)c->times));
    }
    return record;
}

static json_t *emit_model(const struct model *model, const struct selection *selection)
{
    json_t *cases = json_array();
    char storage[128], notes[sizeof storage + MODEL_NOTES + 2];
    models_describe_dtype(model, selection, storage);
    snprintf(notes, sizeof notes, "%s%s%s", storage, *storage && *model->notes ? ".  " : "",
             model->notes);
    for (size_t i = 0; i < model->n_cases; i++)
        for (int dtype = 0; dtype < N_DTYPES; dtype++)
            if (selection_times_dtype(selection, model, (enum posenc_dtype)dtype))
                json_array_append_new(
                    cases, model_case_record(&model->cases[i], (enum posenc_dtype)dtype));
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:o}", "t", "model", "name",
                     model->name, "title", model->title, "source", model->source, "checked",
                     model->checked, "notes", notes, "encoding", model->encoding,
                     "trained_numerics", model->trained_numerics, "max_position_embeddings",
                     (json_int_t)model->max_position_embeddings, "cases", cases);
}

json_t *emit_result(const char *kind, enum posenc_kernel kernel, enum posenc_dtype dtype,
                    const char *numerics, const char *id, const struct posenc_backend *backend)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "t", kind, "kernel",
                     posenc_kernel_name(kernel), "dtype", dtype_names[dtype], "numerics",
                     numerics, "stage", kernel_stage(kernel), "case", id, "backend",
                     backend ? backend->name : "none", "family",
                     backend ? backend->family : "none");
}

/* ---- Members of results. json_pack() omits one that is NULL, with the format o* ---- */

/* Returns a JSON string, or NULL for an empty text. */
static json_t *text_member(const char *text) { return text[0] ? record_string(text) : NULL; }

/* Returns the factor of a table, or NULL if it is 1. Errors in ulp are those of the product. */
static json_t *scale_member(double scale)
{
    return scale != 0.0 && scale != 1.0 ? record_number(scale) : NULL;
}

static json_t *count_member(uint64_t count) { return json_integer((json_int_t)count); }

/* Returns true if the result describes a worker and no case, so that --case cannot select it. */
static bool is_of_process(const char *id)
{
    const char *name = strrchr(id, '/');
    return name && (strcmp(name, "/ended") == 0 || strcmp(name, "/loaded") == 0);
}

/* Returns the command that repeats a check: with its problem, or its case for a property, which has several calls. */
static json_t *rerun_command(const struct conf_result *r, const char *selection)
{
    const char *backend = r->backend ? r->backend->name : "none";
    const bool has_case = !is_of_process(r->id);
    char text[2048];
    if (r->problem[0] && strcmp(r->suite, "properties") != 0)
        snprintf(text, sizeof text, "posenc verify%s --backend %s --problem '%s'", selection,
                 backend, r->problem);
    else
        snprintf(text, sizeof text, "posenc verify --full%s --backend %s --kernel %s%s%s",
                 selection, backend, posenc_kernel_name(r->kernel), has_case ? " --case " : "",
                 has_case ? r->id : "");
    return json_string(text);
}

static json_t *classes_member(const struct conf_result *r)
{
    if (r->classes.total == 0)
        return NULL;
    return json_pack("{s:i,s:i,s:I}", "reached", r->classes.reached, "total", r->classes.total,
                     "pairs", (json_int_t)r->classes.pairs);
}

static json_t *error_member(const struct conf_result *r)
{
    if (!r->metric)
        return NULL;
    return json_pack("{s:s,s:o,s:o,s:s,s:o,s:o,s:s,s:I,s:I}", "metric", r->metric, "max",
                     record_number(r->max), "limit", record_number(r->limit), "worst_at",
                     r->worst_at, "got", record_hex((double)r->got), "want",
                     record_hex(r->want), "coverage", r->coverage ? r->coverage : "sampled",
                     "checked", (json_int_t)r->checked, "misrounded",
                     (json_int_t)r->misrounded);
}

json_t *emit_check(const struct conf_result *r, const char *selection)
{
    const bool is_bad = r->status == CONF_FAIL || r->status == CONF_CRASH;
    json_t *members =
        json_pack("{s:s,s:s,s:o*,s:o*,s:o*,s:o*,s:o*,s:o*,s:o*}", "suite", r->suite, "status",
                  conf_status_name[r->status], "reason", text_member(r->reason), "mistake",
                  text_member(r->mistake), "problem", text_member(r->problem), "scale",
                  scale_member(r->scale), "classes", classes_member(r), "error",
                  error_member(r), "command", is_bad ? rerun_command(r, selection) : NULL);
    return record_merge(emit_result("check", r->kernel, case_dtype(r->id),
                                    r->numerics ? r->numerics : "given", r->id, r->backend),
                        members);
}

/* Returns the footprint of a case. For posenc tune, `most` is the largest footprint of the same level. */
static json_t *footprint_member(const struct bench_result *r)
{
    const struct bench_case *c = r->bench_case;
    const uint64_t largest = c->max_bytes > r->footprint ? c->max_bytes : r->footprint;
    return json_pack("{s:s?,s:I,s:o*}", "name", c->level, "bytes",
                     (json_int_t)problem_working_set(&c->problem), "most",
                     c->max_bytes && largest != UINT64_MAX ? count_member(largest) : NULL);
}

/* Returns the members that posenc tune reads, or none for other runs. */
static json_t *tuning_members(const struct bench_result *r)
{
    const struct problem *p = &r->bench_case->problem;
    if (!r->bench_case->max_bytes)
        return json_object();
    json_t *samples = r->reason ? NULL : json_array();
    for (int i = 0; samples && i < r->rounds; i++)
        json_array_append_new(samples, record_number(r->sample_ns[i]));
    const struct posenc_selection chosen =
        posenc_selection_of(p->kernel, p->dtype, r->footprint);
    return json_pack("{s:b,s:o*}", "chosen", chosen.backend == r->backend, "samples", samples);
}

/* Returns a bandwidth bound and the share of it that was reached; NULL without a kind. */
static json_t *bound_member(const char *resource, const char *kind, const char *variant,
                            double gbps, double share)
{
    return kind ? json_pack("{s:s*,s:s,s:s?,s:o,s:o}", "resource", resource, "kind", kind,
                            "variant", variant, "gbps", record_number(gbps), "share",
                            record_number(share))
                : NULL;
}

static json_t *speedup_member(double speedup)
{
    return speedup > 0.0 ? record_number(speedup) : NULL;
}

json_t *emit_bench(const struct bench_result *r)
{
    const struct bench_case *c = r->bench_case;
    const bool has_table = kernel_has_freqs(c->problem.kernel);
    json_t *record = emit_result("bench", c->problem.kernel, c->problem.dtype,
                                 problem_numerics_name(&c->problem), c->id, r->backend);
    record = record_merge(record, json_pack("{s:o*,s:o}", "scale",
                                            has_table ? scale_member(c->problem.scale) : NULL,
                                            "footprint", footprint_member(r)));
    record = record_merge(record, tuning_members(r));
    if (r->reason)
        return record_merge(record, json_pack("{s:o}", "rejected", record_string(r->reason)));
    return record_merge(
        record,
        json_pack("{s:i,s:i,s:o,s:o,s:{s:o,s:o,s:o},s:I,s:o,s:o*,s:o*,s:o*,s:o*,s:o}",
                  "threads", r->threads, "rounds", r->rounds, "median_ns",
                  record_number(r->median_ns), "min_ns", record_number(r->min_ns), "ci",
                  "level", record_number(r->ci_level), "lo", record_number(r->ci_low), "hi",
                  record_number(r->ci_high), "bytes", (json_int_t)r->bytes, "gbps",
                  record_number(r->gbps), "roofline",
                  bound_member(NULL, r->roofline_kind, r->roofline_variant, r->roofline_gbps,
                               r->roofline_ratio),
                  "bound",
                  bound_member(r->limit_resource, r->limit_kind, r->limit_variant,
                               r->limit_gbps, r->limit_ratio),
                  "speedup_libm", speedup_member(r->vs_libm), "speedup_autovec",
                  speedup_member(r->vs_autovec), "control_pct", record_number(r->control_pct)));
}

json_t *emit_count(const struct kernel_instructions *count,
                   const struct posenc_backend *backend, const char *build)
{
    const struct problem *p = &count->problem;
    char id[96];
    problem_id(p, "count", id, sizeof id);
    json_t *record = record_merge(
        emit_result("count", p->kernel, p->dtype, problem_numerics_name(p), id, backend),
        json_pack("{s:s*,s:o*}", "build", build, "vector_width",
                  backend->lanes ? json_integer(plugins_lanes(backend)) : NULL));
    if (*count->reason)
        return record_merge(record, json_pack("{s:s}", "rejected", count->reason));
    return record_merge(record,
                        json_pack("{s:s,s:o,s:o,s:o,s:o}", "by", instructions_method(),
                                  "elements", count_member((uint64_t)count->elements[0]),
                                  "instructions", count_member(count->instructions[0]),
                                  "per_element", record_number(count->per_element), "per_call",
                                  record_number(count->per_call)));
}

json_t *emit_footer(const struct records *records, bool complete, double wall_s, json_t *noise)
{
    json_t *counts = json_object();
    size_t i;
    json_t *record;
    json_array_foreach(records->list, i, record)
    {
        const char *kind = record_text(record, "t"), *status = record_text(record, "status");
        const char *name = strcmp(kind, "check") == 0 ? status : kind;
        json_int_t n = json_integer_value(json_object_get(counts, name));
        json_object_set_new(counts, name, json_integer(n + 1));
    }
    char finished[32];
    print_time(finished);
    return json_pack("{s:s,s:b,s:o,s:s,s:o*,s:o*}", "t", "footer", "complete", complete,
                     "counts", counts, "finished", finished, "wall_s",
                     noise ? record_number(wall_s) : NULL, "noise", noise);
}

void emit_preamble(struct session *session)
{
    struct records *records = &session->records;
    records_append(records, emit_header(session));
    records_append(records, emit_env());
    for (int k = 0; k < POSENC_KERNEL_COUNT && !session->cli->probe; k++)
        records_append(records, emit_kernel((enum posenc_kernel)k));
    for (size_t i = 0; i < session->selected.n; i++)
        records_append(records, emit_backend(session->selected.backends[i]));
    for (size_t i = 0; i < session->n_models; i++)
        records_append(records, emit_model(&session->models[i], &session->selected));
}
