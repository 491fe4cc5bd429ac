/* Side effects as faults: allocations, writes to static memory or errno, and buffers shared by threads; see
 * faulty.h. */
#define _GNU_SOURCE
#include "faulty.h"

#include "conformance/problem/storage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SCRATCH_BYTES = 1 << 16, BLOCK_BYTES = 64 };

/* ---- Allocations and errno ---- */

static void allocate(struct kernel_call *c)
{
    run_kernel(c);
    void *volatile block = malloc(BLOCK_BYTES);
    free(block);
}

static void leak(struct kernel_call *c)
{
    run_kernel(c);
    void *volatile block = malloc(BLOCK_BYTES);
    (void)block;
}

static void map_memory(struct kernel_call *c)
{
    run_kernel(c);
    void *block =
        mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block != MAP_FAILED)
        munmap(block, BLOCK_BYTES);
}

static void set_errno(struct kernel_call *c)
{
    run_kernel(c);
    errno = ERANGE;
}

static void count_calls(struct kernel_call *c)
{
    static volatile unsigned calls;
    run_kernel(c);
    calls = calls + 1;
}

/* ---- Buffers that all calls share ---- */

static void copy_tensor(const struct posenc_tensor *from, const struct posenc_tensor *to)
{
    for (int64_t r = 0; r < storage_rows(from); r++)
        memcpy(storage_row(to, r), storage_row(from, r),
               (size_t)tensor_width(from) * storage_size(from->dtype));
}

/* Computes the output in the buffer and copies it. An output that is empty or too large is computed in place. */
static void run_in_buffer(struct kernel_call *c, void *buffer)
{
    struct posenc_tensor *out = c->out;
    const struct posenc_tensor real = *out;
    const int64_t bytes =
        storage_rows(out) * tensor_width(out) * (int64_t)storage_size(out->dtype);
    int64_t stride = 1;
    if (bytes > SCRATCH_BYTES || bytes == 0) {
        run_kernel(c);
        return;
    }
    for (int d = out->rank; d-- > 0; stride *= out->shape[d])
        out->stride[d] = stride;
    out->data = buffer;
    if (c->kernel == POSENC_KERNEL_LEARNED_GRAD) /* which may add to the old contents */
        copy_tensor(&real, out);
    run_kernel(c);
    copy_tensor(out, &real);
    *out = real;
}

static void use_static_scratch(struct kernel_call *c)
{
    static char scratch[SCRATCH_BYTES];
    run_in_buffer(c, scratch);
}

/* Uses a buffer on the heap, as a library might. The case "together" does not watch the static variables here. */
static void use_shared_buffer(struct kernel_call *c)
{
    static void *buffer;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!buffer)
        buffer = malloc(SCRATCH_BYTES);
    void *const shared = buffer;
    pthread_mutex_unlock(&lock);
    if (!shared)
        exit(2);
    run_in_buffer(c, shared);
}

/* ---- The table ---- */

#define F32 POSENC_DTYPE_F32
const struct fault side_effect_faults[] = {
    { "allocates", "side-effects", "allocations", F32, every_kernel, allocate },
    { "maps-memory", "side-effects", "allocations", F32, every_kernel, map_memory },
    { "leaks", "side-effects", "leaks", F32, every_kernel, leak },
    { "static-scratch", "side-effects", "static-memory", F32, every_kernel,
      use_static_scratch },
    { "static-counter", "side-effects", "static-memory", F32, every_kernel, count_calls },
    { "sets-errno", "side-effects", "errno", F32, every_kernel, set_errno },
    { "shared-buffer", "side-effects", "together", F32, every_kernel, use_shared_buffer },
    { .name = NULL },
};
