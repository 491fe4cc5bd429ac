/*
 * What several signatures share.
 */
#ifndef POSENC_SIGNATURES_SHARED_H
#define POSENC_SIGNATURES_SHARED_H

#include "conformance/oracle/rows.h"
#include "conformance/problem/call_parts.h"
#include "conformance/problem/signature.h"

int64_t lesser(int64_t a, int64_t b);

/* ---- Rows of a table for tokens (tokens.c) ---- */

void tokens_draw_rows(struct draws *d, struct problem *p, int64_t rows);
void tokens_length(struct problem *p, int64_t n, int variant);
/* Rows that the tokens ask for, at most. */
int64_t tokens_rows_used(const struct problem *p);

/* ---- Heads that turn by rows of cosines and sines (rotations.c) ---- */

void rotations_draw(struct draws *d, struct problem *p); /* all but positions */
void rotations_length(struct problem *p, int64_t n, int variant);
enum posenc_status rotations_check(struct call *call);
enum posenc_status rotations_fill_cos(struct call *call, void *to, int64_t n);
enum posenc_status rotations_fill_sin(struct call *call, void *to, int64_t n);

#define ANGLES(signature, member)                                                              \
    {                                                                                          \
        TENSOR(signature, member), .type = TYPE_TABLE, .dims = { DIM_ROW, DIM_PAIR },          \
                                   .fill = rotations_fill_##member,                            \
                                   .pristine = PRISTINE(member)                                \
    }

/* ---- Scores (scores.c) ---- */

#define SCORES .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY }, .moved = tensor_elements

void scores_draw(struct draws *d, struct problem *p);
void scores_length(struct problem *p, int64_t n, int variant);

/* ---- Columns by relative position (columns.c) ---- */

void columns_draw(struct draws *d, struct problem *p);
int64_t columns_of(const struct problem *p);
/* The index by query - key; an empty call has those of one query or one key. */
int64_t columns_index_size(const struct problem *p);
enum posenc_status columns_fill_index(struct call *call, void *index, int64_t n);
int64_t columns_index_moved(const struct problem *p, const struct tensor_row *row);

#define COLUMNS_INDEX(signature)                                                               \
    {                                                                                          \
        INTEGERS(signature, index), .dims = { DIM_DISTANCE }, .size = columns_index_size,      \
                                    .fill = columns_fill_index, .moved = columns_index_moved   \
    }

#endif
