/*
 * Problems of every kernel with parameters at random, by the oracle and by MPFR: types of
 * storage, special values, windows of a head, axes, xPos, indices of every kind.
 */
#include "certify.h"
#include "conformance/problem/signature.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROBLEMS = 40 };

static enum posenc_dtype draw_dtype(struct draws *d)
{
    return (enum posenc_dtype)draw(d, POSENC_F32, POSENC_BF16);
}

static struct problem any_problem(enum posenc_kernel kernel, struct draws *d)
{
    struct problem p = problem_blank(kernel);
    p.seed = d->seed;
    p.dtype = draw_dtype(d);
    p.values = draw_dtype(d);
    p.special = draw(d, 0, 2) == 0;
    p.x_scale = draw(d, 0, 1) ? 1.0f : 0.088388346f;
    signature_of(kernel)->draw(d, &p);
    if (kernel_takes_x(kernel) || p.slopes_by_batch)
        p.batch = draw(d, 1, 3);
    return p;
}

static bool certify_problem(const struct problem *p, uint64_t *values)
{
    struct call call;
    const char *name = posenc_kernel_name(p->kernel);
    if (call_create(&call, p, &memory_plain) != POSENC_OK) {
        fprintf(stderr, "golden: a problem of %s: %s\n", name, call.error.what);
        return false;
    }
    bool good = true;
    for (int o = 0; o < call.n_outputs && good; o++) {
        const int64_t n = call.outputs[o].rows * call.outputs[o].width;
        double *want = malloc((size_t)n * sizeof *want);
        if (!want)
            abort();
        reference_output(&call, o, want);
        good = certify_output(&call, o, want, name);
        *values += (uint64_t)n;
        free(want);
    }
    call_destroy(&call);
    return good;
}

bool certify_problems(uint64_t *values)
{
    for (int kernel = 0; kernel < POSENC_KERNEL_COUNT; kernel++)
        for (uint64_t k = 0; k < PROBLEMS; k++) {
            struct draws d = { .seed = mix64((uint64_t)kernel, k) >> 1 };
            const struct problem p = any_problem((enum posenc_kernel)kernel, &d);
            if (!certify_problem(&p, values)) {
                fprintf(stderr, "golden: that is problem %d of the kernel\n", (int)k);
                return false;
            }
        }
    return true;
}
