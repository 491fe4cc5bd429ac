/*
 * Finds the runs in files of records and says which of them cannot be merged, and why.
 */
#define _POSIX_C_SOURCE 200809L
#include "merge_runs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum merge_status merge_refuse(const struct runs *runs, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(runs->error, MERGE_ERROR, format, list);
    va_end(list);
    return MERGE_REFUSED;
}

static bool is(const json_t *record, const char *kind)
{
    return strcmp(record_text(record, "t"), kind) == 0;
}

const char *run_machine(const struct run *run) { return record_text(run->env, "env_id"); }

const char *run_command(const struct run *run)
{
    const char *command = record_text(run->header, "command");
    return *command ? command : "run";
}

/* ---- Finding them ---- */

static size_t size_of(const struct run *run) { return json_array_size(run->input->records); }

static const json_t *at(const struct run *run, size_t i)
{
    return json_array_get(run->input->records, i);
}

/* From its header on: up to its footer, the next header or the end.  Where it goes on after it. */
static size_t read_run(struct run *run, size_t from)
{
    run->header = at(run, from);
    run->first = run->end = from + 1;
    const double shards = record_value(run->header, "shard.n", 0.0);
    run->n_shards = shards >= 1.0 && shards <= 1e6 ? (size_t)shards : 0;
    run->shard = (size_t)record_int(run->header, "shard.i", 0);
    for (; run->end < size_of(run); run->end++) {
        const json_t *record = at(run, run->end);
        if (is(record, "header"))
            return run->end;
        if (is(record, "footer")) {
            run->footer = record;
            return run->end + 1;
        }
        if (is(record, "env") && !run->env)
            run->env = record;
    }
    return run->end;
}

/* Cuts what was merged before into its sections: an env that follows other records begins one.  The
 * number of sections; they take the places from `run` on. */
static size_t cut_sections(struct run *run)
{
    const struct run whole = *run;
    size_t n = 0;
    for (size_t i = whole.first; i < whole.end; i++) {
        const json_t *record = at(&whole, i);
        if (is(record, "env") && (i == whole.first || !is(at(&whole, i - 1), "env"))) {
            if (n > 0)
                run[n - 1].end = i;
            run[n] = whole;
            run[n].header = NULL;
            run[n].env = record;
            run[n].first = i;
            run[n].n_shards = 0;
            run[n++].merged = true;
        } else if (n > 0 && is(record, "part") && !run[n - 1].header) {
            run[n - 1].header = json_object_get(record, "header");
        }
    }
    return n;
}

static enum merge_status find_in(const struct merge_input *input, struct runs *runs)
{
    const size_t before = runs->n;
    for (size_t i = 0; i < json_array_size(input->records);) {
        struct run *run = &runs->run[runs->n];
        *run = (struct run){ .input = input };
        if (!is(at(run, i), "header"))
            return merge_refuse(runs,
                                "%s: a record of kind %s stands outside of any run: expected a "
                                "header before it",
                                input->name, record_text(at(run, i), "t"));
        i = read_run(run, i);
        const bool merged = json_is_array(json_object_get(run->header, "merged"));
        if (!run->env)
            return merge_refuse(runs,
                                "%s: line %zu: ends before it says which machine it is of: "
                                "expected a whole run",
                                input->name, input->end.lines);
        if (run->n_shards > 0 && run->shard >= run->n_shards)
            return merge_refuse(runs, "%s: says that it is shard %zu/%zu: expected 0 to %zu",
                                input->name, run->shard, run->n_shards, run->n_shards - 1);
        runs->n += merged ? cut_sections(run) : 1;
    }
    for (size_t k = before; k < runs->n; k++)
        if (!json_is_object(runs->run[k].header))
            return merge_refuse(runs,
                                "%s: does not say what it was merged of: expected a file of "
                                "posenc merge",
                                input->name);
    return MERGE_FINE;
}

enum merge_status merge_find_runs(const struct merge_input *inputs, size_t n, struct runs *runs)
{
    size_t most = 1;
    for (size_t i = 0; i < n; i++)
        most += json_array_size(inputs[i].records);
    runs->run = calloc(most, sizeof *runs->run);
    if (!runs->run)
        return MERGE_MEMORY;
    enum merge_status status = MERGE_FINE;
    for (size_t i = 0; i < n && status == MERGE_FINE; i++)
        status = find_in(&inputs[i], runs);
    return status;
}

/* ---- Whether each is whole ---- */

static bool is_complete(const struct run *run)
{
    return json_is_true(json_object_get(run->footer, "complete"));
}

/* "r.jsonl: line 812: ends without a footer" */
static enum merge_status refuse_partial(const struct runs *runs, const struct run *run)
{
    const char *name = run->input->name;
    if (run->footer)
        return merge_refuse(runs,
                            "%s: is partial: its run was interrupted; expected a whole one "
                            "(posenc %s --resume %s goes on with it)",
                            name, run_command(run), name);
    return merge_refuse(runs,
                        "%s: line %zu: ends early%s: there is no footer, so its run was killed "
                        "or goes on; expected a whole one (posenc %s --resume %s goes on with "
                        "it)",
                        name, run->input->end.lines,
                        run->input->end.cut ? ", within that line" : "", run_command(run),
                        name);
}

/* ---- Whether shards are of one run ---- */

static bool same_run(const struct runs *runs, const struct run *a, const struct run *b)
{
    return a->n_shards > 0 && b->n_shards > 0 && strcmp(run_command(a), run_command(b)) == 0 &&
           (runs->mixed || strcmp(run_machine(a), run_machine(b)) == 0);
}

static enum merge_status check_member(const struct runs *runs, const struct run *a,
                                      const struct run *b, const char *name, const json_t *of_a,
                                      const json_t *of_b)
{
    char there[96], here[96];
    if (!records_differ(of_a, of_b))
        return MERGE_FINE;
    record_show(of_a, there, sizeof there);
    record_show(of_b, here, sizeof here);
    return merge_refuse(runs,
                        "%s: its %s is %s, that of %s %s: expected shards of one run on %s",
                        b->input->name, name, here, a->input->name, there, run_machine(b));
}

static enum merge_status check_options(const struct runs *runs, const struct run *a,
                                       const struct run *b)
{
    const json_t *sets[] = { json_object_get(a->header, "options"),
                             json_object_get(b->header, "options") };
    enum merge_status status = MERGE_FINE;
    char option[96];
    for (int s = 0; s < 2; s++) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)sets[s], name, value)
        {
            snprintf(option, sizeof option, "--%s", name);
            if (status == MERGE_FINE)
                status = check_member(runs, a, b, option, json_object_get(sets[0], name),
                                      json_object_get(sets[1], name));
        }
    }
    return status;
}

/* Two shards that should be of one run. */
static enum merge_status check_pair(const struct runs *runs, const struct run *a,
                                    const struct run *b)
{
    static const char *const members[][2] = {
        { "mode", "" },      { "tool", "version" },   { "tool", "commit" },
        { "tool", "dirty" }, { "vectors", "sha256" }, { "shard", "n" },
        { "seed", "" },
    };
    enum merge_status status = MERGE_FINE;
    for (size_t i = 0; i < sizeof members / sizeof *members && status == MERGE_FINE; i++) {
        const json_t *x = json_object_get(a->header, members[i][0]),
                     *y = json_object_get(b->header, members[i][0]);
        const char *inner = members[i][1];
        char name[48];
        snprintf(name, sizeof name, "%s%s%s", members[i][0], *inner ? "." : "", inner);
        status = *inner ? check_member(runs, a, b, name, json_object_get(x, inner),
                                       json_object_get(y, inner))
                        : check_member(runs, a, b, name, x, y);
    }
    if (status == MERGE_FINE)
        status = check_options(runs, a, b);
    if (status == MERGE_FINE && !runs->mixed)
        status = check_member(runs, a, b, "build", json_object_get(a->env, "build"),
                              json_object_get(b->env, "build"));
    return status;
}

/* ---- Whether each shard is there once ---- */

static void append(char *text, size_t bytes, const char *format, size_t number,
                   const char *name)
{
    const size_t n = strlen(text);
    snprintf(text + n, bytes - n, format, n ? ", " : "", number, name);
}

/* Of shard i of the run `of`: the complete one, if there is one alone.  What did not finish is passed
 * over beside it. */
static enum merge_status choose_attempt(const struct runs *runs, const struct run *of, size_t i,
                                        json_t *notes, char missing[256])
{
    struct run *whole = NULL, *partial = NULL;
    for (size_t k = 0; k < runs->n; k++) {
        struct run *run = &runs->run[k];
        if (run->same != of || run->shard != i)
            continue;
        if (!is_complete(run)) {
            partial = run;
            continue;
        }
        if (whole)
            return merge_refuse(runs,
                                "shard %zu/%zu of %s on %s is in %s and in %s: expected it "
                                "once",
                                i, of->n_shards, run_command(of), run_machine(of),
                                whole->input->name, run->input->name);
        whole = run;
    }
    if (!whole && partial)
        return refuse_partial(runs, partial);
    if (!whole)
        append(missing, 256, "%s%zu%s", i, "");
    for (size_t k = 0; whole && k < runs->n; k++) {
        struct run *run = &runs->run[k];
        if (run->same != of || run->shard != i || run == whole)
            continue;
        char sentence[640];
        snprintf(sentence, sizeof sentence,
                 "%.200s is passed over: shard %zu/%zu did not finish there; %.200s has it",
                 run->input->name, i, of->n_shards, whole->input->name);
        json_array_append_new(notes, json_string(sentence));
        run->passed_over = true;
    }
    return MERGE_FINE;
}

/* Where the shards that are missing on one CPU ran on another. */
static bool ran_elsewhere(const struct runs *runs, const struct run *of)
{
    for (size_t k = 0; k < runs->n; k++)
        if (runs->run[k].n_shards == of->n_shards && runs->run[k].same != of &&
            strcmp(run_command(&runs->run[k]), run_command(of)) == 0)
            return true;
    return false;
}

static enum merge_status check_shards(const struct runs *runs, const struct run *of,
                                      json_t *notes)
{
    char missing[256] = "";
    for (size_t i = 0; i < of->n_shards; i++) {
        const enum merge_status status = choose_attempt(runs, of, i, notes, missing);
        if (status != MERGE_FINE)
            return status;
    }
    if (!*missing)
        return MERGE_FINE;
    merge_refuse(runs, "missing: %s %s of %zu of %s on %s: expected 0 to %zu%s",
                 strchr(missing, ',') ? "shards" : "shard", missing, of->n_shards,
                 run_command(of), run_machine(of), of->n_shards - 1,
                 !runs->mixed && ran_elsewhere(runs, of)
                     ? "; others ran on another CPU: --mixed takes what each of them found"
                     : "");
    return MERGE_MISSING;
}

/* ---- All of them ---- */

static const char *id_of(const struct run *run, size_t part)
{
    if (!run->merged)
        return part == 0 ? record_text(run->header, "run_id") : NULL;
    for (size_t i = run->first; i < run->end; i++)
        if (is(at(run, i), "part") && part-- == 0)
            return record_text(json_object_get(at(run, i), "header"), "run_id");
    return NULL;
}

static bool share_an_id(const struct run *a, const struct run *b)
{
    const char *x, *y;
    for (size_t i = 0; (x = id_of(a, i)); i++)
        for (size_t j = 0; (y = id_of(b, j)); j++)
            if (*x && strcmp(x, y) == 0)
                return true;
    return false;
}

static enum merge_status check_one(const struct runs *runs, struct run *run)
{
    run->same = run;
    const char *vectors = record_text(run->header, "vectors.sha256");
    for (struct run *other = runs->run; other < run; other++) {
        const char *others = record_text(other->header, "vectors.sha256");
        if (share_an_id(other, run))
            return merge_refuse(runs, "%s and %s hold the same run: expected it once",
                                other->input->name, run->input->name);
        if (*vectors && *others && strcmp(vectors, others) != 0)
            return merge_refuse(runs,
                                "%s: its vectors are %.12s, those of %s %.12s: expected the "
                                "same golden vectors",
                                run->input->name, vectors, other->input->name, others);
        if (run->same == run && same_run(runs, other, run))
            run->same = other->same;
    }
    return run->n_shards == 0 && !is_complete(run) ? refuse_partial(runs, run) : MERGE_FINE;
}

/* The first shard of the same run that is complete: the others are compared with it. */
static const struct run *first_complete(const struct runs *runs, const struct run *run)
{
    const struct run *first = runs->run;
    while (first < run && (first->same != run->same || !is_complete(first)))
        first++;
    return first;
}

enum merge_status merge_check_runs(struct runs *runs, json_t *notes)
{
    enum merge_status status = MERGE_FINE;
    for (size_t k = 0; k < runs->n && status == MERGE_FINE; k++)
        status = check_one(runs, &runs->run[k]);
    for (size_t k = 0; k < runs->n && status == MERGE_FINE; k++)
        if (is_complete(&runs->run[k]))
            status = check_pair(runs, first_complete(runs, &runs->run[k]), &runs->run[k]);
    for (size_t k = 0; k < runs->n && status == MERGE_FINE; k++)
        if (runs->run[k].same == &runs->run[k] && runs->run[k].n_shards > 0)
            status = check_shards(runs, &runs->run[k], notes);
    return status;
}
