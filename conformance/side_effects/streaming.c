/*
 * Finds streaming stores without a fence, instruction by instruction.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && !defined(POSENC_SANITIZED)

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

const char *streaming_unseen(void) { return NULL; }

/* ---- Instructions ---- */

enum instruction { OTHER, STREAMING_STORE, FENCE };

/* Classifies an opcode after 0f by it and the next byte. */
static enum instruction of_0f(uint8_t opcode, uint8_t next)
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

/* Skips prefixes (of locks, AVX or AVX-512) to find the opcode. */
static enum instruction instruction_at(const uint8_t *at)
{
    static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3, 0x2e, 0x36,
                                        0x3e, 0x26, 0x64, 0x65, 0x67 };
    enum { MAP_0F = 1 };
    while (memchr(prefixes, *at, sizeof prefixes))
        at++;
    if (*at == 0xf0)
        return FENCE;
    if ((*at & 0xf0) == 0x40)
        at++;
    if (at[0] == 0x0f && at[1] == 0x38) /* movdir64b, movdiri */
        return at[2] == 0xf8 || at[2] == 0xf9 ? STREAMING_STORE : OTHER;
    if (at[0] == 0x0f)
        return of_0f(at[1], at[2]);
    if ((at[0] == 0x86 || at[0] == 0x87) && at[1] < 0xc0) /* xchg with memory locks, too */
        return FENCE;
    const int vex = at[0] == 0xc5 ? 2 : at[0] == 0xc4 ? 3 : at[0] == 0x62 ? 4 : 0;
    const uint8_t map = vex == 2 ? MAP_0F : vex == 3 ? at[1] & 0x1f : at[1] & 7;
    const uint8_t opcode = at[vex];
    const bool stores = opcode == 0x2b || opcode == 0xe7 || opcode == 0xf7;
    return vex && map == MAP_0F && stores ? of_0f(opcode, at[vex + 1]) : OTHER;
}

/* ---- Steps ---- */

/* Steps are slow.  After STEPS of them the page is closed once more, and they go on at its next
 * touch: a call may go over its output again. */
enum { STEPS = 10000, MOST_STEPS = 60000, TRAP_FLAG = 0x100 };

struct run {
    struct streaming *result;
    struct pages pages;
    char *last;      /* the page of an output whose first touch came last */
    bool from_there; /* steps begin there */
};

static bool close_last(const struct run *run)
{
    return mprotect(run->last, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) == 0;
}

static bool step(struct run *run, const void *at, greg_t *flags)
{
    struct streaming *s = run->result;
    const enum instruction what = instruction_at(at);
    s->unfenced = what == STREAMING_STORE || (s->unfenced && what != FENCE);
    s->steps++;
    s->too_long = s->steps % STEPS == 0; /* until it goes on */
    if (!s->too_long)
        return true;
    *flags &= ~(greg_t)TRAP_FLAG;
    return s->steps >= MOST_STEPS || close_last(run);
}

/* Handles the first touch of a page, or a step; then the address is that of the next instruction. */
static bool on_touch(void *user, const char *address)
{
    struct run *run = user;
    greg_t *registers = ((ucontext_t *)guard_context())->uc_mcontext.gregs;
    char *opened = pages_open(&run->pages, address);
    if (!opened)
        return registers[REG_TRAPNO] == 1 && run->from_there &&
               step(run, address, &registers[REG_EFL]);
    run->last = opened;
    run->result->too_long = false;
    if (run->from_there)
        registers[REG_EFL] |= TRAP_FLAG;
    return true;
}

static bool runs(struct run *run, struct call *call, const struct posenc_backend *backend)
{
    struct streaming *s = run->result;
    guard_set_repair(on_touch, run);
    const struct guarded g = guarded_run(call, backend, NULL);
    __writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
    guard_set_repair(NULL, NULL);
    s->crashed = g.crashed;
    if (g.crashed || g.status != POSENC_OK)
        snprintf(s->text, sizeof s->text, "%s",
                 g.crashed ? g.reason : posenc_status_string(g.status));
    return !s->text[0];
}

void streaming_run(const struct implementation *implementation, const struct problem *problem,
                   struct streaming *s)
{
    struct run run = { .result = s };
    const struct memory memory = pages_memory(&run.pages);
    struct problem p = *problem;
    struct call call;
    *s = (struct streaming){ .steps = 0 };
    p.in_place = p.accumulate = false;
    if (call_create_by(implementation, &call, &p, &memory) == POSENC_OK) {
        pages_close(&run.pages, false);
        if (runs(&run, &call, implementation->backend) && run.last) {
            run.from_there = close_last(&run);
            runs(&run, &call, implementation->backend);
        }
        call_destroy(&call);
    } else {
        snprintf(s->text, sizeof s->text, "the call was not made");
    }
    pages_free(&run.pages);
}

#else

const char *streaming_unseen(void)
{
#if defined(POSENC_SANITIZED)
    return "a sanitizer's own instructions are among the kernel's";
#else
    return "stores of this CPU are all ordered before a release, or steps are not made here";
#endif
}

void streaming_run(const struct implementation *implementation, const struct problem *problem,
                   struct streaming *s)
{
    (void)implementation, (void)problem;
    *s = (struct streaming){ .too_long = true };
}

#endif
