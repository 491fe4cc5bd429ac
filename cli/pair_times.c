/* Times two builds in this process, and counts their instructions (see pair.h). */
#define _GNU_SOURCE
#include "pair.h"
#include "conformance/engine/judge.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

enum { MIN_ROUNDS = 5, QUICK_ROUNDS = 31, FULL_ROUNDS = 61 };
enum {
    MOST_STACK_BYTES = 16384,
    MOST_HEAP_BYTES = 65536
}; /* displaced, see pair_time_rows() */
/* Defaults of --time-limit, in seconds. */
static const double TIMES_S = 12.0, COUNTS_S = 15.0;

/* ---- Records ---- */

/* Returns a record of a row with the members that all results have. */
static json_t *record_of(const char *kind, const struct pair_row *row)
{
    const struct bench_case *c = row->bench_case;
    return emit_result(kind, c->problem.kernel, c->problem.dtype,
                       problem_numerics_name(&c->problem), c->id, row->backend->descriptor);
}

/* Returns the offsets, in the file of a build, of the kernel and of its public function if it is in the same file. */
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

json_t *pair_record_planned(const struct pair_row *row, bool with_entries)
{
    static const char *const builds[] = {
        [PROVIDED_BY_BOTH] = "both", [PROVIDED_BY_HEAD] = "head", [PROVIDED_BY_BASE] = "base"
    };
    const struct bench_case *c = row->bench_case;
    json_t *record =
        record_merge(record_of("planned", row),
                     json_pack("{s:{s:s?,s:I},s:s}", "footprint", "name", c->level, "bytes",
                               (json_int_t)problem_working_set(&c->problem), "builds",
                               builds[row->providers]));
    if (with_entries && row->providers == PROVIDED_BY_BOTH)
        json_object_set_new(record, "entries",
                            json_pack("{s:o,s:o}", "base",
                                      entries_of(row->backend->base, c->problem.kernel), "head",
                                      entries_of(row->backend->head, c->problem.kernel)));
    return record;
}

static json_t *numbers(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, record_number(values[i]));
    return list;
}

static json_t *roofline_of(const struct pair_result *r)
{
    return r->roofline_kind
               ? json_pack("{s:s,s:s,s:o}", "kind", r->roofline_kind, "variant",
                           r->roofline_variant, "ns", record_number(r->roofline_ns))
               : NULL;
}

static json_t *samples_record(const struct pair_row *row, const struct pair_result *r)
{
    static const char *const outcomes[] = { "timed", "lacks it", "rejected", "wrong" };
    const char *who = r->side == PAIR_NO_SIDE ? "base or head" : pair_side_name[r->side];
    json_t *members =
        r->outcome == BENCH_TIMED
            ? json_pack("{s:{s:o},s:{s:o},s:{s:o,s:o},s:o*}", "base", "ns",
                        record_number(r->ns[PAIR_BASE]), "head", "ns",
                        record_number(r->ns[PAIR_HEAD]), "ratios", "head",
                        numbers(r->log_ratios, r->rounds), "control",
                        numbers(r->control_log_ratios, r->rounds), "roofline", roofline_of(r))
            : json_pack("{s:s,s:o}", "who", who, "reason", record_string(r->reason));
    json_t *record = record_of("samples", row);
    json_object_set_new(record, "outcome", json_string(outcomes[r->outcome]));
    return record_merge(record, members);
}

/* ---- Timings ---- */

/* Rows of one case, which are timed together. */
struct row_group {
    struct pair_run *run;
    struct pair_row *const *rows;
    size_t n;
};

/* Writes the current call at once, so that a crash can be attributed to it. The list of records omits it. */
static void write_running(void *user, size_t pair, enum pair_side side)
{
    const struct row_group *group = user;
    json_t *record = json_pack("{s:s,s:s,s:s,s:s}", "t", "running", "case",
                               group->rows[pair]->bench_case->id, "backend",
                               group->rows[pair]->backend->descriptor->name, "who",
                               side == PAIR_NO_SIDE ? "rounds" : pair_side_name[side]);
    records_write(&group->run->session.records, record);
    json_decref(record);
}

static void add_samples(void *user, const struct pair_result *result)
{
    const struct row_group *group = user;
    records_append(&group->run->session.records,
                   samples_record(group->rows[result->pair], result));
}

static bool is_interrupted(void *user)
{
    (void)user;
    return outputs_interrupted() != 0;
}

/* Times the rows of a group for so many seconds. */
static void time_group(struct row_group *group, double share_s)
{
    struct pair_run *run = group->run;
    const struct bench_case *bench_case = group->rows[0]->bench_case;
    struct bench_pair *pairs = cli_allocate(group->n, sizeof *pairs);
    char error[256] = "";
    for (size_t i = 0; i < group->n; i++) {
        const struct pair_backend *backend = group->rows[i]->backend;
        pairs[i] = (struct bench_pair){ { backend->base, backend->head, backend->control } };
    }
    const struct pair_options options = {
        .seed = rng_u64(run->seed, (uint64_t)(bench_case - run->cases)),
        .scalar = { library_implementation(run->base, "scalar"),
                    library_implementation(run->head, "scalar") },
        .rows_alone = run->session.cli->rows_alone,
        .share_s = share_s,
        .min_rounds = MIN_ROUNDS,
        .max_rounds = run->session.cli->full ? FULL_ROUNDS : QUICK_ROUNDS,
        .on_call = write_running,
        .on_result = add_samples,
        .stop = is_interrupted,
        .user = group
    };
    const int failed = pairs_time(bench_case, pairs, group->n, &options, error);
    free(pairs);
    if (failed)
        cli_reject("timing", NULL, "%s", error);
}

static double deadline_of(const struct cli *cli, double default_s)
{
    return clock_now() + (isnan(cli->time_limit) ? default_s : cli->time_limit);
}

/* Times all rows. Each group gets the share of the remaining time that its number of rows is of the remaining rows. */
static void time_all(struct pair_run *run)
{
    const double deadline = deadline_of(run->session.cli, TIMES_S);
    for (size_t done = 0; done < run->n_chosen && !is_interrupted(NULL);) {
        struct row_group group = { run, run->chosen + done, 1 };
        while (done + group.n < run->n_chosen &&
               group.rows[group.n]->bench_case == group.rows[0]->bench_case)
            group.n++;
        const double share = (double)group.n / (double)(run->n_chosen - done);
        time_group(&group, fmax(deadline - clock_now(), 0.0) * share);
        done += group.n;
    }
}

/* Displaces stack and heap by a random number of bytes, so that effects of the memory layout become noise between
 * processes. Address-space randomisation moves whole pages only. */
void pair_time_rows(struct pair_run *run)
{
    const size_t bytes = rng_u64(run->seed, 0) % MOST_STACK_BYTES / 16 * 16;
    volatile char *displaced = __builtin_alloca(bytes + 1);
    displaced[bytes] = 0;
    char *heap = cli_allocate((size_t)rng_u64(run->seed, bytes) % MOST_HEAP_BYTES + 1, 1);
    time_all(run);
    free(heap);
}

/* ---- Instructions ---- */

/* Returns true if two rows differ at most in their shape, as instructions are counted on fixed shapes. */
static bool have_same_count(const struct pair_row *a, const struct pair_row *b)
{
    const struct problem *p = &a->bench_case->problem, *q = &b->bench_case->problem;
    return a->backend == b->backend && p->kernel == q->kernel && p->dtype == q->dtype &&
           (p->freqs.numerics == q->freqs.numerics || !kernel_has_freqs(p->kernel));
}

/* Returns true if a row before this one has the same count. */
static bool is_counted(const struct pair_run *run, size_t row)
{
    size_t i = 0;
    while (i < row && !have_same_count(run->chosen[i], run->chosen[row]))
        i++;
    return i < row;
}

/* Counts in both builds. */
static void count_row(struct pair_run *run, const struct pair_row *row)
{
    const struct implementation *implementations[2] = { row->backend->base,
                                                        row->backend->head };
    const struct problem *p = &row->bench_case->problem;
    for (int i = 0; i < 2; i++) {
        struct kernel_instructions count;
        (void)instructions_of_kernel(implementations[i], p->kernel, p->dtype, p->freqs.numerics,
                                     &count);
        records_append(&run->session.records, emit_count(&count, implementations[i]->backend,
                                                         i == 0 ? "base" : "head"));
    }
}

void pair_count_instructions(struct pair_run *run)
{
    const double deadline = deadline_of(run->session.cli, COUNTS_S);
    size_t n = 0;
    for (size_t i = 0; instructions_method() && i < run->n_chosen && !is_interrupted(NULL);
         i++) {
        if (is_counted(run, i))
            continue;
        if (n++ > 0 && clock_now() > deadline)
            break;
        count_row(run, run->chosen[i]);
    }
}
