/*
 * malloc() and its like, counted: see allocations.h.
 *
 * The build defines POSENC_COUNTS_ALLOCATIONS where a program may define them: with glibc, which
 * has its own under other names as well, linked dynamically and without a sanitizer.
 */
#define _GNU_SOURCE
#include "allocations.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_HOOKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
    __has_feature(memory_sanitizer)
#define HAS_HOOKS 1
#endif
#endif

/* In a program a variable of a thread takes no memory of the heap. */
static _Thread_local struct allocations now;

struct allocations allocations_now(void)
{
    struct allocations copy = now;
#if defined(__linux__)
    copy.end = sbrk(0);
#endif
    return copy;
}

#if defined(HAS_HOOKS) || defined(POSENC_COUNTS_ALLOCATIONS)

static void note_made(size_t bytes)
{
    now.made++;
    now.bytes += bytes;
}

static void note_freed(const volatile void *block) { now.freed += block != NULL; }

#endif

#if defined(HAS_HOOKS)

/* Of sanitizer/allocator_interface.h, which comes with clang alone. */
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern int __sanitizer_install_malloc_and_free_hooks(void (*made)(const volatile void *,
                                                                  size_t),
                                                     void (*freed)(const volatile void *));

static void on_made(const volatile void *block, size_t bytes)
{
    (void)block;
    note_made(bytes);
}

const char *allocations_unseen(void)
{
    static int asked, installed;
    if (!asked)
        installed = __sanitizer_install_malloc_and_free_hooks(on_made, note_freed);
    asked = 1;
    return installed > 0 ? NULL : "the sanitizer of this build takes no more hooks";
}

#elif defined(POSENC_COUNTS_ALLOCATIONS)

#include <sys/syscall.h>

const char *allocations_unseen(void) { return NULL; }

/* glibc's; its headers have reserved names for the parameters. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-inconsistent-declaration-parameter-name)
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *block);

void *malloc(size_t bytes)
{
    note_made(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t size)
{
    note_made(n * size);
    return __libc_calloc(n, size);
}

void *realloc(void *block, size_t bytes)
{
    note_made(bytes);
    note_freed(block);
    return __libc_realloc(block, bytes);
}

void free(void *block)
{
    note_freed(block);
    __libc_free(block);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    note_made(bytes);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    note_made(bytes);
    return __libc_memalign(alignment, bytes);
}

void *valloc(size_t bytes) { return memalign((size_t)sysconf(_SC_PAGESIZE), bytes); }

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (alignment % sizeof(void *) || !alignment || (alignment & (alignment - 1)))
        return EINVAL;
    note_made(bytes);
    const int error = errno;
    void *made = __libc_memalign(alignment, bytes);
    errno = error;
    if (!made)
        return ENOMEM;
    *block = made;
    return 0;
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-inconsistent-declaration-parameter-name)

/* Maps are made by one system call, with these arguments where a word has 64 bits. */
#if defined(SYS_mmap) && UINTPTR_MAX > 0xffffffffu

static void *map(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
    now.mapped++;
    now.bytes += bytes;
    return (void *)syscall(SYS_mmap, at, bytes, access, flags, file, offset);
}

/* Under the names that linkers know: the header may make one of the other. */
void *counted_mmap(void *, size_t, int, int, int, off_t) __asm__("mmap");
void *counted_mmap64(void *, size_t, int, int, int, off_t) __asm__("mmap64");
int counted_munmap(void *, size_t) __asm__("munmap");

void *counted_mmap(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
    return map(at, bytes, access, flags, file, offset);
}

void *counted_mmap64(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
    return map(at, bytes, access, flags, file, offset);
}

int counted_munmap(void *at, size_t bytes)
{
    now.unmapped++;
    return (int)syscall(SYS_munmap, at, bytes);
}

#endif

#else

const char *allocations_unseen(void)
{
    return "only programs of glibc that are linked dynamically count allocations";
}

#endif
