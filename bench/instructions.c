/*
 * Counts instructions by the trap flag of x86 (see instructions.h): while it is set, the CPU raises SIGTRAP after each
 * instruction, and the handler counts those between the entry of the function and its return.
 */
#define _GNU_SOURCE
#include "instructions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Single steps ---- */

#if defined(__linux__) && defined(__x86_64__)

#include <errno.h>
#include <signal.h>
#include <ucontext.h>
#include <x86intrin.h>

enum { TRAP_FLAG = 0x100 };

struct steps {
    uintptr_t entry; /* address of the function */
    uint64_t max, n; /* instructions until counting is given up, and counted so far */
    enum { STEPS_BEFORE, STEPS_INSIDE, STEPS_RETURNED } state;
    uintptr_t return_address, stack; /* stack pointer on entry */
    uintptr_t last;                  /* address of the last instruction */
};

/* Returns true for a string instruction with a repeat prefix, which traps once for each repetition. Prefixes: 66 operand
 * size, F2 and F3 repeat, 40 to 4F REX. Opcodes: A4 to A7 MOVS and CMPS, AA to AF STOS, LODS and SCAS. */
static bool is_repeated(uintptr_t instruction)
{
    const unsigned char *code = (const unsigned char *)instruction;
    bool prefixed = false;
    for (; *code == 0x66 || *code == 0xf2 || *code == 0xf3 || (*code & 0xf0) == 0x40; code++)
        prefixed |= *code == 0xf2 || *code == 0xf3;
    return prefixed && ((*code >= 0xa4 && *code <= 0xa7) || (*code >= 0xaa && *code <= 0xaf));
}

/* Counts the instruction that runs next. Returns false after the last step. The call has returned only if its return
 * address is left from the stack: a recursive call reaches that address deeper. */
static bool count_step(struct steps *steps, uintptr_t next, uintptr_t stack)
{
    if (steps->state == STEPS_BEFORE && next == steps->entry) {
        steps->state = STEPS_INSIDE;
        steps->stack = stack;
        memcpy(&steps->return_address, (const void *)stack, sizeof steps->return_address);
    } else if (steps->state == STEPS_INSIDE && next == steps->return_address &&
               stack >= steps->stack) {
        steps->state = STEPS_RETURNED;
    }
    if (steps->state != STEPS_INSIDE)
        return steps->state == STEPS_BEFORE;
    if (next == steps->last && is_repeated(next))
        return true;
    steps->last = next;
    return ++steps->n <= steps->max;
}

static struct steps *volatile current_steps; /* of the handler; NULL: not counting */

/* Handler of SIGTRAP. Clears the trap flag after the last step. */
static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    const int error = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (!current_steps || !count_step(current_steps, (uintptr_t)registers[REG_RIP],
                                      (uintptr_t)registers[REG_RSP]))
        registers[REG_EFL] &= ~TRAP_FLAG;
    errno = error;
}

__attribute__((noinline)) static void run_trapped(const struct counted_call *call)
{
    __writeeflags(__readeflags() | TRAP_FLAG);
    ((void (*)(const void *, const void *))call->entry)(call->first, call->second);
    __writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
}

/* Runs the call with a handler of SIGTRAP, and restores signals after it. Returns as instructions_of_call(). */
static uint64_t count_steps(const struct counted_call *call, uint64_t max)
{
    struct steps steps = { .entry = (uintptr_t)call->entry, .max = max };
    struct sigaction action = { .sa_flags = SA_SIGINFO }, old_action;
    sigset_t trap, old_mask;
    action.sa_sigaction = on_trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    if (sigaction(SIGTRAP, &action, &old_action) != 0)
        return 0;
    pthread_sigmask(SIG_UNBLOCK, &trap, &old_mask);
    current_steps = &steps;
    run_trapped(call);
    current_steps = NULL;
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    sigaction(SIGTRAP, &old_action, NULL);
    return steps.state == STEPS_RETURNED || steps.n > max ? steps.n : 0;
}

/* Has four instructions: a test that the trap flag works, which some emulators ignore. */
__attribute__((naked)) static void four_instructions(void)
{
    __asm__("nop\n\tnop\n\tnop\n\tret");
}

#else

static uint64_t count_steps(const struct counted_call *call, uint64_t max)
{
    (void)call, (void)max;
    return 0;
}

static void four_instructions(void) {}

#endif

const char *instructions_method(void)
{
    static bool is_known, is_counted;
    const struct counted_call call = { four_instructions, NULL, NULL };
    if (!is_known)
        is_counted = count_steps(&call, INSTRUCTIONS_MOST) == 4;
    is_known = true;
    return is_counted ? "single step" : NULL;
}

uint64_t instructions_of_call(const struct counted_call *call, uint64_t max)
{
    return instructions_method() ? count_steps(call, max) : 0;
}

/* ---- Kernels ---- */

static int64_t elements_of(struct call *call)
{
    int64_t outputs = 0, inputs = 1;
    for (int o = 0; o < call->n_outputs; o++)
        outputs += call->outputs[o].rows * call->outputs[o].width;
    const struct posenc_tensor *x = call_x(call);
    for (int i = 0; x->data && i < x->rank; i++)
        inputs *= x->shape[i];
    return x->data && inputs > outputs ? inputs : outputs;
}

/* Allocator that places all tensors of a call in their order. With malloc() their order, and so the path through the
 * checks of overlap, would vary. */
struct tensor_block {
    char *next, *end;
};

enum { LINE = 64 }; /* bytes of a cache line */

static void *tensor_block_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct tensor_block *block = user;
    const size_t offset = (size_t)offset_bytes % LINE,
                 left = (size_t)(block->end - block->next);
    (void)role;
    if (!block->next || left < offset + 2 * LINE || bytes > left - offset - 2 * LINE)
        return NULL;
    char *data = block->next + offset;
    block->next += (offset + bytes + LINE - 1) / LINE * LINE + LINE;
    return data;
}

static void tensor_block_free(void *user, void *data) { (void)user, (void)data; }

/* Counts the second call on problem i, since the first includes one-time work. Returns false with a reason on failure. */
static bool count_problem(const struct implementation *implementation,
                          const struct problem *problem, int i,
                          struct kernel_instructions *result)
{
    struct call call;
    /* Twice the tensors and 64 KiB leave room for alignment. */
    const size_t size = (problem_memory(problem) * 2 + (1 << 16) + LINE - 1) / LINE * LINE;
    char *all = aligned_alloc(LINE, size);
    struct tensor_block block = { all, all ? all + size : NULL };
    const struct tensor_allocator memory = { .get = tensor_block_get,
                                             .free = tensor_block_free,
                                             .user = &block };
    enum posenc_status status = call_create_by(implementation, &call, problem, &memory);
    const struct counted_call counted = { implementation_entry(implementation, problem->kernel),
                                          implementation->backend, &call.args };
    if (!status) {
        result->elements[i] = elements_of(&call);
        status = call_run(&call, implementation->backend);
    }
    if (status)
        posenc_error_text(&call.error, result->reason, sizeof result->reason);
    else if ((result->instructions[i] = instructions_of_call(&counted, INSTRUCTIONS_MOST)) == 0)
        snprintf(result->reason, sizeof result->reason, "nothing counts instructions here");
    else if (result->instructions[i] > INSTRUCTIONS_MOST)
        snprintf(result->reason, sizeof result->reason,
                 "it takes more than %d instructions: too long to be counted",
                 INSTRUCTIONS_MOST);
    call_destroy(&call);
    free(all);
    return !*result->reason;
}

/* Chooses two realistic problems of some thousand elements, the first one larger. */
static void choose_problems(enum posenc_kernel kernel, enum posenc_dtype dtype,
                            enum posenc_numerics numerics, struct problem problems[2])
{
    enum { SMALL = 2048, LARGE = 4096, MOST = 1 << 20 };
    const size_t size = storage_size(dtype);
    problems[1] = problem_realistic(kernel, dtype, SMALL * size);
    for (size_t n = LARGE; n <= MOST; n *= 2) {
        problems[0] = problem_realistic(kernel, dtype, n * size);
        if (problem_working_set(&problems[0]) > problem_working_set(&problems[1]))
            break;
    }
    for (int i = 0; i < 2 && kernel_has_freqs(kernel); i++)
        problems[i].freqs.numerics = numerics;
}

size_t instructions_numerics(enum posenc_kernel kernel, enum posenc_numerics modes[2])
{
    modes[0] = POSENC_NUMERICS_EXACT;
    modes[1] = POSENC_NUMERICS_HF_F32;
    return kernel_has_freqs(kernel) && strcmp(kernel_stage(kernel), "table") == 0 ? 2 : 1;
}

bool instructions_of_kernel(const struct implementation *implementation,
                            enum posenc_kernel kernel, enum posenc_dtype dtype,
                            enum posenc_numerics numerics, struct kernel_instructions *result)
{
    struct problem problems[2];
    choose_problems(kernel, dtype, numerics, problems);
    *result = (struct kernel_instructions){ .problem = problems[0] };
    for (int i = 0; i < 2; i++)
        if (!count_problem(implementation, &problems[i], i, result))
            return false;
    const int64_t elements = result->elements[0] - result->elements[1];
    const double instructions =
        (double)result->instructions[0] - (double)result->instructions[1];
    result->per_element = elements > 0 ? instructions / (double)elements : 0.0;
    result->per_call =
        (double)result->instructions[1] - result->per_element * (double)result->elements[1];
    return true;
}
