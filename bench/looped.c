/*
 * Chooses the loops of a call and runs them, over the call's tensors or over a block that stays in the
 * nearest cache.
 */
#include "rooflines.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

/* ---- Which loops ---- */

/* Returns whether a call reads what is stored as its outputs are. */
static bool reads_stored(const struct problem *p)
{
    bool reads = false;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        reads = reads || (row->role != ROLE_OUTPUT && row->form == FORM_TENSOR &&
                          row->type == TYPE_CALL && tensor_present(p, row));
    return reads;
}

struct looped looped_conversion(const struct call *call, int64_t stored)
{
    const enum posenc_dtype type = call->outputs[0].tensor.dtype;
    const bool plan = kernel_has_freqs(call->problem.kernel);
    return (struct looped){ .kind = type == POSENC_F16    ? BOUND_f16
                                    : type == POSENC_BF16 ? BOUND_bf16
                                    : plan                ? BOUND_from_f64
                                                          : ROOFLINE_KIND_COUNT,
                            .floats = stored,
                            .reads = reads_stored(&call->problem),
                            .wide = !plan,
                            .stored = true,
                            .in_tensors = true };
}

static enum roofline_kind kind_of_angles(const struct problem *p)
{
    const bool has_layout = signature_argument(signature_of(p->kernel), MEMBER(layout));
    if (p->freqs.profile != POSENC_EXACT)
        return BOUND_angles;
    return has_layout && p->layout == POSENC_INTERLEAVED ? BOUND_by_turns : BOUND_table;
}

/* Eight rows, of queries or of heads, can be added up side by side. */
static enum roofline_kind kind_of_sums(const struct problem *p)
{
    enum { SIDE_BY_SIDE = 8 };
    return p->queries >= SIDE_BY_SIDE || p->batch * p->heads >= SIDE_BY_SIDE ? BOUND_sums
                                                                             : BOUND_chain;
}

/* Heads of a single query are taken by fours if their rows are whole vectors. */
static enum roofline_kind kind_of_runs(const struct problem *p)
{
    enum { BY_FOURS = 4, VECTOR = 16 };
    return p->queries == 1 && p->heads >= BY_FOURS && p->keys % VECTOR == 0 ? BOUND_heads
                                                                            : BOUND_runs;
}

/* Rotations go over elements as the call stores them. */
static enum roofline_kind kind_of_rotation(const struct problem *p)
{
    static const enum roofline_kind kinds[2][3] = {
        { [POSENC_F32] = BOUND_turn,
          [POSENC_F16] = BOUND_turn_f16,
          [POSENC_BF16] = BOUND_turn_bf16 },
        { [POSENC_F32] = BOUND_pairs,
          [POSENC_F16] = BOUND_pairs_f16,
          [POSENC_BF16] = BOUND_pairs_bf16 },
    };
    return kinds[p->kernel == POSENC_KERNEL_rope_interleaved][p->dtype];
}

static enum roofline_kind kind_of_work(const struct problem *p)
{
    switch (signature_of(p->kernel)->work) {
    case WORK_ANGLES:
        return kind_of_angles(p);
    case WORK_ROTATION:
        return kind_of_rotation(p);
    case WORK_NORM:
        return BOUND_norm;
    case WORK_SLOPE:
        return BOUND_slope;
    case WORK_LINE:
        return BOUND_line;
    case WORK_RUNS:
        return kind_of_runs(p);
    case WORK_FETCH:
        return BOUND_fetch;
    case WORK_TERMS:
        return !p->with_p2c ? BOUND_c2p : p->without_c2p ? BOUND_p2c : BOUND_both;
    case WORK_SUMS:
        return kind_of_sums(p);
    case WORK_NONE:
    case WORK_UNSAID:
        break;
    }
    return ROOFLINE_KIND_COUNT;
}

/* Lower-bound loops write as much as they read, in f32 except for rotations.  One that multiplies by a
 * norm would let what is changed in place grow without end. */
static bool goes_over_tensors(const struct call *call)
{
    const struct signature *s = signature_of(call->problem.kernel);
    const bool alike = call->outputs[0].tensor.dtype == POSENC_F32 || s->work == WORK_ROTATION;
    return alike && !s->worked && s->work != WORK_NORM;
}

/* Rows of tables are written eight side by side, if they are whole pairs of vectors.  Each row of biases
 * begins anew. */
static void choose_rows(struct looped *work, const struct call *call)
{
    enum { TWO_VECTORS = 32 };
    const struct problem *p = &call->problem;
    const struct posenc_tensor *out = &call->outputs[0].tensor;
    const int64_t last = out->shape[out->rank - 1];
    work->at_once = 1;
    if (work->kind == BOUND_table || work->kind == BOUND_by_turns) {
        work->row = last % TWO_VECTORS == 0 ? last : 0;
        work->at_once = BOUND_ROWS;
    } else if (work->kind >= BOUND_slope && work->kind <= BOUND_heads) {
        work->row = p->keys <= LOOPED_BLOCK ? p->keys : 0;
        work->at_once = work->kind == BOUND_heads ? p->heads : 1;
    }
}

struct looped looped_work(const struct call *call)
{
    const struct problem *p = &call->problem;
    const struct signature *s = signature_of(p->kernel);
    struct looped work = { .kind = kind_of_work(p),
                           .reads = kernel_takes_x(p->kernel),
                           .wide = true,
                           .stored = s->work == WORK_ROTATION,
                           .in_tensors = goes_over_tensors(call) };
    choose_rows(&work, call);
    for (EACH_TENSOR(row, s))
        if (row->role == ROLE_OUTPUT)
            work.floats += tensor_moved(p, row);
    if (s->worked)
        work.floats = s->worked(call);
    if (work.stored)
        work.floats = work.floats * (int64_t)storage_size(p->dtype) / (int64_t)sizeof(float);
    if (work.floats == 0)
        work.kind = ROOFLINE_KIND_COUNT;
    return work;
}

/* ---- Running them ---- */

struct looped_block *looped_blocks(const struct call *call, size_t n)
{
    const enum posenc_dtype type = call->outputs[0].tensor.dtype;
    const int64_t elements = LOOPED_BLOCK * (int64_t)(sizeof(float) / storage_size(type));
    struct looped_block *blocks = aligned_alloc(64, n * sizeof *blocks);
    for (size_t b = 0; blocks && b < n; b++) {
        for (int64_t i = 0; i < LOOPED_BLOCK; i++)
            blocks[b].out[i] = blocks[b].wide[i] = 0.5f + (float)(i % 256) / 256.0f;
        for (int64_t i = 0; i < elements; i++)
            storage_put(type, blocks[b].stored, i, blocks[b].wide[i % LOOPED_BLOCK]);
    }
    return blocks;
}

/* Returns the floats that a loop is given: a block, or the rows that it takes at once if they are more. */
static int64_t floats_given(const struct looped *looped)
{
    const int64_t rows = looped->row * looped->at_once;
    return rows > LOOPED_BLOCK ? rows : LOOPED_BLOCK;
}

/* Returns how many of them are written: whole rows. */
static int64_t floats_written(const struct looped *looped, int64_t given)
{
    const int64_t rows = looped->row * looped->at_once;
    return rows > 0 && rows <= given ? given / rows * rows : given;
}

/* Returns the third argument of a loop that is given so many floats from dst on. */
static const float *third_argument(const struct roofline_variant *loop,
                                   const struct looped *looped,
                                   const struct looped_block *block, const float *dst,
                                   int64_t given)
{
    const bool converts = roofline_resource(loop->kind) == RESOURCE_CONVERSION;
    if (looped->row > 0)
        return looped->row * looped->at_once <= given ? dst + looped->row : NULL;
    return converts && looped->wide ? block->wide : NULL;
}

void looped_run(const struct roofline_variant *loop, const struct looped *looped,
                struct looped_block *block, int64_t blocks)
{
    const float *src = !looped->reads ? NULL : looped->stored ? block->stored : block->wide;
    const float *third = third_argument(loop, looped, block, block->out, LOOPED_BLOCK);
    for (int64_t k = 0; k < blocks; k++)
        loop->function(block->out, src, third, LOOPED_BLOCK);
}

void looped_run_over(const struct roofline_variant *loop, const struct looped *looped,
                     struct looped_block *block, float *dst, const float *src, int64_t n)
{
    const int64_t given = floats_given(looped), step = floats_written(looped, given);
    for (; n >= given; n -= step, dst += step, src += src ? step : 0)
        loop->function(dst, src, third_argument(loop, looped, block, dst, given),
                       (size_t)given);
}

int64_t looped_covered(const struct looped *looped, int64_t n)
{
    const int64_t given = floats_given(looped), step = floats_written(looped, given);
    return n < given ? 0 : ((n - given) / step + 1) * step;
}

/* Some blocks are enough, for what stays in a cache takes as long each time. */
int64_t looped_sample(const struct looped *looped, int threads, double *times)
{
    const double most = 32.0;
    const double all =
        (double)looped->floats / (double)floats_written(looped, LOOPED_BLOCK) / threads;
    const double blocks = fmin(fmax(ceil(all), 1.0), most);
    *times = all / blocks;
    return (int64_t)blocks;
}
