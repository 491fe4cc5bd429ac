/* Converts results of the conformance engine and the benchmark to records. */
#ifndef POSENC_EMIT_H
#define POSENC_EMIT_H

#include "bench/bench.h"
#include "bench/instructions.h"
#include "conformance/engine/engine.h"
#include "conformance/models/model.h"
#include "base/records.h"
#include "session.h"

/* Stores the first records of a session: header, env, and unless it probes the machine, kernels, selected backends and
 * models. Returns 0, or -1. */
int emit_preamble(struct session *session);

/* Each returns one record, or NULL without memory, which records_append() reports. */
/* Returns the record of a check. `selection` has further options of its command, such as " --plugin mine.so". */
json_t *emit_check(const struct conf_result *result, const char *selection);
json_t *emit_bench(const struct bench_result *result);
/* Returns the record of a count. `build` is "base" or "head" in posenc pair, else NULL. */
json_t *emit_count(const struct kernel_instructions *count,
                   const struct posenc_backend *backend, const char *build);
/* Returns a record with the members that all results have. `numerics` is the numerics mode, or "given". */
json_t *emit_result(const char *kind, enum posenc_kernel kernel, enum posenc_dtype dtype,
                    const char *numerics, const char *id, const struct posenc_backend *backend);
/* Returns the footer, with the number of records of each kind. Takes the reference to `noise`, which may be NULL. */
json_t *emit_footer(const struct records *records, bool complete, double wall_s, json_t *noise);

#endif
