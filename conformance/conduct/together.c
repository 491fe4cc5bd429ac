/*
 * Threads that call a kernel at once: see together.h.
 */
#define _GNU_SOURCE
#include "together.h"
#include "statics.h"

#include "conformance/problem/cost.h"
#include "conformance/problem/reserve.h"
#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"
#include "conformance/problem/subject.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Calls of the others during a stop, of which one at least was begun after it; and moments to wait, after
 * which the machine is too busy for more. */
enum { CALLS_DURING_STOP = TOGETHER, MOMENTS = 1000 };

/* Stops, and calls of each thread that are not stopped, at last.  Large problems have fewer: the calls beside
 * the stops, and those without, may move so many bytes. */
enum { MOST_STOPS = 64, LEAST_STOPS = 2, MOST_FREE_CALLS = 12, LEAST_FREE_CALLS = 2 };
static const double most_bytes = 0x1p28;

struct shared;
struct player {
    pthread_t thread;
    struct shared *shared;
    struct call call;
    bool made, started;
    struct page_map {
        char *begin;
        size_t bytes;
        int64_t pages; /* that the tensor touches, from the first on */
    } maps[LAYOUTS];
    int n_maps;
    void *alone; /* outputs, row by row, as the call gives them alone */
    struct guarded result;
};

struct shared {
    /* A copy, of which the library remembers nothing when it is first called. */
    struct posenc_backend backend;
    struct player players[TOGETHER];
    atomic_int ready;
    atomic_bool over;
    atomic_ulong begun, calls, wrong; /* calls that were begun, ended, and gave other bits */
    atomic_ulong allowed; /* calls to be begun by others than the first thread, so far */
    unsigned long stops;
    int64_t most_stops, free_calls;
    struct statics statics; /* of the kernel, watched in first calls */
};

/* ---- Memory ---- */

/* Tensors begin so that a page ends in the middle of a row, or near it. */
static void *page_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    enum { BEFORE_END = 208 };
    struct player *player = user;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 whole = (bytes + 2 * page - 1) / page * page + page;
    (void)role, (void)offset_bytes;
    if (player->n_maps == LAYOUTS)
        return NULL;
    char *begin = reserve(whole);
    if (!begin)
        return NULL;
    const int64_t pages = (int64_t)((page - BEFORE_END + bytes + page - 1) / page);
    player->maps[player->n_maps++] = (struct page_map){ begin, whole, pages };
    return begin + page - BEFORE_END;
}

static void page_free(void *user, void *data) { (void)user, (void)data; }

static void unmap_all(struct player *player)
{
    for (int i = 0; i < player->n_maps; i++)
        reserve_end(player->maps[i].begin, player->maps[i].bytes);
    player->n_maps = 0;
}

/* ---- Outputs ---- */

static size_t row_bytes(const struct output *out)
{
    return (size_t)out->width * storage_size(out->tensor.dtype);
}

static void *copy_rows(const struct call *call)
{
    size_t bytes = 1, used = 0;
    for (int o = 0; o < call->n_outputs; o++)
        bytes += (size_t)call->outputs[o].rows * row_bytes(&call->outputs[o]);
    char *copy = malloc(bytes);
    for (int o = 0; o < call->n_outputs && copy; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            const size_t n = row_bytes(&call->outputs[o]);
            memcpy(copy + used, storage_row(&call->outputs[o].tensor, r), n);
            used += n;
        }
    return copy;
}

static bool same_rows(const struct call *call, const char *want)
{
    bool same = true;
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows && same; r++) {
            const size_t n = row_bytes(&call->outputs[o]);
            same = memcmp(want, storage_row(&call->outputs[o].tensor, r), n) == 0;
            want += n;
        }
    return same;
}

/* ---- Stops ---- */

/* Of that many calls by each thread, how many the bytes allow. */
static int64_t allowed_calls(const struct problem *problem, int64_t least, int64_t most)
{
    const double n = most_bytes / (TOGETHER * (problem_demand(problem) + 1.0));
    return n < (double)least ? least : n > (double)most ? most : (int64_t)n;
}

static int64_t count_pages(const struct player *player)
{
    int64_t pages = 0;
    for (int i = 0; i < player->n_maps; i++)
        pages += player->maps[i].pages;
    return pages;
}

/* Of a tensor's pages all, or its share of the stops. */
static int64_t count_stops(const struct player *player, const struct page_map *map)
{
    const int64_t most = player->shared->most_stops, all = count_pages(player),
                  share = all > most ? map->pages * most / all : map->pages,
                  least = map->pages < LEAST_STOPS ? map->pages : LEAST_STOPS;
    return share > least ? share : least;
}

/* Calls stop at the first page of each tensor, at the last, and at some evenly between them. */
static void protect_stops(struct player *player, struct together *t)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    t->pages = count_pages(player);
    for (int i = 0; i < player->n_maps; i++) {
        const struct page_map *map = &player->maps[i];
        const int64_t n = count_stops(player, map), steps = n > 1 ? n - 1 : 1;
        for (int64_t k = 0; k < n; k++)
            mprotect(map->begin + (size_t)(k * (map->pages - 1) / steps) * page, page,
                     PROT_NONE);
        t->stop_pages += n;
    }
}

static void wait_a_moment(void)
{
    static const struct timespec moment = { .tv_nsec = 20000 };
    nanosleep(&moment, NULL);
}

/* Until they have ended a few more calls. */
static void let_others_call(struct shared *shared)
{
    const unsigned long until = atomic_load(&shared->calls) + CALLS_DURING_STOP;
    atomic_store(&shared->allowed, atomic_load(&shared->begun) + CALLS_DURING_STOP);
    for (int i = 0; i < MOMENTS && atomic_load(&shared->calls) < until; i++)
        wait_a_moment();
}

static bool stop_at_page(void *user, const char *address)
{
    struct player *player = user;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < player->n_maps; i++) {
        const struct page_map *map = &player->maps[i];
        if (address < map->begin || address >= map->begin + map->bytes)
            continue;
        char *touched = map->begin + (size_t)(address - map->begin) / page * page;
        player->shared->stops++;
        guard_note_pause();
        let_others_call(player->shared);
        guard_note_resume();
        return mprotect(touched, page, PROT_READ | PROT_WRITE) == 0;
    }
    return false;
}

static void unprotect(struct player *player)
{
    for (int i = 0; i < player->n_maps; i++)
        mprotect(player->maps[i].begin, player->maps[i].bytes, PROT_READ | PROT_WRITE);
}

/* ---- Threads ---- */

/* All of them go on when the last has come. */
static void line_up(struct shared *shared)
{
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < TOGETHER && !atomic_load(&shared->over))
        sched_yield();
}

static void call_once(struct player *player, bool compares)
{
    struct shared *shared = player->shared;
    const struct guarded g = guarded_run(&player->call, &shared->backend, NULL);
    const bool ran = !g.crashed && g.status == POSENC_OK;
    if (!ran)
        player->result = g;
    if (!ran || (compares && !same_rows(&player->call, player->alone)))
        atomic_fetch_add(&shared->wrong, 1);
}

static void *call_until_over(void *user)
{
    struct player *player = user;
    struct shared *shared = player->shared;
    line_up(shared);
    while (!atomic_load(&shared->over)) {
        if (atomic_load(&shared->begun) >= atomic_load(&shared->allowed)) {
            wait_a_moment();
            continue;
        }
        atomic_fetch_add(&shared->begun, 1);
        call_reset(&player->call);
        call_once(player, true);
        atomic_fetch_add(&shared->calls, 1);
    }
    return NULL;
}

static void *call_first(void *user)
{
    struct player *player = user;
    guard_mend_by(statics_mend, &player->shared->statics);
    line_up(player->shared);
    if (!atomic_load(&player->shared->over))
        call_once(player, false);
    guard_mend_by(NULL, NULL);
    return NULL;
}

/* A call with stops, then some without. */
static void stop_and_go(struct player *player, struct together *t)
{
    struct shared *shared = player->shared;
    line_up(shared);
    call_reset(&player->call);
    guard_mend_by(stop_at_page, player);
    protect_stops(player, t);
    call_once(player, false);
    unprotect(player);
    guard_mend_by(NULL, NULL);
    if (!same_rows(&player->call, player->alone))
        atomic_fetch_add(&shared->wrong, 1);
    atomic_store(&shared->allowed, atomic_load(&shared->begun) +
                                       (unsigned long)((TOGETHER - 1) * shared->free_calls));
    for (int64_t i = 0; i < shared->free_calls && !atomic_load(&shared->wrong); i++) {
        call_reset(&player->call);
        call_once(player, true);
    }
    atomic_store(&shared->over, true);
}

/* False where not all could be started. */
static bool start(struct shared *shared, void *(*body)(void *))
{
    for (int i = 1; i < TOGETHER; i++) {
        struct player *player = &shared->players[i];
        player->started = pthread_create(&player->thread, NULL, body, player) == 0;
        if (!player->started) {
            atomic_store(&shared->over, true);
            return false;
        }
    }
    return true;
}

static void join(struct shared *shared)
{
    for (int i = 1; i < TOGETHER; i++)
        if (shared->players[i].started)
            pthread_join(shared->players[i].thread, NULL);
}

/* ---- All of it ---- */

static bool fails(struct together *t, const char *what)
{
    if (!t->text[0])
        snprintf(t->text, sizeof t->text, "%s", what);
    return false;
}

/* The same shape with other data: of what has no data other positions. */
static struct problem other_data(struct problem p, int i)
{
    p.seed += (uint64_t)i;
    if (kernel_has_plan(p.kernel))
        p.first += 100 * i;
    else if (kernel_on_scores(p.kernel) && !signature_of(p.kernel)->settle)
        p.query_offset += i;
    return p;
}

static bool make(struct shared *shared, const struct subject *subject,
                 const struct problem *problem, struct together *t)
{
    for (int i = 0; i < TOGETHER; i++) {
        struct player *player = &shared->players[i];
        const struct memory memory = { .get = page_get, .free = page_free, .user = player };
        const struct problem p = other_data(*problem, i);
        player->shared = shared;
        player->made = call_create_by(subject, &player->call, &p, &memory) == POSENC_OK;
        if (!player->made)
            t->nothing = "no call of this problem could be made for each thread";
        if (!player->made)
            return false;
    }
    return true;
}

static bool run_alone(struct shared *shared, struct together *t)
{
    for (int i = 0; i < TOGETHER; i++) {
        struct player *player = &shared->players[i];
        call_reset(&player->call);
        const struct guarded g = guarded_run(&player->call, &shared->backend, NULL);
        player->alone = copy_rows(&player->call);
        if (g.crashed || g.status != POSENC_OK)
            return fails(t, g.crashed ? g.reason : posenc_status_string(g.status));
        if (!player->alone)
            return fails(t, "out of memory");
    }
    if (same_rows(&shared->players[1].call, shared->players[0].alone))
        t->nothing = "all threads' calls have the same outputs, which shows nothing";
    return !t->nothing;
}

static void tell(struct shared *shared, struct together *t)
{
    t->calls = atomic_load(&shared->calls);
    t->stops = shared->stops;
    for (int i = 0; i < TOGETHER; i++) {
        const struct guarded *g = &shared->players[i].result;
        t->crashed = t->crashed || g->crashed;
        if (g->crashed || g->status != POSENC_OK)
            fails(t, g->crashed ? g->reason : posenc_status_string(g->status));
    }
    if (shared->statics.text[0])
        fails(t, shared->statics.text);
    if (atomic_load(&shared->wrong))
        fails(t, "calls of threads at once give other bits than each alone");
}

static void run_first(struct shared *shared, struct together *t)
{
    void *outputs[TOGETHER] = { NULL };
    const enum posenc_kernel kernel = shared->players[0].call.problem.kernel;
    if (start(shared, call_first)) {
        if (statics_of(backend_entry(&shared->backend, kernel), &shared->statics))
            statics_watch(&shared->statics);
        call_first(&shared->players[0]);
    } else {
        fails(t, "no thread could be started");
    }
    join(shared);
    statics_leave(&shared->statics);
    for (int i = 0; i < TOGETHER; i++)
        outputs[i] = copy_rows(&shared->players[i].call);
    if (!t->text[0] && !atomic_load(&shared->wrong) && run_alone(shared, t))
        for (int i = 0; i < TOGETHER; i++)
            if (!outputs[i] || !same_rows(&shared->players[i].call, outputs[i]))
                atomic_fetch_add(&shared->wrong, 1);
    for (int i = 0; i < TOGETHER; i++)
        free(outputs[i]);
}

void together_run(const struct subject *subject, const struct problem *problem, bool first,
                  struct together *t)
{
    struct shared *shared = calloc(1, sizeof *shared);
    *t = (struct together){ .calls = 0 };
    if (!shared) {
        fails(t, "out of memory");
        return;
    }
    memcpy(&shared->backend, subject->backend,
           subject->backend->size < sizeof shared->backend ? subject->backend->size
                                                           : sizeof shared->backend);
    shared->most_stops = allowed_calls(problem, LEAST_STOPS, MOST_STOPS);
    shared->free_calls = allowed_calls(problem, LEAST_FREE_CALLS, MOST_FREE_CALLS);
    guard_note_beside(TOGETHER - 1);
    if (make(shared, subject, problem, t)) {
        if (first) {
            run_first(shared, t);
        } else if (run_alone(shared, t)) {
            if (start(shared, call_until_over))
                stop_and_go(&shared->players[0], t);
            else
                fails(t, "no thread could be started");
            join(shared);
        }
    }
    tell(shared, t);
    guard_note_beside(0);
    for (int i = 0; i < TOGETHER; i++) {
        struct player *player = &shared->players[i];
        if (player->made)
            call_destroy(&player->call);
        unmap_all(player);
        free(player->alone);
    }
    free(shared);
}
