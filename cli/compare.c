/*
 * posenc compare: did a change make a kernel slower or faster, or its results others?
 *
 * Every pair (a backend on a case) is timed in several launches, fresh processes that each hold base,
 * head and base again (bench/pairs.h).  Then a schedule that is fixed in advance:
 *
 *   slower, faster   two more launches, with a new seed: only what they confirm is said
 *   unclear          two more launches within the budget, at most three looks in all
 *
 * What the numbers say is reports/statistics/verdict.h's to judge; this file measures, and keeps count.
 */
#define _POSIX_C_SOURCE 200809L
#include "compare.h"
#include "compare_files.h"
#include "emit.h"
#include "launches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* For everything; for a kernel that was named.  Parts of it: for the launches that all have, and of
 * these for what lies in caches. */
static const double BUDGET_S = 200.0, KERNEL_S = 12.0, FIRST_PART = 0.7, IN_CACHES = 0.5;

/* ---- Rows ---- */

static void free_rows(struct compare *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct compare_row *row = &all->rows[i];
        for (size_t l = 0; l < row->launches; l++) {
            free(row->head[l]);
            free(row->null[l]);
        }
        json_decref(row->roof);
    }
    free(all->rows);
    free(all->todo);
    free(all->items);
}

static bool make_rows(struct compare *all)
{
    const struct pairing *p = &all->pairing;
    const size_t most = p->n_cases * p->n_names + 1;
    all->rows = calloc(most, sizeof *all->rows);
    all->todo = calloc(most, sizeof *all->todo);
    all->items = calloc(most, sizeof *all->items);
    if (!all->rows || !all->todo || !all->items)
        return false;
    for (size_t c = 0; c < p->n_cases; c++) {
        for (size_t b = 0; b < p->n_names; b++) {
            const enum pairing_kind kind = pairing_kind(p, c, b);
            if (kind != PAIRING_NONE)
                all->rows[all->n++] =
                    (struct compare_row){ .at_case = c, .name = b, .kind = kind, .look = 1 };
        }
    }
    return true;
}

static bool is_timed(const struct compare_row *row)
{
    return row->kind == PAIRING_BOTH && row->outcome == BENCH_TIMED;
}

/* What has the same machine code takes the same time, and is timed where that is asked for. */
static bool wants_launches(const struct compare *all, const struct compare_row *row)
{
    return row->kind == PAIRING_BOTH &&
           (!row->same_code || all->work.cli->identical || all->work.cli->full);
}

static void judge(const struct compare *all, struct compare_row *row)
{
    const struct verdict_pair pair = { .launches = row->launches,
                                       .rounds = row->rounds,
                                       .head = (const double *const *)row->head,
                                       .null = (const double *const *)row->null,
                                       .confirming = row->confirming,
                                       .look = row->look,
                                       .budget = all->threshold,
                                       .same_code = row->same_code };
    row->verdict = verdict_of(&pair);
}

static bool is_flagged(const struct compare_row *row)
{
    return row->verdict.kind == VERDICT_SLOWER || row->verdict.kind == VERDICT_FASTER;
}

/* ---- Launches ---- */

static double *numbers_of(const json_t *list, size_t n)
{
    double *values = malloc((n + 1) * sizeof *values);
    for (size_t i = 0; values && i < n; i++)
        values[i] = record_double(json_array_get(list, i), (double)NAN);
    return values;
}

static void take_samples(struct compare_row *row, const json_t *result)
{
    const json_t *head = json_object_get(result, "head"),
                 *null = json_object_get(result, "null");
    const size_t l = row->launches, n = json_array_size(head);
    if (l == COMPARE_LAUNCHES || n != json_array_size(null))
        return;
    row->head[l] = numbers_of(head, n);
    row->null[l] = numbers_of(null, n);
    row->rounds[l] = row->head[l] && row->null[l] ? n : 0;
    row->base_ns[l] = record_value(result, "base_ns", (double)NAN);
    row->head_ns[l] = record_value(result, "head_ns", (double)NAN);
    row->launches++;
    json_decref(row->roof);
    row->roof = json_incref(json_object_get(result, "roof"));
}

static void on_result(void *user, size_t item, const json_t *result, enum pair_side who,
                      const char *ended)
{
    struct compare *all = user;
    struct compare_row *row = all->todo[item];
    all->done++;
    if (ended) {
        row->crashed = true;
        row->outcome = BENCH_WRONG;
    } else {
        row->outcome = (enum bench_outcome)record_value(result, "outcome", 0.0);
    }
    row->who = who;
    if (row->outcome == BENCH_TIMED)
        take_samples(row, result);
    else
        snprintf(row->reason, sizeof row->reason, "%s",
                 ended ? ended : record_text(result, "reason"));
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool on_tick(void *user, size_t item)
{
    struct compare *all = user;
    char where[160] = "";
    if (item < all->n_todo) {
        const struct compare_row *row = all->todo[item];
        snprintf(where, sizeof where, "%s %s", all->pairing.names[row->name].name,
                 all->pairing.cases[row->at_case].id);
    }
    const struct progress now = { .what = "compare",
                                  .unit = "timings of pairs",
                                  .done = (double)all->done,
                                  .total = all->total,
                                  .most_s = all->budget_s,
                                  .notes = all->notes,
                                  .where = where };
    progress(&now);
    return outputs_interrupted() != 0 || now_s() > all->stop_at;
}

/* One launch of all->todo, in about so many seconds. */
static int run_launch(struct compare *all, double slot_s)
{
    const double begin = now_s(), share = fmax(slot_s - all->overhead_s, 0.0);
    const unsigned number = all->number++;
    struct launch launch = { .cli = all->work.cli,
                             .pairing = &all->pairing,
                             .items = all->items,
                             .number = number,
                             .seed = all->seed,
                             .share_s = share,
                             .rows_alone = all->checked,
                             .result = on_result,
                             .stop = on_tick,
                             .user = all };
    size_t kept = 0;
    memcpy(launch.sha256, all->sha256, sizeof launch.sha256);
    for (size_t i = 0; i < all->n_todo; i++) {
        struct compare_row *row = all->todo[i];
        if (!is_timed(row) || row->launches == COMPARE_LAUNCHES)
            continue;
        all->todo[kept] = row;
        all->items[kept++] = (struct launch_item){ row->at_case, row->name };
    }
    launch.n = all->n_todo = kept;
    const int status = kept > 0 ? launch_run(&launch) : EXIT_FINE;
    all->checked = true;
    const double took = now_s() - begin;
    all->overhead_s = fmax(took - share, 0.0);
    for (size_t i = 0; i < kept; i++)
        all->todo[i]->spent_s += took / (double)kept;
    return status;
}

static bool is_in_memory(const struct compare *all, const struct compare_row *row)
{
    return strcmp(all->pairing.cases[row->at_case].footprint, "DRAM") == 0;
}

/* The launches of all pairs in caches, or of those in memory. */
static int run_group(struct compare *all, size_t launches, bool in_memory, double end)
{
    int status = EXIT_FINE;
    all->n_todo = 0;
    all->overhead_s = 0.0;
    for (size_t i = 0; i < all->n; i++)
        if (wants_launches(all, &all->rows[i]) && is_in_memory(all, &all->rows[i]) == in_memory)
            all->todo[all->n_todo++] = &all->rows[i];
    all->checked = false;
    for (size_t l = 0; l < launches && status == EXIT_FINE && !on_tick(all, all->n); l++)
        status = run_launch(all, fmax(end - now_s(), 0.0) / (double)(launches - l));
    return status;
}

/* The launches that every pair has.  What is in memory takes longest and comes last: where the time
 * does not suffice, the caches are judged. */
static int run_first(struct compare *all, size_t launches)
{
    size_t n[2] = { 0, 0 };
    for (size_t i = 0; i < all->n; i++)
        if (wants_launches(all, &all->rows[i]))
            n[is_in_memory(all, &all->rows[i])]++;
    all->total = launches * (n[0] + n[1]);
    all->stop_at = all->begun + all->budget_s;
    const double first = n[1] > 0 ? IN_CACHES * FIRST_PART : FIRST_PART;
    int status = run_group(all, launches, false, all->begun + first * all->budget_s);
    if (status == EXIT_FINE)
        status = run_group(all, launches, true, all->begun + FIRST_PART * all->budget_s);
    for (size_t i = 0; i < all->n; i++)
        if (is_timed(&all->rows[i]))
            judge(all, &all->rows[i]);
    return status;
}

/* ---- Confirmation, and further looks ---- */

static bool wants_confirmation(const struct compare_row *row)
{
    return is_timed(row) && is_flagged(row) && row->confirming == 0;
}

static bool wants_look(const struct compare_row *row)
{
    return is_timed(row) && row->verdict.kind == VERDICT_UNCLEAR && row->confirming == 0 &&
           row->look < VERDICT_LOOKS;
}

/* Those that are to be confirmed, and the unclear ones for which there is time, the least first. */
static void choose_again(struct compare *all, double left_s)
{
    all->n_todo = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct compare_row *row = &all->rows[i];
        const double each = row->spent_s / fmax((double)row->launches, 1.0);
        if (wants_look(row) && left_s < VERDICT_CONFIRMING * each)
            continue;
        if (!wants_look(row) && !wants_confirmation(row))
            continue;
        left_s -= VERDICT_CONFIRMING * each;
        all->todo[all->n_todo++] = row;
    }
}

/* Two launches of those chosen; what they were for, and what they say. */
static int run_again(struct compare *all, double left_s)
{
    int status = EXIT_FINE;
    struct compare_row **rows = calloc(all->n_todo + 1, sizeof(struct compare_row *));
    const size_t n = all->n_todo;
    if (!rows)
        return cli_refuse(all->work.cli, "memory", NULL, "none left");
    memcpy(rows, all->todo, n * sizeof *rows);
    all->seed = mix64(all->seed, all->number);
    all->total += VERDICT_CONFIRMING * n;
    for (size_t l = 0; l < VERDICT_CONFIRMING && status == EXIT_FINE; l++)
        if (!outputs_interrupted())
            status = run_launch(all, left_s / VERDICT_CONFIRMING);
    for (size_t i = 0; i < n; i++) {
        struct compare_row *row = rows[i];
        if (!is_timed(row) || outputs_interrupted())
            continue;
        if (is_flagged(row))
            row->confirming = VERDICT_CONFIRMING;
        else
            row->look++;
        judge(all, row);
    }
    free(rows);
    return status;
}

static int run_further(struct compare *all)
{
    int status = EXIT_FINE;
    all->stop_at = (double)INFINITY; /* what is to be confirmed is, whatever it takes */
    while (status == EXIT_FINE && !outputs_interrupted()) {
        const double left_s = fmax(all->begun + all->budget_s - now_s(), 0.0);
        choose_again(all, left_s);
        if (all->n_todo == 0)
            break;
        snprintf(all->notes, sizeof all->notes, ", %zu again", all->n_todo);
        status = run_again(all, left_s);
    }
    progress_clear();
    return status;
}

/* ---- What is said ---- */

static json_t *build_record(const struct library *library, const char *sha256,
                            const struct revision *revision)
{
    json_t *record = json_pack("{s:o,s:s,s:I,s:s,s:b}", "path", record_string(library->path),
                               "version", library->version, "abi", (json_int_t)library->abi,
                               "sha256", sha256, "plugin", library->is_plugin);
    if (record && revision->commit[0]) {
        json_object_set_new(record, "rev", json_string(revision->name));
        json_object_set_new(record, "commit", json_string(revision->commit));
        json_object_set_new(record, "dirty", json_boolean(revision->dirty));
    }
    return record;
}

static void emit_rows(struct compare *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct compare_row *row = &all->rows[i];
        if (row->kind != PAIRING_BOTH || row->launches > 0 || row->outcome != BENCH_TIMED ||
            !outputs_interrupted())
            records_append(&all->work.records, emit_pair(all, row));
    }
}

/* Worse than base, which did it right. */
static bool is_worse(const struct compare_row *row)
{
    return row->kind == PAIRING_BOTH && row->outcome != BENCH_TIMED && row->who != PAIR_BASE &&
           row->outcome != BENCH_LACKS_IT;
}

static int exit_code(const struct compare *all)
{
    const struct cli *cli = all->work.cli;
    size_t worse = all->failing, slower = 0, unclear = 0, common = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct compare_row *row = &all->rows[i];
        common += row->kind == PAIRING_BOTH;
        worse += is_worse(row);
        slower += is_timed(row) && row->verdict.fails;
        unclear += is_timed(row) && row->verdict.kind == VERDICT_UNCLEAR;
    }
    return worse > 0                              ? EXIT_CONFORMANCE
           : common == 0                          ? EXIT_INCOMPARABLE
           : cli->gate && slower + all->grown > 0 ? EXIT_SLOWER
           : cli->strict && unclear > 0           ? EXIT_UNCLEAR
                                                  : EXIT_FINE;
}

/* Counts take a tenth of the budget at most, and not more than this. */
static const double COUNTS_PART = 0.1, COUNTS_S = 15.0;

static bool counts_stop(void *user)
{
    const struct compare *all = user;
    return outputs_interrupted() != 0 || now_s() > all->stop_at;
}

static int measure(struct compare *all)
{
    const struct cli *cli = all->work.cli;
    const size_t launches =
        cli->launches != INT64_MIN ? (size_t)cli->launches : VERDICT_LEAST_LAUNCHES;
    int status = compare_results(all);
    compare_code(all);
    all->begun = now_s();
    if (status == EXIT_FINE)
        status = run_first(all, launches);
    if (status == EXIT_FINE)
        status = run_further(all);
    if (status == EXIT_FINE) {
        all->stop_at = now_s() + fmin(COUNTS_PART * all->budget_s, COUNTS_S);
        compare_counts(all, counts_stop, all);
        emit_rows(all);
    }
    if (status == EXIT_FINE)
        work_end_if_interrupted(&all->work);
    return status;
}

static int compare_builds(struct compare *all, struct cli *cli)
{
    int status = pairing_open(&all->pairing, &all->work, cli, false);
    if (status != EXIT_FINE)
        return status;
    pairing_sha256(all->pairing.base, all->sha256[0]);
    pairing_sha256(all->pairing.head, all->sha256[1]);
    all->work.compare =
        json_pack("{s:o,s:o}", "base",
                  build_record(all->pairing.base, all->sha256[0], &all->revisions[0]), "head",
                  build_record(all->pairing.head, all->sha256[1], &all->revisions[1]));
    if (!make_rows(all))
        return cli_refuse(cli, "memory", NULL, "none left");
    status = work_open(&all->work, BY_COMPARE, true);
    if (status == EXIT_FINE)
        status = measure(all);
    if (status == EXIT_FINE) {
        const int code = exit_code(all);
        status = work_end(&all->work, true);
        status = status == EXIT_FINE ? code : status;
    }
    return status;
}

static double budget_of(const struct cli *cli)
{
    if (!isnan(cli->budget))
        return cli->budget;
    return cli->kernel.n > 0 ? fmin(KERNEL_S * (double)cli->kernel.n, BUDGET_S) : BUDGET_S;
}

static int check_operands(const struct cli *cli)
{
    const char *third = cli->n_operands > 2 ? cli->operands[2] : NULL;
    if (!cli->rev && cli->n_operands != 2)
        return cli_refuse(cli, "operands", third,
                          "expected two builds of the library, two plug-ins, or two files of "
                          "results: BASE HEAD");
    if (cli->rev && (cli->n_operands < 1 || third))
        return cli_refuse(cli, "operands", third,
                          "expected one or two git revisions beside --rev: BASE [HEAD]");
    if (!cli->rev && (cli->build || cli->library))
        return cli_refuse(cli, cli->build ? "--build" : "--library", NULL,
                          "has no effect here: it needs --rev");
    if (!cli->build != !cli->library)
        return cli_refuse(cli, cli->build ? "--library" : "--build", "not given",
                          "expected both: a command, and the path of what it makes");
    return EXIT_FINE;
}

/* Builds of the revisions that the operands name; the second one, without a name, of the work tree. */
static int take_revisions(struct compare *all, struct cli *cli)
{
    const struct revision_build how = { cli->build, cli->library };
    for (int i = 0; i < 2; i++) {
        const char *name = i < cli->n_operands ? cli->operands[i] : NULL;
        if (revision_take(cli, &how, name, &all->revisions[i]) != EXIT_FINE)
            return EXIT_USAGE;
        cli->builds[i] = all->revisions[i].path;
    }
    return EXIT_FINE;
}

int command_compare(struct cli *cli)
{
    if (check_operands(cli) != EXIT_FINE)
        return EXIT_USAGE;
    if (!cli->rev && is_result_file(cli->operands[0]) && is_result_file(cli->operands[1]))
        return compare_result_files(cli);
    if (work_no_timing()) {
        cli_refuse(cli, "nothing is timed here", NULL, "%s", work_no_timing());
        return EXIT_NOTHING;
    }
    struct compare *all = calloc(1, sizeof *all);
    if (!all)
        return cli_refuse(cli, "memory", NULL, "none left");
    if (cli->rev && take_revisions(all, cli) != EXIT_FINE) {
        free(all);
        return EXIT_USAGE;
    }
    all->begun = now_s();
    all->budget_s = budget_of(cli);
    all->threshold = isnan(cli->threshold) ? 0.0 : cli->threshold / 100.0;
    all->seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0;
    const int status = compare_builds(all, cli);
    work_give_up(&all->work);
    free_rows(all);
    pairing_close(&all->pairing);
    free(all);
    return status;
}
