/* Looks up signatures and their tensors, and counts elements and bytes (see signature.h). */
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

void parameter_store(const struct parameter *p, const struct problem *problem, void *args)
{
    value_set(p->kind, (char *)args + p->to,
              value_get(p->from_kind, (const char *)problem + p->from));
}

void parameter_load(const struct parameter *p, const void *args, struct problem *problem)
{
    value_set(p->from_kind, (char *)problem + p->from,
              value_get(p->kind, (const char *)args + p->to));
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
    return (int64_t)value_get(FIELD_I64, (const char *)problem + offset);
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
        return problem_count_distances(p->queries, p->keys);
    case DIM_NONE:
        return 1;
    default:
        return read_member(p, members[dim]);
    }
}

int tensor_dims(const struct tensor_spec *spec)
{
    int n = 0;
    while (n < MOST_DIMS && spec->dims[n])
        n++;
    return n;
}

int64_t tensor_elements(const struct problem *problem, const struct tensor_spec *spec)
{
    int64_t n = 1;
    if (spec->size)
        return spec->size(problem);
    for (int i = 0; i < tensor_dims(spec); i++)
        if (spec->dims[i] != DIM_BATCH || !spec->shared || !spec->shared(problem))
            n *= problem_extent(problem, spec->dims[i]);
    return n;
}

const struct tensor_layout *tensor_layout(const struct problem *p,
                                          const struct tensor_spec *spec)
{
    const struct signature *s = signature_of(p->kernel);
    const struct tensor_spec *owner =
        tensor_shares_output(p, spec) ? signature_output(s, 0) : spec;
    return &p->layouts[owner - s->tensors];
}

const struct tensor_spec *kernel_woven_row(enum posenc_kernel kernel)
{
    const struct tensor_spec *first = signature_output(signature_of(kernel), 0);
    for (EACH_TENSOR(spec, signature_of(kernel)))
        if (spec != first && spec->type == first->type &&
            memcmp(spec->dims, first->dims, sizeof spec->dims) == 0 &&
            (spec->role == ROLE_OUTPUT || (spec->role == ROLE_X && kernel_takes_x(kernel))))
            return spec;
    return NULL;
}

bool tensor_shares_output(const struct problem *p, const struct tensor_spec *spec)
{
    return (p->in_place && spec->role == ROLE_X) ||
           (p->woven && !p->in_place && spec == kernel_woven_row(p->kernel));
}

const struct tensor_spec *signature_output(const struct signature *signature, int o)
{
    for (EACH_TENSOR(spec, signature))
        if (spec->role == ROLE_OUTPUT && o-- == 0)
            return spec;
    return NULL;
}

bool tensor_present(const struct problem *problem, const struct tensor_spec *spec)
{
    if (spec->present)
        return spec->present(problem);
    return spec->role != ROLE_X || kernel_takes_x(problem->kernel);
}

enum posenc_dtype tensor_dtype(const struct problem *problem, const struct tensor_spec *spec)
{
    const enum posenc_dtype types[] = { [TYPE_CALL] = problem->dtype,
                                        [TYPE_TABLE] = problem->table_dtype,
                                        [TYPE_F32] = POSENC_DTYPE_F32 };
    return types[spec->type];
}

bool problem_is_f32(const struct problem *problem)
{
    for (EACH_TENSOR(spec, signature_of(problem->kernel)))
        if (tensor_present(problem, spec) && tensor_dtype(problem, spec) != POSENC_DTYPE_F32)
            return false;
    return true;
}

/* ---- Bytes ---- */

static size_t count_bytes(const struct problem *p, const struct tensor_spec *spec,
                          int64_t elements)
{
    const size_t item =
        spec->form == FORM_INTEGERS ? sizeof(int32_t) : storage_size(tensor_dtype(p, spec));
    return (size_t)elements * item;
}

void problem_derive(struct problem *p)
{
    const struct signature *s = signature_of(p->kernel);
    p->in_place = p->in_place && kernel_in_place(p->kernel);
    p->woven = p->in_place || !kernel_woven_row(p->kernel) ? WOVEN_NONE : p->woven;
    if (s->derive)
        s->derive(p);
}

static struct problem derive_copy(struct problem p)
{
    problem_derive(&p);
    return p;
}

int64_t tensor_moved(const struct problem *p, const struct tensor_spec *spec)
{
    if (spec->cached || !tensor_present(p, spec))
        return 0;
    return spec->moved ? spec->moved(p) : tensor_elements(p, spec);
}

size_t problem_bytes(const struct problem *problem)
{
    const struct problem p = derive_copy(*problem);
    size_t bytes = 0;
    for (EACH_TENSOR(spec, signature_of(p.kernel)))
        bytes += count_bytes(&p, spec, tensor_moved(&p, spec));
    return bytes;
}

/* Counts x in place and accumulating outputs once: they are read and written in the same memory. */
size_t problem_working_set(const struct problem *problem)
{
    const struct problem p = derive_copy(*problem);
    size_t bytes = 0;
    for (EACH_TENSOR(spec, signature_of(p.kernel))) {
        const size_t moved = count_bytes(&p, spec, tensor_moved(&p, spec));
        if (spec->role != ROLE_X || !p.in_place)
            bytes += spec->role == ROLE_OUTPUT && problem_accumulates(&p) ? moved / 2 : moved;
    }
    return bytes;
}

size_t problem_memory(const struct problem *problem)
{
    const struct problem p = derive_copy(*problem);
    size_t bytes = 0;
    for (EACH_TENSOR(spec, signature_of(p.kernel)))
        if (tensor_present(&p, spec) && spec->form == FORM_TENSOR &&
            (spec->role != ROLE_X || !p.in_place))
            bytes += count_bytes(&p, spec, tensor_elements(&p, spec));
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
    for (EACH_TENSOR(spec, signature_of(kernel)))
        has = has || (spec->role == ROLE_INPUT && spec->dims[0] == DIM_BATCH);
    return has;
}

bool kernel_adds_onto_x(enum posenc_kernel kernel)
{
    return kernel_takes_x(kernel) && signature_argument(signature_of(kernel), MEMBER(x_scale));
}

/* ---- Tensors of a call ---- */

void *arguments_get(union arguments *args, const struct tensor_spec *spec)
{
    return (char *)args + spec->offset;
}

const void *arguments_data(const union arguments *args, const struct tensor_spec *spec)
{
    const char *at = (const char *)args + spec->offset;
    if (spec->form == FORM_TENSOR)
        return ((const struct posenc_tensor *)(const void *)at)->data;
    if (spec->form == FORM_POSITIONS)
        return ((const struct posenc_positions *)(const void *)at)->data;
    const void *data;
    memcpy(&data, at, sizeof data);
    return data;
}

void *call_argument(struct call *call, const struct tensor_spec *spec)
{
    return arguments_get(&call->args, spec);
}

const void *call_data(const struct call *call, const struct tensor_spec *spec)
{
    return arguments_data(&call->args, spec);
}

int call_dim(const struct call *call, const struct tensor_spec *spec, enum dim dim)
{
    const char *at = (const char *)&call->args + spec->offset;
    const int n = tensor_dims(spec),
              rank = ((const struct posenc_tensor *)(const void *)at)->rank;
    for (int i = 0; i < n; i++)
        if (spec->dims[i] == dim && rank - n + i >= 0)
            return rank - n + i;
    return -1;
}

/* Returns the first argument of a role and form. */
static void *first_argument(struct call *call, enum tensor_role role, enum argument_form form)
{
    for (EACH_TENSOR(spec, signature_of(call->problem.kernel)))
        if (spec->role == role && spec->form == form)
            return call_argument(call, spec);
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
