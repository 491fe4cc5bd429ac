/*
 * Calls that stop in their middle: at the first access to a page, or after each instruction; see side_effects.h.
 *
 * Threads: one kernel is called from two threads at once. The calls have the same shape, and each has tensors and data of
 * its own. They overlap even on one core or a busy machine: the pages of the first call are armed, and at each access to
 * a new part that call stops until the other thread has completed each of the other calls.
 *
 * Streaming stores: the call runs twice. The first run finds the output page whose first access comes last; the second
 * run is stepped from the access to that page on.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include "conformance/problem/arena.h"
#include "conformance/problem/signature.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__linux__) && !defined(POSENC_SANITIZED)
#define STEPS_CALLS
#include <ucontext.h>
#include <x86intrin.h>
#endif

/* ---- Pages that fault at the first access ---- */

/* Memory of one call whose tensors are divided into parts. An access to an armed part faults. Pages end inside a row
 * of a multiple of 128 bytes, and less than a quarter page of a tensor lies on its last page, so that the last vector
 * of each loop touches a page of its own. */
struct trap_pages {
    struct trap_map {
        char *begin;
        size_t bytes, part_bytes; /* multiples of the page size */
        bool is_output;
    } maps[LAYOUTS]; /* one for each tensor (problem.h) */
    int n;
    int parts_per_map; /* 0: each page is a part */
};

/* Allocates one tensor. It ends about BYTES_ON_LAST_PAGE bytes into its last page, as its start is rounded down to a
 * multiple of ALIGNMENT. So no page boundary is the end of a row of a multiple of 128 bytes, as models have. Ignores
 * the offset that a problem asks for, which would move that end. */
static void *trap_pages_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    enum { BYTES_ON_LAST_PAGE = 832, ALIGNMENT = 64 };
    struct trap_pages *pages = user;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 n = (bytes + page - 1) / page + 1; /* one for the end of the tensor */
    const size_t parts = pages->parts_per_map ? (size_t)pages->parts_per_map : n;
    const bool is_output = role != 'i';
    (void)offset_bytes;
    char *begin = pages->n < LAYOUTS ? pages_reserve(n * page) : NULL;
    if (!begin)
        return NULL;
    pages->maps[pages->n++] =
        (struct trap_map){ begin, n * page, (n + parts - 1) / parts * page, is_output };
    return begin + ((n - 1) * page + BYTES_ON_LAST_PAGE - bytes) / ALIGNMENT * ALIGNMENT;
}

/* Keeps memory that a call frees, as trap_pages_free() releases all of it. */
static void keep_until_free(void *user, void *data) { (void)user, (void)data; }

/* Returns an allocator for the tensors of one call. */
static struct tensor_allocator trap_pages_memory(struct trap_pages *pages)
{
    return (struct tensor_allocator){ .get = trap_pages_get,
                                      .free = keep_until_free,
                                      .user = pages };
}

/* Makes all outputs inaccessible, and with `with_inputs` the inputs, too. Returns false if that failed. */
static bool trap_pages_arm(const struct trap_pages *pages, bool with_inputs)
{
    bool armed = true;
    for (int i = 0; i < pages->n; i++)
        if (pages->maps[i].is_output || with_inputs)
            armed =
                mprotect(pages->maps[i].begin, pages->maps[i].bytes, PROT_NONE) == 0 && armed;
    return armed;
}

/* Makes the part that contains an address accessible. Returns its start, or NULL for other memory. */
static char *trap_pages_disarm(const struct trap_pages *pages, const char *address)
{
    for (int i = 0; i < pages->n; i++) {
        const struct trap_map *map = &pages->maps[i];
        if (address < map->begin || address >= map->begin + map->bytes)
            continue;
        const size_t at = (size_t)(address - map->begin) / map->part_bytes * map->part_bytes,
                     left = map->bytes - at;
        char *part = map->begin + at;
        return mprotect(part, left < map->part_bytes ? left : map->part_bytes,
                        PROT_READ | PROT_WRITE) == 0
                   ? part
                   : NULL;
    }
    return NULL;
}

static void trap_pages_free(struct trap_pages *pages)
{
    for (int i = 0; i < pages->n; i++)
        pages_release(pages->maps[i].begin, pages->maps[i].bytes);
    pages->n = 0;
}

/* ---- Threads ---- */

enum {
    CALLS = 4,
    MAX_WAITS =
        1000, /* for the other thread; then the first call resumes anyway, as a kernel may have a lock */
    WAIT_MICROSECONDS = 20,
    STOPS_PER_TENSOR = 4
};

/* A call, and the same call made before while no other thread ran. */
struct overlapping_call {
    struct trap_pages pages; /* memory of `call` */
    struct call call, alone;
    struct tally tally; /* of its thread, because require() is not atomic */
};

struct thread_test {
    struct posenc_backend backend;
    struct overlapping_call
        calls[CALLS];         /* the first one is stopped, the others run meanwhile */
    atomic_uint stops;        /* of the first call */
    atomic_uint stops_served; /* during which the other thread has run its calls */
    atomic_bool first_call_ended;
};

/* Stops the first call at an access to an armed page; a guard_repair. */
static bool stop_at_page(void *user, const char *address)
{
    struct thread_test *test = user;
    if (!trap_pages_disarm(&test->calls[0].pages, address))
        return false;
    guard_pause();
    const unsigned stop = atomic_fetch_add(&test->stops, 1) + 1;
    for (int i = 0; i < MAX_WAITS && atomic_load(&test->stops_served) < stop; i++)
        usleep(WAIT_MICROSECONDS);
    guard_resume();
    return true;
}

/* Runs a call, and requires the outputs of `alone`. */
static void run_and_compare(const struct thread_test *test, struct overlapping_call *c)
{
    const struct guard_result g = guard_run(&c->call, &test->backend, NULL);
    if (require_clean(&c->tally, &g))
        require_same_outputs(&c->tally, &c->call, &c->alone,
                             "calls of threads at once differ from each alone");
}

/* Runs the other calls during each stop of the first one, until that ends. */
static void *run_during_stops(void *user)
{
    struct thread_test *test = user;
    while (!atomic_load(&test->first_call_ended)) {
        const unsigned stop = atomic_load(&test->stops);
        if (stop == atomic_load(&test->stops_served)) {
            usleep(WAIT_MICROSECONDS);
            continue;
        }
        for (int i = 1; i < CALLS; i++) {
            call_reset(&test->calls[i].call);
            run_and_compare(test, &test->calls[i]);
        }
        atomic_store(&test->stops_served, stop);
    }
    return NULL;
}

/* Returns problem number i of the same shape, with other data. A problem without tensors of data gets other positions
 * or another query offset. */
static struct problem vary_data(struct problem p, int i)
{
    p.seed += (uint64_t)i;
    if (kernel_has_freqs(p.kernel))
        p.first += 100 * i;
    else if (kernel_on_scores(p.kernel) && !signature_of(p.kernel)->derive)
        p.query_offset += i;
    return p;
}

/* Returns false if a call of the problem cannot be created. */
static bool create_calls(struct thread_test *test, const struct tally *t,
                         const struct problem *problem)
{
    const struct implementation *implementation = t->run->implementation;
    bool created = true;
    for (int i = 0; i < CALLS && created; i++) {
        struct overlapping_call *c = &test->calls[i];
        const struct problem p = vary_data(*problem, i);
        c->tally = *t;
        c->pages.parts_per_map = STOPS_PER_TENSOR;
        const struct tensor_allocator memory = trap_pages_memory(&c->pages);
        created = call_create_by(implementation, &c->call, &p, &memory) == POSENC_OK &&
                  call_create_by(implementation, &c->alone, &p, NULL) == POSENC_OK;
    }
    return created;
}

/* Runs each call alone. Returns false if one fails, or if the first two have the same outputs: then mixed-up data
 * would not show, and the tally is skipped. */
static bool run_alone(struct thread_test *test, struct tally *t)
{
    struct tally scratch = *t; /* different outputs must not fail the tally */
    for (int i = 0; i < CALLS; i++) {
        const struct guard_result g = guard_run(&test->calls[i].alone, &test->backend, NULL);
        if (!require_clean(t, &g))
            return false;
    }
    if (!require_same_outputs(&scratch, &test->calls[0].alone, &test->calls[1].alone, ""))
        return true;
    tally_skip(t, "all threads' calls have the same outputs, which shows nothing");
    return false;
}

/* Runs the first call in this thread, and the others in another one. */
static void run_at_once(struct thread_test *test, struct tally *t)
{
    pthread_t thread;
    if (!require(t, pthread_create(&thread, NULL, run_during_stops, test) == 0,
                 "no thread could be started"))
        return;
    guard_set_repair(stop_at_page, test);
    if (require(t, trap_pages_arm(&test->calls[0].pages, true),
                "pages could not be made inaccessible"))
        run_and_compare(test, &test->calls[0]);
    guard_set_repair(NULL, NULL);
    atomic_store(&test->first_call_ended, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < CALLS; i++)
        if (t->result.status == CONF_PASS && test->calls[i].tally.result.status != CONF_PASS)
            t->result = test->calls[i].tally.result;
    require(t, test->stops > 0, "no call was stopped in its middle");
}

void threads_require_same_outputs(struct tally *t, const struct problem *problem)
{
    struct thread_test *test = calloc(1, sizeof *test);
    if (!require(t, test, "out of memory"))
        return;
    test->backend = backend_copy(t->run->backend);
    guard_set_other_threads(1);
    if (!create_calls(test, t, problem))
        tally_skip(t, "no call of this problem could be made for each thread");
    else if (run_alone(test, t))
        run_at_once(test, t);
    guard_set_other_threads(0);
    for (int i = 0; i < CALLS; i++) {
        struct overlapping_call *c = &test->calls[i];
        if (c->call.implementation)
            call_destroy(&c->call);
        if (c->alone.implementation)
            call_destroy(&c->alone);
        trap_pages_free(&c->pages);
    }
    free(test);
}

/* ---- Streaming stores ---- */

#ifdef STEPS_CALLS

const char *streaming_unavailable_reason(void) { return NULL; }

enum instruction { OTHER, STREAMING_STORE, FENCE };

/* Classifies the instruction at an address. Skips prefixes (size, segment, REX, VEX, EVEX) up to the opcode in map 0f.
 * Instructions with a lock prefix act as fences. */
static enum instruction classify(const uint8_t *at)
{
    static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3, 0x2e, 0x36,
                                        0x3e, 0x26, 0x64, 0x65, 0x67 };
    while (memchr(prefixes, *at, sizeof prefixes))
        at++;
    if (*at == 0xf0) /* lock */
        return FENCE;
    if ((*at & 0xf0) == 0x40) /* REX */
        at++;
    if ((at[0] == 0x86 || at[0] == 0x87) && at[1] < 0xc0) /* xchg with memory always locks */
        return FENCE;
    if (at[0] == 0x0f && at[1] == 0x38) /* movdir64b, movdiri */
        return at[2] == 0xf8 || at[2] == 0xf9 ? STREAMING_STORE : OTHER;
    if (at[0] == 0x0f && (at[1] == 0x05 || at[1] == 0xa2)) /* syscall, cpuid */
        return FENCE;
    if (at[0] == 0x0f)
        at += 1;
    else if (at[0] == 0xc5) /* VEX of two and three bytes, EVEX */
        at += 2;
    else if (at[0] == 0xc4 && (at[1] & 0x1f) == 1)
        at += 3;
    else if (at[0] == 0x62 && (at[1] & 7) == 1)
        at += 4;
    else
        return OTHER;
    const bool has_memory_operand = at[1] < 0xc0; /* ModRM */
    switch (at[0]) {
    case 0x2b: /* movntps, movntpd */
    case 0xc3: /* movnti */
    case 0xe7: /* movntdq, movntq */
        return has_memory_operand ? STREAMING_STORE : OTHER;
    case 0xf7: /* maskmovdqu, maskmovq */
        return has_memory_operand ? OTHER : STREAMING_STORE;
    case 0xae: /* mfence, sfence */
        return at[1] >= 0xf0 ? FENCE : OTHER;
    default:
        return OTHER;
    }
}

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

bool streaming_require_fence(struct tally *t, const struct problem *problem)
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
    require(t, s.paused || !s.unfenced,
            "streaming stores without a fence after them: a thread that is handed the output "
            "may read what was there before");
    return !s.paused;
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

bool streaming_require_fence(struct tally *t, const struct problem *problem)
{
    return (void)t, (void)problem, false;
}

#endif
