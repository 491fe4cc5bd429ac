/* Runs calls, and reports their faults and changes of floating-point state (see guard.h). */
#define _GNU_SOURCE
#include "guard.h"
#include "base/text/text.h"

#include <errno.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#elif defined(__SSE__)
#include <xmmintrin.h>
#endif

/* ---- Faults ---- */

/* Signals that are handled. SIGTRAP: compilers end unreachable code on ARM with a breakpoint. */
static struct {
    int number;
    const char *text;
    struct sigaction before; /* the previous handler */
} trapped[] = {
    { .number = SIGSEGV, .text = "SIGSEGV" },
    { .number = SIGBUS, .text = "SIGBUS" },
    { .number = SIGILL, .text = "SIGILL (an instruction this CPU lacks?)" },
    { .number = SIGFPE, .text = "SIGFPE" },
    { .number = SIGTRAP, .text = "SIGTRAP (a breakpoint)" },
};
enum { TRAPPED = sizeof trapped / sizeof trapped[0] };

static _Thread_local sigjmp_buf *landing; /* where a fault of the current call goes, or NULL */
static _Thread_local const char *volatile fault_text;
static _Thread_local const char *volatile fault_address;
static _Thread_local guard_repair *repair;
static _Thread_local void *repair_user;
static _Thread_local void *fault_context;

void *guard_context(void) { return fault_context; }

static bool is_repaired(int number, const char *address, void *context)
{
    const int error = errno;
    const bool asks = number == SIGSEGV || number == SIGBUS || number == SIGTRAP;
    fault_context = context;
    const bool repaired = asks && repair && repair(repair_user, address);
    errno = error;
    return repaired;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    if (is_repaired(number, info->si_addr, context))
        return;
    for (int i = 0; i < TRAPPED; i++) {
        if (trapped[i].number != number)
            continue;
        if (landing) {
            fault_text = trapped[i].text;
            fault_address = info->si_addr;
            siglongjmp(*landing, 1);
        }
        /* Outside a guarded call, the fault happens again under its previous handler. */
        sigaction(number, &trapped[i].before, NULL);
    }
}

/* The first guarded call runs this, and thus after a sanitizer has installed its handlers. */
void guard_install(void)
{
    static atomic_bool done;
    if (atomic_load(&done) || atomic_exchange(&done, true))
        return;
    /* Allocated, because static memory is write-protected at times (side_effects/watched_calls.c). */
    static char *stack;
    enum { STACK = 1 << 16 };
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE) &&
        (stack = malloc(STACK)) != NULL)
        sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = STACK }, NULL);
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < TRAPPED; i++)
        sigaction(trapped[i].number, &action, &trapped[i].before);
}

void guard_set_repair(guard_repair *by, void *user)
{
    repair = by;
    repair_user = user;
}

/* Runs a call; returns false if it faulted. */
static bool trap_run(struct call *call, const struct posenc_backend *backend,
                     enum posenc_status *status)
{
    sigjmp_buf here;
    sigjmp_buf *volatile outer = landing;
    if (sigsetjmp(here, 0)) {
        landing = outer;
        return false;
    }
    landing = &here;
    *status = call_run(call, backend);
    landing = outer;
    return true;
}

/* ---- Floating-point state ---- */

/* Floating-point state of a thread. Control: rounding mode, flush-to-zero, denormals-are-zero and exception masks.
 * Flags: the sticky exception flags. On x86 both are those of SSE; the upper half of `control` has the rounding mode
 * of the separate x87 unit. */
struct fp_state {
    uint64_t control;
    unsigned flags;
};

#if defined(__SSE__)
enum { CONTROL_BITS = 0xffc0, ALL_FLAGS = 0x3f };

static struct fp_state fp_state_get(void)
{
    const unsigned word = _mm_getcsr();
    return (struct fp_state){ (uint64_t)fegetround() << 32 | (word & CONTROL_BITS),
                              word & ALL_FLAGS };
}

static void fp_state_set(struct fp_state state)
{
    const unsigned other = _mm_getcsr() & ~(unsigned)(CONTROL_BITS | ALL_FLAGS);
    fesetround((int)(state.control >> 32));
    _mm_setcsr(other | (unsigned)state.control | state.flags);
}
#else
enum { ALL_FLAGS = FE_ALL_EXCEPT };

static struct fp_state fp_state_get(void)
{
    uint64_t control;
#if defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
#else
    control = (uint64_t)fegetround();
#endif
    return (struct fp_state){ control, (unsigned)fetestexcept(FE_ALL_EXCEPT) };
}

static void fp_state_set(struct fp_state state)
{
#if defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(state.control));
#else
    fesetround((int)state.control);
#endif
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept((int)state.flags);
}
#endif

/* Returns the state of a caller that rounds up, flushes to zero, traps division by zero and has raised all flags. */
static struct fp_state unusual_state(struct fp_state own)
{
    uint64_t control = own.control;
#if defined(__SSE__)
    control = (uint64_t)FE_UPWARD << 32 | ((uint32_t)control & ~0x6200u) | 0xc040u;
#elif defined(__aarch64__)
    control |= 1u << 24 | 1u << 22;
#elif defined(FE_UPWARD)
    control = FE_UPWARD;
#endif
    return (struct fp_state){ control, ALL_FLAGS };
}

/* Clears the direction flag and frees the registers that MMX shares with x87. Code here would fail if a kernel left
 * them set. */
static void restore_registers(void)
{
#if defined(__x86_64__)
    __asm__ volatile("cld\n\temms");
#endif
}

/* ---- Status for another process ---- */

static _Thread_local struct guard_status *thread_status;

void guard_set_status(struct guard_status *status) { thread_status = status; }

const struct problem *guard_last_problem(void)
{
    return thread_status ? &thread_status->problem : NULL;
}

static void set_inside(bool inside)
{
    if (!thread_status)
        return;
    thread_status->changes++;
    thread_status->inside = inside;
}

/* Copies positions if they fit, as another process cannot follow addresses. */
static void begin_call(const struct problem *p)
{
    struct guard_status *status = thread_status;
    const size_t n = p->positions ? (size_t)p->tokens : 0;
    if (!status)
        return;
    status->known = n <= GUARD_POSITIONS && !p->freqs.values && !p->freqs.short_factor &&
                    !p->freqs.long_factor;
    status->problem = *p;
    if (status->known && n > 0) {
        memcpy(status->positions, p->positions, n * sizeof *p->positions);
        status->problem.positions = status->positions;
    }
    set_inside(true);
}

void guard_pause(void) { set_inside(false); }
void guard_resume(void) { set_inside(true); }

void guard_set_other_threads(int threads)
{
    if (thread_status)
        thread_status->other_threads = threads;
}

/* ---- Guarded calls ---- */

/* Explanation of the status of this thread's call. */
static _Thread_local struct {
    bool given;
    enum guard_reason cause;
    char reason[GUARD_REASON];
} explanation;

void guard_explain(enum guard_reason cause, const char *format, ...)
{
    char text[sizeof explanation.reason];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    explanation.given = true;
    explanation.cause = cause;
    text_escape(text, explanation.reason, sizeof explanation.reason);
}

static void describe_state(struct guard_result *result, struct fp_state was, struct fp_state is)
{
    if (is.control != was.control)
        snprintf(result->reason, sizeof result->reason,
                 "floating-point control was %#llx, is %#llx", (unsigned long long)was.control,
                 (unsigned long long)is.control);
    else if (was.flags & ~is.flags)
        snprintf(result->reason, sizeof result->reason,
                 "raised floating-point exceptions were %#x, are %#x", was.flags, is.flags);
    result->control_left = result->reason[0];
}

static struct guard_result run_call(struct call *call, const struct posenc_backend *backend,
                                    struct guard *g, bool in_modes)
{
    struct guard_result result = { .status = POSENC_OK };
    guard_install();
    if (!guard_save(g))
        return (struct guard_result){ .status = POSENC_ERR_MEMORY, .reason = "out of memory" };
    const struct fp_state own = fp_state_get();
    if (in_modes)
        fp_state_set(unusual_state(own));
    const struct fp_state before = fp_state_get();
    begin_call(&call->problem);
    explanation.given = false;
    const bool returned = trap_run(call, backend, &result.status);
    restore_registers();
    set_inside(false);
    const struct fp_state after = fp_state_get();
    fp_state_set((struct fp_state){ own.control, in_modes ? own.flags : after.flags });
    if (returned) {
        describe_state(&result, before, after);
        if (result.status != POSENC_OK && explanation.given && !result.control_left) {
            result.cause = explanation.cause;
            memcpy(result.reason, explanation.reason, sizeof result.reason);
        }
    } else {
        result.crashed = true;
        result.address = fault_address;
        snprintf(result.reason, sizeof result.reason, "%s at address %p", fault_text,
                 (const void *)fault_address);
        guard_describe_fault(g, call, fault_text, &result);
    }
    guard_find_damage(g, call, &result);
    return result;
}

struct guard_result guard_run(struct call *call, const struct posenc_backend *backend,
                              struct guard *guard)
{
    return run_call(call, backend, guard, false);
}

struct guard_result guard_run_in_modes(struct call *call, const struct posenc_backend *backend,
                                       struct guard *guard)
{
    return run_call(call, backend, guard, true);
}
