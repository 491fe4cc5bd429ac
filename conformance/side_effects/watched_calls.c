/*
 * Watches single calls: counts allocations, and detects writes to static variables; see side_effects.h.
 *
 * Allocations: the program defines malloc() and its relatives, which forward to glibc. The build defines
 * POSENC_COUNTS_ALLOCATIONS if this works: with glibc, linked dynamically and without a sanitizer. glibc exports its
 * functions as __libc_malloc() etc., too.
 *
 * Static variables: their pages become read-only. The writable segment of an ELF object begins with tables of addresses
 * (RELRO), which the dynamic linker writes once and then seals. The rest of the segment holds static variables. Lazy
 * binding would write there during a call. Therefore the program is linked with -z now (conformance/meson.build), and
 * plug-ins are loaded with RTLD_NOW (engine/library.c).
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#ifdef __linux__
#include <link.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

/* ---- Allocations ---- */

/* Thread-local variables of the program itself are not allocated on the heap. */
static _Thread_local struct allocation_counts counts;

struct allocation_counts allocation_counts_now(void) { return counts; }

#if defined(POSENC_COUNTS_ALLOCATIONS)

const char *allocations_unavailable_reason(void) { return NULL; }

/* These declarations use reserved names, and parameter names that differ from glibc's headers. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-inconsistent-declaration-parameter-name)
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *block);

void *malloc(size_t bytes)
{
    counts.allocated++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t size)
{
    counts.allocated++;
    return __libc_calloc(n, size);
}

void *realloc(void *block, size_t bytes)
{
    counts.allocated++;
    counts.freed += block != NULL;
    return __libc_realloc(block, bytes);
}

void free(void *block)
{
    counts.freed += block != NULL;
    __libc_free(block);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    counts.allocated++;
    return __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }

void *valloc(size_t bytes) { return aligned_alloc((size_t)sysconf(_SC_PAGESIZE), bytes); }

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (alignment % sizeof(void *) || !alignment || (alignment & (alignment - 1)))
        return EINVAL;
    void *allocated = aligned_alloc(alignment, bytes);
    if (!allocated)
        return ENOMEM;
    *block = allocated;
    return 0;
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-inconsistent-declaration-parameter-name)

/* On 64-bit systems the system call takes the arguments of mmap() as they are, but on s390x a pointer to them. */
#if defined(SYS_mmap) && UINTPTR_MAX > 0xffffffffu && !defined(__s390x__)

/* The labels set the linker's names, because <sys/mman.h> may redirect mmap to mmap64. */
void *counted_mmap(void *, size_t, int, int, int, off_t) __asm__("mmap");
void *counted_mmap64(void *, size_t, int, int, int, off_t) __asm__("mmap64");
int counted_munmap(void *, size_t) __asm__("munmap");

void *counted_mmap(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
    counts.allocated++;
    return (void *)syscall(SYS_mmap, at, bytes, access, flags, file, offset);
}

void *counted_mmap64(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
    return counted_mmap(at, bytes, access, flags, file, offset);
}

int counted_munmap(void *at, size_t bytes)
{
    counts.freed++;
    return (int)syscall(SYS_munmap, at, bytes);
}

#endif

#else

const char *allocations_unavailable_reason(void)
{
    return "only programs of glibc, linked dynamically and without a sanitizer, count "
           "allocations";
}

#endif

/* ---- Static memory ---- */

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

bool static_memory_watch(struct static_memory *memory, void (*kernel)(void))
{
    *memory = (struct static_memory){ .begin = NULL };
    return (void)kernel, false;
}
void static_memory_unwatch(struct static_memory *memory) { (void)memory; }

#else

/* AT_BASE is the address of the dynamic linker, and 0 in a statically linked program. */
const char *static_memory_unavailable_reason(void)
{
    if (getauxval(AT_BASE))
        return NULL;
    return "in a statically linked program, the C library's variables cannot be told from its "
           "own";
}

struct object_search {
    uintptr_t kernel;           /* address of its code */
    struct static_memory found; /* of the object; all zero until it is found */
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

/* Returns false if the system denies the access. */
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

bool static_memory_watch(struct static_memory *s, void (*kernel)(void))
{
    struct object_search search = { .kernel = (uintptr_t)kernel };
    if (!static_memory_unavailable_reason())
        dl_iterate_phdr(find_object, &search);
    *s = search.found;
    guard_set_repair(record_write, s);
    return s->object_path && set_access(s, PROT_READ);
}

void static_memory_unwatch(struct static_memory *s)
{
    set_access(s, PROT_READ | PROT_WRITE);
    guard_set_repair(NULL, NULL);
}

#endif
