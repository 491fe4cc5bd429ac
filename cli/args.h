/*
 * Arguments of the posenc program: one table of options makes the parser, every --help and the options of a record.
 *
 * Rejections have one form, "posenc table: --grid: x: expected ...": the command, the option, its value, and what would
 * be accepted.  Their exit code is EXIT_USAGE.
 */
#ifndef POSENC_CLI_ARGS_H
#define POSENC_CLI_ARGS_H

#include "formats.h"

#include <posenc.h>
#include <signal.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(form, first) __attribute__((__format__(__printf__, form, first)))
#else
#define PRINTF_LIKE(form, first)
#endif

enum exit_code {
    EXIT_FINE = 0,
    EXIT_CONFORMANCE = 1,
    EXIT_USAGE = 2,        /* bad usage, bad input, or an output that cannot be written */
    EXIT_SLOWER = 3,       /* compare --gate: a regression that was confirmed */
    EXIT_UNCLEAR = 4,      /* compare --strict */
    EXIT_INCOMPARABLE = 5, /* builds or results that have nothing to compare */
    EXIT_NOTHING = 77,
    EXIT_READER_GONE = 128 + SIGPIPE, /* nobody reads stdout: as a shell reports SIGPIPE */
};

enum { LIST_MAX = 64, BACKENDS_MAX = 32 };

/* Values of an option that may be given more than once. */
struct list {
    size_t n;
    const char *item[LIST_MAX];
};

/* Options and operands as given. Integers that were not given are INT64_MIN, reals NaN. */
struct cli {
    const char *command;
    unsigned bit; /* FOR_VERIFY, ...: that of the command */
    int argc;     /* argc and argv are those of main() */
    char **argv;
    int n_operands;
    char **operands;
    size_t n_copies;
    char *copies[LIST_MAX]; /* values of lists, split at commas */

    struct list kernel, backend, dtype, model, cases, plugin, out, part;
    bool quick, full, exhaustive, update_error_limits, force, help, version, json, rows_alone,
        probe;
    bool tune, verbose, quiet, instructions;
    const char *suite, *vectors, *error_limits, *problem, *layer_type, *shard, *pairs, *tuning;
    const char *positions, *grid;
    int64_t jobs, threads, seed, parent;
    double budget, limit;
};

struct command {
    const char *name;
    unsigned bit; /* which options it takes */
    int (*run)(struct cli *cli);
    const char *operands; /* operands in the usage line */
    const char *summary;
    const char *details;          /* text of --help; ends with a newline */
    const struct format *formats; /* formats of --out, if they are for `writes`; or NULL */
    unsigned writes;              /* BY_VERIFY, ... */
};

enum {
    FOR_LIST = 1,
    FOR_VERIFY = 2,
    FOR_BENCH = 4,
    FOR_PAIR = 8,
    FOR_TABLE = 16,
    FOR_VECTORS = 32,
    FOR_ALL = 63,
    /* No commands, but options that mean something beside another option, and options that records leave
     * out, since they change no result. */
    BESIDE_VERBOSE = 64,
    BESIDE_PROBLEM = 128,
    UNRECORDED = 256,
};

/* Fills `cli` from the arguments after the command's name.  Returns EXIT_FINE, or EXIT_USAGE after a message. */
int cli_parse(struct cli *cli, const struct command *command, int argc, char **argv);
void cli_free(struct cli *cli);
void cli_print_help(const struct command *command);

/* Prints "posenc COMMAND: WHAT: VALUE: expected ..." on stderr and returns EXIT_USAGE.  `value` may be NULL. */
int cli_refuse(const struct cli *cli, const char *what, const char *value, const char *expected,
               ...) PRINTF_LIKE(4, 5);
/* The same for a name that is none of `names`: with the nearest, or all if they are few. */
int cli_refuse_name(const struct cli *cli, const char *what, const char *value,
                    const char *const *names, size_t n);
/* The same for a rejection by the library; `error` may be NULL. */
int cli_refuse_status(const struct cli *cli, const char *what, enum posenc_status status,
                      const struct posenc_error *error);

/* Prints a note on stderr, unless --quiet was given. */
void cli_print_note(const char *format, ...) PRINTF_LIKE(1, 2);
void cli_set_quiet(bool quiet);
bool cli_is_quiet(void);

/* Rejects the first option given that has no effect beside --problem, or beside --verbose. */
int cli_refuse_beside_problem(const struct cli *cli);
int cli_refuse_in_depth(const struct cli *cli);

/* Returns the options given that decide what a run finds: {"kernel": ["alibi"], "seed": 7}. */
json_t *cli_options(const struct cli *cli);

/* Convert a whole text; false if it is no such number or out of range. */
bool parse_integer(const char *text, int64_t least, int64_t most, int64_t *value);
bool parse_real(const char *text, double *value); /* finite ones only */

/* The subcommands. */
int command_list(struct cli *cli);
int command_verify(struct cli *cli);
int command_bench(struct cli *cli);
int command_table(struct cli *cli);
int command_vectors(struct cli *cli);
int command_pair(struct cli *cli);

#endif
