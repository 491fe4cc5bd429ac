/*
 * Questions that several renderers ask of records.  Rows point into the records, which must
 * outlive them.
 */
#ifndef POSENC_QUERY_H
#define POSENC_QUERY_H

#include "records.h"

struct backend_row {
    const char *id, *family, *description, *reason; /* reason: why it cannot run here, or "" */
    bool available;
    const json_t *json;
};

struct bench_row {
    const char *id, *kernel, *dtype, *profile, *backend, *family, *footprint, *refused,
        *roof_kind, *roof_variant;
    const char *limit_resource, *limit_kind, *limit_variant; /* what binds; "": unknown */
    double median, min, lo, hi, level, bytes, gbps, roof_gbps, roof_ratio, limit_gbps,
        limit_ratio, vs_libm, vs_autovec, vs_apart, null_pct,
        scale; /* what multiplies a table: 1 of most */
    int threads, rounds;
    const json_t *json;
};

struct conf_row {
    const char *id, *kernel, *dtype, *profile, *backend, *family, *suite, *status, *reason,
        *metric, *witness, *coverage, *repro, *got, *want, *digest;
    double max, limit, checked, misrounded, scale;
    double classes, classes_of, pairs; /* of problems that were drawn; 0 of others */
};

/* The records of one machine.  Of several results of one case and backend, the last counts. */
struct results {
    const json_t *header, *env, *footer; /* of the last run; each may be NULL */
    const json_t
        *noise; /* of the footers: of the last run while which the machine was busy, else of
                            the last; may be NULL */
    int runs, finished; /* headers and complete footers met */
    size_t n_headers;   /* of every run: also of those that a file was merged of */
    const json_t **headers;
    int by_model; /* headers of reports by model */
    size_t n_backends, n_bench, n_conf, n_models, n_overheads, n_kernels, n_cases;
    struct backend_row *backends;
    struct bench_row *bench;
    struct conf_row *conf;
    size_t n_pairs, n_changes, n_counts, n_trends, n_agreements;
    const json_t **models, **overheads;
    const json_t **pairs, **changes, **counts, **trends; /* of what was compared, and counted */
    const json_t **agreements; /* how many results of a kernel's backend were compared */
    const json_t *machine;     /* as a doctor found it; may be NULL */
    const char **kernels;      /* in order of appearance */
    const char **cases;        /* of bench, likewise */
    size_t n_others;           /* checks of other kernels after those, once narrowed */
};

/* Machines (by env_id) in an array of records, at least 1; and the results of one.  -1: no
 * memory. */
size_t results_machines(const json_t *records);
int results_make(const json_t *records, size_t machine, struct results *results);
void results_free(struct results *results);

/* "not the official vectors" where a run was checked with others than its program was built with;
 * else "". */
const char *vectors_note(const struct results *results);
const char *header_vectors_note(const json_t *header);

/* Whether all there is is what a doctor found. */
bool results_of_doctor(const struct results *results);

/* Reads of the record of a row what binds it: its limit, or its roof. */
void find_limit(struct bench_row *row);

/* Makes shares of the roof and speeds relative to libm and autovec the quotients of the numbers that
 * are printed: results_make does.  The medians of the quotients of each round, which records hold
 * as well (roof.ratio, vs_libm, vs_autovec), may differ from them where the machine was disturbed.
 */
void divide_medians(struct results *results);

/* Statuses of conf rows that match; NULL matches all. */
struct counts {
    int pass, fail, crash, skipped, unsupported, weak, total;
};
struct counts count_conf(const struct results *results, const char *kernel, const char *backend,
                         const char *suite);
bool conforms(const struct results *results, const char *kernel, const char *backend,
              bool *checked);

/* Where all runs are reports by model: leaves the kernels that the models use; the checks of others lie
 * behind those of theirs, for these: how many of the others ended how, how many of all, and the names
 * of the others' kernels (with a failure, or all). */
void results_narrow(struct results *results);
struct counts count_others(const struct results *results);
struct counts count_all(const struct results *results);
size_t other_kernels(const struct results *results, bool failed, const char **names,
                     size_t most);

/* What a label says of a type: "" of f32, which nobody needs to be told, and of none. */
const char *narrow_name(const char *dtype);

/* Who serves a kernel when none is named: the backend's id, or "". */
const char *default_backend(const struct results *results, const char *kernel);

/* Rows of a case, fastest first; refused ones last.  Returns how many (at most n). */
size_t rows_of_case(const struct results *results, const char *id,
                    const struct bench_row **rows, size_t n);
/* Median over cases of how far a backend was from its own copy; -1 when nothing was timed. */
double median_null(const struct results *results);

/* The title of a bench case within its models: "Llama 3.1 8B: decode, 1 token"; NULL where none
 * names it. */
const json_t *model_case(const struct results *results, const char *id, const json_t **model);

/* The shape of a case id, its last part without the model's name: "decode". */
const char *short_shape(const char *id, const json_t *model);

/* The command of a header, quoted for a shell where needed. */
void command_of(const json_t *header, char *text, size_t bytes);

#endif
