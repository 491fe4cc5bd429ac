/*
 * What a step adds (see steps.h); single steps of this very process, by the trap flag of x86.
 *
 * The flag makes the CPU trap after each instruction: SIGTRAP comes with the address of the next
 * one.  Nothing else of the process is touched: the handler has a stack of its own, runs without
 * the flag, and what it replaced is put back.  It is called from one thread at a time.
 */
#define _GNU_SOURCE
#include "steps.h"
#include "marks.h"

#include <string.h>

/* A step within a function that is not reached after so many is not coming. */
enum { MOST_BEFORE = 20000 };

#if defined(__x86_64__)
/* Whether it is a string instruction that repeats itself, which traps once for each time. */
static bool repeats(uintptr_t at)
{
    const unsigned char *code = (const unsigned char *)at;
    bool prefixed = false;
    for (; *code == 0x66 || *code == 0xf2 || *code == 0xf3 || (*code & 0xf0) == 0x40; code++)
        prefixed |= *code == 0xf2 || *code == 0xf3;
    return prefixed && ((*code >= 0xa4 && *code <= 0xa7) || (*code >= 0xaa && *code <= 0xaf));
}
#else
static bool repeats(uintptr_t at)
{
    (void)at;
    return false;
}
#endif

static void add(struct steps *steps, uintptr_t at)
{
    if (at == steps->last && repeats(at))
        return;
    steps->last = at;
    for (int i = 0; i < STEPS_TEXTS; i++)
        if (steps->times[i] && is_within(&steps->text[i], at)) {
            steps->times[i][at - steps->text[i].begin]++;
            steps->inside++;
            return;
        }
    steps->outside++;
}

bool steps_take(struct steps *steps, uintptr_t at, uintptr_t stack,
                bool (*back)(void *user, uintptr_t *to), void *user)
{
    if (steps->state == STEPS_BEFORE && at == steps->entry && back(user, &steps->back)) {
        steps->state = STEPS_INSIDE;
        steps->stack = stack;
    } else if (steps->state == STEPS_INSIDE && at == steps->back && stack >= steps->stack) {
        steps->state = STEPS_RETURNED;
    }
    if (steps->state == STEPS_INSIDE)
        add(steps, at);
    else if (steps->state == STEPS_BEFORE)
        steps->before++;
    if (steps->inside + steps->outside > steps->most || steps->before > MOST_BEFORE)
        steps->state = STEPS_TOO_MANY;
    return steps->state == STEPS_BEFORE || steps->state == STEPS_INSIDE;
}

#if defined(__linux__) && defined(__x86_64__)

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <x86intrin.h>

enum { TRAP_FLAG = 0x100, HANDLER_STACK = 256 << 10 };

static struct steps *volatile stepped;

/* At the first instruction of a function the word that it returns to is on top of its stack. */
static bool top_of_stack(void *stack, uintptr_t *to)
{
    memcpy(to, stack, sizeof *to);
    return true;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    const int error = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uintptr_t stack = (uintptr_t)registers[REG_RSP];
    if (!stepped ||
        !steps_take(stepped, (uintptr_t)registers[REG_RIP], stack, top_of_stack, (void *)stack))
        registers[REG_EFL] &= ~TRAP_FLAG;
    errno = error;
}

/* A debugger takes the traps for its own. */
static bool is_traced(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    int tracer = 0;
    while (file && tracer == 0 && fgets(line, sizeof line, file))
        (void)sscanf(line, "TracerPid: %d",
                     &tracer); // NOLINT(cert-err34-c): 0 where it is none
    if (file)
        fclose(file);
    return tracer != 0;
}

__attribute__((noinline)) static void run(const struct counted_call *call)
{
    __writeeflags(__readeflags() | TRAP_FLAG);
    bench_between_marks(call->entry, call->first, call->second);
    __writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
}

bool steps_by_trap_flag(const struct counted_call *call, struct steps *steps)
{
    stack_t stack = { .ss_sp = malloc(HANDLER_STACK), .ss_size = HANDLER_STACK }, old_stack;
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK }, old_action;
    sigset_t trap, old_mask;
    action.sa_sigaction = on_trap;
    sigemptyset(&action.sa_mask);
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    if (is_traced() || !stack.ss_sp || sigaltstack(&stack, &old_stack) != 0) {
        free(stack.ss_sp);
        return false;
    }
    if (sigaction(SIGTRAP, &action, &old_action) == 0) {
        pthread_sigmask(SIG_UNBLOCK, &trap, &old_mask);
        stepped = steps;
        run(call);
        stepped = NULL;
        pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
        sigaction(SIGTRAP, &old_action, NULL);
    }
    sigaltstack(&old_stack, NULL);
    free(stack.ss_sp);
    return steps->state != STEPS_BEFORE;
}

#else

bool steps_by_trap_flag(const struct counted_call *call, struct steps *steps)
{
    (void)call;
    (void)steps;
    return false;
}

#endif
