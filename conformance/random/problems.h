/*
 * Problems drawn from everything the front-end accepts.
 *
 * A factor is a field of a kernel's problems with a handful of classes of values.  A set of problems
 * is made so that classes of different factors meet, and, in a full run, every two large sizes.
 * Sets depend on kernel and seed alone, so that one answer of the oracle serves every backend.
 */
#ifndef POSENC_RANDOM_PROBLEMS_H
#define POSENC_RANDOM_PROBLEMS_H

#include "conformance/problem/signature.h"
#include "draw.h"

/* ---- Factors: factors.c ---- */

/* Numbers from least to most; `relative`: added to what bounds the field (base_of() in factors.c);
 * `large`: a size that is drawn in full runs alone. */
struct value_class {
    double least, most;
    bool relative, large;
};

enum factor_kind { FACTOR_NUMBER, FACTOR_MEMBER, FACTOR_LIST, FACTOR_STRIDES };

struct factor {
    struct field field;
    enum factor_kind kind;
    const struct tensor_row *row;      /* whose layout the field describes, or NULL */
    const struct value_class *classes; /* of a number */
    const char *const *names;          /* of the classes of a list or of strides */
    unsigned members;                  /* of an enum: those that are drawn, as bits */
    bool size, even;
    int order;    /* in which factors are drawn */
    int first, n; /* numbers of its classes among those of all factors */
};

enum { MOST_FACTORS = 96, CLASS_TEXT = 2 * FIELD_TEXT };

struct factors {
    enum posenc_kernel kernel;
    int n, n_classes;
    struct factor all[MOST_FACTORS];
};

/* `narrow`: also types of 16 bits; `large`: also large sizes. */
void factors_list(struct factors *factors, enum posenc_kernel kernel, bool narrow, bool large);
/* The factor of a class of that number. */
const struct factor *factors_find(const struct factors *factors, int number);
/* Writes "heads from 2 to 8", "x.stride backward". */
void factors_print_class(const struct factors *factors, int number, char text[CLASS_TEXT]);
/* Returns true if the field is a parameter of some scaling. */
bool factor_scales(const struct factor *factor);
/* The class of large sizes; -1: there is none. */
int factor_large(const struct factor *factor);

/* Sets the field to a value of class c; lists come from the arena.  Returns false, with the field
 * as it was, if the problem leaves the class no value. */
bool factor_draw(const struct factor *factor, int c, struct problem *problem, struct draws *d,
                 struct arena *arena);
/* Returns true if the field counts for the problem; if, besides, it has a value of class c. */
bool factor_seen(const struct factor *factor, const struct problem *problem);
bool factor_holds(const struct factor *factor, int c, const struct problem *problem);
/* The least size of a class in this problem, 1 or more. */
int64_t factor_least(const struct factor *factor, int c, const struct problem *problem);

/* ---- Lists and strides: layouts.c ---- */

/* The names of the classes of a field, NULL at the end. */
const char *const *layout_classes(const struct field *field, const struct tensor_row *row);
/* As factor_draw() does for fields without a number. */
bool layout_draw(const struct factor *factor, int c, struct problem *problem, struct draws *d,
                 struct arena *arena);

/* ---- Sets: problems.c ---- */

struct problem_set_ask {
    enum posenc_kernel kernel;
    uint64_t seed;
    bool full;   /* larger problems, and every pair of classes that is accepted */
    bool narrow; /* also types of 16 bits */
};

struct problem_set {
    struct problem_set_ask ask;
    struct factors factors;
    struct arena arena;
    struct problem *problems;
    size_t n, room;
    unsigned char *met; /* by pairs of class numbers; the diagonal: classes */
    int n_met;
    int64_t n_pairs;
};

/* Keeps the set until another one is asked for; NULL without memory. */
struct problem_set *problem_set_take(const struct problem_set_ask *ask);
/* Draws problem i of those that belong to no set; false if none was accepted. */
bool problem_set_draw(struct problem_set *set, uint64_t i, struct arena *arena,
                      struct problem *problem);
/* Finds a class that no problem has, or two large sizes that no problem has together (else *b is -1). */
bool problem_set_lacks(const struct problem_set *set, int *a, int *b);

/* A backend that computes nothing, so that a call shows whether the front-end accepts it;
 * problems_entered counts the calls that reached a kernel. */
extern const struct posenc_backend problems_idle;
extern unsigned long problems_entered;

/* ---- Shrinking: shrink.c ---- */

/* Returns true if a problem fails in the same way. */
typedef bool problem_fails(void *user, const struct problem *problem);

/* Makes the problem as small as it can be and still fail: each field by default, then halved. */
void problem_shrink(struct problem *problem, double seconds, problem_fails *fails, void *user);

#endif
