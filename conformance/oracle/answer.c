/*
 * An answer is what every value of a call should be.  It follows from the problem alone, so it
 * is kept for the next backend that is given the same problem: answers of one kernel at a time,
 * as many as a budget of memory holds.
 */
#define _GNU_SOURCE
#include "conformance/problem/notation.h"
#include "oracle.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_KEY = 8192 };
static const int64_t most_values = INT64_C(1) << 24; /* 256 MiB with their masses */

static void *kept; /* the tree of tsearch() */
static enum posenc_kernel kernel_kept;
static int64_t values_kept;

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct answer *)a)->key, ((const struct answer *)b)->key);
}

static void forget(void *answer)
{
    free(((struct answer *)answer)->key);
    free(((struct answer *)answer)->values);
    free(answer);
}

static int64_t count_values(const struct call *call)
{
    int64_t n = 0;
    for (int o = 0; o < call->n_outputs; o++)
        n += call->outputs[o].rows * call->outputs[o].width;
    return n;
}

static struct answer *work_out(const struct call *call, const char *key)
{
    const int64_t n = count_values(call);
    struct oracle *oracle = oracle_create(call);
    struct answer *answer = calloc(1, sizeof *answer);
    double *values = malloc((size_t)(2 * n + 1) * sizeof *values);
    char *text = strdup(key);
    if (!oracle || !answer || !values || !text) {
        oracle_destroy(oracle);
        free(answer);
        free(values);
        free(text);
        return NULL;
    }
    *answer = (struct answer){ .key = text, .values = values };
    for (int o = 0; o < call->n_outputs; o++) {
        const int64_t rows = call->outputs[o].rows, width = call->outputs[o].width;
        double *want = values, *mass = values + rows * width;
        answer->want[o] = want;
        answer->mass[o] = mass;
        values += 2 * rows * width;
        for (int64_t r = 0; r < rows; r++)
            oracle_row(oracle, o, r, want + r * width, mass + r * width);
    }
    oracle_destroy(oracle);
    return answer;
}

/* Whether its inputs follow from the problem: what a subject's own functions make need not. */
static bool made_by_library(const struct call *call)
{
    struct subject subject = *call->subject;
    subject.backend = subject_library.backend;
    return memcmp(&subject, &subject_library, sizeof subject) == 0;
}

struct answer *answer_take(const struct call *call)
{
    char key[LONGEST_KEY];
    const enum posenc_kernel kernel = call->problem.kernel;
    if (!made_by_library(call) ||
        notation_print(&call->problem, NULL, key, sizeof key) >= sizeof key)
        return work_out(call, "");
    if (kernel != kernel_kept) {
        tdestroy(kept, forget);
        kept = NULL;
        values_kept = 0;
        kernel_kept = kernel;
    }
    struct answer *const *found = tfind(&(struct answer){ .key = key }, &kept, by_key);
    if (found)
        return *found;
    struct answer *answer = work_out(call, key);
    if (answer && values_kept + count_values(call) <= most_values &&
        tsearch(answer, &kept, by_key)) {
        answer->kept = true;
        values_kept += count_values(call);
    }
    return answer;
}

void answer_give_back(struct answer *answer)
{
    if (answer && !answer->kept)
        forget(answer);
}
