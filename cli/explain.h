/*
 * What the parts of posenc explain share: one case in depth, or a kernel, a profile, a scaling
 * or a parameter as topics.txt has it.
 */
#ifndef POSENC_CLI_EXPLAIN_H
#define POSENC_CLI_EXPLAIN_H

#include "args.h"
#include "topics.h"

/* A topic by its name, or a parameter by one of its aliases; false: no topic has it. */
bool explain_find(const char *name, struct topic *topic);
/* Prints it.  EXIT_FINE, or EXIT_USAGE after a message. */
int explain_topic(const struct cli *cli, const struct topic *topic);
/* Names no topic has, with those that are near. */
int explain_refuse(const struct cli *cli, const char *name);

#endif
