/*
 * Table of options, and the parser and help that are generated from it (see args.h). getopt_long() splits the
 * arguments. A value is checked, and stored at its option's offset in struct cli.
 */
#define _GNU_SOURCE
#include "args.h"
#include "base/records.h"
#include "base/text/text.h"
#include "data.h"
#include "outputs.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Commands that several options have in common. */
enum {
    RUNS = FOR_VERIFY | FOR_BENCH,
    TIMES = FOR_BENCH | FOR_PAIR,
    MEASURES = FOR_VERIFY | FOR_BENCH | FOR_PAIR,
    WRITES = MEASURES | FOR_TABLE | WITH_PROBLEM | UNRECORDED,
    CALLS = RUNS | FOR_TABLE | WITH_VERBOSE | WITH_PROBLEM,
};

/* Kinds of options. The last four are lists; only WORDS are split at commas, since paths may contain commas. */
enum option_kind { FLAG, INTEGER, REAL, TEXT, WORDS, PATHS, MODEL_FILES, OUTPUT_FILES };

struct option_spec {
    const char *name; /* "jobs" */
    char letter;      /* 'j'; 0: none */
    enum option_kind kind;
    unsigned commands;    /* that accept it: FOR_VERIFY, WITH_VERBOSE, ... */
    size_t offset;        /* of the member in struct cli */
    const char *argument; /* its name in --help: "N"; NULL for a FLAG */
    double min, max;      /* range of an INTEGER; a REAL is above `min` */
    const char *help;
};

#define OFFSET(member) offsetof(struct cli, member)
enum { SECONDS_MOST = 86400 };
#define SEED_MOST 0x1p53

/* Options in the order of --help. An option whose meaning depends on the command has several rows. */
static const struct option_spec specs[] = {
    { "kernel", 0, WORDS, MEASURES | FOR_VECTORS, OFFSET(kernel), "NAME", 0, 0,
      "select kernels (posenc list kernels)" },
    { "backend", 0, WORDS, CALLS | FOR_PAIR, OFFSET(backend), "NAME", 0, 0,
      "select backends or families (posenc list backends)" },
    { "dtype", 0, WORDS, MEASURES | FOR_LIST | FOR_VECTORS, OFFSET(dtype), "NAME", 0, 0,
      "select element types: f32, f16, bf16 (bench default: the config's, or f32)" },
    { "model", 0, WORDS, RUNS | FOR_PAIR | FOR_TABLE | FOR_VECTORS, OFFSET(model), "NAME", 0, 0,
      "use shapes and parameters of a preset (posenc list models)" },
    { "config", 0, MODEL_FILES, RUNS | FOR_PAIR | FOR_TABLE | FOR_VECTORS, OFFSET(model),
      "FILE", 0, 0,
      "use those of a config.json, params.json or GGUF file, a folder with one, or an org/name "
      "in the local Hugging Face cache" },
    { "layer-type", 0, TEXT, FOR_TABLE, OFFSET(layer_type), "NAME", 0, 0,
      "use layers of this type: full_attention, sliding_attention, vision (default: the "
      "first)" },
    { "case", 0, WORDS, MEASURES | FOR_VECTORS | WITH_VERBOSE, OFFSET(cases), "GLOB", 0, 0,
      "select cases by id, e.g. 'rope_*/exact/*'" },
    { "problem", 0, TEXT, RUNS | FOR_PAIR | FOR_TABLE | WITH_PROBLEM | WITH_VERBOSE,
      OFFSET(problem), "LINE", 0, 0,
      "run this problem only, e.g. 'rope_table rotary_dim=128 scaling=ntk factor=4'; with "
      "--model, change its call" },
    { "positions", 0, TEXT, FOR_TABLE, OFFSET(positions), "LIST", 0, 0,
      "place rows at positions, or at times with fractions, e.g. 0..63,-5 or 0..1000:62.5" },
    { "grid", 0, INTEGER, FOR_TABLE, OFFSET(grid), "WIDTH", 1, 1 << 30,
      "place rows as a picture, row by row: position_kind=i64 mrope_grid=WIDTH of the problem, "
      "with the axes in the order of the model" },
    { "plugin", 0, PATHS, CALLS | FOR_LIST, OFFSET(plugin), "LIB", 0, 0,
      "add the backend of a shared library (struct posenc_backend posenc_plugin)" },
    { "exec", 0, PATHS, FOR_VERIFY | WITH_PROBLEM, OFFSET(exec), "COMMAND", 0, 0,
      "add a program that answers prompts on its standard input and output, or fd:N for an "
      "inherited socket (docs/protocol.md)" },
    { "quick", 0, FLAG, RUNS | FOR_PAIR | WITH_PROBLEM | UNRECORDED, OFFSET(quick), NULL, 0, 0,
      "make a short run (default)" },
    { "full", 0, FLAG, RUNS | FOR_PAIR | FOR_VECTORS | WITH_PROBLEM | WITH_VERBOSE | UNRECORDED,
      OFFSET(full), NULL, 0, 0, "run every case, dense scans, more rounds" },
    { "exhaustive", 0, FLAG, FOR_VERIFY | UNRECORDED, OFFSET(exhaustive), NULL, 0, 0,
      "run every position below 2^20, presets in 16 bits; minutes to hours" },
    { "suite", 0, TEXT, FOR_VERIFY, OFFSET(suite), "NAME", 0, 0,
      "run one suite: vectors, accuracy, digests, memory, properties, side-effects or random" },
    { "seed", 0, INTEGER, FOR_VERIFY, OFFSET(seed), "N", 0, SEED_MOST,
      "seed for random problems (default: 0)" },
    { "seed", 0, INTEGER, FOR_BENCH | FOR_PAIR | WITH_PROBLEM, OFFSET(seed), "N", 0, SEED_MOST,
      "seed for the order of rounds (default: 0)" },
    { "time-limit", 0, REAL, FOR_VERIFY, OFFSET(time_limit), "SECONDS", 0, SECONDS_MOST,
      "test random problems for SECONDS in total" },
    { "time-limit", 0, REAL, TIMES | WITH_PROBLEM, OFFSET(time_limit), "SECONDS", 0,
      SECONDS_MOST, "stop adding rounds after SECONDS" },
    { "limit", 0, REAL, CALLS | FOR_LIST | UNRECORDED, OFFSET(limit), "SECONDS", 0,
      SECONDS_MOST,
      "report a call as hung after SECONDS of CPU time, or a program's answer after "
      "SECONDS (default: 60)" },
    { "jobs", 'j', INTEGER, FOR_VERIFY | WITH_PROBLEM | UNRECORDED, OFFSET(jobs), "N", 1, 1024,
      "check N kernels at once (default: one per CPU)" },
    { "threads", 0, INTEGER, FOR_BENCH | WITH_PROBLEM, OFFSET(threads), "N", 1, 1024,
      "run a kernel on N threads at once (default: 1)" },
    { "shard", 0, TEXT, RUNS | UNRECORDED, OFFSET(shard), "I/N", 0, 0,
      "run share I of N, from 0 to N - 1 (posenc results merge joins them)" },
    { "tune", 0, FLAG, FOR_BENCH, OFFSET(tune), NULL, 0, 0, "print records for posenc tune" },
    { "tuning", 0, TEXT, FOR_BENCH, OFFSET(tuning), "FILE", 0, 0,
      "with --tune: mark the backends that this tuning file chooses" },
    { "instructions", 0, FLAG, FOR_BENCH, OFFSET(instructions), NULL, 0, 0,
      "count the instructions of a call instead of timing it" },
    { "probe", 0, FLAG, FOR_BENCH, OFFSET(probe), NULL, 0, 0,
      "print records of the machine's noise, for posenc doctor" },
    { "vectors", 0, TEXT,
      RUNS | FOR_LIST | FOR_VECTORS | WITH_VERBOSE | WITH_PROBLEM | UNRECORDED, OFFSET(vectors),
      "PATH", 0, 0, "read golden vectors from this folder (also POSENC_VECTORS)" },
    { "error-limits", 0, TEXT, FOR_VERIFY | WITH_PROBLEM, OFFSET(error_limits), "FILE", 0, 0,
      "read error limits from this file" },
    { "update-error-limits", 0, FLAG, FOR_VERIFY, OFFSET(update_error_limits), NULL, 0, 0,
      "lower the limits in that file to the measured errors" },
    { "part", 0, WORDS, FOR_PAIR | WITH_PROBLEM | UNRECORDED, OFFSET(part), "NAME", 0, 0,
      "compare these: results, code, times or counts (default: code,times)" },
    { "pairs", 0, TEXT, FOR_PAIR | WITH_PROBLEM | UNRECORDED, OFFSET(pairs), "FILE", 0, 0,
      "time or count only the lines CASE BACKEND of FILE (-: standard input)" },
    { "rows-only", 0, FLAG, FOR_PAIR | WITH_PROBLEM | UNRECORDED, OFFSET(rows_alone), NULL, 0,
      0, "check 64 rows of each output instead of all" },
    { "parent", 0, INTEGER, FOR_PAIR | WITH_PROBLEM | UNRECORDED, OFFSET(parent), "PID", 1,
      4194304, "exit when process PID exits" },
    { "out", 0, PATHS, WRITES | FOR_VECTORS, OFFSET(out), "FORMAT[:PATH]", 0, 0,
      "write the result in a format, to PATH or standard output" },
    { "output", 'o', OUTPUT_FILES, WRITES | FOR_VECTORS, OFFSET(out), "PATH", 0, 0,
      "write the result to PATH in the format of its suffix" },
    { "json", 0, FLAG, MEASURES | FOR_VECTORS | WITH_PROBLEM | UNRECORDED, OFFSET(json), NULL,
      0, 0, "write records to standard output, as --out jsonl does" },
    { "force", 0, FLAG, WRITES | FOR_VECTORS, OFFSET(force), NULL, 0, 0,
      "overwrite any file at PATH" },
    { "verbose", 'v', FLAG, FOR_VERIFY | WITH_VERBOSE | WITH_PROBLEM, OFFSET(verbose), NULL, 0,
      0, "show values of one --case ID or --problem on every backend" },
    { "quiet", 'q', FLAG, FOR_ALL | WITH_VERBOSE | WITH_PROBLEM | UNRECORDED, OFFSET(quiet),
      NULL, 0, 0, "print no notes and no progress on standard error" },
    { "help", 'h', FLAG, FOR_ALL | WITH_VERBOSE | WITH_PROBLEM | UNRECORDED, OFFSET(help), NULL,
      0, 0, "print this text" },
    { "version", 'V', FLAG, FOR_ALL | WITH_VERBOSE | WITH_PROBLEM | UNRECORDED, OFFSET(version),
      NULL, 0, 0, "print the version" },
};
enum { N_SPECS = sizeof specs / sizeof *specs, FIRST_OPTION = 256 };

static bool is_given(const struct cli *cli, const struct option_spec *spec)
{
    const void *member = (const char *)cli + spec->offset;
    if (spec->kind == FLAG)
        return *(const bool *)member;
    if (spec->kind == INTEGER)
        return *(const int64_t *)member != INT64_MIN;
    if (spec->kind == REAL)
        return !isnan(*(const double *)member);
    if (spec->kind == TEXT)
        return *(const char *const *)member != NULL;
    return ((const struct option_values *)member)->n > 0;
}

/* ---- Options as a record ---- */

static json_t *value_record(const struct cli *cli, const struct option_spec *spec)
{
    const void *member = (const char *)cli + spec->offset;
    if (spec->kind == FLAG)
        return json_true();
    if (spec->kind == INTEGER)
        return json_integer(*(const int64_t *)member);
    if (spec->kind == REAL)
        return json_real(*(const double *)member);
    if (spec->kind == TEXT)
        return record_string(*(const char *const *)member);
    const struct option_values *list = member;
    json_t *items = json_array();
    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(items, record_string(list->item[i]));
    return items;
}

json_t *cli_options(const struct cli *cli)
{
    json_t *options = json_object();
    for (size_t i = 0; i < N_SPECS; i++)
        if ((specs[i].commands & cli->bit) && !(specs[i].commands & UNRECORDED) &&
            is_given(cli, &specs[i]))
            json_object_set_new(options, specs[i].name, value_record(cli, &specs[i]));
    return options;
}

/* ---- Rejections ---- */

void cli_check_options_with(const struct cli *cli, unsigned with, const char *other)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--%s", specs[i].name);
        if (is_given(cli, &specs[i]) && (specs[i].commands & cli->bit) &&
            !(specs[i].commands & with))
            cli_reject(flag, NULL, "has no effect with %s", other);
    }
}

_Noreturn static void reject_number(const struct option_spec *spec, const char *flag,
                                    const char *text)
{
    if (spec->kind == INTEGER)
        cli_reject(flag, text, "expected an integer from %.0f to %.0f", spec->min, spec->max);
    cli_reject(flag, text, "expected a number above %g, at most %g", spec->min, spec->max);
}

_Noreturn static void reject_option(const struct cli *cli, const char *given)
{
    const char *names[N_SPECS];
    size_t n = 0;
    for (size_t i = 0; i < N_SPECS; i++)
        if (specs[i].commands & cli->bit)
            names[n++] = specs[i].name;
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given, "="), given);
    cli_reject_name("unknown option", name + strspn(name, "-"), names, n);
}

/* ---- Values ---- */

static bool parse_integer(const char *text, int64_t min, int64_t max, int64_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits < '0' || *digits > '9')
        return false; /* strtoll would skip blanks */
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < min || number > max)
        return false;
    *value = number;
    return true;
}

bool parse_real(const char *text, double *value)
{
    if (!strchr("+-.0123456789", *text) || *text == '\0')
        return false;
    char *end;
    double number = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(number))
        return false;
    *value = number;
    return true;
}

/* Adds a copy of a text to a list, split at commas if `split`. The copy lasts as long as the program. */
static void add_items(struct option_values *list, const char *flag, const char *text,
                      bool split)
{
    char *copy = cli_allocate(strlen(text) + 1, 1), *comma;
    memcpy(copy, text, strlen(text));
    for (char *item = copy; item; item = comma ? comma + 1 : NULL) {
        comma = split ? strchr(item, ',') : NULL;
        if (comma)
            *comma = '\0';
        if (*item == '\0' || list->n == LIST_MAX)
            cli_reject(flag, text,
                       split ? "expected names separated by commas, at most %d"
                             : "expected a value that is not empty, at most %d times",
                       LIST_MAX);
        list->item[list->n++] = item;
    }
}

void cli_check_operands(const struct cli *cli)
{
    if (cli->n_operands > 0)
        cli_reject("unexpected argument", cli->operands[0], "expected options only");
}

/* Adds a path to the models. "./" is prepended to a bare name, since a slash distinguishes paths from presets. */
static void add_model_file(struct cli *cli, const char *text)
{
    char path[DATA_PATH];
    const int length = snprintf(path, sizeof path, "%s%s", strchr(text, '/') ? "" : "./", text);
    if (length >= (int)sizeof path)
        cli_reject("--config", NULL, "a path of %zu characters: expected at most %zu",
                   strlen(text), sizeof path - 3);
    add_items(&cli->model, "--config", path, false);
}

/* Adds -o PATH as --out FORMAT:PATH, with the first format of that suffix. Several formats have the suffix .json. */
static void add_output_file(struct cli *cli, const char *path)
{
    const char *slash = strrchr(path, '/'), *suffix = strrchr(slash ? slash : path, '.');
    const struct output_format *format = suffix ? format_next(cli, NULL) : NULL;
    char request[DATA_PATH];
    while (format && (strcmp(format->extension, suffix + 1) != 0 ||
                      strcmp(format->extension, "json") == 0))
        format = format_next(cli, format);
    if (!format)
        cli_reject("-o", path,
                   "no format follows from this name: expected another suffix, or "
                   "--out FORMAT:PATH");
    const int length = snprintf(request, sizeof request, "%s:%s", format->name, path);
    if (length < 0 || (size_t)length >= sizeof request)
        cli_reject("-o", path, "expected a shorter path");
    add_items(&cli->out, "-o", request, false);
}

static void store_value(struct cli *cli, const struct option_spec *spec, const char *text)
{
    void *member = (char *)cli + spec->offset;
    char flag[64];
    double number;
    snprintf(flag, sizeof flag, "--%s", spec->name);
    if (spec->kind == FLAG) {
        *(bool *)member = true;
    } else if (spec->kind == INTEGER) {
        if (!parse_integer(text, (int64_t)spec->min, (int64_t)spec->max, member))
            reject_number(spec, flag, text);
    } else if (spec->kind == REAL) {
        if (!parse_real(text, &number) || number <= spec->min || number > spec->max)
            reject_number(spec, flag, text);
        *(double *)member = number;
    } else if (spec->kind == TEXT) {
        if (*text == '\0')
            cli_reject(flag, text, "expected %s: %s", spec->argument, spec->help);
        *(const char **)member = text;
    } else if (spec->kind == OUTPUT_FILES) {
        add_output_file(cli, text);
    } else if (spec->kind == MODEL_FILES) {
        add_model_file(cli, text);
    } else {
        add_items(member, flag, text, spec->kind == WORDS);
    }
}

/* ---- The parser ---- */

static void set_defaults(struct cli *cli)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        void *member = (char *)cli + specs[i].offset;
        if (specs[i].kind == INTEGER)
            *(int64_t *)member = INT64_MIN;
        else if (specs[i].kind == REAL)
            *(double *)member = (double)NAN;
    }
}

/* Fills the arguments of getopt_long() with the options of a command. */
static void list_options(const struct command *command, struct option options[N_SPECS + 1],
                         char letters[2 * N_SPECS])
{
    size_t n = 0, n_letters = 0;
    letters[n_letters++] = ':'; /* asks for ':' if a value is missing */
    for (size_t i = 0; i < N_SPECS; i++) {
        const bool is_flag = specs[i].kind == FLAG;
        if (!(specs[i].commands & command->bit))
            continue;
        options[n++] =
            (struct option){ specs[i].name, is_flag ? no_argument : required_argument, NULL,
                             FIRST_OPTION + (int)i };
        if (specs[i].letter)
            letters[n_letters++] = specs[i].letter;
        if (specs[i].letter && !is_flag)
            letters[n_letters++] = ':';
    }
    options[n] = (struct option){ 0 };
    letters[n_letters] = '\0';
}

/* Returns the option for a result of getopt_long(): a letter, or FIRST_OPTION plus an index. NULL: unknown. */
static const struct option_spec *find_spec(int found)
{
    for (int i = 0; i < N_SPECS; i++)
        if (found == FIRST_OPTION + i || (found != 0 && found == specs[i].letter))
            return &specs[i];
    return NULL;
}

/* Rejects the argument for which getopt_long() returned ':', as it lacks a value, or '?'. */
_Noreturn static void reject_argument(const struct cli *cli, int found, const char *argument)
{
    const struct option_spec *spec = find_spec(optopt);
    if (spec && spec->kind == FLAG && strchr(argument, '=')) /* C libraries differ in `found` */
        cli_reject(argument, NULL, "expected the option alone: it takes no value");
    if (found == ':')
        cli_reject(argument, NULL, "expected a value after it");
    reject_option(cli, argument);
}

void cli_parse(struct cli *cli, const struct command *command, int argc, char **argv)
{
    struct option options[N_SPECS + 1];
    char letters[2 * N_SPECS];
    set_defaults(cli);
    cli->bit = command->bit;
    list_options(command, options, letters);
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        if (found == '?' || found == ':')
            reject_argument(cli, found, argv[optind - 1]);
        store_value(cli, find_spec(found), optarg);
    }
    cli_set_quiet(cli->quiet);
    if (cli->json)
        add_items(&cli->out, "--json", "jsonl", false);
    cli->n_operands = argc - optind;
    cli->operands = argv + optind;
}

/* ---- Help ---- */

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

void print_wrapped(const char *text, int column, int to)
{
    int at = column;
    for (bool first = true; *text != '\0'; first = false) {
        int length = (int)strcspn(text, " ");
        if (!first && at + 1 + length > to) {
            printf("\n%*s", column, "");
            at = column;
        } else if (!first) {
            at += printf(" ");
        }
        at += printf("%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static void print_row(const char *left, const char *help)
{
    const int length = printf("  %s", left);
    const bool fits = length + 2 <= HELP_COLUMN; /* two blanks: cli/manual reads rows */
    printf(fits ? "%*s" : "\n%*s", fits ? HELP_COLUMN - length : HELP_COLUMN, "");
    print_wrapped(help, HELP_COLUMN, HELP_WIDTH);
}

void cli_print_help(const struct command *command)
{
    const struct cli cli = { .bit = command->bit };
    const struct output_format *format = format_next(&cli, NULL);
    printf("usage: posenc %s%s%s [OPTIONS]\n\n%s.\n\n%s", command->name,
           *command->operands ? " " : "", command->operands, command->summary,
           command->details);
    puts("\nOptions");
    for (const struct option_spec *spec = specs; spec < specs + N_SPECS; spec++) {
        char left[96];
        const char short_form[] = { '-', spec->letter, ',', ' ', '\0' };
        snprintf(left, sizeof left, "%s--%s%s%s", spec->letter ? short_form : "    ",
                 spec->name, spec->argument ? " " : "", spec->argument ? spec->argument : "");
        if (spec->commands & command->bit)
            print_row(left, spec->help);
    }
    if (format)
        puts("\nFormats of --out");
    for (; format; format = format_next(&cli, format))
        print_row(format->name, format->purpose);
}
