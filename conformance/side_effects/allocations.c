/*
 * Counts allocations: the program defines malloc() and its relatives, which forward to glibc; see side_effects.h.
 *
 * The build defines POSENC_COUNTS_ALLOCATIONS if this works: with glibc, linked dynamically and without a sanitizer.
 * glibc exports its functions as __libc_malloc() etc., too.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/types.h>

/* Thread-local variables of the program itself are not allocated on the heap. */
static _Thread_local struct allocation_counts counts;

struct allocation_counts allocation_counts_now(void) { return counts; }

#if defined(POSENC_COUNTS_ALLOCATIONS)

#include <sys/syscall.h>
#include <unistd.h>

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
