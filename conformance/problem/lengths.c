/*
 * Small problems at every length: see lengths.h.
 */
#include "lengths.h"

#include "signature.h"

static void take_tokens(struct problem *p, int64_t n, int v)
{
    static const int64_t tokens[MEMORY_VARIANTS] = { 3, 2, 5, 1 };
    p->tokens = tokens[v];
    p->layout = (enum posenc_layout)((n + v) % 3);
    p->freqs.convention = (enum posenc_convention)(v & 1);
    p->freqs.profile = v == 2 ? (enum posenc_profile)(POSENC_HF_F32 + n % 3) : POSENC_EXACT;
    p->position_kind = (enum posenc_position_kind)(v % 3);
    p->batch_shift = p->position_kind == POSENC_OFFSET ? 0 : 1;
}

/* Without x only what can differ by batch has one. */
static bool has_batch(const struct problem *p)
{
    bool has = !kernel_on_scores(p->kernel) || kernel_takes_x(p->kernel);
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        has = has || (row->role == ROLE_INPUT && row->dims[0] == DIM_BATCH &&
                      !(row->shared && row->shared(p)));
    return has;
}

struct problem memory_problem(enum posenc_kernel kernel, int64_t n, int v)
{
    struct problem p = problem_default(kernel);
    const struct signature *s = signature_of(kernel);
    static const int64_t pads[MEMORY_VARIANTS] = { 0, 5, 0, 3 };
    p.pad = pads[v];
    p.in_place = kernel_in_place(kernel) && v >= 2;
    p.special = v == 3;
    p.x_scale = v == 1 ? 0.5f : 1.0f;
    p.scale = v == 1 ? 0.5 : 1.0;
    p.batch = 1 + (v & 1);
    p.token_major = v & 1;
    p.accumulate = v & 1;
    take_tokens(&p, n, v);
    s->length(&p, n, v);
    problem_settle(&p);
    if (!has_batch(&p))
        p.batch = 1;
    return p;
}

/* Plain C may have been vectorised to anything up to 16 lanes; one lane may be unrolled by
 * four. */
int64_t memory_lanes(const struct posenc_backend *backend)
{
    int64_t lanes = backend->lanes ? backend->lanes() : 16;
    return lanes < 4 ? 4 : lanes;
}
