/*
 * What a call's roof reads and writes, and how a team runs either.
 */
#include "contender.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"
#include "slice.h"

#include <stdlib.h>
#include <string.h>

/* ---- The field ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static struct stream stream_of(const struct posenc_tensor *t, int64_t elements)
{
    return (struct stream){ t->data, elements * (int64_t)storage_size(t->dtype) /
                                         (int64_t)sizeof(float) };
}

static int64_t elements_of(const struct posenc_tensor *t)
{
    int64_t n = t->data != NULL ? 1 : 0;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

/* What a call reads beside its activations and problem_bytes counts, but for integers: at most
 * two streams. */
static int other_streams(const struct call *call, struct stream *list)
{
    const struct problem *p = &call->problem;
    int n = 0;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (row->role == ROLE_INPUT && row->form == FORM_TENSOR && row->moved &&
            tensor_present(p, row))
            list[n++] = stream_of(call_argument((struct call *)(uintptr_t)call, row),
                                  row->moved(p, row));
    return n;
}

/* Which streams the roof has: those of the call, in its own tensors. */
static void choose_roof(struct field *field)
{
    struct call *call = field->call;
    const struct posenc_tensor *x = call_x(call);
    struct stream reads[3] = { { NULL, 0 } };
    int n = 0;
    for (int o = 0; o < call->n_outputs; o++) {
        const struct output *out = &call->outputs[o];
        struct stream all = stream_of(&out->tensor, out->rows * out->width);
        field->dst[o] = out->tensor.data;
        field->n[o] = all.n;
    }
    if (call->x != NULL)
        reads[n++] = stream_of(x, elements_of(x));
    n += other_streams(call, reads + n);
    if (n == 1 && call->problem.in_place &&
        kernel_in_place(call->problem.kernel)) { /* all channels need not turn */
        field->roof = ROOF_IN_PLACE;
        field->n[0] = (int64_t)(problem_bytes(&call->problem) / 2 / sizeof(float));
    } else if (n == 1 && reads[0].n > field->n[0]) { /* a sum: read into what is in cache */
        field->roof = ROOF_ADD;
        reads[1] = reads[0];
        reads[0] = (struct stream){ field->dst[0], field->n[0] };
    } else {
        field->roof = n == 0 ? ROOF_STORE : n == 1 ? ROOF_COPY : ROOF_ADD;
    }
    field->src = reads[0];
    field->add[0] = reads[1];
    field->add[1] = reads[2];
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

void call_settle(struct call *call)
{
    if (!call->problem.in_place || call->x == NULL)
        return;
    const size_t at = signature_argument(signature_of(call->problem.kernel), MEMBER(x_scale));
    const float one = 1.0f;
    if (at)
        memcpy((char *)&call->args + at, &one, sizeof one);
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

/* Where a stream is read for dst from `at` on; *length: how far without beginning again. */
static const float *read_from(const struct stream *stream, int64_t at, int64_t *length)
{
    if (stream->data == NULL)
        return NULL;
    int64_t from = at % stream->n;
    *length = least(*length, stream->n - from);
    return stream->data + from;
}

/* The rest of the roof on a block that is in the nearest cache by now: passes from `first` on.
 */
static void run_passes(roof_function *roof, float *dst, const struct stream *add, int64_t at,
                       int64_t length, int64_t passes, int64_t first)
{
    for (int64_t k = first; k < passes; k++)
        roof(dst, dst, add->data + at * passes + k * length, (size_t)length);
}

static int64_t passes_of(const struct stream *add, int64_t n) { return add->n / n; }

/* A member's share of the roof, cut at cache lines. */
static void run_roof(const struct field *f, roof_function *roof, int member, int n)
{
    enum { LINE = 16, BLOCK = 2048 };
    for (int o = 0; o < 2 && f->n[o] > 0; o++) {
        int64_t passes = passes_of(&f->add[0], f->n[o]), begin, end, length;
        bool again = passes > 1 || f->add[1].data != NULL;
        share_of(f->n[o], LINE, member, n, &begin, &end);
        for (; begin < end; begin += length) {
            float *dst = f->dst[o] + begin;
            length = again ? least(end - begin, BLOCK) : end - begin;
            const float *src = read_from(&f->src, begin, &length), *add = NULL, *more = NULL;
            if (passes > 1)
                add = f->add[0].data + begin * passes;
            else
                add = read_from(&f->add[0], begin, &length);
            more = read_from(&f->add[1], begin, &length);
            roof(dst, src, add, (size_t)length);
            run_passes(roof, dst, &f->add[0], begin, length, passes, 1);
            if (more != NULL)
                roof(dst, dst, more, (size_t)length);
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
