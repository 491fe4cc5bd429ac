/*
 * Parts of a call for threads (posenc_split()). Which axis is cut follows from where `out` lies, and
 * what moves from what calls have (members.h).
 */
#include "members.h"
#include "validate.h"

#include <string.h>

enum { LINE = 64 };

static const struct posenc_tensor *first_out(const struct members *split, const char *args)
{
    return (const struct posenc_tensor *)(const void *)(args + split->list[0].at);
}

/* Returns the extent of an axis, that of `out`. */
static int64_t extent_of(const struct members *split, const char *args, char axis)
{
    const struct posenc_tensor *out = first_out(split, args);
    int d = posenc_axis_at(split->list[0].axes, out->rank, axis);
    return d < 0 ? 1 : out->shape[d];
}

/* ---- Where cuts fall between cache lines ---- */

/* An output seen from one of its axes: n rows `step` bytes apart, each with bytes from `low` to
 * `high`; a set of rows repeats, `around` bytes apart at least (0: it does not). */
struct rows {
    uintptr_t first, step, low, high, around;
    int64_t n;
    bool even; /* sets of rows lie whole lines apart */
};

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static void add_dimension(struct rows *rows, int64_t n, int64_t step)
{
    const uint64_t own = magnitude((int64_t)rows->step), reach = magnitude(step);
    if (n <= 1)
        return;
    if (reach < own) {
        if (step < 0)
            rows->low += (uintptr_t)step * (uintptr_t)(n - 1);
        else
            rows->high += (uintptr_t)step * (uintptr_t)(n - 1);
        return;
    }
    rows->even &= reach % LINE == 0;
    if (!rows->around || reach < rows->around)
        rows->around = reach;
}

/* Unsigned: what is absurd wraps, and the call refuses it. */
static struct rows rows_of(const struct posenc_tensor *t, int axis)
{
    const int64_t item = (int64_t)posenc_dtype_size(t->dtype);
    struct rows rows = { .first = (uintptr_t)t->data,
                         .step = (uintptr_t)t->stride[axis] * (uintptr_t)item,
                         .high = (uintptr_t)item,
                         .n = t->shape[axis],
                         .even = true };
    for (int d = 0; d < t->rank; d++)
        if (d != axis)
            add_dimension(&rows, t->shape[d],
                          (int64_t)((uintptr_t)t->stride[d] * (uintptr_t)item));
    return rows;
}

/* Returns true if a range ends in an earlier line than the next range begins. */
static bool lines_part(uintptr_t last, uintptr_t next)
{
    return (last - 1) / LINE < next / LINE;
}

/* Returns true if no line has bytes of rows before f and of other rows. */
static bool is_between_lines(const struct rows *r, int64_t f)
{
    const bool falls = (int64_t)r->step < 0;
    const int64_t below = falls ? f : f - 1, above = falls ? f - 1 : f;
    const int64_t lowest = falls ? r->n - 1 : 0, highest = falls ? 0 : r->n - 1;
    const uintptr_t at = r->first, step = r->step;
    if (!lines_part(at + (uintptr_t)below * step + r->high,
                    at + (uintptr_t)above * step + r->low))
        return false;
    return !r->around ||
           (r->even && lines_part(at + (uintptr_t)highest * step + r->high,
                                  at + (uintptr_t)lowest * step + r->low + r->around));
}

/* Rows after which lines and rows stand to each other as before. */
static int64_t period_of(const struct rows *r)
{
    const uintptr_t power = r->step & (0 - r->step);
    return power == 0 || power >= LINE ? 1 : (int64_t)(LINE / power);
}

/* An axis of a call, as it may be cut: outputs that are woven into each other (cosines and sines
 * of one [tokens, 2, half] array) are one, with a dimension more. */
struct axis {
    char name;
    int64_t n, period;
    int outputs;
    struct rows rows[2];
    bool clean; /* it has a cut between lines */
};

static bool are_lines_apart(const struct posenc_tensor *a, const struct posenc_tensor *b)
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
    return lines_part(end[0], first[1]) || lines_part(end[1], first[0]);
}

static bool is_cut_clean(const struct axis *axis, int64_t f)
{
    bool clean = true;
    for (int o = 0; o < axis->outputs; o++)
        clean = clean && is_between_lines(&axis->rows[o], f);
    return clean;
}

static struct axis look_at(const struct members *split, const char *args, char name)
{
    struct axis axis = { .name = name, .n = extent_of(split, args, name), .period = 1 };
    const struct posenc_tensor *before = NULL;
    for (EACH_MEMBER(m, split)) {
        if (m->form != FORM_OUT)
            break;
        const struct posenc_tensor *t =
            (const struct posenc_tensor *)(const void *)(args + m->at);
        const int d = posenc_axis_at(m->axes, t->rank, name);
        if (d < 0)
            break; /* two outputs that differ in rank: refused by the kernel */
        axis.rows[axis.outputs++] = rows_of(t, d);
        if (before && !are_lines_apart(before, t)) {
            const uintptr_t between = (uintptr_t)t->data - (uintptr_t)before->data;
            add_dimension(&axis.rows[0], 2, (int64_t)between);
            add_dimension(&axis.rows[1], 2, (int64_t)(0 - between));
        }
        before = t;
    }
    for (int o = 0; o < axis.outputs; o++)
        if (period_of(&axis.rows[o]) > axis.period)
            axis.period = period_of(&axis.rows[o]);
    for (int64_t f = 1; f < axis.n && f <= axis.period; f++)
        axis.clean = axis.clean || is_cut_clean(&axis, f);
    return axis;
}

/* Returns the beginning of part k of n: a cut between lines or, if there is none, the place of one if the
 * data began a line. */
static int64_t begin_of(const struct axis *axis, int64_t k, int64_t n)
{
    const int64_t even = axis->n * k / n; /* both below 2^31 */
    if (k == n)
        return axis->n;
    for (int64_t f = even; axis->clean && f > 0 && f > even - axis->period; f--)
        if (is_cut_clean(axis, f))
            return f;
    return axis->clean ? 0 : even / axis->period * axis->period;
}

/* Returns true if a is better than b for n threads: cuts between lines, then a smaller largest part. */
static bool is_better(const struct axis *a, const struct axis *b, int64_t n)
{
    const int64_t of_a = (a->n + a->period - 1) / a->period,
                  of_b = (b->n + b->period - 1) / b->period;
    if (a->clean != b->clean)
        return a->clean;
    if (of_a == 0 || of_b == 0)
        return false;
    return (double)((of_a + n - 1) / n) * (double)of_b <
           (double)((of_b + n - 1) / n) * (double)of_a;
}

static struct axis choose(const struct members *split, const char *args, int64_t n)
{
    struct axis best = { 0 };
    for (const char *name = split->cuts; *name; name++) {
        if (posenc_axis_at(split->list[0].axes, first_out(split, args)->rank, *name) < 0)
            continue;
        const struct axis axis = look_at(split, args, *name);
        if (!best.name || is_better(&axis, &best, n))
            best = axis;
    }
    return best;
}

/* ---- What moves ---- */

struct cut {
    const struct members *split;
    char axis;
    int64_t from, count;
};

static void cut_tensor(const struct cut *cut, const struct member *m, char *args)
{
    struct posenc_tensor *t = (struct posenc_tensor *)(void *)(args + m->at);
    const int d = posenc_axis_at(m->axes, t->rank, cut->axis);
    if (d >= 0) {
        const uintptr_t bytes =
            (uintptr_t)cut->from * (uintptr_t)t->stride[d] * posenc_dtype_size(t->dtype);
        t->data = t->data && cut->count ? (void *)((uintptr_t)t->data + bytes) : t->data;
        t->shape[d] = cut->count ? cut->count : t->shape[d];
    }
    for (const char *none = cut->split->none; !cut->count && *none; none++) {
        const int gone = posenc_axis_at(m->axes, t->rank, *none);
        if (gone >= 0)
            t->shape[gone] = 0;
    }
}

static void cut_positions(const struct cut *cut, const struct member *m, char *args)
{
    struct posenc_positions *p = (struct posenc_positions *)(void *)(args + m->at);
    const int64_t stride = cut->axis == 't'   ? p->stride_token ? p->stride_token : 1
                           : cut->axis == 'b' ? p->stride_batch
                                              : 0;
    if (p->kind == POSENC_OFFSET)
        p->offset += cut->axis == 't' ? cut->from : 0;
    else
        p->data = (const void *)((uintptr_t)p->data + (uintptr_t)cut->from * (uintptr_t)stride *
                                                          posenc_position_size(p->kind));
}

/* f32 and int32 alike; dense but for its batches. */
static void cut_array(const struct cut *cut, const struct member *m, char *args,
                      const char *whole)
{
    const char *at = strchr(m->axes, cut->axis);
    const void *data;
    int64_t stride = 1;
    if (!at)
        return;
    if (*at == 'b')
        memcpy(&stride, whole + m->stride_batch, sizeof stride);
    else
        for (at++; *at; at++)
            stride *= extent_of(cut->split, whole, *at);
    memcpy(&data, args + m->at, sizeof data);
    data = (const void *)((uintptr_t)data +
                          (uintptr_t)cut->from * (uintptr_t)stride * sizeof(int32_t));
    memcpy(args + m->at, &data, sizeof data);
}

static void cut_members(const struct cut *cut, char *args, const char *whole)
{
    for (EACH_MEMBER(m, cut->split)) {
        if (posenc_is_tensor(m))
            cut_tensor(cut, m, args);
        else if (!cut->count)
            continue; /* nobody looks at it */
        else if (m->form == FORM_POSITIONS)
            cut_positions(cut, m, args);
        else if (m->form == FORM_ARRAY)
            cut_array(cut, m, args, whole);
        else if (strchr(m->axes, cut->axis))
            *(int64_t *)(void *)(args + m->at) += cut->from;
    }
}

/* ---- What is refused ---- */

/* Ranks and types that can be looked at, sizes that out's agree with; all else is for the kernel. */
static enum posenc_status check_tensors(const struct members *split, const char *args,
                                        struct posenc_error *error)
{
    for (EACH_MEMBER(m, split)) {
        const struct posenc_tensor *t =
            (const struct posenc_tensor *)(const void *)(args + m->at);
        const int most = (int)strlen(m->axes), least = m->form == FORM_OUT ? 2 : 0;
        if (!posenc_is_tensor(m))
            continue;
        if (t->rank < least || t->rank > most)
            return posenc_refuse(error, POSENC_ERR_SHAPE, "rank of a tensor", t->rank, least,
                                 most);
        if ((unsigned)t->dtype > (unsigned)POSENC_BF16)
            return posenc_refuse(error, POSENC_ERR_DTYPE, "dtype of a tensor", (double)t->dtype,
                                 POSENC_F32, POSENC_BF16);
        for (const char *axis = split->cuts; *axis && t->rank > 0; axis++) {
            const int64_t want = extent_of(split, args, *axis);
            const int d = posenc_axis_at(m->axes, t->rank, *axis);
            if (d >= 0 && (t->shape[d] != want || want < 0 || want > INT32_MAX))
                return posenc_refuse(error, POSENC_ERR_SHAPE,
                                     "dimension of a tensor (that of out)", (double)t->shape[d],
                                     0.0, want < 0 ? 0.0 : (double)want);
        }
    }
    return POSENC_OK;
}

/* Offsets that can be moved: any other is refused by the kernel, too. */
static enum posenc_status check_offsets(const struct members *split, const char *args,
                                        struct posenc_error *error)
{
    const double most = (double)(INT64_MAX - INT32_MAX);
    for (EACH_MEMBER(m, split)) {
        int64_t offset = 0;
        if (m->form == FORM_OFFSET)
            memcpy(&offset, args + m->at, sizeof offset);
        else if (m->form == FORM_POSITIONS)
            offset = ((const struct posenc_positions *)(const void *)(args + m->at))->offset;
        if (offset > INT64_MAX - INT32_MAX)
            return posenc_refuse(error, POSENC_ERR_POSITION, "offset", (double)offset, -most,
                                 most);
    }
    return POSENC_OK;
}

enum posenc_status posenc_split(enum posenc_kernel kernel, const void *args, int64_t k,
                                int64_t n, void *part)
{
    const struct members *split = posenc_members(kernel);
    union any_args whole, some;
    size_t size;
    if (!split || !args || !part || posenc_grow(split->grown, &whole, args))
        return POSENC_ERR_ARGUMENT;
    /* All signatures have `error` there. Threads may share the arguments: only one of them writes to it. */
    struct posenc_error *error = k == 0 ? whole.rope.error : NULL;
    if (n < 1 || n > INT32_MAX)
        return posenc_refuse(error, POSENC_ERR_SHAPE, "n, the number of parts", (double)n, 1.0,
                             (double)INT32_MAX);
    if (k < 0 || k >= n)
        return posenc_refuse(error, POSENC_ERR_SHAPE, "k, a part", (double)k, 0.0,
                             (double)(n - 1));
    const char *from = (const char *)&whole;
    enum posenc_status status = check_tensors(split, from, error);
    if (!status)
        status = check_offsets(split, from, error);
    if (status)
        return status;

    const struct axis axis = choose(split, from, n);
    const int64_t begin = begin_of(&axis, k, n);
    const struct cut cut = { split, axis.name, begin, begin_of(&axis, k + 1, n) - begin };
    memcpy(&some, &whole, sizeof some);
    some.rope.error = NULL; /* parts may fail at once */
    if (n > 1)
        cut_members(&cut, (char *)&some, from);
    memcpy(&size, args, sizeof size);
    memmove(part, args, size);
    memcpy((char *)part + sizeof size, (char *)&some + sizeof size,
           (size < split->grown->size ? size : split->grown->size) - sizeof size);
    return POSENC_OK;
}
