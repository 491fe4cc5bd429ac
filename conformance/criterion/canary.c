/*
 * Deliberate errors, built only with sanitizers, as tests that should fail. They show that a finding of a
 * sanitizer fails a test here, and is not merely printed.
 *
 *     canary heap|signed|leak
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* volatile, so that the compiler cannot predict the error and remove it */
static int past_the_end(volatile int *at, volatile int index) { return at[index]; }

static int overflow(volatile int value) { return value + 1; }

static void *volatile lost;

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "heap") == 0) {
        int *block = calloc(4, sizeof *block);
        printf("%d\n", block ? past_the_end(block, 4) : 0);
        free(block);
    } else if (strcmp(what, "signed") == 0) {
        printf("%d\n", overflow(INT_MAX));
    } else if (strcmp(what, "leak") == 0) {
        lost = malloc(100);
        lost = NULL;
    }
    return 0;
}
