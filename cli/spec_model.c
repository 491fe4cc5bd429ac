/*
 * Which of a model's calls a table or a picture is made of: the first call of its kernel, or that
 * of the layers which --layer-type names (see spec.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/notation.h"
#include "models.h"
#include "base/text/text.h"
#include "spec.h"

#include <stdio.h>
#include <string.h>

/* The first call of each type of layers. */
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

/* What the options of a table decide is left as it is for any: profile, length, positions. */
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

/* All of them, where nobody chose among those that differ. */
static void say_layers(const struct model *model, const struct layers *layers)
{
    bool alike = true;
    for (size_t i = 1; i < layers->n; i++)
        alike &= is_alike(&layers->problem[0], &layers->problem[i]);
    if (alike)
        return;
    text_print(stderr, "%s: its layers rotate in %zu ways: ", model->name, layers->n);
    for (size_t i = 0; i < layers->n; i++) {
        const struct posenc_freqs_spec *freqs = &layers->problem[i].freqs;
        bool scaled = freqs->scaling != POSENC_SCALING_NONE;
        text_print(stderr, "%s (%lld channels, rope_theta %.10g%s%s)%s; ", layers->name[i],
                   (long long)freqs->dim, freqs->rope_theta, scaled ? ", " : "",
                   scaled ? scaling_names[freqs->scaling] : "",
                   i == 0 ? ", which is taken" : "");
    }
    fputs("--layer-type NAME takes another\n", stderr);
}

static int choose(const struct cli *cli, const struct model *model, const struct layers *layers,
                  size_t *chosen)
{
    *chosen = 0;
    if (!cli->layer_type) {
        say_layers(model, layers);
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

int spec_load_model(const struct cli *cli, struct model *model)
{
    if (cli->model.n > 1)
        return cli_refuse(cli, "--model", cli->model.item[1], "expected one model");
    return models_read(cli, cli->model.item[0], model);
}

int spec_take_model(const struct cli *cli, enum posenc_kernel kernel, struct cli_spec *spec)
{
    if (spec_load_model(cli, &spec->model) != EXIT_FINE)
        return EXIT_USAGE;
    const struct layers layers = find_layers(&spec->model, kernel);
    size_t chosen;
    if (layers.n == 0 && kernel == POSENC_KERNEL_sinusoidal &&
        strcmp(spec->model.encoding, "sinusoidal") == 0)
        return cli_refuse(cli, "--model", cli->model.item[0],
                          "has all cosines before all sines: expected posenc table rope_table, "
                          "which makes the two");
    if (layers.n == 0)
        return cli_refuse(cli, "--model", cli->model.item[0],
                          "its encoding is %s: expected a model with %s", spec->model.encoding,
                          kernel == POSENC_KERNEL_sinusoidal ? "sinusoidal" : "a rotation");
    if (choose(cli, &spec->model, &layers, &chosen) != EXIT_FINE)
        return EXIT_USAGE;
    spec->freqs = layers.problem[chosen].freqs;
    spec->layout = layers.problem[chosen].layout;
    spec->column_first = layers.column_first[chosen];
    return EXIT_FINE;
}
