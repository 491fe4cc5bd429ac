/*
 * Reads --problem, and takes calls of models (see problem.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "problem.h"
#include "conformance/problem/notation.h"
#include "models.h"

#include <stdio.h>
#include <string.h>

/* An exact value takes about a microsecond: minutes for all of them. */
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
    enum posenc_status status = call_create(&call, &line->problem, &memory_plain);
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

/* The first call of a kernel that each type of layers makes. */
struct layers {
    size_t n;
    struct problem problem[MODEL_MAX_PARTS];
    bool column_first[MODEL_MAX_PARTS];
    const char *name[MODEL_MAX_PARTS]; /* as --layer-type has it */
};

static const char *name_of(const struct model_case *one)
{
    return *one->layers ? one->layers : "text"; /* which a vision tower may stand beside */
}

/* Returns the frequencies and the layout of a call alone: numerics, length and positions are the user's. */
static struct problem plan_of(const struct problem *call)
{
    struct problem plan = problem_blank(call->kernel);
    plan.freqs = call->freqs;
    plan.layout = call->layout;
    plan.freqs.profile = POSENC_EXACT;
    plan.freqs.seq_len = 0;
    return plan;
}

static struct layers find_layers(const struct model *model, enum posenc_kernel kernel)
{
    struct layers found = { 0 };
    for (size_t i = 0; i < model->n_cases; i++) {
        const struct model_case *one = &model->cases[i];
        size_t at = 0;
        while (at < found.n && strcmp(found.name[at], name_of(one)) != 0)
            at++;
        if (one->problem.kernel != kernel || at < found.n || at == MODEL_MAX_PARTS)
            continue;
        found.name[at] = name_of(one);
        found.problem[at] = plan_of(&one->problem);
        found.column_first[at] = one->column_first;
        found.n++;
    }
    return found;
}

static bool is_alike(const struct problem *a, const struct problem *b)
{
    char texts[2][4096];
    return notation_print(a, NULL, texts[0], sizeof texts[0]) < sizeof texts[0] &&
           notation_print(b, NULL, texts[1], sizeof texts[1]) < sizeof texts[1] &&
           strcmp(texts[0], texts[1]) == 0;
}

/* Prints how the layers of a model differ, if nobody chose among them. */
static void print_layers(const struct model *model, const struct layers *layers)
{
    bool alike = true;
    for (size_t i = 1; i < layers->n; i++)
        alike &= is_alike(&layers->problem[0], &layers->problem[i]);
    if (alike)
        return;
    cli_print_note("%s: its layers rotate in %zu ways: ", model->name, layers->n);
    for (size_t i = 0; i < layers->n; i++) {
        const struct posenc_freqs_spec *freqs = &layers->problem[i].freqs;
        bool scaled = freqs->scaling != POSENC_SCALING_NONE;
        cli_print_note("%s (%lld channels, rope_theta %.10g%s%s)%s; ", layers->name[i],
                       (long long)freqs->dim, freqs->rope_theta, scaled ? ", " : "",
                       scaled ? scaling_names[freqs->scaling] : "",
                       i == 0 ? ", which is taken" : "");
    }
    cli_print_note("--layer-type NAME takes another\n");
}

static int choose_layers(const struct cli *cli, const struct model *model,
                         const struct layers *layers, size_t *chosen)
{
    *chosen = 0;
    if (!cli->layer_type) {
        print_layers(model, layers);
        return EXIT_FINE;
    }
    while (*chosen < layers->n && strcmp(layers->name[*chosen], cli->layer_type) != 0)
        ++*chosen;
    if (*chosen < layers->n)
        return EXIT_FINE;
    if (layers->n == 1 && strcmp(layers->name[0], "text") == 0)
        return cli_refuse(cli, "--layer-type", cli->layer_type,
                          "has no effect here: all layers of %s rotate alike", model->name);
    return cli_refuse_name(cli, "--layer-type", cli->layer_type, layers->name, layers->n);
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
    size_t chosen;
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
    taken->problem = layers.problem[chosen];
    taken->column_first = layers.column_first[chosen];
    return EXIT_FINE;
}

/* Returns the kernel that a line begins with, POSENC_KERNEL_COUNT if there is none of that name. */
static enum posenc_kernel kernel_of(const char *text)
{
    char name[64];
    return sscanf(text, "%63s", name) == 1 ? posenc_kernel_find(name) : POSENC_KERNEL_COUNT;
}

int problem_take_model(const struct cli *cli, const char *text, struct model_problem *taken)
{
    char error[NOTATION_ERROR];
    struct problem_line line;
    const enum posenc_kernel kernel = kernel_of(text);
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
