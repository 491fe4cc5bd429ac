/* Guarded calls; see guard.h. */
#define _GNU_SOURCE
#include "guard_slots.h"
#include "signature.h"
#include "storage.h"

#include <errno.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#elif defined(__SSE__)
#include <xmmintrin.h>
#endif

/* ---- Names of tensors ---- */

/* Returns true if a tensor lies in the slot. With negative strides, its first element is inside. */
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

/* Writes, for example, "3 bytes past its end", "4 bytes before its start" or "at byte 8". */
static void describe_address(struct guarded *result, const struct slot *s, const struct call *c,
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

static _Thread_local sigjmp_buf *landing; /* in the current guarded call; or NULL */
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

/* Runs at the first guarded call, and so after a sanitizer has installed its own handlers. */
void guard_install(void)
{
    static atomic_bool done;
    if (atomic_load(&done) || atomic_exchange(&done, true))
        return;
    /* Allocated, because static memory is write-protected at times (side_effects/statics.c). */
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

/* Returns false if the call faulted. */
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

/* Returns the rounding mode, flush-to-zero, denormals-are-zero and exception masks, without the
 * sticky flags. On x86, fegetround() reads the separate control word of the x87 unit. */
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

/* Returns a caller's control word that rounds up, flushes to zero and traps division by zero. */
static uint64_t unusual_control(uint64_t control)
{
#if defined(__SSE__)
    const uint32_t word = (uint32_t)control;
    return (uint64_t)FE_UPWARD << 32 | (word & ~0x6200u) | 0xc040u;
#elif defined(__aarch64__)
    return control | 1u << 24 | 1u << 22;
#elif defined(FE_UPWARD)
    (void)control;
    return FE_UPWARD;
#else
    return control;
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

/* Returns the exception flags that kernels can see: on x86 those of SSE alone. */
static unsigned flags_get(void)
{
#if defined(__SSE__)
    return _mm_getcsr() & 0x3fu;
#else
    return (unsigned)fetestexcept(FE_ALL_EXCEPT);
#endif
}

static void flags_set(unsigned flags)
{
#if defined(__SSE__)
    _mm_setcsr((_mm_getcsr() & ~0x3fu) | flags);
#else
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept((int)flags);
#endif
}

/* Returns all flags that a caller may have raised. */
static unsigned flags_all(void)
{
#if defined(__SSE__)
    return 0x3fu;
#else
    return FE_ALL_EXCEPT;
#endif
}

/* Clears the direction flag and frees the registers that MMX shares with x87. Code here would fail
 * if a kernel left them set. */
static void restore_registers(void)
{
#if defined(__x86_64__)
    __asm__ volatile("cld\n\temms");
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
        if (!s->data || at < s->map || at >= s->map + slot_size(s))
            continue;
        result->input_written =
            s->sealed && at >= s->data && at < s->data + s->bytes && region_of(s, at);
        const bool between = at >= s->data && at < s->data + s->bytes && !region_of(s, at);
        snprintf(verb, sizeof verb, "%s%s", fault_text,
                 result->input_written ? ": wrote to the input"
                 : between             ? " between the rows of"
                                       : " at");
        describe_address(result, s, call, verb, at);
    }
}

static size_t slot_saved_bytes(const struct slot *s)
{
    size_t bytes = 0;
    for (EACH_REGION(r, s))
        bytes += (size_t)(r->to - r->from);
    return bytes;
}

/* Copies the contents of the regions; returns false if out of memory. */
static bool slot_save(struct slot *s)
{
    const size_t bytes = slot_saved_bytes(s);
    if (s->shadow_room < bytes) {
        free(s->shadow);
        s->shadow = malloc(bytes);
        s->shadow_room = s->shadow ? bytes : 0;
    }
    unsigned char *to = s->shadow;
    for (EACH_REGION(r, s)) {
        if (!to)
            return false;
        memcpy(to, r->from, (size_t)(r->to - r->from));
        to += r->to - r->from;
    }
    return true;
}

/* Returns the copy of a byte of a region. */
static unsigned char *find_saved(const struct slot *s, const char *at)
{
    unsigned char *kept = s->shadow;
    for (EACH_REGION(r, s)) {
        if (at >= r->from && at < r->to)
            return kept + (at - r->from);
        kept += r->to - r->from;
    }
    return NULL;
}

/* Returns the first byte of a region that changed, or NULL. Bytes of the buffer and behind it come
 * before those in front of it. */
static const char *region_damage(const struct slot *s, const struct region *r,
                                 const unsigned char *kept)
{
    const size_t n = (size_t)(r->to - r->from);
    const size_t before = s->data > r->from ? (size_t)(s->data - r->from) : 0;
    if (memcmp(r->from, kept, n) == 0)
        return NULL;
    size_t i = before;
    while (i < before + n && r->from[i % n] == (char)kept[i % n])
        i++;
    return r->from + i % n;
}

/* Returns a byte that changed outside the rows of outputs, or NULL. Only those rows may change. */
static const char *slot_damage(const struct slot *s, const struct call *call)
{
    for (int o = 0; o < call->n_outputs; o++) {
        const struct output *out = &call->outputs[o];
        const size_t bytes = (size_t)out->width * storage_size(out->tensor.dtype);
        for (int64_t r = 0; slot_holds(s, out->tensor.data) && bytes && r < out->rows; r++) {
            const char *row = storage_row(&out->tensor, r);
            memcpy(find_saved(s, row), row, bytes);
        }
    }
    const unsigned char *kept = s->shadow;
    for (EACH_REGION(r, s)) {
        const char *at = region_damage(s, r, kept);
        if (at)
            return at;
        kept += r->to - r->from;
    }
    return NULL;
}

/* ---- Notes for another process ---- */

static _Thread_local struct guard_note *noted;

void guard_note_to(struct guard_note *note) { noted = note; }

static void note_inside(bool inside)
{
    if (!noted)
        return;
    noted->turn++;
    noted->inside = inside;
}

/* Copies positions if they fit, as another process cannot follow addresses. */
static void note_begin(const struct problem *p)
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
    note_inside(true);
}

void guard_note_pause(void) { note_inside(false); }
void guard_note_resume(void) { note_inside(true); }

void guard_note_threads(int threads)
{
    if (noted)
        noted->beside = threads;
}

/* State of the floating-point unit. */
struct fp_state {
    uint64_t control;
    unsigned flags;
};

static struct fp_state fp_state_get(void)
{
    return (struct fp_state){ control_get(), flags_get() };
}

static void describe_fp_state(struct guarded *result, struct fp_state was, struct fp_state is)
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

static struct guarded run_guarded(struct call *call, const struct posenc_backend *backend,
                                  struct guard *g, bool in_modes)
{
    struct guarded result = { .status = POSENC_OK };
    guard_install();
    for (EACH_SLOT(s, g))
        if (s->data && !slot_save(s))
            return (struct guarded){ .status = POSENC_ERR_MEMORY, .reason = "out of memory" };
    const struct fp_state own = fp_state_get();
    if (in_modes) {
        flags_set(flags_all());
        control_set(unusual_control(own.control));
    }
    const struct fp_state before = fp_state_get();
    note_begin(&call->problem);
    bool returned = trap_run(call, backend, &result.status);
    restore_registers();
    note_inside(false);
    const struct fp_state after = fp_state_get();
    control_set(own.control);
    if (in_modes)
        flags_set(own.flags);
    if (returned)
        describe_fp_state(&result, before, after);
    else
        describe_fault(&result, g, call);
    for (EACH_SLOT(s, g)) {
        const char *at = s->data ? slot_damage(s, call) : NULL;
        result.overwritten = result.overwritten || at;
        if (at && !result.reason[0])
            describe_address(&result, s, call, "wrote outside the rows of", at);
    }
    return result;
}

struct guarded guarded_run(struct call *call, const struct posenc_backend *backend,
                           struct guard *guard)
{
    return run_guarded(call, backend, guard, false);
}

struct guarded guarded_run_in_modes(struct call *call, const struct posenc_backend *backend,
                                    struct guard *guard)
{
    return run_guarded(call, backend, guard, true);
}
