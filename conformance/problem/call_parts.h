/*
 * What call.c, call_tensors.c, call_arguments.c and signatures share: the parts a call is made of.
 * All of them leave what they made to call_destroy(), and why they could not in call->error.
 */
#ifndef POSENC_CALL_PARTS_H
#define POSENC_CALL_PARTS_H

#include "signature.h"
#include "storage.h"

/* ---- call.c: functions and memory ---- */

/* Whose functions the call is made with. */
const struct subject *call_subject(const struct call *call);

/* Notes why a call cannot be made; returns `status`. */
enum posenc_status call_refuse(struct call *call, enum posenc_status status, const char *what,
                               int64_t value, int64_t least, int64_t most);

/* Memory of the caller's kind for n elements of `item` bytes, at an offset that is a multiple of
 * those. */
void *call_memory(struct call *call, int64_t n, size_t item, int64_t offset_bytes, char role);

/* Memory of our own; n floats of it. */
void *call_keep(struct call *call, size_t bytes);
float *call_keep_floats(struct call *call, int64_t n);

/* ---- call_tensors.c: tensors and positions ---- */

/* Copies dense rows of f32 into a tensor, rounding them to its type. */
void tensor_scatter(const struct posenc_tensor *tensor, const float *dense);

/* One row of the call's signature, by its form: memory for it, filled; the argument. */
enum posenc_status make_tensor(struct call *call, const struct tensor_row *row);
enum posenc_status make_positions(struct call *call, const struct tensor_row *row);
enum posenc_status make_pointer(struct call *call, const struct tensor_row *row);

/* ---- call_arguments.c ---- */

enum posenc_status make_arguments(struct call *call);

#endif
