/* Reads --problem, --model and --config, and finds the calls of models that a line changes (see problem.h). */
#define _POSIX_C_SOURCE 200809L
#include "problem.h"
#include "base/text/text.h"
#include "conformance/engine/judge.h"
#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *problem_print_line(const struct problem *problem)
{
    char none[1];
    const size_t room = notation_print(problem, NULL, none, sizeof none) + 1;
    char *line = cli_allocate(1, room);
    notation_print(problem, NULL, line, room);
    return line;
}

/* ---- Models ---- */

/* Has posenc-explain, in Python, read a model file and print its own messages. */
static void read_config(const struct cli *cli, const char *path, struct model *model)
{
    char error[MODEL_ERROR];
    const char *argv[] = { NULL, "--record", "--for", cli->command, "--config", path, NULL };
    char *record = external_read("--config", "explain", argv);
    if (model_from_record(record, model, error) != 0)
        cli_reject("--config", path, "%s", error);
    free(record);
}

void models_read(const struct cli *cli, const char *name, struct model *model)
{
    char error[MODEL_ERROR];
    memset(model, 0, sizeof *model);
    if (strchr(name, '/'))
        read_config(cli, name, model);
    else if (model_load(name, model, error) != 0)
        cli_reject("--model", NULL, "%s", error);
    const char *notes[] = { model->notes, model->trained };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (*notes[i])
            cli_print_note("%s: %s\n", model->name, notes[i]);
}

const char *models_describe_dtype(const struct model *model, const struct selection *selection,
                                  char text[128])
{
    const char *own = dtype_names[model->storage];
    char named[32] = "";
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        if (selection->names_dtypes && selection->dtypes[dtype])
            text_list_add(named, sizeof named, ", ", dtype_names[dtype]);
    if (*model->storage_from == '\0')
        *text = '\0';
    else if (selection->names_dtypes)
        snprintf(text, 128, "storage %s, from --dtype, where the config's %s has %s", named,
                 model->storage_from, own);
    else
        snprintf(text, 128, "storage %s, from the config's %s", own, model->storage_from);
    return text;
}

/* ---- --problem ---- */

/* Limit of the oracle, which takes about a microsecond for a value. */
static const double MOST_VALUES = 1 << 26;

void problem_check_cost(const struct problem *problem, bool checked)
{
    char error[NOTATION_ERROR];
    struct problem_limits limits = problem_limits_here();
    limits.values = checked ? MOST_VALUES : 0.0;
    if (!problem_within(problem, &limits, error))
        cli_reject("--problem", NULL, "%s", error);
}

void problem_reject_empty(const struct cli *cli, const struct problem *problem)
{
    cli_reject("--problem", cli->problem, "has no element: expected %s above 0",
               kernel_on_scores(problem->kernel) ? "heads, queries and keys"
                                                 : "batch and tokens");
}

void problem_read_option(const struct cli *cli, struct problem_line *line, struct arena *arena)
{
    char error[NOTATION_ERROR];
    struct call call;
    cli_check_options_with(cli, WITH_PROBLEM, "--problem");
    if (!notation_read(cli->problem, line, arena, error))
        cli_reject("--problem", NULL, "%s", error);
    problem_check_cost(&line->problem, strcmp(cli->command, "bench") != 0);
    const enum posenc_status status =
        call_create(&call, &line->problem, &tensor_allocator_default);
    if (status != POSENC_OK)
        cli_reject_status("--problem", status, &call.error);
    const bool is_empty = call.outputs[0].rows < 1 || call.outputs[0].width < 1;
    call_destroy(&call);
    if (is_empty)
        problem_reject_empty(cli, &line->problem);
}

void problem_id(const struct problem *problem, const char *name, char *id, size_t size)
{
    snprintf(id, size, "%s/%s/%s/%s", posenc_kernel_name(problem->kernel),
             dtype_names[problem->dtype], problem_numerics_name(problem), name);
}

/* ---- Calls of models ---- */

/* Returns the type of layers of a call for --layer-type: "text" if the model names none. */
static const char *layers_name(const struct model_case *one)
{
    return *one->layers ? one->layers : "text"; /* as opposed to "vision" */
}

/* Returns a problem with the frequencies and layout of a call, and defaults for numerics mode, length and positions. */
static struct problem keep_frequencies(const struct problem *call)
{
    struct problem result = problem_blank(call->kernel);
    result.freqs = call->freqs;
    result.layout = call->layout;
    result.freqs.numerics = POSENC_NUMERICS_EXACT;
    result.freqs.seq_len = 0;
    return result;
}

/* Returns the first call of a kernel in layers of --layer-type, or of all layers; NULL if there is none. Without that
 * option, prints a note if there are several types. */
static const struct model_case *find_call(const struct cli *cli, const struct model *model,
                                          enum posenc_kernel kernel)
{
    const struct model_case *first[MODEL_MAX_PARTS];
    const char *names[MODEL_MAX_PARTS];
    char list[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < model->n_cases && n < MODEL_MAX_PARTS; i++) {
        const char *name = layers_name(&model->cases[i]);
        size_t same = 0;
        while (same < n && strcmp(names[same], name) != 0)
            same++;
        if (model->cases[i].problem.kernel != kernel || same < n)
            continue;
        first[n] = &model->cases[i];
        text_list_add(list, sizeof list, " and ", name);
        names[n++] = name;
    }
    if (n > 0 && cli->layer_type)
        return first[cli_find_name("--layer-type", cli->layer_type, names, n)];
    if (n > 1)
        cli_print_note("%s has layers of types %s; this uses %s (--layer-type NAME: another)\n",
                       model->name, list, names[0]);
    return n > 0 ? first[0] : NULL;
}

/* Reads the model, and stores its call of a kernel as the problem. */
static void read_model_call(const struct cli *cli, enum posenc_kernel kernel,
                            struct model_problem *input)
{
    const struct model *model = &input->model;
    if (cli->model.n > 1)
        cli_reject("--model", cli->model.item[1], "expected one model");
    models_read(cli, cli->model.item[0], &input->model);
    const struct model_case *call = find_call(cli, model, kernel);
    if (!call && kernel == POSENC_KERNEL_SINUSOIDAL &&
        strcmp(model->encoding, "sinusoidal") == 0)
        cli_reject("--model", cli->model.item[0],
                   "has all cosines before all sines: expected posenc table rope_table, which "
                   "makes the two");
    if (!call)
        cli_reject("--model", cli->model.item[0],
                   "its encoding is %s: expected a model that calls %s", model->encoding,
                   posenc_kernel_name(kernel));
    input->problem = keep_frequencies(&call->problem);
    input->column_first = call->column_first;
}

/* Returns the kernel at the start of a line, or POSENC_KERNEL_NONE. */
static enum posenc_kernel read_kernel(const char *text)
{
    char name[64];
    return sscanf(text, "%63s", name) == 1 ? posenc_kernel_find(name) : POSENC_KERNEL_NONE;
}

void problem_read_over_model(const struct cli *cli, const char *text,
                             struct model_problem *input)
{
    char error[NOTATION_ERROR];
    struct problem_line line;
    const enum posenc_kernel kernel = read_kernel(text);
    const bool changes_call = cli->model.n > 0 && kernel != POSENC_KERNEL_NONE;
    memset(input, 0, sizeof *input);
    if (changes_call)
        read_model_call(cli, kernel, input);
    if (!notation_read_over(changes_call ? &input->problem : NULL, text, &line, &input->arena,
                            error))
        cli_reject("--problem", NULL, "%s", error);
    input->problem = line.problem;
}

void problem_free(struct model_problem *input)
{
    arena_free(&input->arena);
    model_free(&input->model);
}
