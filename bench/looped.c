/*
 * Chooses the loops of a call and runs them, over the call's tensors or, where they cannot, over a block
 * that stays in the nearest cache (see looped.h).
 */
#include "looped.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

/* ---- Which loops ---- */

/* Whether a call reads what is stored as its outputs are. */
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
    static const enum roof_kind kinds[] = {
        [POSENC_F16] = ROOF_F16, [POSENC_BF16] = ROOF_BF16
    };
    const enum posenc_dtype type = call->outputs[0].tensor.dtype;
    const bool plan = kernel_has_plan(call->problem.kernel);
    const enum roof_kind from_f64 = plan ? ROOF_FROM_F64 : ROOF_KIND_COUNT;
    return (struct looped){ .kind = type == POSENC_F32 ? from_f64 : kinds[type],
                            .floats = stored,
                            .reads = reads_stored(&call->problem),
                            .wide = !plan,
                            .stored = true,
                            .in_tensors = true };
}

static enum roof_kind kind_of_angles(const struct problem *p)
{
    const struct signature *s = signature_of(p->kernel);
    if (p->freqs.profile != POSENC_EXACT)
        return ROOF_BARE_angles;
    return signature_argument(s, MEMBER(layout)) && p->layout == POSENC_INTERLEAVED
               ? ROOF_BARE_by_turns
               : ROOF_BARE_table;
}

static enum roof_kind kind_of_terms(const struct problem *p)
{
    return !p->with_p2c ? ROOF_BARE_c2p : p->without_c2p ? ROOF_BARE_p2c : ROOF_BARE_both;
}

/* Eight rows can be added up side by side where there are as many, of queries or of heads. */
static enum roof_kind kind_of_sums(const struct problem *p)
{
    enum { SIDE_BY_SIDE = 8 };
    return p->queries >= SIDE_BY_SIDE || p->batch * p->heads >= SIDE_BY_SIDE ? ROOF_BARE_sums
                                                                             : ROOF_BARE_chain;
}

/* Heads of a single query, whose rows are whole vectors, are taken by fours. */
static enum roof_kind kind_of_runs(const struct problem *p)
{
    enum { BY_FOURS = 4, VECTOR = 16 };
    return p->queries == 1 && p->heads >= BY_FOURS && p->keys % VECTOR == 0 ? ROOF_BARE_heads
                                                                            : ROOF_BARE_runs;
}

/* In the storage of the call. */
static enum roof_kind kind_of_turn(const struct problem *p)
{
    static const enum roof_kind halves[] = { [POSENC_F32] = ROOF_BARE_turn,
                                             [POSENC_F16] = ROOF_BARE_turn_f16,
                                             [POSENC_BF16] = ROOF_BARE_turn_bf16 },
                                pairs[] = { [POSENC_F32] = ROOF_BARE_pairs,
                                            [POSENC_F16] = ROOF_BARE_pairs_f16,
                                            [POSENC_BF16] = ROOF_BARE_pairs_bf16 };
    return (p->kernel == POSENC_KERNEL_rope_interleaved ? pairs : halves)[p->dtype];
}

static enum roof_kind kind_of_work(const struct problem *p)
{
    switch (signature_of(p->kernel)->work) {
    case WORK_ANGLES:
        return kind_of_angles(p);
    case WORK_TURN:
        return kind_of_turn(p);
    case WORK_NORM:
        return ROOF_BARE_norm;
    case WORK_SLOPE:
        return ROOF_BARE_slope;
    case WORK_LINE:
        return ROOF_BARE_line;
    case WORK_RUNS:
        return kind_of_runs(p);
    case WORK_FETCH:
        return ROOF_BARE_fetch;
    case WORK_TERMS:
        return kind_of_terms(p);
    case WORK_SUMS:
        return kind_of_sums(p);
    case WORK_NONE:
    case WORK_UNSAID:
        break;
    }
    return ROOF_KIND_COUNT;
}

/* Of tables, eight rows of which are written side by side. */
static int64_t row_of_table(const struct call *call)
{
    enum { TWO_VECTORS = 32 };
    const int64_t row = call->outputs[0].tensor.shape[call->outputs[0].tensor.rank - 1];
    return row % TWO_VECTORS == 0 ? row : 0;
}

/* Of biases, whose rows each begin anew. */
static int64_t row_of_biases(const struct problem *p)
{
    const int work = (int)signature_of(p->kernel)->work;
    const bool in_rows = work == WORK_SLOPE || work == WORK_LINE || work == WORK_RUNS;
    return in_rows && p->keys <= LOOPED_BLOCK ? p->keys : 0;
}

/* Bare loops write as much as they read, in f32 but for rotations.  One that multiplies by a norm would let
 * what is changed in place grow without end. */
static bool goes_over_tensors(const struct call *call)
{
    const struct signature *s = signature_of(call->problem.kernel);
    const bool alike = call->outputs[0].tensor.dtype == POSENC_F32 || s->work == WORK_TURN;
    return alike && !s->worked && s->work != WORK_NORM;
}

struct looped looped_work(const struct call *call)
{
    const struct problem *p = &call->problem;
    const struct signature *s = signature_of(p->kernel);
    struct looped work = { .kind = kind_of_work(p),
                           .reads = kernel_takes_x(p->kernel),
                           .wide = true,
                           .stored = s->work == WORK_TURN,
                           .in_tensors = goes_over_tensors(call),
                           .row = row_of_biases(p),
                           .at_once = 1 };
    if (work.kind == ROOF_BARE_table || work.kind == ROOF_BARE_by_turns) {
        work.row = row_of_table(call);
        work.at_once = BARE_ROWS;
    }
    if (work.kind == ROOF_BARE_heads)
        work.at_once = p->heads;
    for (EACH_TENSOR(row, s))
        if (row->role == ROLE_OUTPUT)
            work.floats += tensor_moved(p, row);
    if (s->worked)
        work.floats = s->worked(call);
    if (work.stored)
        work.floats = work.floats * (int64_t)storage_size(p->dtype) / (int64_t)sizeof(float);
    if (work.floats == 0)
        work.kind = ROOF_KIND_COUNT;
    return work;
}

/* ---- What they work on ---- */

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

/* ---- Running them ---- */

/* Floats that a loop is given: a block, or so many rows as it takes at once where they are more. */
static int64_t floats_given(const struct looped *looped)
{
    const int64_t rows = looped->row * looped->at_once;
    return rows > LOOPED_BLOCK ? rows : LOOPED_BLOCK;
}

/* Those of them that are written: whole rows. */
static int64_t floats_written(const struct looped *looped, int64_t given)
{
    const int64_t rows = looped->row * looped->at_once;
    return rows > 0 && rows <= given ? given / rows * rows : given;
}

/* The third argument of a loop that is given so many floats from dst on. */
static const float *third_argument(const struct roof_variant *loop, const struct looped *looped,
                                   const struct looped_block *block, const float *dst,
                                   int64_t given)
{
    const bool converts = roof_resource(loop->kind) == RESOURCE_CONVERSION;
    if (looped->row > 0)
        return looped->row * looped->at_once <= given ? dst + looped->row : NULL;
    return converts && looped->wide ? block->wide : NULL;
}

void looped_run(const struct roof_variant *loop, const struct looped *looped,
                struct looped_block *block, int64_t blocks)
{
    const float *src = !looped->reads ? NULL : looped->stored ? block->stored : block->wide;
    const float *third = third_argument(loop, looped, block, block->out, LOOPED_BLOCK);
    for (int64_t k = 0; k < blocks; k++)
        loop->function(block->out, src, third, LOOPED_BLOCK);
}

void looped_run_over(const struct roof_variant *loop, const struct looped *looped,
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

/* Some blocks do: what stays in a cache takes as long again and again. */
int64_t looped_sample(const struct looped *looped, int threads, double *times)
{
    const double most = 32.0;
    const double all =
        (double)looped->floats / (double)floats_written(looped, LOOPED_BLOCK) / threads;
    const double blocks = fmin(fmax(ceil(all), 1.0), most);
    *times = all / blocks;
    return (int64_t)blocks;
}
