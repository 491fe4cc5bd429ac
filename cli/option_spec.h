/*
 * One option of the command line: a line of options.def.
 */
#ifndef POSENC_CLI_OPTION_SPEC_H
#define POSENC_CLI_OPTION_SPEC_H

#include "args.h"

#include <stdbool.h>
#include <stddef.h>

enum kind { FLAG, INTEGER, REAL, TEXT, LIST, CHOICE };

struct option_spec {
    const char *flag, *name; /* "--heads", "heads" */
    enum kind kind;
    unsigned commands;
    size_t offset; /* of the member of struct cli */
    const char *argument, *help;
    double least, most; /* INTEGER, REAL; least > most: any finite number */
    bool open;          /* REAL: least itself is refused */
    const char *const *names;
    bool scaled; /* a parameter of families of scaling */
};

extern const struct option_spec *const cli_specs;
extern const size_t cli_n_specs;

/* Names the scaling families that an option is a parameter of. */
void cli_list_scalings(const struct option_spec *spec, char *text, size_t size);
/* Returns whether a command takes --out and -o. */
bool cli_takes_outputs(const struct command *command);

#endif
