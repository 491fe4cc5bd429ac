/*
 * What call.c, call_tensors.c and call_arguments.c share: the parts a call is made of.  All of them
 * leave what they made to call_destroy(), and why they could not in call->error.
 */
#ifndef POSENC_CALL_PARTS_H
#define POSENC_CALL_PARTS_H

#include "inputs.h"
#include "storage.h"

/* ---- call.c: functions and memory ---- */

/* Whose functions the call is made with. */
const struct subject *call_subject(const struct call *call);

/* Notes why a call cannot be made; returns `status`. */
enum posenc_status call_refuse(struct call *call, enum posenc_status status, const char *what,
                               int64_t value, int64_t least, int64_t most);

/* Memory of the caller's kind for n elements of `item` bytes. */
void *call_memory(struct call *call, int64_t n, size_t item, char role);

/* Memory of our own; n floats of it. */
void *call_keep(struct call *call, size_t bytes);
float *call_keep_floats(struct call *call, int64_t n);

/* ---- call_tensors.c: tensors, positions, plans ---- */

/* A tensor of rank 4 without data: `pad` unused elements after each row but the last, strides
 * of the first two dimensions exchanged for token_major. */
enum posenc_status make_shape(struct call *call, struct posenc_tensor *tensor,
                              enum posenc_dtype dtype, const int64_t shape[4],
                              bool token_major);

/* The same tensor without one of its dimensions, which is 1. */
struct posenc_tensor tensor_squeezed(const struct posenc_tensor *tensor, int axis);

/* Copies dense rows of f32 into a tensor, rounding them to its type. */
void tensor_scatter(const struct posenc_tensor *tensor, const float *dense);

/* Memory for an output of that shape, which becomes the next of call->outputs; role 'o', or 'b'
 * in place. */
enum posenc_status make_output(struct call *call, const char *name,
                               struct posenc_tensor *tensor, char role);

/* An input of that shape, filled from a stream; its memory too unless it has some (in place).
 * *pristine becomes its dense copy. */
enum posenc_status make_input(struct call *call, struct posenc_tensor *tensor, uint64_t stream,
                              const float **pristine);

/* An input [rows, width] with the values of a dense copy. */
enum posenc_status make_table(struct call *call, struct posenc_tensor *table,
                              enum posenc_dtype dtype, int64_t rows, int64_t width,
                              const float *dense);

/* An f32 input [rows, width] from STREAM_TABLE; its dense copy becomes call->table. */
enum posenc_status make_random_table(struct call *call, struct posenc_tensor *table,
                                     int64_t rows, int64_t width);

enum posenc_status make_positions(struct call *call, struct posenc_positions *positions);
enum posenc_status make_plan(struct call *call); /* call->freqs */

/* ---- call_arguments.c: one maker for each signature ---- */

enum posenc_status make_arguments(struct call *call);

#endif
