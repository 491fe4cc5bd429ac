/* Loads models and prints notes about them (see models.h). */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "conformance/problem/notation.h"
#include "external.h"
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Has Python read a model file, which prints its own messages. */
static int read_config(const struct cli *cli, const char *path, struct model *model)
{
    char error[MODEL_ERROR];
    const char *argv[] = { NULL, "--record", "--for", cli->command, "--config", path, NULL };
    char *record = external_read(cli, "--config", "explain", argv);
    if (!record)
        return EXIT_USAGE;
    const int status = model_from_record(record, model, error);
    free(record);
    return status ? cli_reject(cli, "--config", path, "%s", error) : EXIT_OK;
}

static int read_preset(const struct cli *cli, const char *name, struct model *model)
{
    char error[MODEL_ERROR];
    return model_load(name, model, error) ? cli_reject(cli, "--model", NULL, "%s", error)
                                          : EXIT_OK;
}

int models_read(const struct cli *cli, const char *name, struct model *model)
{
    memset(model, 0, sizeof *model);
    if ((strchr(name, '/') ? read_config : read_preset)(cli, name, model) != EXIT_OK)
        return EXIT_USAGE;
    const char *notes[] = { model->notes, model->trained };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (*notes[i])
            cli_print_note("%s: %s\n", model->name, notes[i]);
    return EXIT_OK;
}

const char *models_describe_dtype(const struct model *model, const struct selection *selection,
                                  char text[128])
{
    const char *own = dtype_names[model->storage];
    char named[32] = "";
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        if (selection->any_dtype && selection->dtypes[dtype])
            text_list_add(named, sizeof named, ", ", dtype_names[dtype]);
    if (*model->storage_from == '\0')
        *text = '\0';
    else if (selection->any_dtype)
        snprintf(text, 128, "storage %s, from --dtype, where the config's %s has %s", named,
                 model->storage_from, own);
    else
        snprintf(text, 128, "storage %s, from the config's %s", own, model->storage_from);
    return text;
}

/* ---- Calls of all presets ---- */

enum { LONGEST_LINE = 16384 };

/* Returns the line of a call, to be freed, or NULL without memory. */
static char *print_line(const struct problem *p)
{
    char line[LONGEST_LINE];
    notation_print(p, NULL, line, sizeof line);
    return strdup(line);
}

/* Adds a call unless an equal one is present. */
static bool add_call(struct presets *presets, char **lines, const struct problem *p)
{
    char *line = print_line(p);
    for (size_t i = 0; line && i < presets->n; i++) {
        if (strcmp(lines[i], line) == 0) {
            free(line);
            return true;
        }
    }
    presets->problems[presets->n] = *p;
    lines[presets->n] = line;
    presets->n += line != NULL;
    return line != NULL;
}

static bool add_calls(struct presets *presets, char **lines, const struct model *m)
{
    bool added = true;
    for (size_t i = 0; i < m->n_cases && added; i++)
        added = add_call(presets, lines, &m->cases[i].problem);
    for (size_t i = 0; i < m->n_verify && added; i++)
        added = add_call(presets, lines, &m->verify[i]);
    return added;
}

bool presets_load(struct presets *presets)
{
    char error[MODEL_ERROR];
    size_t n = 0;
    while (model_name_at(n))
        n++;
    char **lines = calloc(2 * n * MODEL_MAX_CASES, sizeof *lines);
    *presets =
        (struct presets){ .problems = calloc(2 * n * MODEL_MAX_CASES, sizeof(struct problem)),
                          .models = calloc(n, sizeof(struct model)) };
    bool loaded = lines && presets->problems && presets->models;
    for (size_t i = 0; i < n && loaded; i++) {
        struct model *model = &presets->models[presets->n_models];
        if (model_load(model_name_at(i), model, error) != 0) {
            text_print(stderr, "skipped the calls of %s: %s\n", model_name_at(i), error);
            continue;
        }
        presets->n_models++;
        loaded = add_calls(presets, lines, model);
    }
    for (size_t i = 0; lines && i < presets->n; i++)
        free(lines[i]);
    free(lines);
    return loaded;
}

void presets_free(struct presets *presets)
{
    for (size_t i = 0; i < presets->n_models; i++)
        model_free(&presets->models[i]);
    free(presets->models);
    free(presets->problems);
    *presets = (struct presets){ .n = 0 };
}
