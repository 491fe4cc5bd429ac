/*
 * Arguments of the posenc program. The parser, every --help and the options in a record are generated from one table of
 * options (args.c). After "posenc verify --kernel alibi,t5_bias -j 2", struct cli has
 *
 *     command "verify"   kernel { 2, { "alibi", "t5_bias" } }   jobs 2   seed INT64_MIN   limit NaN   suite NULL
 */
#ifndef POSENC_CLI_ARGS_H
#define POSENC_CLI_ARGS_H

#include "messages.h"

#include <jansson.h>
#include <posenc/backend.h>
#include <posenc/experimental.h>
#include <signal.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_CONFORMANCE = 1,  /* a check failed or crashed */
    EXIT_USAGE = 2,        /* bad usage, bad input, or an output that cannot be written */
    EXIT_INCOMPARABLE = 5, /* pair: nothing to compare; compare has 3 and 4, too */
    EXIT_SKIPPED = 77,     /* nothing to run on this machine, as Automake has it */
    EXIT_BROKEN_PIPE = 128 + SIGPIPE, /* the reader of stdout went away */
    EXIT_SIGNAL = 128, /* plus the number of the signal that interrupted the run */
};

/* Signals that end a run with the results so far. */
enum { N_END_SIGNALS = 3 };
extern const int end_signals[N_END_SIGNALS]; /* SIGINT, SIGTERM, SIGHUP */

enum { BACKENDS_MAX = 32 };
enum { LIST_MAX = 64 }; /* values of an option */

/* Values of an option that may be repeated. */
struct option_values {
    size_t n;
    const char *item[LIST_MAX];
};

/* Parsed command line. An option that is absent is INT64_MIN as an integer, NaN as a real, NULL as a text. */
struct cli {
    const char *command; /* "verify"; "tune" and "doctor" for their parts of bench */
    unsigned bit;        /* FOR_VERIFY, ... of the command */
    int argc;            /* arguments of main() */
    char **argv;
    int n_operands; /* arguments that belong to no option, as in posenc pair BASE HEAD */
    char **operands;

    struct option_values kernel, backend, dtype, plugin, exec, part;
    struct option_values model; /* of --model; of --config, with a slash in each path */
    struct option_values cases; /* of --case */
    struct option_values out;   /* of --out; others are converted to FORMAT:PATH */
    bool quick, full, exhaustive, rows_alone;
    bool tune, instructions, probe, update_error_limits;
    bool json, force, verbose, quiet, help, version;
    const char *suite, *problem, *layer_type, *positions, *shard;
    const char *vectors, *error_limits, *pairs, *tuning;
    const char *answers; /* folder of posenc vectors answers */
    int64_t jobs, threads, seed, parent, grid;
    double time_limit, limit; /* seconds */
};

struct command {
    const char *name;
    unsigned bit; /* FOR_LIST, ...: selects its options */
    int (*run)(struct cli *cli);
    const char *operands; /* operands in the usage line */
    const char *summary;
    const char *details; /* text of --help; ends with a newline */
};

/* Commands that accept an option, as bits. */
enum {
    FOR_LIST = 1,
    FOR_VERIFY = 2,
    FOR_BENCH = 4,
    FOR_PAIR = 8,
    FOR_TABLE = 16,
    FOR_VECTORS = 32,
    FOR_ALL = 63,
    WITH_VERBOSE = 64,  /* the option has an effect together with --verbose */
    WITH_PROBLEM = 128, /* and together with --problem */
    UNRECORDED = 256,   /* the option changes no result, so records omit it */
};

/* Parses the arguments after the command's name. */
void cli_parse(struct cli *cli, const struct command *command, int argc, char **argv);
/* Rejects an operand of a command that takes none. */
void cli_check_operands(const struct cli *cli);
void cli_print_help(const struct command *command);
/* Prints a text wrapped before column `to`. The cursor is at `column`, which is the indent of all further lines. */
void print_wrapped(const char *text, int column, int to);

/* Rejects the first option that has no effect together with --problem or --verbose: `with` is WITH_PROBLEM or
 * WITH_VERBOSE, and `other` that option. */
void cli_check_options_with(const struct cli *cli, unsigned with, const char *other);

/* Returns the options that influence results: {"kernel": ["alibi"], "seed": 7}. */
json_t *cli_options(const struct cli *cli);

/* Converts a whole text. Returns false if it is not a number or not finite. */
bool parse_real(const char *text, double *value);

/* Commands: each runs with parsed arguments and returns the exit code. */
int command_list(struct cli *cli);
int command_verify(struct cli *cli);
int command_bench(struct cli *cli);
int command_table(struct cli *cli);
int command_vectors(struct cli *cli);
int command_pair(struct cli *cli);

#endif
