/*
 * The random caller: calls every kernel with arguments of every kind, right and wrong, in memory
 * that notices what is touched.  What a call may answer follows from the header alone: the rows of
 * its signature say which sizes, types, strides and values belong together (facts.c, rules.c), so
 * that a new signature is called without a new line here.
 *
 * A set is a valid problem and a few changes of its arguments, a function of kernel, seed and
 * number.  Of each set:
 *
 *   - no fault, no write but to the elements of an accepted output, none at all on a refusal;
 *   - a status that one of the rules names, and acceptance where none does;
 *   - of a refusal what it is for, and no range of what would be accepted that has the value;
 *   - the same answer from every backend, from a prepared call, and without a place for errors;
 *     the same bits from every backend of a family.
 *
 * The first set of a kernel that fails is reduced to the changes that it takes.
 */
#ifndef POSENC_CALLER_H
#define POSENC_CALLER_H

#include "conformance/problem/guard.h"
#include "conformance/problem/signature.h"

__extension__ typedef __int128 wide;

/* ---- Drawing ---- */

struct draws {
    uint64_t seed, next;
};

uint64_t draw_bits(struct draws *d);
int64_t draw_below(struct draws *d, int64_t n); /* 0 ... n - 1 */
bool draw_one_in(struct draws *d, int64_t n);
/* Of every kind: near a value, 0, negative, at the ends of types. */
int64_t draw_whole(struct draws *d, int64_t near);
double draw_real(struct draws *d, double near);

/* ---- What arguments say ---- */

/* Of one tensor, array of positions or pointer. */
struct described {
    const struct tensor_row *row;
    bool there;  /* the call looks at it */
    bool sound;  /* rank, sizes and type say which elements it has */
    bool empty;  /* none of them */
    bool backed; /* they exist: set by who places them */
    int n;
    int64_t shape[4], stride[4], item;
    wide below, above; /* bytes before the first element, and from there on */
    char *data;
};

struct facts {
    enum posenc_kernel kernel;
    const struct signature *signature;
    union arguments args;                 /* as this header has them, whatever their size */
    struct problem problem;               /* with the sizes and parameters of the arguments */
    const struct posenc_freqs_spec *spec; /* of the plan, if there is one */
    int64_t extent[DIM_DISTANCE + 1];     /* the first that a tensor says; -1: none does */
    struct described of[MOST_TENSORS];
};

/* From f->args; keeps what was placed, f->of[].backed. */
void describe(struct facts *f);
/* Where element i lies, counted over all dimensions, the last one fastest. */
char *element(const struct described *d, int64_t i);
int64_t elements(const struct described *d);
/* What may stand in an index: below this. */
int64_t index_end(const struct facts *f);

/* ---- What may be answered ---- */

/* Statuses as bits.  One of `must` has to come, or one of `may`; without any in `must` the call may be accepted, and
 * has to be where `may` is empty, too. */
struct verdict {
    unsigned must, may;
};

#define STATUS(name) (1u << POSENC_ERR_##name)

/* `size` is what the arguments claim to be, `filled` that there is something beyond what this header knows. */
struct verdict judge(const struct facts *f, size_t size, bool filled);

/* ---- Sets ---- */

enum { MOST_CHANGES = 3, MOST_TEXT = 1600 };

enum place { PLACE_OWN, PLACE_NULL, PLACE_ODD, PLACE_JOINED };

enum member {
    CHANGE_SIZE,
    CHANGE_PLAN,
    CHANGE_COMPUTED,
    CHANGE_PARAMETER,
    CHANGE_RANK,
    CHANGE_ADD_DIMENSION,
    CHANGE_DROP_DIMENSION,
    CHANGE_DTYPE,
    CHANGE_SHAPE,
    CHANGE_ALL_SHAPES, /* of all that count the same */
    CHANGE_STRIDE,
    CHANGE_PLACE,
    CHANGE_CONTENT,
    CHANGE_KIND,
    CHANGE_OFFSET
};

struct change {
    enum member member;
    int row, dim; /* of the signature's rows; PLACE_JOINED: `dim` is the row it lies in */
    const struct parameter *parameter;
    enum place place;
    int64_t whole;
    double real;
};

struct set {
    enum posenc_kernel kernel;
    uint64_t seed, number;
    unsigned kept;     /* which changes are made, as bits */
    struct call *base; /* of the problem, in memory of its own */
    struct facts before, after;
    int n_changes;
    struct change changes[MOST_CHANGES];
    size_t size; /* that the arguments claim */
    bool filled;
    struct verdict verdict;
    /* Where what lies, root[i] being the row in whose buffer row i is. */
    int root[MOST_TENSORS];
    wide offset[MOST_TENSORS];
    char *buffer[MOST_TENSORS];
    size_t bytes[MOST_TENSORS];
    char *saved[MOST_TENSORS];
    int answer;  /* the status; -1: no memory was there */
    bool beyond; /* accepted, it would reach farther than addresses are reserved */
};

/* Memory between pages that fault, and addresses where nothing is. */
struct grounds {
    struct guard *guard;
    struct memory memory;
    bool at_end; /* of pages are buffers, else at the start */
    char *nowhere;
    size_t nowhere_bytes;
};
bool grounds_make(struct grounds *grounds);
/* Of which row it may be, where nothing is; -1: of none. */
int grounds_row(const struct grounds *grounds, const void *address);

/* False where the problem itself is refused. */
bool set_make(struct set *set, struct grounds *grounds, enum posenc_kernel kernel,
              uint64_t seed, uint64_t number, unsigned kept);
void set_free(struct set *set, struct grounds *grounds);
void sets_end(void); /* after the last */
/* Its buffers as they were when it was made. */
void set_restore(struct set *set);
/* Applies a change to arguments; places and contents are for set_place(). */
void change_arguments(struct set *set, const struct change *change);
void set_place(struct set *set, struct grounds *grounds, struct draws *d);
/* The changes in words. */
size_t set_print(const struct set *set, char *text, size_t room);
/* A plan of another kind than the problem's. */
const struct posenc_freqs_spec *other_plan(int i, int64_t dim, struct posenc_freqs **freqs);
enum { OTHER_PLANS = 7 };

/* ---- What is checked ---- */

/* What a call hands on: as many bytes of arguments as their size says, up to a page that faults. */
struct handed {
    const char *args;
    size_t bytes;
    struct posenc_error error; /* full of 0x5a where nothing was told */
    /* In the place of the kernel. */
    enum posenc_status (*runs)(const struct posenc_backend *backend, enum posenc_kernel kernel,
                               const struct handed *handed);
};

struct answer {
    struct guarded how;
    struct posenc_error error;
    bool told, nowhere; /* it went where a tensor is said to lie, and no memory is */
};

/* By the kernel, where `runs` is NULL. */
struct answer answer_of(struct set *set, struct grounds *grounds,
                        const struct posenc_backend *backend, bool with_error,
                        enum posenc_status (*runs)(const struct posenc_backend *backend,
                                                   enum posenc_kernel kernel,
                                                   const struct handed *handed));
bool answer_is_fine(const struct set *set, const struct answer *answer, unsigned may,
                    char complaint[MOST_TEXT]);
bool same_error(const struct posenc_error *a, const struct posenc_error *b);

/* The elements of the outputs as the first backend of a family left them. */
struct results {
    const char *family;
    float *values;
    int64_t n;
};
bool results_agree(const struct set *set, struct results *first,
                   const struct posenc_backend *backend, char complaint[MOST_TEXT]);

/* Whether a prepared call does what the plain one did; with other pointers and positions, too. */
bool prepared_agrees(struct set *set, struct grounds *grounds,
                     const struct posenc_backend *backend, const struct answer *plain,
                     struct results *results, char complaint[MOST_TEXT]);

/* The first complaint about a set, "" where there is none. */
void set_check(struct set *set, struct grounds *grounds, char complaint[MOST_TEXT]);

/* Writes what is wrong, and returns false. */
__attribute__((format(printf, 2, 3))) bool complain(char complaint[MOST_TEXT],
                                                    const char *format, ...);

/* What every refusal tells: a reason, its status, and no range that holds the value.  Writes what is wrong. */
bool refusal_is_told(enum posenc_status status, const struct posenc_error *error,
                     char complaint[MOST_TEXT]);

#endif
