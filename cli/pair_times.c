/*
 * Records of posenc pair and its timings, which are made in this process (see pair.h).
 */
#define _GNU_SOURCE
#include "pair.h"
#include "emit.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

enum { LEAST_ROUNDS = 5, QUICK_ROUNDS = 31, FULL_ROUNDS = 61, DISPLACED_BYTES = 16384 };
static const double USUAL_S = 12.0;

/* ---- Records ---- */

static json_t *record_of(const char *kind, const struct pair_run *run,
                         const struct pair_row *row)
{
    const struct pairing_name *name = &run->pairing.names[row->name];
    const struct bench_case *c = &run->pairing.cases[row->at_case];
    const struct implementation *implementation = name->head ? name->head : name->base;
    return emit_result(kind, c->problem.kernel, c->problem.dtype, emit_profile(&c->problem),
                       c->id, implementation->backend);
}

/* Makes a list of where the kernel begins in the file of a build, and the front-end if it is there. */
static json_t *entries_of(const struct implementation *implementation,
                          enum posenc_kernel kernel)
{
    const uintptr_t addresses[2] = { (uintptr_t)backend_entry(implementation->backend, kernel),
                                     (uintptr_t)implementation_entry(implementation, kernel) };
    json_t *list = json_array();
    Dl_info first = { .dli_fbase = NULL }, info;
    for (int i = 0; i < 2; i++) {
        if (!dladdr((const void *)addresses[i], &info))
            continue;
        if (i == 0)
            first = info;
        if (info.dli_fbase == first.dli_fbase)
            json_array_append_new(
                list, json_integer((json_int_t)(addresses[i] - (uintptr_t)info.dli_fbase)));
    }
    return list;
}

json_t *pair_record_planned(const struct pair_run *run, const struct pair_row *row,
                            bool with_entries)
{
    const struct pairing_name *name = &run->pairing.names[row->name];
    static const char *const builds[] = {
        [PAIRING_BOTH] = "both", [PAIRING_NEW] = "head", [PAIRING_REMOVED] = "base"
    };
    const struct bench_case *c = &run->pairing.cases[row->at_case];
    json_t *record = record_of("planned", run, row);
    json_object_set_new(record, "footprint",
                        json_pack("{s:s?,s:I}", "name", c->footprint, "bytes",
                                  (json_int_t)problem_working_set(&c->problem)));
    json_object_set_new(record, "builds", json_string(builds[row->kind]));
    if (with_entries && row->kind == PAIRING_BOTH)
        json_object_set_new(record, "entries",
                            json_pack("{s:o,s:o}", "base",
                                      entries_of(name->base, c->problem.kernel), "head",
                                      entries_of(name->head, c->problem.kernel)));
    return record;
}

static json_t *running_record(const struct pair_run *run, const struct pair_row *row,
                              const char *who)
{
    return json_pack("{s:s,s:s,s:s,s:s}", "t", "running", "case",
                     run->pairing.cases[row->at_case].id, "backend",
                     run->pairing.names[row->name].name, "who", who);
}

static json_t *numbers(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, record_number(values[i]));
    return list;
}

static void set_times(json_t *record, const struct pair_result *r)
{
    json_object_set_new(record, "base",
                        json_pack("{s:o}", "ns", record_number(r->ns[PAIR_BASE])));
    json_object_set_new(record, "head",
                        json_pack("{s:o}", "ns", record_number(r->ns[PAIR_HEAD])));
    json_object_set_new(record, "ratios",
                        json_pack("{s:o,s:o}", "head", numbers(r->x, r->rounds), "control",
                                  numbers(r->z, r->rounds)));
    if (r->roofline_kind)
        json_object_set_new(record, "roofline",
                            json_pack("{s:s,s:s,s:o}", "kind", r->roofline_kind, "variant",
                                      r->roofline_variant, "ns",
                                      record_number(r->roofline_ns)));
}

static json_t *samples_record(const struct pair_run *run, const struct pair_row *row,
                              const struct pair_result *result)
{
    static const char *const outcomes[] = { "timed", "lacks it", "rejected", "wrong" };
    json_t *record = record_of("samples", run, row);
    json_object_set_new(record, "outcome", json_string(outcomes[result->outcome]));
    if (result->outcome == BENCH_TIMED) {
        set_times(record, result);
    } else {
        const bool both = result->who == PAIR_SIDES;
        json_object_set_new(record, "who",
                            json_string(both ? "base or head" : pair_side_name[result->who]));
        json_object_set_new(record, "reason", record_string(result->reason));
    }
    return record;
}

/* ---- Timings ---- */

/* The rows of one case. */
struct group {
    struct pair_run *run;
    const size_t *rows;
    size_t n;
};

static struct pair_row *row_of(const struct group *group, size_t pair)
{
    return &group->run->rows[group->rows[pair]];
}

static void on_doing(void *user, size_t pair, enum pair_side who)
{
    const struct group *group = user;
    json_t *record = running_record(group->run, row_of(group, pair),
                                    who < PAIR_SIDES ? pair_side_name[who] : "rounds");
    records_write(&group->run->work.records, record); /* for readers of a crash alone */
    json_decref(record);
}

static void on_result(void *user, const struct pair_result *result)
{
    const struct group *group = user;
    struct pair_run *run = group->run;
    if (result->outcome != BENCH_TIMED && result->outcome != BENCH_NOT_PROVIDED &&
        result->who != PAIR_BASE)
        run->broken++;
    records_append(&run->work.records,
                   samples_record(run, row_of(group, result->pair), result));
}

static bool stop(void *user)
{
    (void)user;
    return outputs_interrupted() != 0;
}

static int time_group(struct group *group, double share_s)
{
    struct pair_run *run = group->run;
    const struct pairing *p = &run->pairing;
    const size_t c = row_of(group, 0)->at_case;
    struct bench_pair *pairs = calloc(group->n, sizeof *pairs);
    char error[256] = "";
    for (size_t i = 0; pairs && i < group->n; i++) {
        const struct pairing_name *name = &p->names[row_of(group, i)->name];
        pairs[i] = (struct bench_pair){ { name->base, name->head, name->again } };
    }
    const struct pair_options options = {
        .seed = mix64(run->seed, c),
        .scalar = { library_implementation(p->base, "scalar"),
                    library_implementation(p->head, "scalar") },
        .rows_alone = run->work.cli->rows_alone,
        .share_s = share_s,
        .least_rounds = LEAST_ROUNDS,
        .most_rounds = run->work.cli->full ? FULL_ROUNDS : QUICK_ROUNDS,
        .doing = on_doing,
        .sink = on_result,
        .stop = stop,
        .user = group
    };
    const bool done = pairs && pairs_run(&p->cases[c], pairs, group->n, &options, error) == 0;
    free(pairs);
    return done ? EXIT_FINE
                : cli_refuse(run->work.cli, "timing", NULL, "%s", pairs ? error : "no memory");
}

static int time_all(struct pair_run *run)
{
    const double budget = run->work.cli->budget,
                 deadline = clock_now() + (isnan(budget) ? USUAL_S : budget);
    int status = EXIT_FINE;
    for (size_t at = 0; at < run->n_wanted && status == EXIT_FINE && !stop(NULL);) {
        struct group group = { run, run->wanted + at, 0 };
        while (at + group.n < run->n_wanted &&
               row_of(&group, group.n)->at_case == row_of(&group, 0)->at_case)
            group.n++;
        const double share = (double)group.n / (double)(run->n_wanted - at);
        status = time_group(&group, fmax(deadline - clock_now(), 0.0) * share);
        at += group.n;
    }
    return status;
}

/* Displaces stack and heap by the seed. The cost of a layout is then part of the noise between processes, and no
 * difference between two builds. Address-space randomisation alone moves whole pages. */
static int time_displaced(struct pair_run *run, unsigned bytes)
{
    volatile char *displaced = __builtin_alloca(bytes + 1);
    displaced[bytes] = 0;
    char *heap = malloc((size_t)mix64(run->seed, bytes) % 65536 + 1);
    const int status = time_all(run);
    free(heap);
    return status;
}

int pair_times(struct pair_run *run)
{
    return time_displaced(run, (unsigned)(mix64(run->seed, 0) % DISPLACED_BYTES / 16 * 16));
}
