/* Test results in the Test Anything Protocol (TAP). */
#ifndef POSENC_TESTS_TAP_H
#define POSENC_TESTS_TAP_H

#include <stdbool.h>
#include <stdio.h>

static int tap_run, tap_failed;

/* Reports the test that a sentence describes. */
static inline void require(bool holds, const char *sentence)
{
    tap_run++;
    tap_failed += !holds;
    printf("%s %d - %s\n", holds ? "ok" : "not ok", tap_run, sentence);
}

/* Prints how many tests there were, as TAP requires. Returns the exit code of the program. */
static inline int tap_end(void)
{
    printf("1..%d\n", tap_run);
    return tap_failed ? 1 : 0;
}

#endif
