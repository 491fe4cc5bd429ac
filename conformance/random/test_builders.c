/*
 * Tests the functions that build slopes, thresholds, indices and biases: each argument at its ends, and one beyond:
 *
 *     ACCEPTS(65536, posenc_alibi_slopes(65536, 8.0, out, NULL));     writes 65536 elements
 *     REJECTS(SHAPE, posenc_alibi_slopes(65537, 8.0, out, NULL));     returns POSENC_ERR_SHAPE and writes none
 *
 * An output has memory of exactly its size, between pages that fault. conformance/golden/check_builders.py certifies
 * the values.
 */
#include "base/tap/tap.h"
#include "conformance/problem/guard.h"

#include <float.h>
#include <math.h>
#include <string.h>

static int failures;
static struct tensor_allocator memory; /* of outputs */

/* Counts and prints a failure unless the requirement `what` of a call, in this line, holds. */
static void expect(bool holds, const char *call, int line, const char *what)
{
    failures += !holds;
    if (!holds)
        printf("# line %d: %s: %s\n", line, call, what);
}

/* Makes the output of the next call: elements that no builder writes. */
static void *make_output(size_t count)
{
    char *out = memory.get(memory.user, count * sizeof(float), 0, 'b'); /* flush with a page */
    return out ? memset(out, 0x55, count * sizeof(float)) : NULL;
}

/* Requires that all elements are new, or none. */
static void check_output(char *out, size_t count, bool accepted, const char *call, int line)
{
    const uint32_t fresh = 0x55555555u;
    bool right = out;
    for (size_t k = 0; k < count && out; k++)
        right =
            right && (memcmp(out + k * sizeof fresh, &fresh, sizeof fresh) != 0) == accepted;
    expect(right, call, line, accepted ? "left an element" : "rejected, and yet written");
    memory.free(memory.user, out);
}

/* Requires a status of a call that writes to `out`, which the macro defines. Then repeats it with NULL, which only an
 * output without elements may be. */
#define EXPECT(expected, count, call)                                                          \
    do {                                                                                       \
        void *out = make_output(count);                                                        \
        expect((call) == (expected), #call, __LINE__, "another status");                       \
        check_output(out, count, (expected) == POSENC_OK, #call, __LINE__);                    \
        out = NULL;                                                                            \
        expect((count) == 0 || (call) != POSENC_OK, #call, __LINE__, "NULL was accepted");     \
    } while (0)
#define ACCEPTS(count, call)  EXPECT(POSENC_OK, count, call)
#define REJECTS(status, call) EXPECT(POSENC_ERR_##status, 16, call)
/* The largest distance; the number of positions. */
#define FAR ((INT64_C(1) << 24) - 1)
#define END (INT64_C(1) << 31)

/* ---- Builders ---- */

static void check_alibi(void)
{
    ACCEPTS(1, posenc_alibi_slopes(1, 64.0, out, NULL));
    ACCEPTS(65536, posenc_alibi_slopes(65536, 8.0, out, NULL));
    REJECTS(SHAPE, posenc_alibi_slopes(0, 8.0, out, NULL));
    REJECTS(SHAPE, posenc_alibi_slopes(65537, 8.0, out, NULL));
    REJECTS(PARAMETER, posenc_alibi_slopes(8, 0.0, out, NULL));
    REJECTS(PARAMETER, posenc_alibi_slopes(8, 64.1, out, NULL));
    REJECTS(PARAMETER, posenc_alibi_slopes(8, (double)NAN, out, NULL));
}

static void check_t5(void)
{
    struct posenc_t5_buckets buckets;
    ACCEPTS(2, posenc_t5_buckets_compute(2, 2, false, out, &buckets, NULL));
    ACCEPTS(2048, posenc_t5_buckets_compute(4096, FAR, true, out, &buckets, NULL));
    REJECTS(SHAPE, posenc_t5_buckets_compute(1, 128, false, out, &buckets, NULL));
    REJECTS(SHAPE, posenc_t5_buckets_compute(2, 128, true, out, &buckets, NULL));
    REJECTS(SHAPE, posenc_t5_buckets_compute(7, 128, true, out, &buckets, NULL));
    REJECTS(SHAPE, posenc_t5_buckets_compute(4097, 9000, false, out, &buckets, NULL));
    REJECTS(PARAMETER, posenc_t5_buckets_compute(32, 16, false, out, &buckets, NULL));
    REJECTS(PARAMETER, posenc_t5_buckets_compute(32, 8, true, out, &buckets, NULL));
    REJECTS(PARAMETER, posenc_t5_buckets_compute(32, FAR + 1, false, out, &buckets, NULL));
}

/* Returns the parameters of up to three heads: ones, and this value last. */
static const float *last(int heads, double value)
{
    static float values[] = { 1.0f, 1.0f, 1.0f };
    values[2] = (float)value;
    return values + 3 - heads;
}

static void check_biases_by_distance(void)
{
    const float ones[] = { 1.0f, 1.0f, 1.0f };
    ACCEPTS(15, posenc_kerple_log(3, ones, last(3, 1e9), -FAR, 5, out, NULL));
    ACCEPTS(1, posenc_kerple_log(1, ones, last(1, (double)FLT_MAX), FAR, 1, out, NULL));
    ACCEPTS(10, posenc_kerple_log(2, ones, last(2, 1e9), 0, 5, out, NULL));
    REJECTS(SHAPE, posenc_kerple_log(0, ones, ones, 0, 5, out, NULL));
    REJECTS(SHAPE, posenc_kerple_log(65537, ones, ones, 0, 1, out, NULL));
    REJECTS(SHAPE, posenc_kerple_log(3, ones, ones, -FAR - 1, 5, out, NULL));
    REJECTS(SHAPE, posenc_kerple_log(3, ones, ones, FAR, 2, out, NULL));
    REJECTS(SHAPE, posenc_kerple_log(3, ones, ones, 0, 0, out, NULL));
    REJECTS(SHAPE, posenc_kerple_log(3, ones, ones, INT64_MAX, INT64_MAX, out, NULL));
    REJECTS(PARAMETER, posenc_kerple_log(3, ones, last(3, 0.0), 0, 5, out, NULL));
    REJECTS(PARAMETER, posenc_kerple_log(3, ones, last(3, (double)INFINITY), 0, 5, out, NULL));
    ACCEPTS(15, posenc_kerple_power(3, last(3, 2.0), ones, 0, 5, out, NULL));
    REJECTS(SHAPE, posenc_kerple_power(3, ones, ones, 0, 0, out, NULL));
    REJECTS(PARAMETER, posenc_kerple_power(3, last(3, 2.001), ones, 0, 5, out, NULL));
    REJECTS(PARAMETER, posenc_kerple_power(3, last(3, (double)NAN), ones, 0, 5, out, NULL));
    ACCEPTS(15, posenc_sandwich(2, 3, last(3, -1.0), -2, 5, out, NULL));
    REJECTS(SHAPE, posenc_sandwich(0, 3, ones, 0, 5, out, NULL));
    REJECTS(SHAPE, posenc_sandwich(3, 3, ones, 0, 5, out, NULL));
    REJECTS(SHAPE, posenc_sandwich(65538, 3, ones, 0, 5, out, NULL));
    REJECTS(SHAPE, posenc_sandwich(2, 0, ones, 0, 5, out, NULL));
    REJECTS(SHAPE, posenc_sandwich(2, 3, ones, FAR, 2, out, NULL));
    REJECTS(PARAMETER, posenc_sandwich(2, 3, last(3, (double)NAN), 0, 5, out, NULL));
}

static void check_tokens(void)
{
    const uint8_t mask[] = { 1, 1, 1, 1, 1, 1 }, masked[] = { 1, 1, 1, 1, 1, 0 };
    ACCEPTS(3, posenc_learned_fill_normal(7, END - 1, 1, 3, 1.0, out, NULL));
    ACCEPTS(0, posenc_learned_fill_normal(7, END, 0, 3, 1.0, out, NULL));
    ACCEPTS(65536, posenc_learned_fill_normal(7, 0, 1, 65536, 1.0, out, NULL));
    REJECTS(SHAPE, posenc_learned_fill_normal(7, -1, 1, 3, 1.0, out, NULL));
    REJECTS(SHAPE, posenc_learned_fill_normal(7, 0, -1, 3, 1.0, out, NULL));
    REJECTS(SHAPE, posenc_learned_fill_normal(7, END - 1, 2, 3, 1.0, out, NULL));
    REJECTS(SHAPE, posenc_learned_fill_normal(7, 0, 1, 0, 1.0, out, NULL));
    REJECTS(SHAPE, posenc_learned_fill_normal(7, 0, 1, 65537, 1.0, out, NULL));
    REJECTS(PARAMETER, posenc_learned_fill_normal(7, 0, 1, 3, 0.0, out, NULL));
    REJECTS(PARAMETER, posenc_learned_fill_normal(7, 0, 1, 3, (double)INFINITY, out, NULL));
    ACCEPTS(6, posenc_padding_positions(2, 3, mask, INT32_MAX - 3, out, NULL));
    ACCEPTS(0, posenc_padding_positions(0, 3, mask, 1, out, NULL));
    REJECTS(SHAPE, posenc_padding_positions(-1, 3, mask, 1, out, NULL));
    REJECTS(SHAPE, posenc_padding_positions(2, -3, mask, 1, out, NULL));
    REJECTS(POSITION, posenc_padding_positions(2, 3, masked, -1, out, NULL));
    REJECTS(POSITION, posenc_padding_positions(2, 3, mask, INT32_MAX - 2, out, NULL));
}

static void check_indices(void)
{
    ACCEPTS(65536, posenc_swin_index(1, 256, out, NULL));
    REJECTS(SHAPE, posenc_swin_index(0, 4, out, NULL));
    REJECTS(SHAPE, posenc_swin_index(257, 1, out, NULL));
    REJECTS(SHAPE, posenc_swin_index(1, 257, out, NULL));
    ACCEPTS(49, posenc_beit_index(2, 3, out, NULL));
    REJECTS(SHAPE, posenc_beit_index(4, 0, out, NULL));
    REJECTS(SHAPE, posenc_beit_index(257, 1, out, NULL));
    ACCEPTS(7, posenc_shaw_index(3, 5, -FAR + 4, 1, out, NULL));
    ACCEPTS(7, posenc_shaw_index(3, 5, FAR - 2, 1 << 20, out, NULL));
    REJECTS(SHAPE, posenc_shaw_index(3, 5, -FAR + 3, 1, out, NULL));
    REJECTS(SHAPE, posenc_shaw_index(3, 5, FAR - 1, 1, out, NULL));
    REJECTS(SHAPE, posenc_shaw_index(0, 5, 0, 1, out, NULL));
    REJECTS(SHAPE, posenc_shaw_index(3, 0, 0, 1, out, NULL));
    REJECTS(SHAPE, posenc_shaw_index(3, 5, 0, 0, out, NULL));
    REJECTS(SHAPE, posenc_shaw_index(3, 5, 0, (1 << 20) + 1, out, NULL));
    REJECTS(SHAPE, posenc_shaw_index(3, 5, INT64_MAX, 1, out, NULL));
    ACCEPTS(7, posenc_transformer_xl_index(3, 5, out, NULL));
    REJECTS(SHAPE, posenc_transformer_xl_index(0, 5, out, NULL));
    REJECTS(SHAPE, posenc_transformer_xl_index(3, FAR + 1, out, NULL));
    ACCEPTS(7, posenc_deberta_index(3, 5, 0, 4, 5, out, NULL));
    ACCEPTS(7, posenc_deberta_index(3, 5, 0, 0, 1, out, NULL));
    REJECTS(SHAPE, posenc_deberta_index(3, 5, 0, 2, 9, out, NULL));
    REJECTS(SHAPE, posenc_deberta_index(3, 5, 0, 7, 9, out, NULL));
    REJECTS(SHAPE, posenc_deberta_index(3, 5, 0, 4, 4, out, NULL));
    REJECTS(SHAPE, posenc_deberta_index(3, 5, 0, 4098, 9000, out, NULL));
    REJECTS(SHAPE, posenc_deberta_index(3, 5, FAR, 4, 5, out, NULL));
}

static bool names_are_right(void)
{
    bool right = posenc_kernel_find(NULL) == POSENC_KERNEL_NONE &&
                 posenc_kernel_find("rope_hal") == POSENC_KERNEL_NONE &&
                 !posenc_kernel_name(POSENC_KERNEL_COUNT) &&
                 !posenc_kernel_name(POSENC_KERNEL_NONE) &&
                 !posenc_kernel_summary(POSENC_KERNEL_COUNT) && !posenc_backend_find(NULL) &&
                 !posenc_backend_provides(NULL, POSENC_KERNEL_ALIBI) &&
                 !posenc_backend_provides(posenc_backend_at(0), POSENC_KERNEL_COUNT) &&
                 posenc_selection_of(POSENC_KERNEL_COUNT, POSENC_DTYPE_F32, 0).status ==
                     POSENC_ERR_ARGUMENT;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        right = right && posenc_kernel_find(posenc_kernel_name(kernel)) == kernel &&
                *posenc_kernel_summary(kernel);
    }
    for (int a = 0; a <= POSENC_ERR_MEMORY + 1; a++)
        for (int b = 0; b < a; b++)
            right = right && strcmp(posenc_status_string((enum posenc_status)a),
                                    posenc_status_string((enum posenc_status)b)) != 0;
    return right;
}

int main(void)
{
    struct guard *guard = guard_create();
    const enum guard_mode modes[] = { GUARD_END, GUARD_START };
    for (int m = 0; m < 2 && guard; m++) {
        memory = guard_memory(guard, modes[m]);
        check_alibi();
        check_t5();
        check_biases_by_distance();
        check_tokens();
        check_indices();
    }
    require(guard && failures == 0, "each argument of each builder at its limits");
    require(names_are_right(), "names of kernels, backends and statuses");
    guard_destroy(guard);
    return tap_end();
}
