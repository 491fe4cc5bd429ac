/*
 * Calls of a problem with changed arguments, right and wrong.
 *
 * The rows of a signature say which sizes, types, strides and values belong together, so that a new
 * signature is called without a new line here.  rules.c is a second reading of posenc.h, which shares
 * no line with impl: it says which statuses a call may have.
 *
 *   - a call is rejected with a status of a rule that it breaks, or accepted;
 *   - a rejected call writes nothing, names its reason, and names no range that holds the value;
 *   - every backend, a prepared call and a call without a place for errors answer alike;
 *   - an accepted call writes elements of its outputs alone, the same bits as others of its family.
 */
#ifndef POSENC_RANDOM_CALLS_H
#define POSENC_RANDOM_CALLS_H

#include "conformance/problem/guard.h"
#include "problems.h"

__extension__ typedef __int128 wide;

/* ---- Operands: operands.c ---- */

/* One tensor, array of positions or pointer, as the arguments describe it. */
struct operand {
    const struct tensor_row *row;
    bool used;   /* the call looks at it */
    bool sound;  /* rank, sizes and type say which elements it has */
    bool empty;  /* it has none */
    bool backed; /* they exist in memory, which call_place() decides */
    int n;
    int64_t shape[4], stride[4], item;
    wide below, above; /* bytes before the first element, and from there on */
    char *data;
};

/* The arguments of a call, and what follows from them. */
struct facts {
    enum posenc_kernel kernel;
    const struct signature *signature;
    union arguments args;
    struct problem problem;               /* with the sizes and parameters of the arguments */
    const struct posenc_freqs_spec *spec; /* of its frequencies, or NULL */
    int64_t extent[DIM_DISTANCE + 1];     /* as the first tensor has it; -1: none has it */
    struct operand of[MOST_TENSORS];
};

/* for (EACH_OPERAND(o, facts)) */
#define EACH_OPERAND(o, facts)                                                                 \
    const struct operand *o = (facts)->of;                                                     \
    o < (facts)->of + MOST_TENSORS && o->row;                                                  \
    o++

/* Derives everything else from the arguments; keeps which operands are backed. */
void facts_derive(struct facts *f);
/* Where an argument has the tensor of a row. */
struct posenc_tensor *facts_tensor(struct facts *f, const struct tensor_row *row);
const struct posenc_tensor *facts_view(const struct facts *f, const struct tensor_row *row);
/* The end of what an index may hold. */
int64_t facts_index_end(const struct facts *f);
int64_t operand_count(const struct operand *o);
/* The address of element i, counted over all dimensions, the last one fastest. */
char *operand_element(const struct operand *o, int64_t i);

/* ---- Rules: rules.c ---- */

/* Statuses as bits.  One of `must` has to come, or one of `may`.  Without any in `must` the call may be
 * accepted, and has to be where `may` is empty, too. */
struct verdict {
    unsigned must, may;
};

#define STATUS(name) (1u << POSENC_ERR_##name)

/* `size` is the size that the arguments claim to have; `filled`: bytes beyond this header are not 0. */
struct verdict rules_judge(const struct facts *f, size_t size, bool filled);

/* ---- Changes: changes.c ---- */

enum { MOST_CHANGES = 3, CALL_TEXT = 1600 };

enum change_kind {
    CHANGE_VALUE, /* of a number among the arguments */
    CHANGE_SIZE,  /* of the struct of arguments */
    CHANGE_FREQS,
    CHANGE_ADD_DIMENSION,
    CHANGE_DROP_DIMENSION,
    CHANGE_EXTENT, /* every dimension that counts the same */
    CHANGE_NULL,
    CHANGE_ODD,    /* moved by a few bytes */
    CHANGE_JOINED, /* it lies in the memory of another row */
    CHANGE_ELEMENT
};

struct change {
    enum change_kind kind;
    int row, dim; /* CHANGE_JOINED: `dim` is the other row; CHANGE_ELEMENT: which element */
    size_t offset;
    enum field_kind type;
    char name[FIELD_TEXT]; /* of the number */
    int64_t whole;
    double real;
};

/* A problem's call with a few changes: a function of kernel, seed and number. */
struct changed_call {
    struct call *base;
    unsigned kept; /* changes that are made, as bits */
    struct facts before, after;
    int n_changes;
    struct change changes[MOST_CHANGES];
    size_t size; /* that the arguments claim */
    bool filled;
    struct posenc_freqs *freqs; /* of CHANGE_FREQS */
    struct posenc_freqs_spec spec;
    struct verdict verdict;
    /* root[i] is the row whose buffer row i lies in. */
    int root[MOST_TENSORS];
    wide offset[MOST_TENSORS];
    char *buffer[MOST_TENSORS], *saved[MOST_TENSORS];
    size_t bytes[MOST_TENSORS];
};

void changes_draw(struct changed_call *c, struct draws *d);
void changes_apply(struct changed_call *c);
size_t changes_print(const struct changed_call *c, char *text, size_t room);

/* ---- Memory: place.c ---- */

/* Places each tensor in memory of exactly its size, between pages that fault; a tensor that is too
 * large gets an address where nothing is. */
void call_place(struct changed_call *c, struct guard *guard, struct draws *d);
void call_restore(const struct changed_call *c); /* every byte as it was placed */
bool call_is_unchanged(const struct changed_call *c);
void call_release(struct changed_call *c, struct guard *guard);
/* Returns true if a backend can be given the call, since every operand lies in memory. */
bool call_is_backed(const struct changed_call *c);
/* Returns true if the front-end can: it reads positions, indices and slopes, and writes empty sums. */
bool call_is_readable(const struct changed_call *c);

/* ---- Answers: calls.c ---- */

/* Whose calls are checked, and which. */
struct call_test {
    const struct implementation *implementation;
    const struct posenc_backend *backend;
    struct guard *guard;
    struct call *base; /* made by the implementation under test, in memory of its own */
    uint64_t seed;
    unsigned kept; /* changes that are made, as bits */
};

/* Makes the call and checks it; returns false with a complaint and the changes in words.  *status is
 * the answer; -1: nobody could be asked, since an array that has to be read is too large. */
bool call_test_run(const struct call_test *test, int *status, char complaint[CALL_TEXT],
                   char words[CALL_TEXT]);

/* Experimental calls, prepared once and run with other pointers and positions: prepared.c. */
struct reply;
bool prepared_is_right(struct changed_call *c, const struct call_test *test,
                       const struct posenc_backend *backend, const struct reply *plain,
                       char complaint[CALL_TEXT]);

/* ---- One answer ---- */

/* The arguments as they are handed on: as many bytes as they claim, up to a page that faults. */
struct handed {
    const char *args;
    size_t bytes;
    struct posenc_error error; /* filled with 0x5a until it is written */
};

/* What is called with them in place of the front-end. */
typedef enum posenc_status call_entry(const struct posenc_backend *backend,
                                      enum posenc_kernel kernel, const struct handed *handed);

struct reply {
    struct guarded how;
    struct posenc_error error;
    bool told;     /* the error was written */
    float *values; /* of all outputs, if they were asked for; to be freed */
    int64_t n;
};

/* Asks a backend, by its front-end unless there is an entry; NULL is the selected one. */
struct reply reply_take(struct changed_call *c, const struct call_test *test,
                        const struct posenc_backend *backend, call_entry *entry,
                        bool with_error, bool with_values);
/* Returns true if the answer follows the rules: nothing crashed or was written that may not be. */
bool reply_is_right(const struct changed_call *c, const struct reply *a, unsigned may,
                    char complaint[CALL_TEXT]);
/* Returns true if both have one status, one error and the same values. */
bool reply_is_same(const struct reply *a, const struct reply *b, const char *who,
                   char complaint[CALL_TEXT]);

/* Writes what is wrong, and returns false. */
__attribute__((format(printf, 2, 3))) bool complain(char complaint[CALL_TEXT],
                                                    const char *format, ...);

#endif
