/*
 * Counts are exact, the same each time, and leave the process as it was.
 */
#define _GNU_SOURCE
#include "counts.h"
#include "marks.h"
#include "conformance/tap/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* ---- Counting ---- */

static struct posenc_alibi_args *a_call(struct call *call)
{
    struct problem problem = problem_default(POSENC_KERNEL_alibi);
    if (call_create(call, &problem, NULL) || call_run(call, posenc_backend_find("scalar")))
        return NULL;
    return &call->args.alibi;
}

static bool same_counts(const struct call_counts *a, const struct call_counts *b)
{
    return a->by && b->by && a->instructions == b->instructions && a->outside == b->outside;
}

static void print_counts(const struct call_counts *c)
{
    printf("# %s%s: %llu inside, %llu outside\n", c->by ? c->by : "not counted: ", c->why,
           (unsigned long long)c->instructions, (unsigned long long)c->outside);
}

static struct call_counts count(const struct counted_call *call)
{
    struct call_counts counts = count_call(call, 0, COUNTS_MOST);
    print_counts(&counts);
    return counts;
}

static void test_kernel(void)
{
    struct call call;
    const struct posenc_alibi_args *args = a_call(&call);
    const struct counted_call counted = { (void (*)(void))posenc_alibi,
                                          posenc_backend_find("scalar"), args };
    const struct call_counts first = count(&counted), second = count(&counted);
    require(args && same_counts(&first, &second) && first.instructions > 100,
            "a kernel takes as many instructions each time");
    const struct call_counts some = count_call(&counted, 0, first.instructions / 2);
    require(!some.by && strstr(some.why, "too long"), "one that takes too many is given up");
    const struct call_counts third = count(&counted);
    require(same_counts(&first, &third), "and the next one is counted as before");
    call_destroy(&call);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static bool is_as_before(const struct sigaction *action, const stack_t *stack,
                         const sigset_t *mask)
{
    struct sigaction now;
    stack_t stack_now;
    sigset_t mask_now;
    return sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_handler == action->sa_handler &&
           sigaltstack(NULL, &stack_now) == 0 && stack_now.ss_flags == stack->ss_flags &&
           stack_now.ss_sp == stack->ss_sp && sigprocmask(SIG_SETMASK, NULL, &mask_now) == 0 &&
           sigismember(&mask_now, SIGTRAP) == sigismember(mask, SIGTRAP);
}

/* With SIGTRAP blocked and ignored, and with a signal that comes all the while. */
static void test_signals(void)
{
    struct call call;
    const struct counted_call counted = { (void (*)(void))posenc_alibi,
                                          posenc_backend_find("scalar"), a_call(&call) };
    const struct call_counts quiet = count(&counted);
    struct sigaction action = { .sa_handler = SIG_IGN };
    struct sigaction alarm_action = { .sa_handler = on_alarm };
    sigset_t mask;
    stack_t stack;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTRAP);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGALRM, &alarm_action, NULL);
    sigaltstack(NULL, &stack);
    alarms = 0;
    const struct itimerval each = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    setitimer(ITIMER_REAL, &each, NULL);
    const struct call_counts counts = count(&counted);
    setitimer(ITIMER_REAL, &never, NULL);
    require(same_counts(&quiet, &counts),
            "so it does with SIGTRAP blocked and with signals in between");
    printf("# %d signals\n", (int)alarms);
    require(is_as_before(&action, &stack, &mask),
            "handler, stack and mask of signals are as they were");
    call_destroy(&call);
}

/* ---- The front-end ---- */

#if defined(__OPTIMIZE__)
enum { OPTIMIZED = true };
#else
enum { OPTIMIZED = false };
#endif

/* A call without tokens is checked and given to a backend, and no kernel runs: that of a backend that is named
 * takes what that of the selected one does, and a few instructions more at most. */
static void test_named(void)
{
    enum { FEW = 24 };
    static float x[8], angles[8];
    struct posenc_rope_args args = posenc_rope_args_init();
    struct counted_call call = { (void (*)(void))posenc_rope_half, NULL, &args };
    const struct posenc_backend *backend;
    args.out = posenc_dense(x, 3, 0, 1, 8, 0);
    args.x = posenc_view(args.out);
    args.cos = args.sin = posenc_const_dense(angles, 2, 2, 4, 0, 0);
    if (posenc_rope_half(NULL, &args))
        abort();
    const struct call_counts selected = count(&call);
    bool few = true;
    for (size_t i = 0; (backend = posenc_backend_at(i)) != NULL; i++) {
        if (posenc_backend_obstacle(backend) || posenc_rope_half(backend, &args))
            continue;
        call.first = backend;
        const struct call_counts named = count(&call);
        few = few && named.instructions + named.outside <=
                         selected.instructions + selected.outside + FEW;
    }
    require(few, "a backend that is named is found as soon as the selected one");
}

int main(void)
{
    if (counts_method()) {
        const struct counted_call probe = { bench_probe, NULL, NULL };
        const struct call_counts counts = count(&probe);
        require(counts.instructions == PROBE_INSTRUCTIONS && counts.outside == 0,
                "three instructions and a return are four");
        test_kernel();
        test_signals();
        if (OPTIMIZED)
            test_named();
    } else {
        printf("# nothing counts here\n");
    }
    return tap_end();
}
