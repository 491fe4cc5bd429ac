/*
 * Pairs on a small case: two copies of one backend are as fast as each other, one that does its work
 * a thousand times is not, each by a factor that no noise of a busy machine has, and what is wrong, or refuses, on either side gets a reason and no number.
 */
#include "pairs.h"
#include "emulation.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };

struct seen {
    size_t n, doings;
    struct pair_result results[MOST];
    char reason[MOST][256];
    double x[MOST], z[MOST]; /* the least distance of any round from 0 is not 0, so: medians */
    enum pair_side last;
};

static double middle(const double *values, size_t n)
{
    double sorted[64];
    for (size_t i = 0; i < n && i < 64; i++) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return n > 0 ? sorted[n / 2] : (double)NAN;
}

static void keep(void *user, const struct pair_result *result)
{
    struct seen *seen = user;
    const size_t i = seen->n++;
    seen->results[i] = *result;
    if (result->outcome != BENCH_TIMED) {
        snprintf(seen->reason[i], sizeof seen->reason[i], "%s", result->reason);
    } else {
        seen->x[i] = middle(result->x, result->rounds);
        seen->z[i] = middle(result->z, result->rounds);
    }
}

static void note(void *user, size_t pair, enum pair_side who)
{
    struct seen *seen = user;
    (void)pair;
    seen->doings++;
    seen->last = who;
}

/* ---- Backends of the test ---- */

static const struct posenc_backend *scalar(void) { return posenc_backend_find("scalar"); }

static enum posenc_status many_times(const struct posenc_rope_args *args)
{
    enum posenc_status status = POSENC_OK;
    for (int i = 0; i < 1000; i++)
        status |= scalar()->rope_half(args);
    return status;
}

static enum posenc_status off(const struct posenc_rope_args *args)
{
    const enum posenc_status status = scalar()->rope_half(args);
    ((float *)args->out.data)[0] += 1.0f;
    return status;
}

static enum posenc_status refuses(const struct posenc_rope_args *args)
{
    (void)args;
    return POSENC_ERR_PARAMETER;
}

static int plans; /* made by the functions of one build */

static enum posenc_status count_plan(const struct posenc_freqs_spec *spec,
                                     struct posenc_freqs **freqs, struct posenc_error *error)
{
    plans++;
    return posenc_freqs_create(spec, freqs, error);
}

static void uncount_plan(struct posenc_freqs *freqs)
{
    plans--;
    posenc_freqs_destroy(freqs);
}

static struct posenc_backend
    other(enum posenc_status (*kernel)(const struct posenc_rope_args *))
{
    struct posenc_backend backend = *scalar();
    backend.name = "other";
    backend.family = "other";
    backend.rope_half = kernel;
    return backend;
}

static struct bench_case rotation(void)
{
    struct bench_case c = { .id = "rope_half/f32/given/test", .footprint = "L1" };
    c.problem = problem_default(POSENC_KERNEL_rope_half);
    c.problem.tokens = c.problem.rows = 64;
    c.problem.heads = 4;
    return c;
}

static struct seen run(const struct bench_case *c, const struct bench_pair *pairs, size_t n,
                       bool rows_alone)
{
    struct seen seen = { .n = 0 };
    char error[256] = "";
    const struct pair_options options = { .seed = 3,
                                          .rows_alone = rows_alone,
                                          .share_s = 0.2,
                                          .least_rounds = 5,
                                          .most_rounds = 21,
                                          .doing = note,
                                          .sink = keep,
                                          .user = &seen };
    require(pairs_run(c, pairs, n, &options, error) == 0 && seen.n == n,
            "each pair has a result");
    return seen;
}

static void times(void)
{
    const struct posenc_backend slow = other(many_times);
    const struct subject a = subject_of(scalar()), b = subject_of(&slow);
    const struct bench_pair pairs[] = { { { &a, &a, &a } }, { { &a, &b, &a } } };
    const struct bench_case c = rotation();
    const struct seen seen = run(&c, pairs, 2, false);
    const struct pair_result *one = &seen.results[0], *two = &seen.results[1];
    printf("# itself %.3f, control %.3f; a thousand times the work %.3f, control %.3f\n",
           exp(seen.x[0]), exp(seen.z[0]), exp(seen.x[1]), exp(seen.z[1]));
    require(one->outcome == BENCH_TIMED && two->outcome == BENCH_TIMED && one->rounds >= 5 &&
                one->ns[PAIR_BASE] > 0.0 && one->ns[PAIR_NULL] > 0.0,
            "both are timed, in all rounds");
    const double much = log(30.0); /* a factor of 30 from either */
    require(seen.x[1] > much && two->ns[PAIR_HEAD] > two->ns[PAIR_BASE],
            "one that does its work a thousand times is slower");
    require(fabs(seen.z[1]) < much && fabs(seen.x[0]) < much, "a copy of base is not");
    require(one->roof_kind && one->roof_ns > 0.0, "a roof takes part");
    require(seen.last == PAIR_SIDES && seen.doings >= 6, "it is told what runs");
}

static void judges(void)
{
    const struct posenc_backend wrong = other(off), refusing = other(refuses);
    const struct subject right = subject_of(scalar()), bad = subject_of(&wrong),
                         no = subject_of(&refusing);
    const struct bench_pair pairs[] = { { { &right, &bad, &right } },
                                        { { &bad, &right, &bad } },
                                        { { &right, &no, &right } } };
    const struct bench_case c = rotation();
    for (int rows = 0; rows < 2; rows++) {
        const struct seen seen = run(&c, pairs, 3, rows);
        require(seen.results[0].outcome == BENCH_WRONG && seen.results[0].who == PAIR_HEAD &&
                    strstr(seen.reason[0], "wrong"),
                rows ? "64 rows tell it, too" : "a head that is wrong gets a reason");
        require(seen.results[1].outcome == BENCH_WRONG && seen.results[1].who == PAIR_BASE,
                "so does a base");
        require(seen.results[2].outcome == BENCH_REFUSED && seen.results[2].who == PAIR_HEAD,
                "and one that refuses");
        printf("# %s; %s\n", seen.reason[0], seen.reason[2]);
    }
}

/* Each side makes its plan by its own functions, and none is left. */
static void has_own_plans(void)
{
    struct subject a = subject_of(scalar()), b = a;
    b.freqs_create = count_plan;
    b.freqs_destroy = uncount_plan;
    struct bench_case c = { .id = "sinusoidal/f32/exact/test", .footprint = "L1" };
    c.problem = problem_default(POSENC_KERNEL_sinusoidal);
    struct call call, copy;
    require(call_create(&call, &c.problem, NULL) == POSENC_OK &&
                call_share(&call, &b, &copy) == POSENC_OK && plans == 1 &&
                copy.args.sinusoidal.freqs == copy.freqs && copy.freqs != call.freqs &&
                copy.args.sinusoidal.out.data == call.args.sinusoidal.out.data,
            "a call that is shared has another's tensors and a plan of its own");
    call_unshare(&copy);
    call_destroy(&call);
    const struct bench_pair pair = { { &a, &b, &a } };
    const struct seen seen = run(&c, &pair, 1, false);
    require(seen.results[0].outcome == BENCH_TIMED && plans == 0, "which is destroyed with it");
}

int main(void)
{
    if (bench_emulator()) {
        printf("1..0 # SKIP emulated: %s\n", bench_emulator());
        return 0;
    }
    times();
    judges();
    has_own_plans();
    return tap_end();
}
