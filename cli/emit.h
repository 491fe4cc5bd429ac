/*
 * Makes records of the results of the conformance engine and of the benchmark: the one place
 * that knows both results and records.
 */
#ifndef POSENC_EMIT_H
#define POSENC_EMIT_H

#include "bench/bench.h"
#include "conformance/engine/engine.h"
#include "conformance/models/model.h"
#include "base/records.h"
#include "select.h"

struct emit_run {
    const struct cli *cli;
    const char *mode; /* quick, full, exhaustive */
    uint64_t seed;
    const struct vectors *vectors; /* NULL: none loaded */
    json_t *compare;               /* the two builds that are compared, or NULL */
    struct shard shard;
};

/* Each makes one record, or returns NULL if memory runs out; records_append() then fails. */
json_t *emit_header(const struct emit_run *run);
json_t *emit_env(void);
/* Makes the record of a model, with its cases of the dtypes that are selected. */
json_t *emit_model(const struct model *model, const struct selection *selection);
/* Makes the record of a check. `selection` has options that its command needs, such as
 * " --plugin mine.so". */
json_t *emit_conf(const struct conf_result *result, const char *selection);
json_t *emit_bench(const struct bench_result *result);
json_t *emit_overhead(const struct overhead *overhead);
/* Makes a record with the members of every result. The profile of a case that is timed is that of
 * its frequencies, or "given". */
json_t *emit_result(const char *kind, enum posenc_kernel kernel, enum posenc_dtype dtype,
                    const char *profile, const char *id, const struct posenc_backend *backend);
const char *emit_profile(const struct problem *problem);
/* Writes the id of the record of an overhead, by the heads of a call. */
enum { EMIT_ID = 96 };
void emit_overhead_id(enum posenc_kernel kernel, int64_t heads, char id[EMIT_ID]);
/* Counts the records; `noise` is from noise_watch_stop(), is taken, and may be NULL. */
json_t *emit_footer(const struct records *records, bool complete, double wall_s, json_t *noise);

/* Adds header, env, kernels and backends to the list of `records`. Returns 0, or -1. */
int emit_start(struct records *records, const struct emit_run *run,
               const struct posenc_backend *const *backends, size_t n);

#endif
