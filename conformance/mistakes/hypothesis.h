/*
 * The table of known mistakes, and hypotheses. Only the files of this folder include it.
 *
 * A row of the table describes the difference between a mistaken kernel and a right one, for example:
 *
 *     { "x is not added", SET("x_scale", 0.0) }
 *
 * A hypothesis assumes a mistake for a call. It copies the call and edits the copy. The oracle then computes rows of
 * the copy: the values that a kernel with the mistake returns.
 */
#ifndef POSENC_HYPOTHESIS_H
#define POSENC_HYPOTHESIS_H

#include "conformance/oracle/oracle.h"
#include "conformance/problem/arena.h"
#include "conformance/problem/fields.h"

/* ---- Edits of a problem ---- */

enum edit_kind {
    EDIT_SET = 1,   /* value */
    EDIT_ADD,       /* field + value */
    EDIT_POWER,     /* field ^ value */
    EDIT_NOT,       /* the negated flag */
    EDIT_MAGNITUDE, /* |field| */
    EDIT_AT_LEAST,  /* the larger of field and value */
    EDIT_AT_MOST    /* the smaller of field and value */
};
/* Edit of a field that is no list. */
struct field_edit {
    const char *field;
    enum edit_kind kind;
    double value;
};
/* Returns false if the kernel lacks the field. */
bool field_edit_apply(const struct field_edit *edit, struct problem *problem);

/* ---- The table ---- */

/* Value of `mistake.type` that stands for the type of x. */
enum { TYPE_OF_X = POSENC_DTYPE_BF16 + 1 };

/* A row of the table. Each member is optional, apart from the sentence. A function's name begins with the member that
 * holds it, as in change_rounded(); those of `position` are verbs. Files have the functions first, and then the rows. */
enum { MOST_FIELD_EDITS = 4 };
struct hypothesis;
struct mistake {
    const char *sentence; /* in the words of a user: "the sine has the other sign" */
    const char *kernels;  /* or signatures that can have it, separated by spaces; NULL: all */
    struct field_edit fields[MOST_FIELD_EDITS];
    /* Edits the copy of the call. Returns false if the mistake is impossible in this call, or unpredictable. */
    bool (*edit)(struct hypothesis *h);
    double (*position)(const struct hypothesis *h);     /* returns the position that is used */
    double (*score)(struct hypothesis *h, int64_t key); /* returns a bias */
    void (*row)(struct hypothesis *h);    /* computes the row, in place of the oracle */
    void (*change)(struct hypothesis *h); /* changes the row of the oracle */
    double value;              /* parameter of these functions: a number, or a kind of error */
    int type;                  /* another one: an enum posenc_dtype, or TYPE_OF_X */
    enum posenc_dtype rounded; /* the outputs are rounded to this type */
    bool is_vague;             /* named only if no other mistake matches */
};

/* Edits of one field. */
#define SET(field, value)   .fields = { { field, EDIT_SET, value } }
#define ADD(field, value)   .fields = { { field, EDIT_ADD, value } }
#define POWER(field, value) .fields = { { field, EDIT_POWER, value } }
#define MAGNITUDE(field)    .fields = { { field, EDIT_MAGNITUDE, 0.0 } }

/* The parts of the table, in the order of preference; NULL at the end. Each part ends with a row without a sentence. */
extern const struct mistake *const mistake_tables[];
extern const struct mistake mistakes_of_tokens[], mistakes_of_rotations[],
    mistakes_of_frequencies[], mistakes_of_scores[];

/* Returns true if the table lists the kernel, and if the kernel has the fields that the mistake edits. */
bool mistake_concerns(const struct mistake *mistake, enum posenc_kernel kernel);

/* ---- Hypotheses ---- */

/* A mistake that is assumed for a call, and the row that is computed. */
struct hypothesis {
    const struct mistake *mistake;
    const struct call *call; /* the call whose outputs are explained */
    struct call edited;      /* its copy, of which the oracle computes the rows */
    struct arena arena;      /* holds the inputs that an edit replaces */
    struct oracle *oracle;
    bool is_term;        /* the rows of `edited` are terms, to which x is added */
    int64_t first_row;   /* of the rows that the mistake concerns */
    const double *freqs; /* radians per position, of edit_rough_angles() */

    /* The row that hypothesis_row() computes: */
    int output;
    int64_t row, width;
    double *want;               /* its values */
    double *magnitudes;         /* values whose ulp is the unit of errors */
    double *scratch;            /* room for another row */
    int64_t batch, token, head; /* biases: the head of all batches */
    int64_t query;              /* of biases */
    double position;            /* right one of the token on the first axis */
};

/* Values of a row that a hypothesis does not determine, and that are not written. No f32 result is equal to them. */
#define UNKNOWN_VALUE   0x1.8p-1060
#define UNWRITTEN_VALUE 0x1.8p-1061

/* Begins a hypothesis for a call. Returns false if the mistake is impossible in the call, or if its outputs cannot be
 * predicted. It has to be ended in any case. */
bool hypothesis_begin(struct hypothesis *h, const struct mistake *mistake,
                      const struct call *call);
void hypothesis_end(struct hypothesis *h);
/* Computes a row of an output. Returns false if nothing is known about it. */
bool hypothesis_row(struct hypothesis *h, int output, int64_t row);
/* Returns true if a value of that row is the predicted one: within a few ulp of the magnitude. */
bool hypothesis_predicts(const struct hypothesis *h, int64_t column, float got);

/* ---- For the functions of mistakes ---- */

/* Returns a copy of inputs for an edit to change; NULL if out of memory. */
float *hypothesis_copy(struct hypothesis *h, const float *values, int64_t n);
/* Rounds a value to mistake->type. */
double hypothesis_round(const struct hypothesis *h, double value);
/* An edit. Returns true if x has another type than mistake->type: a mistake is named in one way only. */
bool hypothesis_rounds(struct hypothesis *h);
/* Edit the call so that its token of the row, or all tokens of a gradient, have the positions of mistake->position
 * (tokens.c). Return false if that is impossible. */
bool hypothesis_place_row(struct hypothesis *h);
bool hypothesis_place_tokens(struct hypothesis *h);
/* Makes x zeros, so that the oracle returns the term that is added to x. Returns false if out of memory. */
bool hypothesis_remove_x(struct hypothesis *h);

#endif
