/*
 * Subnormal numbers in calls of every size. One result for each kernel and dtype, in full runs only,
 * as large calls take their time:
 *
 *   subnormals   a large call gives the bits that its rows give as calls of their own
 *
 * A kernel that flushes subnormal numbers to zero may do so from a size on alone, and may restore
 * the modes before it returns. Then a call of one row keeps numbers that the large call loses.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

#include <math.h>

/* ---- Inputs ---- */

/* Returns the factor that makes inputs, which lie in [2^-4, 2^4), about as small as the least normal
 * number of a dtype. */
static float small_factor(enum posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_F16 ? 0x1p-16f : 0x1p-126f;
}

/* Returns true for elements to make small: of a table about half; of x and terms every 16th row, and half of another
 * 16th. */
static bool is_small(bool is_table, int64_t r, int64_t c)
{
    const bool is_drawn = rng_u64((uint64_t)r, (uint64_t)c) & 1;
    return is_table ? is_drawn : r % 8 == 0 && (r % 16 == 0 || is_drawn);
}

static void make_tensor_small(const struct posenc_tensor *t, bool is_table, float factor)
{
    const int64_t rows = t->stride[0] ? storage_rows(t) : 1, width = t->shape[t->rank - 1];
    for (int64_t r = 0; r < rows; r += is_table ? 1 : 8)
        for (int64_t c = 0; c < width; c++)
            if (is_small(is_table, r, c))
                storage_put(t->dtype, storage_row(t, r), c,
                            storage_get(t->dtype, storage_row(t, r), c) * factor);
}

static void edit_make_small(struct call *call, const void *user)
{
    const struct problem *p = &call->problem;
    const float factor = small_factor(p->dtype);
    (void)user;
    for (EACH_TENSOR(row, signature_of(p->kernel))) {
        const bool is_read = row->role != ROLE_OUTPUT && tensor_present(p, row);
        if (is_read && row->form == FORM_FLOATS) {
            float *data = (float *)(uintptr_t)call_data(call, row);
            for (int64_t i = 0, n = tensor_elements(p, row); i < n; i++)
                data[i] *= is_small(true, 0, i) ? factor : 1.0f;
        } else if (is_read && row->form == FORM_TENSOR && row->stream != STREAM_COS &&
                   row->stream != STREAM_SIN) {
            make_tensor_small(call_argument(call, row),
                              row->role == ROLE_INPUT && row->dims[0] != DIM_BATCH, factor);
        }
    }
}

/* Scales the results of kernels whose only inputs are positions. */
static struct problem with_small_scale(struct problem p)
{
    if (kernel_takes_x(p.kernel) || !kernel_has_freqs(p.kernel))
        return p;
    p.scale = (double)small_factor(p.dtype);
    if (p.kernel == POSENC_KERNEL_ROPE_TABLE)
        p.freqs.attention_factor = p.scale;
    return p;
}

/* ---- Parts ---- */

/* Runs rows of a call as calls of their own: all rows of a small call, and some of a large one. Each
 * dimension but keys is cut to one. */
static void run_parts(struct tally *t, const struct call *whole)
{
    enum { MOST_PARTS = 160 };
    const enum dim *cuts = signature_of(whole->problem.kernel)->cuts;
    int64_t extent[MOST_CUTS], all = 1;
    for (int i = 0; i < MOST_CUTS; i++) {
        extent[i] = !cuts[i] || cuts[i] == DIM_KEY ? 1 : call_extent(whole, cuts[i]);
        all *= extent[i];
    }
    const int64_t n = all < MOST_PARTS ? all : MOST_PARTS;
    for (int64_t k = 0; k < n && t->result.status == CONF_PASS; k++) {
        const int64_t drawn = (int64_t)(rng_u64(3, (uint64_t)k) % (uint64_t)all);
        int64_t which = all > MOST_PARTS ? drawn - drawn % 8 : k;
        struct call part = *whole;
        for (int i = 0; i < MOST_CUTS; i++) {
            if (extent[i] > 1)
                part = call_cut(&part, cuts[i], which % extent[i], 1);
            which /= extent[i];
        }
        const struct guard_result g = guard_run(&part, t->run->backend, NULL);
        require_clean(t, &g);
    }
}

/* Requires the bits of the whole call in all elements that parts wrote; returns the number of subnormal ones. */
static int64_t compare_parts(struct tally *t, const struct call *parts,
                             const struct call *whole)
{
    const float least = parts->problem.dtype == POSENC_DTYPE_F16 ? 0x1p-14f : 0x1p-126f;
    int64_t subnormals = 0;
    for (int o = 0; o < parts->n_outputs; o++)
        for (int64_t r = 0; r < parts->outputs[o].rows; r++) {
            const float *part = call_row(parts, o, r), *row = call_row(whole, o, r);
            for (int64_t c = 0; c < parts->outputs[o].width; c++) {
                if (float_to_bits(part[c]) == CALL_CANARY)
                    continue;
                subnormals += part[c] != 0.0f && fabsf(part[c]) < least;
                require(t, canonical_bits(part[c]) == canonical_bits(row[c]),
                        "%.9g in a call of %lld rows, %.9g in a call of its own",
                        (double)row[c], (long long)parts->outputs[o].rows, (double)part[c]);
            }
        }
    return subnormals;
}

static int64_t check_size(struct tally *t, struct problem p)
{
    int64_t subnormals = 0;
    p = with_small_scale(p);
    p.in_place = p.accumulate = false;
    const struct call *whole = tally_run(t, &p, edit_make_small, NULL);
    struct call *parts = tally_create_call(t, t->run->implementation, &p);
    if (whole && parts) {
        edit_make_small(parts, NULL);
        run_parts(t, parts);
        subnormals = compare_parts(t, parts, whole);
    }
    tally_free_calls(t);
    return subnormals;
}

/* ---- The suite ---- */

void check_subnormals(struct suite_run *run, enum posenc_kernel kernel)
{
    static const size_t bytes[] = { 12 << 10, 300 << 10, 12 << 20 };
    for (int dtype = POSENC_DTYPE_F32; dtype <= POSENC_DTYPE_BF16 && run->options->full;
         dtype++) {
        struct tally t;
        int64_t subnormals = 0;
        if (!tally_begin(&t, run, kernel, (enum posenc_dtype)dtype, "memory", NULL,
                         "subnormals"))
            continue;
        for (int i = 0; i < (dtype == POSENC_DTYPE_F32 ? 3 : 2); i++)
            subnormals +=
                check_size(&t, problem_realistic(kernel, (enum posenc_dtype)dtype, bytes[i]));
        require(&t, t.result.status != CONF_PASS || subnormals > 0, "no subnormal number");
        tally_end(&t);
    }
}
