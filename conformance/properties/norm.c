/*
 * Properties of norms of heads, rope_qk_norm.
 *
 *   scale        x times a power of two gives the same bits, if epsilon is negligible
 *   one-weight   a weight of rank 1 gives the bits of one with stride 0 between heads
 */
#include "properties.h"

/* ---- Scale ---- */

/* The mean of x^2 is at least 2^-8, and 2^-28 with the smallest scale below. This epsilon is less than
 * half an ulp of either. */
static const float negligible_epsilon = 0x1p-64f;

static void edit_scaled(struct call *call, const void *scale)
{
    for (EACH_PLACE(at, call_x(call)))
        place_put(at, place_get(at) * *(const float *)scale);
    call->args.rope_qk_norm.epsilon = negligible_epsilon;
}

static void property_scale(struct tally *t, const struct problem *p)
{
    static const float scales[] = { 0x1p-10f, 0x1p1f, 0x1p7f, 0x1p40f };
    const struct call *want = tally_run(t, p, edit_scaled, &plus_one);
    for (size_t s = 0; want && s < sizeof scales / sizeof *scales; s++) {
        const struct call *got = tally_run(t, p, edit_scaled, &scales[s]);
        if (got)
            require_same_outputs(t, got, want, "x times a power of two");
    }
}

/* ---- One weight ---- */

static void edit_stride(struct call *call, const void *user)
{
    (void)user;
    call->args.rope_qk_norm.weight.stride[0] = 0;
}

static void edit_rank(struct call *call, const void *user)
{
    struct posenc_const_tensor *weight = &call->args.rope_qk_norm.weight;
    (void)user;
    *weight = posenc_const_dense(weight->data, 1, call->problem.dim, 0, 0, 0);
}

const struct property properties_norm[] = {
    { "scale", .check = property_scale, .problems = "norms" },
    { "one-weight", .twin = "", .problems = "norms", .edit = edit_stride,
      .twin_edit = edit_rank },
    { 0 },
};
