/*
 * The probe of posenc doctor: posenc bench --probe.
 */
#ifndef POSENC_CLI_PROBE_H
#define POSENC_CLI_PROBE_H

#include "args.h"

/* Measures this machine and prints records on stdout: header, env, doctor and footer. Returns the exit code. */
int probe_machine(struct cli *cli);

#endif
