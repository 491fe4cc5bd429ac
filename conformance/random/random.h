/*
 * The suite of random tests: problems drawn from everything that the front-end accepts, and calls
 * of them with changed arguments. posenc.h and the oracle say what each call has to return.
 *
 *     random.c     the suite: which problems and calls are tried
 *     problems.c   draws one problem, or a set in which classes of values meet
 *     factors.c    the table of classes: which values of each field are drawn
 *     values.c     random numbers, and a value of a class for a field
 *     trial.c      runs a problem in guarded memory, judges it, and makes a failure smaller
 *     calls.h      calls with changed arguments
 *
 * A factor is a field of a kernel's problems, with a handful of classes of values. A set is made so
 * that classes of different factors meet, and, in a full run, every two large sizes. It depends on
 * kernel and seed alone, so one answer of the oracle serves every backend.
 */
#ifndef POSENC_RANDOM_RANDOM_H
#define POSENC_RANDOM_RANDOM_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

void suite_random(struct suite_run *run, enum posenc_kernel kernel);

/* ---- Random numbers: values.c ---- */

/* A sequence of random numbers, which its seed determines. */
struct draws {
    uint64_t seed, next;
};

uint64_t draw_bits(struct draws *d);
/* Draws an integer from `least` to `most`, both included. */
int64_t draw_between(struct draws *d, int64_t least, int64_t most);
bool draw_one_in(struct draws *d, int64_t n);
/* Draws a number from 0 to 1, which it never reaches. */
double draw_fraction(struct draws *d);

/* Draw another value of an argument: close to the right one, 0, negative, or at the end of a type.
 * Reals may also be infinite or NaN. */
int64_t draw_whole(struct draws *d, int64_t near);
double draw_real(struct draws *d, double near);

/* ---- Factors: factors.c ---- */

/* A class of numbers, from least to most. */
struct value_class {
    double least, most;
    bool above_bound; /* both are added to what bounds the field (find_bound() in values.c) */
    bool large;       /* a size that only full runs draw */
};

enum factor_kind { FACTOR_NUMBER, FACTOR_MEMBER, FACTOR_LIST, FACTOR_STRIDES };

struct factor {
    struct field field;
    enum factor_kind kind;
    const struct tensor_spec *row; /* the tensor whose layout the field describes, or NULL */
    const struct value_class *classes; /* of a number */
    const char *const *names;          /* of the classes of a list or of strides */
    unsigned members;                  /* of an enum: those that are drawn, as bits */
    bool is_size, is_even;
    int rule;        /* in the table; factors are drawn in this order */
    int first_class; /* number of its first class among those of all factors */
    int n_classes;
};

enum { NO_CLASS = -1, MOST_FACTORS = 96, CLASS_TEXT = 2 * FIELD_TEXT };

struct factors {
    enum posenc_kernel kernel;
    int n, n_classes;
    struct factor all[MOST_FACTORS];
};

/* Lists the factors of a kernel, with types of 16 bits and large sizes if these are wanted. */
void factors_init(struct factors *factors, enum posenc_kernel kernel, bool with_16_bits,
                  bool with_large);
/* Returns the factor that has the class of a number. */
const struct factor *factors_find(const struct factors *factors, int class_number);
/* Writes, for example, "heads from 2 to 8" or "x.stride backward". */
void factors_print_class(const struct factors *factors, int class_number,
                         char text[CLASS_TEXT]);
/* Return true if the field is a parameter of this scaling, or of any. */
bool factor_is_taken_by(const struct factor *factor, enum posenc_scaling scaling);
bool factor_is_of_scaling(const struct factor *factor);
/* Returns the class of large sizes, or NO_CLASS. */
int factor_large_class(const struct factor *factor);
/* Returns the value of class c of an enum or a flag. */
int factor_member(const struct factor *factor, int c);
/* Returns true if the problem depends on the field. */
bool factor_matters(const struct factor *factor, const struct problem *problem);

/* ---- Values: values.c ---- */

/* Returns the names of the classes of a list or of strides, NULL at the end. */
const char *const *value_class_names(const struct field *field, const struct tensor_spec *row);
/* Sets the field to a value of class c; lists come from the arena. Returns false, with the field as
 * it was, if the problem leaves the class no value. */
bool factor_draw(const struct factor *factor, int c, struct problem *problem, struct draws *d,
                 struct arena *arena);
/* Returns true if the field matters and has a value of class c. */
bool factor_has_class(const struct factor *factor, int c, const struct problem *problem);
/* Returns the least size of a class in this problem, 1 or more. */
int64_t factor_least(const struct factor *factor, int c, const struct problem *problem);

/* ---- Sets of problems: problems.c ---- */

/* Everything that a set depends on. */
struct problem_set_key {
    enum posenc_kernel kernel;
    uint64_t seed;
    bool full;         /* larger problems, and every pair of classes that is accepted */
    bool with_16_bits; /* also types of 16 bits */
};

struct problem_set {
    struct problem_set_key key;
    struct factors factors;
    struct arena arena;
    struct problem *problems;
    size_t n, room;
    unsigned char *pairs; /* [class, class]: 1 if a problem has both; a class has met itself */
    int n_classes_met;
    int64_t n_pairs_met;
};

/* Returns the set of a key, which is kept until another one is wanted; NULL without memory. */
struct problem_set *problem_set_get(const struct problem_set_key *key);
/* Draws problem i of those that belong to no set. Returns false if none was accepted. */
bool problem_set_draw(struct problem_set *set, uint64_t i, struct arena *arena,
                      struct problem *problem);
/* Finds a class that no problem has (then *b is NO_CLASS), or two large sizes that never met. */
bool problem_set_find_missing(const struct problem_set *set, int *a, int *b);

/* A backend that computes nothing: its calls show whether the front-end accepts them. */
extern const struct posenc_backend idle_backend;

/* ---- Trials: trial.c ---- */

enum trial_outcome {
    OUTCOME_RIGHT,
    OUTCOME_WRONG_VALUES,
    OUTCOME_INPUT_WRITTEN,
    OUTCOME_WRITTEN_OUTSIDE,
    OUTCOME_CONTROL_LEFT,
    OUTCOME_CRASHED,
    OUTCOME_REJECTED
};

/* A problem that is run with its tensors at one end of their pages. */
struct trial {
    struct suite_run *run;
    struct guard *guard;
    enum guard_mode mode;
    enum trial_outcome outcome;
    struct conf_result result; /* of the values; the reason of any failure */
};

void trial_run(struct trial *trial, const struct problem *problem);
/* Makes a problem that failed smaller while it fails in the same way: each field by default, then
 * halved. A problem that fails only now and then stays as it is. */
void trial_shrink(struct trial *trial, struct problem *problem);
/* Returns seconds of the monotonic clock, for limits of time. */
double trial_clock(void);

#endif
