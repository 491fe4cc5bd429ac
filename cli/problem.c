/*
 * Reads --problem, and takes calls of models (see problem.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "problem.h"
#include "conformance/problem/notation.h"
#include "models.h"

#include <stdio.h>
#include <string.h>

/* Limits the oracle, which takes about a microsecond for a value, to minutes. */
static const double MOST_VALUES = 1 << 26;

int problem_check_cost(const struct cli *cli, const struct problem *problem, bool checked)
{
    char error[NOTATION_ERROR];
    struct problem_limits limits = problem_limits_here();
    limits.values = checked ? MOST_VALUES : 0.0;
    return problem_within(problem, &limits, error)
               ? EXIT_FINE
               : cli_refuse(cli, "--problem", NULL, "%s", error);
}

int problem_refuse_empty(const struct cli *cli, const struct problem *problem)
{
    return cli_refuse(cli, "--problem", cli->problem, "has no element: expected %s above 0",
                      kernel_on_scores(problem->kernel) ? "heads, queries and keys"
                                                        : "batch and tokens");
}

int problem_take(const struct cli *cli, struct problem_line *line, struct arena *arena)
{
    char error[NOTATION_ERROR];
    struct call call;
    if (cli_refuse_beside_problem(cli) != EXIT_FINE)
        return EXIT_USAGE;
    if (!notation_read(cli->problem, line, arena, error))
        return cli_refuse(cli, "--problem", NULL, "%s", error);
    if (problem_check_cost(cli, &line->problem, strcmp(cli->command, "bench") != 0) !=
        EXIT_FINE)
        return EXIT_USAGE;
    enum posenc_status status = call_create(&call, &line->problem, &memory_default);
    if (status != POSENC_OK)
        return cli_refuse_status(cli, "--problem", status, &call.error);
    bool empty = call.outputs[0].rows < 1 || call.outputs[0].width < 1;
    call_destroy(&call);
    return empty ? problem_refuse_empty(cli, &line->problem) : EXIT_FINE;
}

void problem_id(const struct problem *problem, char *id, size_t size)
{
    snprintf(id, size, "%s/%s/%s/problem", posenc_kernel_name(problem->kernel),
             dtype_names[problem->dtype],
             kernel_has_freqs(problem->kernel) ? profile_names[problem->freqs.profile]
                                               : "given");
}

/* ---- Calls of models ---- */

/* First call of a kernel by each type of layers. */
struct layers {
    size_t n;
    const struct model_case *first[MODEL_MAX_PARTS];
};

/* Returns the type of layers of a call, as --layer-type has it: "text" if the model names none. */
static const char *layers_name(const struct model_case *one)
{
    return *one->layers ? one->layers : "text"; /* a vision tower may stand beside it */
}

/* Returns a problem with the frequencies and the layout of a call. Numerics, length and positions are the user's. */
static struct problem keep_frequencies(const struct problem *call)
{
    struct problem kept = problem_blank(call->kernel);
    kept.freqs = call->freqs;
    kept.layout = call->layout;
    kept.freqs.profile = POSENC_EXACT;
    kept.freqs.seq_len = 0;
    return kept;
}

/* Returns the index of a type of layers, or their number. */
static size_t find_type(const struct layers *layers, const char *name)
{
    size_t at = 0;
    while (at < layers->n && strcmp(layers_name(layers->first[at]), name) != 0)
        at++;
    return at;
}

static struct layers find_layers(const struct model *model, enum posenc_kernel kernel)
{
    struct layers layers = { 0 };
    for (size_t i = 0; i < model->n_cases && layers.n < MODEL_MAX_PARTS; i++) {
        const struct model_case *one = &model->cases[i];
        if (one->problem.kernel == kernel && find_type(&layers, layers_name(one)) == layers.n)
            layers.first[layers.n++] = one;
    }
    return layers;
}

static bool rotate_alike(const struct model_case *a, const struct model_case *b)
{
    const struct problem problems[] = { keep_frequencies(&a->problem),
                                        keep_frequencies(&b->problem) };
    char texts[2][4096];
    bool fit = true;
    for (int i = 0; i < 2; i++)
        fit &= notation_print(&problems[i], NULL, texts[i], sizeof texts[i]) < sizeof texts[i];
    return fit && strcmp(texts[0], texts[1]) == 0;
}

/* Prints a note if the types of layers differ, since the first one is taken. */
static void print_layers(const struct model *model, const struct layers *layers)
{
    bool alike = true;
    for (size_t i = 1; i < layers->n; i++)
        alike &= rotate_alike(layers->first[0], layers->first[i]);
    if (alike)
        return;
    cli_print_note("%s: its layers rotate in %zu ways: ", model->name, layers->n);
    for (size_t i = 0; i < layers->n; i++) {
        const struct posenc_freqs_spec *freqs = &layers->first[i]->problem.freqs;
        const bool scaled = freqs->scaling != POSENC_SCALING_NONE;
        cli_print_note("%s (%lld channels, rope_theta %.10g%s%s)%s; ",
                       layers_name(layers->first[i]), (long long)freqs->dim, freqs->rope_theta,
                       scaled ? ", " : "", scaled ? scaling_names[freqs->scaling] : "",
                       i == 0 ? ", which is taken" : "");
    }
    cli_print_note("--layer-type NAME takes another\n");
}

/* Chooses the first call of the layers of --layer-type, or of the first ones. */
static int choose_layers(const struct cli *cli, const struct model *model,
                         const struct layers *layers, const struct model_case **chosen)
{
    const char *names[MODEL_MAX_PARTS];
    *chosen = layers->first[0];
    if (!cli->layer_type) {
        print_layers(model, layers);
        return EXIT_FINE;
    }
    const size_t at = find_type(layers, cli->layer_type);
    for (size_t i = 0; i < layers->n; i++)
        names[i] = layers_name(layers->first[i]);
    if (at < layers->n)
        *chosen = layers->first[at];
    else if (layers->n == 1 && strcmp(names[0], "text") == 0)
        return cli_refuse(cli, "--layer-type", cli->layer_type,
                          "has no effect here: all layers of %s rotate alike", model->name);
    else
        return cli_refuse_name(cli, "--layer-type", cli->layer_type, names, layers->n);
    return EXIT_FINE;
}

/* Finds the model's call that a line changes. */
static int find_base(const struct cli *cli, enum posenc_kernel kernel,
                     struct model_problem *taken)
{
    if (cli->model.n > 1)
        return cli_refuse(cli, "--model", cli->model.item[1], "expected one model");
    if (models_read(cli, cli->model.item[0], &taken->model) != EXIT_FINE)
        return EXIT_USAGE;
    const struct layers layers = find_layers(&taken->model, kernel);
    const struct model_case *chosen;
    if (layers.n == 0 && kernel == POSENC_KERNEL_sinusoidal &&
        strcmp(taken->model.encoding, "sinusoidal") == 0)
        return cli_refuse(cli, "--model", cli->model.item[0],
                          "has all cosines before all sines: expected posenc table rope_table, "
                          "which makes the two");
    if (layers.n == 0)
        return cli_refuse(cli, "--model", cli->model.item[0],
                          "its encoding is %s: expected a model that calls %s",
                          taken->model.encoding, posenc_kernel_name(kernel));
    if (choose_layers(cli, &taken->model, &layers, &chosen) != EXIT_FINE)
        return EXIT_USAGE;
    taken->problem = keep_frequencies(&chosen->problem);
    taken->column_first = chosen->column_first;
    return EXIT_FINE;
}

/* Returns the kernel that a line begins with, POSENC_KERNEL_COUNT if there is none of that name. */
static enum posenc_kernel read_kernel(const char *text)
{
    char name[64];
    return sscanf(text, "%63s", name) == 1 ? posenc_kernel_find(name) : POSENC_KERNEL_COUNT;
}

int problem_take_model(const struct cli *cli, const char *text, struct model_problem *taken)
{
    char error[NOTATION_ERROR];
    struct problem_line line;
    const enum posenc_kernel kernel = read_kernel(text);
    const bool over = cli->model.n > 0 && kernel != POSENC_KERNEL_COUNT;
    *taken = (struct model_problem){ .column_first = false };
    if (over && find_base(cli, kernel, taken) != EXIT_FINE)
        return EXIT_USAGE;
    if (!notation_read_over(over ? &taken->problem : NULL, text, &line, &taken->arena, error))
        return cli_refuse(cli, "--problem", NULL, "%s", error);
    taken->problem = line.problem;
    return EXIT_FINE;
}

void problem_free(struct model_problem *taken)
{
    arena_free(&taken->arena);
    model_free(&taken->model);
}
