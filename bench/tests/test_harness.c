/*
 * Tests the harness on small cases: numbers make sense, some limit binds each kernel, backends that cannot be timed get
 * a reason, and a kernel that is wrong by one part in 2^17 in one element of the output gets no number. Under an
 * emulator nothing is timed, and that is tested there.
 */
#include "bench/bench.h"
#include "base/machine/machine.h"
#include "bench/rooflines.h"
#include "base/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 8, DIM = 64 }; /* and TOKENS, by meson.build */

/* A factor between two times that a thousand times the work reaches, and noise never does. */
static const double FAR = 30.0;

/* ---- Backends of the test ---- */

static const struct posenc_backend *scalar(void) { return posenc_backend_find("scalar"); }

/* Right except for one element of one head of one token in the middle. */
static enum posenc_status rope_with_error(float part, const struct posenc_rope_args *args)
{
    const enum posenc_status status = scalar()->rope_half(args);
    const struct posenc_tensor *out = &args->out;
    float *row = (float *)out->data + out->shape[1] / 2 * out->stride[1] + out->stride[2];
    const int64_t half = args->cos.shape[1],
                  i = fabsf(row[5]) > fabsf(row[5 + half]) ? 5 : 5 + half;
    row[i] *= 1.0f + part;
    return status;
}

static enum posenc_status rope_wrong(const struct posenc_rope_args *args)
{
    return rope_with_error(0x1p-17f, args);
}

static enum posenc_status rope_last_bit(const struct posenc_rope_args *args)
{
    return rope_with_error(0x1p-23f, args);
}

/* Right, and a thousand times as slow. The repeats write to scratch memory, so that a call in place rotates once. */
static enum posenc_status rope_thousandfold(const struct posenc_rope_args *args)
{
    static _Thread_local float scratch[TOKENS * HEADS * DIM];
    struct posenc_rope_args more = *args;
    enum posenc_status status = POSENC_OK;
    more.out.data = scratch;
    for (int i = 1; i < 1000; i++)
        status |= scalar()->rope_half(&more);
    return status | scalar()->rope_half(args);
}

static enum posenc_status write_nothing(const struct posenc_sinusoidal_args *args)
{
    (void)args;
    return POSENC_OK;
}

/* The last element of the row before the last, which a check of some rows does not see. */
static float *late_element(const struct posenc_tensor *out)
{
    int64_t at = 0;
    int rows = out->rank - 2;
    while (rows > 0 && out->shape[rows] == 1)
        rows--;
    for (int k = 0; k < out->rank; k++)
        at += (out->shape[k] - 1 - (k == rows)) * out->stride[k];
    return (float *)out->data + at;
}

static enum posenc_status rope_late_error(const struct posenc_rope_args *args)
{
    const enum posenc_status status = scalar()->rope_half(args);
    *late_element(&args->out) += 0x1p-16f;
    return status;
}

static enum posenc_status sinusoidal_late_error(const struct posenc_sinusoidal_args *args)
{
    const enum posenc_status status = scalar()->sinusoidal(args);
    *late_element(&args->out) += 0x1p-17f;
    return status;
}

static enum posenc_status alibi_late_error(const struct posenc_alibi_args *args)
{
    const enum posenc_status status = scalar()->alibi(args);
    *late_element(&args->out) = nextafterf(*late_element(&args->out), 1e30f);
    return status;
}

/* Returns a backend of a family with one kernel, a rope_half that is slightly wrong. */
static struct posenc_backend make_backend(const char *family)
{
    return (struct posenc_backend){ .size = sizeof(struct posenc_backend),
                                    .abi = POSENC_ABI,
                                    .name = "other",
                                    .family = family,
                                    .description = "of the test",
                                    .required_features = "",
                                    .rope_half = rope_wrong };
}

/* ---- Runs ---- */

enum { SEEN = 12 };
struct stored_results {
    struct bench_result results[SEEN];
    char reason[SEEN][288];
    size_t n;
};

static void store_result(void *user, const struct bench_result *result)
{
    struct stored_results *seen = user;
    if (seen->n == SEEN)
        return;
    seen->results[seen->n] = *result;
    snprintf(seen->reason[seen->n++], sizeof seen->reason[0], "%s",
             result->reason ? result->reason : "");
}

static struct stored_results run_bench(const struct bench_case *cases, size_t n_cases,
                                       const struct posenc_backend *const *backends,
                                       size_t n_backends, const struct bench_options *options)
{
    struct stored_results seen = { .n = 0 };
    char error[256] = "";
    const int failed =
        bench_run(cases, n_cases, backends, n_backends, options, store_result, &seen, error);
    require(failed == 0 && seen.n == n_cases * n_backends, "each backend has a result");
    return seen;
}

static bool is_wrong(const struct stored_results *seen, size_t i)
{
    printf("# %s\n", seen->reason[i]);
    return seen->results[i].outcome == BENCH_WRONG && seen->results[i].median_ns == 0.0 &&
           strncmp(seen->reason[i], "wrong: ", 7) == 0;
}

static struct bench_case rope_case(int64_t tokens)
{
    struct bench_case c = { .id = "rope_half/f32/given/test", .level = "L2" };
    c.problem = problem_default(POSENC_KERNEL_ROPE_HALF);
    c.problem.tokens = c.problem.rows = tokens;
    c.problem.heads = HEADS;
    c.problem.in_place = true;
    return c;
}

static void test_numbers(int threads)
{
    struct posenc_backend wrong = make_backend("native"), slow = wrong;
    slow.rope_half = rope_thousandfold;
    enum { LIBM, WRONG, SCALAR, SLOW, BACKENDS };
    const struct posenc_backend *backends[BACKENDS] = { posenc_backend_find("libm"), &wrong,
                                                        scalar(), &slow };
    const struct bench_case c = rope_case(TOKENS);
    const struct bench_options options = { .threads = threads, .time_limit_s = 0.2, .seed = 1 };
    const struct stored_results seen = run_bench(&c, 1, backends, BACKENDS, &options);
    for (size_t i = LIBM; i <= SCALAR; i += SCALAR - LIBM) {
        const struct bench_result *r = &seen.results[i];
        printf("# %s, %d threads: %.0f ns, %.2f GB/s, %.3f of %s/%s, %.2f x libm\n",
               r->backend->name, r->threads, r->median_ns, r->gbps, r->roofline_ratio,
               r->roofline_kind, r->roofline_variant, r->vs_libm);
        require(!r->reason && r->bytes == 2 * TOKENS * HEADS * DIM * 4 && r->gbps > 0.001 &&
                    r->gbps < 4000.0,
                "a right backend is timed; bytes are those read and written");
        require(r->min_ns > 0.0 && r->min_ns <= r->median_ns && r->ci_low <= r->median_ns &&
                    r->median_ns <= r->ci_high && r->rounds >= 8 && r->ci_level >= 0.99,
                "the median lies within its interval of 99 % and above the minimum");
        require(r->roofline_kind && strcmp(r->roofline_kind, "in place") == 0 &&
                    r->roofline_ratio > 0.0 && r->roofline_ratio < FAR,
                "nothing is far above its roofline");
        require(r->vs_libm > 0.0 && r->vs_libm < FAR && r->control_pct >= 0.0 &&
                    r->control_pct < 100.0 * FAR,
                "equal work has no ratio that noise does not have");
    }
    const struct bench_result *slowest = &seen.results[SLOW];
    require(slowest->outcome == BENCH_TIMED && slowest->vs_libm > 0.0 &&
                slowest->vs_libm < 1.0 / FAR && slowest->roofline_ratio > 0.0 &&
                slowest->roofline_ratio < 1.0 / FAR,
            "one that does its work a thousand times is far below libm and its roofline");
    require(seen.results[LIBM].vs_libm == 1.0, "libm is as fast as libm");
    require(is_wrong(&seen, WRONG), "a slightly wrong kernel gets a reason and no number");
}

/* Kernels of either family that are wrong in one element near the end of a large output. */
static void test_late_errors(void)
{
    static const enum posenc_kernel kernels[] = { POSENC_KERNEL_ROPE_HALF,
                                                  POSENC_KERNEL_SINUSOIDAL,
                                                  POSENC_KERNEL_ALIBI };
    struct posenc_backend same_family = make_backend("native"), other_family;
    same_family.rope_half = rope_late_error;
    same_family.sinusoidal = sinusoidal_late_error;
    same_family.alibi = alibi_late_error;
    other_family = same_family;
    other_family.family = "another";
    const struct posenc_backend *backends[] = { &same_family, &other_family };
    const struct bench_options options = { .time_limit_s = 0.05, .seed = 5 };
    for (size_t k = 0; k < 3; k++) {
        struct bench_case c = { .level = "L2" };
        c.problem = problem_default(kernels[k]);
        c.problem.tokens = c.problem.tokens > 0 ? 500 : 0;
        c.problem.rows = 500;
        c.problem.queries = c.problem.queries > 0 ? 500 : 0;
        snprintf(c.id, sizeof c.id, "%s/late", posenc_kernel_name(kernels[k]));
        const struct stored_results seen = run_bench(&c, 1, backends, 2, &options);
        require(is_wrong(&seen, 0) && is_wrong(&seen, 1),
                "a kernel that is wrong in one late element is not timed");
    }
}

static void test_tolerance(void)
{
    struct bench_case c = rope_case(200);
    c.problem.in_place = false;
    struct posenc_backend same_family = make_backend("native"),
                          other_family = make_backend("another"),
                          wrong_other_family = other_family;
    same_family.rope_half = other_family.rope_half = rope_last_bit;
    const struct posenc_backend *backends[] = { &same_family, &other_family,
                                                &wrong_other_family };
    const struct bench_options options = { .time_limit_s = 0.05, .seed = 7 };
    const struct stored_results seen = run_bench(&c, 1, backends, 3, &options);
    require(strstr(seen.reason[0], "same bits"), "a family has the same bits");
    require(!seen.results[1].reason, "another family may differ in the last bit");
    require(is_wrong(&seen, 2), "another family may not differ by 2^-17");
}

/* One thread, and three: slices of a call give what the whole gives, as the check compares with the oracle of the
 * whole. */
static void test_every_kernel(void)
{
    const struct posenc_backend *backends[] = { scalar() };
    for (int k = 0; k < POSENC_KERNEL_COUNT * 4; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)(k / 4);
        const int form = k % 4; /* 3: on one thread */
        const struct bench_options options = { .threads = form == 3 ? 1 : 3,
                                               .time_limit_s = 0.01,
                                               .seed = 3 };
        const bool bias_alone = kernel_on_scores(kernel) && !kernel_takes_x(kernel);
        struct bench_case c = { .level = "L1" };
        c.problem = problem_default(kernel);
        c.problem.batch = form == 0 || bias_alone ? 1 : 2;
        c.problem.in_place = form == 1 && kernel_in_place(kernel);
        if (c.problem.tokens > 0)
            c.problem.tokens = form == 2 ? 2 : 7; /* fewer than threads: along heads */
        if (form == 2 && c.problem.queries > 0)
            c.problem.heads = 2; /* fewer than threads: along queries */
        snprintf(c.id, sizeof c.id, "%s/%d", posenc_kernel_name(kernel), form);
        const struct stored_results seen = run_bench(&c, 1, backends, 1, &options);
        const struct bench_result *r = &seen.results[0];
        require(!r->reason && r->limit_resource && r->limit_kind && r->limit_variant &&
                    r->limit_gbps > 0.0 && r->limit_ratio > 0.0 && r->limit_ratio < FAR &&
                    r->limit_ratio >= 0.99 * r->roofline_ratio,
                c.id);
    }
}

static bool stop_after_two(void *user) { return ((const struct stored_results *)user)->n >= 2; }

static void test_stop(void)
{
    struct bench_case cases[4];
    const struct posenc_backend *backend = scalar();
    const struct bench_options options = { .time_limit_s = 0.05, .stop = stop_after_two };
    struct stored_results seen = { .n = 0 };
    char error[256] = "";
    for (size_t i = 0; i < 4; i++)
        cases[i] = rope_case(8);
    require(bench_run(cases, 4, &backend, 1, &options, store_result, &seen, error) == 0 &&
                seen.n == 2,
            "a caller who wants no more gets no more");
}

static void test_rejections(void)
{
    struct bench_case c = { .id = "sinusoidal/f32/exact/test", .level = "L1" };
    c.problem = problem_default(POSENC_KERNEL_SINUSOIDAL);
    struct posenc_backend lacks = make_backend("native"), idle = lacks, foreign = lacks;
    idle.sinusoidal = write_nothing;
    foreign.required_features = "no_such_feature";
    const struct posenc_backend *backends[] = { &lacks, &idle, &foreign };
    const struct bench_options options = { .time_limit_s = 0.05 };
    struct stored_results seen = run_bench(&c, 1, backends, 3, &options);
    require(strcmp(seen.reason[0], "not provided") == 0,
            "a kernel that a backend lacks is reported");
    require(is_wrong(&seen, 1), "a kernel that writes nothing is wrong");
    require(seen.reason[2][0] != '\0', "a backend that this CPU cannot run is reported");
    c.problem.freqs.rope_theta = -1.0;
    const struct posenc_backend *able = scalar();
    seen = run_bench(&c, 1, &able, 1, &options);
    require(seen.results[0].outcome == BENCH_REJECTED,
            "an impossible problem is rejected, not timed");
}

/* Three cases of a kernel, each longer. One backend is wrong, one far slower, one lacks it. */
static void test_tuning(void)
{
    enum { CASES = 3, BACKENDS = 4 };
    struct posenc_backend wrong = make_backend("native"), slow = wrong, lacks = wrong;
    slow.rope_half = rope_thousandfold;
    lacks.rope_half = NULL;
    const struct posenc_backend *backends[BACKENDS] = { &wrong, &slow, &lacks, scalar() };
    struct bench_case cases[CASES];
    for (int i = 0; i < CASES; i++)
        cases[i] = rope_case(TOKENS / 4 << i);
    const struct bench_options options = { .tuning = true, .time_limit_s = 0.2, .seed = 1 };
    const struct stored_results seen = run_bench(cases, CASES, backends, BACKENDS, &options);
    require(is_wrong(&seen, 0) &&
                strcmp(seen.reason[2 * BACKENDS], "wrong in a smaller case") == 0,
            "a wrong backend is rejected, and is not tried in the third case");
    for (size_t i = 0; i < seen.n; i += BACKENDS) {
        const struct bench_result *r = &seen.results[i];
        bool timed = r[3].outcome == BENCH_TIMED && r[3].rounds >= 3 &&
                     r[3].rounds <= MOST_TUNING_ROUNDS;
        for (int k = 0; timed && k < r[3].rounds; k++)
            timed = r[3].sample_ns[k] >= r[3].min_ns;
        require(strstr(seen.reason[i + 1], "slower than the fastest") &&
                    r[2].outcome == BENCH_NOT_PROVIDED,
                "a slow backend and one without the kernel are rejected");
        require(timed && r[3].footprint > 0 && !r[3].roofline_kind,
                "the fastest has a time in each round, and no roofline beside it");
    }
}

/* ---- Shapes and rooflines ---- */

static void test_shapes(void)
{
    bool kernels[POSENC_KERNEL_COUNT] = { false }, dtypes[BENCH_DTYPES] = { false };
    const bool each[BENCH_DTYPES] = { true, true, true };
    struct bench_case *cases;
    size_t n = bench_footprint_cases(kernels, each, true, &cases), misplaced = 0, repeated = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = problem_working_set(&cases[i].problem);
        misplaced += strcmp(bench_level(bytes), cases[i].level) != 0;
        for (size_t j = 0; j < i; j++)
            repeated += strcmp(cases[i].id, cases[j].id) == 0;
    }
    free(cases);
    require(n >= 2 * BENCH_DTYPES * POSENC_KERNEL_COUNT && repeated == 0,
            "every kernel has shapes, each with an id of its own");
    require(misplaced == 0, "every shape lies in the cache it is named after");
    const size_t all = bench_tuning_cases(kernels, dtypes, &cases);
    free(cases);
    kernels[POSENC_KERNEL_ROPE_HALF] = dtypes[POSENC_DTYPE_BF16] = true;
    n = bench_tuning_cases(kernels, dtypes, &cases);
    bool grow = n >= 2 && strcmp(cases[0].id, "rope_half/bf16/given/l1") == 0;
    for (size_t i = 1; i < n; i++)
        grow =
            grow && cases[i].max_bytes > cases[i - 1].max_bytes &&
            problem_working_set(&cases[i].problem) > problem_working_set(&cases[i - 1].problem);
    require(grow && cases[n - 1].max_bytes == UINT64_MAX,
            "a tuning has a case in each level of memory, nearest first");
    require(all == n * BENCH_DTYPES * POSENC_KERNEL_COUNT,
            "a tuning has cases of all kernels and dtypes if none is named");
    free(cases);
}

/* Runs a roofline of n floats at some alignment: it writes what its kind says, and nothing else. */
static bool roofline_is_right(const struct roofline_variant *roofline, size_t at, size_t n)
{
    enum { ALL = 640 };
    /* EIGHT of bench/loops/bounds.c, and below ROOFLINE_CONSTANT of bench/loops/bounds.h. */
    static const double made[] = { 0.7, -0.71, 0.72, -0.73, 0.74, -0.75, 0.76, -0.77 };
    static float dst[ALL], src[ALL], add[ALL], want[ALL];
    const enum roofline_kind kind = roofline->kind;
    for (size_t i = 0; i < ALL; i++) {
        dst[i] = want[i] = 3.0f + (float)i;
        src[i] = 1.0f + (float)i;
        add[i] = 0.5f * (float)i;
    }
    const float *from = kind == BOUND_in_place ? dst + at : src + 1;
    for (size_t i = 0; i < n; i++)
        want[at + i] = kind == BOUND_store      ? 0x1.7e7e7ep-1f
                       : kind == BOUND_in_place ? -from[i]
                       : kind == BOUND_add      ? from[i] + add[i + 2]
                       : kind == BOUND_from_f64 ? from[i] + (float)made[i % 8]
                                                : from[i];
    roofline->function(dst + at, from, add + 2, n);
    return memcmp(dst, want, sizeof dst) == 0;
}

static void test_rooflines(void)
{
    char sentence[96];
    for (size_t k = 0; roofline_variant_at(k); k++) {
        const struct roofline_variant *roofline = roofline_variant_at(k);
        bool right = true;
        if (roofline->kind >= BOUND_table || (roofline->runs && !roofline->runs()))
            continue; /* test_bounds.c */
        for (size_t at = 0; at < 17; at++)
            for (size_t n = 0; n < 600; n += n < 70 ? 1 : 13)
                right = right && roofline_is_right(roofline, at, n);
        snprintf(sentence, sizeof sentence, "the roofline %s, %s writes what it should",
                 roofline_kind_name[roofline->kind], roofline->name);
        require(right, sentence);
    }
}

static void test_emulation(void)
{
    const struct bench_case c = rope_case(8);
    const struct posenc_backend *backend = scalar();
    const struct bench_options options = { .time_limit_s = 0.05 };
    struct stored_results seen = { .n = 0 };
    char error[256] = "";
    require(bench_run(&c, 1, &backend, 1, &options, store_result, &seen, error) == -1 &&
                seen.n == 0 && strstr(error, machine_emulator()),
            "under an emulator nothing is timed, and it is named");
}

int main(void)
{
    test_shapes();
    test_rooflines();
    if (machine_emulator()) {
        test_emulation();
        return tap_end();
    }
    test_tuning();
    test_numbers(1);
    test_numbers(2);
    test_tolerance();
    test_late_errors();
    test_every_kernel();
    test_rejections();
    test_stop();
    return tap_end();
}
