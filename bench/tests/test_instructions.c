/*
 * Tests counts of instructions (bench/instructions.h): they are exact, the same each time, and leave the process as it was.
 * Limits the overhead of the public functions by such counts, which do not depend on the load of the machine.
 *
 *     test_instructions [limits [EXTRA]]     limits: test the limits too; they are for optimised code
 *                                            EXTRA: loads before each call, to test the test
 */
#define _GNU_SOURCE
#include "bench/instructions.h"
#include "base/tap/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* ---- Counting ---- */

static uint64_t count_call(const struct counted_call *call)
{
    const uint64_t count = instructions_of_call(call, INSTRUCTIONS_MOST);
    printf("# %d\n", (int)count);
    return count;
}

/* Creates a call of alibi and runs it once. */
static struct counted_call make_counted_call(struct call *call)
{
    const struct problem problem = problem_default(POSENC_KERNEL_ALIBI);
    if (call_create(call, &problem, NULL) || call_run(call, posenc_backend_find("scalar")))
        abort();
    return (struct counted_call){ (void (*)(void))posenc_alibi, posenc_backend_find("scalar"),
                                  &call->args.alibi };
}

static void test_repeatability(void)
{
    struct call call;
    const struct counted_call counted = make_counted_call(&call);
    const uint64_t first = count_call(&counted), second = count_call(&counted);
    require(first == second && first > 100,
            "a kernel takes the same number of instructions each time");
    require(instructions_of_call(&counted, first / 2) == first / 2 + 1,
            "counting is given up at the limit");
    require(count_call(&counted) == first, "the next call is counted as before");
    call_destroy(&call);
}

static void on_alarm(int number) { (void)number; }

/* Returns true if SIGTRAP is blocked and has the handler of `action`. */
static bool has_old_handler(const struct sigaction *action)
{
    struct sigaction now;
    sigset_t mask;
    return sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_handler == action->sa_handler &&
           sigprocmask(SIG_SETMASK, NULL, &mask) == 0 && sigismember(&mask, SIGTRAP) == 1;
}

/* Counts while SIGTRAP is blocked and ignored, and a timer sends signals. */
static void test_signals(void)
{
    struct call call;
    const struct counted_call counted = make_counted_call(&call);
    const uint64_t quiet = count_call(&counted);
    const struct sigaction ignored = { .sa_handler = SIG_IGN },
                           alarmed = { .sa_handler = on_alarm };
    const struct itimerval each_200_us = { { 0, 200 }, { 0, 200 } },
                           never = { { 0, 0 }, { 0, 0 } };
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTRAP);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    sigaction(SIGTRAP, &ignored, NULL);
    sigaction(SIGALRM, &alarmed, NULL);
    setitimer(ITIMER_REAL, &each_200_us, NULL);
    const uint64_t disturbed = count_call(&counted);
    setitimer(ITIMER_REAL, &never, NULL);
    require(quiet > 0 && quiet == disturbed,
            "counts stay the same with SIGTRAP blocked and with signals in between");
    require(has_old_handler(&ignored), "handler and mask of signals are as they were");
    call_destroy(&call);
}

/* ---- Overhead of the public functions ---- */

enum { DIM = 128, ROWS = 128, POSITION = 77, MOST_HEADS = 32 };

/* Makes arguments for one token: with_kernel_shape as a kernel takes them, in four dimensions; otherwise in three. */
static struct posenc_rope_args make_token_args(int64_t heads, bool with_kernel_shape)
{
    static _Alignas(64) float q[MOST_HEADS * DIM], cosines[ROWS * DIM / 2],
        sines[ROWS * DIM / 2];
    struct posenc_rope_args args = posenc_rope_args_init();
    args.positions.offset = POSITION;
    args.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, cosines, ROWS, DIM / 2);
    args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sines, ROWS, DIM / 2);
    args.out = with_kernel_shape ? posenc_tensor_4d(POSENC_DTYPE_F32, q, 1, 1, heads, DIM)
                                 : posenc_tensor_3d(POSENC_DTYPE_F32, q, 1, heads, DIM);
    args.x = posenc_const_view(args.out);
    return args;
}

struct counted_rotation {
    struct posenc_rope_args args;
    const struct posenc_backend *backend;
    struct posenc_prepared *prepared;
    int extra_loads; /* before the call */
};

static void run_loads(int n)
{
    static volatile int loaded = 1;
    for (int i = 0; i < n; i++)
        (void)loaded;
}

/* Three ways to rotate: by the function of a backend, by the public function, and by a prepared call. */
static enum posenc_status call_kernel(const struct counted_rotation *r)
{
    return r->backend->rope_half(&r->args);
}

static enum posenc_status call_public(const struct counted_rotation *r)
{
    run_loads(r->extra_loads);
    return posenc_rope_half(NULL, &r->args, NULL);
}

static enum posenc_status call_prepared(const struct counted_rotation *r)
{
    run_loads(r->extra_loads);
    return posenc_run(r->prepared, r->args.x.data, r->args.out.data, POSITION, NULL);
}

/* Returns the instructions of one way; 0 if it is not counted. */
static int64_t count_rotation(enum posenc_status (*call)(const struct counted_rotation *r),
                              const struct counted_rotation *r)
{
    const struct counted_call counted = { (void (*)(void))call, r, NULL };
    if (call(r) != POSENC_OK) /* the first call may bind symbols */
        return 0;
    return (int64_t)count_call(&counted);
}

/* Limits the instructions before the kernel. On x86-64 gcc 12 takes 274 and 61, clang 14 takes 304 and 51. */
static void test_limits(int64_t heads, int extra_loads)
{
    const struct posenc_backend *backend =
        posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).backend;
    struct counted_rotation call = { make_token_args(heads, false), backend, NULL,
                                     extra_loads };
    const struct counted_rotation direct = { make_token_args(heads, true), backend, NULL, 0 };
    if (posenc_prepare(backend, POSENC_KERNEL_ROPE_HALF, &call.args, &call.prepared, NULL))
        abort();
    const int64_t kernel = count_rotation(call_kernel, &direct),
                  public = count_rotation(call_public, &call),
                  prepared = count_rotation(call_prepared, &call);
    printf("# %d heads: public function %d, prepared %d above the %d of the kernel\n",
           (int)heads, (int)(public - kernel), (int)(prepared - kernel), (int)kernel);
    require(kernel > 0 && public > 0 && public - kernel <= 340,
            "posenc_rope_half() takes at most 340 instructions before the kernel");
    require(kernel > 0 && prepared > 0 && prepared - kernel <= 76,
            "a prepared call takes at most 76 instructions before the kernel");
    posenc_prepared_destroy(call.prepared);
}

/* Counts calls without tokens, which run no kernel, on the selected backend and on each backend that is named. */
static void test_named_backends(void)
{
    enum { FEW = 24 }; /* instructions */
    struct posenc_rope_args args = make_token_args(1, false);
    struct counted_call call = { (void (*)(void))posenc_rope_half, NULL, &args };
    const struct posenc_backend *backend;
    bool within_limit = true;
    args.out.shape[0] = args.x.shape[0] = 0;
    if (posenc_rope_half(NULL, &args, NULL))
        abort();
    const uint64_t selected = count_call(&call);
    for (size_t i = 0; (backend = posenc_backend_at(i)) != NULL; i++) {
        if (posenc_backend_unavailable_reason(backend) ||
            posenc_rope_half(backend, &args, NULL))
            continue;
        call.first = backend;
        within_limit = within_limit && count_call(&call) <= selected + FEW;
    }
    require(within_limit,
            "a named backend takes at most 24 instructions more than the selected one");
}

int main(int argc, char **argv)
{
    static const int64_t heads[] = { 1, 8, MOST_HEADS };
    if (!instructions_method()) {
        printf("1..0 # SKIP nothing counts instructions here\n");
        return 0;
    }
    test_repeatability();
    test_signals();
    for (size_t i = 0; argc > 1 && i < sizeof heads / sizeof *heads; i++)
        test_limits(heads[i], argc > 2 ? atoi(argv[2]) : 0);
    if (argc > 1)
        test_named_backends();
    return tap_end();
}
