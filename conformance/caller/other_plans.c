/*
 * Plans of every kind that a kernel may be given: odd, of several axes that restart or do not, with xPos, by hand.
 */
#include "caller.h"

#include <stdlib.h>

const struct posenc_freqs_spec *other_plan(int i, struct posenc_freqs **freqs)
{
    static struct posenc_freqs_spec specs[OTHER_PLANS];
    static struct posenc_freqs *made[OTHER_PLANS];
    struct posenc_freqs_spec *spec = &specs[i];
    if (!made[i]) {
        *spec = posenc_freqs_spec_init();
        spec->dim = i == 0 ? 7 : 24;
        if (i == 1 || i == 2)
            for (int axis = 0; axis < 3; axis++)
                spec->mrope_section[axis] = 4;
        spec->mrope_layout = i == 2 ? POSENC_MROPE_RESTARTED : POSENC_MROPE_CHUNKED;
        spec->xpos_scale_base = i == 3 ? 512.0 : 0.0;
        spec->profile = i == 4 ? POSENC_GGML_F32 : i == 5 ? POSENC_HF_F32 : POSENC_EXACT;
        if (posenc_freqs_create(spec, &made[i], NULL))
            abort();
    }
    *freqs = made[i];
    return spec;
}
