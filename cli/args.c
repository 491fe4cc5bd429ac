/*
 * The options of every command and their parser (getopt_long, IEEE Std 1003.1 12.2).
 */
#define _GNU_SOURCE
#include "args.h"
#include "option_spec.h"
#include "data.h"
#include "conformance/problem/problem.h"
#include "base/records.h"
#include "base/text/text.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const bool_names[] = { "false", "true", NULL };
static const char *const order_names[] = { "rows", "columns", NULL };

#define SELECT        (FOR_VERIFY | FOR_BENCH)
#define TABLE_ROWS    (TABLE_SINUSOIDAL | TABLE_ROPE)
#define COMPUTED      (TABLE_ROWS | TABLE_ERRORS)
#define SCALINGS      (TABLE_ROPE | TABLE_FREQUENCIES | TABLE_ERRORS)
#define AT(member)    offsetof(struct cli, member)
#define LAST_POSITION 2147483647.0

#define OPTION(name, kind, commands, member, argument, help)                                   \
    { "--" name, name, kind, commands, AT(member), argument, help, 0, 0, false, NULL, false },
#define NUMBER(name, kind, commands, member, argument, help, least, most, open)                \
    { "--" name, name,  kind, commands, AT(member), argument,                                  \
      help,      least, most, open,     NULL,       false },
#define CHOOSE(name, commands, member, help, names)                                            \
    { "--" name, name, CHOICE, commands, AT(member), "NAME", help, 0, 0, false, names, false },
#define SCALED(name, kind, member, argument, help, least, most, open, names)                   \
    { "--" name, name,  kind, SCALINGS, AT(member), argument,                                  \
      help,      least, most, open,     names,      true },

static const struct option_spec specs[] = {
#include "options.def"
};
enum { N_SPECS = sizeof specs / sizeof *specs, FIRST_OPTION = 256 };
const struct option_spec *const cli_specs = specs;
const size_t cli_n_specs = N_SPECS;

const struct table_kind cli_table_kinds[TABLE_KINDS] = { { "sinusoidal", TABLE_SINUSOIDAL },
                                                         { "rope_table", TABLE_ROPE },
                                                         { "frequencies", TABLE_FREQUENCIES },
                                                         { "errors", TABLE_ERRORS },
                                                         { "drift", TABLE_DRIFT } };

void cli_list_kinds(unsigned bits, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < TABLE_KINDS && at < size; i++)
        if (bits & cli_table_kinds[i].bit)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "",
                                   cli_table_kinds[i].name);
}

static size_t count_names(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

static bool same_name(const char *a, const char *b)
{ /* - and _ are one */
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

static bool is_given(const struct cli *cli, const struct option_spec *spec)
{
    const void *member = (const char *)cli + spec->offset;
    switch (spec->kind) {
    case FLAG:
        return *(const bool *)member;
    case INTEGER:
        return *(const int64_t *)member != INT64_MIN;
    case REAL:
        return !isnan(*(const double *)member);
    case TEXT:
        return *(const char *const *)member != NULL;
    case LIST:
        return ((const struct list *)member)->n > 0;
    case CHOICE:
        return *(const int *)member >= 0;
    }
    return false;
}

/* ---- options as a record ---- */

/* Of how a run goes, where it writes, or told apart in its header. */
static bool is_beside(const struct option_spec *spec)
{
    static const size_t beside[] = { AT(out),        AT(force), AT(jobs), AT(shard),
                                     AT(help),       AT(quick), AT(full), AT(exhaustive),
                                     AT(vectors),    AT(limit), AT(part), AT(pairs),
                                     AT(rows_alone), AT(parent) };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (spec->offset == beside[i])
            return true;
    return false;
}

static json_t *value_of(const struct cli *cli, const struct option_spec *spec)
{
    const void *member = (const char *)cli + spec->offset;
    const struct list *list = member;
    switch (spec->kind) {
    case FLAG:
        return json_true();
    case INTEGER:
        return json_integer(*(const int64_t *)member);
    case REAL:
        return json_real(*(const double *)member);
    case TEXT:
        return record_string(*(const char *const *)member);
    case CHOICE:
        return json_string(spec->names[*(const int *)member]);
    case LIST:
        break;
    }
    json_t *items = json_array();
    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(items, record_string(list->item[i]));
    return items;
}

json_t *cli_options(const struct cli *cli)
{
    json_t *options = json_object();
    for (size_t i = 0; i < N_SPECS; i++)
        if (is_given(cli, &specs[i]) && !is_beside(&specs[i]))
            json_object_set_new(options, specs[i].name, value_of(cli, &specs[i]));
    return options;
}

/* ---- options that would change nothing ---- */

/* Whether an option is a parameter of a family of scaling, by its name: --short-factors is the array
 * short_factor. */
static bool counts_for(const struct option_spec *spec, enum posenc_scaling scaling)
{
    char parameter[64];
    size_t length = 0;
    for (; spec->name[length] != '\0' && length < sizeof parameter - 1; length++)
        parameter[length] = spec->name[length] == '-' ? '_' : spec->name[length];
    bool array = length > 0 && parameter[length - 1] == 's' &&
                 scaling_takes(scaling, parameter, length - 1);
    return array || scaling_takes(scaling, parameter, length);
}

/* "llama3, yarn": families of scaling that have the parameter. */
void cli_list_scalings(const struct option_spec *spec, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; scaling_names[i] && at < size; i++) {
        if (counts_for(spec, (enum posenc_scaling)i))
            at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "",
                                   scaling_names[i]);
    }
}

/* The first option given to this command that is for none of these; NULL. */
static const struct option_spec *given_in_vain(const struct cli *cli, unsigned commands)
{
    for (size_t i = 0; i < N_SPECS; i++)
        if (is_given(cli, &specs[i]) && (specs[i].commands & cli->bit) &&
            !(specs[i].commands & commands))
            return &specs[i];
    return NULL;
}

int cli_refuse_foreign(const struct cli *cli, unsigned kind)
{
    const struct option_spec *spec = given_in_vain(cli, kind);
    if (!spec)
        return EXIT_FINE;
    char names[128];
    cli_list_kinds(spec->commands & FOR_TABLE, names, sizeof names);
    return cli_refuse(cli, spec->flag, NULL, "has no effect here: it is for %s", names);
}

int cli_refuse_beside_problem(const struct cli *cli)
{
    const struct option_spec *spec = given_in_vain(cli, BESIDE_PROBLEM);
    return !spec ? EXIT_FINE
                 : cli_refuse(cli, spec->flag, NULL,
                              "has no effect beside --problem, which says it all");
}

int cli_refuse_in_depth(const struct cli *cli)
{
    const struct option_spec *spec = given_in_vain(cli, IN_DEPTH);
    return !spec ? EXIT_FINE
                 : cli_refuse(cli, spec->flag, NULL,
                              "has no effect beside --verbose, which runs one case in full");
}

int cli_refuse_unscaled(const struct cli *cli, enum posenc_scaling scaling)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        if (is_given(cli, &specs[i]) && specs[i].scaled && !counts_for(&specs[i], scaling)) {
            char names[256];
            cli_list_scalings(&specs[i], names, sizeof names);
            return cli_refuse(cli, specs[i].flag, NULL,
                              "has no effect here: it needs --scaling %s", names);
        }
    }
    return EXIT_FINE;
}

/* ---- refusals of the library, in terms of options ---- */

/* The option of a parameter: "low_freq_factor", "short_factor of a pair (...)"; NULL: none.  Its name
 * is the parameter's, or that of many of them: --short-factors; --dims are not the dim. */
static const struct option_spec *option_of(const char *parameter, size_t length)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%.*s", (int)length, parameter);
    for (int many = 0; many <= 1; many++) {
        for (size_t i = 0; i < N_SPECS; i++) {
            char name[64];
            const int most = many ? (int)length : (int)sizeof name - 1;
            snprintf(name, sizeof name, "%.*s", most, specs[i].name);
            if ((specs[i].commands & FOR_TABLE) && specs[i].kind != LIST &&
                same_name(name, wanted))
                return &specs[i];
        }
    }
    return NULL;
}

/* "none" or "one of none, linear": the names from `least` to `most`. */
static void list_names(const char *const *names, int least, int most, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "%s", least < most ? "one of " : "");
    for (int i = least; i <= most && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i > least ? ", " : "", names[i]);
}

/* What was refused of an option, and why: `detail` begins with a space or is empty. */
static int refuse_option_value(const struct cli *cli, const struct option_spec *spec,
                               const struct posenc_error *error, const char *detail)
{
    char value[64], expected[256];
    if (spec->kind == CHOICE) {
        snprintf(value, sizeof value, "%s", spec->names[(int)error->value]);
        list_names(spec->names, (int)error->least, (int)error->most, expected, sizeof expected);
    } else {
        snprintf(value, sizeof value, "%.17g", error->value);
        snprintf(expected, sizeof expected, "from %.17g to %.17g", error->least, error->most);
    }
    bool missing = spec->kind != CHOICE && error->value == 0.0 && !is_given(cli, spec);
    return cli_refuse(cli, spec->flag, missing ? "not given" : value, "expected %s%s", expected,
                      detail);
}

int cli_refuse_status(const struct cli *cli, const char *what, enum posenc_status status,
                      const struct posenc_error *error)
{
    if (!error || !error->what)
        return cli_refuse(cli, what, NULL, "%s", posenc_status_string(status));
    size_t length = strcspn(error->what, " ");
    const struct option_spec *spec = cli->problem ? NULL : option_of(error->what, length);
    if (spec && error->least <= error->most)
        return refuse_option_value(
            cli, spec, error, strchr(error->what, '(') ? strchr(error->what, '(') - 1 : "");
    char text[256];
    posenc_error_text(error, text, sizeof text);
    return cli_refuse(cli, what, NULL, "%s", text);
}

static int refuse_range(const struct cli *cli, const struct option_spec *spec, const char *what,
                        const char *text)
{
    if (spec->kind == INTEGER)
        return cli_refuse(cli, what, text, "expected an integer from %.0f to %.0f", spec->least,
                          spec->most);
    if (spec->least > spec->most)
        return cli_refuse(cli, what, text, "expected a finite number");
    const char *bound = spec->open ? "above" : "of at least";
    if (isinf(spec->most))
        return cli_refuse(cli, what, text, "expected a finite number %s %g", bound,
                          spec->least);
    return cli_refuse(cli, what, text, "expected a number %s %g, at most %g", bound,
                      spec->least, spec->most);
}

/* Splits a copy at commas; paths keep theirs. */
static int add_items(struct cli *cli, struct list *list, const char *what, const char *text,
                     bool split)
{
    char *copy = cli->n_copies < LIST_MAX ? strdup(text) : NULL;
    if (!copy)
        return cli_refuse(cli, what, text, "expected at most %d lists", LIST_MAX);
    cli->copies[cli->n_copies++] = copy;
    while (copy) {
        char *comma = split ? strchr(copy, ',') : NULL;
        if (comma)
            *comma = '\0';
        if (*copy == '\0' || list->n == LIST_MAX)
            return cli_refuse(cli, what, text, "expected names separated by commas, at most %d",
                              LIST_MAX);
        list->item[list->n++] = copy;
        copy = comma ? comma + 1 : NULL;
    }
    return EXIT_FINE;
}

/* One path, with a slash in it, so that it is no model's name. */
static int add_config(struct cli *cli, struct list *list, const char *what, const char *text)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s%s", strchr(text, '/') ? "" : "./", text) >=
        (int)sizeof path)
        return cli_refuse(cli, what, NULL, "a path of %zu characters: expected at most %zu",
                          strlen(text), sizeof path - 3);
    return add_items(cli, list, what, path, false);
}

void cli_free(struct cli *cli)
{
    while (cli->n_copies > 0)
        free(cli->copies[--cli->n_copies]);
}

static int take_choice(const struct cli *cli, const struct option_spec *spec, const char *what,
                       const char *text, int *value)
{
    for (int i = 0; spec->names[i]; i++) {
        if (same_name(text, spec->names[i])) {
            *value = i;
            return EXIT_FINE;
        }
    }
    return cli_refuse_name(cli, what, text, spec->names, count_names(spec->names));
}

static int take(struct cli *cli, const struct option_spec *spec, const char *text)
{
    const char *what = spec->flag;
    void *member = (char *)cli + spec->offset;
    double number;
    switch (spec->kind) {
    case FLAG:
        *(bool *)member = true;
        return EXIT_FINE;
    case INTEGER:
        return parse_integer(text, (int64_t)spec->least, (int64_t)spec->most, member)
                   ? EXIT_FINE
                   : refuse_range(cli, spec, what, text);
    case REAL:
        if (!parse_real(text, &number) ||
            (spec->least <= spec->most && (number < spec->least || number > spec->most ||
                                           (spec->open && number <= spec->least))))
            return refuse_range(cli, spec, what, text);
        *(double *)member = number;
        return EXIT_FINE;
    case TEXT:
        if (*text == '\0')
            return cli_refuse(cli, what, text, "expected %s: %s", spec->argument, spec->help);
        *(const char **)member = text;
        return EXIT_FINE;
    case LIST:
        if (strcmp(spec->name, "config") == 0)
            return add_config(cli, member, what, text);
        return add_items(cli, member, what, text,
                         spec->offset != AT(out) && spec->offset != AT(plugin));
    case CHOICE:
        return take_choice(cli, spec, what, text, member);
    }
    return EXIT_USAGE;
}

static void set_defaults(struct cli *cli)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        void *member = (char *)cli + specs[i].offset;
        if (specs[i].kind == INTEGER)
            *(int64_t *)member = INT64_MIN;
        else if (specs[i].kind == REAL)
            *(double *)member = (double)NAN;
        else if (specs[i].kind == CHOICE)
            *(int *)member = -1;
    }
}

static int refuse_option(const struct cli *cli, const struct command *command,
                         const char *given)
{
    const char *names[N_SPECS];
    size_t n = 0;
    for (size_t i = 0; i < N_SPECS; i++)
        if (specs[i].commands & command->bit)
            names[n++] = specs[i].name;
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    return cli_refuse_name(cli, "unknown option", name + strspn(name, "-"), names, n);
}

static bool is_flag(int option)
{
    return option >= FIRST_OPTION && option < FIRST_OPTION + N_SPECS &&
           specs[option - FIRST_OPTION].kind == FLAG;
}

/* -o PATH is --out FORMAT:PATH, whose format follows from the name: the first with that suffix. */
static int take_path(struct cli *cli, const struct command *command, const char *path)
{
    const char *name = strrchr(path, '/'), *suffix = strrchr(name ? name : path, '.');
    const struct format *format = command->formats;
    char request[DATA_PATH];
    while (suffix && format && format->name &&
           (!(format->commands & command->writes) ||
            strcmp(format->extension, suffix + 1) != 0 ||
            strcmp(format->extension, "json") == 0)) /* which several have */
        format++;
    if (!suffix || !format || !format->name)
        return cli_refuse(
            cli, "-o", path,
            "no format follows from this name: expected .jsonl, .csv, .xml, .html "
            "or .md, or --out FORMAT:PATH");
    const int length = snprintf(request, sizeof request, "%s:%s", format->name, path);
    if (length < 0 || (size_t)length >= sizeof request)
        return cli_refuse(cli, "-o", path, "expected a shorter path");
    return add_items(cli, &cli->out, "-o", request, false);
}

bool cli_takes_outputs(const struct command *command)
{
    for (size_t i = 0; i < N_SPECS; i++)
        if (specs[i].offset == AT(out))
            return (specs[i].commands & command->bit) != 0;
    return false;
}

int cli_parse(struct cli *cli, const struct command *command, int argc, char **argv)
{
    set_defaults(cli);
    cli->bit = command->bit;
    struct option options[N_SPECS + 1];
    size_t n = 0;
    for (size_t i = 0; i < N_SPECS; i++) {
        if (specs[i].commands & command->bit) {
            options[n++] =
                (struct option){ specs[i].name,
                                 specs[i].kind == FLAG ? no_argument : required_argument, NULL,
                                 FIRST_OPTION + (int)i };
        }
    }
    options[n] = (struct option){ 0 };
    opterr = 0;
    const char *letters = command->bit == FOR_VERIFY   ? ":hvo:"
                          : cli_takes_outputs(command) ? ":ho:"
                                                       : ":h";
    for (int c; (c = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        if (c == 'h') {
            cli->help = true;
        } else if (c == 'v') {
            cli->verbose = true;
        } else if (c == 'o') {
            if (take_path(cli, command, optarg) != EXIT_FINE)
                return EXIT_USAGE;
        } else if ((c == '?' || c == ':') && is_flag(optopt)) { /* libcs differ in which */
            return cli_refuse(cli, specs[optopt - FIRST_OPTION].flag,
                              strchr(argv[optind - 1], '=') + 1,
                              "expected the option alone: it takes no value");
        } else if (c == ':') {
            return cli_refuse(cli, argv[optind - 1], NULL, "expected a value after it");
        } else if (c == '?') {
            return refuse_option(cli, command, argv[optind - 1]);
        } else if (take(cli, &specs[c - FIRST_OPTION], optarg) != EXIT_FINE) {
            return EXIT_USAGE;
        }
    }
    cli->n_operands = argc - optind;
    cli->operands = argv + optind;
    return EXIT_FINE;
}
