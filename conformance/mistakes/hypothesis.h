/* A hypothesis: a mistake that is assumed for one call. The files of this folder alone use it. */
#ifndef POSENC_HYPOTHESIS_H
#define POSENC_HYPOTHESIS_H

#include "conformance/oracle/oracle.h"
#include "conformance/problem/arena.h"
#include "conformance/problem/fields.h"

/* Edit of a field that is no list: value, field + value, field^value, negation of a flag, |field|, the larger or the
 * smaller of field and value. */
enum edit_kind {
    EDIT_SET = 1,
    EDIT_ADD,
    EDIT_POWER,
    EDIT_NOT,
    EDIT_MAGNITUDE,
    EDIT_LEAST,
    EDIT_MOST
};
struct field_edit {
    const char *field;
    enum edit_kind kind;
    double value;
};
/* Returns false if the kernel lacks the field. */
bool field_edit_apply(const struct field_edit *edit, struct problem *problem);

struct hypothesis {
    const struct mistake *mistake;
    const struct call *call; /* the call whose outputs are explained */
    struct call edited;      /* its copy, of which the oracle computes the rows */
    struct arena arena;      /* holds the inputs that an edit replaces */
    int64_t first_row;       /* of the rows that the mistake concerns, for its functions */
    int32_t *index;          /* of queries and keys, as the oracle has it, for its functions */
    struct oracle *oracle;
};

/* A pair of channels of a rotation, y0 = x0 c0 - x1 s0 and y1 = x1 c1 + x0 s1. */
struct rotated_pair {
    int64_t read[2], write[2]; /* channels */
    int64_t angle[2];          /* column of cos and sin for y0 and y1 */
    double x[2], c[2], s[2], y[2];
};

/* Values of a row that a hypothesis does not determine, and that are not written. No f32 result is equal to them. */
#define UNKNOWN_VALUE   0x1.8p-1060
#define UNWRITTEN_VALUE 0x1.8p-1061

enum { MOST_FIELD_EDITS = 4 };

/* A row of the table. Each member is optional, apart from the sentence. */
struct mistake {
    const char *sentence; /* in the words of a user: "the sine has the other sign" */
    const char *kernels;  /* or signatures that can have it, separated by spaces; NULL: all */
    struct field_edit fields[MOST_FIELD_EDITS];
    /* Edits the copy of the call. Returns false if the mistake is impossible in this call, or unpredictable. */
    bool (*edit)(struct hypothesis *h);
    /* Returns the position that is used for token t of batch b. */
    double (*position)(const struct hypothesis *h, int64_t b, int64_t t, int64_t r);
    /* Rotations: change the channels of pair i, its cosines and sines, its results. */
    void (*place)(const struct hypothesis *h, int64_t i, struct rotated_pair *pair);
    void (*turn)(const struct hypothesis *h, struct rotated_pair *pair);
    void (*combine)(const struct hypothesis *h, struct rotated_pair *pair);
    /* Computes row r of output o and the magnitudes whose ulp is the unit of errors. NULL: the oracle's row. Returns
     * false if nothing is known about the row. */
    bool (*row)(struct hypothesis *h, int o, int64_t r, double *want, double *magnitudes);
    double value;              /* parameter of these functions */
    enum posenc_dtype rounded; /* the outputs are rounded to this type */
    bool is_vague;             /* named only if no other mistake matches */
};

/* The tables of the files of this folder, in the order of preference. Each ends with a row without a sentence. */
extern const struct mistake mistakes_of_outputs[], mistakes_of_positions[],
    mistakes_of_rotations[], mistakes_of_frequencies[], mistakes_of_scores[],
    mistakes_of_indices[];
/* All of them; NULL at the end. */
extern const struct mistake *const mistake_tables[];

/* Returns true if the table lists the kernel, and if the kernel has the fields that the mistake edits. */
bool mistake_concerns(const struct mistake *mistake, enum posenc_kernel kernel);
/* Begins a hypothesis for a call. Returns false if the mistake is impossible in the call, or if its outputs cannot be
 * predicted. It has to be ended in any case. */
bool hypothesis_begin(struct hypothesis *h, const struct mistake *mistake,
                      const struct call *call);
void hypothesis_end(struct hypothesis *h);
/* Computes row r of output o. Returns false if nothing is known about it. `want` has room for three rows. */
bool hypothesis_row(struct hypothesis *h, int o, int64_t r, double *want, double *magnitudes);
/* Returns true if a value of row r and column k is the predicted one: within a few ulp of the magnitude. */
bool hypothesis_predicts(const struct hypothesis *h, int64_t r, int64_t k, float got,
                         double want, double magnitude);

/* ---- For the files of this folder ---- */

/* Returns a copy of inputs for an edit to change; NULL if out of memory. */
float *hypothesis_copy(struct hypothesis *h, const float *values, int64_t n);
/* Type that values are rounded to: mistake->value, which may also stand for the type of x. */
enum { TYPE_OF_X = POSENC_DTYPE_BF16 + 1 };
enum posenc_dtype hypothesis_rounding(const struct hypothesis *h);
/* Returns true if x has another type than that one, or a type of 16 bits: a mistake is named in one way only. */
bool hypothesis_rounds(struct hypothesis *h);
/* Makes x zeros, so that the oracle returns the term that is added to x. Returns false if out of memory. */
bool hypothesis_remove_x(struct hypothesis *h);
/* Computes row r of the edited call by the oracle. */
void hypothesis_oracle_row(struct hypothesis *h, int o, int64_t r, double *want,
                           double *magnitudes);
/* Adds x * x_scale of the call to the term in `want`, for kernels that do. The term is rounded to f32 first. */
void hypothesis_add_x(const struct hypothesis *h, int64_t r, double *want);

/* Place of a row in an output [batch, heads, queries, ...]: its head of all batches, its query without an offset. */
struct hypothesis_place {
    int64_t head, query;
};
struct hypothesis_place hypothesis_place(const struct hypothesis *h, int64_t r);
/* Sets the magnitudes of the terms in `want`, and adds x to them. */
void hypothesis_finish_terms(const struct hypothesis *h, int64_t r, double *want,
                             double *magnitudes);

/* Computes a row with the position that mistake->position returns (positions.c). */
bool hypothesis_position_row(struct hypothesis *h, int o, int64_t r, double *want,
                             double *magnitudes);
/* Computes a row of a rotation with these functions of the mistake (rotations.c). `want` has room for two more rows. */
bool hypothesis_rotation_row(struct hypothesis *h, int64_t r, double *want, double *magnitudes);

#endif
