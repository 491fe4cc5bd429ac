/* posenc list: prints the names that other commands accept: backends, kernels, models, cases and others. */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "bench/bench.h"
#include "conformance/models/model.h"
#include "conformance/readers/vectors.h"
#include "data.h"
#include "external.h"
#include "plugins.h"
#include "select.h"
#include "tuning_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the names of the kernels that a backend provides, or "all". */
static void print_kernels(const struct posenc_backend *backend, char *text, size_t size)
{
    int n = 0;
    text[0] = '\0';
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (posenc_provides(backend, (enum posenc_kernel)k)) {
            text_list_add(text, size, " ", posenc_kernel_name((enum posenc_kernel)k));
            n++;
        }
    if (n == POSENC_KERNEL_COUNT)
        snprintf(text, size, "all");
}

/* Returns the number of kernels for which this backend is the default. */
static int count_defaults(const struct posenc_backend *backend)
{
    int n = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        n += posenc_selection((enum posenc_kernel)k).backend == backend;
    return n;
}

static int list_backends(struct cli *cli)
{
    struct selection all;
    if (select_all(cli, &all, false) != EXIT_OK)
        return EXIT_USAGE;
    printf("CPU %s: %s\n\n", posenc_cpu_key(), posenc_cpu_features());
    printf("  %-13s %-9s %5s  %-5s %-7s %s\n", "backend", "family", "lanes", "here", "kernels",
           "description, required CPU features");
    bool has_partial_default = false;
    for (size_t i = 0; i < all.n; i++) {
        const struct posenc_backend *backend = all.backends[i];
        const char *obstacle = posenc_backend_obstacle(backend);
        char kernels[512], lanes[16] = "-";
        print_kernels(backend, kernels, sizeof kernels);
        /* lanes() may execute instructions that the CPU lacks, and a plug-in may return any number. */
        if (backend->lanes && !obstacle && plugins_lanes(backend) > 0)
            snprintf(lanes, sizeof lanes, "%d", plugins_lanes(backend));
        int defaults = count_defaults(backend);
        has_partial_default =
            has_partial_default || (defaults > 0 && defaults < POSENC_KERNEL_COUNT);
        char mark = ' ';
        if (defaults > 0)
            mark = defaults == POSENC_KERNEL_COUNT ? '*' : '+';
        printf("%c %-13s %-9s %5s  %-5s %-7s %s\n", mark, backend->name, backend->family, lanes,
               !obstacle ? "yes" : "no", strcmp(kernels, "all") == 0 ? "all" : "some",
               backend->description);
        if (strcmp(kernels, "all") != 0)
            printf("%46s%s\n", "", kernels);
        if (backend->needs && *backend->needs != '\0')
            printf("%46sneeds %s%s%s\n", "", backend->needs, obstacle ? ": " : "",
                   obstacle ? obstacle : "");
    }
    printf("\n* default of all kernels%s.  POSENC_BACKEND=NAME forces another backend.\n",
           has_partial_default ? ", + of some (posenc list kernels)" : "");
    return EXIT_OK;
}

/* Prints the names of the backends that provide a kernel, or "all". */
static void print_providers(const struct selection *all, enum posenc_kernel kernel)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += posenc_provides(all->backends[i], kernel);
    for (size_t i = 0; i < all->n && n < all->n; i++)
        if (posenc_provides(all->backends[i], kernel))
            printf(" %s", all->backends[i]->name);
    puts(n == all->n ? " all" : "");
}

static int list_kernels(struct cli *cli)
{
    struct selection all;
    if (select_all(cli, &all, false) != EXIT_OK)
        return EXIT_USAGE;
    enum { COLUMN = 41, WIDTH = 110 };
    printf("%-18s %-6s %-14s %s\n", "kernel", "stage", "default",
           "description, encodings that use it, backends that provide it");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        enum posenc_kernel kernel = (enum posenc_kernel)k;
        struct posenc_selection chosen = posenc_selection(kernel);
        printf("%-18s %-6s %-14s %s\n%*s", posenc_kernel_name(kernel), kernel_stage(kernel),
               chosen.backend ? chosen.backend->name : "-", posenc_kernel_summary(kernel),
               COLUMN, "");
        print_wrapped(topic_summary("kernel", posenc_kernel_name(kernel)), COLUMN, WIDTH);
        printf("%*sby", COLUMN, "");
        print_providers(&all, kernel);
    }
    printf("\nDefaults: %s\n", posenc_selection(POSENC_KERNEL_sinusoidal).reason);
    return EXIT_OK;
}

static int list_models(struct cli *cli)
{
    printf("%-18s %-17s %-9s %s\n", "model", "encoding", "positions", "source");
    for (size_t i = 0; model_name_at(i); i++) {
        struct model model;
        char error[MODEL_ERROR];
        if (model_load(model_name_at(i), &model, error) != 0)
            return cli_reject(cli, "model", model_name_at(i), "%s", error);
        printf("%-18s %-17s %-9lld %s\n", model.name, model.encoding,
               (long long)model.max_position_embeddings, model.source);
        model_free(&model);
    }
    return EXIT_OK;
}

/* Prints the types of models, which the Python reader of model files lists. */
static int list_types(struct cli *cli)
{
    char *types =
        external_read(cli, "types", "explain", (const char *[]){ NULL, "--types", NULL });
    if (!types)
        return EXIT_USAGE;
    fputs(types, stdout);
    free(types);
    return EXIT_OK;
}

static int list_cases(struct cli *cli)
{
    struct selection selected = { 0 };
    struct vectors vectors;
    if (select_dtypes(cli, &selected) != EXIT_OK || data_vectors(cli, &vectors) != EXIT_OK)
        return EXIT_USAGE;
    size_t n = 0;
    for (size_t i = 0; i < vectors.n; i++)
        n += selection_has_dtype(&selected, vectors.cases[i].id);
    if (n < vectors.n)
        printf("%zu of ", n);
    printf("%zu golden vectors, SHA-256 %s%s\n\n", vectors.n, vectors.sha256,
           vectors.official ? "" : ": " OTHER_VECTORS);
    for (size_t i = 0; i < vectors.n; i++)
        if (selection_has_dtype(&selected, vectors.cases[i].id))
            printf("%-44s %s\n", vectors.cases[i].id, vectors.cases[i].note);
    vectors_free(&vectors);
    return EXIT_OK;
}

static int list_topics(const char *kind, const char *heading)
{
    printf("%-20s %s\n", kind, heading);
    for (size_t i = 0; topic_at(i); i++)
        if (strcmp(topic_at(i)->kind, kind) == 0)
            printf("%-20s %s\n", topic_at(i)->name, topic_at(i)->summary);
    return EXIT_OK;
}

/* ---- The command ---- */

/* Operand of posenc list: printed by a function, or as the summaries of a kind of topic. */
struct list_kind {
    const char *name;
    int (*print)(struct cli *cli);
    const char *topic, *heading;
};

static const struct list_kind kinds[] = {
    { "backends", list_backends, NULL, NULL },
    { "kernels", list_kernels, NULL, NULL },
    { "models", list_models, NULL, NULL },
    { "profiles", NULL, "profile", "how the angle is formed" },
    { "scalings", NULL, "scaling",
      "change of the frequencies w_i when the context is extended" },
    { "methods", NULL, "method", "a kernel used in a certain way: posenc explain NAME" },
    { "cases", list_cases, NULL, NULL },
    { "types", list_types, NULL, NULL },
    { "tuning", tuning_file_list, NULL, NULL },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, BY_DEFAULT = 3 };

static int print_kind(struct cli *cli, const struct list_kind *kind)
{
    if (cli->dtype.n > 0 && kind->print != list_cases)
        return cli_reject(cli, "--dtype", NULL, "has no effect here: it is for list cases");
    return kind->print ? kind->print(cli) : list_topics(kind->topic, kind->heading);
}

static int print_default(struct cli *cli)
{
    int status = EXIT_OK;
    for (size_t i = 0; i < BY_DEFAULT && status == EXIT_OK; i++) {
        status = print_kind(cli, &kinds[i]);
        if (status == EXIT_OK)
            puts("");
    }
    if (status == EXIT_OK)
        puts("More: posenc list types, profiles, scalings, methods, cases, tuning; "
             "posenc explain NAME");
    return status;
}

int command_list(struct cli *cli)
{
    const char *names[N_KINDS];
    if (cli->n_operands == 0)
        return print_default(cli);
    if (cli->n_operands > 1)
        return cli_reject(cli, "unexpected argument", cli->operands[1],
                          "expected one kind of thing");
    for (size_t i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i].name;
        if (strcmp(cli->operands[0], names[i]) == 0)
            return print_kind(cli, &kinds[i]);
    }
    return cli_reject_name(cli, "kind", cli->operands[0], names, N_KINDS);
}
