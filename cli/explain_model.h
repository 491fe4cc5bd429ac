/*
 * What the parts of posenc explain --config share.
 */
#ifndef POSENC_CLI_EXPLAIN_MODEL_H
#define POSENC_CLI_EXPLAIN_MODEL_H

#include "conformance/models/config.h"
#include "args.h"

/* A line of the page: the words, from their column on, below what they are about. */
__attribute__((format(printf, 2, 3))) void explain_say(const char *about, const char *format,
                                                       ...);

/* A part's encoding in words, with the facts that follow from its numbers.  EXIT_FINE, or EXIT_USAGE
 * after a message. */
int explain_part(const struct cli *cli, const struct part *part);
/* The same of one that has frequencies: rotations and sinusoids. */
int explain_frequencies(const struct cli *cli, const struct part *part);

/* posenc explain --config FILE, --model NAME. */
int explain_model(const struct cli *cli);

#endif
