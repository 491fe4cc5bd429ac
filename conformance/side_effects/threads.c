/*
 * Calls one kernel from several threads at once. The calls have the same shape, and each has tensors and data of its
 * own; see side_effects.h.
 *
 * The calls overlap even on one core or a busy machine: the pages of the first caller are armed. At each access to a
 * new part its call stops until the other callers have completed whole calls.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include "conformance/problem/signature.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS = 4,
    CALLS_DURING_STOP = THREADS, /* of the other callers, while the first call is stopped */
    MAX_WAITS = 1000,            /* for these calls; then the first call resumes anyway */
    WAIT_MICROSECONDS = 20,
    STOPS_PER_TENSOR = 4
};

/* A thread, its call, and the same call made before while no other thread ran. */
struct caller {
    struct thread_test *test;
    pthread_t thread;
    struct trap_pages pages; /* memory of `call` */
    struct call call, alone;
    struct tally tally; /* one for each caller, because require() is not atomic */
};

struct thread_test {
    struct posenc_backend backend;
    struct caller callers[THREADS]; /* the first one is stopped, the others call meanwhile */
    atomic_int started;             /* callers that reached the start */
    atomic_int calls_to_begin;      /* by the other callers during the current stop */
    atomic_int calls_ended;         /* by the other callers during the current stop */
    atomic_bool first_call_ended;
    unsigned long stops;
};

/* ---- A caller ---- */

/* Stops the first caller at an access to an armed page; a guard_repair. */
static bool stop_at_page(void *user, const char *address)
{
    struct caller *caller = user;
    struct thread_test *test = caller->test;
    if (!trap_pages_disarm(&caller->pages, address))
        return false;
    test->stops++;
    guard_pause();
    atomic_store(&test->calls_ended, 0);
    atomic_store(&test->calls_to_begin, CALLS_DURING_STOP);
    for (int i = 0; i < MAX_WAITS && atomic_load(&test->calls_ended) < CALLS_DURING_STOP; i++)
        usleep(WAIT_MICROSECONDS);
    guard_resume();
    return true;
}

/* Runs a caller's call once, and requires the outputs of `alone`. */
static void run_and_compare(struct caller *caller)
{
    const struct thread_test *test = caller->test;
    call_reset(&caller->call);
    if (caller == test->callers && !trap_pages_arm(&caller->pages, true))
        require(&caller->tally, false, "pages could not be made inaccessible");
    const struct guard_result g = guard_run(&caller->call, &test->backend, NULL);
    if (require_clean(&caller->tally, &g))
        require_same_outputs(&caller->tally, &caller->call, &caller->alone,
                             "calls of threads at once differ from each alone");
}

/* Repeats the call during each stop of the first caller, until the first call ends. */
static void call_during_stops(struct caller *caller)
{
    struct thread_test *test = caller->test;
    while (!atomic_load(&test->first_call_ended)) {
        int n = atomic_load(&test->calls_to_begin);
        if (n == 0) {
            usleep(WAIT_MICROSECONDS);
        } else if (atomic_compare_exchange_strong(&test->calls_to_begin, &n, n - 1)) {
            run_and_compare(caller);
            atomic_fetch_add(&test->calls_ended, 1);
        }
    }
}

/* Runs a caller in its thread, once all callers have started. */
static void *run_caller(void *user)
{
    struct caller *caller = user;
    struct thread_test *test = caller->test;
    const bool is_first = caller == test->callers;
    if (is_first)
        guard_set_repair(stop_at_page, caller);
    atomic_fetch_add(&test->started, 1);
    while (atomic_load(&test->started) < THREADS)
        sched_yield();
    if (is_first)
        run_and_compare(caller);
    else
        call_during_stops(caller);
    guard_set_repair(NULL, NULL);
    return NULL;
}

/* ---- All callers ---- */

/* Returns problem number i of the same shape, with other data. A problem without tensors of data gets other positions
 * or another query offset. */
static struct problem vary_data(struct problem p, int i)
{
    p.seed += (uint64_t)i;
    if (kernel_has_freqs(p.kernel))
        p.first += 100 * i;
    else if (kernel_on_scores(p.kernel) && !signature_of(p.kernel)->derive)
        p.query_offset += i;
    return p;
}

/* Returns false if a call of the problem cannot be created. */
static bool create_calls(struct thread_test *test, const struct tally *t,
                         const struct problem *problem)
{
    const struct implementation *implementation = t->run->implementation;
    bool created = true;
    for (int i = 0; i < THREADS && created; i++) {
        struct caller *caller = &test->callers[i];
        const struct problem p = vary_data(*problem, i);
        caller->test = test;
        caller->tally = *t;
        caller->pages.parts_per_map = STOPS_PER_TENSOR;
        const struct tensor_allocator memory = trap_pages_memory(&caller->pages);
        created = call_create_by(implementation, &caller->call, &p, &memory) == POSENC_OK &&
                  call_create_by(implementation, &caller->alone, &p, NULL) == POSENC_OK;
    }
    return created;
}

/* Runs each call alone. Returns false if one fails, or if the first two have the same outputs: then mixed-up data
 * would not show, and the tally is skipped. */
static bool run_alone(struct thread_test *test, struct tally *t)
{
    struct tally scratch = *t; /* different outputs must not fail the tally */
    for (int i = 0; i < THREADS; i++) {
        const struct guard_result g = guard_run(&test->callers[i].alone, &test->backend, NULL);
        if (!require_clean(t, &g))
            return false;
    }
    if (!require_same_outputs(&scratch, &test->callers[0].alone, &test->callers[1].alone, ""))
        return true;
    tally_skip(t, "all threads' calls have the same outputs, which shows nothing");
    return false;
}

/* Runs all callers at once, the first one in this thread. */
static void run_at_once(struct thread_test *test, struct tally *t)
{
    struct caller *callers = test->callers;
    int n = 1;
    while (n < THREADS &&
           pthread_create(&callers[n].thread, NULL, run_caller, &callers[n]) == 0)
        n++;
    if (require(t, n == THREADS, "no thread could be started"))
        run_caller(&callers[0]);
    else
        atomic_fetch_add(&test->started, THREADS); /* lets the started threads end */
    atomic_store(&test->first_call_ended, true);
    while (n-- > 1)
        pthread_join(callers[n].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        if (t->result.status == CONF_PASS && callers[i].tally.result.status != CONF_PASS)
            t->result = callers[i].tally.result;
    require(t, test->stops > 0, "no call was stopped in its middle");
}

void threads_require_same_outputs(struct tally *t, const struct problem *problem)
{
    struct thread_test *test = calloc(1, sizeof *test);
    if (!require(t, test, "out of memory"))
        return;
    test->backend = backend_copy(t->run->backend);
    guard_set_other_threads(THREADS - 1);
    if (!create_calls(test, t, problem))
        tally_skip(t, "no call of this problem could be made for each thread");
    else if (run_alone(test, t))
        run_at_once(test, t);
    guard_set_other_threads(0);
    for (int i = 0; i < THREADS; i++) {
        struct caller *caller = &test->callers[i];
        if (caller->call.implementation)
            call_destroy(&caller->call);
        if (caller->alone.implementation)
            call_destroy(&caller->alone);
        trap_pages_free(&caller->pages);
    }
    free(test);
}
