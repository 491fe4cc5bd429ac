/*
 * The suite "random": random problems among all that the front-end accepts, and calls of them with changed
 * arguments. The oracle gives the expected values, and the documentation in posenc.h the expected status.
 *
 * A rotation with the sine's sign wrong, for example, fails this problem, which was shrunk:
 *
 *     rope_half tokens=1 heads=1 head_dim=2 rotary_dim=2 rows=2 sin.stride=0
 *
 *     random.c     the suite and its cases
 *     problems.c   draws single problems, and sets of problems
 *     factors.c    the table of factors and their classes
 *     values.c     random numbers, and random values of a class
 *     trial.c      runs a problem in guarded memory, judges the result, and shrinks a problem that fails
 *     calls.h      calls with changed arguments
 *
 * This is pairwise testing. A factor is a field of a kernel's problems. Its values are divided into a few classes,
 * such as 0, 1 and 2 to 8. Two classes of different factors meet if one problem has both: "heads from 2 to 8" and
 * "x.stride backward". A set of problems covers all classes and many pairs; in a full run all pairs that the front-end
 * accepts. It depends only on the kernel and the seed, so that the oracle computes its answers once for all backends.
 *
 * Short names in this folder: p is a problem, c a class, d the state of random numbers, and f a factor or, in files of
 * calls.h, the facts of a call.
 */
#ifndef POSENC_RANDOM_RANDOM_H
#define POSENC_RANDOM_RANDOM_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

void suite_random(struct suite_run *run, enum posenc_kernel kernel);

/* ---- Random numbers: values.c ---- */

/* Returns true once in n draws, on average. */
bool draw_one_in(struct random_state *d, int64_t n);

/* Draw a value that tests an argument: close to the present one, 0, negative, or at the end of the range of a type.
 * Reals may also be infinite or NaN. */
int64_t draw_whole(struct random_state *d, int64_t present);
double draw_real(struct random_state *d, double present);

/* ---- Factors: factors.c ---- */

enum { MOST_FACTORS = 96, MOST_CLASSES = 1024, CLASS_TEXT = 2 * FIELD_TEXT };

enum class_kind {
    CLASS_UNUSED, /* behind the last class of an array */
    CLASS_PLAIN,
    CLASS_ABOVE_BOUND, /* relative to the largest value that the rest of the problem allows */
    CLASS_LARGE        /* a size that only full runs draw; the last class of its factor */
};

/* A class of numbers, from least to most. A member of an enum, a flag and a way to draw a list are classes with one
 * number and a name. */
struct value_class {
    enum class_kind kind;
    double least, most;
    const char *name;
    const struct factor *factor;
};

struct factor {
    struct field field;
    const struct tensor_spec *row; /* the tensor whose layout the field describes, or NULL */
    unsigned scalings; /* that have this parameter, as bits; 0: no parameter of a scaling */
    bool is_size;      /* halved if the problem costs too much */
    bool is_even;
    int rule; /* index of its row in the table of factors.c, which is the order of drawing */
    int n_classes;
    const struct value_class *classes;
};

/* The factors of a kernel, and the classes of all factors. */
struct factors {
    enum posenc_kernel kernel;
    int n, n_classes;
    struct factor all[MOST_FACTORS];
    struct value_class classes[MOST_CLASSES];
};

/* Lists the factors of a kernel, with types of 16 bits and large sizes if these are wanted. */
void factors_init(struct factors *factors, enum posenc_kernel kernel, bool with_16_bits,
                  bool with_large);
/* Returns true if the problem depends on the field. */
bool factor_matters(const struct factor *factor, const struct problem *problem);
/* Writes, for example, "heads from 2 to 8" or "x.stride backward". */
void value_class_print(const struct value_class *c, char text[CLASS_TEXT]);

/* ---- Values: values.c ---- */

/* Returns the names of the ways to draw a list or strides, NULL at the end. Removes from `members`, which are bits,
 * those that the tensor may not have. */
const char *const *value_list_names(const struct field *field, const struct tensor_spec *row,
                                    unsigned *members);
/* Sets the field to a value of the class; lists come from the arena. Returns false, with the field as it was, if the
 * problem leaves the class no value. */
bool value_class_draw(const struct value_class *c, struct problem *problem,
                      struct random_state *d, struct arena *arena);
/* Returns true if the field matters and has a value of the class. */
bool value_class_holds(const struct value_class *c, const struct problem *problem);

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
    /* [class, class]: 1 if a problem has both; a class is paired with itself */
    unsigned char *pairs;
    int n_classes_reached;
    int64_t n_pairs_reached;
};

/* Returns the set of a key, or NULL if out of memory. It stays valid until a call with another key. */
struct problem_set *problem_set_get(const struct problem_set_key *key);
/* Draws problem number i outside of the set. Returns false if none was accepted. */
bool problem_set_draw(struct problem_set *set, uint64_t i, struct arena *arena,
                      struct problem *problem);
/* Finds a class that no problem has, with *b as NULL, or two classes of large sizes that never occurred together. */
bool problem_set_find_missing(const struct problem_set *set, const struct value_class **a,
                              const struct value_class **b);

/* A backend whose kernels do nothing. Calls of it show whether the front-end accepts the arguments. */
extern const struct posenc_backend null_backend;

/* ---- Trials: trial.c ---- */

/* A problem that is run with its tensors at one end of their pages. */
struct trial {
    struct suite_run *run;
    struct guard *guard;
    enum guard_mode mode;
    struct guard_result ended; /* how the call ended */
    struct conf_result result; /* of the values; the reason of any failure */
};

/* The result is a failure also if the implementation declined the call. */
void trial_run(struct trial *trial, const struct problem *problem);
/* Shrinks a problem that failed while it fails in the same way: tries the default of each field, then half its value.
 * Leaves a problem whose failure is not repeatable unchanged. */
void trial_shrink(struct trial *trial, struct problem *problem);

#endif
