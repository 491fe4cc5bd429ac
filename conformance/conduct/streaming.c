/*
 * Streaming stores without a fence: see streaming.h.
 */
#define _GNU_SOURCE
#include "streaming.h"
#include "around.h"

#include "conformance/problem/reserve.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
    __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#if defined(__x86_64__) && defined(__linux__) && !defined(HAS_SANITIZER)

#include <ucontext.h>

const char *streaming_unseen(void) { return NULL; }

/* ---- Instructions ---- */

enum instruction { OTHER, STREAMING_STORE, FENCE };

/* A byte of an opcode after 0f, with the byte after it. */
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

/* The opcode follows prefixes: none, of lock or others, of AVX or of AVX-512. */
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

/* Steps are costly: after some of them the page is closed once more, and they go on where that is next
 * touched, by a call that goes over its output again.  Little of the output lies on its last page. */
enum {
    STEPS = 10000,
    MOST_STEPS = 60000,
    ON_LAST_PAGE = 1024,
    TRAP_FLAG = 0x100,
    MAPS = LAYOUTS
};

struct run {
    struct streaming *result;
    struct map {
        char *begin;
        size_t bytes;
        bool output;
    } maps[MAPS];
    int n_maps;
    char *last;      /* page of an output that was touched last for the first time */
    bool from_there; /* it is where steps begin */
};

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static void set_trap_flag(bool on)
{
    const greg_t flag = TRAP_FLAG;
    ucontext_t *context = guard_context();
    greg_t *flags = &context->uc_mcontext.gregs[REG_EFL];
    *flags = on ? *flags | flag : *flags & ~flag;
}

static bool step(struct run *run, const void *at)
{
    struct streaming *s = run->result;
    const enum instruction what = instruction_at(at);
    s->stores += what == STREAMING_STORE;
    s->unfenced = what == STREAMING_STORE || (s->unfenced && what != FENCE);
    s->steps++;
    s->too_long = s->steps % STEPS == 0; /* unless it goes on */
    if (!s->too_long)
        return true;
    set_trap_flag(false);
    return s->steps >= MOST_STEPS || mprotect(run->last, page_size(), PROT_NONE) == 0;
}

/* The first touch of a page, or a step: the address is then that of the next instruction. */
static bool on_touch(void *user, const char *address)
{
    struct run *run = user;
    const size_t page = page_size();
    for (int i = 0; i < run->n_maps; i++) {
        const struct map *map = &run->maps[i];
        if (!map->output || address < map->begin || address >= map->begin + map->bytes)
            continue;
        run->last = map->begin + (size_t)(address - map->begin) / page * page;
        if (run->from_there)
            set_trap_flag(true);
        run->result->too_long = false;
        return mprotect(run->last, page, PROT_READ | PROT_WRITE) == 0;
    }
    const ucontext_t *context = guard_context();
    const bool stepped = context->uc_mcontext.gregs[REG_TRAPNO] == 1;
    return stepped && run->from_there && step(run, address);
}

static enum posenc_status call_stepped(void *user, any_kernel_function *kernel,
                                       const void *args)
{
    (void)user;
    const enum posenc_status status = kernel(args);
    __asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" : : : "cc", "memory");
    return status;
}

/* ---- Memory ---- */

/* From a boundary on. */
static void *map_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct run *run = user;
    const size_t page = page_size(), whole = (bytes + 2 * page) / page * page;
    (void)offset_bytes;
    char *begin = run->n_maps < MAPS ? reserve(whole) : NULL;
    if (!begin)
        return NULL;
    run->maps[run->n_maps++] = (struct map){ begin, whole, role != 'i' };
    return begin + (whole - page + ON_LAST_PAGE - bytes) / 64 * 64;
}

static void map_free(void *user, void *data) { (void)user, (void)data; }

static bool runs(struct run *run, struct call *call, const struct posenc_backend *backend)
{
    struct streaming *s = run->result;
    guard_mend_by(on_touch, run);
    const struct guarded g = guarded_run(call, backend, NULL);
    guard_mend_by(NULL, NULL);
    s->crashed = g.crashed;
    if (g.crashed || g.status != POSENC_OK)
        snprintf(s->text, sizeof s->text, "%s",
                 g.crashed ? g.reason : posenc_status_string(g.status));
    return !s->text[0];
}

static void protect_outputs(const struct run *run)
{
    for (int i = 0; i < run->n_maps; i++)
        if (run->maps[i].output)
            mprotect(run->maps[i].begin, run->maps[i].bytes, PROT_NONE);
}

void streaming_run(const struct subject *subject, const struct problem *problem,
                   struct streaming *s)
{
    struct run run = { .result = s };
    const struct memory memory = { .get = map_get, .free = map_free, .user = &run };
    struct problem p = *problem;
    struct call call;
    *s = (struct streaming){ .steps = 0 };
    p.in_place = p.accumulate = false;
    if (call_create_by(subject, &call, &p, &memory) == POSENC_OK) {
        const struct posenc_backend stepped =
            backend_around(subject->backend, call_stepped, NULL);
        protect_outputs(&run);
        if (runs(&run, &call, subject->backend) && run.last) {
            mprotect(run.last, page_size(), PROT_NONE);
            run.from_there = true;
            runs(&run, &call, &stepped);
        }
        call_destroy(&call);
    } else {
        snprintf(s->text, sizeof s->text, "the call was not made");
    }
    for (int i = 0; i < run.n_maps; i++)
        reserve_end(run.maps[i].begin, run.maps[i].bytes);
}

#else

const char *streaming_unseen(void)
{
#if defined(HAS_SANITIZER)
    return "a sanitizer's own instructions are among the kernel's";
#else
    return "stores of this CPU are all ordered before a release, or steps are not made here";
#endif
}

void streaming_run(const struct subject *subject, const struct problem *problem,
                   struct streaming *s)
{
    (void)subject, (void)problem;
    *s = (struct streaming){ .too_long = true };
}

#endif
