/* Team of POSIX threads (see contender.h). team_run() stores the work and increments the counter `generation`. Members wait
 * for that change, first spinning, then asleep, and decrement `busy` when they return. */
#define _POSIX_C_SOURCE 200809L
#include "contender.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPINS = 20000 }; /* polls before a thread sleeps or yields, some tens of microseconds */

struct team_member {
    struct team *team;
    pthread_t thread;
    int index;
};

struct team {
    int n, started;
    struct team_member *members;
    team_work *work; /* NULL: the threads end */
    void *user;
    atomic_uint generation; /* incremented for each call of team_run() */
    atomic_int busy;        /* members that have not returned yet */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Returns as soon as the generation is not the last one of this member. */
static void wait_for_change(struct team *team, unsigned last_generation)
{
    for (int i = 0; i < SPINS; i++)
        if (atomic_load_explicit(&team->generation, memory_order_acquire) != last_generation)
            return;
    pthread_mutex_lock(&team->mutex);
    while (atomic_load(&team->generation) == last_generation)
        pthread_cond_wait(&team->changed, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
}

static void *member_main(void *user)
{
    const struct team_member *member = user;
    struct team *team = member->team;
    for (unsigned last_generation = 0;; last_generation++) {
        wait_for_change(team, last_generation);
        if (!team->work)
            return NULL;
        team->work(team->user, member->index, team->n);
        atomic_fetch_sub_explicit(&team->busy, 1, memory_order_release);
    }
}

/* Hands work to the threads; NULL ends them. */
static void post(struct team *team, team_work *work, void *user)
{
    pthread_mutex_lock(&team->mutex);
    team->work = work;
    team->user = user;
    atomic_store(&team->busy, team->n - 1);
    atomic_fetch_add(&team->generation, 1);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->mutex);
}

void team_run(struct team *team, team_work *work, void *user)
{
    if (team->n > 1)
        post(team, work, user);
    work(user, 0, team->n);
    int polls = 0; /* with one thread, `busy` stays 0 */
    while (atomic_load_explicit(&team->busy, memory_order_acquire) > 0)
        if (polls < SPINS)
            polls++;
        else
            sched_yield();
}

struct team *team_create(int n)
{
    struct team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->n = n;
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->changed, NULL);
    team->members = calloc((size_t)n, sizeof *team->members);
    for (int i = 1; team->members && i < n; i++) {
        struct team_member *member = &team->members[i];
        *member = (struct team_member){ .team = team, .index = i };
        if (pthread_create(&member->thread, NULL, member_main, member) != 0)
            break;
        team->started++;
    }
    if (team->members && team->started == n - 1)
        return team;
    team_destroy(team);
    return NULL;
}

void team_destroy(struct team *team)
{
    if (!team)
        return;
    post(team, NULL, NULL);
    for (int i = 1; i <= team->started; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->mutex);
    free(team->members);
    free(team);
}
