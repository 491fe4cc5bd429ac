/*
 * What a call costs before its kernel begins: posenc_rope_half() and a prepared call, above the
 * backend's own function, of one token with 1, 8 and 32 heads of 128 in f32.
 *
 * Measured on a quiet machine: about 20 ns and 5 ns.  The least of many short runs is what
 * counts, and the limits leave room for slow and busy machines; a check that becomes a search,
 * a lock or an allocation does not fit.
 */
#define _POSIX_C_SOURCE 200809L
#define POSENC_EXPERIMENTAL
#include <posenc.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DIM = 128, MOST_HEADS = 32, ROWS = 128, POSITION = 77 };
enum { RUNS = 2000, CALLS = 50 };
static const double most_ns = 150.0, most_prepared_ns = 60.0;

struct rotation {
    const struct posenc_backend *backend;
    struct posenc_rope_args args, normal; /* as a caller has them, as the kernel takes them */
    struct posenc_prepared *prepared;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef enum posenc_status way(const struct rotation *r);

static enum posenc_status direct(const struct rotation *r)
{
    return r->backend->rope_half(&r->normal);
}

static enum posenc_status front(const struct rotation *r)
{
    return posenc_rope_half(NULL, &r->args);
}

static enum posenc_status prepared(const struct rotation *r)
{
    return posenc_run(r->prepared, r->args.x.data, r->args.out.data, POSITION);
}

/* The least of each way, by turns, so that a busy moment meets all of them. */
enum { WAYS = 3 };
static void least_ns(const struct rotation *r, double least[WAYS])
{
    static way *const ways[WAYS] = { direct, front, prepared };
    least[0] = least[1] = least[2] = 1e9;
    for (int run = 0; run < RUNS; run++)
        for (int w = 0; w < WAYS; w++) {
            double start = now();
            for (int i = 0; i < CALLS; i++)
                if (ways[w](r))
                    abort();
            double each = (now() - start) / CALLS;
            least[w] = each < least[w] ? each : least[w];
        }
}

static struct rotation rotation_of(float *q, const float *cosines, const float *sines,
                                   int64_t heads)
{
    struct rotation r = { .backend = posenc_selection(POSENC_KERNEL_rope_half).backend,
                          .args = posenc_rope_args_init() };
    if (!r.backend)
        abort();
    r.args.positions.offset = POSITION;
    r.args.cos = posenc_const_dense(cosines, 2, ROWS, DIM / 2, 0, 0);
    r.args.sin = posenc_const_dense(sines, 2, ROWS, DIM / 2, 0, 0);
    r.args.out = posenc_dense(q, 3, 1, heads, DIM, 0);
    r.args.x = posenc_view(r.args.out);
    r.normal = r.args;
    r.normal.out = posenc_dense(q, 4, 1, 1, heads, DIM);
    r.normal.x = posenc_view(r.normal.out);
    if (posenc_prepare(NULL, POSENC_KERNEL_rope_half, &r.args, &r.prepared))
        abort();
    return r;
}

int main(void)
{
    static _Alignas(64) float q[MOST_HEADS * DIM];
    static _Alignas(64) float cosines[ROWS * DIM / 2], sines[ROWS * DIM / 2];
    int failures = 0;
    for (int i = 0; i < ROWS * DIM / 2; i++)
        cosines[i] = 1.0f;
    for (int heads = 1; heads <= MOST_HEADS; heads = heads == 1 ? 8 : 4 * heads) {
        struct rotation r = rotation_of(q, cosines, sines, heads);
        double least[WAYS];
        least_ns(&r, least);
        double kernel = least[0], front_ns = least[1] - kernel, prepared_ns = least[2] - kernel;
        bool fine = front_ns <= most_ns && prepared_ns <= most_prepared_ns;
        failures += !fine;
        printf("%s: rope_half of %s, %d heads: %.1f ns; by posenc_rope_half() %+.1f (at most "
               "%.0f), prepared %+.1f (at most %.0f)\n",
               fine ? "ok" : "FAILED", r.backend->name, heads, kernel, front_ns, most_ns,
               prepared_ns, most_prepared_ns);
        posenc_prepared_destroy(r.prepared);
    }
    return failures != 0;
}
