/*
 * One call shared by OpenMP threads: posenc_split() divides the call into parts, and each thread runs one.
 *
 *     cc -std=c11 -fopenmp split_openmp.c $(pkg-config --cflags --libs posenc) -lm -o split_openmp
 *
 * The same code works for every kernel and with any kind of threads. Threads do not wait for each other, and write
 * different cache lines if the output is aligned to 64 bytes. The output has the same bits as with one thread.
 */
#include <omp.h>
#include <posenc/experimental.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 1000, DIM = 96 };

static _Alignas(64) float by_threads[TOKENS][DIM], by_one[TOKENS][DIM];

/* Runs a call by all threads. Returns the status of a part that failed, or POSENC_OK. */
static enum posenc_status run_together(const struct posenc_sinusoidal_args *whole)
{
    enum posenc_status status = POSENC_OK;
#pragma omp parallel
    {
        struct posenc_sinusoidal_args part;
        enum posenc_status part_status =
            posenc_split(POSENC_KERNEL_SINUSOIDAL, whole, omp_get_thread_num(),
                         omp_get_num_threads(), &part, NULL);
        if (part_status == POSENC_OK)
            part_status = posenc_sinusoidal(NULL, &part, NULL);
        if (part_status != POSENC_OK) {
#pragma omp critical
            status = part_status;
        }
    }
    return status;
}

int main(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    spec.dim = DIM;
    enum posenc_status status = posenc_freqs_create(&spec, &freqs, NULL);
    args.freqs = freqs;
    args.positions.offset = 4096;
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, by_one, TOKENS, DIM);
    if (status == POSENC_OK)
        status = posenc_sinusoidal(NULL, &args, NULL);
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, by_threads, TOKENS, DIM);
    if (status == POSENC_OK)
        status = run_together(&args);
    posenc_freqs_destroy(freqs);
    if (status != POSENC_OK) {
        fprintf(stderr, "split_openmp: %s\n", posenc_status_string(status));
        return 1;
    }
    const bool same = memcmp(by_threads, by_one, sizeof by_one) == 0;
    printf("%d threads: %s\n", omp_get_max_threads(),
           same ? "the same bits as one thread" : "bits differ from one thread");
    return !same;
}
