/* The table of mistakes, and hypotheses: a hypothesis assumes a mistake for one call. The files of this folder alone use
 * it. */
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

/* A mistake that is assumed for a call, and the row whose values are computed. */
struct hypothesis {
    const struct mistake *mistake;
    const struct call *call; /* the call whose outputs are explained */
    struct call edited;      /* its copy, of which the oracle computes the rows */
    struct arena arena;      /* holds the inputs that an edit replaces */
    struct oracle *oracle;
    bool is_term;        /* the rows of `edited` are terms, to which x is added */
    int64_t first_row;   /* of the rows that the mistake concerns */
    const double *freqs; /* radians per position, for its functions */

    int o; /* output of the row */
    int64_t r, width;
    double *want, *magnitudes;  /* the row, and the values whose ulp is the unit of errors */
    int64_t batch, token, head; /* of the row; biases: the head of all batches */
    int64_t query;
    double position; /* on the first axis */
};

/* Values of a row that a hypothesis does not determine, and that are not written. No f32 result is equal to them. */
#define UNKNOWN_VALUE   0x1.8p-1060
#define UNWRITTEN_VALUE 0x1.8p-1061

/* Type of `mistake.type` that stands for the type of x. */
enum { TYPE_OF_X = POSENC_DTYPE_BF16 + 1 };

/* A row of the table. Each member is optional, apart from the sentence. */
enum { MOST_FIELD_EDITS = 4 };
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
    double value;                         /* parameter of these functions */
    int type;                             /* the same: an enum posenc_dtype, or TYPE_OF_X */
    enum posenc_dtype rounded;            /* the outputs are rounded to this type */
    bool is_vague;                        /* named only if no other mistake matches */
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
