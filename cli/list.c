/* posenc list: prints the names that other commands accept: backends, kernels, models, cases and others. */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "bench/bench.h"
#include "conformance/models/model.h"
#include "conformance/readers/vectors.h"
#include "data.h"
#include "plugins.h"
#include "select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the names of the kernels that a backend provides. Returns true if it provides all. */
static bool list_kernel_names(const struct posenc_backend *backend, char *text, size_t size)
{
    bool all = true;
    text[0] = '\0';
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (posenc_backend_provides(backend, (enum posenc_kernel)k))
            text_list_add(text, size, " ", posenc_kernel_name((enum posenc_kernel)k));
        else
            all = false;
    return all;
}

/* Returns '*' for the default backend of all kernels, '+' for that of some. */
static char default_mark(const struct posenc_backend *backend)
{
    int n = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        n += posenc_selection_of((enum posenc_kernel)k, POSENC_DTYPE_F32, 0).backend == backend;
    return n == POSENC_KERNEL_COUNT ? '*' : n > 0 ? '+' : ' ';
}

static void list_backends(struct cli *cli)
{
    enum { COLUMN = 46 }; /* of the description */
    struct selection all;
    select_all(cli, &all, false);
    printf("CPU %s: %s\n\n", posenc_cpu_key(), posenc_cpu_features());
    printf("  %-13s %-9s %5s  %-5s %-7s %s\n", "backend", "family", "lanes", "here", "kernels",
           "description, required CPU features");
    for (size_t i = 0; i < all.n; i++) {
        const struct posenc_backend *backend = all.backends[i];
        const char *reason = posenc_backend_unavailable_reason(backend);
        char kernels[512], lanes[16] = "-";
        const bool provides_all = list_kernel_names(backend, kernels, sizeof kernels);
        /* lanes() may execute instructions that the CPU lacks, and a plug-in may return any number. */
        if (backend->lanes && !reason && plugins_lanes(backend) > 0)
            snprintf(lanes, sizeof lanes, "%d", plugins_lanes(backend));
        printf("%c %-13s %-9s %5s  %-5s %-7s %s\n", default_mark(backend), backend->name,
               backend->family, lanes, reason ? "no" : "yes", provides_all ? "all" : "some",
               backend->description);
        if (!provides_all)
            printf("%*s%s\n", COLUMN, "", kernels);
        if (backend->required_features && *backend->required_features != '\0')
            printf("%*sneeds %s%s%s\n", COLUMN, "", backend->required_features,
                   reason ? ": " : "", reason ? reason : "");
    }
    puts("\n* default of all kernels, + of some (posenc list kernels).  POSENC_BACKEND=NAME "
         "forces "
         "another backend.");
}

/* Prints the names of the backends that provide a kernel, or "all". */
static void print_providers(const struct selection *all, enum posenc_kernel kernel)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += posenc_backend_provides(all->backends[i], kernel);
    for (size_t i = 0; i < all->n && n < all->n; i++)
        if (posenc_backend_provides(all->backends[i], kernel))
            printf(" %s", all->backends[i]->name);
    puts(n == all->n ? " all" : "");
}

/* Prints why the default backends are selected: the reason of the first kernel, and the kernels with other reasons. */
static void print_reasons(void)
{
    const char *usual = posenc_selection_of(0, POSENC_DTYPE_F32, 0).reason;
    printf("\nDefaults: %s\n", usual);
    for (int k = 1; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const char *reason = posenc_selection_of(kernel, POSENC_DTYPE_F32, 0).reason;
        if (strcmp(reason, usual) != 0)
            printf("%s: %s\n", posenc_kernel_name(kernel), reason);
    }
}

static void list_kernels(struct cli *cli)
{
    struct selection all;
    select_all(cli, &all, false);
    enum { COLUMN = 41, WIDTH = 110 };
    printf("%-18s %-6s %-14s %s\n", "kernel", "stage", "default",
           "description, encodings that use it, backends that provide it");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        enum posenc_kernel kernel = (enum posenc_kernel)k;
        struct posenc_selection chosen = posenc_selection_of(kernel, POSENC_DTYPE_F32, 0);
        printf("%-18s %-6s %-14s %s\n%*s", posenc_kernel_name(kernel), kernel_stage(kernel),
               chosen.backend ? chosen.backend->name : "-", posenc_kernel_summary(kernel),
               COLUMN, "");
        print_wrapped(topic_summary("kernel", posenc_kernel_name(kernel)), COLUMN, WIDTH);
        printf("%*sby", COLUMN, "");
        print_providers(&all, kernel);
    }
    print_reasons();
}

static void list_models(struct cli *cli)
{
    (void)cli;
    printf("%-18s %-17s %-9s %s\n", "model", "encoding", "positions", "source");
    for (size_t i = 0; model_name_at(i); i++) {
        struct model model;
        char error[MODEL_ERROR];
        if (model_load(model_name_at(i), &model, error) != 0)
            cli_reject("model", model_name_at(i), "%s", error);
        printf("%-18s %-17s %-9lld %s\n", model.name, model.encoding,
               (long long)model.max_position_embeddings, model.source);
        model_free(&model);
    }
}

/* Prints the types of models, which the Python reader of model files lists. */
static void list_types(struct cli *cli)
{
    (void)cli;
    char *types = external_read("types", "explain", (const char *[]){ NULL, "--types", NULL });
    fputs(types, stdout);
    free(types);
}

static void list_cases(struct cli *cli)
{
    struct selection selected = { 0 };
    struct vectors vectors;
    select_dtypes(cli, &selected);
    data_load_vectors(cli, &vectors);
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
}

static void list_tuning(struct cli *cli)
{
    (void)cli;
    char line[512];
    const char *unused_reason, *path = tuning_file_in_force(&unused_reason);
    FILE *file = *path ? fopen(path, "r") : NULL;
    if (!*path) {
        puts("No tuning file: backends are chosen by the features of the CPU, or by "
             "POSENC_BACKEND "
             "and POSENC_MAX_ISA.\nposenc tune measures this CPU and writes one.");
        return;
    }
    if (!file)
        cli_reject("tuning file", path, "%s", strerror(errno));
    text_print(stdout, "%s: %s\n", unused_reason ? "Not used" : "In force",
               unused_reason ? unused_reason : path);
    puts(
        "A call uses the first line of its kernel that fits: backend, dtype, and at most these "
        "bytes.\n");
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        text_print(stdout, "%s\n", line);
    }
    fclose(file);
}

static void list_topics(const char *kind, const char *heading)
{
    printf("%-20s %s\n", kind, heading);
    for (size_t i = 0; topic_at(i); i++)
        if (strcmp(topic_at(i)->kind, kind) == 0)
            printf("%-20s %s\n", topic_at(i)->name, topic_at(i)->summary);
}

/* ---- The command ---- */

/* Operand of posenc list. */
struct list_kind {
    const char *name;
    void (*print)(struct cli *cli); /* NULL: list_topics(topic, heading) prints it */
    const char *topic, *heading;    /* NULL unless print is NULL */
};

/* The first BY_DEFAULT are printed without an operand. */
static const struct list_kind kinds[] = {
    { "backends", list_backends, NULL, NULL },
    { "kernels", list_kernels, NULL, NULL },
    { "models", list_models, NULL, NULL },
    { "numerics", NULL, "numerics mode", "how the angle is formed" },
    { "scalings", NULL, "scaling",
      "change of the frequencies w_i when the context is extended" },
    { "methods", NULL, "method", "a kernel used in a certain way: posenc explain NAME" },
    { "cases", list_cases, NULL, NULL },
    { "types", list_types, NULL, NULL },
    { "tuning", list_tuning, NULL, NULL },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, BY_DEFAULT = 3 };

static void print_kind(struct cli *cli, const struct list_kind *kind)
{
    if (cli->dtype.n > 0 && kind->print != list_cases)
        cli_reject("--dtype", NULL, "has no effect here: it is for list cases");
    if (kind->print)
        kind->print(cli);
    else
        list_topics(kind->topic, kind->heading);
}

static void print_default(struct cli *cli)
{
    char others[256] = "";
    for (size_t i = 0; i < BY_DEFAULT; i++) {
        print_kind(cli, &kinds[i]);
        puts("");
    }
    for (size_t i = BY_DEFAULT; i < N_KINDS; i++)
        text_list_add(others, sizeof others, ", ", kinds[i].name);
    printf("More: posenc list %s; posenc explain NAME\n", others);
}

int command_list(struct cli *cli)
{
    const char *names[N_KINDS];
    if (cli->n_operands > 1)
        cli_reject("unexpected argument", cli->operands[1], "expected one kind of thing");
    for (size_t i = 0; i < N_KINDS; i++)
        names[i] = kinds[i].name;
    if (cli->n_operands == 0)
        print_default(cli);
    else
        print_kind(cli, &kinds[cli_find_name("kind", cli->operands[0], names, N_KINDS)]);
    return EXIT_OK;
}
