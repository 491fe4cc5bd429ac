/*
 * Finds streaming stores without a fence by executing the end of a call instruction by instruction;
 * see side_effects.h. The call runs twice: the first run finds the page whose first touch comes last.
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

/* Classifies an instruction by the opcode after 0f, and the next byte. */
static enum instruction classify_0f(uint8_t opcode, uint8_t next)
{
    const bool memory = next < 0xc0;
    switch (opcode) {
    case 0x2b: /* movntps, movntpd */
    case 0xc3: /* movnti */
    case 0xe7: /* movntdq, movntq */
        return memory ? STREAMING_STORE : OTHER;
    case 0xf7: /* maskmovdqu, maskmovq */
        return memory ? OTHER : STREAMING_STORE;
    case 0xae: /* mfence, sfence */
        return next >= 0xf0 ? FENCE : OTHER;
    case 0x05: /* syscall */
    case 0xa2: /* cpuid */
        return FENCE;
    default:
        return OTHER;
    }
}

/* Skips prefixes (size, segment, REX, VEX, EVEX) to find the opcode, and classifies the instruction. A
 * locked one acts as a fence. */
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
    if ((at[0] == 0x86 || at[0] == 0x87) && at[1] < 0xc0) /* xchg with memory locks, too */
        return FENCE;
    int prefix = 0;
    if (at[0] == 0xc5)
        prefix = 2;
    else if (at[0] == 0xc4)
        prefix = 3;
    else if (at[0] == 0x62)
        prefix = 4;
    const uint8_t map = prefix == 2 ? MAP_0F : at[1] & (prefix == 3 ? 0x1f : 7);
    const uint8_t opcode = at[prefix];
    const bool stores = opcode == 0x2b || opcode == 0xe7 || opcode == 0xf7;
    return prefix && map == MAP_0F && stores ? classify_0f(opcode, at[prefix + 1]) : OTHER;
}

/* ---- Steps ---- */

/* Steps are slow. After SOME_STEPS the last page is closed once more, and steps go on at its next
 * touch, since a call may go over its output again. */
enum { SOME_STEPS = 10000, MOST_STEPS = 60000, TRAP_FLAG = 0x100, TRAP_STEP = 1 };

struct stepper {
    struct pages pages;
    char *last;           /* page of an output whose first touch came last */
    bool steps_from_last; /* true in the second run */
    unsigned long steps;
    bool unfenced; /* no fence has followed the last streaming store yet */
    bool too_long; /* the steps have ended before the call */
};

static bool close_last(const struct stepper *s)
{
    return mprotect(s->last, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) == 0;
}

/* Looks at the next instruction. The call stays too long until the steps go on. */
static bool take_step(struct stepper *s, const void *instruction, greg_t *flags)
{
    const enum instruction kind = classify(instruction);
    if (kind == STREAMING_STORE)
        s->unfenced = true;
    else if (kind == FENCE)
        s->unfenced = false;
    s->too_long = ++s->steps % SOME_STEPS == 0;
    if (!s->too_long)
        return true;
    *flags &= ~(greg_t)TRAP_FLAG;
    return s->steps >= MOST_STEPS || close_last(s);
}

/* Handles the first touch of a page, or a step, whose address is that of the next instruction; a
 * guard_repair. */
static bool on_touch_or_step(void *user, const char *address)
{
    struct stepper *s = user;
    greg_t *registers = ((ucontext_t *)guard_context())->uc_mcontext.gregs;
    char *opened = pages_open(&s->pages, address);
    if (!opened)
        return registers[REG_TRAPNO] == TRAP_STEP && s->steps_from_last &&
               take_step(s, address, &registers[REG_EFL]);
    s->last = opened;
    s->too_long = false;
    if (s->steps_from_last)
        registers[REG_EFL] |= TRAP_FLAG;
    return true;
}

static bool run_call(struct stepper *s, struct tally *t, struct call *call)
{
    guard_set_repair(on_touch_or_step, s);
    const struct guard_result g = guard_run(call, t->run->backend, NULL);
    __writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
    guard_set_repair(NULL, NULL);
    return require_clean(t, &g);
}

enum streaming streaming_check(struct tally *t, const struct problem *problem)
{
    struct stepper s = { .last = NULL };
    const struct memory memory = pages_memory(&s.pages);
    struct problem p = *problem;
    struct call call;
    p.in_place = p.accumulate = false;
    if (call_create_by(t->run->implementation, &call, &p, &memory) == POSENC_OK) {
        pages_close(&s.pages, false);
        if (run_call(&s, t, &call) && s.last) {
            s.steps_from_last = close_last(&s);
            run_call(&s, t, &call);
        }
        call_destroy(&call);
    } else {
        require(t, false, "the call was not made");
    }
    pages_free(&s.pages);
    if (s.too_long)
        return STREAMING_TOO_LONG;
    return s.unfenced ? STREAMING_UNFENCED : STREAMING_FENCED;
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

enum streaming streaming_check(struct tally *t, const struct problem *problem)
{
    (void)t, (void)problem;
    return STREAMING_TOO_LONG;
}

#endif
