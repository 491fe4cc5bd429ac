/*
 * Subnormal numbers in calls of every size, one result per kernel and dtype:
 *
 *   subnormals   a large call gives the bits that its parts give, of which each is a call
 *
 * A kernel that flushes to zero while it works, or reads subnormal inputs as zeros, may do so from a
 * size on alone, and may put the modes back before it returns.  Then the parts, of a row or a
 * channel each, keep what the whole has lost.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Inputs ---- */

/* Inputs lie in [2^-4, 2^4): these factors make them about as large as the least normal numbers. */
static float factor_of(enum posenc_dtype dtype)
{
    return dtype == POSENC_F16 ? 0x1p-16f : 0x1p-126f;
}

/* Of x and of terms every eighth row is small, all of it or each second element; of tables every
 * second element is. */
static bool is_small(bool table, int64_t r, int64_t c)
{
    const bool second = mix64((uint64_t)r, (uint64_t)c) & 1;
    return table ? second : r % 8 == 0 && (r % 16 == 0 || second);
}

static void make_small(struct call *call)
{
    const float factor = factor_of(call->problem.dtype);
    for (EACH_TENSOR(row, signature_of(call->problem.kernel))) {
        if (row->role == ROLE_OUTPUT || !tensor_present(&call->problem, row))
            continue;
        if (row->form == FORM_FLOATS) {
            float *data = (float *)(uintptr_t)call_data(call, row);
            for (int64_t i = 0, n = tensor_elements(&call->problem, row); i < n; i++)
                data[i] *= is_small(true, 0, i) ? factor : 1.0f;
        }
        if (row->form != FORM_TENSOR || row->stream == STREAM_COS || row->stream == STREAM_SIN)
            continue;
        const struct posenc_tensor *t = call_argument(call, row);
        const bool table = row->role == ROLE_INPUT && row->dims[0] != DIM_BATCH;
        const int64_t rows = t->stride[0] ? storage_rows(t) : 1, width = t->shape[t->rank - 1];
        for (int64_t r = 0; r < rows; r += table ? 1 : 8) {
            void *at = storage_row(t, r);
            for (int64_t c = 0; c < width; c++)
                if (is_small(table, r, c))
                    storage_put(t->dtype, at, c, storage_get(t->dtype, at, c) * factor);
        }
    }
}

/* Sines and cosines without inputs are as small as their scale. */
static struct problem with_small_scale(struct problem p)
{
    if (kernel_takes_x(p.kernel) || !kernel_has_freqs(p.kernel))
        return p;
    p.scale = (double)factor_of(p.dtype);
    if (p.kernel == POSENC_KERNEL_rope_table)
        p.freqs.attention_factor = p.scale;
    return p;
}

/* ---- Parts ---- */

struct parts {
    struct tally *t;
    const struct call *whole;
    char *kept; /* of a part, as the whole gave it */
    size_t room;
    int64_t subnormals;
};

static struct posenc_tensor *output_of(struct call *call, int o)
{
    return call_argument(call, signature_output(signature_of(call->problem.kernel), o));
}

static bool keep_part(struct parts *parts, struct call *part)
{
    size_t used = 0;
    for (int o = 0; o < part->n_outputs; o++) {
        const struct posenc_tensor *t = output_of(part, o);
        const size_t bytes = (size_t)t->shape[t->rank - 1] * storage_size(t->dtype);
        const int64_t rows = storage_rows(t);
        if (parts->room < used + (size_t)rows * bytes) {
            parts->room = 2 * (used + (size_t)rows * bytes);
            char *more = realloc(parts->kept, parts->room);
            if (!more)
                return false;
            parts->kept = more;
        }
        for (int64_t r = 0; r < rows; r++, used += bytes)
            memcpy(parts->kept + used, storage_row(t, r), bytes);
    }
    return true;
}

static void compare_part(struct parts *parts, struct call *part)
{
    const char *kept = parts->kept;
    for (int o = 0; o < part->n_outputs; o++) {
        const struct posenc_tensor *t = output_of(part, o);
        const int64_t width = t->shape[t->rank - 1];
        const bool half = part->problem.dtype == POSENC_F16;
        const float least = half ? 0x1p-14f : 0x1p-126f;
        for (int64_t r = 0; r < storage_rows(t); r++) {
            for (int64_t c = 0; c < width; c++) {
                const float whole = storage_get(t->dtype, kept, c),
                            alone = storage_get(t->dtype, storage_row(t, r), c);
                parts->subnormals += float_to_bits(alone) << 1 && fabsf(alone) < least;
                require(parts->t, value_bits(whole) == value_bits(alone),
                        "%.9g in a call of %lld rows, %.9g in a call of %lld", (double)whole,
                        (long long)parts->whole->outputs[o].rows, (double)alone,
                        (long long)storage_rows(t));
            }
            kept += width * (int64_t)storage_size(t->dtype);
        }
    }
}

/* Every row of a small call, so many of a large one: each dimension but keys is cut to one. */
static void check_parts(struct parts *parts, int64_t most)
{
    const enum dim *cuts = signature_of(parts->whole->problem.kernel)->cuts;
    int64_t extent[MOST_CUTS], all = 1;
    for (int i = 0; i < MOST_CUTS; i++) {
        extent[i] = !cuts[i] || cuts[i] == DIM_KEY ? 1 : call_extent(parts->whole, cuts[i]);
        all *= extent[i];
    }
    const int64_t n = all < most ? all : most;
    for (int64_t k = 0; k < n && parts->t->result.status == CONF_PASS; k++) {
        int64_t which = all <= most ? k : (int64_t)(mix64(3, (uint64_t)k) % (uint64_t)all);
        struct call part = *parts->whole;
        which -= all > most ? which % 8 : 0;
        for (int i = 0; i < MOST_CUTS; i++) {
            if (extent[i] > 1)
                part = call_cut(&part, cuts[i], which % extent[i], 1);
            which /= extent[i];
        }
        if (!keep_part(parts, &part))
            return;
        const struct guarded g = guarded_run(&part, parts->t->run->backend, NULL);
        if (require_clean(parts->t, &g))
            compare_part(parts, &part);
    }
}

static int64_t check_size(struct tally *t, struct problem p)
{
    enum { MOST_PARTS = 160 };
    struct call call;
    struct parts parts = { .t = t, .whole = &call };
    p = with_small_scale(p);
    p.in_place = p.accumulate = false;
    if (!require(t,
                 call_create_by(t->run->implementation, &call, &p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return 0;
    t->problem = &p;
    make_small(&call);
    const struct guarded g = guarded_run(&call, t->run->backend, NULL);
    if (require_clean(t, &g))
        check_parts(&parts, MOST_PARTS);
    t->problem = NULL;
    free(parts.kept);
    call_destroy(&call);
    return parts.subnormals;
}

/* ---- The suite ---- */

/* In full runs only: large calls take their time. */
void check_subnormals(struct suite_run *run, enum posenc_kernel kernel)
{
    static const size_t bytes[] = { 12 << 10, 300 << 10, 12 << 20 };
    for (int dtype = POSENC_F32; dtype <= POSENC_BF16 && run->options->full; dtype++) {
        struct tally t;
        int64_t subnormals = 0;
        if (!tally_begin(&t, run, kernel, (enum posenc_dtype)dtype, "memory", NULL,
                         "subnormals"))
            continue;
        for (int i = 0; i < (dtype == POSENC_F32 ? 3 : 2); i++)
            subnormals +=
                check_size(&t, problem_realistic(kernel, (enum posenc_dtype)dtype, bytes[i]));
        require(&t, t.result.status != CONF_PASS || subnormals > 0, "no subnormal number");
        tally_end(&t);
    }
}
