/*
 * Detects writes to static variables by making their pages read-only; see side_effects.h.
 *
 * The writable segment of an ELF object begins with tables of addresses (RELRO), which the dynamic linker writes once
 * and then seals. The rest of the segment holds static variables. Lazy binding would write there during a call.
 * Therefore the program is linked with -z now (conformance/meson.build), and plug-ins are loaded with RTLD_NOW
 * (engine/plugin.c).
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

const char *static_memory_unavailable_reason(void)
{
#if defined(__linux__)
    return "the sanitizer or the counters of this build write to static memory";
#else
    return "the segments of a program are known on Linux alone";
#endif
}

struct static_memory static_memory_find(void (*kernel)(void))
{
    (void)kernel;
    return (struct static_memory){ .begin = NULL };
}
bool static_memory_watch(struct static_memory *memory) { return (void)memory, false; }
void static_memory_unwatch(struct static_memory *memory) { (void)memory; }

#else

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* AT_BASE is the address of the dynamic linker, and 0 in a statically linked program. */
const char *static_memory_unavailable_reason(void)
{
    return getauxval(AT_BASE) ? NULL
                              : "in a statically linked program, the C library's variables "
                                "cannot be told from "
                                "its own";
}

struct object_search {
    uintptr_t kernel; /* address of its code */
    struct static_memory found;
};

// NOLINTBEGIN(performance-no-int-to-ptr)
/* Finds the writable segment, behind RELRO, of the object that contains the kernel. Stops there. */
static int find_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct object_search *search = user;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t relro_end = 0, writable_begin = 0, writable_end = 0;
    bool has_kernel = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + segment->p_vaddr,
                        end = begin + segment->p_memsz;
        if (segment->p_type == PT_GNU_RELRO)
            relro_end = end;
        if (segment->p_type != PT_LOAD)
            continue;
        has_kernel = has_kernel || (search->kernel >= begin && search->kernel < end);
        if (segment->p_flags & PF_W) {
            writable_begin = begin;
            writable_end = end;
        }
    }
    if (has_kernel)
        search->found = (struct static_memory){
            .begin =
                (char *)((relro_end > writable_begin ? relro_end : writable_begin) & -page),
            .end = (char *)((writable_end + page - 1) & -page),
            .object_path = info->dlpi_name,
            .load_address = (const char *)info->dlpi_addr,
        };
    return has_kernel;
}
// NOLINTEND(performance-no-int-to-ptr)

struct static_memory static_memory_find(void (*kernel)(void))
{
    struct object_search search = { .kernel = (uintptr_t)kernel };
    if (!static_memory_unavailable_reason())
        dl_iterate_phdr(find_object, &search);
    return search.found;
}

static bool set_access(const struct static_memory *s, int access)
{
    return s->begin >= s->end || mprotect(s->begin, (size_t)(s->end - s->begin), access) == 0;
}

/* Records the first write and makes its page writable, so that the write proceeds; a guard_repair. */
static bool record_write(void *user, const char *address)
{
    struct static_memory *s = user;
    const ptrdiff_t page = sysconf(_SC_PAGESIZE);
    if (address < s->begin || address >= s->end)
        return false;
    if (!s->first_write[0])
        snprintf(s->first_write, sizeof s->first_write,
                 "wrote to a static variable, at %#tx of %.80s", address - s->load_address,
                 *s->object_path ? s->object_path : "the program");
    return mprotect(s->begin + (address - s->begin) / page * page, (size_t)page,
                    PROT_READ | PROT_WRITE) == 0;
}

bool static_memory_watch(struct static_memory *s)
{
    guard_set_repair(record_write, s);
    return s->object_path && set_access(s, PROT_READ);
}

void static_memory_unwatch(struct static_memory *s)
{
    set_access(s, PROT_READ | PROT_WRITE);
    guard_set_repair(NULL, NULL);
}

#endif
