/*
 * Writes what was merged: see merge.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "merge.h"
#include "merge_runs.h"

#include <stdlib.h>
#include <string.h>

static bool is(const json_t *record, const char *kind)
{
    return strcmp(record_text(record, "t"), kind) == 0;
}

static const json_t *at(const struct run *run, size_t i)
{
    return json_array_get(run->input->records, i);
}

/* ---- The header ---- */

/* Where all say the same, that; else `otherwise`. */
static json_t *common(const struct runs *runs, const char *path, const char *otherwise)
{
    const char *text = record_text(runs->run[0].header, path);
    for (size_t k = 1; k < runs->n; k++)
        if (strcmp(text, record_text(runs->run[k].header, path)) != 0)
            text = otherwise;
    return json_string(text);
}

static json_t *source(const char *file, const json_t *header, const char *machine)
{
    json_t *shard = json_object_get(header, "shard");
    return json_pack("{s:o,s:s,s:s,s:s,s:s,s:O?}", "file", record_string(file), "run_id",
                     record_text(header, "run_id"), "started", record_text(header, "started"),
                     "command", record_text(header, "command"), "env_id", machine, "shard",
                     shard);
}

static json_t *sources(const struct runs *runs)
{
    json_t *list = json_array();
    for (size_t k = 0; k < runs->n; k++) {
        const struct run *run = &runs->run[k];
        if (!run->merged && !run->passed_over)
            json_array_append_new(list,
                                  source(run->input->name, run->header, run_machine(run)));
        for (size_t i = run->first; run->merged && i < run->end; i++)
            if (is(at(run, i), "part"))
                json_array_append_new(list, source(record_text(at(run, i), "file"),
                                                   json_object_get(at(run, i), "header"),
                                                   run_machine(run)));
    }
    return list;
}

static void complete_header(const struct runs *runs, json_t *header)
{
    bool by_model = true;
    const json_t *vectors = NULL;
    for (size_t k = 0; k < runs->n; k++) {
        const json_t *of = runs->run[k].header;
        by_model = by_model && json_is_true(json_object_get(of, "by_model"));
        if (*record_text(of, "vectors.sha256") && !vectors)
            vectors = json_object_get(of, "vectors");
    }
    json_object_set_new(header, "mode", common(runs, "mode", "mixed"));
    json_object_set_new(header, "by_model", json_boolean(by_model));
    json_object_set_new(header, "vectors",
                        vectors ? json_deep_copy(vectors) : json_pack("{s:n}", "sha256"));
    json_object_set_new(header, "merged", sources(runs));
}

/* ---- Results ---- */

static bool is_result(const json_t *record)
{
    static const char *const others[] = { "header", "env",  "kernel", "backend",
                                          "model",  "part", "footer" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is(record, others[i]))
            return false;
    return true;
}

/* What a result is of, on a machine; false where any number may be. */
static bool key_of(const char *machine, const json_t *record, char key[512])
{
    static const char ended[] =
        "/ended"; /* a process may end in several shards, each time after
                                             another case */
    const char *id = record_text(record, "case");
    const size_t n = strlen(id), tail = strlen(ended);
    const bool last = n > tail && strcmp(id + n - tail, ended) == 0;
    if (!is(record, "conf") && !is(record, "bench") && !is(record, "overhead"))
        return false;
    snprintf(key, 512, "%.80s %.12s %.96s %.64s %.16s %.0f %.200s", machine,
             record_text(record, "t"), id, record_text(record, "backend"),
             record_text(record, "suite"), record_value(record, "threads", 1.0),
             last ? record_text(record, "reason") : "");
    return true;
}

struct result {
    const struct run *run;
    const json_t *record;
    double place;
    size_t order;
};

static int by_place(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    if (x->place != y->place)
        return x->place > y->place ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

struct writer {
    struct runs *runs;
    json_t *merged;
    json_t *seen;  /* results by what they are of: their record, and the file it came from */
    json_t *facts; /* env, kernel, backend and model records of the section */
    size_t again;  /* results that are there twice, with the same values */
};

/* Whether it is new; where another says something else of the same, refused. */
static enum merge_status check_result(struct writer *w, const struct result *result, bool *new)
{
    char key[512];
    json_t *mine = json_copy((json_t *)result->record);
    *new = true;
    if (!mine)
        return MERGE_MEMORY;
    json_object_del(mine, "place");
    if (key_of(run_machine(result->run), mine, key)) {
        const json_t *before = json_object_get(w->seen, key);
        const json_t *record = json_array_get(before, 0);
        *new = !record;
        if (record && !json_equal(record, mine)) {
            json_decref(mine);
            return merge_refuse(w->runs,
                                "%s: %s of %s on %s differs from what %s says of it: expected "
                                "each result of a machine once",
                                result->run->input->name, record_text(record, "case"),
                                record_text(record, "backend"), run_machine(result->run),
                                json_string_value(json_array_get(before, 1)));
        }
        if (*new)
            json_object_set_new(w->seen, key,
                                json_pack("[O,s]", mine, result->run->input->name));
        w->again += !*new;
    }
    if (*new)
        json_array_append(w->merged, mine);
    json_decref(mine);
    return MERGE_FINE;
}

/* The runs of a section: all shards of one on one machine. */
static bool in_section(const struct run *first, const struct run *run)
{
    return !run->passed_over &&
           (run == first || (run->same == first->same && first->n_shards > 0 &&
                             strcmp(run_machine(run), run_machine(first)) == 0));
}

static enum merge_status write_results(struct writer *w, const struct run *first)
{
    size_t most = 1, n = 0;
    for (size_t k = 0; k < w->runs->n; k++)
        most += w->runs->run[k].end - w->runs->run[k].first;
    struct result *results = calloc(most, sizeof *results);
    if (!results)
        return MERGE_MEMORY;
    for (const struct run *run = first; run < w->runs->run + w->runs->n; run++)
        for (size_t i = run->first; in_section(first, run) && i < run->end; i++)
            if (is_result(at(run, i))) {
                const json_t *record = at(run, i);
                results[n] =
                    (struct result){ run, record, record_value(record, "place", 0.0), n };
                n++;
            }
    qsort(results, n, sizeof *results, by_place);
    enum merge_status status = MERGE_FINE;
    bool new;
    for (size_t i = 0; i < n && status == MERGE_FINE; i++)
        status = check_result(w, &results[i], &new);
    free(results);
    return status;
}

/* ---- Sections ---- */

/* What of an env record tells machines apart; the rest is measured at the beginning of each run, too. */
static json_t *identity_of(const json_t *env)
{
    static const char *const members[] = { "env_id", "cpu", "virt", "os", "build" };
    json_t *identity = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        json_object_set(identity, members[i], json_object_get(env, members[i]));
    return identity;
}

static bool is_told(const struct writer *w, json_t *fact)
{
    for (size_t i = 0; i < json_array_size(w->facts); i++)
        if (json_equal(json_array_get(w->facts, i), fact))
            return true;
    json_array_append(w->facts, fact);
    return false;
}

/* The records of a kind that say something new; of backends the shards of a run say the same. */
static enum merge_status write_facts(struct writer *w, const struct run *first,
                                     const struct run *run, const char *kind)
{
    for (size_t i = run->first; i < run->end; i++) {
        json_t *record = json_array_get(run->input->records, i);
        if (!is(record, kind))
            continue;
        json_t *fact = strcmp(kind, "env") == 0 ? identity_of(record) : json_incref(record);
        const bool told = is_told(w, fact);
        json_decref(fact);
        if (!told && run != first && strcmp(kind, "backend") == 0)
            return merge_refuse(w->runs,
                                "%s: says something else of backend %s than %s: expected "
                                "shards of one run on one kind of machine",
                                run->input->name, record_text(record, "id"),
                                first->input->name);
        if (!told)
            json_array_append(w->merged, record);
    }
    return MERGE_FINE;
}

static void write_part(struct writer *w, const struct run *run)
{
    for (size_t i = run->first; run->merged && i < run->end; i++)
        if (is(at(run, i), "part"))
            json_array_append(w->merged, json_array_get(run->input->records, i));
    if (!run->merged)
        json_array_append_new(w->merged, json_pack("{s:s,s:o,s:s,s:O,s:O}", "t", "part", "file",
                                                   record_string(run->input->name), "env_id",
                                                   run_machine(run), "header", run->header,
                                                   "footer", run->footer));
}

static enum merge_status write_section(struct writer *w, const struct run *first)
{
    static const char *const kinds[] = { "env", NULL, "kernel", "backend", "model" };
    const struct run *end = w->runs->run + w->runs->n;
    enum merge_status status = MERGE_FINE;
    json_array_clear(w->facts);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (const struct run *run = first; run < end && status == MERGE_FINE; run++) {
            if (!in_section(first, run))
                continue;
            if (kinds[k])
                status = write_facts(w, first, run, kinds[k]);
            else
                write_part(w, run);
        }
    return status == MERGE_FINE ? write_results(w, first) : status;
}

/* Machines in the order of their first runs, each with all of its sections. */
static enum merge_status write_all(struct writer *w)
{
    enum merge_status status = MERGE_FINE;
    const struct run *end = w->runs->run + w->runs->n;
    for (const struct run *machine = w->runs->run; machine < end; machine++) {
        bool again = false;
        for (const struct run *run = w->runs->run; run < machine; run++)
            again |= strcmp(run_machine(run), run_machine(machine)) == 0;
        for (const struct run *run = machine; run < end && !again && status == MERGE_FINE;
             run++) {
            bool written = run->passed_over;
            for (const struct run *before = w->runs->run; before < run; before++)
                written |= !before->passed_over && in_section(before, run);
            if (!written && strcmp(run_machine(run), run_machine(machine)) == 0)
                status = write_section(w, run);
        }
    }
    return status;
}

static void note_again(const struct writer *w, json_t *notes)
{
    char sentence[128];
    snprintf(sentence, sizeof sentence,
             "%zu results are there more than once, with the same values: each is kept once",
             w->again);
    if (w->again > 0)
        json_array_append_new(notes, json_string(sentence));
}

enum merge_status merge_records(const struct merge_input *inputs, size_t n, bool mixed,
                                json_t *header, json_t *merged, json_t *notes,
                                char error[MERGE_ERROR])
{
    struct runs runs = { .mixed = mixed, .error = error };
    struct writer w = { &runs, merged, json_object(), json_array(), 0 };
    snprintf(error, MERGE_ERROR, "no memory is left");
    enum merge_status status = merge_find_runs(inputs, n, &runs);
    if (status == MERGE_FINE)
        status = merge_check_runs(&runs, notes);
    if (status == MERGE_FINE) {
        complete_header(&runs, header);
        json_array_append(merged, header);
        status = write_all(&w);
    }
    note_again(&w, notes);
    json_decref(w.seen);
    json_decref(w.facts);
    free(runs.run);
    return status;
}
