/*
 * Counts are exact, the same each time and by each means, and leave the process as it was.
 */
#define _GNU_SOURCE
#include "counts.h"
#include "classes.h"
#include "marks.h"
#include "conformance/tap/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* ---- Classes ---- */

/* An instruction and what it does, as letters: load, store, branch, vector. */
struct known {
    unsigned char code[12];
    size_t size;
    const char *does;
};

static bool classes_are(classify *classes_of, const struct known *known, size_t n)
{
    bool right = true;
    for (size_t i = 0; i < n; i++) {
        struct classes c;
        char does[5] = "";
        bool fine = classes_of(known[i].code, known[i].size, &c);
        snprintf(does, sizeof does, "%s%s%s%s", c.load ? "l" : "", c.store ? "s" : "",
                 c.branch ? "b" : "", c.vector ? "v" : "");
        if (!fine || strcmp(does, known[i].does) != 0) {
            printf("# instruction %zu: '%s', not '%s'\n", i, does, known[i].does);
            right = false;
        }
    }
    return right;
}

static void test_classes(void)
{
    static const struct known arm[] = {
        { { 0x00, 0x00, 0xc0, 0x3d }, 4, "lv" }, /* ldr q0, [x0] */
        { { 0x00, 0x00, 0x80, 0x3d }, 4, "sv" }, /* str q0, [x0] */
        { { 0x20, 0x00, 0x40, 0xf9 }, 4, "l" },  /* ldr x0, [x1] */
        { { 0x20, 0x00, 0x00, 0xf9 }, 4, "s" },  /* str x0, [x1] */
        { { 0x20, 0x00, 0x80, 0xb9 }, 4, "l" },  /* ldrsw x0, [x1] */
        { { 0x20, 0x00, 0x80, 0xf9 }, 4, "" },   /* prfm pldl1keep, [x1] */
        { { 0xfd, 0x7b, 0xbf, 0xa9 }, 4, "s" },  /* stp x29, x30, [sp, #-16]! */
        { { 0xfd, 0x7b, 0xc1, 0xa8 }, 4, "l" },  /* ldp x29, x30, [sp], #16 */
        { { 0x00, 0x70, 0x40, 0x4c }, 4, "lv" }, /* ld1 {v0.16b}, [x0] */
        { { 0x20, 0xd4, 0x22, 0x4e }, 4, "v" },  /* fadd v0.4s, v1.4s, v2.4s */
        { { 0x20, 0x28, 0x22, 0x1e }, 4, "v" },  /* fadd s0, s1, s2 */
        { { 0x20, 0x00, 0x02, 0x8b }, 4, "" },   /* add x0, x1, x2 */
        { { 0xc0, 0x03, 0x5f, 0xd6 }, 4, "b" },  /* ret */
        { { 0x81, 0xff, 0xff, 0x54 }, 4, "b" },  /* b.ne */
        { { 0x1f, 0x20, 0x03, 0xd5 }, 4, "" },   /* nop */
        { { 0x00, 0xa0, 0x40, 0xa5 }, 4, "lv" }, /* ld1w {z0.s}, p0/z, [x0] */
        { { 0x00, 0xe0, 0x40, 0xe5 }, 4, "sv" }, /* st1w {z0.s}, p0, [x0] */
        { { 0x20, 0x00, 0x82, 0x65 }, 4, "v" },  /* fadd z0.s, z1.s, z2.s */
        { { 0x40, 0x00, 0x00, 0x58 }, 4, "l" },  /* ldr x0, 8 */
    };
    static const struct known riscv[] = {
        { { 0x03, 0xb5, 0x05, 0x00 }, 4, "l" },  /* ld a0, 0(a1) */
        { { 0x23, 0xb0, 0xa5, 0x00 }, 4, "s" },  /* sd a0, 0(a1) */
        { { 0x07, 0xe4, 0x05, 0x02 }, 4, "lv" }, /* vle32.v v8, (a1) */
        { { 0x27, 0xe4, 0x05, 0x02 }, 4, "sv" }, /* vse32.v v8, (a1) */
        { { 0x07, 0xa5, 0x05, 0x00 }, 4, "l" },  /* flw fa0, 0(a1) */
        { { 0x57, 0x14, 0x94, 0x02 }, 4, "v" },  /* vfadd.vv v8, v9, v8 */
        { { 0x63, 0x1c, 0xb5, 0xfe }, 4, "b" },  /* bne a0, a1 */
        { { 0x88, 0x61 }, 2, "l" },              /* c.ld a0, 0(a1) */
        { { 0x88, 0xe1 }, 2, "s" },              /* c.sd a0, 0(a1) */
        { { 0x82, 0x80 }, 2, "b" },              /* ret */
        { { 0x2e, 0x85 }, 2, "" },               /* mv a0, a1 */
        { { 0x01, 0xa0 }, 2, "b" },              /* c.j */
        { { 0xa2, 0x60 }, 2, "l" },              /* c.ldsp ra, 8(sp) */
        { { 0x06, 0xe4 }, 2, "s" },              /* c.sdsp ra, 8(sp) */
    };
    static const struct known x86[] = {
        { { 0xc5, 0xfc, 0x10, 0x07 }, 4, "lv" },             /* vmovups ymm0, [rdi] */
        { { 0xc5, 0xfc, 0x11, 0x07 }, 4, "sv" },             /* vmovups [rdi], ymm0 */
        { { 0xc5, 0xfc, 0x58, 0xc1 }, 4, "v" },              /* vaddps ymm0, ymm0, ymm1 */
        { { 0x62, 0xf1, 0x7c, 0x48, 0x58, 0x07 }, 6, "lv" }, /* vaddps zmm0, zmm0, [rdi] */
        { { 0x48, 0x8b, 0x07 }, 3, "l" },                    /* mov rax, [rdi] */
        { { 0x48, 0x89, 0x07 }, 3, "s" },                    /* mov [rdi], rax */
        { { 0x48, 0x8d, 0x47, 0x08 }, 4, "" },               /* lea rax, [rdi + 8] */
        { { 0x48, 0xff, 0x07 }, 3, "ls" },                   /* inc qword [rdi] */
        { { 0x55 }, 1, "s" },                                /* push rbp */
        { { 0xc3 }, 1, "lb" },                               /* ret */
        { { 0x75, 0xfe }, 2, "b" },                          /* jnz */
        { { 0x0f, 0x18, 0x0f }, 3, "" },                     /* prefetcht0 [rdi] */
        { { 0x0f, 0x1f, 0x40, 0x00 }, 4, "" },               /* nop [rax] */
    };
    struct classes any;
    require(classes_are(classify_arm, arm, sizeof arm / sizeof *arm), "classes of A64");
    require(classes_are(classify_riscv, riscv, sizeof riscv / sizeof *riscv),
            "classes of RV64GCV");
    if (classify_x86(x86[0].code, x86[0].size, &any))
        require(classes_are(classify_x86, x86, sizeof x86 / sizeof *x86), "classes of x86-64");
}

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
    return a->by && b->by && a->instructions == b->instructions && a->loads == b->loads &&
           a->stores == b->stores && a->branches == b->branches && a->vector == b->vector;
}

static void print_counts(const struct call_counts *c)
{
    printf("# %s%s: %llu inside, %llu outside, %llu loads, %llu stores, %llu branches, %llu "
           "vector\n",
           c->by ? c->by : "not counted: ", c->why, (unsigned long long)c->instructions,
           (unsigned long long)c->outside, (unsigned long long)c->loads,
           (unsigned long long)c->stores, (unsigned long long)c->branches,
           (unsigned long long)c->vector);
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
    if (counts_method() && strcmp(counts_method(), "single step") == 0) {
        struct steps steps = { .entry = (uintptr_t)counted.entry, .most = COUNTS_MOST };
        require(!steps_of_child(&counted, &steps) || steps.state != STEPS_RETURNED ||
                    steps.inside + steps.outside == first.instructions + first.outside,
                "a traced child takes as many");
    }
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
    test_classes();
    if (counts_method()) {
#ifdef HAVE_MARKS
        const struct counted_call probe = { bench_probe, NULL, NULL };
        const struct call_counts counts = count(&probe);
        require(counts.instructions == PROBE_INSTRUCTIONS && counts.outside == 0,
                "a loop of ten turns takes 22 instructions");
        require(!counts.classed || (counts.branches == PROBE_BRANCHES && counts.stores == 0),
                "eleven of them are branches");
#endif
        test_kernel();
        test_signals();
        if (OPTIMIZED)
            test_named();
    } else {
        printf("# nothing counts here\n");
    }
    return tap_end();
}
