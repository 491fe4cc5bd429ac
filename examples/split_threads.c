/*
 * One call shared by POSIX threads: posenc_split() divides the call into parts, and each thread runs one.
 *
 *     cc -std=c11 -pthread split_threads.c $(pkg-config --cflags --libs posenc) -lm -o split_threads
 *
 * The same code works for every kernel. Threads do not wait for each other. They write different cache lines if the
 * output is aligned to 64 bytes. The output has the same bits as with one thread.
 */
#include <posenc/experimental.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { HEADS = 12, TOKENS = 200, THREADS = 5 };

static _Alignas(64) float by_threads[HEADS][TOKENS][TOKENS], by_one[HEADS][TOKENS][TOKENS];

struct part {
    pthread_t thread;
    const struct posenc_alibi_args *whole;
    int k; /* number of the part */
    enum posenc_status status;
    struct posenc_error error; /* one for each thread: several parts may be rejected at once */
};

static void *run_part(void *user)
{
    struct part *part = user;
    struct posenc_alibi_args args;
    part->status = posenc_alibi_add_split(part->whole, part->k, THREADS, &args, &part->error);
    if (part->status == POSENC_OK)
        part->status = posenc_alibi_add(NULL, &args, &part->error);
    return NULL;
}

/* Returns false if a thread could not be started or a part failed, and prints which. */
static bool run_together(const struct posenc_alibi_args *whole)
{
    struct part parts[THREADS];
    int started = 0;
    for (; started < THREADS; started++) {
        struct part *part = &parts[started];
        *part = (struct part){ .whole = whole, .k = started };
        if (pthread_create(&part->thread, NULL, run_part, part) != 0) {
            fputs("split_threads: a thread could not be started\n", stderr);
            break;
        }
    }
    bool succeeded = started == THREADS;
    for (int i = 0; i < started; i++) {
        pthread_join(parts[i].thread, NULL);
        if (parts[i].status != POSENC_OK) {
            succeeded = false;
            char text[256];
            posenc_error_text(&parts[i].error, text, sizeof text);
            fprintf(stderr, "split_threads: part %d: %s\n", i, text);
        }
    }
    return succeeded;
}

int main(void)
{
    float slopes[HEADS], *scores = &by_threads[0][0][0];
    struct posenc_alibi_args args = posenc_alibi_args_init();
    enum posenc_status status = posenc_alibi_slopes(HEADS, 8.0, slopes, NULL);
    for (int64_t i = 0; i < (int64_t)HEADS * TOKENS * TOKENS; i++)
        scores[i] = (float)(i * 7919 % 2003) / 1001.0f - 1.0f; /* from -1 to 1 */
    memcpy(by_one, by_threads, sizeof by_one);

    args.slopes = slopes;
    args.causal = true;
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, by_one, HEADS, TOKENS, TOKENS);
    if (status == POSENC_OK)
        status = posenc_alibi_add(NULL, &args, NULL);
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, by_threads, HEADS, TOKENS, TOKENS);
    if (status != POSENC_OK) {
        fprintf(stderr, "split_threads: %s\n", posenc_status_string(status));
        return 1;
    }
    if (!run_together(&args))
        return 1;
    const bool same = memcmp(by_threads, by_one, sizeof by_one) == 0;
    printf("%d threads: %s\n", THREADS,
           same ? "the same bits as one thread" : "bits differ from one thread");
    return !same;
}
