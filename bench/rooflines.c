/*
 * Lists the variants of rooflines and loops, and derives the loops of a call from its signature (see rooflines.h).
 * Variants are those of bench/loops for each instruction set, and for memory also plain C and libc. The best one depends
 * on footprint and CPU, so all are timed.
 */
#include "rooflines.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"
#include <posenc/backend.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const bound_kind_name[BOUND_KIND_COUNT] = {
#define KIND(kind, name, isa) name,
    MOVE_KINDS(KIND, ) BOUND_KINDS(KIND, )
#undef KIND
};
const char *const resource_name[RESOURCE_COUNT] = { "memory", "conversion", "ports", "latency",
                                                    "calls" };

enum resource bound_resource(enum bound_kind kind)
{
    if (kind < BOUND_from_f64)
        return RESOURCE_MEMORY;
    if (kind < BOUND_table)
        return RESOURCE_CONVERSION;
    return kind == BOUND_chain ? RESOURCE_LATENCY : RESOURCE_PORTS;
}

/* ---- Rooflines by the compiler and by libc ---- */

static void plain_store(float *dst, const float *src, const float *add, size_t n)
{
    (void)src, (void)add;
    for (size_t i = 0; i < n; i++)
        dst[i] = ROOFLINE_CONSTANT;
}

/* Has one pointer, since the compiler does not vectorise two that may overlap. */
static void plain_in_place(float *dst, const float *src, const float *add, size_t n)
{
    (void)src, (void)add;
    for (size_t i = 0; i < n; i++)
        dst[i] *= -1.0f;
}

static void plain_copy(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    for (size_t i = 0; i < n; i++)
        dst[i] = src[i];
}

static void plain_add(float *dst, const float *src, const float *add, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = src[i] + add[i];
}

static void libc_store(float *dst, const float *src, const float *add, size_t n)
{
    (void)src, (void)add;
    memset(dst, ROOFLINE_BYTE, n * sizeof *dst);
}

static void libc_copy(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    memcpy(dst, src, n * sizeof *dst);
}

/* ---- Variants ---- */

#define LOOP_VARIANT(kind, name, isa)                                                          \
    { BOUND_##kind, #isa, BOUND_NAME(kind, isa), #isa, NULL, MOVES_NONE },
#define MOVE_VARIANT(kind, suffix, words, isa, least_moves)                                    \
    { BOUND_##kind,           #isa words, BOUND_NAME(kind##suffix, isa), #isa,                 \
      BOUND_NAME(moves, isa), least_moves },
#define MOVE_VARIANTS(kind, name, isa)                                                         \
    MOVE_VARIANT(kind, , " plain", isa, MOVES_PLAIN)                                           \
    MOVE_VARIANT(kind, _prefetch, " prefetch", isa, MOVES_WITH_HINTS)                          \
    MOVE_VARIANT(kind, _stream, " non-temporal", isa, MOVES_WITH_HINTS)

static const struct bound_variant variants[] = {
    /* clang-format off */
    { BOUND_store, "memset", libc_store, NULL, NULL, MOVES_NONE },
    { BOUND_store, "plain", plain_store, NULL, NULL, MOVES_NONE },
    { BOUND_in_place, "plain", plain_in_place, NULL, NULL, MOVES_NONE },
    { BOUND_copy, "memcpy", libc_copy, NULL, NULL, MOVES_NONE },
    { BOUND_copy, "plain", plain_copy, NULL, NULL, MOVES_NONE },
    { BOUND_add, "plain", plain_add, NULL, NULL, MOVES_NONE },
#define ISA(isa) MOVE_KINDS(MOVE_VARIANTS, isa) BOUND_KINDS(LOOP_VARIANT, isa)
    BOUND_ISAS
#undef ISA
    /* clang-format on */
};
#undef MOVE_VARIANTS
#undef MOVE_VARIANT
#undef LOOP_VARIANT

const struct bound_variant *bound_variant_at(size_t index)
{
    return index < sizeof variants / sizeof *variants ? &variants[index] : NULL;
}

bool bound_variant_runs(const struct bound_variant *variant)
{
    const struct posenc_backend *backend =
        variant->backend ? posenc_backend_find(variant->backend) : NULL;
    if (variant->backend && (!backend || posenc_backend_unavailable_reason(backend)))
        return false;
    return !variant->moves || variant->moves() >= variant->least_moves;
}

/* ---- The loops of a call ---- */

/* Returns true if a call reads elements of the type of its outputs. */
static bool reads_stored(const struct problem *p)
{
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (row->role != ROLE_OUTPUT && row->form == FORM_TENSOR && row->type == TYPE_CALL &&
            tensor_present(p, row))
            return true;
    return false;
}

static enum bound_kind kind_of_conversion(const struct call *call)
{
    switch (call->outputs[0].tensor.dtype) {
    case POSENC_DTYPE_F16:
        return BOUND_f16;
    case POSENC_DTYPE_BF16:
        return BOUND_bf16;
    case POSENC_DTYPE_F32: /* kernels with frequencies compute in f64 */
        break;
    }
    return kernel_has_freqs(call->problem.kernel) ? BOUND_from_f64 : BOUND_KIND_COUNT;
}

struct loop_work loop_work_of_conversion(const struct call *call, int64_t stored)
{
    return (struct loop_work){ .kind = kind_of_conversion(call),
                               .floats = stored,
                               .reads = reads_stored(&call->problem),
                               .wide = !kernel_has_freqs(call->problem.kernel),
                               .stored = true,
                               .in_tensors = true };
}

static enum bound_kind kind_of_angles(const struct problem *p)
{
    const bool has_layout = signature_argument(signature_of(p->kernel), MEMBER(layout));
    if (p->freqs.numerics != POSENC_NUMERICS_EXACT)
        return BOUND_angles;
    return has_layout && p->layout == POSENC_LAYOUT_INTERLEAVED ? BOUND_table_interleaved
                                                                : BOUND_table;
}

/* Kernels sum eight rows, of queries or heads, in parallel; fewer form a dependency chain. */
static enum bound_kind kind_of_sums(const struct problem *p)
{
    enum { IN_PARALLEL = 8 };
    const bool enough_rows = p->queries >= IN_PARALLEL || p->batch * p->heads >= IN_PARALLEL;
    return enough_rows ? BOUND_sums : BOUND_chain;
}

/* Rotations read and write the element type of the call. */
static enum bound_kind kind_of_rotation(const struct problem *p)
{
    const bool pairs = p->kernel == POSENC_KERNEL_ROPE_INTERLEAVED;
    switch (p->dtype) {
    case POSENC_DTYPE_F16:
        return pairs ? BOUND_rotate_pairs_f16 : BOUND_rotate_f16;
    case POSENC_DTYPE_BF16:
        return pairs ? BOUND_rotate_pairs_bf16 : BOUND_rotate_bf16;
    default:
        return pairs ? BOUND_rotate_pairs : BOUND_rotate;
    }
}

static enum bound_kind kind_of_work(const struct problem *p)
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
        return BOUND_runs;
    case WORK_FETCH:
        return BOUND_fetch;
    case WORK_TERMS:
        if (!p->with_p2c)
            return BOUND_c2p;
        return p->without_c2p ? BOUND_p2c : BOUND_both;
    case WORK_SUMS:
        return kind_of_sums(p);
    case WORK_NONE:
    case WORK_UNSET:
        break;
    }
    return BOUND_KIND_COUNT;
}

/* Returns true if the loop can run over the call's tensors. Loops write f32, except for rotations. A kernel that counts its
 * work reads more than it writes, and repeated norms in place would grow without limit. */
static bool runs_over_tensors(const struct call *call)
{
    const struct signature *s = signature_of(call->problem.kernel);
    const bool same_dtype =
        call->outputs[0].tensor.dtype == POSENC_DTYPE_F32 || s->work == WORK_ROTATION;
    return same_dtype && !s->count_work && s->work != WORK_NORM;
}

/* Sets the rows of a loop: of tables eight at once, if a row is whole pairs of the longest vectors; of biases one. */
static void choose_rows(struct loop_work *work, const struct call *call)
{
    enum { TWO_VECTORS = 32 };
    const struct problem *p = &call->problem;
    const struct posenc_tensor *out = &call->outputs[0].tensor;
    const int64_t last = out->shape[out->rank - 1];
    work->rows_at_once = 1;
    if (work->kind == BOUND_table || work->kind == BOUND_table_interleaved) {
        work->row_floats = last % TWO_VECTORS == 0 ? last : 0;
        work->rows_at_once = BOUND_ROWS;
    } else if (work->kind >= BOUND_slope && work->kind <= BOUND_runs) {
        work->row_floats = p->keys <= LOOP_BLOCK ? p->keys : 0;
    }
}

struct loop_work loop_work_of_kernel(const struct call *call)
{
    const struct problem *p = &call->problem;
    const struct signature *s = signature_of(p->kernel);
    struct loop_work work = { .kind = kind_of_work(p),
                              .reads = kernel_takes_x(p->kernel),
                              .wide = true,
                              .stored = s->work == WORK_ROTATION,
                              .in_tensors = runs_over_tensors(call) };
    choose_rows(&work, call);
    for (EACH_TENSOR(row, s))
        if (row->role == ROLE_OUTPUT)
            work.floats += tensor_moved(p, row);
    if (s->count_work)
        work.floats = s->count_work(call);
    if (work.stored)
        work.floats = work.floats * (int64_t)storage_size(p->dtype) / (int64_t)sizeof(float);
    if (work.floats == 0)
        work.kind = BOUND_KIND_COUNT;
    return work;
}

/* ---- Running loops ---- */

struct loop_block *loop_blocks_create(const struct call *call, size_t n)
{
    const enum posenc_dtype type = call->outputs[0].tensor.dtype;
    const int64_t elements = LOOP_BLOCK * (int64_t)(sizeof(float) / storage_size(type));
    struct loop_block *blocks = aligned_alloc(64, n * sizeof *blocks);
    for (size_t b = 0; blocks && b < n; b++) {
        for (int64_t i = 0; i < LOOP_BLOCK; i++)
            blocks[b].out[i] = blocks[b].wide[i] = 0.5f + (float)(i % 256) / 256.0f;
        for (int64_t i = 0; i < elements; i++)
            storage_put(type, blocks[b].stored, i, blocks[b].wide[i % LOOP_BLOCK]);
    }
    return blocks;
}

/* Returns the floats that a loop writes without a gap: a row, or the rows at once; 0: rows do not matter. */
static int64_t group_floats(const struct loop_work *work)
{
    return work->row_floats * work->rows_at_once;
}

/* Returns the floats that one call of a loop over a tensor gets: a block, or a group of rows if that is longer. */
static int64_t floats_given(const struct loop_work *work)
{
    return group_floats(work) > LOOP_BLOCK ? group_floats(work) : LOOP_BLOCK;
}

/* Returns the floats that a loop writes of those that it is given: whole groups of rows. */
static int64_t floats_written(const struct loop_work *work, int64_t given)
{
    const int64_t group = group_floats(work);
    return group > 0 && group <= given ? given / group * group : given;
}

/* Returns the third argument of a loop over `given` floats from dst on (bounds.h). */
static const float *third_argument(const struct bound_variant *loop,
                                   const struct loop_work *work, const struct loop_block *block,
                                   const float *dst, int64_t given)
{
    const bool converts = bound_resource(loop->kind) == RESOURCE_CONVERSION;
    if (work->row_floats > 0)
        return group_floats(work) <= given ? dst + work->row_floats : NULL;
    return converts && work->wide ? block->wide : NULL;
}

void loop_run(const struct bound_variant *loop, const struct loop_work *work,
              struct loop_block *block, int64_t blocks)
{
    const float *read = work->stored ? block->stored : block->wide,
                *src = work->reads ? read : NULL;
    const float *third = third_argument(loop, work, block, block->out, LOOP_BLOCK);
    for (int64_t k = 0; k < blocks; k++)
        loop->function(block->out, src, third, LOOP_BLOCK);
}

void loop_run_over_tensor(const struct bound_variant *loop, const struct loop_work *work,
                          struct loop_block *block, float *dst, const float *src, int64_t n)
{
    const int64_t given = floats_given(work), step = floats_written(work, given);
    for (; n >= given; n -= step, dst += step, src += src ? step : 0)
        loop->function(dst, src, third_argument(loop, work, block, dst, given), (size_t)given);
}

int64_t loop_covered_floats(const struct loop_work *work, int64_t n)
{
    const int64_t given = floats_given(work), step = floats_written(work, given);
    return n < given ? 0 : ((n - given) / step + 1) * step;
}

/* At most 32 blocks, since each block in cache takes the same time. */
int64_t loop_sample_blocks(const struct loop_work *work, int threads, double *times)
{
    const double most = 32.0;
    const double all =
        (double)work->floats / (double)floats_written(work, LOOP_BLOCK) / threads;
    const double blocks = fmin(fmax(ceil(all), 1.0), most);
    *times = all / blocks;
    return (int64_t)blocks;
}
