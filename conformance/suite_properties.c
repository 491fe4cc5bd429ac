/*
 * Laws that need no golden data, one result per kernel and law: what makes an encoding the
 * encoding it is, and what makes a kernel a function of its arguments.  Each law's derivation
 * and bound stand beside it, in laws_call.c (slices, threads, adds), laws_table.c (sinusoidal,
 * rope_table), laws_positions.c (axes, times), laws_rope.c (rotations), laws_bias.c (ALiBi, T5) and
 * laws_attention.c (what encodings are for).
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <stdio.h>

bool law_needs(struct tally *t, enum posenc_kernel other)
{
    char reason[100];
    if (posenc_provides(t->run->backend, other))
        return true;
    snprintf(reason, sizeof reason, "the law needs %s too, which this backend does not provide",
             posenc_kernel_name(other));
    tally_skip(t, reason);
    return false;
}

static void check_laws(struct suite_run *run, enum posenc_kernel kernel, const struct law *laws,
                       int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < laws[i].n; k++) {
            struct tally t;
            if (laws[i].kernels[k] != kernel || (laws[i].full && !run->options->full))
                continue;
            tally_begin(&t, run, kernel, "properties", laws[i].name);
            if (t.selected)
                laws[i].check(&t, kernel);
            t.problem = NULL;
            tally_end(&t);
        }
}

void suite_properties(struct suite_run *run)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        enum posenc_kernel kernel = (enum posenc_kernel)k;
        check_laws(run, kernel, laws_call, n_laws_call);
        check_laws(run, kernel, laws_table, n_laws_table);
        check_laws(run, kernel, laws_positions, n_laws_positions);
        check_laws(run, kernel, laws_rope, n_laws_rope);
        check_laws(run, kernel, laws_bias, n_laws_bias);
        check_laws(run, kernel, laws_attention, n_laws_attention);
    }
}
