/*
 * Rooflines and lower-bound loops of calls (see rooflines.h). Variants are those of bench/loops for each instruction
 * set, and for memory also plain C and libc. The best one depends on footprint and CPU, so all are timed. The loops of
 * a call follow from its signature; they run over the call's tensors or over a block in cache.
 */
#include "rooflines.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"
#include <posenc/backend.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const roofline_kind_name[ROOFLINE_KIND_COUNT] = {
#define KIND(kind, name, unused) name,
    MOVE_KINDS(KIND, ) BOUND_KINDS(KIND, )
#undef KIND
};
const char *const resource_name[RESOURCE_COUNT] = { "memory", "conversion", "ports", "latency",
                                                    "calls" };

enum resource roofline_resource(enum roofline_kind kind)
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

static bool backend_runs(const char *name)
{
    const struct posenc_backend *backend = posenc_backend_find(name);
    return backend && !posenc_backend_unavailable_reason(backend);
}

#define ISA(name)                                                                              \
    static bool runs_##name(void) { return backend_runs(#name); }                              \
    static bool moves_##name(void)                                                             \
    {                                                                                          \
        return BOUND_NAME(moves, name)() != MOVES_NONE && runs_##name();                       \
    }                                                                                          \
    static bool hints_##name(void)                                                             \
    {                                                                                          \
        return BOUND_NAME(moves, name)() == MOVES_WITH_HINTS && runs_##name();                 \
    }
BOUND_ISAS
#undef ISA

#define BOUND_VARIANT(kind, unused, isa)                                                       \
    { BOUND_##kind, #isa, BOUND_NAME(kind, isa), runs_##isa },
#define MOVE_VARIANTS(kind, unused, isa)                                                       \
    { BOUND_##kind, #isa " plain", BOUND_NAME(kind, isa), moves_##isa },                       \
        { BOUND_##kind, #isa " prefetch", BOUND_NAME(kind##_prefetch, isa), hints_##isa },     \
        { BOUND_##kind, #isa " non-temporal", BOUND_NAME(kind##_stream, isa), hints_##isa },

static const struct roofline_variant variants[] = {
    /* clang-format off */
    { BOUND_store, "memset", libc_store, NULL },
    { BOUND_store, "plain", plain_store, NULL },
    { BOUND_in_place, "plain", plain_in_place, NULL },
    { BOUND_copy, "memcpy", libc_copy, NULL },
    { BOUND_copy, "plain", plain_copy, NULL },
    { BOUND_add, "plain", plain_add, NULL },
#define ISA(name) MOVE_KINDS(MOVE_VARIANTS, name) BOUND_KINDS(BOUND_VARIANT, name)
    BOUND_ISAS
#undef ISA
    /* clang-format on */
};
#undef MOVE_VARIANTS
#undef BOUND_VARIANT

const struct roofline_variant *roofline_variant_at(size_t index)
{
    return index < sizeof variants / sizeof *variants ? &variants[index] : NULL;
}

/* ---- The loops of a call ---- */

/* Returns true if a call reads elements of the type of its outputs. */
static bool reads_stored(const struct problem *p)
{
    bool reads = false;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        reads = reads || (row->role != ROLE_OUTPUT && row->form == FORM_TENSOR &&
                          row->type == TYPE_CALL && tensor_present(p, row));
    return reads;
}

static enum roofline_kind kind_of_conversion(const struct call *call)
{
    switch (call->outputs[0].tensor.dtype) {
    case POSENC_DTYPE_F16:
        return BOUND_f16;
    case POSENC_DTYPE_BF16:
        return BOUND_bf16;
    case POSENC_DTYPE_F32: /* kernels with frequencies compute in f64 */
        break;
    }
    return kernel_has_freqs(call->problem.kernel) ? BOUND_from_f64 : ROOFLINE_KIND_COUNT;
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

static enum roofline_kind kind_of_angles(const struct problem *p)
{
    const bool has_layout = signature_argument(signature_of(p->kernel), MEMBER(layout));
    if (p->freqs.numerics != POSENC_NUMERICS_EXACT)
        return BOUND_angles;
    return has_layout && p->layout == POSENC_LAYOUT_INTERLEAVED ? BOUND_table_interleaved
                                                                : BOUND_table;
}

/* Eight rows, of queries or heads, are summed in parallel; fewer form a dependency chain. */
static enum roofline_kind kind_of_sums(const struct problem *p)
{
    enum { SIDE_BY_SIDE = 8 };
    return p->queries >= SIDE_BY_SIDE || p->batch * p->heads >= SIDE_BY_SIDE ? BOUND_sums
                                                                             : BOUND_chain;
}

/* Rotations read and write the element type of the call. */
static enum roofline_kind kind_of_rotation(const struct problem *p)
{
    static const enum roofline_kind kinds[2][3] = {
        { [POSENC_DTYPE_F32] = BOUND_rotate,
          [POSENC_DTYPE_F16] = BOUND_rotate_f16,
          [POSENC_DTYPE_BF16] = BOUND_rotate_bf16 },
        { [POSENC_DTYPE_F32] = BOUND_rotate_pairs,
          [POSENC_DTYPE_F16] = BOUND_rotate_pairs_f16,
          [POSENC_DTYPE_BF16] = BOUND_rotate_pairs_bf16 },
    };
    return kinds[p->kernel == POSENC_KERNEL_ROPE_INTERLEAVED][p->dtype];
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
    return ROOFLINE_KIND_COUNT;
}

/* Returns true if the loop can run over the call's tensors. Loops write as much as they read, in f32 except for
 * rotations. Repeated norms in place would grow without limit. */
static bool runs_over_tensors(const struct call *call)
{
    const struct signature *s = signature_of(call->problem.kernel);
    const bool alike =
        call->outputs[0].tensor.dtype == POSENC_DTYPE_F32 || s->work == WORK_ROTATION;
    return alike && !s->count_work && s->work != WORK_NORM;
}

/* Sets the rows of a loop: eight rows of a table at once if they are whole pairs of vectors; single rows of biases. */
static void choose_rows(struct loop_work *work, const struct call *call)
{
    enum { TWO_VECTORS = 32 };
    const struct problem *p = &call->problem;
    const struct posenc_tensor *out = &call->outputs[0].tensor;
    const int64_t last = out->shape[out->rank - 1];
    work->at_once = 1;
    if (work->kind == BOUND_table || work->kind == BOUND_table_interleaved) {
        work->row = last % TWO_VECTORS == 0 ? last : 0;
        work->at_once = BOUND_ROWS;
    } else if (work->kind >= BOUND_slope && work->kind <= BOUND_runs) {
        work->row = p->keys <= LOOP_BLOCK ? p->keys : 0;
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
        work.kind = ROOFLINE_KIND_COUNT;
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

/* Returns the floats of one call of a loop: a block, or the rows that it writes at once if they are more. */
static int64_t floats_given(const struct loop_work *work)
{
    const int64_t rows = work->row * work->at_once;
    return rows > LOOP_BLOCK ? rows : LOOP_BLOCK;
}

/* Returns the number of these that are written: whole rows. */
static int64_t floats_written(const struct loop_work *work, int64_t given)
{
    const int64_t rows = work->row * work->at_once;
    return rows > 0 && rows <= given ? given / rows * rows : given;
}

/* Returns the third argument of a loop over `given` floats from dst on (bounds.h). */
static const float *third_argument(const struct roofline_variant *loop,
                                   const struct loop_work *work, const struct loop_block *block,
                                   const float *dst, int64_t given)
{
    const bool converts = roofline_resource(loop->kind) == RESOURCE_CONVERSION;
    if (work->row > 0)
        return work->row * work->at_once <= given ? dst + work->row : NULL;
    return converts && work->wide ? block->wide : NULL;
}

void loop_run(const struct roofline_variant *loop, const struct loop_work *work,
              struct loop_block *block, int64_t blocks)
{
    const float *read = work->stored ? block->stored : block->wide,
                *src = work->reads ? read : NULL;
    const float *third = third_argument(loop, work, block, block->out, LOOP_BLOCK);
    for (int64_t k = 0; k < blocks; k++)
        loop->function(block->out, src, third, LOOP_BLOCK);
}

void loop_run_over_tensor(const struct roofline_variant *loop, const struct loop_work *work,
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
