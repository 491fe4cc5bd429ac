/*
 * Plans of every kind that a kernel may be given in the place of its own, and of as many channels:
 * one less, of several axes that restart or do not, with xPos, in other profiles, or many more.
 */
#include "caller.h"

#include <string.h>

enum { KEPT = 64 };

static struct posenc_freqs_spec spec_of(int i, int64_t dim)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.dim = i == 0 && dim > 1 ? dim - 1 : i == 6 ? dim + 2 : dim;
    if ((i == 1 || i == 2) && dim % 2 == 0 && dim >= 4) {
        spec.mrope_section[0] = dim / 2 - 1;
        spec.mrope_section[1] = 1;
    }
    spec.mrope_layout = i == 2 ? POSENC_MROPE_RESTARTED : POSENC_MROPE_CHUNKED;
    spec.xpos_scale_base = i == 3 && dim % 2 == 0 ? 512.0 : 0.0;
    spec.profile = i == 4 ? POSENC_GGML_F32 : i == 5 ? POSENC_HF_F32 : POSENC_EXACT;
    return spec;
}

/* Those that are kept last are made anew. */
const struct posenc_freqs_spec *other_plan(int i, int64_t dim, struct posenc_freqs **freqs)
{
    static struct kept {
        struct posenc_freqs_spec spec;
        struct posenc_freqs *freqs;
    } kept[KEPT];
    const struct posenc_freqs_spec spec = spec_of(i, dim);
    struct kept *k = kept;
    while (k < kept + KEPT - 1 && k->freqs && memcmp(&k->spec, &spec, sizeof spec) != 0)
        k++;
    if (!k->freqs || memcmp(&k->spec, &spec, sizeof spec) != 0) {
        posenc_freqs_destroy(k->freqs);
        k->spec = spec;
        if (posenc_freqs_create(&spec, &k->freqs, NULL))
            k->freqs = NULL;
    }
    *freqs = k->freqs;
    return k->freqs ? &k->spec : NULL;
}
