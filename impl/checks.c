/* Checks that several signatures share: see checks.h. */
#include "checks.h"

#include <float.h>
#include <math.h>
#include <string.h>

const struct tensor_names posenc_names_x = TENSOR_NAMES("x"),
                          posenc_names_out = TENSOR_NAMES("out"),
                          posenc_names_table = TENSOR_NAMES("table");

enum posenc_status posenc_check_finite(double value, const char *what,
                                       struct posenc_error *error)
{
    if (fabs(value) <= (double)FLT_MAX) /* not NaN either */
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_PARAMETER, what, value, -(double)FLT_MAX,
                        (double)FLT_MAX);
}

enum posenc_status posenc_require_size(int64_t value, int64_t wanted, const char *what,
                                       struct posenc_error *error)
{
    if (value == wanted)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_SHAPE, what, (double)value, (double)wanted,
                        (double)wanted);
}

enum posenc_status posenc_require_dtype(enum posenc_dtype dtype, enum posenc_dtype wanted,
                                        const char *what, struct posenc_error *error)
{
    if (dtype == wanted)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_DTYPE, what, (double)dtype, (double)wanted,
                        (double)wanted);
}

static enum posenc_status check_x(struct posenc_const_tensor *x,
                                  const struct posenc_tensor *out,
                                  const struct tensor_rule *rule, struct span out_span,
                                  struct posenc_error *error)
{
    struct checked_tensor checked;
    enum posenc_status status = posenc_check_input(x, rule, &checked, error);
    if (status)
        return status;
    status = posenc_require_dtype(x->dtype, out->dtype, "dtype of x (that of out)", error);
    if (!status)
        status = posenc_require_size(x->rank, out->rank, posenc_names_x.rank, error);
    for (int i = 0; !status && i < out->rank; i++)
        status = posenc_require_size(x->shape[i], out->shape[i], posenc_names_x.shape, error);
    return status ? status
                  : posenc_check_overlap(x, checked.span, out, out_span, true,
                                         "x (overlaps out)", error);
}

/* Returns true if x and out are the same tensor. Members are compared one by one, as the caller may just have stored
 * them: a wider load would fail store-to-load forwarding and stall. */
static bool are_same_tensor(const struct posenc_const_tensor *x,
                            const struct posenc_tensor *out)
{
    if ((x->data != out->data) || (x->dtype != out->dtype) || (x->rank != out->rank) ||
        (x->rank < 0) || (x->rank > 4) || (x->reserved[0] | x->reserved[1]) != 0)
        return false;
    for (int i = 0; i < x->rank; i++)
        if ((x->shape[i] != out->shape[i]) || (x->stride[i] != out->stride[i]))
            return false;
    return true;
}

enum posenc_status posenc_check_activations(struct posenc_const_tensor *x,
                                            struct posenc_tensor *out,
                                            const struct activations_rule *rule,
                                            struct checked_tensor *checked,
                                            struct posenc_error *error)
{
    if (rule->takes_x && !x->data && x->rank == 0) /* left zero: in place */
        *x = posenc_const_view(*out);
    bool in_place = rule->takes_x && are_same_tensor(x, out);
    struct tensor_rule tensor_rule = { .names = &posenc_names_out,
                                       .min_rank = rule->min_rank,
                                       .max_rank = rule->max_rank,
                                       .min_last = rule->min_last,
                                       .any_dtype = true };
    enum posenc_status status = posenc_check_output(out, &tensor_rule, checked, error);
    if (status)
        return status;
    if (in_place) { /* check_x() would find the same, but a decoding step is all overhead */
        for (int i = 0; i < 4; i++)
            x->stride[i] = out->stride[i];
        return POSENC_OK;
    }
    tensor_rule.names = &posenc_names_x;
    if (rule->takes_x)
        return check_x(x, out, &tensor_rule, checked->span, error);
    if (x->data)
        return reject(error, POSENC_ERR_ARGUMENT, "x (this kernel takes none)");
    *x = (struct posenc_const_tensor){ 0 };
    return POSENC_OK;
}

enum posenc_status posenc_check_table(struct posenc_const_tensor *table,
                                      const struct tensor_names *names, bool any_dtype,
                                      struct span out_span, const char *overlap,
                                      struct posenc_error *error)
{
    const struct tensor_rule rule = {
        .names = names, .min_rank = 2, .max_rank = 2, .min_last = 1, .any_dtype = any_dtype
    };
    struct checked_tensor checked;
    enum posenc_status status = posenc_check_input(table, &rule, &checked, error);
    return status ? status : posenc_check_disjoint(checked.span, out_span, overlap, error);
}

/* Inserts a dimension of size 1 before the one at index `at`. */
static void insert_dimension(int32_t *rank, int64_t *shape, int64_t *stride, int at)
{
    for (int i = *rank; i > at; i--) {
        shape[i] = shape[i - 1];
        stride[i] = stride[i - 1];
    }
    shape[at] = 1;
    stride[at] = 0;
    ++*rank;
}

static void expand_to_rank_4(int32_t *rank, int64_t *shape, int64_t *stride, bool has_heads)
{
    if (!*rank)
        return;
    if (!has_heads)
        insert_dimension(rank, shape, stride, *rank - 1);
    if (*rank == 3)
        insert_dimension(rank, shape, stride, 0);
}

void posenc_expand_input(struct posenc_const_tensor *tensor, bool has_heads)
{
    expand_to_rank_4(&tensor->rank, tensor->shape, tensor->stride, has_heads);
}

void posenc_expand_output(struct posenc_tensor *tensor, bool has_heads)
{
    expand_to_rank_4(&tensor->rank, tensor->shape, tensor->stride, has_heads);
}
