/*
 * Counts the instructions of a call by the trap flag of x86, and those of a kernel.
 */
#define _GNU_SOURCE
#include "instructions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Single steps ---- */

#if defined(__linux__) && defined(__x86_64__)

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>
#include <x86intrin.h>

enum { TRAP_FLAG = 0x100, HANDLER_STACK = 256 << 10 };

struct range {
    uintptr_t begin, end;
};

struct steps {
    uintptr_t entry;
    struct range code[2]; /* that counts as the library's */
    uint64_t most, inside, outside;
    enum { STEPS_BEFORE, STEPS_INSIDE, STEPS_RETURNED, STEPS_TOO_MANY } state;
    uintptr_t back, stack; /* where the function returns to, and its stack on entry */
    uintptr_t last;
};

static bool is_within(const struct range *range, uintptr_t address)
{
    return address >= range->begin && address < range->end;
}

/* Finds the segment of code that has the address range->begin; a callback of dl_iterate_phdr(). */
static int find_code(struct dl_phdr_info *object, size_t size, void *user)
{
    struct range *range = user;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + header->p_vaddr;
        const struct range code = { begin, begin + header->p_memsz };
        if (header->p_type == PT_LOAD && is_within(&code, range->begin)) {
            *range = code;
            return 1;
        }
    }
    return 0;
}

/* Returns whether this is a string instruction with a repeat prefix, which traps once for each time. */
static bool repeats(uintptr_t at)
{
    const unsigned char *code = (const unsigned char *)at;
    bool prefixed = false;
    for (; *code == 0x66 || *code == 0xf2 || *code == 0xf3 || (*code & 0xf0) == 0x40; code++)
        prefixed |= *code == 0xf2 || *code == 0xf3;
    return prefixed && ((*code >= 0xa4 && *code <= 0xa7) || (*code >= 0xaa && *code <= 0xaf));
}

/* Takes the instruction at `at`, which runs next.  Returns false if no more steps are wanted. */
static bool take_step(struct steps *steps, uintptr_t at, uintptr_t stack)
{
    if (steps->state == STEPS_BEFORE && at == steps->entry) {
        steps->state = STEPS_INSIDE;
        steps->stack = stack;
        memcpy(&steps->back, (const void *)stack, sizeof steps->back);
    } else if (steps->state == STEPS_INSIDE && at == steps->back && stack >= steps->stack) {
        steps->state = STEPS_RETURNED;
    }
    if (steps->state != STEPS_INSIDE)
        return steps->state == STEPS_BEFORE;
    if (at == steps->last && repeats(at))
        return true;
    steps->last = at;
    if (is_within(&steps->code[0], at) || is_within(&steps->code[1], at))
        steps->inside++;
    else
        steps->outside++;
    if (steps->inside + steps->outside > steps->most)
        steps->state = STEPS_TOO_MANY;
    return steps->state == STEPS_INSIDE;
}

static struct steps *volatile stepped;

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    const int error = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (!stepped ||
        !take_step(stepped, (uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP]))
        registers[REG_EFL] &= ~TRAP_FLAG;
    errno = error;
}

__attribute__((noinline)) static void run_trapped(const struct counted_call *call)
{
    __writeeflags(__readeflags() | TRAP_FLAG);
    ((void (*)(const void *, const void *))call->entry)(call->first, call->second);
    __writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
}

/* Runs the call with a handler of SIGTRAP on a stack of its own, and puts everything back after. */
static bool run_steps(const struct counted_call *call, struct steps *steps)
{
    stack_t stack = { .ss_sp = malloc(HANDLER_STACK), .ss_size = HANDLER_STACK }, old_stack;
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK }, old_action;
    sigset_t trap, old_mask;
    action.sa_sigaction = on_trap;
    sigemptyset(&action.sa_mask);
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    if (!stack.ss_sp || sigaltstack(&stack, &old_stack) != 0) {
        free(stack.ss_sp);
        return false;
    }
    if (sigaction(SIGTRAP, &action, &old_action) == 0) {
        pthread_sigmask(SIG_UNBLOCK, &trap, &old_mask);
        stepped = steps;
        run_trapped(call);
        stepped = NULL;
        pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
        sigaction(SIGTRAP, &old_action, NULL);
    }
    sigaltstack(&old_stack, NULL);
    free(stack.ss_sp);
    return steps->state == STEPS_RETURNED || steps->state == STEPS_TOO_MANY;
}

static bool count_steps(const struct counted_call *call, uintptr_t other, uint64_t most,
                        struct call_instructions *count)
{
    struct steps steps = { .entry = (uintptr_t)call->entry, .most = most };
    steps.code[0].begin = steps.entry;
    steps.code[1].begin = other;
    for (int i = 0; i < 2; i++)
        if (steps.code[i].begin && !dl_iterate_phdr(find_code, &steps.code[i]))
            return false;
    if (!run_steps(call, &steps))
        return false;
    count->instructions = steps.inside;
    count->outside = steps.outside;
    if (steps.state == STEPS_TOO_MANY)
        snprintf(count->why, sizeof count->why,
                 "it takes more than %" PRIu64 " instructions: too long to be counted", most);
    return true;
}

/* Takes PROBE_INSTRUCTIONS.  An emulator that ignores the trap flag does not count them right. */
enum { PROBE_INSTRUCTIONS = 4 };
__attribute__((naked)) static void probe(void) { __asm__("nop\n\tnop\n\tnop\n\tret"); }

static bool counts_the_probe(void)
{
    const struct counted_call call = { probe, NULL, NULL };
    struct call_instructions count = { .by = NULL };
    return count_steps(&call, 0, INSTRUCTIONS_MOST, &count) &&
           count.instructions == PROBE_INSTRUCTIONS && count.outside == 0;
}

#else

static bool count_steps(const struct counted_call *call, uintptr_t other, uint64_t most,
                        struct call_instructions *count)
{
    (void)call, (void)other, (void)most, (void)count;
    return false;
}

static bool counts_the_probe(void) { return false; }

#endif

const char *instructions_method(void)
{
    static int known; /* 1: they are counted here, -1: they are not */
    if (known == 0)
        known = counts_the_probe() ? 1 : -1;
    return known > 0 ? "single step" : NULL;
}

struct call_instructions instructions_of_call(const struct counted_call *call, uintptr_t other,
                                              uint64_t most)
{
    struct call_instructions count = { .by = NULL };
    if (!instructions_method())
        snprintf(count.why, sizeof count.why, "nothing counts instructions here");
    else if (!count_steps(call, other, most, &count))
        snprintf(count.why, sizeof count.why,
                 "the call did not return, or lies in code that no loader knows");
    else if (!count.why[0])
        count.by = instructions_method();
    return count;
}

/* ---- Kernels ---- */

static int64_t elements_of(const struct call *call)
{
    int64_t out = 0, x = 1;
    for (int o = 0; o < call->n_outputs; o++)
        out += call->outputs[o].rows * call->outputs[o].width;
    const struct posenc_tensor *tensor = call_x((struct call *)(uintptr_t)call);
    for (int i = 0; tensor->data && i < tensor->rank; i++)
        x *= tensor->shape[i];
    return tensor->data && x > out ? x : out;
}

/* Memory for all tensors of a call, in the order in which they are asked for.  With malloc() their
 * order would vary, and with it the path through the checks of overlap. */
struct block {
    char *memory;
    size_t used, size;
};

enum { LINE = 64 };

static void *block_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct block *block = user;
    const size_t offset = (size_t)offset_bytes % LINE,
                 all = (offset + bytes + LINE - 1) / LINE * LINE + LINE;
    (void)role;
    if (!block->memory || all < bytes || all > block->size - block->used)
        return NULL;
    block->used += all;
    return block->memory + block->used - all + offset;
}

static void block_free(void *user, void *data)
{
    (void)user;
    (void)data;
}

/* Counts the second call on a problem: the first one does what is done once. */
static bool count_problem(const struct implementation *implementation,
                          const struct problem *problem, int64_t *elements,
                          struct call_instructions *count)
{
    struct call call;
    const size_t size = (problem_memory(problem) * 2 + (1 << 16) + LINE - 1) / LINE * LINE;
    struct block block = { aligned_alloc(LINE, size), 0, size };
    const struct memory memory = { .get = block_get, .free = block_free, .user = &block };
    *count = (struct call_instructions){ .by = NULL };
    enum posenc_status status = call_create_by(implementation, &call, problem, &memory);
    const struct counted_call counted = { implementation_entry(implementation, problem->kernel),
                                          implementation->backend, &call.args };
    if (!status) {
        *elements = elements_of(&call);
        status = call_run(&call, implementation->backend);
    }
    if (status)
        posenc_error_text(&call.error, count->why, sizeof count->why);
    else
        *count = instructions_of_call(
            &counted, (uintptr_t)backend_entry(implementation->backend, problem->kernel),
            INSTRUCTIONS_MOST);
    call_destroy(&call);
    free(block.memory);
    return count->by;
}

/* Chooses two realistic problems of some thousand elements, the first one larger. */
static void choose_problems(enum posenc_kernel kernel, enum posenc_dtype dtype,
                            enum posenc_profile profile, struct problem problems[2])
{
    enum { SMALL = 2048, LARGE = 4096, MOST = 1 << 20 };
    const size_t size = storage_size(dtype);
    problems[1] = problem_realistic(kernel, dtype, SMALL * size);
    for (size_t n = LARGE; n <= MOST; n *= 2) {
        problems[0] = problem_realistic(kernel, dtype, n * size);
        if (problem_working_set(&problems[0]) > problem_working_set(&problems[1]))
            break;
    }
    for (int i = 0; i < 2; i++)
        if (kernel_has_freqs(kernel))
            problems[i].freqs.profile = profile;
}

size_t instructions_profiles(enum posenc_kernel kernel, enum posenc_profile profiles[2])
{
    profiles[0] = POSENC_EXACT;
    profiles[1] = POSENC_HF_F32;
    return kernel_has_freqs(kernel) && strcmp(kernel_stage(kernel), "table") == 0 ? 2 : 1;
}

bool instructions_of_kernel(const struct implementation *implementation,
                            enum posenc_kernel kernel, enum posenc_dtype dtype,
                            enum posenc_profile profile, struct kernel_instructions *to)
{
    struct problem problems[2];
    *to = (struct kernel_instructions){ .per_call = 0.0 };
    choose_problems(kernel, dtype, profile, problems);
    to->problem = problems[0];
    for (int i = 0; i < 2; i++)
        if (!count_problem(implementation, &problems[i], &to->elements[i], &to->call[i])) {
            memcpy(to->why, to->call[i].why, sizeof to->why);
            return false;
        }
    const int64_t more = to->elements[0] - to->elements[1];
    const double steps = (double)to->call[0].instructions - (double)to->call[1].instructions;
    to->per_element = more > 0 ? steps / (double)more : 0.0;
    to->per_call = (double)to->call[1].instructions - to->per_element * (double)to->elements[1];
    return true;
}
