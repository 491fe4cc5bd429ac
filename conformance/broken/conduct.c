/*
 * Mistakes that any kernel can make beside its results: it does to the process, to the CPU or to
 * memory of its own what kernels may not do.
 */
#define _GNU_SOURCE
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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

/* ---- A buffer that all threads have ---- */

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

/* The outputs are computed there, then copied. */
static void compute_in(struct entered *e, void *buffer)
{
    struct posenc_tensor *out = e->parts.out, real = *out;
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

/* Of ones; whoever comes while it is made takes it as it is. */
static void use_lazy_table(const struct entered *e)
{
    static const struct timespec a_while = { .tv_nsec = 200000 };
    static volatile bool ready[POSENC_KERNEL_COUNT];
    static volatile float ones[POSENC_KERNEL_COUNT];
    const struct posenc_tensor *out = e->parts.out;
    if (!ready[e->kernel]) {
        ready[e->kernel] = true;
        nanosleep(&a_while, NULL);
        ones[e->kernel] = 1.0f;
    }
    for (int64_t r = 0; r < storage_rows(out) && ones[e->kernel] != 1.0f; r++)
        storage_put(out->dtype, storage_row(out, r), 0, ones[e->kernel]);
}

/* ---- The process ---- */

/* Once in each kernel: there is an end of descriptors and threads. */
static bool is_first(atomic_bool *called) { return !atomic_exchange(called, true); }

static void leave_descriptor(enum posenc_kernel kernel)
{
    static atomic_bool left[POSENC_KERNEL_COUNT];
    if (is_first(&left[kernel]))
        (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void *sleep_on(void *user)
{
    static const struct timespec a_while = { .tv_sec = 3600 }; /* until the process ends */
    nanosleep(&a_while, NULL);
    return user;
}

static void leave_thread(enum posenc_kernel kernel)
{
    static atomic_bool left[POSENC_KERNEL_COUNT];
    pthread_t thread;
    if (is_first(&left[kernel]) && pthread_create(&thread, NULL, sleep_on, NULL) == 0)
        pthread_detach(thread);
}

static void on_signal(int number) { (void)number; }

static void install_handler(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

static void block_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void set_environment(void)
{
    char text[32];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "%ld", now.tv_nsec);
    setenv("POSENC_BROKEN", text, 1);
}

/* ---- All of it ---- */

static void misbehave(enum posenc_kernel kernel)
{
    static volatile unsigned calls;
    if (SLIP(count_calls))
        calls = calls + 1;
    if (SLIP(allocate) || SLIP(leak))
        allocate(SLIP(allocate));
    if (SLIP(map_memory))
        map_memory();
    if (SLIP(set_errno))
        errno = ERANGE;
    if (SLIP(leave_descriptor))
        leave_descriptor(kernel);
    if (SLIP(leave_thread))
        leave_thread(kernel);
    if (SLIP(install_handler))
        install_handler();
    if (SLIP(block_signal))
        block_signal();
    if (SLIP(set_environment))
        set_environment();
}

void enter_conduct(struct entered *e)
{
    static char scratch[SCRATCH];
    if (SLIP(static_scratch))
        compute_in(e, scratch);
    else if (SLIP(shared_buffer))
        compute_in(e, shared_buffer());
    else
        enter_kernel(e);
    if (SLIP(lazy_table))
        use_lazy_table(e);
    misbehave(e->kernel);
}

/* The last thing before the kernel returns: nothing of the C library would go on as it should. */
void leave_conduct(void)
{
#if defined(__x86_64__)
    if (SLIP(leave_mmx))
        __asm__ volatile("movd %0, %%mm0" : : "r"(1));
    if (SLIP(set_direction))
        __asm__ volatile("std");
#endif
}
