/* Functions of all signatures: finding one, walking its rows, counting elements and bytes. */
#include "signature.h"

#include "storage.h"

#include <string.h>

const struct signature *signature_of(enum posenc_kernel kernel)
{
    static const struct signature *const all[] = {
#define POSENC_SIGNATURE(name) [SIGNATURE_##name] = &signature_##name,
#include <posenc_signatures.def>
    };
    return all[kernel_signature(kernel)];
}

void signature_own_defaults(const struct signature *signature, struct problem *problem)
{
    for (EACH_PARAMETER(own, signature)) {
        const struct field field = parameter_field(own);
        if (own->name)
            field_set(&field, problem,
                      field_is_real(&field) ? double_to_bits(own->value)
                                            : (uint64_t)(int64_t)own->value);
    }
}

size_t signature_argument(const struct signature *signature, size_t member)
{
    for (EACH_PARAMETER(p, signature))
        if (p->from == member)
            return p->to;
    return 0;
}

/* ---- Dimensions ---- */

static int64_t read_member(const struct problem *problem, size_t offset)
{
    int64_t value;
    memcpy(&value, (const char *)problem + offset, sizeof value);
    return value;
}

int64_t problem_extent(const struct problem *p, enum dim dim)
{
    static const size_t members[] = { [DIM_BATCH] = MEMBER(batch),
                                      [DIM_TOKEN] = MEMBER(tokens),
                                      [DIM_HEAD] = MEMBER(heads),
                                      [DIM_QUERY] = MEMBER(queries),
                                      [DIM_KEY] = MEMBER(keys) };
    const struct signature *s = signature_of(p->kernel);
    switch (dim) {
    case DIM_CHANNEL:
        return s->channels ? read_member(p, s->channels) : 0;
    case DIM_PAIR:
        return s->rotary ? (read_member(p, s->rotary) + 1) / 2 : 0;
    case DIM_ROW:
        return s->rows ? s->rows(p) : p->rows;
    case DIM_COLUMN:
        return s->columns ? s->columns(p) : 0;
    case DIM_DISTANCE:
        return problem_distances(p->queries, p->keys);
    case DIM_NONE:
        return 1;
    default:
        return read_member(p, members[dim]);
    }
}

int tensor_dims(const struct tensor_row *row)
{
    int n = 0;
    while (n < MOST_DIMS && row->dims[n])
        n++;
    return n;
}

int64_t tensor_elements(const struct problem *problem, const struct tensor_row *row)
{
    int64_t n = 1;
    if (row->size)
        return row->size(problem);
    for (int i = 0; i < tensor_dims(row); i++)
        if (row->dims[i] != DIM_BATCH || !row->shared || !row->shared(problem))
            n *= problem_extent(problem, row->dims[i]);
    return n;
}

const struct tensor_layout *tensor_layout(const struct problem *p, const struct tensor_row *row)
{
    const struct signature *s = signature_of(p->kernel);
    return &p->layouts[(tensor_shares_output(p, row) ? signature_output(s, 0) : row) -
                       s->tensors];
}

const struct tensor_row *kernel_woven_row(enum posenc_kernel kernel)
{
    const struct tensor_row *first = signature_output(signature_of(kernel), 0);
    for (EACH_TENSOR(row, signature_of(kernel)))
        if (row != first && row->type == first->type &&
            memcmp(row->dims, first->dims, sizeof row->dims) == 0 &&
            (row->role == ROLE_OUTPUT || (row->role == ROLE_X && kernel_takes_x(kernel))))
            return row;
    return NULL;
}

bool tensor_shares_output(const struct problem *p, const struct tensor_row *row)
{
    return (p->in_place && row->role == ROLE_X) ||
           (p->woven && !p->in_place && row == kernel_woven_row(p->kernel));
}

const struct tensor_row *signature_output(const struct signature *signature, int o)
{
    for (EACH_TENSOR(row, signature))
        if (row->role == ROLE_OUTPUT && o-- == 0)
            return row;
    return NULL;
}

bool tensor_present(const struct problem *problem, const struct tensor_row *row)
{
    if (row->present)
        return row->present(problem);
    return row->role != ROLE_X || kernel_takes_x(problem->kernel);
}

enum posenc_dtype tensor_dtype(const struct problem *problem, const struct tensor_row *row)
{
    const enum posenc_dtype types[] = { [TYPE_CALL] = problem->dtype,
                                        [TYPE_TABLE] = problem->table_dtype,
                                        [TYPE_F32] = POSENC_F32 };
    return types[row->type];
}

bool problem_is_f32(const struct problem *problem)
{
    for (EACH_TENSOR(row, signature_of(problem->kernel)))
        if (tensor_present(problem, row) && tensor_dtype(problem, row) != POSENC_F32)
            return false;
    return true;
}

static size_t count_bytes(const struct problem *p, const struct tensor_row *row,
                          int64_t elements)
{
    const size_t item =
        row->form == FORM_INTEGERS ? sizeof(int32_t) : storage_size(tensor_dtype(p, row));
    return (size_t)elements * item;
}

/* ---- Bytes ---- */

void problem_settle(struct problem *p)
{
    const struct signature *s = signature_of(p->kernel);
    p->in_place = p->in_place && kernel_in_place(p->kernel);
    p->woven = p->in_place || !kernel_woven_row(p->kernel) ? WOVEN_NONE : p->woven;
    if (s->settle)
        s->settle(p);
}

static struct problem settle_copy(struct problem p)
{
    problem_settle(&p);
    return p;
}

int64_t tensor_moved(const struct problem *p, const struct tensor_row *row)
{
    if (row->cached || !tensor_present(p, row))
        return 0;
    return row->moved ? row->moved(p) : tensor_elements(p, row);
}

size_t problem_bytes(const struct problem *problem)
{
    const struct problem p = settle_copy(*problem);
    size_t bytes = 0;
    for (EACH_TENSOR(row, signature_of(p.kernel)))
        bytes += count_bytes(&p, row, tensor_moved(&p, row));
    return bytes;
}

/* Counts x in place and accumulating outputs once, as they are both read and written. */
size_t problem_working_set(const struct problem *problem)
{
    const struct problem p = settle_copy(*problem);
    size_t bytes = 0;
    for (EACH_TENSOR(row, signature_of(p.kernel))) {
        const size_t moved = count_bytes(&p, row, tensor_moved(&p, row));
        if (row->role != ROLE_X || !p.in_place)
            bytes += row->role == ROLE_OUTPUT && problem_accumulates(&p) ? moved / 2 : moved;
    }
    return bytes;
}

size_t problem_memory(const struct problem *problem)
{
    const struct problem p = settle_copy(*problem);
    size_t bytes = 0;
    for (EACH_TENSOR(row, signature_of(p.kernel)))
        if (tensor_present(&p, row) && row->form == FORM_TENSOR &&
            (row->role != ROLE_X || !p.in_place))
            bytes += count_bytes(&p, row, tensor_elements(&p, row));
    return bytes;
}

bool problem_accumulates(const struct problem *problem)
{
    return problem->accumulate &&
           signature_argument(signature_of(problem->kernel), MEMBER(accumulate));
}

bool kernel_has_batch(enum posenc_kernel kernel)
{
    bool has = !kernel_on_scores(kernel) || kernel_takes_x(kernel);
    for (EACH_TENSOR(row, signature_of(kernel)))
        has = has || (row->role == ROLE_INPUT && row->dims[0] == DIM_BATCH);
    return has;
}

bool kernel_adds_onto_x(enum posenc_kernel kernel)
{
    return kernel_takes_x(kernel) && signature_argument(signature_of(kernel), MEMBER(x_scale));
}

/* ---- Tensors of a call ---- */

void *row_argument(union arguments *args, const struct tensor_row *row)
{
    return (char *)args + row->offset;
}

const void *row_data(const union arguments *args, const struct tensor_row *row)
{
    const char *at = (const char *)args + row->offset;
    if (row->form == FORM_TENSOR)
        return ((const struct posenc_tensor *)(const void *)at)->data;
    if (row->form == FORM_POSITIONS)
        return ((const struct posenc_positions *)(const void *)at)->data;
    const void *data;
    memcpy(&data, at, sizeof data);
    return data;
}

void *call_argument(struct call *call, const struct tensor_row *row)
{
    return row_argument(&call->args, row);
}

const void *call_data(const struct call *call, const struct tensor_row *row)
{
    return row_data(&call->args, row);
}

int call_dim(const struct call *call, const struct tensor_row *row, enum dim dim)
{
    const char *at = (const char *)&call->args + row->offset;
    const int n = tensor_dims(row),
              rank = ((const struct posenc_tensor *)(const void *)at)->rank;
    for (int i = 0; i < n; i++)
        if (row->dims[i] == dim && rank - n + i >= 0)
            return rank - n + i;
    return -1;
}

/* Returns the first argument of a role and form. */
static void *first_argument(struct call *call, enum role role, enum form form)
{
    for (EACH_TENSOR(row, signature_of(call->problem.kernel)))
        if (row->role == role && row->form == form)
            return call_argument(call, row);
    return NULL;
}

struct posenc_tensor *call_x(struct call *call)
{
    static struct posenc_tensor none;
    struct posenc_tensor *x = first_argument(call, ROLE_X, FORM_TENSOR);
    return x ? x : &none;
}

struct posenc_tensor *call_out(struct call *call)
{
    return first_argument(call, ROLE_OUTPUT, FORM_TENSOR);
}

struct posenc_positions *call_positions(struct call *call)
{
    return first_argument(call, ROLE_INPUT, FORM_POSITIONS);
}
