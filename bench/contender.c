/*
 * Prepares a call for timing: memory, streams of the roofline, shares of the threads. Runs contenders on a team (see
 * contender.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "contender.h"
#include "base/clock.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_FLOATS = 16, BLOCK_FLOATS = 2048 }; /* of a cache line, and 8 KiB */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- Memory ---- */

enum { PAGE = 4096, LINE_BYTES = 64, LINES_APART = 39, FILL_BYTE = 0x3f };

/* Each buffer starts 39 lines further within a page than the one before, which reaches all 64 lines. The first buffers are
 * at lines 39, 14, 53, 28, 3, 42, 17, 56: none is within 3 lines of another. The line before a buffer stores the pointer to
 * free. */
static void *get_buffer(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    unsigned *count = user;
    (void)role;
    *count += 1;
    size_t line = (size_t)*count * LINES_APART % (PAGE / LINE_BYTES);
    if (line == 0)
        line = PAGE / LINE_BYTES;
    const size_t start = line * LINE_BYTES + (size_t)offset_bytes % LINE_BYTES,
                 size = start + bytes + LINE_BYTES;
    void *base;
    if (size < bytes || posix_memalign(&base, PAGE, size) != 0)
        return NULL;
    memset(base, FILL_BYTE, size);
    char *data = (char *)base + start;
    memcpy(data - (uintptr_t)data % LINE_BYTES - LINE_BYTES, &base, sizeof base);
    return data;
}

static void free_buffer(void *user, void *data)
{
    void *base = NULL;
    (void)user;
    if (data)
        memcpy(&base, (char *)data - (uintptr_t)data % LINE_BYTES - LINE_BYTES, sizeof base);
    free(base);
}

struct tensor_allocator timed_call_memory(unsigned *count)
{
    *count = 0;
    return (struct tensor_allocator){ .get = get_buffer, .free = free_buffer, .user = count };
}

/* ---- Streams of a roofline ---- */

static struct stream stream_of(const struct posenc_tensor *t, int64_t elements)
{
    return (struct stream){ t->data, elements * (int64_t)storage_size(t->dtype) /
                                         (int64_t)sizeof(float) };
}

static int64_t elements_of(const struct posenc_tensor *t)
{
    int64_t n = t->data ? 1 : 0;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

/* Lists the tensors, at most two, that a call reads beside x and that problem_bytes() counts. Returns their number. */
static int list_other_streams(struct call *call, struct stream *list)
{
    const struct problem *p = &call->problem;
    int n = 0;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (row->role == ROLE_INPUT && row->form == FORM_TENSOR && tensor_moved(p, row) > 0)
            list[n++] = stream_of(call_argument(call, row), tensor_moved(p, row));
    return n;
}

/* Chooses the roofline of a call by the number of tensors that it reads: the roofline moves the same tensors. */
static void choose_roofline(struct timed_call *timed)
{
    struct call *call = timed->call;
    const struct posenc_tensor *x = call_x(call);
    struct stream reads[3] = { { NULL, 0 } };
    int n = 0;
    for (int o = 0; o < call->n_outputs; o++) {
        const struct output *out = &call->outputs[o];
        timed->dst[o] = out->tensor.data;
        timed->dst_floats[o] = stream_of(&out->tensor, out->rows * out->width).n;
    }
    if (call->x)
        reads[n++] = stream_of(x, elements_of(x));
    n += list_other_streams(call, reads + n);
    if (n == 1 && call->problem.in_place && kernel_in_place(call->problem.kernel)) {
        timed->roofline = BOUND_in_place; /* of the channels that are rotated */
        timed->dst_floats[0] = (int64_t)(problem_bytes(&call->problem) / 2 / sizeof(float));
    } else if (n == 1 && reads[0].n > timed->dst_floats[0]) {
        timed->roofline =
            BOUND_add; /* a sum of many inputs to few outputs, which stay in cache */
        reads[1] = reads[0];
        reads[0] = (struct stream){ timed->dst[0], timed->dst_floats[0] };
    } else {
        static const enum bound_kind kind_by_reads[] = { BOUND_store, BOUND_copy, BOUND_add,
                                                         BOUND_add };
        timed->roofline = kind_by_reads[n];
    }
    timed->conversion =
        loop_work_of_conversion(call, timed->dst_floats[0] + timed->dst_floats[1]);
    timed->work = loop_work_of_kernel(call);
    timed->src = reads[0];
    timed->add[0] = reads[1];
    timed->add[1] = reads[2];
}

/* ---- Shares and partial calls ---- */

/* Makes the partial call of half a dimension, rounded down to a multiple of `together`. Returns false if the kernel cannot
 * be cut there, or the half is empty. */
static bool cut_half(struct timed_call *timed, enum dim dim, int64_t together)
{
    const struct signature *s = signature_of(timed->call->problem.kernel);
    const int64_t all = call_extent(timed->call, dim), half = all / 2 / together * together;
    for (int k = 0; k < MOST_CUTS && half > 0; k++)
        if (s->cuts[k] == dim) {
            *timed->partial = call_cut(timed->call, dim, 0, half);
            timed->partial_share = (double)half / (double)all;
            return true;
        }
    return false;
}

/* Makes the partial call by the first cut that is possible: half of the rows, best a multiple of eight, which kernels
 * process together; for a single row half of its heads. */
static void cut_partial_call(struct timed_call *timed)
{
    enum { TOGETHER = 8 };
    static const struct {
        enum dim dim;
        int64_t together;
    } cuts[] = { { DIM_TOKEN, TOGETHER }, { DIM_QUERY, TOGETHER }, { DIM_TOKEN, 1 },
                 { DIM_QUERY, 1 },        { DIM_HEAD, TOGETHER },  { DIM_HEAD, 1 },
                 { DIM_BATCH, 1 } };
    timed->partial_share = 0.0;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        if (cut_half(timed, cuts[i].dim, cuts[i].together))
            return;
}

/* Returns the range of floats of thread `member` of n, in whole cache lines except for the last end. */
static void share_of(int64_t floats, int member, int n, int64_t *begin, int64_t *end)
{
    const int64_t lines = (floats + LINE_FLOATS - 1) / LINE_FLOATS;
    *begin = smaller(lines * member / n * LINE_FLOATS, floats);
    *end = smaller(lines * (member + 1) / n * LINE_FLOATS, floats);
}

/* Makes share `member` of n of a call by posenc_split(), in the call's memory. Returns false if it is empty. */
static bool slice_call(const struct call *call, int member, int n, struct call *slice)
{
    *slice = *call;
    if (posenc_split(call->problem.kernel, &call->args, member, n, &slice->args, NULL))
        return false;
    const struct posenc_tensor *out = call_out(slice);
    for (int d = 0; d < out->rank; d++)
        if (out->shape[d] <= 0)
            return false;
    return true;
}

void timed_call_cut(struct timed_call *timed)
{
    if (timed->threads == 1) {
        cut_partial_call(timed);
        return;
    }
    for (int i = 0; i < timed->threads; i++)
        timed->idle[i] = !slice_call(timed->call, i, timed->threads, &timed->slices[i]);
}

bool timed_call_open(struct timed_call *timed, struct call *call, struct team *team,
                     int threads)
{
    const size_t n = threads > 1 ? (size_t)threads : 1;
    *timed = (struct timed_call){ .call = call, .team = team, .threads = (int)n };
    timed->idle = calloc(n, sizeof *timed->idle);
    timed->status = calloc(n, sizeof *timed->status);
    timed->slices = n > 1 ? calloc(n, sizeof *timed->slices) : call;
    timed->partial = calloc(1, sizeof *timed->partial);
    timed->blocks = loop_blocks_create(call, n);
    if (!timed->partial || !timed->idle || !timed->status || !timed->slices || !timed->blocks)
        return false;
    choose_roofline(timed);
    timed_call_cut(timed);
    return true;
}

void timed_call_close(struct timed_call *timed)
{
    free(timed->idle);
    free(timed->status);
    free(timed->partial);
    free(timed->blocks);
    if (timed->slices != timed->call)
        free(timed->slices);
    *timed = (struct timed_call){ 0 };
}

static void make_weights_one(struct posenc_rope_qk_norm_args *args)
{
    args->weight_offset = 0.0f;
    for (int64_t h = 0; h < args->weight.shape[0]; h++)
        for (int64_t k = 0; k < args->weight.shape[1]; k++)
            ((float *)storage_row(storage_as_writable(&args->weight), h))[k] = 1.0f;
}

void timed_call_make_repeatable(struct call *call)
{
    if (!call->problem.in_place || !call->x)
        return;
    const float one = 1.0f;
    const size_t x_scale_offset =
        signature_argument(signature_of(call->problem.kernel), MEMBER(x_scale));
    if (x_scale_offset) /* 0: the kernel has no x_scale */
        memcpy((char *)&call->args + x_scale_offset, &one, sizeof one);
    if (call->problem.kernel == POSENC_KERNEL_ROPE_QK_NORM)
        make_weights_one(&call->args.rope_qk_norm);
}

/* ---- Contenders ---- */

struct contender contender_of_backend(const struct timed_call *timed,
                                      const struct posenc_backend *backend)
{
    return (struct contender){ .timed = timed, .backend = backend, .sample_scale = 1.0 };
}

struct contender contender_of_bound(const struct timed_call *timed,
                                    const struct bound_variant *bound,
                                    const struct loop_work *work)
{
    struct contender c = { .timed = timed, .bound = bound, .work = work, .sample_scale = 1.0 };
    if (work)
        c.blocks = loop_sample_blocks(work, timed->threads, &c.sample_scale);
    return c;
}

/* Returns the floats that a loop over the outputs writes in the shares of all threads; 0 if one thread writes none. */
static int64_t covered_floats(const struct timed_call *timed, const struct loop_work *work)
{
    int64_t all = 0, begin, end;
    for (int o = 0; o < MAX_OUTPUTS && timed->dst_floats[o] > 0; o++)
        for (int i = 0; i < timed->threads; i++) {
            share_of(timed->dst_floats[o], i, timed->threads, &begin, &end);
            const int64_t share = loop_covered_floats(work, end - begin);
            if (share == 0)
                return 0;
            all += share;
        }
    return all;
}

void contender_move_to_tensors(struct contender *loop)
{
    const struct timed_call *timed = loop->timed;
    const struct loop_work *work = loop->work;
    const bool has_inputs =
        !work->reads || (timed->src.n == timed->dst_floats[0] && timed->dst_floats[1] == 0);
    const size_t bytes = problem_working_set(&timed->call->problem);
    const bool in_caches = strcmp(bench_level(bytes), "DRAM") != 0;
    const int64_t floats =
        work->in_tensors && has_inputs && in_caches ? covered_floats(timed, work) : 0;
    if (floats > 0) {
        loop->blocks = 0;
        loop->sample_scale = (double)work->floats / (double)floats;
    }
}

/* ---- Running contenders ---- */

/* Returns the data of a repeated stream at an offset of dst; NULL: no stream. Reduces *length to the rest of the stream. */
static const float *stream_at(const struct stream *stream, int64_t offset, int64_t *length)
{
    if (!stream->data)
        return NULL;
    const int64_t from = offset % stream->n;
    *length = smaller(*length, stream->n - from);
    return stream->data + from;
}

/* Runs a thread's share of the roofline. If dst is written in several passes, these run over blocks that stay in the
 * nearest cache. */
static void run_roofline(const struct timed_call *timed, bound_function *roofline, int member,
                         int n)
{
    for (int o = 0; o < MAX_OUTPUTS && timed->dst_floats[o] > 0; o++) {
        const int64_t passes = timed->add[0].n / timed->dst_floats[o];
        const bool in_blocks = passes > 1 || timed->add[1].data;
        int64_t begin, end, length;
        share_of(timed->dst_floats[o], member, n, &begin, &end);
        for (; begin < end; begin += length) {
            float *dst = timed->dst[o] + begin;
            length = in_blocks ? smaller(end - begin, BLOCK_FLOATS) : end - begin;
            const float *src = stream_at(&timed->src, begin, &length), *add = NULL,
                        *second_add = NULL;
            if (passes > 1)
                add = timed->add[0].data + begin * passes;
            else
                add = stream_at(&timed->add[0], begin, &length);
            second_add = stream_at(&timed->add[1], begin, &length);
            roofline(dst, src, add, (size_t)length);
            for (int64_t pass = 1; pass < passes; pass++)
                roofline(dst, dst, add + pass * length, (size_t)length);
            if (second_add)
                roofline(dst, dst, second_add, (size_t)length);
        }
    }
}

/* Runs a thread's share of a loop over the call's tensors. */
static void run_loop_over_tensors(const struct contender *c, int member, int n)
{
    const struct timed_call *timed = c->timed;
    for (int o = 0; o < MAX_OUTPUTS && timed->dst_floats[o] > 0; o++) {
        int64_t begin, end;
        share_of(timed->dst_floats[o], member, n, &begin, &end);
        loop_run_over_tensor(c->bound, c->work, &timed->blocks[member], timed->dst[o] + begin,
                             c->work->reads ? timed->src.data + begin : NULL, end - begin);
    }
}

/* Runs the share of thread `member` of n: a team_work function. */
static void run_share(void *contender, int member, int n)
{
    struct contender *c = contender;
    const struct timed_call *timed = c->timed;
    if (c->work && c->blocks == 0)
        run_loop_over_tensors(c, member, n);
    else if (c->work)
        loop_run(c->bound, c->work, &timed->blocks[member], c->blocks);
    else if (c->partial)
        timed->status[member] = call_run(timed->partial, c->backend);
    else if (c->bound)
        run_roofline(timed, c->bound->function, member, n);
    else if (!timed->idle[member])
        timed->status[member] = call_run(&timed->slices[member], c->backend);
}

void contender_announce(void *contender)
{
    const struct contender *c = contender;
    if (c->timed->on_call)
        c->timed->on_call(c->timed->on_call_user, c->backend);
}

void contender_call(void *contender)
{
    struct contender *c = contender;
    const struct timed_call *timed = c->timed;
    for (int i = 0; i < timed->threads; i++)
        timed->status[i] = POSENC_OK;
    team_run(timed->team, run_share, c);
    c->status = POSENC_OK;
    for (int i = 0; i < timed->threads; i++)
        if (timed->status[i] != POSENC_OK)
            c->status = timed->status[i];
}

void contender_reject(struct contender *c, enum bench_outcome outcome, const char *reason)
{
    c->outcome = outcome;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
}

bool contender_try(struct contender *c, struct call *call)
{
    if (call)
        call_reset(call);
    contender_announce(c);
    const double begin = clock_now();
    contender_call(c);
    c->seconds = clock_now() - begin;
    if (c->timed->on_call)
        c->timed->on_call(c->timed->on_call_user, NULL);
    if (c->status != POSENC_OK)
        contender_reject(
            c, c->status == POSENC_ERR_NOT_PROVIDED ? BENCH_NOT_PROVIDED : BENCH_REJECTED,
            posenc_status_string(c->status));
    return c->status == POSENC_OK;
}
