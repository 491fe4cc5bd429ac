/*
 * Contenders of a case: the backends, rooflines and lower-bound loops whose times are compared. All work on the tensors of
 * one call, on one thread or a team of threads. For example, rope_half/f32 has the contenders avx2, libm, the roofline
 * "in place" by "avx2 prefetch", and the loop "turn" by avx2. rounds.c times them; harness.c and pairs.c make them.
 */
#ifndef POSENC_CONTENDER_H
#define POSENC_CONTENDER_H

#include "bench.h"
#include "rooflines.h"

/* ---- Team of threads (team.c) ---- */

/* Team of threads that run one function at a time, each on its own share. Idle threads spin for a moment before they
 * sleep, so that a start takes about a microsecond. */
struct team;
typedef void team_work(void *user, int member, int n);

/* Starts n - 1 threads; the calling thread is member 0. Returns NULL on failure. */
struct team *team_create(int n);
void team_destroy(struct team *team);

/* Calls work(user, member, n) on every member; returns when all have returned. */
void team_run(struct team *team, team_work *work, void *user);

/* ---- The call that is timed ---- */

enum { REASON_SIZE = 288 };

/* Memory that a roofline reads. */
struct stream {
    const float *data;
    int64_t n; /* floats */
};

enum { MAX_OUTPUTS = 2 }; /* rope_table has two */

/* Call of a case, with the shares of its threads, its roofline and its loops. */
struct timed_call {
    struct call *call;
    struct team *team;
    int threads;
    struct call *slices; /* [threads] shares of the call; with one thread the call itself */
    bool *idle;          /* [threads]: the share of the thread is empty */
    enum posenc_status *status; /* [threads] of the last call */
    /* Call of some of the rows, and their fraction of all rows; 0: there is none. */
    struct call *partial;
    double partial_share;
    /* Lower-bound loops: conversions of the call, computation of its kernel, and memory of each thread. */
    struct loop_work conversion, work;
    struct loop_block *blocks; /* [threads] */
    enum bound_kind roofline;
    /* Outputs that the roofline writes, and the floats of each. */
    float *dst[MAX_OUTPUTS];
    int64_t dst_floats[MAX_OUTPUTS];
    /* Streams that the roofline reads. One that is shorter than dst is repeated; a longer `add` is read in several
     * passes. src may be dst. */
    struct stream src, add[2];
    /* NULL, or called before each call of a backend, and with NULL after the calls. It identifies a backend that never
     * returns. */
    void (*on_call)(void *user, const struct posenc_backend *backend);
    void *on_call_user;
};

/* Prepares a call for timing. Returns false without memory. The caller calls timed_call_close() in either case. */
bool timed_call_open(struct timed_call *timed, struct call *call, struct team *team,
                     int threads);
/* Splits the call into the shares of threads, or makes the partial call of one thread. The caller repeats it after a change
 * of the arguments. */
void timed_call_cut(struct timed_call *timed);
void timed_call_close(struct timed_call *timed);

/* Makes a call in place repeatable on its own result: sets x_scale to 1, since otherwise scores would decay to
 * denormals or overflow, and the weights of norms to 1. */
void timed_call_make_repeatable(struct call *call);

/* Returns an allocator of buffers that are aligned to 64 bytes, filled with normal numbers, and start at different
 * offsets within a page: loads wait for unrelated stores at the same offset of another page (4 KiB aliasing). `count`
 * must outlive the buffers. */
struct tensor_allocator timed_call_memory(unsigned *count);

/* ---- Contenders ---- */

struct contender {
    const struct timed_call *timed;
    /* One of these is not NULL: a backend that runs the kernel, or a roofline or loop. */
    const struct posenc_backend *backend;
    const struct bound_variant *bound;
    const struct loop_work *work; /* of a loop; otherwise NULL */
    bool partial;                 /* runs the partial call */
    bool is_copy;                 /* A/A control of another contender */
    enum posenc_status status;    /* of the last call */
    enum bench_outcome outcome;   /* BENCH_TIMED unless it was rejected */
    char reason[REASON_SIZE];     /* why it was rejected */
    double seconds;               /* of one call, for planning */
    int64_t iterations;           /* calls in a sample */
    int64_t blocks;               /* of a loop, for each thread; 0: it runs over the tensors */
    double sample_scale; /* time of the whole call relative to an iteration; 1 but for loops */
    size_t rounds;       /* number of rounds in which it takes part */
};
struct contender contender_of_backend(const struct timed_call *timed,
                                      const struct posenc_backend *backend);
/* Returns a loop over the blocks of the threads; without `work` a roofline. */
struct contender contender_of_bound(const struct timed_call *timed,
                                    const struct bound_variant *bound,
                                    const struct loop_work *work);
/* Moves a loop to the call's tensors if it supports that and they fit the caches. Beyond the caches it would be no lower
 * bound: unlike rooflines, loops have no prefetch and no streaming stores. */
void contender_move_to_tensors(struct contender *loop);

static inline bool contender_is_timed(const struct contender *c)
{
    return c->outcome == BENCH_TIMED;
}
static inline bool contender_is_roofline(const struct contender *c)
{
    return c->bound && !c->work;
}
/* Seconds above which one call is a whole sample, and calibration needs no second sample. */
#define CONTENDER_SLOW_S 50e-3

/* Callbacks of a gbench_sample (gbench.h), whose argument is a struct contender. contender_call() runs it once on all
 * threads; contender_announce() calls on_call() before that. */
void contender_call(void *contender);
void contender_announce(void *contender);

/* Sets an outcome and a reason in place of a time. */
void contender_reject(struct contender *c, enum bench_outcome outcome, const char *reason);
/* Runs a contender once and stores the time. Resets the inputs of `call` before, unless that is NULL. Rejects the contender
 * and returns false if the call fails. */
bool contender_try(struct contender *c, struct call *call);

#endif
