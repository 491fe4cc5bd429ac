/*
 * posenc verify -v: one case, or one problem, in depth.
 */
#ifndef POSENC_CLI_IN_DEPTH_H
#define POSENC_CLI_IN_DEPTH_H

#include "args.h"

/* Prints parameters, each backend's numbers beside the reference, and the verdicts.  EXIT_FINE, EXIT_CONFORMANCE where
 * a verdict is a failure, or EXIT_USAGE after a message. */
int verify_in_depth(struct cli *cli);

#endif
