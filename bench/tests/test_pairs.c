/*
 * Tests pairs (bench/pairs.h) on small cases: two copies of one backend are as fast as each other, and one that does its
 * work a thousand times is slower. A side that is wrong, or that rejects its call, gets a reason and no number.
 */
#include "bench/pairs.h"
#include "base/machine/machine.h"
#include "base/statistics/stats.h"
#include "base/tap/tap.h"

#include <math.h>
#include <string.h>

enum { MOST_PAIRS = 4 };

struct stored_results {
    size_t n, announcements; /* calls of on_result() and on_call() */
    struct pair_result results[MOST_PAIRS];
    char reason[MOST_PAIRS][256];
    double log_ratio[MOST_PAIRS], control_log_ratio[MOST_PAIRS]; /* medians over the rounds */
    enum pair_side last_side;
};

static void store_result(void *user, const struct pair_result *result)
{
    struct stored_results *seen = user;
    const size_t i = seen->n++;
    seen->results[i] = *result;
    if (result->outcome != BENCH_TIMED) {
        snprintf(seen->reason[i], sizeof seen->reason[i], "%s", result->reason);
        printf("# %s\n", seen->reason[i]);
    } else {
        seen->log_ratio[i] = stats_median(result->log_ratios, result->rounds);
        seen->control_log_ratio[i] = stats_median(result->control_log_ratios, result->rounds);
    }
}

static void store_side(void *user, size_t pair, enum pair_side side)
{
    struct stored_results *seen = user;
    (void)pair;
    seen->announcements++;
    seen->last_side = side;
}

/* ---- Backends of the test ---- */

static const struct posenc_backend *scalar(void) { return posenc_backend_find("scalar"); }

static enum posenc_status rope_repeated(const struct posenc_rope_args *args)
{
    enum posenc_status status = POSENC_OK;
    for (int i = 0; i < 1000; i++)
        status |= scalar()->rope_half(args);
    return status;
}

static enum posenc_status rope_wrong(const struct posenc_rope_args *args)
{
    const enum posenc_status status = scalar()->rope_half(args);
    ((float *)args->out.data)[0] += 1.0f;
    return status;
}

static enum posenc_status rope_rejecting(const struct posenc_rope_args *args)
{
    (void)args;
    return POSENC_ERR_PARAMETER;
}

static int n_freqs; /* created by create_counted(), and not destroyed yet */

static enum posenc_status create_counted(const struct posenc_freqs_spec *spec,
                                         struct posenc_freqs **freqs,
                                         struct posenc_error *error)
{
    n_freqs++;
    return posenc_freqs_create(spec, freqs, error);
}

static void destroy_counted(struct posenc_freqs *freqs)
{
    n_freqs--;
    posenc_freqs_destroy(freqs);
}

static struct posenc_backend
    backend_with(enum posenc_status (*kernel)(const struct posenc_rope_args *))
{
    struct posenc_backend backend = *scalar();
    backend.name = backend.family = "other";
    backend.rope_half = kernel;
    return backend;
}

static struct bench_case small_case(enum posenc_kernel kernel)
{
    struct bench_case c = { .id = "test", .level = "L1", .problem = problem_default(kernel) };
    if (kernel == POSENC_KERNEL_ROPE_HALF) {
        c.problem.tokens = c.problem.rows = 64;
        c.problem.heads = 4;
    }
    return c;
}

static struct stored_results
run_pairs(const struct bench_case *c, const struct bench_pair *pairs, size_t n, bool rows_alone)
{
    struct stored_results seen = { .n = 0 };
    char error[256] = "";
    const struct pair_options options = { .seed = 3,
                                          .rows_alone = rows_alone,
                                          .share_s = 0.2,
                                          .min_rounds = 5,
                                          .max_rounds = 21,
                                          .on_call = store_side,
                                          .on_result = store_result,
                                          .user = &seen };
    require(pairs_time(c, pairs, n, &options, error) == 0 && seen.n == n,
            "each pair has a result");
    return seen;
}

static void test_times(void)
{
    const struct posenc_backend slow = backend_with(rope_repeated);
    const struct implementation base = implementation_of(scalar()),
                                slower_head = implementation_of(&slow);
    const struct bench_pair pairs[] = { { { &base, &base, &base } },
                                        { { &base, &slower_head, &base } } };
    const struct bench_case c = small_case(POSENC_KERNEL_ROPE_HALF);
    const struct stored_results seen = run_pairs(&c, pairs, 2, false);
    const struct pair_result *same = &seen.results[0], *slower = &seen.results[1];
    const double far = log(30.0); /* of a factor that noise never reaches */
    require(same->outcome == BENCH_TIMED && slower->outcome == BENCH_TIMED &&
                same->rounds >= 5 && same->ns[PAIR_BASE] > 0.0 && same->ns[PAIR_CONTROL] > 0.0,
            "both pairs are timed, in all rounds");
    require(seen.log_ratio[1] > far && slower->ns[PAIR_HEAD] > slower->ns[PAIR_BASE],
            "a head that does its work a thousand times is slower");
    require(fabs(seen.control_log_ratio[1]) < far && fabs(seen.log_ratio[0]) < far,
            "a copy of base is not");
    require(same->roofline_kind && same->roofline_ns > 0.0, "a roofline takes part");
    /* Six sides of two pairs are announced, then the rounds. */
    require(seen.last_side == PAIR_NO_SIDE && seen.announcements >= 6,
            "each call is announced");
}

static void test_wrong_sides(void)
{
    const struct posenc_backend wrong = backend_with(rope_wrong),
                                rejecting = backend_with(rope_rejecting);
    const struct implementation right = implementation_of(scalar()),
                                bad = implementation_of(&wrong),
                                rejects = implementation_of(&rejecting);
    const struct bench_pair pairs[] = { { { &right, &bad, &right } },
                                        { { &bad, &right, &bad } },
                                        { { &right, &rejects, &right } } };
    struct bench_case c = small_case(POSENC_KERNEL_ROPE_HALF);
    for (int rows_alone = 0; rows_alone < 2; rows_alone++) {
        const struct stored_results seen = run_pairs(&c, pairs, 3, rows_alone);
        require(seen.results[0].outcome == BENCH_WRONG && seen.results[0].side == PAIR_HEAD &&
                    strstr(seen.reason[0], "wrong"),
                "a head that is wrong gets a reason");
        require(seen.results[1].outcome == BENCH_WRONG && seen.results[1].side == PAIR_BASE,
                "a base that is wrong gets a reason");
        require(seen.results[2].outcome == BENCH_REJECTED && seen.results[2].side == PAIR_HEAD,
                "a head that rejects its call gets that outcome");
    }
    c = small_case(POSENC_KERNEL_SINUSOIDAL);
    c.problem.freqs.rope_theta = -1.0;
    require(run_pairs(&c, pairs, 1, false).results[0].outcome == BENCH_REJECTED,
            "a problem that no build takes is not timed");
}

/* Each side creates frequencies by the functions of its build, and destroys them. */
static void test_own_frequencies(void)
{
    struct implementation base = implementation_of(scalar()), head = base;
    head.freqs_create = create_counted;
    head.freqs_destroy = destroy_counted;
    const struct bench_case c = small_case(POSENC_KERNEL_SINUSOIDAL);
    struct call call, copy;
    require(call_create(&call, &c.problem, NULL) == POSENC_OK &&
                call_share(&call, &head, &copy) == POSENC_OK && n_freqs == 1 &&
                copy.args.sinusoidal.freqs == copy.freqs && copy.freqs != call.freqs &&
                copy.args.sinusoidal.out.data == call.args.sinusoidal.out.data,
            "a shared call has the tensors of the first, and frequencies of its own");
    call_unshare(&copy);
    call_destroy(&call);
    const struct bench_pair pair = { { &base, &head, &base } };
    require(run_pairs(&c, &pair, 1, false).results[0].outcome == BENCH_TIMED && n_freqs == 0,
            "the frequencies of a side are destroyed with its call");
}

int main(void)
{
    if (machine_emulator()) {
        printf("1..0 # SKIP emulated: %s\n", machine_emulator());
        return 0;
    }
    test_times();
    test_wrong_sides();
    test_own_frequencies();
    return tap_end();
}
