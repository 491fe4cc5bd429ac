/*
 * Tests the functions that build slopes, thresholds, indices and biases: each argument at its ends, and one beyond.
 *
 * An output has memory of exactly its size, between pages that fault. A rejected call leaves it as it was, and an
 * accepted one writes every element. conformance/golden/check_builders.py certifies the values.
 */
#include "conformance/problem/guard.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum builder {
    ALIBI,
    T5,
    KERPLE_LOG,
    KERPLE_POWER,
    SANDWICH,
    NORMAL,
    PADDING,
    SWIN,
    BEIT,
    SHAW,
    TRANSFORMER_XL,
    DEBERTA
};
static const char *const builder_name[] = {
    "alibi_slopes", "t5_buckets_compute", "kerple_log",
    "kerple_power", "sandwich",           "normal",
    "padding",      "swin_index",         "beit_index",
    "shaw_index",   "xl_index",           "deberta_index",
};

/* A call and its status. */
struct row {
    enum builder builder;
    enum posenc_status status; /* that is expected */
    int64_t n[5];              /* integer arguments in the order of the prototype */
    double value;              /* last element of an input array, or a real argument */
    int64_t count;             /* elements of the output; a rejected call gets a few */
};

enum { FEW = 16 };
#define OK        POSENC_OK
#define SHAPE     POSENC_ERR_SHAPE
#define PARAMETER POSENC_ERR_PARAMETER
#define FAR       ((INT64_C(1) << 24) - 1)
#define END       (INT64_C(1) << 31)

static const struct row rows[] = {
    { ALIBI, OK, { 1 }, 64.0, 1 },
    { ALIBI, OK, { 65536 }, 8.0, 65536 },
    { ALIBI, SHAPE, { 0 }, 8.0, 0 },
    { ALIBI, SHAPE, { 65537 }, 8.0, 0 },
    { ALIBI, PARAMETER, { 8 }, 0.0, 0 },
    { ALIBI, PARAMETER, { 8 }, 64.1, 0 },
    { ALIBI, PARAMETER, { 8 }, (double)NAN, 0 },
    { T5, OK, { 2, 2, 0 }, 0, 2 },
    { T5, OK, { 4096, FAR, 1 }, 0, 2048 },
    { T5, SHAPE, { 1, 128, 0 }, 0, 0 },
    { T5, SHAPE, { 2, 128, 1 }, 0, 0 },
    { T5, SHAPE, { 7, 128, 1 }, 0, 0 },
    { T5, SHAPE, { 4097, 9000, 0 }, 0, 0 },
    { T5, PARAMETER, { 32, 16, 0 }, 0, 0 },
    { T5, PARAMETER, { 32, 8, 1 }, 0, 0 },
    { T5, PARAMETER, { 32, FAR + 1, 0 }, 0, 0 },
    { KERPLE_LOG, OK, { 3, -FAR, 5 }, 1e9, 15 },
    { KERPLE_LOG, OK, { 1, FAR, 1 }, (double)FLT_MAX, 1 },
    { KERPLE_LOG, OK, { 2, 0, 5 }, 1e9, 10 },
    { KERPLE_LOG, SHAPE, { 0, 0, 5 }, 1.0, 0 },
    { KERPLE_LOG, SHAPE, { 65537, 0, 1 }, 1.0, 0 },
    { KERPLE_LOG, SHAPE, { 3, -FAR - 1, 5 }, 1.0, 0 },
    { KERPLE_LOG, SHAPE, { 3, FAR, 2 }, 1.0, 0 },
    { KERPLE_LOG, SHAPE, { 3, 0, 0 }, 1.0, 0 },
    { KERPLE_LOG, SHAPE, { 3, INT64_MAX, INT64_MAX }, 1.0, 0 },
    { KERPLE_LOG, PARAMETER, { 3, 0, 5 }, 0.0, 0 },
    { KERPLE_LOG, PARAMETER, { 3, 0, 5 }, (double)INFINITY, 0 },
    { KERPLE_POWER, OK, { 3, 0, 5 }, 2.0, 15 },
    { KERPLE_POWER, SHAPE, { 3, 0, 0 }, 1.0, 0 },
    { KERPLE_POWER, PARAMETER, { 3, 0, 5 }, 2.001, 0 },
    { KERPLE_POWER, PARAMETER, { 3, 0, 5 }, (double)NAN, 0 },
    { SANDWICH, OK, { 2, 3, -2, 5 }, -1.0, 15 },
    { SANDWICH, SHAPE, { 0, 3, 0, 5 }, 1.0, 0 },
    { SANDWICH, SHAPE, { 3, 3, 0, 5 }, 1.0, 0 },
    { SANDWICH, SHAPE, { 65538, 3, 0, 5 }, 1.0, 0 },
    { SANDWICH, SHAPE, { 2, 0, 0, 5 }, 1.0, 0 },
    { SANDWICH, SHAPE, { 2, 3, FAR, 2 }, 1.0, 0 },
    { SANDWICH, PARAMETER, { 2, 3, 0, 5 }, (double)NAN, 0 },
    { NORMAL, OK, { 7, END - 1, 1, 3 }, 1.0, 3 },
    { NORMAL, OK, { 7, END, 0, 3 }, 1.0, 0 },
    { NORMAL, OK, { 7, 0, 1, 65536 }, 1.0, 65536 },
    { NORMAL, SHAPE, { 7, -1, 1, 3 }, 1.0, 0 },
    { NORMAL, SHAPE, { 7, 0, -1, 3 }, 1.0, 0 },
    { NORMAL, SHAPE, { 7, END - 1, 2, 3 }, 1.0, 0 },
    { NORMAL, SHAPE, { 7, 0, 1, 0 }, 1.0, 0 },
    { NORMAL, SHAPE, { 7, 0, 1, 65537 }, 1.0, 0 },
    { NORMAL, PARAMETER, { 7, 0, 1, 3 }, 0.0, 0 },
    { NORMAL, PARAMETER, { 7, 0, 1, 3 }, (double)INFINITY, 0 },
    { PADDING, OK, { 2, 3, INT32_MAX - 3 }, 1, 6 },
    { PADDING, OK, { 0, 3, 1 }, 1, 0 },
    { PADDING, SHAPE, { -1, 3, 1 }, 1, 0 },
    { PADDING, SHAPE, { 2, -3, 1 }, 1, 0 },
    { PADDING, POSENC_ERR_POSITION, { 2, 3, -1 }, 0, 0 },
    { PADDING, POSENC_ERR_POSITION, { 2, 3, INT32_MAX - 2 }, 1, 0 },
    { SWIN, OK, { 1, 256 }, 0, 65536 },
    { SWIN, SHAPE, { 0, 4 }, 0, 0 },
    { SWIN, SHAPE, { 257, 1 }, 0, 0 },
    { SWIN, SHAPE, { 1, 257 }, 0, 0 },
    { BEIT, OK, { 2, 3 }, 0, 49 },
    { BEIT, SHAPE, { 4, 0 }, 0, 0 },
    { BEIT, SHAPE, { 257, 1 }, 0, 0 },
    { SHAW, OK, { 3, 5, -FAR + 4, 1 }, 0, 7 },
    { SHAW, OK, { 3, 5, FAR - 2, 1 << 20 }, 0, 7 },
    { SHAW, SHAPE, { 3, 5, -FAR + 3, 1 }, 0, 0 },
    { SHAW, SHAPE, { 3, 5, FAR - 1, 1 }, 0, 0 },
    { SHAW, SHAPE, { 0, 5, 0, 1 }, 0, 0 },
    { SHAW, SHAPE, { 3, 0, 0, 1 }, 0, 0 },
    { SHAW, SHAPE, { 3, 5, 0, 0 }, 0, 0 },
    { SHAW, SHAPE, { 3, 5, 0, (1 << 20) + 1 }, 0, 0 },
    { SHAW, SHAPE, { 3, 5, INT64_MAX, 1 }, 0, 0 },
    { TRANSFORMER_XL, OK, { 3, 5 }, 0, 7 },
    { TRANSFORMER_XL, SHAPE, { 0, 5 }, 0, 0 },
    { TRANSFORMER_XL, SHAPE, { 3, FAR + 1 }, 0, 0 },
    { DEBERTA, OK, { 3, 5, 0, 4, 5 }, 0, 7 },
    { DEBERTA, OK, { 3, 5, 0, 0, 1 }, 0, 7 },
    { DEBERTA, SHAPE, { 3, 5, 0, 2, 9 }, 0, 0 },
    { DEBERTA, SHAPE, { 3, 5, 0, 7, 9 }, 0, 0 },
    { DEBERTA, SHAPE, { 3, 5, 0, 4, 4 }, 0, 0 },
    { DEBERTA, SHAPE, { 3, 5, 0, 4098, 9000 }, 0, 0 },
    { DEBERTA, SHAPE, { 3, 5, FAR, 4, 5 }, 0, 0 },
};

/* ---- Calls ---- */

static int failures;

static void require(bool holds, const char *what, size_t row)
{
    failures += !holds;
    if (!holds)
        printf("# %s, row %zu: %s\n", builder_name[rows[row].builder], row, what);
}

/* Calls the builder with input arrays of ones, except for their last element. */
static enum posenc_status build(const struct row *r, void *out)
{
    const int64_t *n = r->n;
    float ones[] = { 1.0f, 1.0f, 1.0f }, values[] = { 1.0f, 1.0f, (float)r->value };
    const int64_t heads = r->builder == SANDWICH ? n[1] : n[0];
    /* The last of up to three heads has the last value. */
    const float *by_head = values + (heads > 0 && heads < 3 ? 3 - heads : 0);
    struct posenc_t5_buckets buckets;
    const uint8_t mask[] = { 1, 1, 1, 1, 1, (uint8_t)r->value };
    switch (r->builder) {
    case ALIBI:
        return posenc_alibi_slopes(n[0], r->value, out, NULL);
    case T5:
        return posenc_t5_buckets_compute(n[0], n[1], n[2] != 0, out, &buckets, NULL);
    case KERPLE_LOG:
        return posenc_kerple_log(n[0], ones, by_head, n[1], n[2], out, NULL);
    case KERPLE_POWER:
        return posenc_kerple_power(n[0], by_head, ones, n[1], n[2], out, NULL);
    case SANDWICH:
        return posenc_sandwich(n[0], n[1], by_head, n[2], n[3], out, NULL);
    case NORMAL:
        return posenc_learned_fill_normal((uint64_t)n[0], n[1], n[2], n[3], r->value, out,
                                          NULL);
    case PADDING:
        return posenc_padding_positions(n[0], n[1], mask, n[2], out, NULL);
    case SWIN:
        return posenc_swin_index(n[0], n[1], out, NULL);
    case BEIT:
        return posenc_beit_index(n[0], n[1], out, NULL);
    case SHAW:
        return posenc_shaw_index(n[0], n[1], n[2], n[3], out, NULL);
    case TRANSFORMER_XL:
        return posenc_transformer_xl_index(n[0], n[1], out, NULL);
    case DEBERTA:
        return posenc_deberta_index(n[0], n[1], n[2], n[3], n[4], out, NULL);
    }
    return POSENC_ERR_ARGUMENT;
}

static void check_row(size_t i, const struct tensor_allocator *memory)
{
    const uint32_t fresh = 0x55555555u;
    const struct row *r = &rows[i];
    const size_t count = r->status ? FEW : (size_t)r->count, bytes = count * sizeof fresh;
    char *out = memory->get(memory->user, bytes, 0, 'b'); /* flush; 'b': a role of no tensor */
    if (!out) {
        require(false, "out of memory", i);
        return;
    }
    memset(out, 0x55, bytes);
    require(build(r, out) == r->status, "another status", i);
    bool right = true;
    for (size_t k = 0; k < count; k++)
        right = right && (memcmp(out + k * sizeof fresh, &fresh, sizeof fresh) == 0) ==
                             (r->status != POSENC_OK);
    require(right, r->status ? "rejected, and yet written" : "an element was not written", i);
    memory->free(memory->user, out);
    if (count > 0)
        require(build(r, NULL) != POSENC_OK, "NULL was accepted", i);
}

/* ---- Names ---- */

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
        const struct tensor_allocator memory = guard_memory(guard, modes[m]);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            check_row(i, &memory);
    }
    const bool names = names_are_right();
    printf("%s 1 - each argument of each builder at its limits\n",
           failures || !guard ? "not ok" : "ok");
    printf("%s 2 - names of kernels, backends and statuses\n1..2\n", names ? "ok" : "not ok");
    guard_destroy(guard);
    return failures || !names || !guard ? 1 : 0;
}
