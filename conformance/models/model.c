/*
 * Finding a model: by the name of a preset compiled in, or by the path of a config.json.
 */
#define _XOPEN_SOURCE 700
#include "conformance/problem/spelling.h"
#include "config.h"
#include "sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of physical memory, what one shape may take: checking and timing a call takes up to seven times
 * its size, for copies, references and roofs, so that half of memory is enough. */
enum { MEMORY_SHARE = 16 };

const char *model_name_at(size_t index)
{
    for (size_t i = 0; model_sources[i].name; i++)
        if (i == index)
            return model_sources[i].name;
    return NULL;
}

static void unknown(const char *name, char error[MODEL_ERROR])
{
    const char *near = NULL;
    size_t best = 0;
    for (size_t i = 0; model_name_at(i); i++) {
        size_t d = edit_distance(name, model_name_at(i));
        /* A name that begins one is nearer than any misspelling. */
        if (strncmp(name, model_name_at(i), strlen(name)) == 0)
            d = 0;
        if (!near || d < best) {
            near = model_name_at(i);
            best = d;
        }
    }
    int at = snprintf(error, MODEL_ERROR, "model '%.60s' is unknown", name);
    if (near && best <= 5)
        at += snprintf(error + at, (size_t)(MODEL_ERROR - at), "; did you mean %s?", near);
    at += snprintf(error + at, (size_t)(MODEL_ERROR - at), "  Known:");
    for (size_t i = 0; model_name_at(i) && at < MODEL_ERROR; i++)
        at += snprintf(error + at, (size_t)(MODEL_ERROR - at), "%s %s", i ? "," : "",
                       model_name_at(i));
    if (at < MODEL_ERROR)
        snprintf(error + at, (size_t)(MODEL_ERROR - at), "; or the path of a config.json");
}

void model_free(struct model *model)
{
    while (model->n_owned)
        free(model->owned[--model->n_owned]);
}

/* `where` names the source in messages. */
static int from_json(const json_t *json, const char *where, struct model *model,
                     char error[MODEL_ERROR])
{
    struct config config;
    char why[MODEL_ERROR];
    if (config_read(json, &config, model, why)) {
        snprintf(error, MODEL_ERROR, "%.200s: %.1800s", where, why);
        model_free(model);
        return -1;
    }
    config_cases(&config, model);
    return 0;
}

int model_by_name(const char *name, struct model *model, char error[MODEL_ERROR])
{
    memset(model, 0, sizeof *model);
    for (size_t i = 0; model_sources[i].name; i++) {
        if (strcmp(model_sources[i].name, name) != 0)
            continue;
        snprintf(model->name, sizeof model->name, "%s", name);
        snprintf(model->title, sizeof model->title, "%s", name);
        json_error_t where;
        json_t *json = json_loads(model_sources[i].json, 0, &where);
        if (!json) {
            snprintf(error, MODEL_ERROR, "built-in model %s, line %d: %s", name, where.line,
                     where.text);
            return -1;
        }
        int status = from_json(json, name, model, error);
        json_decref(json);
        return status;
    }
    unknown(name, error);
    return -1;
}

/* The part of `path` that names it, in `n` characters: "path/Llama-3.1-8B/config.json" ->
 * "Llama-3.1-8B"; "mine.json" -> "mine". */
static const char *stem(const char *path, size_t *n)
{
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path;
    *n = strlen(start);
    if (slash && strcmp(start, "config.json") == 0) {
        while (slash > path && slash[-1] == '/')
            slash--;
        for (start = slash; start > path && start[-1] != '/';)
            start--;
        *n = (size_t)(slash - start);
    } else if (*n > 5 && strcmp(start + *n - 5, ".json") == 0)
        *n -= 5;
    return start;
}

/* The name has the characters of an id, the title those of printable ASCII. */
static void name_of_stem(const char *start, size_t n, struct model *m)
{
    size_t i = 0;
    for (; i < n && i < 40; i++) {
        char c = start[i];
        m->title[i] = c >= ' ' && c < 0x7f ? c : '-';
        if (c >= 'A' && c <= 'Z')
            c = (char)(c + 'a' - 'A');
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                    c == '-';
        m->name[i] = good ? c : '-';
    }
    m->name[i] = m->title[i] = 0;
    if (i == 0 || m->name[0] == '.') {
        snprintf(m->name, sizeof m->name, "config");
        snprintf(m->title, sizeof m->title, "config");
    }
}

static void name_of_path(const char *path, struct model *m)
{
    size_t n;
    const char *start = stem(path, &n);
    bool here = strcmp(path, "config.json") == 0;
    if (!here && n && !(start[0] == '.' && (n == 1 || (n == 2 && start[1] == '.')))) {
        name_of_stem(start, n, m);
        return;
    }
    /* "config.json", "../config.json": the path does not spell the folder's name. */
    char folder[4096];
    int cut =
        snprintf(folder, sizeof folder, "%.*s",
                 here ? 1 : (int)(strlen(path) - strlen("config.json")), here ? "." : path);
    char *full = cut < (int)sizeof folder ? realpath(folder, NULL) : NULL;
    start = full ? strrchr(full, '/') + 1 : "";
    name_of_stem(start, strlen(start), m);
    free(full);
}

/* A shape that cannot be held would end in swap or by the kernel's hand, after minutes. */
static int fits(const struct model *m, const char *path, char error[MODEL_ERROR])
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    double limit = (double)pages * (double)page / (double)MEMORY_SHARE;
    for (size_t i = 0; pages > 0 && page > 0 && i < m->n_cases; i++) {
        double bytes = (double)problem_memory(&m->cases[i].problem);
        if (bytes <= limit)
            continue;
        snprintf(
            error, MODEL_ERROR,
            "%.120s: %s (%s) takes %.0f bytes: at most %.0f, a sixteenth of this machine's "
            "memory, is possible",
            path, m->cases[i].id, m->cases[i].label, bytes, limit);
        return -1;
    }
    return 0;
}

static json_t *parse(FILE *file, const char *path, char error[MODEL_ERROR])
{
    json_error_t where;
    json_t *json = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    if (json)
        return json;
    rewind(file);
    int c;
    while ((c = getc(file)) != EOF && c != 0)
        ;
    if (c == 0 || strstr(where.text, "JSON_ALLOW_NUL"))
        snprintf(where.text, sizeof where.text, "it holds a NUL character");
    snprintf(error, MODEL_ERROR,
             "%.200s: line %d: %s; the JSON text of a Hugging Face config.json is needed", path,
             where.line, where.text);
    return NULL;
}

int model_from_config(const char *path, struct model *model, char error[MODEL_ERROR])
{
    memset(model, 0, sizeof *model);
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(error, MODEL_ERROR,
                 "%.300s: %s; the path of a Hugging Face config.json is needed", path,
                 strerror(errno));
        return -1;
    }
    json_t *json = parse(file, path, error);
    fclose(file);
    if (!json)
        return -1;
    name_of_path(path, model);
    int status = from_json(json, path, model, error);
    json_decref(json);
    if (status == 0 && fits(model, path, error)) {
        model_free(model);
        return -1;
    }
    return status;
}

int model_load(const char *name_or_path, struct model *model, char error[MODEL_ERROR])
{
    size_t n = strlen(name_or_path);
    bool path =
        strchr(name_or_path, '/') || (n > 5 && strcmp(name_or_path + n - 5, ".json") == 0);
    return path ? model_from_config(name_or_path, model, error)
                : model_by_name(name_or_path, model, error);
}
