/*
 * Contenders: work that can be timed on a case. A contender is a backend, a roofline or a lower-bound loop, on the
 * tensors of one call, by one thread or by a team.
 */
#ifndef POSENC_CONTENDER_H
#define POSENC_CONTENDER_H

#include "bench.h"
#include "rooflines.h"

/* ---- Teams (team.c) ---- */

/* Threads that do one piece of work at a time, each member its own share. Members wait awake for a moment, then asleep,
 * so that starting them costs a microsecond or so. */
struct team;
typedef void team_work(void *user, int member, int n);

/* Starts n - 1 threads; the calling thread is member 0. Returns NULL if a thread or memory is refused. */
struct team *team_create(int n);
void team_destroy(struct team *team);

/* Calls work(user, member, n) on every member; returns when all have returned. */
void team_run(struct team *team, team_work *work, void *user);

/* ---- The call that is timed ---- */

enum { REASON_SIZE = 288 };

/* Floats that a roofline reads, whatever they stand for. */
struct stream {
    const float *data;
    int64_t n;
};

/* Is told the backend that is called next; NULL: none is. It shows where a process is that never returns. */
typedef void contender_watch(void *user, const struct posenc_backend *backend);

enum { MOST_OUTPUTS = 2 }; /* rope_table has two */

/* The tensors that all contenders of a case work on. */
struct timed_call {
    struct call *call;
    struct team *team;
    int threads;
    struct call *slices;        /* [threads]; with one thread the call itself */
    bool *idle;                 /* [threads]: nothing is left for that one */
    enum posenc_status *status; /* [threads] of the last call */
    struct call *partial;       /* a call of some of the rows */
    double partial_share;       /* their share of all rows; 0: there is no such call */
    struct loop_work conversion, work;
    struct loop_block *blocks; /* [threads] */
    enum roofline_kind roofline;
    float *dst[MOST_OUTPUTS]; /* that the roofline writes */
    int64_t n[MOST_OUTPUTS];  /* floats of each */
    /* Streams that the roofline reads.  A stream shorter than dst is read again and again, an `add` that is
     * longer in several passes.  src may be dst. */
    struct stream src, add[2];
    contender_watch *watch; /* or NULL */
    void *watch_user;
};

/* Opens a call for timing. Returns false when memory runs out; it is to be closed in either case. */
bool timed_call_open(struct timed_call *timed, struct call *call, struct team *team,
                     int threads);
/* Cuts the call for the team, once more after its arguments changed. */
void timed_call_cut(struct timed_call *timed);
void timed_call_close(struct timed_call *timed);

/* Makes a call in place fit to be repeated on its own result. Sums take x_scale 1: below 1 scores of zero bias would
 * decay into denormals, above 1 they would overflow, and the time of an fma does not depend on its factor. Norms take
 * weights of 1. */
void call_make_repeatable(struct call *call);

/* Returns memory whose buffers are aligned to 64 bytes, written once with ordinary numbers, and each at
 * another offset within its page.  Tensors that all begin on a page make loads wait for unrelated
 * stores 4 KiB away and cost an out-of-place run 20 to 40 %.  `count` must outlive the buffers. */
struct memory bench_memory(unsigned *count);

/* ---- Contenders ---- */

struct contender {
    const struct timed_call *timed;
    const struct posenc_backend *backend;    /* runs the kernel */
    const struct roofline_variant *roofline; /* which has no backend, or NULL */
    const struct loop_work *work;            /* work of a lower-bound loop, or NULL */
    bool partial;                            /* does the partial call alone */
    bool after_checks;                       /* a roofline after all that precedes a kernel */
    bool is_copy;                            /* the A/A control of another contender */
    enum posenc_status status;               /* of the last call */
    enum bench_outcome outcome;              /* BENCH_TIMED unless it was rejected */
    char reason[REASON_SIZE];                /* for which it was */
    double seconds;                          /* of one call, for planning */
    int64_t iterations;                      /* calls in a sample */
    int64_t blocks; /* of a loop: in a call, for each thread; 0: it goes over the tensors */
    double times;   /* factor of its samples: calls that a whole one takes, else 1 */
    size_t rounds;  /* in which it takes part */
};
struct contender contender_of_backend(const struct timed_call *timed,
                                      const struct posenc_backend *backend);
struct contender contender_of_roofline(const struct timed_call *timed,
                                       const struct roofline_variant *roofline);
/* A loop in a block of its own. */
struct contender contender_of_loop(const struct timed_call *timed,
                                   const struct roofline_variant *loop,
                                   const struct loop_work *work);
/* A loop over the call's tensors if it can go there and they stay in caches, else in a block. From memory it would need
 * prefetch and streaming stores, as rooflines have. */
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
/* A call that takes longer is one sample, and needs no second one to be believed. */
#define CONTENDER_SLOW_S 50e-3

/* Calls a struct contender once, and announces it before: the functions of a gbench_sample. */
void contender_call(void *contender);
void contender_announce(void *contender);

/* Gives a contender a reason in place of a number. */
void contender_reject(struct contender *c, enum bench_outcome outcome, const char *reason);
/* Calls it once, roughly timed, with inputs of `call` as they were first; NULL: as they are. Returns false, and rejects
 * it, if the call fails. */
bool contender_try(struct contender *c, struct call *call);

#endif
