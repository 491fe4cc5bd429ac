/*
 * Calls of a problem with changed arguments, which may be valid or not:
 *
 *     struct call_test test = { .implementation = ..., .backend = ..., .guard = ..., .base = &call,
 *                               .seed = 7, .enabled = ~0u };
 *     if (!call_test_run(&test))
 *         printf("%s: %s\n", test.changes_text, test.message);
 *
 * If the library accepts a wrong rank, this prints "with changes: set x.rank to 7: accepted, though one of the statuses
 * 0x4 was due".
 *
 * A test goes through four files:
 *
 *     changes.c    makes up to three changes in a copy of the arguments
 *     operands.c   derives the bytes of each tensor from the arguments, and places it in memory of
 *                  exactly its size
 *     rules.c      finds the statuses that the call may have
 *     calls.c      makes the call in several ways, and checks the answers
 *
 * The rows of a signature define which sizes, types, strides and values belong together, so that a new signature needs
 * no change here. rules.c implements the documentation in posenc.h independently of impl. The requirements:
 *
 *   - A call that breaks rules is rejected with the status of one of them. Any other call is accepted.
 *   - A rejected call writes nothing. Its error has a reason, and no range that contains the wrong value.
 *   - Every backend, a prepared call, and a call without a struct for errors return the same status.
 *   - An accepted call writes only its outputs, with the same bits as other backends of its family.
 */
#ifndef POSENC_RANDOM_CALLS_H
#define POSENC_RANDOM_CALLS_H

#include "conformance/problem/guard.h"
#include "random.h"

/* Holds every sum and product of two 64-bit sizes, strides or addresses. */
__extension__ typedef __int128 int128;

/* ---- Operands: operands.c ---- */

/* A tensor, an array of positions or a pointer, as the arguments describe it. */
struct operand {
    const struct tensor_spec *row; /* of the signature */
    char *data;                    /* its first element */
    bool used;                     /* the call reads or writes it */
    bool well_formed; /* rank, sizes and type are valid, so that its elements are known */
    bool empty;       /* it has no elements */
    bool backed;      /* its elements lie in memory of call_test_place() */
    int rank;
    int64_t shape[4], stride[4];     /* in elements */
    int64_t item_bytes;              /* size of an element */
    int128 bytes_below, bytes_above; /* extent before the first element, and from there on */
};

/* The arguments of a call, and facts derived from them. */
struct call_facts {
    enum posenc_kernel kernel;
    const struct signature *signature;
    union arguments args;
    struct problem problem; /* with the sizes and parameters of the arguments */
    const struct posenc_freqs_spec *freqs_spec; /* of the call's frequencies, or NULL */
    /* Sizes of dimensions by the first tensor that has them; -1 if none does. */
    int64_t extent[DIM_DISTANCE + 1];
    bool empty_x; /* x has no elements, so that sums and gradients are zeros */
    struct operand operands[MOST_TENSORS];
};

/* for (EACH_OPERAND(o, facts)) visits the operands of all rows. */
#define EACH_OPERAND(o, facts)                                                                 \
    const struct operand *o = (facts)->operands;                                               \
    o < (facts)->operands + MOST_TENSORS && o->row;                                            \
    o++

/* Derives the other members from kernel, signature, args and frequencies. Keeps `backed` of each operand. */
void facts_derive(struct call_facts *f);
/* Returns the argument of a row: a tensor, positions or a pointer. */
const void *facts_argument(const struct call_facts *f, const struct tensor_spec *row);
/* Returns the first output. */
const struct operand *facts_output(const struct call_facts *f);
/* Returns the number of rows or columns, below which the values of an index lie. */
int64_t facts_index_end(const struct call_facts *f);
/* Returns true if the call uses elements of the operand, and they are known. */
bool operand_has_elements(const struct operand *o);
/* Returns the number of these elements. */
int64_t operand_count(const struct operand *o);
/* Returns the address of element i, counted over all dimensions, the last one fastest. */
char *operand_element(const struct operand *o, int64_t i);

/* ---- Rules: rules.c ---- */

/* Sets of statuses, as bits. If `required` is not empty, the call is rejected with a status of either
 * set. Otherwise it is accepted, or rejected with an allowed status. */
struct expected_statuses {
    unsigned required, allowed;
};

#define STATUS(name) (1u << POSENC_ERR_##name)

/* Judges arguments whose member `size` is `size`. `filled` is true if bytes beyond the known struct are not 0. */
struct expected_statuses rules_judge(const struct call_facts *f, size_t size, bool filled);

/* ---- One test: calls.c ---- */

enum { MOST_CHANGES = 3, CHANGES_TEXT = 1600 };

/* Place of an operand in memory of its own, or in that of another operand, its host. */
struct place {
    int row;          /* index of the host; without one, its own index */
    int128 bytes;     /* from the first element of the host to its own */
    bool is_null;     /* its own memory is NULL */
    int misalignment; /* bytes from an aligned address to its own memory */
};

/* New value of an element: `whole` or, for floating-point elements, `real`. */
struct changed_element {
    int row;
    int64_t index, whole; /* index: modulo the number of elements */
    double real;
};

struct call_test {
    /* Set by the caller. */
    const struct implementation *implementation;
    const struct posenc_backend *backend;
    struct guard *guard;
    struct call *base; /* made by the implementation under test, in memory of its own */
    uint64_t seed;     /* determines the changes */
    unsigned enabled;  /* changes that are made, as bits */

    /* Results: the front-end's status, and a description of the failure. */
    enum posenc_status status;
    char message[NOTATION_ERROR], changes_text[CHANGES_TEXT];

    /* State of the test. Arrays have an element for each row of the signature. */
    struct call_facts before, after; /* arguments before and after the changes */
    size_t size;                     /* the size that the arguments claim */
    bool filled;                     /* bytes beyond the known size are not 0 */
    struct posenc_freqs *freqs;      /* that replace those of the call */
    struct posenc_freqs_spec freqs_spec;
    struct place places[MOST_TENSORS];
    int n_elements;
    struct changed_element elements[MOST_CHANGES];
    struct expected_statuses verdict; /* the allowed answers */
    struct {
        char *data, *saved; /* of a host and the rows in it; its content before the call */
        size_t bytes;
    } buffers[MOST_TENSORS];
    struct arena values; /* of answers */
};

/* Makes the call and checks its answers. Returns false with a message and the changes as text. */
bool call_test_run(struct call_test *t);

/* Makes changes in t->after, and describes them: changes.c. */
void changes_make(struct call_test *t);

/* ---- Memory of a test: operands.c ---- */

/* Places each tensor in memory of exactly its size, between pages that fault. A tensor that is too
 * large gets an address that no memory has. */
void call_test_place(struct call_test *t, enum guard_mode mode);
/* Restores every byte of the outputs as it was placed. */
void call_test_restore(const struct call_test *t);
void call_test_release(struct call_test *t);
/* Returns true if a backend may run the call, since every operand lies in memory. */
bool call_test_is_backed(const struct call_test *t);
/* Returns true if the front-end may check the call, since positions, indices and slopes, which it
 * reads, lie in memory; likewise empty sums, which it writes. */
bool call_test_is_readable(const struct call_test *t);

#endif
