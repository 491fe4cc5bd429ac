/*
 * Which problems are drawn for a kernel: first so many that each class of each field meets each
 * class of each other field that the front-end accepts beside it, then any number more.  A
 * function of the kernel and a seed; no backend has a say in it, so that the oracle answers once
 * for all of them.
 */
#ifndef POSENC_RANDOM_PLAN_H
#define POSENC_RANDOM_PLAN_H

#include "classes.h"

struct plan_ask {
    enum posenc_kernel kernel;
    uint64_t seed;
    bool full;   /* larger problems, and every pair is tried more often */
    bool narrow; /* also types of 16 bits */
};

struct plan {
    struct plan_ask ask;
    struct space space;
    struct arena arena;
    struct problem *problems; /* of the pairs */
    size_t n, room;
    bool *has; /* of all classes, whether some problem has it; how many; and pairs of them */
    int classes;
    int64_t pairs;
    char wrong[NOTATION_ERROR]; /* why it could not be made; or what the front-end did wrong, */
    struct problem wrong_problem; /* with what */
    unsigned char *doubt;         /* of a pair: how often it was tried in vain, or MET */
};

/* Kept until another one is asked for; NULL: no memory. */
struct plan *plan_take(const struct plan_ask *ask);

/* Whether two large sizes, of which each is a class, meet in none of the problems. */
bool plan_lacks_large(const struct plan *plan, int *a, int *b);

/* Draw i after the pairs; its lists are in the arena.  False: none was accepted. */
bool plan_draw(struct plan *plan, uint64_t i, struct arena *arena, struct problem *problem);

#endif
