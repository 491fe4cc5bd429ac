/*
 * What a call's roof reads and writes, and how a team runs either.
 */
#include "contender.h"
#include "slice.h"

#include <stdlib.h>

/* ---- The field ---- */

static const struct posenc_tensor *activations(const struct call *call)
{
    switch (kernel_signature(call->problem.kernel)) {
    case SIGNATURE_sinusoidal:
        return &call->args.sinusoidal.x;
    case SIGNATURE_learned:
        return &call->args.learned.x;
    case SIGNATURE_rope:
        return &call->args.rope.x;
    case SIGNATURE_alibi:
        return &call->args.alibi.x;
    case SIGNATURE_t5:
        return &call->args.t5.x;
    default:
        return NULL;
    }
}

/* Which streams the roof has: problem_bytes of them in all, in the call's own tensors. */
static void choose_roof(struct field *field)
{
    const struct call *call = field->call;
    int64_t floats = (int64_t)(problem_bytes(&call->problem) / sizeof(float));
    for (int o = 0; o < call->n_outputs; o++) {
        field->dst[o] = call->outputs[o].tensor.data;
        field->n[o] = call->outputs[o].rows * call->outputs[o].width;
    }
    field->roof = ROOF_STORE;
    if (call->x == NULL)
        return;
    field->src = activations(call)->data;
    field->roof = ROOF_COPY;
    if (kernel_signature(call->problem.kernel) == SIGNATURE_learned) {
        field->roof = ROOF_ADD;
        field->add = call->args.learned.table.data;
        field->n_add = floats - 2 * field->n[0];
    } else if (call->problem.in_place) {
        field->roof = ROOF_IN_PLACE;
        field->n[0] = floats / 2; /* fewer than the tensor's when rotary_dim < head_dim */
    }
}

void field_cut(struct field *field)
{
    if (field->threads == 1)
        return;
    for (int i = 0; i < field->threads; i++)
        field->idle[i] = !call_slice(field->call, i, field->threads, &field->slices[i]);
}

bool field_open(struct field *field, struct call *call, struct team *team, int threads)
{
    size_t n = threads > 1 ? (size_t)threads : 1;
    *field = (struct field){ .call = call, .team = team, .threads = (int)n };
    field->idle = calloc(n, sizeof(*field->idle));
    field->status = calloc(n, sizeof(*field->status));
    field->slices = n > 1 ? calloc(n, sizeof(*field->slices)) : call;
    if (field->idle == NULL || field->status == NULL || field->slices == NULL)
        return false;
    choose_roof(field);
    field_cut(field);
    return true;
}

void field_close(struct field *field)
{
    free(field->idle);
    free(field->status);
    if (field->slices != field->call)
        free(field->slices);
    *field = (struct field){ 0 };
}

/* ---- Contenders ---- */

struct contender contender_of_backend(const struct field *field,
                                      const struct posenc_backend *backend)
{
    return (struct contender){ .field = field, .backend = backend };
}

struct contender contender_of_roof(const struct field *field, const struct roof_variant *roof)
{
    return (struct contender){ .field = field, .roof = roof };
}

/* A member's share of the roof, cut at cache lines; `add` begins again when it is used up. */
static void run_roof(const struct field *f, roof_function *roof, int member, int n)
{
    enum { LINE = 16 };
    for (int o = 0; o < 2 && f->n[o] > 0; o++) {
        int64_t begin, end, length;
        share_of(f->n[o], LINE, member, n, &begin, &end);
        for (; begin < end; begin += length) {
            int64_t from = f->n_add > 0 ? begin % f->n_add : 0;
            length = end - begin;
            if (f->n_add > 0 && length > f->n_add - from)
                length = f->n_add - from;
            roof(f->dst[o] + begin, f->src != NULL ? f->src + begin : NULL,
                 f->add != NULL ? f->add + from : NULL, (size_t)length);
        }
    }
}

static void run_share(void *user, int member, int n)
{
    struct contender *c = user;
    const struct field *f = c->field;
    if (c->roof != NULL)
        run_roof(f, c->roof->function, member, n);
    else if (!f->idle[member])
        f->status[member] = call_run(&f->slices[member], c->backend);
}

void contender_call(void *contender)
{
    struct contender *c = contender;
    const struct field *f = c->field;
    for (int i = 0; i < f->threads; i++)
        f->status[i] = POSENC_OK;
    team_run(f->team, run_share, c);
    c->status = POSENC_OK;
    for (int i = 0; i < f->threads; i++)
        if (f->status[i] != POSENC_OK)
            c->status = f->status[i];
}
