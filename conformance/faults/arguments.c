/*
 * Calls the real kernel with other arguments: strides of another tensor, parameters without a sign.
 */
#include "faulty.h"

#include "conformance/problem/signature.h"

#include <math.h>
#include <string.h>

/* Gives sin the row stride of cos. */
static void share_stride(struct entered *e)
{
    struct posenc_tensor *cos = NULL;
    for (EACH_TENSOR(row, signature_of(e->kernel)))
        if (row->type == TYPE_TABLE) {
            struct posenc_tensor *table = row_argument(&e->args, row);
            cos = cos ? cos : table;
            table->stride[0] = cos->stride[0];
        }
}

void change_arguments(struct entered *e)
{
    if (FAULT_IS(STRIDES_OF_OUT) && e->x->data != e->out->data)
        memcpy(e->x->stride, e->out->stride, sizeof e->x->stride);
    if (FAULT_IS(STRIDE_OF_COS))
        share_stride(e);
    if (FAULT_IS(TOKEN_STRIDE_IGNORED))
        e->positions->stride_token = 1;
    if (FAULT_IS(X_SCALE_UNSIGNED)) {
        const float magnitude = fabsf(e->x_scale);
        memcpy((char *)&e->args + signature_argument(signature_of(e->kernel), MEMBER(x_scale)),
               &magnitude, sizeof magnitude);
    }
}
