/* Functions and table rows that several signatures share. */
#ifndef POSENC_SIGNATURES_SHARED_H
#define POSENC_SIGNATURES_SHARED_H

#include "conformance/oracle/rows.h"
#include "conformance/problem/signature.h"

int64_t min_int64(int64_t a, int64_t b);

#define SCORES .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY }

/* Returns an upper bound of the rows of a table that the tokens use. */
int64_t tokens_rows_used(const struct problem *p);

/* Checks head_dim and rotary_dim of kernels that rotate. */
bool rotations_check(struct call *call);

#define ANGLES(signature, member, from)                                                        \
    {                                                                                          \
        TENSOR(signature, member), .type = TYPE_TABLE, .dims = { DIM_ROW, DIM_PAIR },          \
                                   .stream = from, .pristine = PRISTINE(member),               \
                                   .cached = true                                              \
    }

/* Return the number of columns of DeBERTa, Shaw or Transformer-XL and the size of their index by
 * query - key, and fill that index. An empty call has the index of one query or one key. */
int64_t columns_of(const struct problem *p);
int64_t columns_index_size(const struct problem *p);
bool columns_fill_index(struct call *call, void *index, int64_t n);

#define COLUMNS_INDEX(signature)                                                               \
    {                                                                                          \
        INTEGERS(signature, index), .dims = { DIM_DISTANCE }, .size = columns_index_size,      \
                                    .fill = columns_fill_index                                 \
    }

#endif
