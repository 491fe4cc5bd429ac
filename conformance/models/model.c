/*
 * Finding a model: by the name of a preset compiled in, or by the path of a config.json.
 */
#define _XOPEN_SOURCE 700
#include "conformance/problem/cost.h"
#include "conformance/problem/fields.h"
#include "config.h"
#include "gguf.h"
#include "base/text/text.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct source {
    const char *name, *json;
} sources[] = {
#include "sources.inc"
};
enum { N_SOURCES = sizeof sources / sizeof *sources };

const char *model_name_at(size_t index)
{
    return index < N_SOURCES ? sources[index].name : NULL;
}

static int refuse_name(const char *name, char error[MODEL_ERROR])
{
    const char *near = NULL;
    char known[MODEL_ERROR / 2] = "";
    size_t best = 6, at = 0;
    for (const struct source *s = sources; s < sources + N_SOURCES; s++) {
        /* A name that begins one is nearer than any misspelling. */
        const bool begins = strncmp(name, s->name, strlen(name)) == 0;
        const size_t d = begins ? 0 : edit_distance(name, s->name);
        near = d < best ? s->name : near;
        best = d < best ? d : best;
        at = append(known, sizeof known, at, "%s %s", at ? "," : "", s->name);
    }
    snprintf(error, MODEL_ERROR,
             "model '%.60s' is unknown%s%s%s  Known:%s; or the path of a config.json", name,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : ".", known);
    return -1;
}

void model_free(struct model *model)
{
    while (model->n_owned)
        free(model->owned[--model->n_owned]);
}

/* From the stem of a path: the name in characters of an id, the title in printable ASCII. */
static void set_names(const char *stem, struct model *m)
{
    size_t i = 0;
    for (; stem[i] && i < 40; i++) {
        const char c = stem[i];
        const bool upper = c >= 'A' && c <= 'Z',
                   good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr("._-", c);
        m->title[i] = c >= ' ' && c < 0x7f ? c : '-';
        m->name[i] = upper ? (char)(c + 'a' - 'A') : good ? c : '-';
    }
    m->name[i] = m->title[i] = '\0';
    if (i == 0 || m->name[0] == '.') {
        snprintf(m->name, sizeof m->name, "config");
        snprintf(m->title, sizeof m->title, "config");
    }
}

/* Of a folder in the hub's local cache, "models--org--name/snapshots/COMMIT", the name. */
static char *name_of_folder(char *folder)
{
    char *stem = basename(folder), *snapshots = strstr(folder, "/snapshots"), *name;
    if (!snapshots)
        return stem;
    *snapshots = '\0';
    name = strrchr(folder, '/');
    name = name ? name + 1 : folder;
    if (strncmp(name, "models--", 8) != 0)
        return stem;
    char *after = strstr(name + 8, "--");
    return after ? after + 2 : name + 8;
}

static bool cut_end(char *stem, const char *end)
{
    const size_t n = strlen(stem), m = strlen(end);
    const bool cut = n > m && strcmp(stem + n - m, end) == 0;
    if (cut)
        stem[n - m] = '\0';
    return cut;
}

/* "path/Llama-3.1-8B/config.json" is Llama-3.1-8B, "mine.json" mine; of "config.json" and
 * "../config.json" the folder's name is looked up, as the path does not spell it. */
static void name_of_path(const char *path, struct model *m)
{
    char copy[PATH_MAX], *full = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    char *stem = basename(copy);
    if (lists("config.json params.json", stem)) {
        char *folder = dirname(copy);
        stem = name_of_folder(folder);
        if (*stem == '.' || *stem == '/') {
            full = realpath(folder, NULL);
            stem = full ? strrchr(full, '/') + 1 : NULL;
        }
    } else if (!cut_end(stem, ".json"))
        cut_end(stem, ".gguf");
    set_names(stem ? stem : "", m);
    free(full);
}

static json_t *parse(FILE *file, const char *path, char error[MODEL_ERROR])
{
    json_error_t where;
    json_t *json = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    if (json)
        return json;
    rewind(file); /* what jansson says of a NUL is no help */
    int c;
    while ((c = getc(file)) != EOF && c != 0)
        ;
    if (c == 0 || strstr(where.text, "JSON_ALLOW_NUL"))
        snprintf(where.text, sizeof where.text, "it holds a NUL character");
    snprintf(
        error, MODEL_ERROR,
        "%.200s: line %d: %s; the JSON text of a Hugging Face config.json or of a params.json, "
        "or a GGUF file, is needed",
        path, where.line, where.text);
    return NULL;
}

/* Why the file at `path` is refused, cut between characters. */
static void say_where(const char *path, const char *why, char error[MODEL_ERROR])
{
    char sentence[2 * MODEL_ERROR];
    snprintf(sentence, sizeof sentence, "%.200s: %s", path, why);
    text_plain(sentence, error, MODEL_ERROR);
}

static int read_json(FILE *file, const char *path, struct config *config, struct model *model,
                     char error[MODEL_ERROR])
{
    json_t *json = parse(file, path, error);
    char why[MODEL_ERROR];
    if (!json)
        return -1;
    const int status =
        (config_is_params(json) ? config_params : config_read)(json, config, model, why);
    json_decref(json);
    if (status)
        say_where(path, why, error);
    return status;
}

static int read_gguf(FILE *file, const char *path, struct config *config, struct model *model,
                     char error[MODEL_ERROR])
{
    char why[MODEL_ERROR];
    json_t *json = gguf_read(file, why);
    const int status = json ? config_gguf(json, config, model, why) : -1;
    json_decref(json);
    if (status)
        say_where(path, why, error);
    return status;
}

/* `path` names the source in messages, and the model where nothing else does. */
static int read_model(FILE *file, const char *path, struct config *config, struct model *model,
                      char error[MODEL_ERROR])
{
    memset(model, 0, sizeof *model);
    name_of_path(path, model);
    const int status =
        (gguf_begins(file) ? read_gguf : read_json)(file, path, config, model, error);
    if (status)
        model_free(model);
    else
        config_cases(config, model);
    return status;
}

/* A shape that cannot be held would end in swap, or killed by the system, after minutes. */
static int check_memory(const struct model *m, const char *path, char error[MODEL_ERROR])
{
    const struct problem_limits limits = problem_limits_here();
    for (size_t i = 0; i < m->n_cases + m->n_verify; i++) {
        const bool timed = i < m->n_cases;
        const struct problem *p = timed ? &m->cases[i].problem : &m->verify[i - m->n_cases];
        const double bytes = problem_demand(p);
        if (bytes <= limits.bytes)
            continue;
        snprintf(error, MODEL_ERROR,
                 "%.120s: %s (%s) takes %.0f bytes: at most %.0f, %s, is possible", path,
                 timed ? m->cases[i].id : posenc_kernel_name(p->kernel),
                 timed ? m->cases[i].label : "a shape that is checked", bytes, limits.bytes,
                 limits.whom);
        return -1;
    }
    return 0;
}

static int read_file(FILE *file, const char *path, struct config *config, struct model *model,
                     char error[MODEL_ERROR])
{
    if (read_model(file, path, config, model, error))
        return -1;
    if (check_memory(model, path, error) == 0)
        return 0;
    model_free(model);
    return -1;
}

int model_from_file(FILE *file, const char *path, struct model *model, char error[MODEL_ERROR])
{
    struct config config;
    return read_file(file, path, &config, model, error);
}

int model_load(const char *name_or_path, struct model *model, char error[MODEL_ERROR])
{
    struct config config;
    return model_read(name_or_path, &config, model, error);
}

int model_read(const char *name_or_path, struct config *config, struct model *model,
               char error[MODEL_ERROR])
{
    const struct source *s = sources;
    const size_t n = strlen(name_or_path);
    const bool path =
        strchr(name_or_path, '/') || (n > 5 && strcmp(name_or_path + n - 5, ".json") == 0);
    while (s < sources + N_SOURCES && strcmp(s->name, name_or_path) != 0)
        s++;
    memset(model, 0, sizeof *model);
    if (!path && s == sources + N_SOURCES)
        return refuse_name(name_or_path, error);
    FILE *file =
        path ? fopen(name_or_path, "r") : fmemopen((char *)s->json, strlen(s->json), "r");
    if (!file) {
        snprintf(error, MODEL_ERROR,
                 "%.300s: %s; the path of a Hugging Face config.json, a params.json or a GGUF "
                 "file is "
                 "needed",
                 name_or_path, strerror(errno));
        return -1;
    }
    int status = (path ? read_file : read_model)(file, name_or_path, config, model, error);
    fclose(file);
    return status;
}
