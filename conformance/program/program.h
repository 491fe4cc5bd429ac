/*
 * Programs as backends, for posenc verify --exec "python3 mine.py". A program answers prompts on its standard input
 * and output (docs/protocol.md); here it is a backend whose kernels send the arguments of each call and receive the
 * outputs. Files of prompts and answers take the place of a running program for posenc vectors prompts and answers.
 *
 * A process has one program at most. connection.h moves bytes, message.h has their format, and prompt.h makes a message
 * of a call.
 */
#ifndef POSENC_PROGRAM_H
#define POSENC_PROGRAM_H

#include "conformance/problem/fields.h"

/* Starts a program, or uses an inherited socket ("fd:N"), and exchanges hellos. Returns its backend, or NULL and a
 * message. limit_s: seconds for one message. */
const struct posenc_backend *program_start(const char *command, double limit_s,
                                           char error[NOTATION_ERROR]);

/* Returns true if the program ran, or its socket is one, whatever its hello was. */
bool program_has_started(void);
/* Sets the function that ends this process, with a reason, if the program ends or breaks the protocol. */
void program_on_loss(void (*end)(const char *reason));
/* Sets the id of the case whose calls follow. */
void program_set_case(const char *id);
/* Ends the program, if there is one. It is lost if it does not end by exit(0), or sent more than it was asked. */
void program_stop(void);

/* ---- Files ---- */

/* Return a backend that writes prompts and expected outputs to a folder, and one that reads answers from it. Calls of
 * the first return the expected outputs. */
const struct posenc_backend *program_write_prompts(const char *folder);
const struct posenc_backend *program_read_answers(const char *folder);
/* Sets the next call and its expected rows, in f64 rounded to odd (oracle.h). */
void program_set_expected(const struct call *call, const double *const *rows);
/* Returns the number of prompts that were written. */
size_t program_files_count(void);
/* Returns the first file that could not be written, with the reason; or NULL. */
const char *program_files_error(void);

#endif
