/*
 * Tests that changes_find() reports each difference in outputs of two implementations, and nothing else: right kernels
 * against those of conformance/faults, and against kernels that differ in one respect alone.
 *
 *     test_changes [FOLDER OF VECTORS]
 */
#include "conformance/engine/changes.h"
#include "conformance/faults/faulty.h"
#include "conformance/problem/storage.h"
#include "conformance/readers/vectors.h"
#include "base/tap/tap.h"

#include <math.h>
#include <string.h>

static struct conf_options options;

/* Number and contents of the reports of a comparison. */
struct reports {
    size_t n, worse, better, faults;
    bool complete;   /* each change has values that differ, with place, error and metric */
    bool repeatable; /* one of them has a problem: a line of factors may be too long */
    struct output_change last;
    struct conf_result fault; /* the last result of head */
};

static void count_change(void *user, const struct output_change *c)
{
    struct reports *r = user;
    r->n++;
    r->worse += c->head.max > c->base_max;
    r->better += c->head.max < c->base_max;
    r->complete = r->complete && c->n_moved > 0 && c->n_moved <= c->n_values && c->first[0] &&
                  float_to_bits(c->first_base) != float_to_bits(c->first_head) &&
                  c->head.worst_at[0] && c->head.metric &&
                  float_to_bits(c->base_got) != float_to_bits(c->head.got);
    r->repeatable = r->repeatable || c->head.problem[0];
    r->last = *c;
}

static void count_fault(void *user, const struct conf_result *base,
                        const struct conf_result *head)
{
    struct reports *r = user;
    r->faults += base->status == CONF_PASS && head->status != CONF_PASS;
    r->fault = *head;
}

static struct reports compare(const struct posenc_backend *base,
                              const struct posenc_backend *head, enum posenc_kernel kernel,
                              struct change_counts *seen)
{
    struct reports reports = { .complete = true };
    const struct implementation base_implementation = implementation_of(base),
                                head_implementation = implementation_of(head);
    const struct changes_request request = { .options = &options,
                                             .base = &base_implementation,
                                             .head = &head_implementation,
                                             .on_change = count_change,
                                             .on_fault = count_fault,
                                             .user = &reports };
    *seen = changes_find(&request, kernel);
    return reports;
}

static void check_equal(const struct posenc_backend *backend)
{
    size_t n = 0;
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        struct change_counts seen;
        const struct reports r = compare(backend, backend, (enum posenc_kernel)k, &seen);
        n += r.n + r.faults + seen.moved;
        least = seen.values < least ? seen.values : least;
    }
    require(n == 0, "a build against itself: no change in any kernel");
    require(least > 0, "and values of each kernel are compared");
}

static void check_faulty(const struct posenc_backend *right)
{
    const struct posenc_backend *wrong = faulty_backend(fault_find("last-row-differs"), right);
    struct change_counts seen;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const struct reports there = compare(right, wrong, kernel, &seen);
        printf("# %s\n", posenc_kernel_name(kernel));
        require(there.n > 0 && there.complete && there.repeatable &&
                    there.last.head.kernel == kernel && there.worse > 0,
                "a wrong last bit is reported with kernel, place and bits, as worse");
    }
    const struct reports there = compare(right, wrong, POSENC_KERNEL_LEARNED_ADD, &seen),
                         back = compare(wrong, right, POSENC_KERNEL_LEARNED_ADD, &seen);
    require(back.n == there.n && back.better == there.worse && back.worse == there.better,
            "and a kernel that is mended is the same, as better");
    const struct output_change *c = &there.last;
    require(c->base_max <= 0.5 && c->head.max > 0.5 && c->head.max <= 1.5,
            "one rounding the other way: 0.5 ulp at most before, up to 1.5 after");
}

/* ---- Right kernels that differ in one respect ---- */

static const struct posenc_backend *original;
static enum { NAN_PAYLOAD, ZERO_SIGN, BF16_BIT } difference;

static float edit_value(enum posenc_dtype dtype, float value, int64_t column)
{
    if (difference == NAN_PAYLOAD && isnan(value) && float_to_bits(value) != CALL_CANARY)
        return bits_to_float(float_to_bits(value) ^
                             0x80010000u); /* sign and a bit that all types have */
    if (difference == ZERO_SIGN && value == 0.0f)
        return -value;
    if (difference == BF16_BIT && dtype == POSENC_DTYPE_BF16 && column == 0 && isfinite(value))
        return bits_to_float(float_to_bits(value) ^ 0x00010000u);
    return value;
}

static void edit(const struct posenc_tensor *out)
{
    for (int64_t r = 0; r < storage_rows(out); r++)
        for (int64_t c = 0; c < out->shape[out->rank - 1]; c++) {
            void *row = storage_row(out, r);
            storage_put(out->dtype, row, c,
                        edit_value(out->dtype, storage_get(out->dtype, row, c), c));
        }
}

static enum posenc_status edited_learned_add(const struct posenc_learned_args *args)
{
    const enum posenc_status status = original->learned_add(args);
    edit(&args->out);
    return status;
}

static enum posenc_status edited_alibi(const struct posenc_alibi_args *args)
{
    const enum posenc_status status = original->alibi(args);
    edit(&args->out);
    return status;
}

static enum posenc_status trapping_rope(const struct posenc_rope_args *args)
{
    (void)args;
    __builtin_trap();
}

static void check_respects(const struct posenc_backend *backend)
{
    struct posenc_backend other = *backend;
    struct change_counts seen;
    original = backend;
    other.learned_add = edited_learned_add;
    other.alibi = edited_alibi;
    other.rope_interleaved = trapping_rope;
    difference = NAN_PAYLOAD;
    require(compare(backend, &other, POSENC_KERNEL_LEARNED_ADD, &seen).n == 0,
            "another NaN is no change");
    difference = ZERO_SIGN;
    const struct reports zero = compare(backend, &other, POSENC_KERNEL_ALIBI, &seen);
    require(zero.n > 0 && zero.complete && zero.last.first_base == 0.0f && zero.worse == zero.n,
            "a zero of the other sign is one");
    difference = BF16_BIT;
    const struct reports bf16 = compare(backend, &other, POSENC_KERNEL_LEARNED_ADD, &seen);
    require(bf16.n > 0 && bf16.complete && strstr(bf16.last.head.id, "/bf16/") &&
                bf16.worse == bf16.n,
            "a bit of a 16-bit value is one");
    const struct reports trap = compare(backend, &other, POSENC_KERNEL_ROPE_INTERLEAVED, &seen);
    require(trap.n == 0 && trap.faults > 1 && trap.fault.status == CONF_CRASH,
            "a kernel that faults has another status, and the comparison goes on");
}

int main(int argc, char **argv)
{
    struct vectors vectors;
    char error[VECTORS_ERROR];
    const struct posenc_backend *backend = posenc_backend_find("scalar");
    if (argc > 1 && !vectors_load(argv[1], &vectors, error)) {
        fprintf(stderr, "test_changes: %s\n", error);
        return 2;
    }
    options.vectors = argc > 1 ? &vectors : NULL;
    check_equal(backend);
    check_faulty(backend);
    check_respects(backend);
    if (argc > 1)
        vectors_free(&vectors);
    return tap_end();
}
