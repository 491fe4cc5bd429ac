/*
 * Contenders: what can be timed on a case.  A backend, the steps that its kernel does in one
 * pass, or a roof, on the tensors of one call, by one thread or by a team.
 */
#ifndef POSENC_CONTENDER_H
#define POSENC_CONTENDER_H

#include "apart.h"
#include "bench.h"
#include "looped.h"
#include "team.h"

enum { REASON_SIZE = 288 };

/* What a roof reads: floats, whatever they stand for. */
struct stream {
    const float *data;
    int64_t n;
};

/* Told before calls of a backend, NULL of none: where a process is, should one not return. */
typedef void contender_watch(void *user, const struct posenc_backend *backend);

/* The tensors all contenders of a case work on. */
struct timed_call {
    struct call *call;
    struct team *team;
    int threads;
    struct call *slices;        /* [threads]; with one thread the call itself */
    bool *idle;                 /* [threads]: nothing left for that one */
    enum posenc_status *status; /* [threads] of the last call */
    struct call *part;          /* some of the call's rows, */
    double part_share;          /* of which it has this share; 0: there is none */
    struct looped conversion, work;
    struct looped_block *blocks; /* [threads] */
    enum roof_kind roof;
    float *dst[2]; /* what the roof writes: two tensors for rope_table; floats of each */
    int64_t n[2];
    /* What the roof reads: streams shorter than dst again and again, an `add` that is longer in
     * several passes; src may be dst. */
    struct stream src, add[2];
    contender_watch *watch; /* or NULL */
    void *watch_user;
};

/* False when memory runs out; to be closed in either case. */
bool timed_call_open(struct timed_call *timed, struct call *call, struct team *team,
                     int threads);
void timed_call_cut(struct timed_call *timed); /* again, after the call's arguments changed */
void timed_call_close(struct timed_call *timed);

/* An addition in place is applied to its own result again and again.  |x_scale| below 1 would
 * decay scores of zero bias into denormals, above 1 overflow them; with 1 they grow by the
 * bias, a number of ordinary size, at most some million times.  The time of an fma does not
 * depend on its factor.  A norm in place multiplies by its weights again and again: they are
 * made 1. */
void call_make_repeatable(struct call *call);

struct contender {
    const struct timed_call *timed;
    const struct posenc_backend *backend; /* runs the kernel or the steps */
    apart_steps *steps;                   /* the steps one after the other, or NULL */
    const struct roof_variant *roof;      /* the roof, which has no backend, or NULL */
    const struct looped *looped; /* the roof is a loop that does this, or NULL: it is none */
    bool part;                   /* does that part of the call alone */
    bool entered;                /* a roof: after all that a call does before its kernel */
    bool again;                  /* a second copy of another contender */
    enum posenc_status status;   /* of the last call */
    enum bench_outcome outcome;  /* whether it is timed */
    char refused[REASON_SIZE];   /* and why not */
    double seconds;              /* of one call, for planning */
    int64_t iterations;          /* calls in a sample */
    int64_t blocks; /* of a loop: of a call, for each thread; 0: it is over the tensors */
    double times;   /* what its samples are multiplied by, else 1 */
    size_t rounds;
};
struct contender contender_of_backend(const struct timed_call *timed,
                                      const struct posenc_backend *backend);
struct contender contender_of_steps(const struct timed_call *timed, apart_steps *steps,
                                    const struct posenc_backend *backend);
struct contender contender_of_roof(const struct timed_call *timed,
                                   const struct roof_variant *roof);
/* In a block of its own; and over the call's tensors where it can and they stay in caches, else in the
 * block, too.  From memory a loop would have to ask ahead and to store past the caches as roofs do. */
struct contender contender_of_loop(const struct timed_call *timed,
                                   const struct roof_variant *loop,
                                   const struct looped *looped);
struct contender contender_of_loop_in_tensors(const struct timed_call *timed,
                                              const struct roof_variant *loop,
                                              const struct looped *looped);

static inline bool contender_is_timed(const struct contender *c)
{
    return c->outcome == BENCH_TIMED;
}
static inline bool contender_is_roof(const struct contender *c)
{
    return c->roof && !c->looped;
}
/* A call that takes longer is one sample, and needs no second one to be believed. */
#define CONTENDER_SLOW_S 50e-3

/* One call of a struct contender, and what is told before some: a gbench_sample's functions. */
void contender_call(void *contender);
void contender_begins(void *contender);

#endif
