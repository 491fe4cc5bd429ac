/*
 * Calls one kernel from two threads at once. The calls have the same shape, and each has tensors and data of its own;
 * see side_effects.h.
 *
 * The calls overlap even on one core or a busy machine: the pages of the first call are armed. At each access to a new
 * part that call stops until the other thread has completed each of the other calls.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include "conformance/problem/signature.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CALLS = 4,
    MAX_WAITS =
        1000, /* for the other thread; then the first call resumes anyway, as a kernel may have a lock */
    WAIT_MICROSECONDS = 20,
    STOPS_PER_TENSOR = 4
};

/* A call, and the same call made before while no other thread ran. */
struct overlapping_call {
    struct trap_pages pages; /* memory of `call` */
    struct call call, alone;
    struct tally tally; /* of its thread, because require() is not atomic */
};

struct thread_test {
    struct posenc_backend backend;
    struct overlapping_call
        calls[CALLS];         /* the first one is stopped, the others run meanwhile */
    atomic_uint stops;        /* of the first call */
    atomic_uint stops_served; /* during which the other thread has run its calls */
    atomic_bool first_call_ended;
};

/* ---- The calls ---- */

/* Stops the first call at an access to an armed page; a guard_repair. */
static bool stop_at_page(void *user, const char *address)
{
    struct thread_test *test = user;
    if (!trap_pages_disarm(&test->calls[0].pages, address))
        return false;
    guard_pause();
    const unsigned stop = atomic_fetch_add(&test->stops, 1) + 1;
    for (int i = 0; i < MAX_WAITS && atomic_load(&test->stops_served) < stop; i++)
        usleep(WAIT_MICROSECONDS);
    guard_resume();
    return true;
}

/* Runs a call, and requires the outputs of `alone`. */
static void run_and_compare(const struct thread_test *test, struct overlapping_call *c)
{
    const struct guard_result g = guard_run(&c->call, &test->backend, NULL);
    if (require_clean(&c->tally, &g))
        require_same_outputs(&c->tally, &c->call, &c->alone,
                             "calls of threads at once differ from each alone");
}

/* Runs the other calls during each stop of the first one, until that ends. */
static void *run_during_stops(void *user)
{
    struct thread_test *test = user;
    while (!atomic_load(&test->first_call_ended)) {
        const unsigned stop = atomic_load(&test->stops);
        if (stop == atomic_load(&test->stops_served)) {
            usleep(WAIT_MICROSECONDS);
            continue;
        }
        for (int i = 1; i < CALLS; i++) {
            call_reset(&test->calls[i].call);
            run_and_compare(test, &test->calls[i]);
        }
        atomic_store(&test->stops_served, stop);
    }
    return NULL;
}

/* ---- Both threads ---- */

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
    for (int i = 0; i < CALLS && created; i++) {
        struct overlapping_call *c = &test->calls[i];
        const struct problem p = vary_data(*problem, i);
        c->tally = *t;
        c->pages.parts_per_map = STOPS_PER_TENSOR;
        const struct tensor_allocator memory = trap_pages_memory(&c->pages);
        created = call_create_by(implementation, &c->call, &p, &memory) == POSENC_OK &&
                  call_create_by(implementation, &c->alone, &p, NULL) == POSENC_OK;
    }
    return created;
}

/* Runs each call alone. Returns false if one fails, or if the first two have the same outputs: then mixed-up data
 * would not show, and the tally is skipped. */
static bool run_alone(struct thread_test *test, struct tally *t)
{
    struct tally scratch = *t; /* different outputs must not fail the tally */
    for (int i = 0; i < CALLS; i++) {
        const struct guard_result g = guard_run(&test->calls[i].alone, &test->backend, NULL);
        if (!require_clean(t, &g))
            return false;
    }
    if (!require_same_outputs(&scratch, &test->calls[0].alone, &test->calls[1].alone, ""))
        return true;
    tally_skip(t, "all threads' calls have the same outputs, which shows nothing");
    return false;
}

/* Runs the first call in this thread, and the others in another one. */
static void run_at_once(struct thread_test *test, struct tally *t)
{
    pthread_t thread;
    if (!require(t, pthread_create(&thread, NULL, run_during_stops, test) == 0,
                 "no thread could be started"))
        return;
    guard_set_repair(stop_at_page, test);
    if (require(t, trap_pages_arm(&test->calls[0].pages, true),
                "pages could not be made inaccessible"))
        run_and_compare(test, &test->calls[0]);
    guard_set_repair(NULL, NULL);
    atomic_store(&test->first_call_ended, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < CALLS; i++)
        if (t->result.status == CONF_PASS && test->calls[i].tally.result.status != CONF_PASS)
            t->result = test->calls[i].tally.result;
    require(t, test->stops > 0, "no call was stopped in its middle");
}

void threads_require_same_outputs(struct tally *t, const struct problem *problem)
{
    struct thread_test *test = calloc(1, sizeof *test);
    if (!require(t, test, "out of memory"))
        return;
    test->backend = backend_copy(t->run->backend);
    guard_set_other_threads(1);
    if (!create_calls(test, t, problem))
        tally_skip(t, "no call of this problem could be made for each thread");
    else if (run_alone(test, t))
        run_at_once(test, t);
    guard_set_other_threads(0);
    for (int i = 0; i < CALLS; i++) {
        struct overlapping_call *c = &test->calls[i];
        if (c->call.implementation)
            call_destroy(&c->call);
        if (c->alone.implementation)
            call_destroy(&c->alone);
        trap_pages_free(&c->pages);
    }
    free(test);
}
