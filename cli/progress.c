/*
 * The progress line, see progress.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double last; /* seconds; of the last drawing */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress(const char *what, const char *where, const char *case_id, size_t done,
              size_t failed)
{
    double now = seconds();
    if (!isatty(STDERR_FILENO) || now - last < 0.1)
        return;
    last = now;
    fprintf(stderr, "\r\033[K%s %zu done", what, done);
    if (failed > 0)
        fprintf(stderr, ", %zu FAILED", failed);
    fprintf(stderr, "  %s  %.60s", where, case_id);
    fflush(stderr);
}

void progress_clear(void)
{
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
