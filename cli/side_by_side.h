/*
 * Kernels checked side by side, each in a process of its own.
 */
#ifndef POSENC_CLI_SIDE_BY_SIDE_H
#define POSENC_CLI_SIDE_BY_SIDE_H

#include "conformance/suites/suites.h"

/* How far it is: so many of `total` pairs of a kernel and a backend, with the part of those that
 * run now, as far as another backend tells how many results there will be. */
typedef void side_progress(void *user, double done, size_t total);

/*
 * conf_run() of the backends, `jobs` kernels at once (0: one a CPU).  The sink gets the results here,
 * one kernel after the other in their order, as if they had run so.  A plug-in is loaded into that process
 * alone, which goes on with nothing else after it.  A backend that ends the process before its last case,
 * by a signal or by exit(), or hangs in a call for `limit_s` (NaN: the usual), is a result that crashed;
 * the backends after it go on in another.  Returns early where the program was interrupted
 * (outputs_interrupted()), and leaves no process behind.
 */
void side_by_side(const struct posenc_backend *const *backends, size_t n, int jobs,
                  double limit_s, const struct conf_options *options, conf_sink *sink,
                  side_progress *tell, void *user);

#endif
