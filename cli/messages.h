/*
 * Messages, notes and the progress line on standard error. Error messages have one form, the command, the option or
 * another item, its value, and the accepted values:
 *
 *     posenc table: --grid: x: expected an integer from 1 to 1073741824
 */
#ifndef POSENC_CLI_MESSAGES_H
#define POSENC_CLI_MESSAGES_H

#include "base/text/text.h"

#include <posenc.h>

/* Prints such a message and exits the program with EXIT_USAGE. `value` may be NULL. Outputs that are not complete have no
 * name yet, so nothing is left behind. Not for workers that run checks or timings. */
_Noreturn void cli_reject(const char *item, const char *value, const char *expected, ...)
    PRINTF_LIKE(3, 4);
/* Does the same for a name that is none of `names`: suggests similar ones, or all of a short list. */
_Noreturn void cli_reject_name(const char *item, const char *value, const char *const *names,
                               size_t n);
/* Returns the index of a value in `names`, or rejects it. */
size_t cli_find_name(const char *item, const char *value, const char *const *names, size_t n);
/* Rejects an error of the library; `error` may be NULL. */
_Noreturn void cli_reject_status(const char *item, enum posenc_status status,
                                 const struct posenc_error *error);
/* Prints the message of cli_reject() and returns, for another exit code or none. */
void cli_complain(const char *item, const char *value, const char *expected, ...)
    PRINTF_LIKE(3, 4);
/* Sets the command in messages. */
void cli_set_command(const char *name);

/* Prints a note, unless --quiet is set. */
void cli_print_note(const char *format, ...) PRINTF_LIKE(1, 2);
void cli_set_quiet(bool quiet);

/* Returns zeroed memory, to be freed. Without memory, exits as cli_reject() does. */
void *cli_allocate(size_t n, size_t size);

/* ---- Progress ---- */

/* Progress line, such as "verify 12/140 kernels on backends, about 5 s left  avx2 alibi/f32/given/l2". It is erased at
 * the end. None is drawn if stderr is not a terminal, or a terminal that cannot erase (TERM=dumb). */
struct progress {
    const char *command; /* "verify" */
    const char *unit;    /* "shapes": unit of `done` and `total` */
    double done;         /* may have a fraction */
    size_t total;
    double most_s;       /* limit of the total time in seconds; 0: unknown */
    const char *notes;   /* ", 2 FAILED"; NULL: none */
    const char *case_id; /* current case, cut at the end of the line; NULL: none */
};

/* Draws the line, at most ten times a second. The time starts with the first call of a command. */
void progress_draw(const struct progress *now);
/* Erases the line. */
void progress_clear(void);
/* Erases the line; may be called in a signal handler. */
void progress_erase_in_handler(void);

#endif
