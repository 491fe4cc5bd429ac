/*
 * The harness on a small case: numbers make sense, backends that cannot be timed get a reason,
 * and a kernel that is wrong by one part in 2^17 in a single place of the whole output gets no
 * number.  Under an emulator nothing is timed, and that is what is tested there.
 */
#include "bench.h"
#include "emulation.h"
#include "roofs.h"
#include "impl/loops/conversions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void require(bool holds, const char *sentence)
{
    printf("%s - %s\n", holds ? "ok" : "not ok", sentence);
    failures += !holds;
}

/* Right but for one element of one head of one token in the middle. */
static enum posenc_status off_by(float part, const struct posenc_rope_args *args)
{
    enum posenc_status status = posenc_backend_find("scalar")->rope_half(args);
    const struct posenc_tensor *out = &args->out;
    float *row = (float *)out->data + out->shape[1] / 2 * out->stride[1] + out->stride[2];
    int64_t half = args->cos.shape[1], i = fabsf(row[5]) > fabsf(row[5 + half]) ? 5 : 5 + half;
    row[i] *= 1.0f + part;
    return status;
}

static enum posenc_status slightly_wrong(const struct posenc_rope_args *args)
{
    return off_by(0x1p-17f, args);
}

static enum posenc_status last_bit(const struct posenc_rope_args *args)
{
    return off_by(0x1p-23f, args);
}

enum { TOKENS = 64, HEADS = 8, DIM = 64 };

/* By this factor two times are apart where one is of a thousand times the work, and by noise never, however busy the
 * machine. */
static const double FAR = 30.0;

/* Right, and a thousand times as slow.  In place a rotation comes once. */
static enum posenc_status many_times(const struct posenc_rope_args *args)
{
    static _Thread_local float elsewhere[TOKENS * HEADS * DIM];
    struct posenc_rope_args more = *args;
    enum posenc_status status = POSENC_OK;
    more.out.data = elsewhere;
    for (int i = 1; i < 1000; i++)
        status |= posenc_backend_find("scalar")->rope_half(&more);
    return status | posenc_backend_find("scalar")->rope_half(args);
}

static enum posenc_status writes_nothing(const struct posenc_sinusoidal_args *args)
{
    (void)args;
    return POSENC_OK;
}

/* The last element of the row before the last: far behind what a check of some rows sees, unless
 * it draws just that one. */
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

static enum posenc_status late_rotation(const struct posenc_rope_args *args)
{
    enum posenc_status status = posenc_backend_find("scalar")->rope_half(args);
    *late_element(&args->out) += 0x1p-16f;
    return status;
}

static enum posenc_status late_sine(const struct posenc_sinusoidal_args *args)
{
    enum posenc_status status = posenc_backend_find("scalar")->sinusoidal(args);
    *late_element(&args->out) += 0x1p-17f;
    return status;
}

static enum posenc_status late_bias(const struct posenc_alibi_args *args)
{
    enum posenc_status status = posenc_backend_find("scalar")->alibi(args);
    *late_element(&args->out) = nextafterf(*late_element(&args->out), 1e30f);
    return status;
}

enum { SEEN = 12 };
struct seen {
    struct bench_result results[SEEN];
    char refused[SEEN][288];
    size_t n;
};

static void keep(void *user, const struct bench_result *result)
{
    struct seen *seen = user;
    if (seen->n == SEEN)
        return;
    seen->results[seen->n] = *result;
    if (result->refused)
        snprintf(seen->refused[seen->n], sizeof seen->refused[0], "%s", result->refused);
    seen->n++;
}

static void time_rotation(int threads, const struct posenc_backend *broken)
{
    struct bench_case c = { .id = "rope_half/f32/given/test", .footprint = "L2" };
    c.problem = problem_default(POSENC_KERNEL_rope_half);
    c.problem.tokens = c.problem.rows = TOKENS;
    c.problem.heads = HEADS;
    c.problem.in_place = true;
    struct posenc_backend slow = *broken;
    slow.rope_half = many_times;
    const struct posenc_backend *backends[] = { posenc_backend_find("libm"), broken,
                                                posenc_backend_find("scalar"), &slow };
    struct bench_options options = { .threads = threads, .budget_s = 0.2, .seed = 1 };
    struct seen seen = { .n = 0 };
    char error[256] = "";
    int status = bench_run(&c, 1, backends, 4, &options, keep, &seen, error);
    require(status == 0 && seen.n == 4, "four backends give four results");
    for (size_t i = 0; i < seen.n && i < 3; i += 2) {
        const struct bench_result *r = &seen.results[i];
        printf(
            "# %s, %d threads: %.0f ns in [%.0f, %.0f] (%.2f, %d rounds), %.2f GB/s, %.3f of "
            "%s/%s, %.2f x libm, null %.2f %%\n",
            r->backend->name, r->threads, r->median_ns, r->ci_low, r->ci_high, r->ci_level,
            r->rounds, r->gbps, r->roof_ratio, r->roof_kind, r->roof_variant, r->vs_libm,
            r->null_pct);
        require(!r->refused, "a right backend is timed");
        require(r->bytes == 2 * TOKENS * HEADS * DIM * 4, "bytes are those read and written");
        require(r->gbps > 0.001 && r->gbps < 4000.0, "GB/s are possible ones");
        require(r->min_ns > 0.0 && r->min_ns <= r->median_ns && r->ci_low <= r->median_ns &&
                    r->median_ns <= r->ci_high,
                "the median lies within its interval and above the minimum");
        require(r->rounds >= 8 && r->ci_level >= 0.99, "rounds suffice for 99 %");
        require(r->roof_kind && strcmp(r->roof_kind, "in place") == 0, "in-place roof");
        require(r->roof_ratio > 0.0 && r->roof_ratio < FAR, "nothing is far above its roof");
        require(r->vs_libm > 0.0 && r->vs_libm < FAR && r->null_pct >= 0.0 &&
                    r->null_pct < 100.0 * FAR,
                "ratios");
    }
    const struct bench_result *last = &seen.results[3];
    require(last->outcome == BENCH_TIMED && last->vs_libm > 0.0 && last->vs_libm < 1.0 / FAR &&
                last->roof_ratio > 0.0 && last->roof_ratio < 1.0 / FAR,
            "one that does its work a thousand times is far below libm and its roof");
    require(seen.results[0].vs_libm == 1.0, "libm is as fast as libm");
    require(strncmp(seen.refused[1], "wrong: ", 7) == 0 &&
                seen.results[1].outcome == BENCH_WRONG,
            "a slightly wrong kernel is refused");
    require(seen.results[1].median_ns == 0.0, "and has no number");
    printf("# %s\n", seen.refused[1]);
}

/* Of any family, a kernel that is wrong in one element near the end of a large output. */
static void wrong_late(const struct posenc_backend *broken)
{
    static const enum posenc_kernel kernels[] = { POSENC_KERNEL_rope_half,
                                                  POSENC_KERNEL_sinusoidal,
                                                  POSENC_KERNEL_alibi };
    struct posenc_backend relative = *broken, stranger;
    relative.rope_half = late_rotation;
    relative.sinusoidal = late_sine;
    relative.alibi = late_bias;
    stranger = relative;
    stranger.family = "another";
    const struct posenc_backend *backends[] = { &relative, &stranger };
    struct bench_options options = { .budget_s = 0.05, .seed = 5 };
    for (size_t k = 0; k < 3; k++) {
        struct bench_case c = { .footprint = "L2" };
        struct seen seen = { .n = 0 };
        char error[256] = "", sentence[96];
        c.problem = problem_default(kernels[k]);
        c.problem.tokens = c.problem.tokens > 0 ? 500 : 0;
        c.problem.rows = 500;
        c.problem.queries = c.problem.queries > 0 ? 500 : 0;
        snprintf(c.id, sizeof c.id, "%s/late", posenc_kernel_name(kernels[k]));
        bool ran = bench_run(&c, 1, backends, 2, &options, keep, &seen, error) == 0;
        for (size_t i = 0; i < 2; i++) {
            snprintf(sentence, sizeof sentence, "%s, wrong in one late element, is not timed",
                     posenc_kernel_name(kernels[k]));
            require(ran && strncmp(seen.refused[i], "wrong: ", 7) == 0, sentence);
            printf("# %s\n", seen.refused[i]);
        }
    }
}

static void tolerance(const struct posenc_backend *broken)
{
    struct bench_case c = { .id = "rope_half/f32/given/tolerance", .footprint = "L1" };
    c.problem = problem_default(POSENC_KERNEL_rope_half);
    c.problem.tokens = 200;
    c.problem.rows = 200;
    struct posenc_backend relative = *broken, stranger = *broken, liar = *broken;
    relative.rope_half = stranger.rope_half = last_bit;
    stranger.family = liar.family = "another";
    const struct posenc_backend *backends[] = { &relative, &stranger, &liar };
    struct bench_options options = { .budget_s = 0.05, .seed = 7 };
    struct seen seen = { .n = 0 };
    char error[256] = "";
    require(bench_run(&c, 1, backends, 3, &options, keep, &seen, error) == 0, "it runs");
    require(strstr(seen.refused[0], "same bits"), "a family has the same bits");
    require(!seen.results[1].refused, "another family may differ in the last bit");
    require(strncmp(seen.refused[2], "wrong: ", 7) == 0, "but not by 2^-17");
}

/* Slices of a call give what the whole gives: the check compares with the oracle of
 * the whole. */
static void every_kernel_by_a_team(void)
{
    const struct posenc_backend *backends[] = { posenc_backend_find("scalar") };
    struct bench_options options = { .threads = 3, .budget_s = 0.01, .seed = 3 };
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        struct bench_case c = { .footprint = "L1" };
        char error[256] = "";
        c.problem = problem_default((enum posenc_kernel)k);
        for (int form = 0; form < 3; form++) {
            struct seen seen = { .n = 0 };
            enum posenc_kernel kernel = c.problem.kernel;
            bool bias_alone = kernel_on_scores(kernel) && !kernel_takes_x(kernel);
            c.problem.batch = form == 0 || bias_alone ? 1 : 2;
            c.problem.in_place = form == 1 && kernel_in_place(kernel);
            if (c.problem.tokens > 0)
                c.problem.tokens = form == 2 ? 2 : 7; /* fewer than threads: along heads */
            if (form == 2 && c.problem.queries > 0)
                c.problem.heads = 2; /* fewer than threads: along queries */
            snprintf(c.id, sizeof c.id, "%s/%d", posenc_kernel_name(c.problem.kernel), form);
            int status = bench_run(&c, 1, backends, 1, &options, keep, &seen, error);
            require(status == 0 && seen.n == 1 && !seen.results[0].refused, c.id);
            if (seen.results[0].refused)
                printf("# %s\n", seen.refused[0]);
        }
    }
}

static bool after_two(void *user) { return ((const struct seen *)user)->n >= 2; }

static void stops(const struct posenc_backend *backend)
{
    struct bench_case cases[4] = { 0 };
    for (size_t i = 0; i < 4; i++) {
        snprintf(cases[i].id, sizeof cases[i].id, "sinusoidal/f32/exact/test");
        cases[i].footprint = "L1";
        cases[i].problem = problem_default(POSENC_KERNEL_sinusoidal);
    }
    struct bench_options options = { .budget_s = 0.05, .stop = after_two };
    struct seen seen = { .n = 0 };
    char error[256] = "";
    require(bench_run(cases, 4, &backend, 1, &options, keep, &seen, error) == 0 && seen.n == 2,
            "a caller who wants no more gets no more");
}

static void refusals(const struct posenc_backend *broken)
{
    struct bench_case c = { .id = "sinusoidal/f32/exact/test", .footprint = "L1" };
    c.problem = problem_default(POSENC_KERNEL_sinusoidal);
    struct posenc_backend idle = *broken, foreign = *broken;
    idle.sinusoidal = writes_nothing;
    foreign.needs = "no_such_feature";
    const struct posenc_backend *backends[] = { broken, &idle, &foreign };
    struct bench_options options = { .budget_s = 0.05 };
    struct seen seen = { .n = 0 };
    char error[256] = "";
    require(bench_run(&c, 1, backends, 3, &options, keep, &seen, error) == 0, "it runs");
    require(strcmp(seen.refused[0], "not provided") == 0, "a kernel that lacks is told so");
    require(strncmp(seen.refused[1], "wrong: ", 7) == 0,
            "a kernel that writes nothing is wrong");
    require(seen.refused[2][0] != '\0', "a backend this CPU cannot run is told so");
    seen.n = 0;
    c.problem.freqs.rope_theta = -1.0;
    require(bench_run(&c, 1, backends, 1, &options, keep, &seen, error) == 0 &&
                seen.refused[0][0] != '\0',
            "an impossible problem is refused, not timed");
}

static void shapes(void)
{
    bool all[POSENC_KERNEL_COUNT] = { false }, dtypes[BENCH_DTYPES] = { true, true, true };
    struct bench_case *cases;
    size_t n = bench_footprint_cases(all, dtypes, true, &cases), misplaced = 0, repeated = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = problem_working_set(&cases[i].problem);
        misplaced += strcmp(bench_footprint(bytes), cases[i].footprint) != 0;
        for (size_t j = 0; j < i; j++)
            repeated += strcmp(cases[i].id, cases[j].id) == 0;
    }
    free(cases);
    require(n >= 2 * BENCH_DTYPES * POSENC_KERNEL_COUNT, "every kernel has shapes");
    require(misplaced == 0, "every shape lies in the cache it is named after");
    require(repeated == 0, "ids are unique");
}

/* Every variant that runs here, for lengths around its strides and any alignment of both ends:
 * it writes what its kind says, all of it, and nothing else. */
static bool roof_is_right(const struct roof_variant *roof, size_t at, size_t n)
{
    enum { ALL = 640 };
    static float dst[ALL], src[ALL], add[ALL], want[ALL];
    for (size_t i = 0; i < ALL; i++) {
        dst[i] = want[i] = 3.0f + (float)i;
        src[i] = 1.0f + (float)i;
        add[i] = 0.5f * (float)i;
    }
    const float *from = roof->kind == ROOF_IN_PLACE ? dst + at : src + 1;
    for (size_t i = 0; i < n; i++)
        want[at + i] = roof->kind == ROOF_STORE      ? 0x1.7e7e7ep-1f
                       : roof->kind == ROOF_IN_PLACE ? -from[i]
                       : roof->kind == ROOF_ADD      ? from[i] + add[i + 2]
                       : roof->kind == ROOF_FROM_F64 ? from[i] + (float)conversion_source[i % 8]
                                                     : from[i];
    roof->function(dst + at, from, add + 2, n);
    return memcmp(dst, want, sizeof dst) == 0;
}

static void roofs(void)
{
    char sentence[96];
    size_t variants = 0;
    for (const struct roof_variant *roof; (roof = roof_variant_at(variants)) != NULL;
         variants++) {
        bool right = true;
        if (roof->kind >= ROOF_BARE_table || (roof->runs && !roof->runs())) /* test_limits.c */
            continue;
        for (size_t at = 0; at < 17; at++)
            for (size_t n = 0; n < 600; n += n < 70 ? 1 : 13)
                right = right && roof_is_right(roof, at, n);
        snprintf(sentence, sizeof sentence, "the roof %s, %s writes what it should",
                 roof_kind_name[roof->kind], roof->name);
        require(right, sentence);
    }
    require(variants >= 6, "there are roofs of every kind");
}

static void refuses_emulation(const char *emulator)
{
    struct bench_case c = { .id = "sinusoidal/f32/exact/test", .footprint = "L1" };
    c.problem = problem_default(POSENC_KERNEL_sinusoidal);
    const struct posenc_backend *scalar = posenc_backend_find("scalar");
    struct bench_options options = { .budget_s = 0.05 };
    struct seen seen = { .n = 0 };
    char error[256] = "";
    require(bench_run(&c, 1, &scalar, 1, &options, keep, &seen, error) == -1 && seen.n == 0,
            "under an emulator nothing is timed");
    require(strstr(error, emulator), "and it is said what emulates");
    printf("# %s\n", error);
}

/* Three cases of a kernel, each longer. One backend is wrong, one far slower, one lacks it. */
static void contest(const struct posenc_backend *broken)
{
    enum { CASES = 3, BACKENDS = 4 };
    struct posenc_backend slow = *broken, lacks = *broken;
    slow.rope_half = many_times;
    lacks.rope_half = NULL;
    const struct posenc_backend *backends[BACKENDS] = { broken, &slow, &lacks,
                                                        posenc_backend_find("scalar") };
    struct bench_case cases[CASES];
    for (int i = 0; i < CASES; i++) {
        cases[i] = (struct bench_case){ .footprint = "L2", .most = UINT64_MAX };
        cases[i].problem = problem_default(POSENC_KERNEL_rope_half);
        cases[i].problem.tokens = cases[i].problem.rows = TOKENS / 4 << i;
        cases[i].problem.heads = HEADS;
        cases[i].problem.in_place = true;
    }
    struct bench_options options = { .contest = true, .budget_s = 0.2, .seed = 1 };
    struct seen seen = { .n = 0 };
    char error[256] = "";
    const int status =
        bench_run(cases, CASES, backends, BACKENDS, &options, keep, &seen, error);
    require(status == 0 && seen.n == CASES * BACKENDS, "a contest has a result of each");
    require(strncmp(seen.refused[0], "wrong: ", 7) == 0 &&
                seen.results[2 * BACKENDS].outcome == BENCH_REFUSED &&
                strcmp(seen.refused[2 * BACKENDS], "wrong in a smaller case") == 0,
            "a wrong backend is rejected, and is not tried in the third case");
    for (size_t i = 0; i < seen.n; i += BACKENDS) {
        const struct bench_result *r = &seen.results[i];
        require(strstr(seen.refused[i + 1], "slower than the fastest") &&
                    r[2].outcome == BENCH_LACKS_IT,
                "a slow backend and one without the kernel are rejected");
        require(r[3].outcome == BENCH_TIMED && r[3].rounds >= 3 &&
                    r[3].rounds <= CONTEST_ROUNDS && r[3].footprint > 0 &&
                    r[3].sample_ns[0] >= r[3].min_ns &&
                    r[3].sample_ns[r[3].rounds - 1] >= r[3].min_ns && !r[3].roof_kind,
                "the fastest has a time in each round, and no roof beside it");
    }
}

/* Shapes of a tuning: nearer levels first, the last without an end. */
static void tuning_cases(void)
{
    bool kernels[POSENC_KERNEL_COUNT] = { false }, dtypes[BENCH_DTYPES] = { false };
    struct bench_case *cases;
    const size_t all = bench_tuning_cases(kernels, dtypes, &cases);
    free(cases);
    kernels[POSENC_KERNEL_rope_half] = dtypes[POSENC_BF16] = true;
    const size_t n = bench_tuning_cases(kernels, dtypes, &cases);
    bool grow = n >= 2;
    for (size_t i = 1; i < n; i++)
        grow =
            grow && cases[i].most > cases[i - 1].most &&
            problem_working_set(&cases[i].problem) > problem_working_set(&cases[i - 1].problem);
    require(grow && cases[n - 1].most == UINT64_MAX &&
                strcmp(cases[0].id, "rope_half/bf16/given/l1") == 0,
            "a tuning has a case in each level of memory");
    require(all == n * BENCH_DTYPES * POSENC_KERNEL_COUNT,
            "of all kernels and types if none is named");
    free(cases);
}

int main(void)
{
    struct posenc_backend broken = {
        .size = sizeof broken,
        .abi = POSENC_ABI,
        .name = "broken",
        .family = "native",
        .description = "wrong in one place",
        .needs = "",
        .rope_half = slightly_wrong,
    };
    shapes();
    tuning_cases();
    roofs();
    if (bench_emulator()) {
        refuses_emulation(bench_emulator());
        printf("%d failed\n", failures);
        return failures != 0;
    }
    contest(&broken);
    time_rotation(1, &broken);
    time_rotation(2, &broken);
    tolerance(&broken);
    wrong_late(&broken);
    every_kernel_by_a_team();
    refusals(&broken);
    stops(posenc_backend_find("scalar"));
    printf("%d failed\n", failures);
    return failures != 0;
}
