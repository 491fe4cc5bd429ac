/*
 * Reports what differs between two builds, and nothing else: right kernels against those of
 * conformance/faults, and against some that differ in one respect alone.
 *
 *     test_accuracy [PACK OF VECTORS]
 */
#include "cli/accuracy.h"
#include "conformance/faults/faulty.h"
#include "conformance/problem/storage.h"
#include "conformance/readers/vectors.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <string.h>

static struct conf_options options = { .no_accuracy = true };

/* What was told of a comparison. */
struct told {
    size_t n, of_kind[CHANGE_BITS + 1], way[CHANGE_DIRECTIONS];
    size_t properties; /* changes of a property's result */
    enum posenc_kernel kernel;
    bool bits_told; /* each change of bits has values that differ, with a place */
    bool repeated;  /* and one of them a problem: a line of factors may be too long */
    struct change last;
};

static void on_change(void *user, const struct change *c)
{
    struct told *t = user;
    t->n++;
    t->of_kind[c->what]++;
    t->way[c->way]++;
    t->properties += strstr(c->head.id, "/properties/") != NULL;
    t->kernel = c->head.kernel;
    if (c->what == CHANGE_BITS)
        t->bits_told = t->bits_told && c->moved > 0 && c->moved <= c->of && c->first[0] &&
                       float_to_bits(c->first_base) != float_to_bits(c->first_head) &&
                       c->judged > 0 && c->head.worst_at[0] && c->head.metric &&
                       float_to_bits(c->base.got) != float_to_bits(c->head.got);
    t->repeated = t->repeated || c->head.problem[0];
    t->last = *c;
}

static struct told compare_bits(const struct implementation *base,
                                const struct implementation *head, enum posenc_kernel kernel)
{
    struct told told = { .bits_told = true };
    const struct changes_ask ask = { .options = &options, .base = base, .head = head };
    changes_find(&ask, kernel, on_change, &told);
    return told;
}

static struct told compare_all(const struct implementation *base,
                               const struct implementation *head, enum posenc_kernel kernel)
{
    struct told told = { .bits_told = true };
    const struct changes_ask ask = { .options = &options, .base = base, .head = head };
    accuracy_compare(&ask, kernel, on_change, &told);
    return told;
}

/* ---- Faulty kernels ---- */

static const struct posenc_backend *original;

static void check_faulty(const struct posenc_backend *backend)
{
    const struct implementation right = implementation_of(backend),
                                wrong = implementation_of(
                                    faulty_backend(fault_find("last-row-differs"), backend));
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        char sentence[128];
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        const struct told there = compare_bits(&right, &wrong, kernel);
        snprintf(sentence, sizeof sentence,
                 "a wrong last bit of %s is reported with kernel, place and bits, as worse",
                 posenc_kernel_name(kernel));
        require(there.of_kind[CHANGE_BITS] > 0 && there.bits_told && there.repeated &&
                    there.kernel == kernel && there.way[CHANGE_WORSE] > 0,
                sentence);
        if (kernel_has_freqs(kernel)) /* whose truth takes long */
            continue;
        const struct told back = compare_bits(&wrong, &right, kernel);
        snprintf(sentence, sizeof sentence, "and %s mended is the same, as better",
                 posenc_kernel_name(kernel));
        require(back.n == there.n && back.way[CHANGE_BETTER] == there.way[CHANGE_WORSE] &&
                    back.way[CHANGE_WORSE] == there.way[CHANGE_BETTER],
                sentence);
    }
    const struct change c = compare_bits(&right, &wrong, POSENC_KERNEL_learned_add).last;
    require(c.base.max <= 0.5 && c.head.max > 0.5 && c.head.max <= 1.5 && c.farther == c.judged,
            "one rounding the other way: 0.5 ulp at most before, up to 1.5 after");
}

static void check_equal(const struct posenc_backend *backend)
{
    const struct implementation right = implementation_of(backend);
    size_t n = 0;
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        struct told told = { .n = 0 };
        const struct changes_ask ask = { .options = &options, .base = &right, .head = &right };
        const struct changes_seen seen =
            changes_find(&ask, (enum posenc_kernel)k, on_change, &told);
        n += told.n + seen.moved + seen.faulted;
        least = seen.values < least ? seen.values : least;
    }
    require(n == 0, "a build against itself: no change in any kernel");
    require(least > 0, "and values of each kernel are compared");
    require(compare_all(&right, &right, POSENC_KERNEL_alibi).n == 0,
            "nor by the suites of a kernel");
}

static enum posenc_status trapping_rope(const struct posenc_rope_args *args)
{
    (void)args;
    __builtin_trap();
}

static enum posenc_status least_epsilon(const struct posenc_rope_qk_norm_args *args)
{
    struct posenc_rope_qk_norm_args changed = *args;
    changed.epsilon = fmaxf(args->epsilon, 1e-6f);
    return original->rope_qk_norm(&changed);
}

static void check_crash(const struct posenc_backend *backend)
{
    struct posenc_backend other = *backend;
    other.rope_interleaved = trapping_rope;
    other.rope_qk_norm = least_epsilon;
    original = backend;
    const struct implementation right = implementation_of(backend),
                                wrong = implementation_of(&other);
    const struct told told = compare_all(&right, &wrong, POSENC_KERNEL_rope_interleaved);
    require(told.of_kind[CHANGE_STATUS] > 0 && told.way[CHANGE_WORSE] == told.n &&
                told.last.base.status == CONF_PASS,
            "a kernel that faults has changed its status, and the comparison goes on");
    const struct told back = compare_all(&wrong, &right, POSENC_KERNEL_rope_interleaved);
    require(back.n == told.n && back.way[CHANGE_BETTER] == back.n,
            "and one that no longer does, the other way");
    const struct told property = compare_all(&right, &wrong, POSENC_KERNEL_rope_qk_norm);
    require(property.properties > 0 && property.of_kind[CHANGE_STATUS] == property.n,
            "a fault that no problem shows is reported by the property that it breaks");
}

/* ---- A right kernel that differs in one respect ---- */

static enum { NAN_PAYLOAD, ZERO_SIGN, BF16_BIT } respect;

static float edited(enum posenc_dtype dtype, float value, int64_t column)
{
    if (respect == NAN_PAYLOAD && isnan(value) && float_to_bits(value) != CALL_CANARY)
        return bits_to_float(float_to_bits(value) ^
                             0x80010000u); /* sign and a bit that all types have */
    if (respect == ZERO_SIGN && value == 0.0f)
        return -value;
    if (respect == BF16_BIT && dtype == POSENC_BF16 && column == 0 && isfinite(value))
        return bits_to_float(float_to_bits(value) ^ 0x00010000u);
    return value;
}

static void edit(const struct posenc_tensor *out)
{
    for (int64_t r = 0; r < storage_rows(out); r++)
        for (int64_t c = 0; c < out->shape[out->rank - 1]; c++) {
            void *row = storage_row(out, r);
            storage_put(out->dtype, row, c,
                        edited(out->dtype, storage_get(out->dtype, row, c), c));
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

static void check_respects(const struct posenc_backend *backend)
{
    struct posenc_backend other = *backend;
    other.learned_add = edited_learned_add;
    other.alibi = edited_alibi;
    original = backend;
    const struct implementation base = implementation_of(backend),
                                head = implementation_of(&other);
    respect = NAN_PAYLOAD;
    require(compare_bits(&base, &head, POSENC_KERNEL_learned_add).n == 0,
            "another NaN is no change");
    respect = ZERO_SIGN;
    const struct told zero = compare_bits(&base, &head, POSENC_KERNEL_alibi);
    require(zero.n > 0 && zero.bits_told && zero.last.first_base == 0.0f &&
                zero.way[CHANGE_WORSE] == zero.n,
            "a zero of the other sign is one");
    respect = BF16_BIT;
    const struct told bf16 = compare_bits(&base, &head, POSENC_KERNEL_learned_add);
    require(bf16.n > 0 && bf16.bits_told && strstr(bf16.last.head.id, "/bf16/") &&
                bf16.way[CHANGE_WORSE] == bf16.n,
            "a bit of a 16-bit value is one");
}

static void check_missing(const struct posenc_backend *backend)
{
    struct posenc_backend without = *backend, narrow = *backend;
    without.alibi = NULL;
    narrow.f16_bf16 = false;
    const struct implementation has = implementation_of(backend),
                                lacks = implementation_of(&without),
                                f32_alone = implementation_of(&narrow);
    const struct told lost = compare_all(&has, &lacks, POSENC_KERNEL_alibi),
                      won = compare_all(&lacks, &has, POSENC_KERNEL_alibi),
                      types = compare_all(&has, &f32_alone, POSENC_KERNEL_alibi);
    require(lost.n == 1 && lost.way[CHANGE_WORSE] == 1 &&
                lost.last.head.status == CONF_UNSUPPORTED,
            "a kernel that is gone is one change, for the worse");
    require(won.n == 1 && won.way[CHANGE_BETTER] == 1, "one that is new is one for the better");
    require(types.n == 2 && types.way[CHANGE_WORSE] == 2, "types that are gone are told");
    struct told told = { .bits_told = true };
    const struct implementation wrong =
        implementation_of(faulty_backend(fault_find("encodes-nothing"), backend));
    told = compare_all(&lacks, &wrong, POSENC_KERNEL_alibi);
    require(told.way[CHANGE_WORSE] > 1 && told.last.base.status == CONF_UNSUPPORTED,
            "cases that a new kernel fails are told");
}

static void check_cases(void)
{
    struct conf_result base = { .status = CONF_PASS, .metric = "ulp", .max = 0.5 }, head = base;
    struct change c;
    require(!change_of_case(&c, &base, &head), "the same result is no change");
    head.max = 0.71;
    require(change_of_case(&c, &base, &head) && c.what == CHANGE_ERROR &&
                c.way == CHANGE_WORSE && change_of_case(&c, &head, &base) &&
                c.way == CHANGE_BETTER,
            "a larger error is worse, a smaller one better");
    head.status = CONF_FAIL;
    require(change_of_case(&c, &base, &head) && c.what == CHANGE_STATUS &&
                c.way == CHANGE_WORSE && change_of_case(&c, &head, &base) &&
                c.way == CHANGE_BETTER,
            "a case that fails is worse, one that passes again better");
    head.status = CONF_SKIPPED;
    require(change_of_case(&c, &base, &head) && c.way == CHANGE_WORSE,
            "one that is no longer checked is worse");
}

int main(int argc, char **argv)
{
    struct vectors vectors;
    char error[VECTORS_ERROR];
    const struct posenc_backend *backend = posenc_backend_find("scalar");
    if (argc > 1 && !vectors_load_pack(argv[1], &vectors, error)) {
        fprintf(stderr, "test_accuracy: %s\n", error);
        return 2;
    }
    options.vectors = argc > 1 ? &vectors : NULL;
    check_cases();
    check_equal(backend);
    check_faulty(backend);
    check_crash(backend);
    check_respects(backend);
    check_missing(backend);
    if (argc > 1)
        vectors_free(&vectors);
    return tap_end();
}
