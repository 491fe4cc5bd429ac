/* Functions and initialisers of tensors that several signatures share. */
#ifndef POSENC_SIGNATURES_SHARED_H
#define POSENC_SIGNATURES_SHARED_H

#include "conformance/oracle/rows.h"
#include "conformance/problem/signature.h"

int64_t signature_min(int64_t a, int64_t b);

/* Initialises the dimensions of attention scores. */
#define SCORES .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY }

/* Returns an upper bound of the rows of a table that the tokens use. */
int64_t signature_used_rows(const struct problem *p);

/* Checks head_dim and rotary_dim of kernels that rotate. */
bool signature_check_rotation(struct call *call);

/* Initialises the tensor of cos or sin that a rotation reads. */
#define ANGLES(signature, member, from)                                                        \
    {                                                                                          \
        TENSOR(signature, member), .type = TYPE_TABLE, .dims = { DIM_ROW, DIM_PAIR },          \
                                   .stream = from, .dense_copy = DENSE_COPY(member),           \
                                   .cached = true                                              \
    }

/* DeBERTa, Shaw and Transformer-XL: return the number of columns of the terms and the size of the index of columns by
 * query - key, and fill that index. A call without queries or keys has the index of one. */
int64_t signature_columns(const struct problem *p);
int64_t signature_index_size(const struct problem *p);
bool signature_fill_index(struct call *call, void *index, int64_t n);

#define COLUMNS_INDEX(signature)                                                               \
    {                                                                                          \
        INTEGERS(signature, index), .dims = { DIM_DISTANCE }, .size = signature_index_size,    \
                                    .fill = signature_fill_index                               \
    }

#endif
