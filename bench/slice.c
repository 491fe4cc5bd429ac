/*
 * A row's value depends only on its own position and parameters, so a slice of the tensors with
 * its positions, slopes or table columns is a call of its own.
 */
#include "slice.h"
#include "conformance/problem/storage.h"

void share_of(int64_t total, int64_t grain, int member, int n, int64_t *begin, int64_t *end)
{
    int64_t grains = (total + grain - 1) / grain;
    *begin = grains * member / n * grain;
    *end = grains * (member + 1) / n * grain;
    if (*begin > total)
        *begin = total;
    if (*end > total)
        *end = total;
}

struct range {
    int64_t begin, count;
};

static struct range range_of(int64_t total, int member, int n)
{
    int64_t begin, end;
    share_of(total, 1, member, n, &begin, &end);
    return (struct range){ begin, end - begin };
}

/* Axes are counted from the last one, which is 0: a call may or may not have a batch. */
static int64_t extent(const struct posenc_tensor *t, int axis)
{
    return t->shape[t->rank - 1 - axis];
}

static void cut(struct posenc_tensor *t, int axis, struct range range)
{
    if (t->data == NULL)
        return;
    int d = t->rank - 1 - axis;
    t->data = (char *)t->data + range.begin * t->stride[d] * (int64_t)storage_size(t->dtype);
    t->shape[d] = range.count;
}

static void cut_positions(struct posenc_positions *p, struct range range)
{
    if (p->kind == POSENC_OFFSET)
        p->offset += range.begin;
    else
        p->data = (const char *)p->data +
                  range.begin * p->stride_token * (p->kind == POSENC_POSITIONS_I64 ? 8 : 4);
}

static struct range cut_rope(struct posenc_rope_args *a, int member, int n)
{
    enum { HEADS = 1, TOKENS = 2 };
    int axis = extent(&a->out, TOKENS) >= n ? TOKENS : HEADS;
    struct range r = range_of(extent(&a->out, axis), member, n);
    cut(owned(&a->x), axis, r);
    cut(&a->out, axis, r);
    if (axis == TOKENS)
        cut_positions(&a->positions, r);
    return r;
}

struct score_range {
    bool heads; /* cut between heads, else between queries */
    int axis;
    struct range range;
};

static struct score_range cut_scores(struct posenc_tensor *x, struct posenc_tensor *out,
                                     int member, int n)
{
    enum { QUERIES = 1, HEADS = 2 };
    bool heads = extent(out, HEADS) >= n;
    int axis = heads ? HEADS : QUERIES;
    struct range r = range_of(extent(out, axis), member, n);
    cut(x, axis, r);
    cut(out, axis, r);
    return (struct score_range){ heads, axis, r };
}

static struct range cut_alibi(struct posenc_alibi_args *a, int member, int n)
{
    struct score_range s = cut_scores(owned(&a->x), &a->out, member, n);
    if (s.heads)
        a->slopes += s.range.begin;
    else
        a->query_offset += s.range.begin;
    return s.range;
}

static struct range cut_t5(struct posenc_t5_args *a, int member, int n)
{
    struct score_range s = cut_scores(owned(&a->x), &a->out, member, n);
    if (s.heads)
        cut(owned(&a->table), 0, s.range);
    else
        a->query_offset += s.range.begin;
    return s.range;
}

static struct range cut_distance(struct posenc_distance_args *a, int member, int n)
{
    struct score_range s = cut_scores(owned(&a->x), &a->out, member, n);
    if (s.heads)
        cut(owned(&a->values), 1, s.range);
    else
        a->query_offset += s.range.begin;
    return s.range;
}

static struct range cut_window(struct posenc_window_args *a, int member, int n)
{
    struct score_range s = cut_scores(owned(&a->x), &a->out, member, n);
    if (s.heads)
        cut(owned(&a->table), 0, s.range);
    else
        a->index += s.range.begin * extent(&a->out, 0);
    return s.range;
}

/* The index of a later query begins further on: i - j counts from its first query. */
static struct range cut_relative(struct posenc_relative_args *a, int member, int n)
{
    struct score_range s = cut_scores(owned(&a->x), &a->out, member, n);
    cut(owned(&a->c2p), s.axis, s.range);
    if (s.heads)
        cut(owned(&a->p2c), s.axis, s.range);
    else
        a->index += s.range.begin;
    return s.range;
}

static struct range cut_relative_sum(struct posenc_relative_sum_args *a, int member, int n)
{
    struct score_range s = cut_scores(owned(&a->x), &a->out, member, n);
    if (!s.heads)
        a->index += s.range.begin;
    return s.range;
}

bool call_slice(const struct call *call, int member, int n, struct call *slice)
{
    enum { CHANNELS = 0, ROWS = 1 };
    struct range r = { 0, 0 };
    *slice = *call;
    switch (kernel_signature(call->problem.kernel)) {
    case SIGNATURE_sinusoidal:
        r = range_of(extent(&call->args.sinusoidal.out, ROWS), member, n);
        cut(owned(&slice->args.sinusoidal.x), ROWS, r);
        cut(&slice->args.sinusoidal.out, ROWS, r);
        cut_positions(&slice->args.sinusoidal.positions, r);
        break;
    case SIGNATURE_learned:
        r = range_of(extent(&call->args.learned.out, ROWS), member, n);
        cut(owned(&slice->args.learned.x), ROWS, r);
        cut(&slice->args.learned.out, ROWS, r);
        cut_positions(&slice->args.learned.positions, r);
        break;
    case SIGNATURE_learned_grad: /* tokens may share a row */
        r = range_of(extent(&call->args.learned_grad.out, CHANNELS), member, n);
        cut(owned(&slice->args.learned_grad.x), CHANNELS, r);
        cut(&slice->args.learned_grad.out, CHANNELS, r);
        break;
    case SIGNATURE_rope_table:
        r = range_of(extent(&call->args.rope_table.cos, ROWS), member, n);
        cut(&slice->args.rope_table.cos, ROWS, r);
        cut(&slice->args.rope_table.sin, ROWS, r);
        cut_positions(&slice->args.rope_table.positions, r);
        break;
    case SIGNATURE_rope:
        r = cut_rope(&slice->args.rope, member, n);
        break;
    case SIGNATURE_alibi:
        r = cut_alibi(&slice->args.alibi, member, n);
        break;
    case SIGNATURE_t5:
        r = cut_t5(&slice->args.t5, member, n);
        break;
    case SIGNATURE_distance:
        r = cut_distance(&slice->args.distance, member, n);
        break;
    case SIGNATURE_window:
        r = cut_window(&slice->args.window, member, n);
        break;
    case SIGNATURE_relative:
        r = cut_relative(&slice->args.relative, member, n);
        break;
    case SIGNATURE_relative_sum:
        r = cut_relative_sum(&slice->args.relative_sum, member, n);
        break;
    }
    return r.count > 0;
}
