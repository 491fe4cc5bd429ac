/*
 * What call.c, call_tensors.c, call_arguments.c and signatures share: the parts a call is made of.
 * All of them leave what they made to call_destroy().  The first that cannot be made leaves its
 * reason in call->error.
 */
#ifndef POSENC_CALL_PARTS_H
#define POSENC_CALL_PARTS_H

#include "signature.h"
#include "storage.h"

/* Whether the status is POSENC_OK; if not, notes that the call is refused for this value, where
 * others from `least` to `most` are accepted: a range that has the value itself is not named.  The same
 * of a value that has to be among those. */
bool call_check(struct call *call, enum posenc_status status, const char *what, int64_t value,
                int64_t least, int64_t most);
bool call_within(struct call *call, enum posenc_status otherwise, const char *what,
                 int64_t value, int64_t least, int64_t most);

/* Memory of our own for n elements, zeroed; NULL where it was refused. */
void *call_keep(struct call *call, int64_t n, size_t item);

/* Copies dense rows of f32 into a tensor, rounding them to its type. */
void tensor_scatter(const struct posenc_tensor *tensor, const float *dense);

/* The argument of a row of the call's signature: memory for it, filled. */
bool make_tensor(struct call *call, const struct tensor_row *row);

/* call->freqs, and the argument. */
bool make_plan(struct call *call, const struct signature *s);

/* All arguments; the plan among them, unless other calls have it, too. */
bool make_arguments(struct call *call);
void destroy_plan(struct call *call);

#endif
