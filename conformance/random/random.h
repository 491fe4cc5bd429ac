/*
 * The suite "random": random problems among all that the front-end accepts, and calls of them with changed
 * arguments. The oracle gives the expected values, and the documentation in posenc.h the expected status.
 *
 *     random.c     the suite and its cases
 *     problems.c   draws single problems, and sets of problems
 *     factors.c    the table of factors and their classes
 *     values.c     random numbers, and random values of a class
 *     trial.c      runs a problem in guarded memory, judges the result, and shrinks a problem that fails
 *     calls.h      calls with changed arguments
 *
 * This is pairwise testing. A factor is a field of a kernel's problems. Its values are divided into a few classes,
 * such as 0, 1 and 2 to 8. Two classes of different factors meet if one problem has both. A set of problems covers
 * all classes and many pairs; in a full run all pairs that the front-end accepts. It depends only on the kernel and
 * the seed, so that the oracle computes its answers once for all backends.
 */
#ifndef POSENC_RANDOM_RANDOM_H
#define POSENC_RANDOM_RANDOM_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

void suite_random(struct suite_run *run, enum posenc_kernel kernel);

/* ---- Random numbers: values.c ---- */

/* State of a sequence of random numbers. */
struct random_state {
    uint64_t seed, next;
};

uint64_t draw_bits(struct random_state *d);
/* Draws an integer from `least` to `most`, both included. */
int64_t draw_between(struct random_state *d, int64_t least, int64_t most);
bool draw_one_in(struct random_state *d, int64_t n);
/* Draws a number from 0 to 1, which it never reaches. */
double draw_fraction(struct random_state *d);

/* Draw a value that tests an argument: close to the present one, 0, negative, or at the end of the range of a type.
 * Reals may also be infinite or NaN. */
int64_t draw_whole(struct random_state *d, int64_t near);
double draw_real(struct random_state *d, double near);

/* ---- Factors: factors.c ---- */

/* A class of numbers, from least to most. */
struct value_class {
    double least, most;
    /* least and most are relative to the largest value that the rest of the problem allows. */
    bool above_bound;
    bool large; /* a size that only full runs draw */
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
    int rule; /* index of its row in the table of factors.c, which is the order of drawing */
    int first_class; /* class number of its first class; numbers count through all factors */
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
/* Return true if the field is a parameter of this scaling; of any scaling. */
bool factor_belongs_to_scaling(const struct factor *factor, enum posenc_scaling scaling);
bool factor_is_scaling_parameter(const struct factor *factor);
/* Returns the class of large sizes, or NO_CLASS. */
int factor_large_class(const struct factor *factor);
/* Returns the value of class c of an enum or a flag. */
int factor_member(const struct factor *factor, int c);
/* Returns true if the problem depends on the field. */
bool factor_matters(const struct factor *factor, const struct problem *problem);

/* ---- Values: values.c ---- */

/* Returns the names of the classes of a list or of strides, NULL at the end. */
const char *const *value_class_names(const struct field *field, const struct tensor_spec *row);
/* Sets the field to a value of class c; lists come from the arena. Returns false, with the field as it was, if the
 * problem leaves the class no value. */
bool factor_draw(const struct factor *factor, int c, struct problem *problem,
                 struct random_state *d, struct arena *arena);
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
    unsigned char
        *pairs; /* [class, class]: 1 if a problem has both; a class is paired with itself */
    int n_classes_reached;
    int64_t n_pairs_reached;
};

/* Returns the set of a key, or NULL if out of memory. It stays valid until a call with another key. */
struct problem_set *problem_set_get(const struct problem_set_key *key);
/* Draws problem number i outside of the set. Returns false if none was accepted. */
bool problem_set_draw(struct problem_set *set, uint64_t i, struct arena *arena,
                      struct problem *problem);
/* Finds a class that no problem has, with *b as NO_CLASS, or two classes of large sizes that never occurred together. */
bool problem_set_find_missing(const struct problem_set *set, int *a, int *b);

/* A backend whose kernels do nothing. Calls of it show whether the front-end accepts the arguments. */
extern const struct posenc_backend null_backend;

/* ---- Trials: trial.c ---- */

enum trial_outcome {
    OUTCOME_RIGHT,
    OUTCOME_WRONG_VALUES,
    OUTCOME_INPUT_WRITTEN,
    OUTCOME_WRITTEN_OUTSIDE,
    OUTCOME_CONTROL_LEFT,
    OUTCOME_CRASHED,
    OUTCOME_FAILED,      /* the implementation reported an error */
    OUTCOME_REJECTED,    /* by the front-end */
    OUTCOME_NOT_OFFERED, /* by the hello */
    OUTCOME_DECLINED     /* by the answer */
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
/* Shrinks a problem that failed while it fails in the same way: tries the default of each field, then half its value.
 * Leaves a problem whose failure is not repeatable unchanged. */
void trial_shrink(struct trial *trial, struct problem *problem);
/* Returns the time of the monotonic clock in seconds. */
double clock_seconds(void);

#endif
