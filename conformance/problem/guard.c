/*
 * Guarded memory and guarded calls: see guard.h.
 */
#define _GNU_SOURCE
#include "guard.h"
#include "signature.h"
#include "storage.h"

#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* What lies farther out than the red zone a page that faults guards, at the other end. */
enum { SLOTS = LAYOUTS, RED_ZONE = 1024 };

/* A mapping [page that faults][capacity][page that faults], used again by call after call. */
struct slot {
    char *map;
    size_t capacity;
    char *data; /* NULL: no buffer */
    size_t bytes;
    char *from, *to;       /* the buffer and the red zones around it */
    unsigned char *shadow; /* what they held before the call */
    char role;
    bool sealed;
};

struct guard {
    enum guard_mode mode;
    size_t page;
    unsigned char pattern[RED_ZONE];
    struct slot slots[SLOTS];
};

/* for (EACH_SLOT(s, guard)): none of them where there is no guard. */
#define EACH_SLOT(s, guard)                                                                    \
    struct slot *s = (guard) ? (guard)->slots : NULL;                                          \
    s != NULL &&s < (guard)->slots + SLOTS;                                                    \
    s++

/* ---- Memory ---- */

struct guard *guard_create(void)
{
    struct guard *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < RED_ZONE; i++)
        g->pattern[i] = (unsigned char)mix64(0x6775617264, i);
    return g;
}

static void slot_release(struct guard *g, struct slot *s)
{
    if (s->map)
        munmap(s->map, s->capacity + 2 * g->page);
    free(s->shadow);
    memset(s, 0, sizeof *s);
}

void guard_destroy(struct guard *g)
{
    for (EACH_SLOT(s, g))
        slot_release(g, s);
    free(g);
}

static bool slot_map(struct guard *g, struct slot *s, size_t bytes)
{
    slot_release(g, s);
    size_t capacity = 16 * g->page;
    while (capacity < bytes + 64)
        capacity *= 2;
    char *map =
        mmap(NULL, capacity + 2 * g->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    s->map = map;
    s->capacity = capacity;
    s->shadow = malloc(capacity);
    if (!s->shadow || mprotect(map + g->page, capacity, PROT_READ | PROT_WRITE)) {
        slot_release(g, s);
        return false;
    }
    return true;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Writes the pattern all over the buffer, which fills the gaps between rows, and around it. */
static void slot_paint(const struct guard *g, struct slot *s)
{
    char *start = s->map + g->page, *end = start + s->capacity, *after = s->data + s->bytes;
    s->from = s->data - smaller((size_t)(s->data - start), RED_ZONE);
    s->to = after + smaller((size_t)(end - after), RED_ZONE);
    for (char *at = s->from; at < s->to; at += RED_ZONE)
        memcpy(at, g->pattern, smaller((size_t)(s->to - at), RED_ZONE));
}

static void slot_protect(const struct guard *g, struct slot *s, bool sealed)
{
    const int access = sealed ? PROT_READ : PROT_READ | PROT_WRITE;
    if (s->sealed != sealed && mprotect(s->map + g->page, s->capacity, access) == 0)
        s->sealed = sealed;
}

static void *guard_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct guard *g = user;
    struct slot *s = g->slots;
    while (s < g->slots + SLOTS && s->data)
        s++;
    if (s == g->slots + SLOTS || (s->capacity < bytes + 64 && !slot_map(g, s, bytes)))
        return NULL;
    char *start = s->map + g->page, *end = start + s->capacity;
    size_t offset = (size_t)offset_bytes & 63;
    s->data = g->mode == GUARD_START ? start + offset : end - bytes;
    if (g->mode == GUARD_END && offset)
        s->data -= ((uintptr_t)s->data - offset) & 63;
    s->bytes = bytes;
    s->role = role;
    slot_paint(g, s);
    return s->data;
}

static void guard_seal(void *user)
{
    struct guard *g = user;
    for (EACH_SLOT(s, g))
        if (s->data && s->role == 'i')
            slot_protect(g, s, true);
}

static void guard_free(void *user, void *data)
{
    struct guard *g = user;
    for (EACH_SLOT(s, g))
        if (s->data == data) {
            slot_protect(g, s, false);
            s->data = NULL;
        }
}

struct memory guard_memory(struct guard *g, enum guard_mode mode)
{
    g->mode = mode;
    return (struct memory){ guard_get, guard_seal, guard_free, g };
}

/* ---- Which tensor ---- */

/* Whether a tensor lies there: with negative strides its first element is not the first. */
static bool slot_holds(const struct slot *s, const void *data)
{
    const char *at = data;
    return at == s->data || (at > s->data && at < s->data + s->bytes);
}

static const char *slot_name(const struct slot *s, const struct call *c)
{
    for (EACH_TENSOR(row, signature_of(c->problem.kernel)))
        if (slot_holds(s, call_data(c, row)))
            return row->name;
    return "a buffer";
}

/* "3 bytes past its end", "4 bytes before its start", "at byte 8". */
static void describe_place(struct guarded *result, const struct slot *s, const struct call *c,
                           const char *verb, const char *at)
{
    const char *end = s->data + s->bytes, *name = slot_name(s, c);
    char *text = result->reason;
    const size_t size = sizeof result->reason;
    if (at >= end)
        snprintf(text, size, "%s %s, %td bytes past its end", verb, name, at - end);
    else if (at < s->data)
        snprintf(text, size, "%s %s, %td bytes before its start", verb, name, s->data - at);
    else
        snprintf(text, size, "%s %s at byte %td of %zu", verb, name, at - s->data, s->bytes);
}

/* ---- Faults ---- */

/* SIGTRAP: what a compiler emits for code that cannot go on is a breakpoint on ARM. */
static struct {
    int number;
    const char *text;
    struct sigaction before; /* whoever was asked before us */
} trapped[] = {
    { .number = SIGSEGV, .text = "SIGSEGV" },
    { .number = SIGBUS, .text = "SIGBUS" },
    { .number = SIGILL, .text = "SIGILL (an instruction this CPU lacks?)" },
    { .number = SIGFPE, .text = "SIGFPE" },
    { .number = SIGTRAP, .text = "SIGTRAP (a breakpoint)" },
};
enum { TRAPPED = sizeof trapped / sizeof trapped[0] };

static _Thread_local sigjmp_buf *landing;
static _Thread_local const char *volatile fault_text;
static _Thread_local const char *volatile fault_address;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (int i = 0; i < TRAPPED; i++) {
        if (trapped[i].number != number)
            continue;
        if (landing) {
            fault_text = trapped[i].text;
            fault_address = info->si_addr;
            siglongjmp(*landing, 1);
        }
        /* Not during a guarded call: the fault happens again under its former handler. */
        sigaction(number, &trapped[i].before, NULL);
    }
}

/* Once per process, and so after a sanitizer has put its own handlers in place at start-up. */
static void trap_install(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&done))
        return;
    static char stack[1 << 16];
    stack_t now, own = { .ss_sp = stack, .ss_size = sizeof stack };
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE))
        sigaltstack(&own, NULL);
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < TRAPPED; i++)
        sigaction(trapped[i].number, &action, &trapped[i].before);
}

/* False when the call faulted. */
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

/* ---- Floating-point control ---- */

/* Rounding mode, flush-to-zero, denormals-are-zero and exception masks; not the sticky flags.
 * On x86 the x87 unit, where fegetround() looks, rounds by a word of its own. */
static uint64_t control_get(void)
{
#if defined(__SSE__)
    return (uint64_t)fegetround() << 32 | (_mm_getcsr() & 0xffc0u);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
#else
    return (uint64_t)fegetround();
#endif
}

static void control_set(uint64_t control)
{
#if defined(__SSE__)
    fesetround((int)(control >> 32));
    _mm_setcsr((_mm_getcsr() & ~0xffc0u) | (unsigned)control);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    fesetround((int)control);
#endif
}

/* ---- Guarded calls ---- */

static void describe_fault(struct guarded *result, struct guard *g, const struct call *call)
{
    const char *at = fault_address;
    char verb[64];
    result->crashed = true;
    result->address = at;
    snprintf(result->reason, sizeof result->reason, "%s at address %p", fault_text,
             (const void *)at);
    for (EACH_SLOT(s, g)) {
        if (!s->data || at < s->map || at >= s->map + s->capacity + 2 * g->page)
            continue;
        result->input_written = s->sealed && at >= s->data && at < s->data + s->bytes;
        snprintf(verb, sizeof verb, "%s%s", fault_text,
                 result->input_written ? ": wrote to the input" : " at");
        describe_place(result, s, call, verb, at);
    }
}

/* Rows of outputs may have changed; nothing else in any buffer may, nor around it.  The first
 * byte that did, in the buffer if there is one, else after it; NULL: none. */
static const char *slot_damage(const struct slot *s, const struct call *call)
{
    for (int o = 0; o < call->n_outputs; o++) {
        const struct output *out = &call->outputs[o];
        const size_t bytes = (size_t)out->width * storage_size(out->tensor.dtype);
        for (int64_t r = 0; slot_holds(s, out->tensor.data) && r < out->rows; r++) {
            const char *row = storage_row(&out->tensor, r);
            memcpy(s->shadow + (row - s->from), row, bytes);
        }
    }
    const size_t n = (size_t)(s->to - s->from), before = (size_t)(s->data - s->from);
    if (memcmp(s->from, s->shadow, n) == 0)
        return NULL;
    size_t i = before;
    while (i < before + n && s->from[i % n] == (char)s->shadow[i % n])
        i++;
    return s->from + i % n;
}

/* ---- Notes for another process ---- */

static _Thread_local struct guard_note *noted;

void guard_note_to(struct guard_note *note) { noted = note; }

/* Addresses mean nothing elsewhere: positions are copied where they fit. */
static void note_begins(const struct problem *p)
{
    struct guard_note *note = noted;
    const size_t n = p->positions ? (size_t)p->tokens : 0;
    if (!note)
        return;
    note->known = n <= GUARD_POSITIONS && !p->freqs.values && !p->freqs.short_factor &&
                  !p->freqs.long_factor;
    note->problem = *p;
    if (note->known && n > 0) {
        memcpy(note->positions, p->positions, n * sizeof *p->positions);
        note->problem.positions = note->positions;
    }
    note->turn++;
    note->inside = true;
}

static void note_ends(void)
{
    if (!noted)
        return;
    noted->inside = false;
    noted->turn++;
}

struct guarded guarded_run(struct call *call, const struct posenc_backend *backend,
                           struct guard *g)
{
    struct guarded result = { .status = POSENC_OK };
    trap_install();
    for (EACH_SLOT(s, g))
        if (s->data)
            memcpy(s->shadow, s->from, (size_t)(s->to - s->from));
    uint64_t control = control_get();
    note_begins(&call->problem);
    bool returned = trap_run(call, backend, &result.status);
    note_ends();
    uint64_t left = control_get();
    control_set(control);
    if (!returned) {
        describe_fault(&result, g, call);
    } else if (left != control) {
        result.control_left = true;
        snprintf(result.reason, sizeof result.reason,
                 "floating-point control was %#llx, is %#llx", (unsigned long long)control,
                 (unsigned long long)left);
    }
    for (EACH_SLOT(s, g)) {
        const char *at = s->data ? slot_damage(s, call) : NULL;
        result.overwritten = result.overwritten || at;
        if (at && !result.reason[0])
            describe_place(&result, s, call, "wrote outside the rows of", at);
    }
    return result;
}
