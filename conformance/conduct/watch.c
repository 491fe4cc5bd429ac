/*
 * Watched calls: see watch.h.  The backend of the call is one in whose every kernel the real one
 * is called, between two looks.
 */
#define _GNU_SOURCE
#include "watch.h"

#include "allocations.h"
#include "around.h"
#include "process.h"
#include "registers.h"
#include "statics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const conduct_names[CONDUCT_COUNT] = {
#define CONDUCT(name, text) text,
    CONDUCTS(CONDUCT)
#undef CONDUCT
};

#if defined(__x86_64__) || defined(__i386__)
enum { IS_X86 = 1 };
#else
enum { IS_X86 = 0 };
#endif

const char *conduct_unseen(enum conduct conduct)
{
    switch (conduct) {
    case CONDUCT_ALLOCATIONS:
    case CONDUCT_LEAKS:
        return allocations_unseen();
    case CONDUCT_STATICS:
        return statics_unseen();
    case CONDUCT_REGISTERS:
        return POSENC_SEES_REGISTERS ? NULL : "registers of this CPU are not watched";
    case CONDUCT_DIRECTION:
    case CONDUCT_X87:
        return IS_X86 ? NULL : "this CPU has none";
    case CONDUCT_THREADS:
        return process_threads_unseen();
    default:
        return NULL;
    }
}

/* ---- Around the kernel ---- */

/* A number that no call of the C library gives. */
enum { NO_ERROR = 0x7057 };

struct seen {
    struct statics statics;
    struct allocations before, after;
    struct cpu_left cpu;
    int error;
    bool entered, returned;
};

/* What an earlier call saw stays: a front-end may call its kernel for each axis. */
static void keep(char *kept, const char *text)
{
    if (!*kept)
        snprintf(kept, CPU_TEXT, "%s", text);
}

static enum posenc_status call_between(void *user, any_kernel_function *kernel,
                                       const void *args)
{
    struct seen *seen = user;
    struct cpu_left cpu;
    const int error = errno;
    if (!seen->entered)
        statics_of((void (*)(void))kernel, &seen->statics);
    guard_mend_by(statics_mend, &seen->statics);
    registers_clear();
    if (!seen->entered)
        seen->before = allocations_now();
    seen->entered = true;
    seen->returned = false;
    statics_watch(&seen->statics);
    errno = NO_ERROR;
    const enum posenc_status status = registers_call(kernel, args, &cpu);
    const int left = errno;
    errno = error;
    statics_leave(&seen->statics);
    guard_mend_by(NULL, NULL);
    seen->after = allocations_now();
    seen->returned = true;
    seen->error = left == NO_ERROR ? seen->error : left;
    keep(seen->cpu.registers, cpu.registers);
    keep(seen->cpu.direction, cpu.direction);
    keep(seen->cpu.x87, cpu.x87);
    return status;
}

/* ---- What was seen ---- */

static void tell_allocations(const struct seen *seen, struct watched *watched)
{
    const struct allocations *a = &seen->before, *b = &seen->after;
    const unsigned long made = b->made - a->made, freed = b->freed - a->freed,
                        mapped = b->mapped - a->mapped, unmapped = b->unmapped - a->unmapped;
    char *done = watched->text[CONDUCT_ALLOCATIONS], *left = watched->text[CONDUCT_LEAKS];
    if (made || mapped)
        snprintf(done, CONDUCT_TEXT, "%lu block%s and %lu map%s, %zu bytes, in one call", made,
                 made == 1 ? "" : "s", mapped, mapped == 1 ? "" : "s", b->bytes - a->bytes);
    else if (freed || unmapped)
        snprintf(done, CONDUCT_TEXT,
                 "%lu block%s freed and %lu map%s undone that it was not given", freed,
                 freed == 1 ? "" : "s", unmapped, unmapped == 1 ? "" : "s");
    else if (a->end != b->end)
        snprintf(done, CONDUCT_TEXT, "the end of the heap's segment moved");
    if (made > freed || mapped > unmapped)
        snprintf(left, CONDUCT_TEXT, "%lu block%s and %lu map%s were not given back",
                 made - freed, made - freed == 1 ? "" : "s", mapped - unmapped,
                 mapped - unmapped == 1 ? "" : "s");
}

static void tell(const struct seen *seen, struct watched *watched)
{
    snprintf(watched->text[CONDUCT_STATICS], CONDUCT_TEXT, "%s", seen->statics.text);
    if (!seen->returned)
        return;
    tell_allocations(seen, watched);
    if (seen->error != NO_ERROR)
        snprintf(watched->text[CONDUCT_ERRNO], CONDUCT_TEXT, "errno was set to %d",
                 seen->error);
    snprintf(watched->text[CONDUCT_REGISTERS], CONDUCT_TEXT, "%s", seen->cpu.registers);
    snprintf(watched->text[CONDUCT_DIRECTION], CONDUCT_TEXT, "%s", seen->cpu.direction);
    snprintf(watched->text[CONDUCT_X87], CONDUCT_TEXT, "%s", seen->cpu.x87);
}

void watched_run(struct call *call, const struct posenc_backend *backend,
                 struct watched *watched)
{
    struct seen seen = { .error = NO_ERROR };
    const struct posenc_backend between = backend_around(backend, call_between, &seen);
    memset(watched, 0, sizeof *watched);
    watched->guarded = guarded_run(call, &between, NULL);
    guard_mend_by(NULL, NULL);
    if (seen.entered && !seen.returned)
        statics_leave(&seen.statics);
    tell(&seen, watched);
}
