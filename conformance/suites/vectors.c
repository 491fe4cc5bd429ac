/*
 * Suite of golden vectors: compares every output of every case with the committed reference, by the metrics and
 * limits of judge.h. For rotations, the unit of pair_ulp is the larger of two products of the case's inputs.
 *
 * The published tests of ONNX hold results of plain f32 arithmetic. The backend that does just that, unfused libm,
 * must give their bits.
 */
#include "suites.h"
#include "conformance/engine/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if the call has the outputs that the case describes. */
static bool has_same_shape(const struct vector_case *v, const struct call *call)
{
    bool same = v->n_outputs == call->n_outputs;
    for (int o = 0; o < v->n_outputs && same; o++)
        same = strcmp(v->output_names[o], call->outputs[o].name) == 0 &&
               v->rows[o] == call->outputs[o].rows && v->width[o] == call->outputs[o].width;
    return same;
}

/* Requires the bits of plain f32 arithmetic in each row. */
static void require_published(struct tally *t, const struct call *call)
{
    const struct output *out = &call->outputs[0];
    float *want = malloc((size_t)out->width * sizeof *want);
    require(t, want != NULL, "out of memory");
    for (int64_t r = 0; r < out->rows && want; r++) {
        char what[48];
        snprintf(what, sizeof what, "row %lld in unfused f32", (long long)r);
        oracle_compute_row_unfused(call, r, want);
        require_same_bits(t, call_row(call, 0, r), want, out->width, what);
    }
    free(want);
}

static bool is_unfused_libm(const struct posenc_backend *backend)
{
    return !backend->fused && strcmp(backend->family, "libm") == 0;
}

static void run_case(struct suite_run *run, const struct vector_case *v)
{
    struct tally t;
    struct comparison c;
    const struct problem *p = &v->problem;
    if (!tally_begin_problem(&t, run, p, "vectors", "%s", v->name))
        return;
    const struct call *call = tally_run(&t, p, NULL, NULL);
    compare_begin(&c, &t);
    if (call &&
        require(&t, has_same_shape(v, call),
                "the vectors hold %d outputs, the first [%lld, %lld]; the call has %d, "
                "[%lld, %lld]",
                v->n_outputs, (long long)v->rows[0], (long long)v->width[0], call->n_outputs,
                (long long)call->outputs[0].rows, (long long)call->outputs[0].width)) {
        compare_next(&c, call, run->backend, RANGE_FARTHEST);
        compare_call(&c, v->want);
    }
    compare_end(&c);
    if (call && p->recipe != RECIPE_MIX && is_unfused_libm(run->backend))
        require_published(&t, call);
    tally_end(&t);
}

/* Reports that vectors were not checked, as a skipped case. */
static void report_missing(struct suite_run *run, enum posenc_kernel kernel)
{
    struct tally t;
    tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "vectors", NULL, "none");
    tally_skip(&t, "no golden vectors were given");
    tally_end(&t);
}

void suite_vectors(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct vectors *vectors = run->options->vectors;
    if (!vectors)
        report_missing(run, kernel);
    for (size_t i = 0; vectors && i < vectors->n; i++)
        if (vectors->cases[i].problem.kernel == kernel)
            run_case(run, &vectors->cases[i]);
}
