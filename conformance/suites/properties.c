/*
 * Laws that need no golden data, one result per kernel and law: what makes an encoding the
 * encoding it is, and what makes a kernel a function of its arguments.  Each law's derivation
 * and bound stand beside it:
 *
 *   call        in place, numbering, adds       cut         slices, threads
 *   layouts     strides of every kind           storage     16 bits
 *   table       sinusoidal, rope_table          positions   axes, times
 *   xpos        xPos                            learned     learned tables, their gradient
 *   rope        rotations                       partial     parts of a head
 *   bias        ALiBi, T5, by distance          index       windows, published indices
 *   relative    terms by distance               attention   what they are for
 *   words, text                                 sentences and claims of docs/encodings.md
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/laws/laws.h"

static void check_laws(struct suite_run *run, enum posenc_kernel kernel, const struct law *laws,
                       int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < (laws[i].n == EVERY ? 1 : laws[i].n); k++) {
            struct tally t;
            bool concerned = laws[i].n == EVERY || laws[i].kernels[k] == kernel;
            if (!concerned || (laws[i].full && !run->options->full))
                continue;
            tally_begin(&t, run, kernel, laws[i].dtype, "properties", laws[i].name);
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
        check_laws(run, kernel, laws_cut, n_laws_cut);
        check_laws(run, kernel, laws_layouts, n_laws_layouts);
        check_laws(run, kernel, laws_storage, n_laws_storage);
        check_laws(run, kernel, laws_table, n_laws_table);
        check_laws(run, kernel, laws_scalings, n_laws_scalings);
        check_laws(run, kernel, laws_positions, n_laws_positions);
        check_laws(run, kernel, laws_xpos, n_laws_xpos);
        check_laws(run, kernel, laws_learned, n_laws_learned);
        check_laws(run, kernel, laws_rope, n_laws_rope);
        check_laws(run, kernel, laws_partial, n_laws_partial);
        check_laws(run, kernel, laws_bias, n_laws_bias);
        check_laws(run, kernel, laws_index, n_laws_index);
        check_laws(run, kernel, laws_relative, n_laws_relative);
        check_laws(run, kernel, laws_attention, n_laws_attention);
        check_laws(run, kernel, laws_words, n_laws_words);
        check_laws(run, kernel, laws_text, n_laws_text);
    }
}
