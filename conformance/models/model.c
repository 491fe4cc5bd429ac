/*
 * Finding a model: by the name of a preset compiled in, or by the path of a config.json.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"
#include "sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *model_name_at(size_t index)
{
    for (size_t i = 0; model_sources[i].name; i++)
        if (i == index)
            return model_sources[i].name;
    return NULL;
}

/* Edits (insertions, deletions, substitutions) between two names, both cut to 47 characters. */
static int distance(const char *a, const char *b)
{
    int row[49];
    int n = (int)strnlen(b, 47);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; i < 48 && a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int replace = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = replace < step ? replace : step;
        }
    }
    return row[n];
}

static void unknown(const char *name, char error[MODEL_ERROR])
{
    const char *near = NULL;
    int best = 0;
    for (size_t i = 0; model_name_at(i); i++) {
        int d = distance(name, model_name_at(i));
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

/* `where` names the source in messages. */
static int from_json(const json_t *json, const char *where, struct model *model,
                     char error[MODEL_ERROR])
{
    struct config config;
    char why[MODEL_ERROR];
    if (config_read(json, &config, model, why)) {
        snprintf(error, MODEL_ERROR, "%.120s: %.380s", where, why);
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

/* "path/Llama-3.1-8B/config.json" -> "llama-3.1-8b"; "mine.json" -> "mine". */
static void name_of_path(const char *path, char *name, size_t bytes)
{
    const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path, *end;
    if (strcmp(start, "config.json") == 0 && slash > path) {
        end = slash;
        for (start = slash; start > path && start[-1] != '/'; start--)
            ;
    } else {
        end = strrchr(start, '.');
        end = end && end > start ? end : start + strlen(start);
    }
    size_t n = 0;
    for (; start < end && n + 1 < bytes && n < 40; start++) {
        char c = *start;
        if (c >= 'A' && c <= 'Z')
            c = (char)(c + 'a' - 'A');
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                    c == '-';
        name[n++] = good ? c : '-';
    }
    name[n] = 0;
    if (n == 0 || name[0] == '.')
        snprintf(name, bytes, "config");
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
    json_error_t where;
    json_t *json = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    if (!json) {
        snprintf(error, MODEL_ERROR,
                 "%.200s: line %d: %s; a Hugging Face config.json is needed", path, where.line,
                 where.text);
        return -1;
    }
    name_of_path(path, model->name, sizeof model->name);
    int status = from_json(json, path, model, error);
    json_decref(json);
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
