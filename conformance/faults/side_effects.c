/*
 * Side effects that any kernel can have: it allocates, writes static memory, changes errno, or shares
 * a buffer between threads.
 */
#define _GNU_SOURCE
#include "faulty.h"

#include "conformance/problem/storage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SCRATCH = 1 << 16, BLOCK = 64 };

/* ---- Memory ---- */

static void allocate(bool frees)
{
    void *volatile block = malloc(BLOCK);
    if (frees)
        free(block);
}

static void map_memory(void)
{
    void *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block != MAP_FAILED)
        munmap(block, BLOCK);
}

/* ---- A buffer that all threads share ---- */

static int64_t bytes_of(const struct posenc_tensor *t)
{
    return storage_rows(t) * t->shape[t->rank - 1] * (int64_t)storage_size(t->dtype);
}

static void copy(const struct posenc_tensor *from, const struct posenc_tensor *to)
{
    for (int64_t r = 0; r < storage_rows(from); r++)
        memcpy(storage_row(to, r), storage_row(from, r),
               (size_t)from->shape[from->rank - 1] * storage_size(from->dtype));
}

/* Computes the output there, then copies it. */
static void compute_in(struct entered *e, void *buffer)
{
    struct posenc_tensor *out = e->out, real = *out;
    int64_t stride = 1;
    if (bytes_of(out) > SCRATCH || bytes_of(out) == 0) {
        enter_kernel(e);
        return;
    }
    for (int d = out->rank; d-- > 0; stride *= out->shape[d])
        out->stride[d] = stride;
    out->data = buffer;
    if (e->kernel == POSENC_KERNEL_learned_grad)
        copy(&real, out); /* it may add onto it */
    enter_kernel(e);
    copy(out, &real);
    *out = real;
}

static void *shared_buffer(void)
{
    static void *buffer;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    buffer = buffer ? buffer : malloc(SCRATCH);
    pthread_mutex_unlock(&lock);
    if (!buffer)
        exit(2);
    return buffer;
}

/* ---- All of them ---- */

static void misbehave(void)
{
    static volatile unsigned calls;
    if (FAULT_IS(COUNT_CALLS))
        calls = calls + 1;
    if (FAULT_IS(ALLOCATE) || FAULT_IS(LEAK))
        allocate(FAULT_IS(ALLOCATE));
    if (FAULT_IS(MAP_MEMORY))
        map_memory();
    if (FAULT_IS(SET_ERRNO))
        errno = ERANGE;
}

void enter_side_effects(struct entered *e)
{
    static char scratch[SCRATCH];
    if (FAULT_IS(STATIC_SCRATCH))
        compute_in(e, scratch);
    else if (FAULT_IS(SHARED_BUFFER))
        compute_in(e, shared_buffer());
    else
        enter_kernel(e);
    misbehave();
}
