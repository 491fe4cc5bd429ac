/*
 * Contenders: what is timed on a case. A contender is a backend, a roofline or a lower-bound loop. All contenders of a
 * case work on the tensors of one call, on one thread or a team of threads.
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

/* Memory that a roofline reads, in floats. */
struct stream {
    const float *data;
    int64_t n;
};

/* Callback before each call of a backend, and with NULL after the calls. It identifies a backend that never returns. */
typedef void contender_callback(void *user, const struct posenc_backend *backend);

enum { MAX_OUTPUTS = 2 }; /* rope_table has two */

/* Call of a case, with the shares of its threads, its roofline and its loops. */
struct timed_call {
    struct call *call;
    struct team *team;
    int threads;
    struct call *slices;        /* [threads]; with one thread the call itself */
    bool *idle;                 /* [threads]: the share of the thread is empty */
    enum posenc_status *status; /* [threads] of the last call */
    struct call *partial;       /* call of some of the rows */
    double partial_share;       /* fraction of all rows; 0: there is none */
    struct loop_work conversion, work;
    struct loop_block *blocks; /* [threads] */
    enum roofline_kind roofline;
    float *dst[MAX_OUTPUTS]; /* written by the roofline */
    int64_t n[MAX_OUTPUTS];  /* floats of each */
    /* Streams that the roofline reads. One that is shorter than dst is repeated; a longer `add` is read in several
     * passes. src may be dst. */
    struct stream src, add[2];
    contender_callback *on_call; /* or NULL */
    void *on_call_user;
};

/* Prepares a call for timing. Returns false without memory. The caller calls timed_call_close() in either case. */
bool timed_call_open(struct timed_call *timed, struct call *call, struct team *team,
                     int threads);
/* Splits the call into shares. Repeated after a change of its arguments. */
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
    const struct posenc_backend *backend;    /* runs the kernel */
    const struct roofline_variant *roofline; /* or loop, without a backend; or NULL */
    const struct loop_work *work;            /* of a lower-bound loop, or NULL */
    bool partial;                            /* runs the partial call */
    bool is_copy;                            /* A/A control of another contender */
    enum posenc_status status;               /* of the last call */
    enum bench_outcome outcome;              /* BENCH_TIMED unless it was rejected */
    char reason[REASON_SIZE];                /* why it was rejected */
    double seconds;                          /* of one call, for planning */
    int64_t iterations;                      /* calls in a sample */
    int64_t blocks; /* of a loop, for each thread; 0: it runs over the tensors */
    double times;   /* factor from a sample to a whole call */
    size_t rounds;  /* number of rounds in which it takes part */
};
struct contender contender_of_backend(const struct timed_call *timed,
                                      const struct posenc_backend *backend);
struct contender contender_of_roofline(const struct timed_call *timed,
                                       const struct roofline_variant *roofline);
/* Returns a loop over a block of its own. */
struct contender contender_of_loop(const struct timed_call *timed,
                                   const struct roofline_variant *loop,
                                   const struct loop_work *work);
/* Returns a loop over the call's tensors if it supports that and they fit the caches, else over a block: unlike
 * rooflines, loops have no prefetch and streaming stores. */
struct contender contender_of_loop_in_tensors(const struct timed_call *timed,
                                              const struct roofline_variant *loop,
                                              const struct loop_work *work);

static inline bool contender_is_timed(const struct contender *c)
{
    return c->outcome == BENCH_TIMED;
}
static inline bool contender_is_roofline(const struct contender *c)
{
    return c->roofline && !c->work;
}
/* Seconds from which one call is a whole sample, and a second sample is not needed. */
#define CONTENDER_SLOW_S 50e-3

/* Functions of a gbench_sample, for a struct contender: call it once; report the backend before that. */
void contender_call(void *contender);
void contender_announce(void *contender);

/* Sets an outcome and a reason in place of a time. */
void contender_reject(struct contender *c, enum bench_outcome outcome, const char *reason);
/* Calls it once and stores the time. Resets the inputs of `call` before, unless that is NULL. Returns false, after
 * rejecting it, if the call fails. */
bool contender_try(struct contender *c, struct call *call);

#endif
