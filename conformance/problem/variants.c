/*
 * The list of variants.  Each is there for something: a tail shorter than a vector, an odd dim,
 * a step over a block of 64 positions, the far end of positions, the positions closest to a
 * zero of a sine, strides, special values, storage in 16 bits (profile exact is enough).
 */
#include "variants.h"

void variant_at(struct problem *p, enum posenc_position_kind kind, const int64_t *positions,
                int64_t n)
{
    p->position_kind = kind;
    p->positions = positions;
    p->tokens = n;
}

/* 16 bits, strides that are no multiple of four bytes. */
void variant_stored(struct problem *p, enum posenc_dtype dtype, int64_t pad)
{
    p->dtype = p->values = dtype;
    p->pad = pad;
    p->offset_bytes = 2;
}

/* Whether a profile has what a variant asks for: torch_exp_f32 no scaling, ggml_f32 no
 * endpoint, no proportional scaling and no sections that restart, exact alone xPos and 16 bits.
 */
static bool in_profile(const struct problem *p)
{
    const struct posenc_freqs_spec *f = &p->freqs;
    if (f->profile != POSENC_EXACT && (f->xpos_scale_base != 0.0 || p->dtype != POSENC_F32))
        return false;
    if (f->profile == POSENC_GGML_F32)
        return f->convention == POSENC_EXPONENT && f->scaling != POSENC_SCALING_PROPORTIONAL &&
               f->mrope_layout != POSENC_MROPE_RESTARTED;
    return f->profile != POSENC_TORCH_EXP_F32 || f->scaling == POSENC_SCALING_NONE;
}

/* One of the list, whether or not its profile has it; seeds follow from the place in the list.
 */
static bool listed(enum posenc_kernel kernel, enum posenc_profile profile, int v,
                   struct problem *problem, const char **name)
{
    *problem = problem_default(kernel);
    *name = NULL;
    enum signature_id s = kernel_signature(kernel);
    problem->freqs.profile = profile;
    *name = s == SIGNATURE_sinusoidal || s == SIGNATURE_rope_table ? table_variant(problem, v)
                                                                   : apply_variant(problem, v);
    problem->seed = 1000 + (uint64_t)v;
    return *name != NULL;
}

bool variant(enum posenc_kernel kernel, enum posenc_profile profile, int v,
             struct problem *problem, const char **name)
{
    for (int k = 0; listed(kernel, profile, k, problem, name); k++)
        if (in_profile(problem) && v-- == 0)
            return true;
    return false;
}
