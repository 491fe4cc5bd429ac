/*
 * Calls one kernel from several threads at once, each with tensors and data of its own and the same
 * shape; see side_effects.h.
 *
 * The calls are made to overlap, even on one core and on a busy machine. The pages of the first
 * caller are closed. Wherever its call reaches new ones it stops, until the others have begun calls
 * and ended them.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include "conformance/problem/signature.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    THREADS = 4,
    CALLS_DURING_STOP = THREADS, /* by the other callers, while the first one is stopped */
    MOST_WAITS = 1000,           /* for these calls; then the machine is too busy for more */
    STOPS = 4                    /* in each tensor */
};

struct caller {
    struct crowd *crowd;
    pthread_t thread;
    struct call call;  /* in pages that can be closed */
    struct call alone; /* the same call, made before by this thread alone */
    struct pages pages;
    struct tally tally; /* of this caller, as requirements are no atomic operations */
};

struct crowd {
    struct posenc_backend backend;
    struct caller callers[THREADS];
    atomic_int ready; /* callers that have lined up */
    atomic_int due;   /* calls of the others that may begin during this stop */
    atomic_int ended; /* calls of the others that ended during this stop */
    atomic_bool over; /* the first caller's call has ended */
    unsigned long stops;
};

/* ---- A caller ---- */

static void wait_a_moment(void)
{
    static const struct timespec moment = { .tv_nsec = 20000 };
    nanosleep(&moment, NULL);
}

/* Stops the first caller where its call touches a closed page; a guard_repair. */
static bool stop_at_page(void *user, const char *address)
{
    struct caller *caller = user;
    struct crowd *crowd = caller->crowd;
    if (!pages_open(&caller->pages, address))
        return false;
    crowd->stops++;
    guard_note_pause();
    atomic_store(&crowd->ended, 0);
    atomic_store(&crowd->due, CALLS_DURING_STOP);
    for (int i = 0; i < MOST_WAITS && atomic_load(&crowd->ended) < CALLS_DURING_STOP; i++)
        wait_a_moment();
    guard_note_resume();
    return true;
}

static void make_call(struct caller *caller)
{
    const struct crowd *crowd = caller->crowd;
    call_reset(&caller->call);
    if (caller == crowd->callers)
        pages_close(&caller->pages, true);
    const struct guard_result g = guard_run(&caller->call, &crowd->backend, NULL);
    if (require_clean(&caller->tally, &g))
        require_same_outputs(&caller->tally, &caller->call, &caller->alone,
                             "calls of threads at once differ from each alone");
}

/* Makes calls while the first caller is stopped, until its call ends. */
static void call_during_stops(struct caller *caller)
{
    struct crowd *crowd = caller->crowd;
    while (!atomic_load(&crowd->over)) {
        int due = atomic_load(&crowd->due);
        if (due == 0) {
            wait_a_moment();
        } else if (atomic_compare_exchange_strong(&crowd->due, &due, due - 1)) {
            make_call(caller);
            atomic_fetch_add(&crowd->ended, 1);
        }
    }
}

/* The body of each thread. It begins when all callers are there. */
static void *run_caller(void *user)
{
    struct caller *caller = user;
    struct crowd *crowd = caller->crowd;
    const bool is_first = caller == crowd->callers;
    if (is_first)
        guard_set_repair(stop_at_page, caller);
    atomic_fetch_add(&crowd->ready, 1);
    while (atomic_load(&crowd->ready) < THREADS)
        sched_yield();
    if (is_first)
        make_call(caller);
    else
        call_during_stops(caller);
    guard_set_repair(NULL, NULL);
    return NULL;
}

/* ---- All callers ---- */

/* Returns the same shape with other data; a problem without data gets other positions. */
static struct problem vary_data(struct problem p, int i)
{
    p.seed += (uint64_t)i;
    if (kernel_has_freqs(p.kernel))
        p.first += 100 * i;
    else if (kernel_on_scores(p.kernel) && !signature_of(p.kernel)->derive)
        p.query_offset += i;
    return p;
}

static bool make_callers(struct crowd *crowd, const struct tally *t,
                         const struct problem *problem)
{
    const struct implementation *implementation = t->run->implementation;
    bool made = true;
    for (int i = 0; i < THREADS && made; i++) {
        struct caller *caller = &crowd->callers[i];
        const struct problem p = vary_data(*problem, i);
        caller->crowd = crowd;
        caller->tally = *t;
        caller->pages.parts = STOPS;
        const struct memory memory = pages_memory(&caller->pages);
        made = call_create_by(implementation, &caller->call, &p, &memory) == POSENC_OK &&
               call_create_by(implementation, &caller->alone, &p, NULL) == POSENC_OK;
    }
    return made;
}

static bool run_alone(struct crowd *crowd, struct tally *t)
{
    struct tally scratch = *t;
    for (int i = 0; i < THREADS; i++) {
        const struct guard_result g =
            guard_run(&crowd->callers[i].alone, &crowd->backend, NULL);
        if (!require_clean(t, &g))
            return false;
    }
    if (!require_same_outputs(&scratch, &crowd->callers[0].alone, &crowd->callers[1].alone, ""))
        return true;
    tally_skip(t, "all threads' calls have the same outputs, which shows nothing");
    return false;
}

static void run_at_once(struct crowd *crowd, struct tally *t)
{
    struct caller *callers = crowd->callers;
    int n = 1;
    while (n < THREADS &&
           pthread_create(&callers[n].thread, NULL, run_caller, &callers[n]) == 0)
        n++;
    if (require(t, n == THREADS, "no thread could be started"))
        run_caller(&callers[0]);
    else
        atomic_fetch_add(&crowd->ready, THREADS);
    atomic_store(&crowd->over, true);
    while (n-- > 1)
        pthread_join(callers[n].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        if (t->result.status == CONF_PASS && callers[i].tally.result.status != CONF_PASS)
            t->result = callers[i].tally.result;
    require(t, crowd->stops > 0, "no call was stopped in its middle");
}

void threads_check(struct tally *t, const struct problem *problem)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    if (!require(t, crowd, "out of memory"))
        return;
    crowd->backend = backend_copy(t->run->backend);
    guard_note_set_threads(THREADS - 1);
    if (!make_callers(crowd, t, problem))
        tally_skip(t, "no call of this problem could be made for each thread");
    else if (run_alone(crowd, t))
        run_at_once(crowd, t);
    guard_note_set_threads(0);
    for (int i = 0; i < THREADS; i++) {
        struct caller *caller = &crowd->callers[i];
        if (caller->call.implementation)
            call_destroy(&caller->call);
        if (caller->alone.implementation)
            call_destroy(&caller->alone);
        pages_free(&caller->pages);
    }
    free(crowd);
}
