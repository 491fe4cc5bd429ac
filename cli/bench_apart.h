/*
 * Timings in a process of its own, which another takes the place of where a backend ends it.
 */
#ifndef POSENC_CLI_BENCH_APART_H
#define POSENC_CLI_BENCH_APART_H

#include "bench/bench.h"
#include "unfit.h"

/* bench_run(), whose stop() and sink are called here.  A backend that ends the process, or does not return
 * within `limit_s` of CPU time (NaN: the usual), is unfit from there on, and the case it did so on begins
 * again without it.  Loads plug-ins there.  *crashed: some did. */
int bench_apart(const struct bench_case *cases, size_t n_cases,
                const struct posenc_backend *const *backends, size_t n_backends,
                const struct bench_options *options, double limit_s, struct unfit *unfit,
                bench_sink *sink, void *user, bool *crashed, char *error);

#endif
