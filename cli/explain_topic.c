/*
 * posenc explain KERNEL, PROFILE, SCALING, METHOD, PARAMETER: definition, parameters, shapes,
 * source, the mistakes that are made with it and what catches each, and the models that use it.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/models/model.h"
#include "explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernels broken on purpose: what the mistake is, and the suite meant to catch it. */
static const struct broken {
    const char *name, *kernel, *suite, *what;
} broken_kernels[] = {
#define MISTAKE(name, kernel, suite, how, function, what) { #name, #kernel, #suite, what },
#include "mistakes.inc"
};
enum { N_BROKEN = sizeof broken_kernels / sizeof *broken_kernels };

static const struct broken *find_broken(const char *name)
{
    for (size_t i = 0; i < N_BROKEN; i++)
        if (strcmp(broken_kernels[i].name, name) == 0)
            return &broken_kernels[i];
    return NULL;
}

/* ---- finding ---- */

/* An alias may say which value it is: "flip_sin_to_cos (true: cos_sin)". */
static bool has_alias(const struct topic *topic, const char *name)
{
    size_t length = strlen(name);
    char alias[128];
    for (const char *at = topic_text(topic, "also"); at && *at != '\0';) {
        at = topic_piece(at, alias, sizeof alias);
        if (strncmp(alias, name, length) == 0 &&
            (alias[length] == '\0' || strncmp(alias + length, " (", 2) == 0))
            return true;
    }
    return false;
}

bool explain_find(const char *name, struct topic *topic)
{
    if (topic_find(NULL, name, topic))
        return true;
    for (size_t i = 0; topic_at(i, topic); i++)
        if (has_alias(topic, name))
            return true;
    return false;
}

int explain_refuse(const struct cli *cli, const char *name)
{
    enum { MOST = 128 };
    struct topic topics[MOST];
    const char *names[MOST];
    size_t n = 0;
    while (n < MOST && topic_at(n, &topics[n])) {
        names[n] = topics[n].name;
        n++;
    }
    return cli_refuse_name(cli, "THING", name, names, n);
}

/* ---- fields ---- */

static void print_text(const struct topic_field *field, const char *before)
{
    printf("%s%s\n", before, field->text);
    for (size_t i = 0; i < field->n_more; i++)
        printf("%*s%s\n", (int)strlen(before), "", field->more[i] + 4);
}

static void print_heading(const char *key)
{
    static const char *const headings[][2] = { { "encodings", "Encodings it serves" },
                                               { "definition", "Definition" },
                                               { "shapes", "Shapes" },
                                               { "parameters", "Parameters" },
                                               { "example", "Example" },
                                               { "source", "Source" },
                                               { "means", "Meaning" },
                                               { "also", "Also called" },
                                               { "trap", "Traps" } };
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        if (strcmp(headings[i][0], key) == 0)
            printf("\n%s\n", headings[i][1]);
}

static void print_parameters(const char *list)
{
    enum { COLUMN = 20, WIDTH = 100 };
    char name[TOPIC_NAME];
    while (list && *list != '\0') {
        struct topic parameter;
        list = topic_piece(list, name, sizeof name);
        bool known = topic_find("parameter", name, &parameter);
        int length = printf("  %s", name);
        printf("%s%*s", length < COLUMN ? "" : "\n", COLUMN - (length < COLUMN ? length : 0),
               "");
        topic_print_words(known ? topic_text(&parameter, "means") : "", COLUMN, WIDTH);
        if (known && *topic_text(&parameter, "also") != '\0') {
            printf("%*salso ", COLUMN, "");
            topic_print_words(topic_text(&parameter, "also"), COLUMN + 5, WIDTH);
        }
    }
}

/* "broken NAME" or "case ID". */
static void print_catch(const char *caught)
{
    const char *name = strchr(caught, ' ');
    name = name ? name + 1 : caught;
    const struct broken *broken = find_broken(name);
    if (broken)
        printf("      caught by the suite %s (broken kernel %s)\n", broken->suite, name);
    else
        printf("      caught by posenc verify --case %s\n", name);
}

static void print_field(const struct topic_field *field, const char *before)
{
    if (strcmp(field->key, "caught") == 0) {
        print_catch(field->text);
        return;
    }
    if (strcmp(field->key, before) != 0 &&
        !(strcmp(field->key, "trap") == 0 && strcmp(before, "caught") == 0))
        print_heading(field->key);
    if (strcmp(field->key, "parameters") == 0)
        print_parameters(field->text);
    else if (strcmp(field->key, "summary") != 0)
        print_text(field, strcmp(field->key, "trap") == 0 ? "  - " : "  ");
}

/* ---- what follows from other lists ---- */

static bool is_named(const struct topic *topic, const char *broken)
{
    struct topic_field field;
    for (size_t i = 0; topic_field(topic, i, &field); i++) {
        const char *name = strchr(field.text, ' ');
        if (strcmp(field.key, "caught") == 0 && name && strcmp(name + 1, broken) == 0)
            return true;
    }
    return false;
}

/* The broken kernels of a kernel that no trap above has named. */
static void print_other_broken(const struct topic *topic)
{
    bool first = true;
    for (size_t i = 0; i < N_BROKEN; i++) {
        const struct broken *broken = &broken_kernels[i];
        if (strcmp(broken->kernel, topic->name) != 0 || is_named(topic, broken->name))
            continue;
        if (first) {
            puts("\nAlso caught (broken kernel, suite)");
            first = false;
        }
        printf("  - %s (%s, %s)\n", broken->what, broken->name, broken->suite);
    }
}

static bool uses(const struct model *model, const struct topic *topic)
{
    if (strcmp(topic->kind, "profile") == 0)
        return strcmp(model->trained_profile, topic->name) == 0;
    for (size_t i = 0; i < model->n_cases; i++) {
        const struct problem *p = &model->cases[i].problem;
        bool scaled = strcmp(topic->kind, "scaling") == 0;
        if (scaled ? model->has_freqs && p->kernel == POSENC_KERNEL_rope_table &&
                         strcmp(scaling_names[p->freqs.scaling], topic->name) == 0
                   : strcmp(posenc_kernel_name(p->kernel), topic->name) == 0)
            return true;
    }
    return false;
}

static int print_users(const struct cli *cli, const struct topic *topic)
{
    struct model *model = malloc(sizeof *model);
    size_t n = 0;
    int column = 0, status = EXIT_FINE;
    puts("\nUsed by");
    for (size_t i = 0; model_name_at(i) && status == EXIT_FINE; i++) {
        char error[MODEL_ERROR] = "out of memory";
        if (!model || model_load(model_name_at(i), model, error) != 0) {
            status = cli_refuse(cli, "model", model_name_at(i), "%s", error);
            break;
        }
        if (uses(model, topic)) {
            bool wrap = column > 80;
            column = wrap ? 0 : column;
            column += printf("%s%s", n == 0 ? "  " : wrap ? ",\n  " : ", ", model->name);
            n++;
        }
        model_free(model);
    }
    free(model);
    puts(n > 0 ? "" : "  no model of posenc list models");
    return status;
}

int explain_topic(const struct cli *cli, const struct topic *topic)
{
    enum posenc_kernel kernel = posenc_kernel_find(topic->name);
    bool is_kernel = strcmp(topic->kind, "kernel") == 0 && kernel != POSENC_KERNEL_COUNT;
    char key[sizeof((struct topic_field *)0)->key] = "";
    struct topic_field field;
    printf("%s, a %s%s%s\n", topic->name, topic->kind, is_kernel ? ": " : "",
           is_kernel ? posenc_kernel_summary(kernel) : "");
    if (*topic_text(topic, "summary") != '\0')
        puts(topic_text(topic, "summary"));
    for (size_t i = 0; topic_field(topic, i, &field); i++) {
        print_field(&field, key);
        memcpy(key, field.key, sizeof key);
    }
    if (strcmp(topic->kind, "parameter") == 0 || strcmp(topic->kind, "method") == 0)
        return EXIT_FINE;
    if (is_kernel)
        print_other_broken(topic);
    return print_users(cli, topic);
}
