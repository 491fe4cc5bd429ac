/*
 * Golden vectors: every output of every case, in full, against the committed references.
 * Metrics and limits are those of judge.h; for rotations the unit of pair_ulp is the larger
 * of two products of the case's inputs.
 *
 * The published tests of ONNX hold the results of plain f32 arithmetic, so the backend that
 * does just that, unfused libm, gives those to the bit.
 */
#include "suites.h"
#include "conformance/engine/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the call has the outputs that the case describes. */
static bool same_shape(const struct vector_case *v, const struct call *call,
                       struct conf_result *result)
{
    bool same = v->n_outputs == call->n_outputs;
    for (int o = 0; o < v->n_outputs && same; o++)
        same = strcmp(v->output_names[o], call->outputs[o].name) == 0 &&
               v->rows[o] == call->outputs[o].rows && v->width[o] == call->outputs[o].width;
    if (!same) {
        result->status = CONF_FAIL;
        snprintf(result->reason, sizeof result->reason,
                 "the vectors hold %d outputs, the first [%lld, %lld]; the call has %d, [%lld, "
                 "%lld]",
                 v->n_outputs, (long long)v->rows[0], (long long)v->width[0], call->n_outputs,
                 (long long)call->outputs[0].rows, (long long)call->outputs[0].width);
    }
    return same;
}

static bool compare_case(struct comparison *c, const struct vector_case *v,
                         const struct call *call)
{
    bool rotation = kernel_turns(call->problem.kernel);
    struct oracle *oracle = rotation ? oracle_create(call) : NULL;
    double *unused = rotation ? malloc((size_t)widest(call) * 2 * sizeof *unused) : NULL;
    double *mass = unused ? unused + widest(call) : NULL;
    bool ready = !rotation || (oracle && unused);
    for (int o = 0; o < v->n_outputs && ready; o++)
        for (int64_t r = 0; r < v->rows[o]; r++) {
            if (rotation)
                oracle_row(oracle, o, r, unused, mass);
            compare_values(c, o, r, 0, v->width[o], v->want[o] + r * v->width[o], mass);
        }
    compare_settle(c);
    free(unused);
    oracle_destroy(oracle);
    return ready;
}

/* Fails a result when a row differs from plain f32 arithmetic. */
static void require_published(const struct call *call, struct conf_result *result)
{
    const struct output *out = &call->outputs[0];
    const size_t bytes = (size_t)out->width * sizeof(float);
    float *want = malloc(bytes);
    for (int64_t r = 0; r < out->rows && want && result->status == CONF_PASS; r++) {
        const float *got = call_row(call, 0, r);
        oracle_row_unfused(call, r, want);
        int64_t i = 0;
        while (i < out->width && memcmp(got + i, want + i, sizeof *got) == 0)
            i++;
        if (i == out->width)
            continue;
        result->status = CONF_FAIL;
        describe_place(call, 0, r, i, result->witness, sizeof result->witness);
        snprintf(result->reason, sizeof result->reason, "got %a, unfused f32 is %a, at %s",
                 (double)got[i], (double)want[i], result->witness);
    }
    if (!want) {
        result->status = CONF_FAIL;
        snprintf(result->reason, sizeof result->reason, "out of memory");
    }
    free(want);
}

static bool is_plain(const struct posenc_backend *backend)
{
    return !backend->fused && strcmp(backend->family, "libm") == 0;
}

static void run_case(struct suite_run *run, const struct vector_case *v)
{
    struct conf_result result = { .kernel = v->problem.kernel,
                                  .suite = "vectors",
                                  .profile = profile_name(&v->problem),
                                  .coverage = "sampled" };
    struct call call;
    snprintf(result.id, sizeof result.id, "%s", v->id);
    if (!suite_selected(run, v->problem.kernel, v->id))
        return;
    if (run_call(&call, run, &v->problem, &result)) {
        struct comparison c;
        compare_begin(&c);
        compare_next(&c, &call, run->backend, -1);
        if (same_shape(v, &call, &result)) {
            if (compare_case(&c, v, &call))
                compare_end(&c, &result);
            else {
                result.status = CONF_FAIL;
                snprintf(result.reason, sizeof result.reason, "out of memory");
            }
        }
        if (v->problem.recipe != RECIPE_MIX && is_plain(run->backend) &&
            result.status == CONF_PASS)
            require_published(&call, &result);
        call_destroy(&call);
    }
    suite_report(run, &result);
}

/* What was not checked is a visible result. */
static void report_none(struct suite_run *run)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        struct conf_result none = { .kernel = (enum posenc_kernel)k,
                                    .suite = "vectors",
                                    .profile = "given",
                                    .status = CONF_SKIPPED,
                                    .reason = "no golden vectors were given" };
        snprintf(none.id, sizeof none.id, "%s/f32/none", posenc_kernel_name(none.kernel));
        if (suite_selected(run, none.kernel, none.id))
            suite_report(run, &none);
    }
}

void suite_vectors(struct suite_run *run)
{
    if (!run->vectors)
        report_none(run);
    for (size_t i = 0; run->vectors && i < run->vectors->n; i++)
        run_case(run, &run->vectors->cases[i]);
}
