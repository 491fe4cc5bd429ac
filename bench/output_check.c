/* Compares outputs of a call with the oracle and with the backend scalar (see harness.h), so that nothing wrong is timed. */
#include "harness.h"
#include "conformance/engine/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORACLE_ROWS = 64, OUTPUTS = 2 };

struct output_check {
    const struct call *call;
    const struct posenc_backend *scalar; /* of the build that is checked */
    float *reference[OUTPUTS]; /* its outputs [rows, width], dense; NULL: not taken yet */
    /* Rows of each output that are compared with the oracle, and its results [n_rows, width] (oracle_compute_row()). */
    int64_t rows[OUTPUTS][ORACLE_ROWS];
    int n_rows[OUTPUTS];
    double *want[OUTPUTS], *magnitudes[OUTPUTS];
};

/* Chooses rows of output `o`: all of them if they are few; otherwise the first one, the last one, and random ones. */
static void choose_rows(struct output_check *check, int o, uint64_t seed)
{
    const int64_t total = check->call->outputs[o].rows;
    check->n_rows[o] = total < ORACLE_ROWS ? (int)total : ORACLE_ROWS;
    for (int i = 0; i < check->n_rows[o]; i++) {
        const uint64_t any = rng_u64(seed + (uint64_t)o, (uint64_t)i) % (uint64_t)total;
        check->rows[o][i] = total <= ORACLE_ROWS ? i : (int64_t)any;
    }
    if (total > ORACLE_ROWS) {
        check->rows[o][0] = 0;
        check->rows[o][1] = total - 1;
    }
}

/* Computes the chosen rows of an output by the oracle. Returns false without memory. */
static bool fill_rows(struct output_check *check, struct oracle *oracle, int o, uint64_t seed)
{
    choose_rows(check, o, seed);
    const size_t width = (size_t)check->call->outputs[o].width,
                 n = (size_t)check->n_rows[o] * width;
    check->want[o] = malloc((n + 1) * sizeof(double));
    check->magnitudes[o] = malloc((n + 1) * sizeof(double));
    if (!check->want[o] || !check->magnitudes[o])
        return false;
    for (size_t i = 0; i < (size_t)check->n_rows[o]; i++)
        oracle_compute_row(oracle, o, check->rows[o][i], check->want[o] + i * width,
                           check->magnitudes[o] + i * width);
    return true;
}

struct output_check *output_check_create(const struct call *call, uint64_t seed)
{
    struct output_check *check = calloc(1, sizeof *check);
    struct oracle *oracle = oracle_create(call);
    bool ok = check && oracle;
    if (check)
        check->call = call;
    for (int o = 0; ok && o < call->n_outputs; o++)
        ok = fill_rows(check, oracle, o, seed);
    oracle_destroy(oracle);
    if (ok)
        return check;
    output_check_destroy(check);
    return NULL;
}

void output_check_destroy(struct output_check *check)
{
    for (int o = 0; check && o < OUTPUTS; o++) {
        free(check->reference[o]);
        free(check->want[o]);
        free(check->magnitudes[o]);
    }
    free(check);
}

/* Returns an empty tally for the comparisons of a call (engine/judge.h). */
static struct tally tally_of(const struct call *call)
{
    return (struct tally){ .result = { .kernel = call->problem.kernel,
                                       .numerics = problem_numerics_name(&call->problem) } };
}

/* Ends a comparison. Returns true if it passed; otherwise writes the reason, with `note` after it. */
static bool is_right(struct comparison *c, const char *note, char *reason, size_t size)
{
    compare_end(c);
    if (c->tally->result.status == CONF_PASS)
        return true;
    snprintf(reason, size, "wrong: %s%s", c->tally->result.reason, note);
    return false;
}

bool output_check_rows(const struct output_check *check, const struct posenc_backend *backend,
                       char *reason, size_t size)
{
    struct comparison c;
    struct tally t = tally_of(check->call);
    compare_begin(&c, &t);
    compare_next(&c, check->call, backend, RANGE_FARTHEST);
    for (int o = 0; o < check->call->n_outputs; o++) {
        const int64_t width = check->call->outputs[o].width;
        for (int k = 0; k < check->n_rows[o]; k++)
            compare_values(&c, o, check->rows[o][k], 0, width, check->want[o] + k * width,
                           check->magnitudes[o] + k * width);
    }
    return is_right(&c, "", reason, size);
}

bool output_check_reference(struct output_check *check, const struct posenc_backend *scalar,
                            char *reason, size_t size)
{
    check->scalar = scalar;
    if (!output_check_rows(check, scalar, reason, size))
        return false;
    for (int o = 0; o < check->call->n_outputs; o++) {
        const struct output *out = &check->call->outputs[o];
        const size_t row_bytes = (size_t)out->width * sizeof(float);
        free(check->reference[o]);
        check->reference[o] = malloc((size_t)out->rows * row_bytes + 1);
        if (!check->reference[o]) {
            snprintf(reason, size, "no memory for the reference output");
            return false;
        }
        for (int64_t r = 0; r < out->rows; r++)
            memcpy(check->reference[o] + r * out->width, call_row(check->call, o, r),
                   row_bytes);
    }
    return true;
}

bool output_check_all(const struct output_check *check, const struct posenc_backend *backend,
                      char *reason, size_t size)
{
    struct comparison c, scalar;
    struct tally t = tally_of(check->call);
    if (!output_check_rows(check, backend, reason, size))
        return false;
    compare_begin(&c, &t);
    compare_begin(&scalar, &t);
    compare_peer_next(&c, &scalar, check->call, backend, check->scalar);
    for (int o = 0; o < check->call->n_outputs; o++) {
        const struct output *out = &check->call->outputs[o];
        for (int64_t r = 0; r < out->rows; r++)
            compare_peer_row(&c, &scalar, o, r, check->reference[o] + r * out->width);
    }
    const bool same_family = strcmp(backend->family, check->scalar->family) == 0;
    return is_right(&c,
                    same_family ? "; wanted is what scalar, of its family, has"
                                : "; wanted is what scalar has",
                    reason, size);
}
