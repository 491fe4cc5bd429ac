/* Tests kernels on several threads while posenc_select() changes backends. All threads call each kernel for the first
 * time together. Each call must succeed, and afterwards all threads must get equal results. ThreadSanitizer reports
 * data races (./run test-sanitizers). */
#define _POSIX_C_SOURCE 200809L
#include "problem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, TIMES = 20 };

static struct call calls[THREADS][POSENC_KERNEL_COUNT];
static pthread_barrier_t begin;
static atomic_int failures, running;

static void require(bool holds, const char *what, int kernel)
{
    if (holds)
        return;
    printf("FAILED: %s (%s)\n", what, posenc_kernel_name((enum posenc_kernel)kernel));
    failures++;
}

static void *run_all_kernels(void *own)
{
    struct call *mine = own;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        pthread_barrier_wait(&begin);
        for (int i = 0; i < TIMES; i++)
            require(call_run(&mine[k], NULL) == POSENC_OK, "a call beside others", k);
    }
    running--;
    return NULL;
}

/* Changes the selection as often as possible while the threads run. */
static void change_selection(void)
{
    static const char *const choices[] = { "scalar", "libm", "rope_half scalar\nalibi libm\n",
                                           NULL };
    for (int i = 0; running > 0; i++)
        require(posenc_select(choices[i % 4], NULL) == POSENC_OK &&
                    posenc_selection_of(0, POSENC_DTYPE_F32, 0).backend,
                "a choice", 0);
}

static void require_same_results(int kernel)
{
    for (int t = 0; t < THREADS; t++) {
        call_reset(&calls[t][kernel]);
        require(call_run(&calls[t][kernel], NULL) == POSENC_OK, "a call alone", kernel);
    }
    for (int o = 0; o < calls[0][kernel].n_outputs; o++) {
        const struct output *out = &calls[0][kernel].outputs[o];
        for (int64_t r = 0; r < out->rows; r++)
            for (int t = 1; t < THREADS; t++)
                require(memcmp(call_row(&calls[0][kernel], o, r),
                               call_row(&calls[t][kernel], o, r),
                               (size_t)out->width * sizeof(float)) == 0,
                        "the same result", kernel);
    }
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
            const struct problem p = problem_default((enum posenc_kernel)k);
            require(call_create(&calls[t][k], &p, NULL) == POSENC_OK, "a call is made", k);
        }
    if (failures || pthread_barrier_init(&begin, NULL, THREADS))
        return 1;
    running = THREADS;
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, run_all_kernels, calls[t]))
            abort();
    change_selection();
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    require(posenc_select(NULL, NULL) == POSENC_OK, "the choice of before", 0);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        require_same_results(k);
    for (int t = 0; t < THREADS; t++)
        for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
            call_destroy(&calls[t][k]);
    printf("%d failed\n", (int)failures);
    return failures != 0;
}
