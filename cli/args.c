/*
 * The options of every command, their parser and their help (getopt_long,
 * IEEE Std 1003.1 12.2).
 */
#define _GNU_SOURCE
#include "args.h"
#include "../conformance/names.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const layout_names[] = { "interleaved", "sin_cos", "cos_sin", NULL };
const char *const profile_names[] = { "exact", "hf_f32", NULL };
const char *const convention_names[] = { "exponent", "endpoint", NULL };
const char *const scaling_names[] = { "none", "linear", "llama3", "yarn", NULL };
static const char *const bool_names[] = { "false", "true", NULL };

enum kind { FLAG, INTEGER, REAL, TEXT, LIST, CHOICE };

struct option_spec {
    const char *name;
    enum kind kind;
    unsigned commands;
    size_t offset; /* of the member of struct cli */
    const char *argument, *help;
    double least, most; /* INTEGER, REAL; least > most: any finite number */
    bool open;          /* REAL: least itself is refused */
    const char *const *names;
};

#define SELECT        (FOR_VERIFY | FOR_BENCH | FOR_REPORT)
#define TABLES        (FOR_TABLE | FOR_PLOT)
#define AT(member)    offsetof(struct cli, member)
#define LAST_POSITION 2147483647.0

#define OPTION(name, kind, commands, member, argument, help)                                   \
    {                                                                                          \
        name, kind, commands, AT(member), argument, help, 0, 0, false, NULL                    \
    }
#define NUMBER(name, kind, commands, member, argument, help, least, most, open)                \
    {                                                                                          \
        name, kind, commands, AT(member), argument, help, least, most, open, NULL              \
    }
#define CHOOSE(name, commands, member, argument, help, names)                                  \
    {                                                                                          \
        name, CHOICE, commands, AT(member), argument, help, 0, 0, false, names                 \
    }

static const struct option_spec specs[] = {
    OPTION("kernel", LIST, SELECT, kernel, "NAME", "only these kernels (posenc list kernels)"),
    OPTION("backend", LIST, SELECT | FOR_TABLE | FOR_PLOT | FOR_EXPLAIN, backend, "NAME",
           "only these backends or families (posenc list backends)"),
    OPTION("dtype", LIST, SELECT, dtype, "NAME", "only these element types: f32"),
    OPTION("model", LIST, SELECT | FOR_TABLE, model, "NAME",
           "shapes and parameters of these models (posenc list models)"),
    OPTION("config", LIST, SELECT | FOR_TABLE, model, "FILE",
           "the same of a Hugging Face config.json"),
    OPTION("case", LIST, SELECT, cases, "GLOB",
           "only cases whose id matches, e.g. 'rope_*/exact/*'"),
    OPTION("plugin", LIST, SELECT | FOR_LIST | FOR_EXPLAIN | FOR_TABLE | FOR_PLOT, plugin,
           "LIB", "a shared library that exports struct posenc_backend posenc_plugin"),
    OPTION("quick", FLAG, SELECT, quick, NULL, "the short run (this is the default)"),
    OPTION("full", FLAG, SELECT, full, NULL, "every case, dense scans, more rounds"),
    OPTION("exhaustive", FLAG, FOR_VERIFY, exhaustive, NULL,
           "every position below 2^20; minutes to hours"),
    OPTION("suite", TEXT, FOR_VERIFY, suite, "NAME",
           "only vectors, accuracy, digests, memory or properties"),
    OPTION("vectors", TEXT, SELECT | FOR_LIST | FOR_EXPLAIN, vectors, "PATH",
           "golden vectors: a folder with a manifest, or a pack (also POSENC_VECTORS)"),
    OPTION("budgets", TEXT, FOR_VERIFY, budgets, "FILE",
           "error budgets to hold the backends to"),
    OPTION("update-budgets", FLAG, FOR_VERIFY, update_budgets, NULL,
           "write the budgets file (--budgets) with limits lowered to what was measured; never "
           "raised"),
    NUMBER("threads", INTEGER, FOR_BENCH, threads, "N", "threads that run a kernel at once", 1,
           1024, false),
    NUMBER("budget", REAL, FOR_BENCH | FOR_REPORT, budget, "SECONDS",
           "stop adding rounds after this long", 0, 86400, true),
    NUMBER("seed", INTEGER, FOR_BENCH, seed, "N", "of the order of the rounds", 0,
           9007199254740992.0, false),
    OPTION("dir", TEXT, FOR_REPORT, dir, "FOLDER", "where the report goes (posenc-report)"),
    NUMBER("tokens", INTEGER, TABLES, tokens, "N", "how many consecutive positions", 1,
           2 * LAST_POSITION, false),
    NUMBER("first", INTEGER, TABLES, first, "P", "the first of them (0)", -LAST_POSITION,
           LAST_POSITION, false),
    OPTION("positions", TEXT, FOR_TABLE, positions, "LIST",
           "positions instead: integers and ranges, e.g. 0..63,-5,1048576"),
    NUMBER("dim", INTEGER, TABLES, dim, "D", "channels of a row (rope_table: head_dim)", 1,
           65536, false),
    NUMBER("rotary-dim", INTEGER, FOR_TABLE, rotary_dim, "D",
           "rope_table: the first D channels are rotated (all)", 1, 65536, false),
    NUMBER("rope-theta", REAL, TABLES, rope_theta, "B", "base of the frequencies (10000)", 0,
           HUGE_VAL, true),
    CHOOSE("layout", TABLES, layout, "NAME",
           "of a sinusoidal row: interleaved, sin_cos, cos_sin", layout_names),
    CHOOSE("profile", TABLES, profile, "NAME", "how angles are formed: exact, hf_f32",
           profile_names),
    CHOOSE("convention", TABLES, convention, "NAME", "of the frequencies: exponent, endpoint",
           convention_names),
    NUMBER("scale", REAL, FOR_TABLE, scale, "S", "multiplies a sinusoidal table (1)", 1, 0,
           false),
    CHOOSE("scaling", FOR_TABLE, scaling, "NAME",
           "context extension: none, linear, llama3, yarn", scaling_names),
    NUMBER("factor", REAL, FOR_TABLE, factor, "F", "of the scaling", 1, HUGE_VAL, false),
    NUMBER("original-max-position-embeddings", REAL, FOR_TABLE, original, "N",
           "llama3, yarn: context trained on", 0, HUGE_VAL, true),
    NUMBER("low-freq-factor", REAL, FOR_TABLE, low_freq_factor, "F", "llama3", 0, HUGE_VAL,
           true),
    NUMBER("high-freq-factor", REAL, FOR_TABLE, high_freq_factor, "F", "llama3", 0, HUGE_VAL,
           true),
    NUMBER("beta-fast", REAL, FOR_TABLE, beta_fast, "F", "yarn (32)", 0, HUGE_VAL, true),
    NUMBER("beta-slow", REAL, FOR_TABLE, beta_slow, "F", "yarn (1)", 0, HUGE_VAL, true),
    CHOOSE("truncate", FOR_TABLE, truncate, "BOOL",
           "yarn: correction range to whole pairs (true)", bool_names),
    NUMBER("attention-factor", REAL, FOR_TABLE, attention_factor, "F",
           "multiplies cos and sin (derived)", 0, HUGE_VAL, true),
    NUMBER("mscale", REAL, FOR_TABLE, mscale, "F", "yarn", 0, HUGE_VAL, false),
    NUMBER("mscale-all-dim", REAL, FOR_TABLE, mscale_all_dim, "F", "yarn", 0, HUGE_VAL, false),
    OPTION("out", LIST, SELECT | TABLES, out, "FORMAT[:PATH]",
           "the result in this format, on stdout or to a file"),
    OPTION("help", FLAG, ~0u, help, NULL, "this text"),
};
enum { N_SPECS = sizeof specs / sizeof *specs, FIRST_OPTION = 256 };

bool parse_integer(const char *text, int64_t least, int64_t most, int64_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits < '0' || *digits > '9') {
        return false; /* strtoll would skip blanks */
    }
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < least || number > most) {
        return false;
    }
    *value = number;
    return true;
}

bool parse_real(const char *text, double *value)
{
    if (strchr("+-.0123456789", *text) == NULL || *text == '\0') {
        return false;
    }
    char *end;
    double number = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(number)) {
        return false;
    }
    *value = number;
    return true;
}

static void say_who(const struct cli *cli)
{
    fflush(stdout);
    fprintf(stderr, "posenc%s%s: ", cli->command != NULL ? " " : "",
            cli->command != NULL ? cli->command : "");
}

int cli_refuse(const struct cli *cli, const char *what, const char *value, const char *expected,
               ...)
{
    say_who(cli);
    fprintf(stderr, "%s: ", what);
    if (value != NULL) {
        fprintf(stderr, "%s: ", *value != '\0' ? value : "(empty)");
    }
    va_list arguments;
    va_start(arguments, expected);
    vfprintf(stderr, expected, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

static bool is_near(const char *value, const char *name)
{
    size_t length = strlen(value);
    return strlen(value) <= 96 && (edit_distance(value, name) <= 1 + length / 3 ||
                                   (length >= 3 && strstr(name, value) != NULL));
}

int cli_refuse_name(const struct cli *cli, const char *what, const char *value,
                    const char *const *names, size_t n)
{
    enum { FEW = 16, NEAREST = 5 };
    say_who(cli);
    fprintf(stderr, "%s: %s: ", what, *value != '\0' ? value : "(empty)");
    const char *near[NEAREST];
    size_t n_near = 0;
    for (size_t distance = 0; distance <= 96 && n_near < NEAREST; distance++) {
        for (size_t i = 0; i < n && n_near < NEAREST; i++) {
            if (is_near(value, names[i]) && edit_distance(value, names[i]) == distance) {
                near[n_near++] = names[i];
            }
        }
    }
    if (n_near > 0) {
        fprintf(stderr, "did you mean ");
        for (size_t i = 0; i < n_near; i++) {
            fprintf(stderr, "%s%s", i == 0 ? "" : i + 1 < n_near ? ", " : " or ", near[i]);
        }
        fprintf(stderr, "?%s", n <= FEW ? "  " : "\n");
    }
    if (n_near == 0 || n <= FEW) {
        fprintf(stderr, "expected one of");
        for (size_t i = 0; i < n; i++) {
            fprintf(stderr, "%s %s", i == 0 ? "" : ",", names[i]);
        }
        fputc('\n', stderr);
    }
    return EXIT_USAGE;
}

int cli_refuse_status(const struct cli *cli, const char *what, enum posenc_status status,
                      const struct posenc_error *error)
{
    const char *reason = posenc_status_string(status);
    if (error == NULL || error->what == NULL) {
        return cli_refuse(cli, what, NULL, "%s", reason);
    }
    char value[256];
    snprintf(value, sizeof value, "%s: %.17g", error->what, error->value);
    if (error->least > error->most) {
        return cli_refuse(cli, what, value, "%s", reason);
    }
    return cli_refuse(cli, what, value, "expected from %.17g to %.17g (%s)", error->least,
                      error->most, reason);
}

static size_t count_names(const char *const *names)
{
    size_t n = 0;
    while (names[n] != NULL) {
        n++;
    }
    return n;
}

static bool same_name(const char *a, const char *b)
{ /* - and _ are one */
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        if (*a != *b && !(strchr("-_", *a) != NULL && strchr("-_", *b) != NULL)) {
            return false;
        }
    }
    return *a == *b;
}

static int refuse_range(const struct cli *cli, const struct option_spec *spec, const char *what,
                        const char *text)
{
    if (spec->kind == INTEGER) {
        return cli_refuse(cli, what, text, "expected an integer from %.0f to %.0f", spec->least,
                          spec->most);
    }
    if (spec->least > spec->most) {
        return cli_refuse(cli, what, text, "expected a finite number");
    }
    const char *bound = spec->open ? "above" : "of at least";
    if (isinf(spec->most)) {
        return cli_refuse(cli, what, text, "expected a finite number %s %g", bound,
                          spec->least);
    }
    return cli_refuse(cli, what, text, "expected a number %s %g, at most %g", bound,
                      spec->least, spec->most);
}

/* Splits a copy at commas; paths keep theirs. */
static int add_items(struct cli *cli, struct list *list, const char *what, const char *text,
                     bool split)
{
    char *copy = cli->n_copies < LIST_MAX ? strdup(text) : NULL;
    if (copy == NULL) {
        return cli_refuse(cli, what, text, "expected at most %d lists", LIST_MAX);
    }
    cli->copies[cli->n_copies++] = copy;
    while (copy != NULL) {
        char *comma = split ? strchr(copy, ',') : NULL;
        if (comma != NULL) {
            *comma = '\0';
        }
        if (*copy == '\0' || list->n == LIST_MAX) {
            return cli_refuse(cli, what, text, "expected names separated by commas, at most %d",
                              LIST_MAX);
        }
        list->item[list->n++] = copy;
        copy = comma != NULL ? comma + 1 : NULL;
    }
    return EXIT_FINE;
}

/* One path, with a slash in it, so that it is no model's name. */
static int add_config(struct cli *cli, struct list *list, const char *what, const char *text)
{
    char path[4096];
    if (*text == '\0' || access(text, R_OK) != 0) {
        return cli_refuse(cli, what, text,
                          "%s: expected the path of a Hugging Face config.json",
                          strerror(*text == '\0' ? ENOENT : errno));
    }
    snprintf(path, sizeof path, "%s%s", strchr(text, '/') != NULL ? "" : "./", text);
    return add_items(cli, list, what, path, false);
}

void cli_free(struct cli *cli)
{
    while (cli->n_copies > 0) {
        free(cli->copies[--cli->n_copies]);
    }
}

static int take_choice(const struct cli *cli, const struct option_spec *spec, const char *what,
                       const char *text, int *value)
{
    for (int i = 0; spec->names[i] != NULL; i++) {
        if (same_name(text, spec->names[i])) {
            *value = i;
            return EXIT_FINE;
        }
    }
    return cli_refuse_name(cli, what, text, spec->names, count_names(spec->names));
}

static int take(struct cli *cli, const struct option_spec *spec, const char *text)
{
    char what[64];
    snprintf(what, sizeof what, "--%s", spec->name);
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
                                           (spec->open && number <= spec->least)))) {
            return refuse_range(cli, spec, what, text);
        }
        *(double *)member = number;
        return EXIT_FINE;
    case TEXT:
        if (*text == '\0') {
            return cli_refuse(cli, what, text, "expected %s: %s", spec->argument, spec->help);
        }
        *(const char **)member = text;
        return EXIT_FINE;
    case LIST:
        if (strcmp(spec->name, "config") == 0) {
            return add_config(cli, member, what, text);
        }
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
        if (specs[i].kind == INTEGER) {
            *(int64_t *)member = INT64_MIN;
        } else if (specs[i].kind == REAL) {
            *(double *)member = (double)NAN;
        } else if (specs[i].kind == CHOICE) {
            *(int *)member = -1;
        }
    }
}

static int refuse_option(const struct cli *cli, const struct command *command,
                         const char *given)
{
    const char *names[N_SPECS];
    size_t n = 0;
    for (size_t i = 0; i < N_SPECS; i++) {
        if (specs[i].commands & command->bit) {
            names[n++] = specs[i].name;
        }
    }
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    return cli_refuse_name(cli, "unknown option", name + strspn(name, "-"), names, n);
}

static bool is_flag(int option)
{
    return option >= FIRST_OPTION && option < FIRST_OPTION + N_SPECS &&
           specs[option - FIRST_OPTION].kind == FLAG;
}

int cli_parse(struct cli *cli, const struct command *command, int argc, char **argv)
{
    set_defaults(cli);
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
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == 'h') {
            cli->help = true;
        } else if ((c == '?' || c == ':') && is_flag(optopt)) { /* libcs differ in which */
            char what[64];
            snprintf(what, sizeof what, "--%s", specs[optopt - FIRST_OPTION].name);
            return cli_refuse(cli, what, strchr(argv[optind - 1], '=') + 1,
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

void cli_help(const struct command *command)
{
    enum { COLUMN = 26 };
    printf("usage: posenc %s%s%s [OPTIONS]\n\n%s.\n\n%s\nOptions\n", command->name,
           *command->operands ? " " : "", command->operands, command->summary,
           command->details);
    for (size_t i = 0; i < N_SPECS; i++) {
        if (specs[i].commands & command->bit) {
            const char *argument = specs[i].argument != NULL ? specs[i].argument : "";
            int length = printf("  --%s%s%s", specs[i].name, *argument ? " " : "", argument);
            if (length >= COLUMN) {
                length = 0;
                putchar('\n');
            }
            printf("%*s%s\n", COLUMN - length, "", specs[i].help);
        }
    }
}
