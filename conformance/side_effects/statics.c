/*
 * Finds writes to static variables by the faults that they cause; see side_effects.h.
 *
 * The writable segment of a program or plug-in begins with tables of addresses, which the dynamic
 * linker writes and seals. Lazy binding would write to them during a call, so that the program is
 * linked with -z now (conformance/meson.build) and plug-ins are loaded with RTLD_NOW
 * (engine/plugin.c). The rest of the segment holds the variables of the source code.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include <stdio.h>
#include <string.h>

struct posenc_backend backend_copy(const struct posenc_backend *backend)
{
    struct posenc_backend copy = { 0 };
    memcpy(&copy, backend, backend->size < sizeof copy ? backend->size : sizeof copy);
    return copy;
}

#if !defined(__linux__) || defined(POSENC_SANITIZED) || defined(POSENC_COUNTS_LINES)

const char *statics_unavailable_reason(void)
{
#if defined(__linux__)
    return "the sanitizer or the counters of this build write to static memory";
#else
    return "the segments of a program are known on Linux alone";
#endif
}

struct statics statics_find(void (*kernel)(void))
{
    (void)kernel;
    return (struct statics){ .begin = NULL };
}
bool statics_watch(struct statics *statics)
{
    (void)statics;
    return false;
}

void statics_unwatch(struct statics *statics) { (void)statics; }

#else

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* AT_BASE is the address of the dynamic linker, and 0 in a statically linked program. */
const char *statics_unavailable_reason(void)
{
    return getauxval(AT_BASE) ? NULL
                              : "in a statically linked program, the C library's variables "
                                "cannot be told from "
                                "its own";
}

struct search {
    uintptr_t kernel;
    struct statics found; /* of the object that has the kernel */
};

// NOLINTBEGIN(performance-no-int-to-ptr)
/* Finds the writable part of the object that has the kernel, after the sealed tables. */
static int find_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct search *search = user;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t relro_end = 0, first = 0, last = 0;
    bool has_kernel = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_GNU_RELRO)
            relro_end = end;
        if (part->p_type != PT_LOAD)
            continue;
        has_kernel = has_kernel || (search->kernel >= begin && search->kernel < end);
        if (part->p_flags & PF_W) {
            first = begin;
            last = end;
        }
    }
    if (has_kernel)
        search->found = (struct statics){
            .begin = (char *)((relro_end > first ? relro_end : first) & -page),
            .end = (char *)((last + page - 1) & -page),
            .object = info->dlpi_name,
            .base = (const char *)info->dlpi_addr,
        };
    return has_kernel;
}
// NOLINTEND(performance-no-int-to-ptr)

struct statics statics_find(void (*kernel)(void))
{
    struct search search = { .kernel = (uintptr_t)kernel };
    if (!statics_unavailable_reason())
        dl_iterate_phdr(find_object, &search);
    return search.found;
}

static bool protect(const struct statics *s, int access)
{
    return s->begin >= s->end || mprotect(s->begin, (size_t)(s->end - s->begin), access) == 0;
}

/* Records the first write, and makes its page writable; a guard_repair. */
static bool record_write(void *user, const char *address)
{
    struct statics *s = user;
    const ptrdiff_t page = sysconf(_SC_PAGESIZE);
    if (address < s->begin || address >= s->end)
        return false;
    if (!s->first_write[0])
        snprintf(s->first_write, sizeof s->first_write,
                 "wrote to a static variable, at %#tx of %.80s", address - s->base,
                 *s->object ? s->object : "the program");
    return mprotect(s->begin + (address - s->begin) / page * page, (size_t)page,
                    PROT_READ | PROT_WRITE) == 0;
}

bool statics_watch(struct statics *s)
{
    guard_set_repair(record_write, s);
    return s->object && protect(s, PROT_READ);
}

void statics_unwatch(struct statics *s)
{
    protect(s, PROT_READ | PROT_WRITE);
    guard_set_repair(NULL, NULL);
}

#endif
