/*
 * Tests that changes_find() reports each difference in the outputs of two implementations, and nothing else. The scalar
 * backend is compared with itself, with a faulty backend of conformance/faults, and with one that differs in one bit of
 * one kernel. FOLDER has golden vectors, which are compared, too:
 *
 *     test_changes [FOLDER]
 */
#include "conformance/engine/changes.h"
#include "conformance/faults/faulty.h"
#include "conformance/problem/storage.h"
#include "conformance/readers/vectors.h"
#include "base/tap/tap.h"

#include <math.h>
#include <string.h>

/* Reports of one comparison. */
struct comparison {
    struct change_counts counts;
    size_t n_changes, n_worse, n_better; /* the worst error of head, against that of base */
    bool are_complete; /* each change has values that differ, with place, error and metric */
    bool has_problem;  /* a change has a problem; a line of factors may be too long */
    struct output_change last_change;
    size_t n_faults;              /* problems that base passes and head does not */
    struct conf_result last_head; /* result of head for the last fault */
};

static struct conf_options options;

static bool is_complete(const struct output_change *c)
{
    return c->n_moved > 0 && c->n_moved <= c->n_values && c->first[0] != '\0' &&
           float_to_bits(c->first_base) != float_to_bits(c->first_head) &&
           c->head.worst_at[0] != '\0' && c->head.metric &&
           float_to_bits(c->base_got) != float_to_bits(c->head.got);
}

static void add_change(void *user, const struct output_change *c)
{
    struct comparison *comparison = user;
    comparison->n_changes++;
    comparison->n_worse += c->head.max > c->base_max;
    comparison->n_better += c->head.max < c->base_max;
    comparison->are_complete &= is_complete(c);
    comparison->has_problem |= c->head.problem[0] != '\0';
    comparison->last_change = *c;
}

static void add_fault(void *user, const struct conf_result *base,
                      const struct conf_result *head)
{
    struct comparison *comparison = user;
    comparison->n_faults += base->status == CONF_PASS && head->status != CONF_PASS;
    comparison->last_head = *head;
}

static struct comparison compare(const struct posenc_backend *base,
                                 const struct posenc_backend *head, enum posenc_kernel kernel)
{
    struct comparison comparison = { .are_complete = true };
    const struct implementation base_implementation = implementation_of(base),
                                head_implementation = implementation_of(head);
    const struct changes_request request = { .options = &options,
                                             .base = &base_implementation,
                                             .head = &head_implementation,
                                             .on_change = add_change,
                                             .on_fault = add_fault,
                                             .user = &comparison };
    comparison.counts = changes_find(&request, kernel);
    return comparison;
}

static void check_same_backend(const struct posenc_backend *backend)
{
    size_t n_reports = 0;
    uint64_t least_values = UINT64_MAX;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const struct comparison same = compare(backend, backend, (enum posenc_kernel)k);
        n_reports += same.n_changes + same.n_faults + same.counts.moved;
        least_values = same.counts.values < least_values ? same.counts.values : least_values;
    }
    require(n_reports == 0, "a build against itself: no change in any kernel");
    require(least_values > 0, "and values of each kernel are compared");
}

static void check_faulty_backend(const struct posenc_backend *right)
{
    const struct posenc_backend *wrong = faulty_backend(fault_find("last-row-differs"), right);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const struct comparison broken = compare(right, wrong, kernel);
        printf("# %s\n", posenc_kernel_name(kernel));
        require(broken.n_changes > 0 && broken.are_complete && broken.has_problem &&
                    broken.last_change.head.kernel == kernel && broken.n_worse > 0,
                "a wrong last bit is reported with kernel, place and bits, as worse");
    }
    const struct comparison broken = compare(right, wrong, POSENC_KERNEL_LEARNED_ADD),
                            mended = compare(wrong, right, POSENC_KERNEL_LEARNED_ADD);
    require(mended.n_changes == broken.n_changes && mended.n_better == broken.n_worse &&
                mended.n_worse == broken.n_better,
            "and a kernel that is mended is the same, as better");
    const double base_max = broken.last_change.base_max, max = broken.last_change.head.max;
    require(base_max <= 0.5 && max > 0.5 && max <= 1.5,
            "one rounding the other way: 0.5 ulp at most before, up to 1.5 after");
}

/* ---- Kernels that differ from right ones in one respect ---- */

static const struct posenc_backend *original;
static enum { NAN_PAYLOAD, ZERO_SIGN, BF16_BIT } difference;

static float edit_value(enum posenc_dtype dtype, float value, int64_t column)
{
    static const uint32_t sign_and_payload = 0x80010000u; /* bits that all types have */
    static const uint32_t last_bit_of_bf16 = 0x00010000u;
    if (difference == NAN_PAYLOAD && isnan(value) && float_to_bits(value) != CALL_CANARY)
        return bits_to_float(float_to_bits(value) ^ sign_and_payload);
    if (difference == ZERO_SIGN && value == 0.0f)
        return -value;
    if (difference == BF16_BIT && dtype == POSENC_DTYPE_BF16 && column == 0 && isfinite(value))
        return bits_to_float(float_to_bits(value) ^ last_bit_of_bf16);
    return value;
}

static void edit_output(const struct posenc_tensor *out)
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
    edit_output(&args->out);
    return status;
}

static enum posenc_status edited_alibi(const struct posenc_alibi_args *args)
{
    const enum posenc_status status = original->alibi(args);
    edit_output(&args->out);
    return status;
}

static enum posenc_status trapping_rope(const struct posenc_rope_args *args)
{
    (void)args;
    __builtin_trap();
}

static void check_single_differences(const struct posenc_backend *backend)
{
    struct posenc_backend other = *backend;
    original = backend;
    other.learned_add = edited_learned_add;
    other.alibi = edited_alibi;
    other.rope_interleaved = trapping_rope;
    difference = NAN_PAYLOAD;
    require(compare(backend, &other, POSENC_KERNEL_LEARNED_ADD).n_changes == 0,
            "another NaN is no change");
    difference = ZERO_SIGN;
    const struct comparison zero = compare(backend, &other, POSENC_KERNEL_ALIBI);
    require(zero.n_changes > 0 && zero.are_complete && zero.last_change.first_base == 0.0f &&
                zero.n_worse == zero.n_changes,
            "a zero of the other sign is one");
    difference = BF16_BIT;
    const struct comparison bf16 = compare(backend, &other, POSENC_KERNEL_LEARNED_ADD);
    require(bf16.n_changes > 0 && bf16.are_complete && bf16.n_worse == bf16.n_changes &&
                strstr(bf16.last_change.head.id, "/bf16/"),
            "a bit of a 16-bit value is one");
    const struct comparison trap = compare(backend, &other, POSENC_KERNEL_ROPE_INTERLEAVED);
    require(trap.n_changes == 0 && trap.n_faults > 1 && trap.last_head.status == CONF_CRASH,
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
    check_same_backend(backend);
    check_faulty_backend(backend);
    check_single_differences(backend);
    if (argc > 1)
        vectors_free(&vectors);
    return tap_end();
}
