/*
 * Arguments of the posenc program: one table of options makes the parser and every --help.
 *
 * A refusal has one form, "posenc table: --dim: -3: expected an integer from 1 to 65536": who,
 * what, which value, what would be accepted.  Its exit code is EXIT_USAGE.
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
    EXIT_READER_GONE = 128 + SIGPIPE, /* of stdout: as a shell reports that signal */
};

enum { LIST_MAX = 64, BACKENDS_MAX = 32 };

/* Values of an option that may be given more than once, commas splitting them. */
struct list {
    size_t n;
    const char *item[LIST_MAX];
};

/* What was asked for.  Integers that were not given are INT64_MIN, reals NaN, choices -1. */
struct cli {
    const char *command;
    unsigned bit; /* its own, of those of an option */
    int argc;     /* of main() */
    char **argv;
    int n_operands;
    char **operands;
    size_t n_copies;
    char *copies[LIST_MAX]; /* of the values of lists, split at commas */

    struct list kernel, backend, dtype, model, cases, plugin, out, part;
    bool quick, full, exhaustive, update_budgets, force, help, rows_alone, probe, tune, verbose,
        instructions;
    const char *suite, *vectors, *budgets, *problem, *layer_type, *shard, *pairs, *tuning;
    int64_t jobs, threads, seed, parent;
    double budget, limit;

    const char *positions, *times, *mrope_section;
    const char *short_factors, *long_factors;
    int64_t tokens, first, grid, dim, rotary_dim, seq_len;
    int layout, profile, convention, scaling, truncate, mrope_layout, grid_order, storage;
    double rope_theta, scale, factor, original, low_freq_factor, high_freq_factor;
    double beta_fast, beta_slow, attention_factor, mscale, mscale_all_dim;
    double max_position_embeddings, partial_rotary_factor;
    double grid_scale, xpos_scale_base, xpos_centre;
    bool xpos_inverse;
};

struct command {
    const char *name;
    unsigned bit; /* which options it takes */
    int (*run)(struct cli *cli);
    const char *operands; /* as in the usage line */
    const char *summary;
    const char *details; /* of --help; ends with a newline */
    const struct format
        *formats; /* that --out takes, of those that `writes` may write; or NULL */
    unsigned writes;
};

enum {
    FOR_LIST = 1,
    FOR_VERIFY = 2,
    FOR_BENCH = 4,
    IN_DEPTH = 16, /* no command: what has a meaning beside --verbose */
    /* of one command, each kind of table */
    TABLE_SINUSOIDAL = 32,
    TABLE_ROPE = 64,
    TABLE_FREQUENCIES = 128,
    TABLE_ERRORS = 256,
    TABLE_DRIFT = 512,
    FOR_TABLE = TABLE_SINUSOIDAL | TABLE_ROPE | TABLE_FREQUENCIES | TABLE_ERRORS | TABLE_DRIFT,
    FOR_VECTORS = 131072,
    BESIDE_PROBLEM = 262144, /* no command: what has a meaning beside --problem */
    FOR_PAIR = 524288,
};

/* Fills `cli` from the arguments after the command's name.  EXIT_FINE, or
 * EXIT_USAGE after a message on stderr. */
int cli_parse(struct cli *cli, const struct command *command, int argc, char **argv);
void cli_free(struct cli *cli);
void cli_help(const struct command *command);

/* "posenc COMMAND: WHAT: VALUE: expected ..." on stderr; returns EXIT_USAGE.  `value` may be
 * NULL. */
int cli_refuse(const struct cli *cli, const char *what, const char *value, const char *expected,
               ...) PRINTF_LIKE(4, 5);
/* The same for a name that is none of `names`: with the nearest, or all when they are few. */
int cli_refuse_name(const struct cli *cli, const char *what, const char *value,
                    const char *const *names, size_t n);
/* The same for a refusal of the library, in terms of the option where one, and not --problem, sets
 * what was refused; `error` may be NULL. */
int cli_refuse_status(const struct cli *cli, const char *what, enum posenc_status status,
                      const struct posenc_error *error);

/* Refuses the first option given that this kind of table or picture has no use for, or the
 * first parameter of other scalings than this one; EXIT_FINE where there is none. */
int cli_refuse_foreign(const struct cli *cli, unsigned kind);
/* The first that would say what --problem says. */
int cli_refuse_beside_problem(const struct cli *cli);
/* The first that --verbose has no use for. */
int cli_refuse_in_depth(const struct cli *cli);
int cli_refuse_unscaled(const struct cli *cli, enum posenc_scaling scaling);
/* The kinds of table, by their bits. */
enum { ROWS_FIRST, COLUMNS_FIRST }; /* of --grid-order */
enum { TABLE_KINDS = 5 };
extern const struct table_kind {
    const char *name;
    unsigned bit;
} cli_table_kinds[TABLE_KINDS];
/* "rope_table, errors": the kinds among `bits`. */
void cli_list_kinds(unsigned bits, char *text, size_t size);

/* The options given that decide what a run finds: {"kernel": ["alibi"], "seed": 7}; not those that
 * say how it runs and where its result goes. */
json_t *cli_options(const struct cli *cli);

/* Whole-string conversions; false when `text` is no such number or out of range. */
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
