/*
 * Histories of runs that were made up: order, machines apart, means, changes of level, errors; and what is shown of them.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/tap/tap.h"
#include "reports/history.h"
#include "reports/sparkline.h"
#include "reports/statistics/changepoints.h"
#include "rendered.h"
#include "fed.h"

#include <math.h>

enum { RUNS = 24, MOST_FILES = 40 };

static char paths[MOST_FILES][16];
static struct history_file files[MOST_FILES];
static size_t n_files;

/* The results of a run: its commit and day, and two cases of one backend at that share of the roof. */
static json_t *add_run(const char *key, const char *type, const char *commit, int day,
                       double roof, double error)
{
    static const char *const backends[] = { "avx2", NULL };
    json_t *records = fed_run("alibi", backends);
    char started[32];
    snprintf(started, sizeof started, "2026-11-%02dT10:00:00Z", day);
    json_t *header = json_array_get(records, 0), *env = json_array_get(records, 1);
    json_object_set_new(header, "started", json_string(started));
    json_object_set_new(header, "tool", json_pack("{s:s,s:b}", "commit", commit, "dirty", 0));
    json_object_set_new(env, "env_id", json_string(key));
    json_object_set_new(env, "build", json_pack("{s:s}", "type", type));
    feed_time(records, "alibi", "decode", (struct fed_time){ "avx2", 10.0, 1.0, 0.5, roof });
    feed_time(records, "alibi", "prefill",
              (struct fed_time){ "avx2", 20.0, 1.0, 0.5, 0.5 * roof });
    feed_error(records, "alibi", "given",
               (struct fed_error){ "avx2", "far", "ulp", error, 1.0 });
    snprintf(paths[n_files], sizeof *paths, "r%zu.jsonl", n_files);
    files[n_files] = (struct history_file){ paths[n_files], records };
    n_files++;
    return records;
}

static void forget(void)
{
    for (size_t i = 0; i < n_files; i++)
        json_decref((json_t *)files[i].records);
    n_files = 0;
}

/* 24 runs, of which the last 8 are 10 % slower and err more, given in an order of their own. */
static void feed_step(void)
{
    for (int i = 0; i < RUNS; i++) {
        const int run = i * 7 % RUNS;
        char commit[16];
        snprintf(commit, sizeof commit, "%07x00000", 0xabc0000 + run);
        add_run("paper", "release", commit, run + 1,
                (run < 16 ? 0.8 : 0.72) * (1.0 + 0.001 * (run * 5 % 7)), run < 10 ? 0.5 : 0.75);
    }
}

static struct history make(const struct history_wanted *wanted)
{
    static const struct history_wanted all;
    struct history history = { 0 };
    if (history_make(files, n_files, wanted ? wanted : &all, &history) != 0)
        require(false, "there is memory");
    return history;
}

static const json_t *find(const struct history *h, const char *what, const char *id)
{
    size_t i;
    json_t *one;
    json_array_foreach(h->records, i,
                       one) if (strcmp(record_text(one, "what"), what) == 0 &&
                                strcmp(record_text(one, "case"), id) == 0) return one;
    return NULL;
}

static size_t kinds(const struct history *h, const char *kind)
{
    size_t i, n = 0;
    json_t *one;
    json_array_foreach(h->records, i, one) n += strcmp(record_text(one, "t"), kind) == 0;
    return n;
}

static size_t length(const json_t *history, const char *member)
{
    return json_array_size(json_object_get(history, member));
}

static const char *const decode = "alibi/f32/given/decode";

static void steps(void)
{
    feed_step();
    struct history h = make(NULL);
    const json_t *one = find(&h, "roof", decode),
                 *change = json_array_get(json_object_get(one, "changes"), 0);
    require(length(one, "points") == RUNS, "a point a run");
    require(strncmp(record_text(json_array_get(json_object_get(one, "points"), 3), "commit"),
                    "abc0003", 7) == 0,
            "in the order of the clock, whatever that of the files");
    require(length(one, "changes") == 1 && record_value(change, "at", 0.0) == 16.0,
            "one change of level, at its run");
    require(fabs(record_value(change, "change", 0.0) + 0.1) < 0.01, "of its size");
    one = find(&h, "mean", "");
    require(one && record_value(one, "cases", 0.0) == 2.0, "a mean of both cases");
    const double mean =
        record_value(json_array_get(json_object_get(one, "points"), 0), "roof", 0.0);
    require(fabs(mean - 0.8 * sqrt(0.5)) < 1e-9, "which is the geometric one");
    one = find(&h, "error", "alibi/f32/given/far");
    require(length(one, "points") == 2 &&
                record_value(json_array_get(json_object_get(one, "points"), 1), "run", 0.0) ==
                    10.0,
            "an error: what it was, and since when it is another");
    history_free(&h);
}

static void orders(void)
{
    json_t *commits = json_array();
    for (int run = RUNS - 1; run >= 1; run--) /* backwards, and one is not in it */
        json_array_append_new(commits, json_sprintf("%07x00000ffffffffff", 0xabc0000 + run));
    struct history h = make(&(struct history_wanted){ .commits = commits });
    const json_t *one = find(&h, "roof", decode);
    require(
        length(one, "points") == RUNS - 1 &&
            strncmp(record_text(json_array_get(json_object_get(one, "points"), 0), "commit"),
                    "abc0017", 7) == 0,
        "a list of commits is the order");
    require(json_array_size(h.left_out) == 1, "a run that it has not is left out, by name");
    history_free(&h);
    json_decref(commits);
}

static void machines(void)
{
    add_run("other", "release", "1111111", 3, 0.1, 0.5);
    add_run("paper", "debug", "2222222", 4, 0.01, 0.5);
    struct history h = make(NULL);
    require(kinds(&h, "env") == 3 && kinds(&h, "runs") == 3,
            "another machine has a history of its own, and so has another type of build");
    size_t i, mixed = 0;
    json_t *one;
    json_array_foreach(h.records, i, one) mixed += length(one, "points") > RUNS;
    require(mixed == 0, "which are not mixed");
    history_free(&h);
}

static void names(void)
{
    static const char *const pattern[] = { "*decode" }, *const nobody[] = { "sse*" };
    struct history h = make(&(struct history_wanted){ .cases = { 1, pattern } });
    require(find(&h, "roof", decode) && !find(&h, "roof", "alibi/f32/given/prefill") &&
                !find(&h, "error", "alibi/f32/given/far") && !find(&h, "mean", ""),
            "cases by pattern");
    history_free(&h);
    h = make(&(struct history_wanted){ .backend = { 1, nobody } });
    require(h.results == 0 && json_array_size(h.left_out) == n_files, "nothing of nobody");
    history_free(&h);
    forget();
}

/* A report with its lines joined; to be freed. */
static char *flat(const json_t *records)
{
    char *text = rendered("console", records, 100);
    for (char *end; text && (end = strstr(text, "\n  "));)
        memmove(end, end + 2, strlen(end + 2) + 1);
    return text;
}

/* What a report makes of it, on a terminal. */
static void shown(void)
{
    feed_step();
    struct history h = make(NULL);
    char *text = flat(h.records);
    require(contains(text, "alibi/f32/given/decode avx2: between abc000f and abc0010: 0.80 "
                           "-> 0.72 of the roof (-9 %), p < 0.001"),
            "a change is told by the runs around it");
    require(contains(text, "no gate"), "and that this is no gate");
    require(contains(text, "0.50 ulp") && contains(text, "0.75 ulp") && contains(text, "worse"),
            "errors stand beside");
    require(contains(text, "▆▆▆") && contains(text, "▃▃▃"), "with a line of the runs");
    free(text);
    text = rendered("html", h.records, 0);
    require(contains(text, "<svg") && contains(text, "stroke-dasharray"),
            "a page has pictures, with the change in them");
    free(text);
    history_free(&h);
    forget();
    for (int day = 1; day <= 13; day++)
        add_run("paper", "release", "", day, day < 7 ? 0.8 : 0.4, 0.5);
    h = make(NULL);
    text = flat(h.records);
    require(contains(text, "fewer than 14 runs") && !contains(text, "of the roof ("),
            "13 runs are too few, and that is said");
    require(contains(text, "from 2026-11-01 to 2026-11-13"),
            "without a commit a run is named by its day");
    free(text);
    history_free(&h);
    forget();
}

static void sparks(void)
{
    json_t *history =
        json_pack("{s:[{s:f},{s:f},{s:f}]}", "points", "roof", 0.5, "roof", 0.75, "roof", 1.0);
    char text[SPARKLINE];
    sparkline(history, text);
    require(strcmp(text, "▁▅█") == 0, "a character a run, from least to most");
    json_decref(history);
    history = json_pack("{s:[{s:f},{s:f}]}", "points", "roof", 0.5, "roof", 0.5);
    sparkline(history, text);
    require(strcmp(text, "▅▅") == 0, "what stays the same stays in the middle");
    json_decref(history);
    history = json_pack("{s:[]}", "points");
    sparkline(history, text);
    require(*text == 0, "nothing is no line");
    json_decref(history);
}

int main(void)
{
    steps();
    orders();
    machines();
    names();
    shown();
    sparks();
    return tap_end();
}
