/*
 * posenc_split(): parts of a call for threads. Two threads may get three tokens each of six, for example. The axis to
 * cut is chosen so that no two parts write the same cache line, as far as the memory layout of the outputs allows it.
 * members.h says which members of a call a cut changes.
 *
 * Arguments have not been checked yet. Address arithmetic is therefore unsigned: sizes that are too large wrap, and the
 * checks of each part reject them.
 */
#include "members.h"
#include "validate.h"

#include <string.h>

enum { LINE = 64 }; /* bytes of a cache line */

/* Returns the size of an axis in the first output; 1 if it has no such axis. */
static int64_t axis_size(const struct args_members *members, const char *args, char axis)
{
    const struct posenc_tensor *out = posenc_member_tensor(members->list, args);
    int d = posenc_axis_dimension(members->list[0].axes, out->rank, axis);
    return d < 0 ? 1 : out->shape[d];
}

/* ---- Cuts between cache lines ---- */

/* The memory of an output, seen along one axis: n slices. Dimensions with a larger stride than the axis repeat all of
 * them. */
struct slices {
    uintptr_t first, step; /* slice k is at first + k * step */
    uintptr_t low, high;   /* and occupies the bytes [low, high) from there */
    int64_t n;
    uintptr_t repeat_step; /* the smallest distance between repetitions; 0 if there are none */
    bool repeats_by_line;  /* all such distances are multiples of a cache line */
};

static uint64_t absolute(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* Adds another dimension of the output, with n elements `step` bytes apart. */
static void add_dimension(struct slices *slices, int64_t n, int64_t step)
{
    const uint64_t distance = absolute(step);
    if (n <= 1)
        return;
    if (distance < absolute((int64_t)slices->step)) {
        if (step < 0)
            slices->low += (uintptr_t)step * (uintptr_t)(n - 1);
        else
            slices->high += (uintptr_t)step * (uintptr_t)(n - 1);
        return;
    }
    slices->repeats_by_line &= distance % LINE == 0;
    if (!slices->repeat_step || distance < slices->repeat_step)
        slices->repeat_step = distance;
}

static struct slices slices_of(const struct posenc_tensor *t, int axis)
{
    const int64_t item = (int64_t)posenc_dtype_size(t->dtype);
    struct slices slices = { .first = (uintptr_t)t->data,
                             .step = (uintptr_t)t->stride[axis] * (uintptr_t)item,
                             .high = (uintptr_t)item,
                             .n = t->shape[axis],
                             .repeats_by_line = true };
    for (int d = 0; d < t->rank; d++)
        if (d != axis)
            add_dimension(&slices, t->shape[d],
                          (int64_t)((uintptr_t)t->stride[d] * (uintptr_t)item));
    return slices;
}

/* Returns true if a range that ends at `end` and one that begins at `next` share no cache line. */
static bool is_line_boundary(uintptr_t end, uintptr_t next)
{
    return (end - 1) / LINE < next / LINE;
}

/* Returns true if no cache line has bytes both of slices before f and of later ones. */
static bool is_slice_cut_clean(const struct slices *s, int64_t f)
{
    const bool descends = (int64_t)s->step < 0;
    const int64_t below = descends ? f : f - 1, above = descends ? f - 1 : f;
    const int64_t lowest = descends ? s->n - 1 : 0, highest = descends ? 0 : s->n - 1;
    const uintptr_t at = s->first, step = s->step;
    if (!is_line_boundary(at + (uintptr_t)below * step + s->high,
                          at + (uintptr_t)above * step + s->low))
        return false;
    return !s->repeat_step ||
           (s->repeats_by_line &&
            is_line_boundary(at + (uintptr_t)highest * step + s->high,
                             at + (uintptr_t)lowest * step + s->low + s->repeat_step));
}

/* Returns the number of slices after which their alignment to cache lines repeats. */
static int64_t alignment_period(const struct slices *s)
{
    const uintptr_t power = s->step & (0 - s->step);
    return power == 0 || power >= LINE ? 1 : (int64_t)(LINE / power);
}

/* An axis that a call may be cut along. */
struct axis {
    char name;
    int64_t n, period; /* its size, and the largest alignment_period() of the outputs */
    int outputs;
    struct slices slices[2]; /* of each output */
    bool clean;              /* some cut shares no cache line */
};

/* Returns true if no cache line has bytes of both tensors. */
static bool share_no_line(const struct posenc_tensor *a, const struct posenc_tensor *b)
{
    uintptr_t first[2], end[2];
    const struct posenc_tensor *of[2] = { a, b };
    for (int k = 0; k < 2; k++) {
        first[k] = (uintptr_t)of[k]->data;
        end[k] = first[k] + posenc_dtype_size(of[k]->dtype);
        for (int d = 0; d < of[k]->rank; d++) {
            uintptr_t reach = (uintptr_t)(of[k]->shape[d] - 1) * (uintptr_t)of[k]->stride[d] *
                              posenc_dtype_size(of[k]->dtype);
            *(of[k]->stride[d] < 0 ? &first[k] : &end[k]) += reach;
        }
    }
    return is_line_boundary(end[0], first[1]) || is_line_boundary(end[1], first[0]);
}

static bool is_cut_clean(const struct axis *axis, int64_t f)
{
    bool clean = true;
    for (int o = 0; o < axis->outputs; o++)
        clean = clean && is_slice_cut_clean(&axis->slices[o], f);
    return clean;
}

/* Describes an axis. Outputs that interleave (cosines and sines of one [tokens, 2, half] array) count as one array with
 * a further dimension. */
static struct axis describe_axis(const struct args_members *members, const char *args,
                                 char name)
{
    struct axis axis = { .name = name, .n = axis_size(members, args, name), .period = 1 };
    const struct posenc_tensor *previous = NULL;
    for (EACH_MEMBER(m, members)) {
        if (m->kind != MEMBER_OUT)
            break;
        const struct posenc_tensor *t = posenc_member_tensor(m, args);
        const int d = posenc_axis_dimension(m->axes, t->rank, name);
        if (d < 0)
            break; /* two outputs that differ in rank: the kernel rejects them */
        axis.slices[axis.outputs++] = slices_of(t, d);
        if (previous && !share_no_line(previous, t)) {
            const uintptr_t distance = (uintptr_t)t->data - (uintptr_t)previous->data;
            add_dimension(&axis.slices[0], 2, (int64_t)distance);
            add_dimension(&axis.slices[1], 2, (int64_t)(0 - distance));
        }
        previous = t;
    }
    for (int o = 0; o < axis.outputs; o++)
        if (alignment_period(&axis.slices[o]) > axis.period)
            axis.period = alignment_period(&axis.slices[o]);
    for (int64_t f = 1; f < axis.n && f <= axis.period; f++)
        axis.clean = axis.clean || is_cut_clean(&axis, f);
    return axis;
}

/* Returns the first index of part k of n, at or below an even share. It is a clean cut if the axis has one, otherwise
 * one that would be clean if the data were aligned to a cache line. */
static int64_t part_begin(const struct axis *axis, int64_t k, int64_t n)
{
    const int64_t even = axis->n * k / n; /* both below 2^31 */
    if (k == n)
        return axis->n;
    for (int64_t f = even; axis->clean && f > 0 && f > even - axis->period; f--)
        if (is_cut_clean(axis, f))
            return f;
    return axis->clean ? 0 : even / axis->period * axis->period;
}

/* Returns true if axis a is better than b for n parts: clean cuts count most, then a smaller largest part. */
static bool is_better(const struct axis *a, const struct axis *b, int64_t n)
{
    const int64_t units_a = (a->n + a->period - 1) / a->period,
                  units_b = (b->n + b->period - 1) / b->period;
    if (a->clean != b->clean)
        return a->clean;
    if (units_a == 0 || units_b == 0)
        return false;
    return (double)((units_a + n - 1) / n) * (double)units_b <
           (double)((units_b + n - 1) / n) * (double)units_a;
}

static struct axis choose_axis(const struct args_members *members, const char *args, int64_t n)
{
    struct axis best = { 0 };
    for (const char *name = members->split_axes; *name; name++) {
        if (posenc_axis_dimension(members->list[0].axes,
                                  posenc_member_tensor(members->list, args)->rank, *name) < 0)
            continue;
        const struct axis axis = describe_axis(members, args, *name);
        if (!best.name || is_better(&axis, &best, n))
            best = axis;
    }
    return best;
}

/* ---- Cutting the members ---- */

/* Part [from, from + count) of an axis. */
struct cut {
    const struct args_members *members;
    char axis;
    int64_t from, count;
};

/* Moves a tensor to the part, or gives it no elements if the part is empty. */
static void cut_tensor(const struct cut *cut, const struct args_member *m, char *args)
{
    struct posenc_tensor *t = (struct posenc_tensor *)(void *)(args + m->offset);
    const int d = posenc_axis_dimension(m->axes, t->rank, cut->axis);
    if (d >= 0) {
        const uintptr_t bytes =
            (uintptr_t)cut->from * (uintptr_t)t->stride[d] * posenc_dtype_size(t->dtype);
        t->data = t->data && cut->count ? (void *)((uintptr_t)t->data + bytes) : t->data;
        t->shape[d] = cut->count ? cut->count : t->shape[d];
    }
    for (const char *axis = cut->members->zeroed_axes; !cut->count && *axis; axis++) {
        const int zeroed = posenc_axis_dimension(m->axes, t->rank, *axis);
        if (zeroed >= 0)
            t->shape[zeroed] = 0;
    }
}

static void cut_positions(const struct cut *cut, const struct args_member *m, char *args)
{
    struct posenc_positions *p = (struct posenc_positions *)(void *)(args + m->offset);
    const int64_t stride = cut->axis == 't'   ? p->stride_token ? p->stride_token : 1
                           : cut->axis == 'b' ? p->stride_batch
                                              : 0;
    if (p->kind == POSENC_POSITIONS_OFFSET)
        p->offset += cut->axis == 't' ? cut->from : 0;
    else
        p->data = (const void *)((uintptr_t)p->data + (uintptr_t)cut->from * (uintptr_t)stride *
                                                          posenc_position_size(p->kind));
}

/* Elements are f32 or int32, of one size. Only batches may have a stride; the other axes are dense. */
static void cut_array(const struct cut *cut, const struct args_member *m, char *args,
                      const char *whole)
{
    const char *at = strchr(m->axes, cut->axis);
    const void *data;
    int64_t stride = 1;
    if (!at)
        return;
    if (*at == 'b')
        memcpy(&stride, whole + m->batch_stride_offset, sizeof stride);
    else
        for (at++; *at; at++)
            stride *= axis_size(cut->members, whole, *at);
    memcpy(&data, args + m->offset, sizeof data);
    data = (const void *)((uintptr_t)data +
                          (uintptr_t)cut->from * (uintptr_t)stride * sizeof(int32_t));
    memcpy(args + m->offset, &data, sizeof data);
}

static void cut_members(const struct cut *cut, char *args, const char *whole)
{
    for (EACH_MEMBER(m, cut->members)) {
        if (posenc_member_is_tensor(m))
            cut_tensor(cut, m, args);
        else if (!cut->count)
            continue; /* kernels do not read it */
        else if (m->kind == MEMBER_POSITIONS)
            cut_positions(cut, m, args);
        else if (m->kind == MEMBER_ARRAY)
            cut_array(cut, m, args, whole);
        else if (strchr(m->axes, cut->axis))
            *(int64_t *)(void *)(args + m->offset) += cut->from;
    }
}

/* ---- Checks ---- */

/* Checks what a cut reads: ranks, dtypes, and sizes of axes, which must be those of out. The checks of each part do the
 * rest. */
static enum posenc_status check_tensors(const struct args_members *members, const char *args,
                                        struct posenc_error *error)
{
    for (EACH_MEMBER(m, members)) {
        const struct posenc_tensor *t = posenc_member_tensor(m, args);
        const int most = (int)strlen(m->axes), least = m->kind == MEMBER_OUT ? 2 : 0;
        if (!posenc_member_is_tensor(m))
            continue;
        if (t->rank < least || t->rank > most)
            return reject_range(error, POSENC_ERR_SHAPE, "rank of a tensor", t->rank, least,
                                most);
        if ((unsigned)t->dtype > (unsigned)POSENC_DTYPE_BF16)
            return reject_range(error, POSENC_ERR_DTYPE, "dtype of a tensor", (double)t->dtype,
                                POSENC_DTYPE_F32, POSENC_DTYPE_BF16);
        for (const char *axis = members->split_axes; *axis && t->rank > 0; axis++) {
            const int64_t want = axis_size(members, args, *axis);
            const int d = posenc_axis_dimension(m->axes, t->rank, *axis);
            if (d >= 0 && (t->shape[d] != want || want < 0 || want > INT32_MAX))
                return reject_range(error, POSENC_ERR_SHAPE,
                                    "dimension of a tensor (that of out)", (double)t->shape[d],
                                    0.0, want < 0 ? 0.0 : (double)want);
        }
    }
    return POSENC_OK;
}

/* Checks that offsets do not overflow if they move by up to INT32_MAX. */
static enum posenc_status check_offsets(const struct args_members *members, const char *args,
                                        struct posenc_error *error)
{
    const double most = (double)(INT64_MAX - INT32_MAX);
    for (EACH_MEMBER(m, members)) {
        int64_t offset = 0;
        if (m->kind == MEMBER_OFFSET)
            memcpy(&offset, args + m->offset, sizeof offset);
        else if (m->kind == MEMBER_POSITIONS)
            offset =
                ((const struct posenc_positions *)(const void *)(args + m->offset))->offset;
        if (offset > INT64_MAX - INT32_MAX)
            return reject_range(error, POSENC_ERR_POSITION, "offset", (double)offset, -most,
                                most);
    }
    return POSENC_OK;
}

enum posenc_status posenc_split(enum posenc_kernel kernel, const void *args, int64_t k,
                                int64_t n, void *part, struct posenc_error *error)
{
    const struct args_members *members = posenc_args_members(kernel);
    union any_args whole, cut_args;
    size_t size;
    if (!members)
        return reject_value(error, POSENC_ERR_ARGUMENT, "kernel", (double)kernel);
    if (!args || !part)
        return reject(error, POSENC_ERR_ARGUMENT, "args or part (NULL)");
    if (posenc_versioned_copy(members->versioned, &whole, args))
        return reject_value(error, POSENC_ERR_ARGUMENT, "size of the arguments",
                            (double)whole.size);
    if (n < 1 || n > INT32_MAX)
        return reject_range(error, POSENC_ERR_SHAPE, "n, the number of parts", (double)n, 1.0,
                            (double)INT32_MAX);
    if (k < 0 || k >= n)
        return reject_range(error, POSENC_ERR_SHAPE, "k, a part", (double)k, 0.0,
                            (double)(n - 1));
    const char *from = (const char *)&whole;
    enum posenc_status status = check_tensors(members, from, error);
    if (!status)
        status = check_offsets(members, from, error);
    if (status)
        return status;

    const struct axis axis = choose_axis(members, from, n);
    const int64_t begin = part_begin(&axis, k, n);
    const struct cut cut = { members, axis.name, begin, part_begin(&axis, k + 1, n) - begin };
    memcpy(&cut_args, &whole, sizeof cut_args);
    if (n > 1)
        cut_members(&cut, (char *)&cut_args, from);
    memcpy(&size, args, sizeof size);
    memmove(part, args, size);
    memcpy((char *)part + sizeof size, (char *)&cut_args + sizeof size,
           (size < members->versioned->size ? size : members->versioned->size) - sizeof size);
    return POSENC_OK;
}
