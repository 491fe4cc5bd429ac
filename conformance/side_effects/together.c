/*
 * Runs calls of one kernel on several threads at once.
 */
#define _GNU_SOURCE
#include "side_effects.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    THREADS = 4,
    CALLS_DURING_STOP = THREADS, /* by the other threads, while one is stopped */
    MOMENTS = 1000, /* to wait for these calls; then the machine is too busy for more */
    STOPS = 4       /* in each tensor */
};

struct player {
    struct shared *shared;
    pthread_t thread;
    struct call call, alone; /* in pages that stop it; the same call, undisturbed */
    struct pages pages;
    struct guarded result; /* of a call that did not go through */
};

struct shared {
    struct posenc_backend backend;
    struct player players[THREADS];
    atomic_int ready;
    atomic_int due, done;    /* calls of the others during this stop: to begin; ended */
    atomic_bool over, wrong; /* wrong: a call failed, or gave other bits */
    unsigned long stops;
};

/* ---- A thread ---- */

static bool same_outputs(const struct call *a, const struct call *b)
{
    for (int o = 0; o < a->n_outputs; o++) {
        const struct posenc_tensor *x = &a->outputs[o].tensor, *y = &b->outputs[o].tensor;
        const size_t bytes = (size_t)a->outputs[o].width * storage_size(x->dtype);
        for (int64_t r = 0; r < a->outputs[o].rows; r++)
            if (memcmp(storage_row(x, r), storage_row(y, r), bytes) != 0)
                return false;
    }
    return true;
}

static void wait_a_moment(void)
{
    static const struct timespec moment = { .tv_nsec = 20000 };
    nanosleep(&moment, NULL);
}

static bool stop_at_page(void *user, const char *address)
{
    struct player *player = user;
    struct shared *shared = player->shared;
    if (!pages_open(&player->pages, address))
        return false;
    shared->stops++;
    guard_note_pause();
    atomic_store(&shared->done, 0);
    atomic_store(&shared->due, CALLS_DURING_STOP);
    for (int i = 0; i < MOMENTS && atomic_load(&shared->done) < CALLS_DURING_STOP; i++)
        wait_a_moment();
    guard_note_resume();
    return true;
}

/* Waits until every thread has come here. */
static void line_up(struct shared *shared)
{
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < THREADS)
        sched_yield();
}

static void call_once(struct player *player)
{
    struct shared *shared = player->shared;
    call_reset(&player->call);
    if (player == shared->players)
        pages_close(&player->pages, true);
    const struct guarded g = guarded_run(&player->call, &shared->backend, NULL);
    const bool ran = !g.crashed && g.status == POSENC_OK;
    if (!ran)
        player->result = g;
    if (!ran || !same_outputs(&player->call, &player->alone))
        atomic_store(&shared->wrong, true);
}

/* Calls while the first thread's call stops, until that one ends. */
static void call_during_stops(struct player *player)
{
    struct shared *shared = player->shared;
    while (!atomic_load(&shared->over)) {
        int due = atomic_load(&shared->due);
        if (due == 0) {
            wait_a_moment();
        } else if (atomic_compare_exchange_strong(&shared->due, &due, due - 1)) {
            call_once(player);
            atomic_fetch_add(&shared->done, 1);
        }
    }
}

static void *play(void *user)
{
    struct player *player = user;
    struct shared *shared = player->shared;
    if (player == shared->players)
        guard_set_repair(stop_at_page, player);
    line_up(shared);
    if (player == shared->players)
        call_once(player);
    else
        call_during_stops(player);
    guard_set_repair(NULL, NULL);
    return NULL;
}

/* ---- All of it ---- */

static void fails(struct together *t, const char *what)
{
    if (!t->text[0])
        snprintf(t->text, sizeof t->text, "%s", what);
}

static void fails_by(struct together *t, const struct guarded *g)
{
    t->crashed = t->crashed || g->crashed;
    if (g->crashed || g->status != POSENC_OK)
        fails(t, g->crashed ? g->reason : posenc_status_string(g->status));
}

/* Returns the same shape with other data; a problem without data gets other positions. */
static struct problem other_data(struct problem p, int i)
{
    p.seed += (uint64_t)i;
    if (kernel_has_freqs(p.kernel))
        p.first += 100 * i;
    else if (kernel_on_scores(p.kernel) && !signature_of(p.kernel)->settle)
        p.query_offset += i;
    return p;
}

static bool make(struct shared *shared, const struct implementation *implementation,
                 const struct problem *problem)
{
    bool made = true;
    for (int i = 0; i < THREADS && made; i++) {
        struct player *player = &shared->players[i];
        const struct problem p = other_data(*problem, i);
        player->shared = shared;
        player->pages.parts = STOPS;
        const struct memory memory = pages_memory(&player->pages);
        made = call_create_by(implementation, &player->call, &p, &memory) == POSENC_OK &&
               call_create_by(implementation, &player->alone, &p, NULL) == POSENC_OK;
    }
    return made;
}

static void run_alone(struct shared *shared, struct together *t)
{
    for (int i = 0; i < THREADS && !t->text[0]; i++) {
        const struct guarded g = guarded_run(&shared->players[i].alone, &shared->backend, NULL);
        fails_by(t, &g);
    }
    if (same_outputs(&shared->players[0].alone, &shared->players[1].alone))
        t->nothing = "all threads' calls have the same outputs, which shows nothing";
}

static void run_at_once(struct shared *shared, struct together *t)
{
    int n = 1;
    while (n < THREADS &&
           pthread_create(&shared->players[n].thread, NULL, play, &shared->players[n]) == 0)
        n++;
    if (n < THREADS) {
        fails(t, "no thread could be started");
        atomic_fetch_add(&shared->ready, THREADS);
    } else {
        play(&shared->players[0]);
    }
    atomic_store(&shared->over, true);
    while (n-- > 1)
        pthread_join(shared->players[n].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        fails_by(t, &shared->players[i].result);
}

static void run(struct shared *shared, struct together *t)
{
    run_alone(shared, t);
    if (!t->text[0] && !t->nothing)
        run_at_once(shared, t);
    if (atomic_load(&shared->wrong))
        fails(t, "calls of threads at once give other bits than each alone");
}

void together_run(const struct implementation *implementation, const struct problem *problem,
                  struct together *t)
{
    struct shared *shared = calloc(1, sizeof *shared);
    *t = (struct together){ .stops = 0 };
    if (!shared) {
        fails(t, "out of memory");
        return;
    }
    shared->backend = backend_copy(implementation->backend);
    guard_note_threads(THREADS - 1);
    if (make(shared, implementation, problem))
        run(shared, t);
    else
        t->nothing = "no call of this problem could be made for each thread";
    guard_note_threads(0);
    t->stops = shared->stops;
    for (int i = 0; i < THREADS; i++) {
        struct player *player = &shared->players[i];
        if (player->call.implementation)
            call_destroy(&player->call);
        if (player->alone.implementation)
            call_destroy(&player->alone);
        pages_free(&player->pages);
    }
    free(shared);
}
