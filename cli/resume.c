/*
 * What a run that was stopped left, for another that goes on (see resume.h).
 */
#define _GNU_SOURCE
#include "resume.h"
#include "journal.h"
#include "base/records.h"
#include "base/text/text.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Which file ---- */

/* The newest of the partial folders of a report that was killed; NULL: there is none. */
static char *partial_of_folder(const char *folder)
{
    char *pattern = NULL, *path = NULL;
    glob_t found = { 0 };
    struct stat newest = { 0 }, one;
    const size_t n = strlen(folder);
    const int length = (int)(n > 1 && folder[n - 1] == '/' ? n - 1 : n);
    if (asprintf(&pattern, "%.*s.partial-*/results.jsonl", length, folder) < 0)
        return NULL;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            if (stat(found.gl_pathv[i], &one) == 0 &&
                (!path || one.st_mtime > newest.st_mtime)) {
                free(path);
                path = strdup(found.gl_pathv[i]);
                newest = one;
            }
        }
        globfree(&found);
    }
    free(pattern);
    return path;
}

/* What there is to go on from; NULL: nothing. */
static char *find_file(const char *name)
{
    struct stat there;
    char *path = partial_of_folder(name);
    if (path)
        return path;
    if (asprintf(&path, "%s.partial", name) < 0)
        return NULL;
    if (stat(path, &there) == 0 && S_ISREG(there.st_mode))
        return path;
    free(path);
    if (stat(name, &there) != 0)
        return NULL;
    if (!S_ISDIR(there.st_mode))
        return strdup(name);
    return asprintf(&path, "%s/results.jsonl", name) < 0 ? NULL : path;
}

int resume_read(const struct cli *cli, struct resume *resume)
{
    char error[RECORDS_ERROR];
    if (!cli->resume || resume->sought)
        return EXIT_FINE;
    resume->sought = true;
    resume->path = find_file(cli->resume);
    if (!resume->path) {
        text_print(stderr, "posenc %s: --resume: %s is not there yet: everything is run\n",
                   cli->command, cli->resume);
        return EXIT_FINE;
    }
    if (journal_is_written(resume->path))
        return cli_refuse(cli, "--resume", resume->path,
                          "a run is writing it now: expected one that has ended");
    resume->records = json_array();
    if (records_load(resume->path, resume->records, error) != 0)
        return cli_refuse(cli, "--resume", NULL, "%s", error);
    return EXIT_FINE;
}

void resume_free(struct resume *resume)
{
    free(resume->path);
    json_decref(resume->records);
    json_decref(resume->kept);
    *resume = (struct resume){ 0 };
}

/* ---- Whether it is of this run ---- */

static int refuse(const struct cli *cli, const struct resume *resume, const char *what,
                  const json_t *there, const json_t *here)
{
    char then[128], now[128];
    record_show(there, then, sizeof then);
    record_show(here, now, sizeof now);
    return cli_refuse(
        cli, "--resume", resume->path,
        "its %s is %s, that of this run %s: expected the same command on the same "
        "machine, or no --resume",
        what, then, now);
}

/* Options of the one and of the other. */
static int check_options(const struct cli *cli, const struct resume *resume,
                         const json_t *header, const json_t *mine)
{
    const json_t *sets[] = { json_object_get(header, "options"),
                             json_object_get(mine, "options") };
    char what[96];
    for (int s = 0; s < 2; s++) {
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)sets[s], name, value)
        {
            snprintf(what, sizeof what, "--%s", name);
            if (records_differ(json_object_get(sets[0], name), json_object_get(sets[1], name)))
                return refuse(cli, resume, what, json_object_get(sets[0], name),
                              json_object_get(sets[1], name));
        }
    }
    return EXIT_FINE;
}

/* The rows of `facts`: a member, or a member of one, and what a reader calls it. */
struct fact {
    const char *outer, *inner, *name;
};

static const json_t *fact_of(const json_t *record, const struct fact *fact)
{
    const json_t *outer = json_object_get(record, fact->outer);
    return *fact->inner ? json_object_get(outer, fact->inner) : outer;
}

static int check_facts(const struct cli *cli, const struct resume *resume, const json_t *then,
                       const json_t *now, const struct fact *facts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *a = fact_of(then, &facts[i]), *b = fact_of(now, &facts[i]);
        const bool known = strcmp(facts[i].inner, "code") != 0 || (a && b);
        if (known && records_differ(a, b))
            return refuse(cli, resume, facts[i].name, a, b);
    }
    return EXIT_FINE;
}

static const json_t *first_of(const json_t *records, const char *kind, size_t *n)
{
    const json_t *first = NULL;
    *n = 0;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        if (strcmp(record_text(record, "t"), kind) == 0 && (*n)++ == 0)
            first = record;
    }
    return first;
}

static int check(const struct cli *cli, const struct resume *resume, const json_t *header,
                 const json_t *env)
{
    static const struct fact of_header[] = {
        { "command", "", "command" },       { "tool", "version", "version of posenc" },
        { "tool", "commit", "commit" },     { "tool", "code", "machine code" },
        { "vectors", "sha256", "vectors" }, { "mode", "", "mode" },
        { "shard", "", "--shard" },         { "seed", "", "--seed" },
    };
    static const struct fact of_env[] = {
        { "env_id", "", "CPU" },
        { "cpu", "features", "list of CPU features" },
        { "build", "", "build" },
    };
    size_t headers, envs;
    const json_t *then = first_of(resume->records, "header", &headers),
                 *machine = first_of(resume->records, "env", &envs);
    if (headers != 1 || envs != 1)
        return cli_refuse(cli, "--resume", resume->path,
                          "holds %zu runs on %zu machines: expected one, on one", headers,
                          envs);
    if (check_facts(cli, resume, then, header, of_header,
                    sizeof of_header / sizeof *of_header) != EXIT_FINE ||
        check_options(cli, resume, then, header) != EXIT_FINE)
        return EXIT_USAGE;
    return check_facts(cli, resume, machine, env, of_env, sizeof of_env / sizeof *of_env);
}

/* ---- What is kept ---- */

static void key_of(const char *kind, const char *id, const char *backend, char key[256])
{
    snprintf(key, 256, "%.16s %.128s %.96s", kind, id, backend);
}

/* A bench case is kept whole. */
static bool is_finished(const json_t *records, const json_t *record, size_t backends)
{
    const char *kind = record_text(record, "t"), *id = record_text(record, "case");
    if (strcmp(kind, "bench") != 0)
        return strcmp(kind, "conf") == 0 || strcmp(kind, "overhead") == 0;
    size_t rows = 0;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *other = json_array_get(records, i);
        rows += strcmp(record_text(other, "t"), kind) == 0 &&
                strcmp(record_text(other, "case"), id) == 0;
    }
    return rows == backends;
}

int resume_accept(const struct cli *cli, struct resume *resume, json_t *header,
                  const json_t *env, size_t backends)
{
    if (!resume->path)
        return EXIT_FINE;
    if (check(cli, resume, header, env) != EXIT_FINE)
        return EXIT_USAGE;
    resume->kept = json_object();
    for (size_t i = 0; i < json_array_size(resume->records); i++) {
        json_t *record = json_array_get(resume->records, i);
        char key[256];
        key_of(record_text(record, "t"), record_text(record, "case"),
               record_text(record, "backend"), key);
        if (is_finished(resume->records, record, backends))
            json_object_set(resume->kept, key, record);
    }
    size_t headers;
    const json_t *then = first_of(resume->records, "header", &headers);
    json_t *before = json_copy(json_object_get(then, "resumed"));
    json_t *list = before ? before : json_array();
    json_array_append_new(list,
                          json_pack("{s:s,s:s,s:I}", "run_id", record_text(then, "run_id"),
                                    "started", record_text(then, "started"), "kept",
                                    (json_int_t)json_object_size(resume->kept)));
    text_print(stderr, "posenc %s: %zu results of %s are kept\n", cli->command,
               json_object_size(resume->kept), resume->path);
    return json_object_set_new(header, "resumed", list) == 0
               ? EXIT_FINE
               : cli_refuse(cli, "memory", NULL, "none left");
}

json_t *resume_take(const struct resume *resume, const char *kind, const char *id,
                    const char *backend)
{
    char key[256];
    key_of(kind, id, backend, key);
    return json_object_get(resume->kept, key);
}

void resume_each(const struct resume *resume, void (*keep)(void *user, json_t *record),
                 void *user)
{
    const char *key;
    json_t *record;
    json_object_foreach(resume->kept, key, record) keep(user, record);
}
