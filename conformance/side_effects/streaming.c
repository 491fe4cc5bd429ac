/*
 * Finds streaming stores without a fence by single-stepping the end of a call; see side_effects.h. The call runs
 * twice. The first run finds the output page whose first access comes last; the second run is stepped from the access
 * to that page on.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && !defined(POSENC_SANITIZED)

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

const char *streaming_unavailable_reason(void) { return NULL; }

/* ---- Instructions ---- */

enum instruction { OTHER, STREAMING_STORE, FENCE };

/* Classifies an instruction of opcode map 0f by its opcode and its ModRM byte. */
static enum instruction classify_0f(uint8_t opcode, uint8_t modrm)
{
    const bool has_memory_operand = modrm < 0xc0;
    switch (opcode) {
    case 0x2b: /* movntps, movntpd */
    case 0xc3: /* movnti */
    case 0xe7: /* movntdq, movntq */
        return has_memory_operand ? STREAMING_STORE : OTHER;
    case 0xf7: /* maskmovdqu, maskmovq */
        return has_memory_operand ? OTHER : STREAMING_STORE;
    case 0xae: /* mfence, sfence */
        return modrm >= 0xf0 ? FENCE : OTHER;
    case 0x05: /* syscall */
    case 0xa2: /* cpuid */
        return FENCE;
    default:
        return OTHER;
    }
}

/* Classifies the instruction at an address. Skips prefixes (size, segment, REX, VEX, EVEX) to find the opcode.
 * Instructions with a lock prefix act as fences. */
static enum instruction classify(const uint8_t *at)
{
    static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3, 0x2e, 0x36,
                                        0x3e, 0x26, 0x64, 0x65, 0x67 };
    enum { MAP_0F = 1 };
    while (memchr(prefixes, *at, sizeof prefixes))
        at++;
    if (*at == 0xf0) /* lock */
        return FENCE;
    if ((*at & 0xf0) == 0x40) /* REX */
        at++;
    if (at[0] == 0x0f && at[1] == 0x38) /* movdir64b, movdiri */
        return at[2] == 0xf8 || at[2] == 0xf9 ? STREAMING_STORE : OTHER;
    if (at[0] == 0x0f)
        return classify_0f(at[1], at[2]);
    if ((at[0] == 0x86 || at[0] == 0x87) && at[1] < 0xc0) /* xchg with memory always locks */
        return FENCE;
    enum { NO_VEX = 0, VEX2 = 2, VEX3 = 3, EVEX = 4 } vex_bytes = NO_VEX;
    if (at[0] == 0xc5)
        vex_bytes = VEX2;
    else if (at[0] == 0xc4)
        vex_bytes = VEX3;
    else if (at[0] == 0x62)
        vex_bytes = EVEX;
    const uint8_t map = vex_bytes == VEX2 ? MAP_0F : at[1] & (vex_bytes == VEX3 ? 0x1f : 7);
    const uint8_t opcode = at[vex_bytes];
    const bool may_stream = opcode == 0x2b || opcode == 0xe7 || opcode == 0xf7;
    return vex_bytes != NO_VEX && map == MAP_0F && may_stream
               ? classify_0f(opcode, at[vex_bytes + 1])
               : OTHER;
}

/* ---- Steps ---- */

/* Single steps are slow, so they pause after STEPS_BETWEEN_ACCESSES. The last page is then armed once more, and its
 * next access resumes the steps, because a call may pass over its output again. */
enum { STEPS_BETWEEN_ACCESSES = 10000, MAX_STEPS = 60000, TRAP_FLAG = 0x100, TRAP_STEP = 1 };

struct stepper {
    struct trap_pages pages;
    char *last_page; /* output page whose first access came last */
    bool is_second_run;
    unsigned long steps;
    bool unfenced; /* no fence has followed the last streaming store yet */
    bool paused;   /* between two accesses; at the end of the call: its end is unknown */
};

static bool arm_last_page(const struct stepper *s)
{
    return mprotect(s->last_page, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) == 0;
}

/* Examines the next instruction, and pauses the steps if there were many. */
static bool on_step(struct stepper *s, const void *instruction, greg_t *flags)
{
    const enum instruction kind = classify(instruction);
    if (kind == STREAMING_STORE)
        s->unfenced = true;
    else if (kind == FENCE)
        s->unfenced = false;
    s->paused = ++s->steps % STEPS_BETWEEN_ACCESSES == 0;
    if (!s->paused)
        return true;
    *flags &= ~(greg_t)TRAP_FLAG;
    return s->steps >= MAX_STEPS || arm_last_page(s);
}

/* Handles an access to an armed page, or a step, for which `address` is that of the next instruction; a
 * guard_repair. */
static bool on_access_or_step(void *user, const char *address)
{
    struct stepper *s = user;
    greg_t *registers = ((ucontext_t *)guard_context())->uc_mcontext.gregs;
    char *page = trap_pages_disarm(&s->pages, address);
    if (!page)
        return registers[REG_TRAPNO] == TRAP_STEP && s->is_second_run &&
               on_step(s, address, &registers[REG_EFL]);
    s->last_page = page;
    s->paused = false;
    if (s->is_second_run)
        registers[REG_EFL] |= TRAP_FLAG;
    return true;
}

static bool run_call(struct stepper *s, struct tally *t, struct call *call)
{
    guard_set_repair(on_access_or_step, s);
    const struct guard_result g = guard_run(call, t->run->backend, NULL);
    __writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
    guard_set_repair(NULL, NULL);
    return require_clean(t, &g);
}

enum fence_verdict streaming_find_fence(struct tally *t, const struct problem *problem)
{
    struct stepper s = { .last_page = NULL };
    const struct tensor_allocator memory = trap_pages_memory(&s.pages);
    struct problem p = *problem;
    struct call call;
    p.in_place = p.accumulate = false;
    if (call_create_by(t->run->implementation, &call, &p, &memory) == POSENC_OK) {
        if (trap_pages_arm(&s.pages, false) && run_call(&s, t, &call) && s.last_page) {
            s.is_second_run = arm_last_page(&s);
            run_call(&s, t, &call);
        }
        if (!s.is_second_run)
            require(t, false, "no access to an output could be watched");
        call_destroy(&call);
    } else {
        require(t, false, "the call was not made");
    }
    trap_pages_free(&s.pages);
    if (s.paused)
        return FENCE_UNKNOWN;
    return s.unfenced ? FENCE_MISSING : FENCE_PRESENT;
}

#else

const char *streaming_unavailable_reason(void)
{
#if defined(POSENC_SANITIZED)
    return "a sanitizer's own instructions are among the kernel's";
#else
    return "stores of this CPU are all ordered before a release, or steps are not made here";
#endif
}

enum fence_verdict streaming_find_fence(struct tally *t, const struct problem *problem)
{
    (void)t, (void)problem;
    return FENCE_UNKNOWN;
}

#endif
