/*
 * A call reaches its kernel within so many instructions: posenc_rope_half(), which checks its arguments, and a
 * prepared call, which has been checked.  They are counted above those of the backend's own function, which is the
 * same whatever else the machine does.  How long they take is no test: `posenc bench` times it (overhead.h).
 *
 *     test_overhead [EXTRA]     EXTRA: loads that each call makes before it begins, for the test to be tested
 */
#define POSENC_EXPERIMENTAL
#include "counts.h"
#include "overhead.h"
#include "conformance/tap/tap.h"

#include <stdlib.h>

enum { DIM = 128, ROWS = 128, POSITION = 77 };

/* Of x86-64, where gcc 12 takes 274 and 61, clang 14 304 and 51. */
static const struct limit {
    const char *name;
    int64_t most;
} limits[] = {
    [OVERHEAD_FRONT] = { "posenc_rope_half()", 340 },
    [OVERHEAD_PREPARED] = { "a prepared call", 76 },
};

struct rotation {
    const struct posenc_rope_args *args;
    const struct posenc_backend *backend;
    struct posenc_prepared *prepared;
    int extra; /* loads before the call */
};

typedef enum posenc_status making(const struct rotation *r);

static enum posenc_status call_function(const struct rotation *r)
{
    return r->backend->rope_half(r->args);
}

static void load(int times)
{
    static volatile int loaded = 1;
    for (int i = 0; i < times; i++)
        (void)loaded;
}

static enum posenc_status call_front_end(const struct rotation *r)
{
    load(r->extra);
    return posenc_rope_half(NULL, r->args);
}

static enum posenc_status call_prepared(const struct rotation *r)
{
    load(r->extra);
    return posenc_run(r->prepared, r->args->x.data, r->args->out.data, POSITION);
}

/* All instructions of a call, here, in the library and in the C library; 0: it could not be counted. */
static int64_t count(making *call, const struct rotation *r)
{
    const struct counted_call counted = { (void (*)(void))call, r, NULL };
    if (call(r) != POSENC_OK) /* the first call, which may bind symbols */
        return 0;
    const struct call_counts counts = count_call(&counted, 0, COUNTS_MOST);
    if (!counts.by)
        printf("# %s\n", counts.why);
    return counts.by ? (int64_t)(counts.instructions + counts.outside) : 0;
}

static void keeps(enum overhead_way way, int heads, int64_t function, int64_t all)
{
    char sentence[96];
    const int64_t above = all - function;
    snprintf(sentence, sizeof sentence,
             "%s, %d heads: at most %d instructions before the kernel", limits[way].name, heads,
             (int)limits[way].most);
    require(function > 0 && all > 0 && above <= limits[way].most, sentence);
    printf("# %d above the %d of the function\n", (int)above, (int)function);
}

static void test_heads(int heads, int extra)
{
    static _Alignas(64) float q[OVERHEAD_MOST_HEADS * DIM], cosines[ROWS * DIM / 2],
        sines[ROWS * DIM / 2];
    const struct posenc_backend *backend = posenc_selection(POSENC_KERNEL_rope_half).backend;
    struct posenc_rope_args args = posenc_rope_args_init();
    args.positions.offset = POSITION;
    args.cos = posenc_const_dense(cosines, 2, ROWS, DIM / 2, 0, 0);
    args.sin = posenc_const_dense(sines, 2, ROWS, DIM / 2, 0, 0);
    args.out = posenc_dense(q, 3, 1, heads, DIM, 0);
    args.x = posenc_view(args.out);
    struct posenc_rope_args normal = args;
    normal.out = posenc_dense(q, 4, 1, 1, heads, DIM);
    normal.x = posenc_view(normal.out);
    struct rotation call = { &args, backend, NULL, extra },
                    function = { &normal, backend, NULL, 0 };
    if (posenc_prepare(backend, POSENC_KERNEL_rope_half, &args, &call.prepared) != POSENC_OK) {
        require(false, "a call is prepared");
        return;
    }
    const int64_t alone = count(call_function, &function);
    keeps(OVERHEAD_FRONT, heads, alone, count(call_front_end, &call));
    keeps(OVERHEAD_PREPARED, heads, alone, count(call_prepared, &call));
    posenc_prepared_destroy(call.prepared);
}

int main(int argc, char **argv)
{
    if (!counts_method()) {
        printf("1..0 # SKIP nothing counts instructions here\n");
        return 0;
    }
    for (int i = 0; i < OVERHEAD_ROWS; i++)
        test_heads((int)overhead_heads[i], argc > 1 ? atoi(argv[1]) : 0);
    return tap_end();
}
