/*
 * Makes rows of records, and answers what the sections of a report ask of them (see query.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "query.h"
#include "estimate.h"
#include "noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool kind_is(const json_t *record, const char *kind)
{
    return strcmp(record_text(record, "t"), kind) == 0;
}

/* The env that rules a record: the last one before it of its run, else the next one. */
static const json_t *env_at(const json_t *records, size_t at)
{
    for (size_t i = at + 1; i-- > 0;) {
        const json_t *record = json_array_get(records, i);
        if (kind_is(record, "env"))
            return record;
        if (kind_is(record, "header")) /* what comes before is another run's */
            break;
    }
    for (size_t i = at; i < json_array_size(records); i++)
        if (kind_is(json_array_get(records, i), "env"))
            return json_array_get(records, i);
    return NULL;
}

/* The ids of the machines in order of appearance, malloc'ed; NULL: no memory. */
static const char **machine_ids(const json_t *records, size_t *machines)
{
    const size_t n = json_array_size(records);
    const char **ids = calloc(n + 1, sizeof *ids);
    *machines = 0;
    for (size_t i = 0; ids && i < n; i++) {
        const json_t *record = json_array_get(records, i);
        size_t k = 0;
        if (!kind_is(record, "env"))
            continue;
        while (k < *machines && strcmp(ids[k], record_text(record, "env_id")) != 0)
            k++;
        ids[k] = record_text(record, "env_id");
        *machines += k == *machines;
    }
    return ids;
}

/* The id of machine number `machine`, NULL past the end.  False: no memory. */
static bool machine_at(const json_t *records, size_t machine, const char **id)
{
    size_t n;
    const char **ids = machine_ids(records, &n);
    *id = ids && machine < n ? ids[machine] : NULL;
    free(ids);
    return ids != NULL;
}

size_t results_machines(const json_t *records)
{
    size_t n;
    free(machine_ids(records, &n));
    return n ? n : 1;
}

static void add_backend(struct results *r, const json_t *j)
{
    struct backend_row row = {
        .id = record_text(j, "id"),
        .family = record_text(j, "family"),
        .description = record_text(j, "description"),
        .reason = record_text(j, "reason"),
        .available = json_is_true(json_object_get(j, "available")),
        .json = j,
    };
    for (size_t i = 0; i < r->n_backends; i++)
        if (strcmp(r->backends[i].id, row.id) == 0) {
            r->backends[i] = row;
            return;
        }
    r->backends[r->n_backends++] = row;
}

/* A backend that only its results name. */
static void need_backend(struct results *r, const char *id, const char *family)
{
    for (size_t i = 0; i < r->n_backends; i++)
        if (strcmp(r->backends[i].id, id) == 0)
            return;
    r->backends[r->n_backends++] = (struct backend_row){ id, family, "", "", true, NULL };
}

static void need_name(const char **names, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(names[i], name) == 0)
            return;
    names[(*n)++] = name;
}

/* A count that a file may say anything of. */
static int count_of(const json_t *j, const char *path, int otherwise)
{
    double value = record_value(j, path, otherwise);
    return value >= 0.0 && value <= 1e9 ? (int)value : otherwise;
}

/* Results of others may not say it. */
static const char *dtype_of(const json_t *j)
{
    const char *dtype = record_text(j, "dtype");
    return *dtype ? dtype : "f32";
}

static void add_bench(struct results *r, const json_t *j)
{
    struct bench_row row = {
        .id = record_text(j, "case"),
        .kernel = record_text(j, "kernel"),
        .dtype = dtype_of(j),
        .profile = record_text(j, "profile"),
        .backend = record_text(j, "backend"),
        .family = record_text(j, "family"),
        .footprint = record_text(j, "footprint.name"),
        .refused = record_text(j, "refused"),
        .roof_kind = record_text(j, "roof.kind"),
        .roof_variant = record_text(j, "roof.variant"),
        .median = record_value(j, "median_ns", 0.0),
        .min = record_value(j, "min_ns", 0.0),
        .lo = record_value(j, "ci.lo", 0.0),
        .hi = record_value(j, "ci.hi", 0.0),
        .level = record_value(j, "ci.level", 0.0),
        .bytes = record_value(j, "footprint.bytes", record_value(j, "bytes", 0.0)),
        .gbps = record_value(j, "gbps", 0.0),
        .roof_gbps = record_value(j, "roof.gbps", 0.0),
        .roof_ratio = record_value(j, "roof.ratio", 0.0),
        .vs_libm = record_value(j, "vs_libm", 0.0),
        .vs_autovec = record_value(j, "vs_autovec", 0.0),
        .vs_apart = record_value(j, "vs_apart", 0.0),
        .scale = record_value(j, "scale", 1.0),
        .null_pct = fabs(record_value(j, "null_pct", 0.0)),
        .threads = count_of(j, "threads", 1),
        .rounds = count_of(j, "rounds", 0),
        .json = j,
    };
    find_limit(&row);
    if (!*row.refused && !(row.median > 0.0))
        row.refused = "no time recorded";
    need_backend(r, row.backend, row.family);
    need_name(r->kernels, &r->n_kernels, row.kernel);
    need_name(r->cases, &r->n_cases, row.id);
    for (size_t i = 0; i < r->n_bench; i++)
        if (strcmp(r->bench[i].id, row.id) == 0 &&
            strcmp(r->bench[i].backend, row.backend) == 0 &&
            r->bench[i].threads == row.threads) {
            r->bench[i] = row;
            return;
        }
    r->bench[r->n_bench++] = row;
}

static void add_conf(struct results *r, const json_t *j)
{
    struct conf_row row = {
        .id = record_text(j, "case"),
        .kernel = record_text(j, "kernel"),
        .dtype = dtype_of(j),
        .profile = record_text(j, "profile"),
        .backend = record_text(j, "backend"),
        .family = record_text(j, "family"),
        .suite = record_text(j, "suite"),
        .status = record_text(j, "status"),
        .reason = record_text(j, "reason"),
        .repro = record_text(j, "repro"),
        .metric = record_text(j, "err.metric"),
        .witness = record_text(j, "err.witness"),
        .coverage = record_text(j, "err.coverage"),
        .got = record_text(j, "err.got"),
        .want = record_text(j, "err.want"),
        .digest = record_text(j, "digest"),
        .max = record_value(j, "err.max", 0.0),
        .limit = record_value(j, "err.limit", 0.0),
        .checked = record_value(j, "err.n", 0.0),
        .misrounded = record_value(j, "err.misrounded", 0.0),
        .scale = record_value(j, "scale", 1.0),
        .classes = record_value(j, "classes.met", 0.0),
        .classes_of = record_value(j, "classes.of", 0.0),
        .pairs = record_value(j, "classes.pairs", 0.0),
    };
    need_backend(r, row.backend, row.family);
    need_name(r->kernels, &r->n_kernels, row.kernel);
    r->conf[r->n_conf++] = row;
}

static int conf_order(const void *a, const void *b)
{
    const struct conf_row *x = a, *y = b;
    int d = strcmp(x->id, y->id);
    d = d ? d : strcmp(x->backend, y->backend);
    return d ? d : strcmp(x->suite, y->suite);
}

/* Of equal (case, backend, suite) the last one counts; the order of the others stays. */
struct place {
    struct conf_row row;
    size_t at;
};

static int place_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int d = conf_order(&x->row, &y->row);
    return d ? d : (x->at > y->at) - (x->at < y->at);
}

static int keep_last_conf(struct results *r)
{
    struct place *sorted = malloc((r->n_conf + 1) * sizeof *sorted);
    bool *drop = calloc(r->n_conf + 1, sizeof *drop);
    if (!sorted || !drop) {
        free(sorted);
        free(drop);
        return -1;
    }
    for (size_t i = 0; i < r->n_conf; i++)
        sorted[i] = (struct place){ r->conf[i], i };
    qsort(sorted, r->n_conf, sizeof *sorted, place_order);
    for (size_t i = 0; i + 1 < r->n_conf; i++)
        drop[sorted[i].at] = conf_order(&sorted[i].row, &sorted[i + 1].row) == 0;
    size_t kept = 0;
    for (size_t i = 0; i < r->n_conf; i++)
        if (!drop[i])
            r->conf[kept++] = r->conf[i];
    r->n_conf = kept;
    free(sorted);
    free(drop);
    return 0;
}

static void add_footer(struct results *r, const json_t *j)
{
    const json_t *noise = json_object_get(j, "noise");
    char words[96];
    if (noise && (!r->noise || noise_of_others(r->env, noise, words, sizeof words) ||
                  !noise_of_others(r->env, r->noise, words, sizeof words)))
        r->noise = noise;
}

/* Whether these members, a NULL behind them, are equal in both. */
static bool alike(const json_t *a, const json_t *b, const char *const *members)
{
    for (; *members; members++)
        if (strcmp(record_text(a, *members), record_text(b, *members)) != 0)
            return false;
    return true;
}

/* Of records that these members tell apart, the last of each. */
static void keep_last(const json_t **list, size_t *n, const json_t *record,
                      const char *const *members)
{
    size_t k = 0;
    while (k < *n && !alike(list[k], record, members))
        k++;
    list[k] = record;
    *n += k == *n;
}

/* A change, and where it stood. */
struct standing_change {
    const json_t *record;
    size_t at;
};

static int change_order(const void *a, const void *b)
{
    static const char *const members[] = { "case", "backend", "what", "suite" };
    const struct standing_change *x = a, *y = b;
    int d = 0;
    for (int i = 0; i < 4 && d == 0; i++)
        d = strcmp(record_text(x->record, members[i]), record_text(y->record, members[i]));
    return d;
}

static int change_then_place(const void *a, const void *b)
{
    const struct standing_change *x = a, *y = b;
    const int d = change_order(a, b);
    return d ? d : (x->at > y->at) - (x->at < y->at);
}

/* Of equal changes the last one counts; the order of the others stays.  There may be as many as checks. */
static int keep_last_changes(struct results *r)
{
    struct standing_change *sorted = calloc(r->n_changes + 1, sizeof *sorted);
    size_t kept = 0;
    if (!sorted)
        return -1;
    for (size_t i = 0; i < r->n_changes; i++)
        sorted[i] = (struct standing_change){ r->changes[i], i };
    qsort(sorted, r->n_changes, sizeof *sorted, change_then_place);
    for (size_t i = 0; i + 1 < r->n_changes; i++)
        if (change_order(&sorted[i], &sorted[i + 1]) == 0)
            r->changes[sorted[i].at] = NULL;
    for (size_t i = 0; i < r->n_changes; i++)
        if (r->changes[i])
            r->changes[kept++] = r->changes[i];
    r->n_changes = kept;
    free(sorted);
    return 0;
}

/* Room for n of each kind. */
static bool make_room(struct results *r, size_t n)
{
    r->backends = calloc(n, sizeof *r->backends);
    r->bench = calloc(n, sizeof *r->bench);
    r->conf = calloc(n, sizeof *r->conf);
    r->models = calloc(n, sizeof *r->models);
    r->overheads = calloc(n, sizeof *r->overheads);
    r->pairs = calloc(n, sizeof *r->pairs);
    r->changes = calloc(n, sizeof *r->changes);
    r->counts = calloc(n, sizeof *r->counts);
    r->trends = calloc(n, sizeof *r->trends);
    r->agreements = calloc(n, sizeof *r->agreements);
    r->headers = calloc(n, sizeof *r->headers);
    r->kernels = calloc(n, sizeof *r->kernels);
    r->cases = calloc(n, sizeof *r->cases);
    return r->backends && r->bench && r->conf && r->models && r->overheads && r->pairs &&
           r->changes && r->counts && r->trends && r->agreements && r->headers && r->kernels &&
           r->cases;
}

/* Of counts of a case on a backend with as many lanes, and of one of two builds, the last. */
static void add_count(struct results *r, const json_t *record)
{
    static const char *const members[] = { "case", "backend", "build", NULL };
    const double lanes = record_value(record, "lanes", 0.0);
    size_t k = 0;
    while (k < r->n_counts && (!alike(r->counts[k], record, members) ||
                               record_value(r->counts[k], "lanes", 0.0) != lanes))
        k++;
    r->counts[k] = record;
    r->n_counts += k == r->n_counts;
}

/* What only its kind tells apart from the others. */
static void add_record(struct results *r, const json_t *j)
{
    static const char *const name[] = { "name", NULL }, *const id[] = { "case", NULL };
    static const char *const pair[] = { "case", "backend", NULL };
    if (kind_is(j, "pair") || kind_is(j, "change"))
        need_backend(r, record_text(j, "backend"), record_text(j, "family"));
    if (kind_is(j, "model"))
        keep_last(r->models, &r->n_models, j, name);
    else if (kind_is(j, "overhead"))
        keep_last(r->overheads, &r->n_overheads, j, id);
    else if (kind_is(j, "pair"))
        keep_last(r->pairs, &r->n_pairs, j, pair);
    else if (kind_is(j, "change"))
        r->changes[r->n_changes++] = j;
    else if (kind_is(j, "count"))
        add_count(r, j);
    else if (kind_is(j, "agreement"))
        r->agreements[r->n_agreements++] = j;
    else if (kind_is(j, "trend"))
        r->trends[r->n_trends++] = j;
    else if (kind_is(j, "machine"))
        r->machine = j;
}

int results_make(const json_t *records, size_t machine, struct results *r)
{
    size_t n = json_array_size(records) + 1;
    *r = (struct results){ 0 };
    const char *wanted;
    if (!make_room(r, n) || !machine_at(records, machine, &wanted)) {
        results_free(r);
        return -1;
    }
    const json_t *env = NULL;
    bool aside = false;  /* estimates are of no machine */
    bool merged = false; /* a header and a footer are of all machines between them */
    for (size_t i = 0; i + 1 < n; i++) {
        const json_t *j = json_array_get(records, i);
        if (kind_is(j, "header")) {
            aside = estimate_header(j);
            merged = json_is_array(json_object_get(j, "merged"));
        }
        if (aside)
            continue;
        if (i == 0 || kind_is(j, "header") || kind_is(j, "env"))
            env = env_at(records, i);
        const bool of_all = merged && (kind_is(j, "header") || kind_is(j, "footer"));
        if (!of_all && wanted && env && strcmp(record_text(env, "env_id"), wanted) != 0)
            continue;
        if (kind_is(j, "header")) {
            r->header = j;
            r->runs++;
            if (!merged)
                r->headers[r->n_headers++] = j;
            r->by_model += json_is_true(json_object_get(j, "by_model"));
        } else if (kind_is(j, "env")) {
            r->env = j;
        } else if (kind_is(j, "part")) {
            add_footer(r, json_object_get(j, "footer"));
            r->headers[r->n_headers++] = json_object_get(j, "header");
        } else if (kind_is(j, "footer")) {
            r->footer = j;
            add_footer(r, j);
            r->finished += json_is_true(json_object_get(j, "complete"));
        } else if (kind_is(j, "backend")) {
            add_backend(r, j);
        } else if (kind_is(j, "bench")) {
            add_bench(r, j);
        } else if (kind_is(j, "conf")) {
            add_conf(r, j);
        } else {
            add_record(r, j);
        }
    }
    divide_medians(r);
    if (keep_last_conf(r) == 0 && keep_last_changes(r) == 0)
        return 0;
    results_free(r);
    return -1;
}

void results_free(struct results *r)
{
    free(r->backends);
    free(r->bench);
    free(r->conf);
    free(r->models);
    free(r->overheads);
    free(r->pairs);
    free(r->changes);
    free(r->counts);
    free(r->trends);
    free(r->agreements);
    free(r->headers);
    free(r->kernels);
    free(r->cases);
    *r = (struct results){ 0 };
}

bool results_of_doctor(const struct results *r)
{
    return r->machine && r->n_bench == 0 && r->n_conf == 0 && r->n_pairs == 0 &&
           r->n_models == 0;
}

static bool matches(const char *wanted, const char *value)
{
    return !wanted || strcmp(wanted, value) == 0;
}

struct counts count_conf(const struct results *r, const char *kernel, const char *backend,
                         const char *suite)
{
    struct counts t = { 0 };
    for (size_t i = 0; i < r->n_conf; i++) {
        const struct conf_row *c = &r->conf[i];
        if (!matches(kernel, c->kernel) || !matches(backend, c->backend) ||
            !matches(suite, c->suite))
            continue;
        t.total++;
        t.pass += strcmp(c->status, "pass") == 0;
        t.fail += strcmp(c->status, "fail") == 0;
        t.crash += strcmp(c->status, "crash") == 0;
        t.skipped += strcmp(c->status, "skipped") == 0;
        t.unsupported += strcmp(c->status, "unsupported") == 0;
        t.weak += strcmp(c->status, "weak") == 0;
    }
    return t;
}

bool conforms(const struct results *r, const char *kernel, const char *backend, bool *checked)
{
    struct counts t = count_conf(r, kernel, backend, NULL);
    *checked = t.pass + t.fail + t.crash + t.weak > 0;
    return t.fail + t.crash == 0;
}
