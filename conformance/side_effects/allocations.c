/*
 * Counts allocations by definitions of malloc() and its relatives in the program itself; see
 * side_effects.h.
 *
 * The build defines POSENC_COUNTS_ALLOCATIONS if a program may define them: with glibc, which has
 * its own under other names as well, linked dynamically and without a sanitizer.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/types.h>

/* A thread-local variable of a program takes no memory from the heap. */
static _Thread_local struct allocations counts;

struct allocations allocations_now(void) { return counts; }

#if defined(POSENC_COUNTS_ALLOCATIONS)

#include <sys/syscall.h>
#include <unistd.h>

const char *allocations_unavailable_reason(void) { return NULL; }

/* glibc's own functions, and parameters with other names than its headers have. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-inconsistent-declaration-parameter-name)
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *block);

void *malloc(size_t bytes)
{
    counts.made++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t size)
{
    counts.made++;
    return __libc_calloc(n, size);
}

void *realloc(void *block, size_t bytes)
{
    counts.made++;
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
    counts.made++;
    return __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }

void *valloc(size_t bytes) { return aligned_alloc((size_t)sysconf(_SC_PAGESIZE), bytes); }

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (alignment % sizeof(void *) || !alignment || (alignment & (alignment - 1)))
        return EINVAL;
    void *made = aligned_alloc(alignment, bytes);
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-inconsistent-declaration-parameter-name)

/* Maps are made by one system call, which takes these arguments if a word has 64 bits. */
#if defined(SYS_mmap) && UINTPTR_MAX > 0xffffffffu

/* Functions by the linker's names, since the header may define mmap as mmap64. */
void *counted_mmap(void *, size_t, int, int, int, off_t) __asm__("mmap");
void *counted_mmap64(void *, size_t, int, int, int, off_t) __asm__("mmap64");
int counted_munmap(void *, size_t) __asm__("munmap");

void *counted_mmap(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
    counts.made++;
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
