/*
 * One tensor rotated by several threads, each of which rotates a slice of the tokens.
 *
 *     cc -std=c11 -pthread threads.c $(pkg-config --cflags --libs posenc) -lm -o threads
 *
 * The library starts no threads, and its kernels may run in any number of threads at once. A slice is an ordinary call
 * with fewer tokens, whose data begin later and whose first position is larger. Slices may have any size. The result
 * has the same bits as one call, because an element depends only on its own pair and position, and is computed by the
 * same operations in every vector lane.
 */
#include <posenc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 1000, HEADS = 32, HEAD_DIM = 128, HALF = HEAD_DIM / 2, THREADS = 7 };

static float x[TOKENS][HEADS][HEAD_DIM];
static float by_threads[TOKENS][HEADS][HEAD_DIM], by_one[TOKENS][HEADS][HEAD_DIM];
static float cosines[TOKENS][HALF], sines[TOKENS][HALF];

struct slice {
    const struct posenc_freqs *freqs; /* immutable, so that all threads share it */
    int64_t first, tokens;
    float (*out)[HEADS][HEAD_DIM];
    enum posenc_status status;
};

/* Computes the cosines and sines of the slice's positions, then rotates its tokens, without any other thread. */
static void *rotate_slice(void *user)
{
    struct slice *slice = user;
    const int64_t first = slice->first, tokens = slice->tokens;
    struct posenc_rope_table_args table = posenc_rope_table_args_init();
    table.freqs = slice->freqs;
    table.positions.offset = first;
    table.cos = posenc_tensor_2d(POSENC_DTYPE_F32, cosines[first], tokens, HALF);
    table.sin = posenc_tensor_2d(POSENC_DTYPE_F32, sines[first], tokens, HALF);
    slice->status = posenc_rope_table(NULL, &table, NULL);
    if (slice->status != POSENC_OK)
        return NULL;

    struct posenc_rope_args rope = posenc_rope_args_init();
    rope.positions.offset = 0; /* the slice's first token has row 0 of its own table */
    rope.cos = posenc_const_view(table.cos);
    rope.sin = posenc_const_view(table.sin);
    rope.x = posenc_const_tensor_3d(POSENC_DTYPE_F32, x[first], tokens, HEADS, HEAD_DIM);
    rope.out = posenc_tensor_3d(POSENC_DTYPE_F32, slice->out[first], tokens, HEADS, HEAD_DIM);
    slice->status = posenc_rope_half(NULL, &rope, NULL);
    return NULL;
}

/* Returns false if a thread could not be started or a slice failed, and prints which. */
static bool rotate_together(const struct posenc_freqs *freqs)
{
    pthread_t threads[THREADS];
    struct slice slices[THREADS];
    int started = 0;
    for (; started < THREADS; started++) {
        const int64_t first = TOKENS * started / THREADS;
        const int64_t end = TOKENS * (started + 1) / THREADS;
        slices[started] = (struct slice){ freqs, first, end - first, by_threads, POSENC_OK };
        if (pthread_create(&threads[started], NULL, rotate_slice, &slices[started]) != 0) {
            fputs("threads: a thread could not be started\n", stderr);
            break;
        }
    }
    bool succeeded = started == THREADS;
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        if (slices[i].status != POSENC_OK) {
            succeeded = false;
            fprintf(stderr, "threads: slice %d: %s\n", i,
                    posenc_status_string(slices[i].status));
        }
    }
    return succeeded;
}

int main(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    float *element = &x[0][0][0];
    for (int64_t i = 0; i < (int64_t)(sizeof x / sizeof *element); i++)
        element[i] = (float)(i * 7919 % 2003) / 1001.0f - 1.0f; /* from -1 to 1 */
    spec.dim = HEAD_DIM;
    enum posenc_status status = posenc_freqs_create(&spec, &freqs, NULL);
    struct slice whole = { freqs, 0, TOKENS, by_one, status };
    if (status == POSENC_OK)
        rotate_slice(&whole);
    const bool rotated = whole.status == POSENC_OK && rotate_together(freqs);
    posenc_freqs_destroy(freqs);
    if (whole.status != POSENC_OK)
        fprintf(stderr, "threads: %s\n", posenc_status_string(whole.status));
    if (!rotated)
        return 1;
    const bool same = memcmp(by_threads, by_one, sizeof by_one) == 0;
    printf("%d threads: %s\n", THREADS,
           same ? "the same bits as one thread" : "bits differ from one thread");
    return !same;
}
