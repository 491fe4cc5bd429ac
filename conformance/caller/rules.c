/*
 * What may be answered to arguments: the rules of posenc.h, each of which adds its status.
 *
 * Which of several things that are wrong is named is the library's to choose.  Of a call whose output has no
 * elements, it may look at nothing else.
 */
#include "caller.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct judging {
    const struct facts *f;
    struct verdict v;
};

static void must(struct judging *j, bool broken, unsigned status)
{
    j->v.must |= broken ? status : 0u;
}

static void may(struct judging *j, bool doubtful, unsigned status)
{
    j->v.may |= doubtful ? status : 0u;
}

static const struct posenc_tensor *tensor_of(const struct facts *f, const struct described *d)
{
    return (const struct posenc_tensor *)(const void *)((const char *)&f->args +
                                                        d->row->offset);
}

/* for (EACH(d, facts)): what the call looks at */
#define EACH(d, facts)                                                                         \
    const struct described *d = (facts)->of;                                                   \
    d < (facts)->of + MOST_TENSORS && d->row;                                                  \
    d++

/* ---- A tensor alone ---- */

static wide step_of(const struct described *d, int i)
{
    return d->stride[i] < 0 ? -(wide)d->stride[i] : d->stride[i];
}

/* Whether elements are surely distinct, each dimension enclosing those of smaller strides. */
static bool encloses(const struct described *d)
{
    wide extent = 1;
    bool done[4] = { false };
    for (int round = 0; round < d->n; round++) {
        int next = -1;
        for (int i = 0; i < d->n; i++)
            if (!done[i] && d->shape[i] > 1 && (next < 0 || step_of(d, i) < step_of(d, next)))
                next = i;
        if (next < 0)
            break;
        done[next] = true;
        if (step_of(d, next) < extent)
            return false;
        extent += step_of(d, next) * (d->shape[next] - 1);
    }
    return true;
}

static int by_address(const void *a, const void *b)
{
    char *const *x = a, *const *y = b;
    return (*x > *y) - (*x < *y);
}

/* All addresses of elements, in ascending order; NULL where they are too many or not there. */
static char **addresses(const struct described *d, int64_t *n)
{
    enum { MOST = 1 << 14 };
    *n = d->backed && d->sound && !d->empty ? elements(d) : 0;
    char **at = *n > 0 && *n <= MOST ? malloc((size_t)*n * sizeof *at) : NULL;
    for (int64_t i = 0; at && i < *n; i++)
        at[i] = element(d, i);
    if (at)
        qsort(at, (size_t)*n, sizeof *at, by_address);
    return at;
}

static void judge_distinct(struct judging *j, const struct described *d)
{
    if (encloses(d))
        return;
    int64_t n;
    char **at = addresses(d, &n);
    bool twice = false;
    for (int64_t i = 1; at && i < n; i++)
        twice = twice || at[i] - at[i - 1] < d->item;
    free(at);
    for (int i = 0; i < d->n; i++)
        twice = twice || (d->shape[i] > 1 && d->stride[i] == 0);
    must(j, twice, STATUS(STRIDE));
    may(j, !twice, STATUS(STRIDE));
}

/* Elements that exist are somewhere, aligned, and their bytes can be counted. */
static void judge_bytes(struct judging *j, const struct described *d)
{
    const uintptr_t at = (uintptr_t)d->data;
    const bool large = d->below > INT64_MAX || d->above > INT64_MAX || d->below > (wide)at ||
                       d->above > (wide)(UINTPTR_MAX - at);
    must(j, !d->data || at % (uintptr_t)d->item != 0, STATUS(ARGUMENT));
    must(j, d->data && large, STATUS(OVERFLOW));
    may(j, large, STATUS(OVERFLOW));
}

/* Sizes of a last dimension from 1 on, but for keys, which there may be none of. */
static void judge_form(struct judging *j, const struct described *d)
{
    const struct posenc_tensor *t = tensor_of(j->f, d);
    const int64_t n = tensor_dims(d->row), lacks = n - t->rank;
    const bool may_lack = d->row->dims[0] == DIM_BATCH || d->row->one_for_all;
    const bool has_batch = kernel_has_batch(j->f->kernel);
    const enum dim last = d->row->dims[n - 1];
    must(j, lacks < 0 || lacks > (may_lack ? 1 : 0), STATUS(SHAPE));
    must(j, d->row->dims[0] == DIM_BATCH && !has_batch && lacks != 1, STATUS(SHAPE));
    for (int i = 0; i < 4 && i < t->rank; i++)
        must(j, t->shape[i] < (i == t->rank - 1 && last != DIM_KEY) || t->shape[i] > INT32_MAX,
             STATUS(SHAPE));
    must(j, (unsigned)t->dtype > (d->row->type == TYPE_F32 ? POSENC_F32 : POSENC_BF16),
         STATUS(DTYPE));
    if (!d->sound || d->empty)
        return;
    must(j, d->shape[d->n - 1] > 1 && d->stride[d->n - 1] != 1, STATUS(STRIDE));
    judge_bytes(j, d);
    if (d->row->role == ROLE_OUTPUT)
        judge_distinct(j, d);
}

/* ---- Tensors together ---- */

static void judge_agreement(struct judging *j, const struct described *d)
{
    const struct posenc_tensor *t = tensor_of(j->f, d);
    const struct tensor_row *out = signature_output(j->f->signature, 0);
    const struct posenc_tensor *o =
        (const struct posenc_tensor *)(const void *)((const char *)&j->f->args + out->offset);
    const int64_t n = tensor_dims(d->row), lacks = n - t->rank;
    for (int i = 0; i < t->rank && i < 4 && i + lacks >= 0 && i + lacks < n; i++) {
        const int64_t extent = j->f->extent[d->row->dims[i + lacks]];
        must(j, extent >= 0 && t->shape[i] != extent, STATUS(SHAPE));
    }
    if (d->row->dims[0] == DIM_BATCH && out->dims[0] == DIM_BATCH)
        must(j, lacks != (int64_t)tensor_dims(out) - o->rank, STATUS(SHAPE));
    for (EACH(other, j->f))
        if (other->there && other->row->form == FORM_TENSOR && other->row->type == d->row->type)
            must(j, tensor_of(j->f, other)->dtype != t->dtype, STATUS(DTYPE));
}

static bool same_tensor(const struct described *a, const struct described *b)
{
    bool same = a->data == b->data && a->n == b->n && a->item == b->item;
    for (int i = 0; same && i < a->n; i++)
        same = a->shape[i] == b->shape[i] && (a->shape[i] <= 1 || a->stride[i] == b->stride[i]);
    return same;
}

/* Whether an element of one has a byte of an element of the other. */
static bool share_bytes(const struct described *a, const struct described *b)
{
    int64_t n, m;
    char **x = addresses(a, &n), **y = addresses(b, &m);
    bool shared = false;
    for (int64_t i = 0, k = 0; x && y && i < n && k < m && !shared;) {
        shared = x[i] < y[k] + b->item && y[k] < x[i] + a->item;
        if (x[i] < y[k])
            i++;
        else
            k++;
    }
    free(x);
    free(y);
    return shared;
}

static void judge_apart(struct judging *j, const struct described *out,
                        const struct described *d)
{
    const wide from = (wide)(uintptr_t)out->data - out->below,
               to = (wide)(uintptr_t)out->data + out->above;
    const wide first = (wide)(uintptr_t)d->data - d->below,
               end = (wide)(uintptr_t)d->data + d->above;
    if (!out->sound || out->empty || !out->data || !d->there || !d->sound || d->empty ||
        !d->data || to <= first || end <= from)
        return;
    if (d->row->role == ROLE_X && kernel_in_place(j->f->kernel) && same_tensor(out, d))
        return;
    const bool shared = share_bytes(out, d) || out->data == d->data;
    must(j, shared, STATUS(OVERLAP));
    may(j, !shared, STATUS(OVERLAP));
}

/* ---- Plans and pairs ---- */

static void judge_plan(struct judging *j)
{
    const struct facts *f = j->f;
    const struct posenc_freqs *freqs;
    memcpy(&freqs, (const char *)&f->args + f->signature->freqs, sizeof freqs);
    must(j, !freqs, STATUS(ARGUMENT));
    if (!freqs)
        return;
    const struct posenc_freqs_view view = posenc_freqs_view(freqs);
    if (f->signature->channels) {
        must(j, view.n_axes > 1 && f->spec->mrope_layout != POSENC_MROPE_RESTARTED,
             STATUS(ARGUMENT));
        must(j, f->spec->xpos_scale_base != 0.0, STATUS(ARGUMENT));
        must(j, f->extent[DIM_CHANNEL] >= 0 && f->extent[DIM_CHANNEL] != view.dim,
             STATUS(SHAPE));
        return;
    }
    must(j, view.dim % 2 != 0, STATUS(ODD));
    must(j, f->extent[DIM_PAIR] >= 0 && f->extent[DIM_PAIR] != view.n_pairs, STATUS(SHAPE));
}

static void judge_pairs(struct judging *j)
{
    const int64_t pairs = j->f->extent[DIM_PAIR], channels = j->f->extent[DIM_CHANNEL],
                  offset = j->f->problem.rotary_offset;
    if (!kernel_rotates(j->f->kernel) || pairs < 0 || channels < 0)
        return;
    must(j, 2 * pairs > channels, STATUS(ROTARY_DIM));
    must(j, offset < 0 || offset > channels - 2 * pairs, STATUS(ROTARY_DIM));
    may(j, j->f->signature->gathers && channels * j->f->extent[DIM_HEAD] > 1 << 24,
        STATUS(SHAPE));
}

/* ---- Positions ---- */

static void judge_position(struct judging *j, double value)
{
    const bool planned = kernel_has_freqs(j->f->kernel);
    const double most = planned ? INT32_MAX : (double)j->f->extent[DIM_ROW] - 1.0;
    must(j, !(value >= (planned ? -most : 0.0) && value <= most), STATUS(POSITION));
}

static void judge_offset(struct judging *j, int64_t offset)
{
    const int64_t tokens = j->f->extent[DIM_TOKEN];
    judge_position(j, (double)offset);
    judge_position(j, (double)offset + (double)(tokens > 0 ? tokens - 1 : 0));
}

static void judge_positions(struct judging *j, const struct described *d)
{
    const struct posenc_positions *p =
        (const struct posenc_positions *)(const void *)((const char *)&j->f->args +
                                                        d->row->offset);
    const bool planned = kernel_has_freqs(j->f->kernel);
    may(j, j->f->spec && j->f->spec->xpos_scale_base != 0.0, STATUS(POSITION));
    if (p->kind == POSENC_OFFSET) {
        judge_offset(j, p->offset);
        return;
    }
    must(j, (unsigned)p->kind > (planned ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64),
         STATUS(ARGUMENT));
    may(j, (unsigned)p->kind > POSENC_POSITIONS_F32, STATUS(OVERFLOW));
    if (!d->sound || d->empty || !d->data) {
        must(j, !d->data, STATUS(ARGUMENT));
        return;
    }
    judge_bytes(j, d);
    may(j, !d->backed, STATUS(POSITION));
    for (int64_t i = 0, n = d->backed ? elements(d) : 0; i < n; i++) {
        const char *at = element(d, i);
        int64_t whole;
        int32_t narrow;
        float time;
        memcpy(&narrow, at, sizeof narrow);
        memcpy(&time, at, sizeof time);
        memcpy(&whole, at, d->item == 8 ? sizeof whole : 0);
        judge_position(j, p->kind == POSENC_POSITIONS_F32   ? (double)time
                          : p->kind == POSENC_POSITIONS_I32 ? (double)narrow
                                                            : (double)whole);
    }
}

/* ---- Arrays ---- */

static void judge_content(struct judging *j, const struct described *d)
{
    const bool index = d->row->form == FORM_INTEGERS && tensor_dims(d->row) > 0;
    const unsigned status = index ? STATUS(POSITION) : STATUS(PARAMETER);
    const int64_t n = d->backed ? elements(d) : 0, end = index_end(j->f);
    int32_t before = 0;
    may(j, !d->backed, status);
    for (int64_t i = 0; i < n; i++) {
        const char *at = element(d, i);
        int32_t whole;
        float real;
        memcpy(&whole, at, sizeof whole);
        memcpy(&real, at, sizeof real);
        if (d->row->form == FORM_FLOATS)
            must(j, !isfinite(real), status);
        else if (index)
            must(j, end >= 0 && (whole < 0 || whole >= end), status);
        else /* thresholds: 0, which is below all others, and then none below the one before */
            must(j, i == 0 ? whole != 0 : whole < 1 || whole < before, status);
        before = whole;
    }
}

static void judge_pointer(struct judging *j, const struct described *d)
{
    must(j, !d->data, STATUS(ARGUMENT));
    if (!d->data || !d->sound || d->empty)
        return;
    judge_bytes(j, d);
    if ((uintptr_t)d->data % (uintptr_t)d->item == 0)
        judge_content(j, d);
}

/* ---- Parameters ---- */

static double number(const struct facts *f, const struct parameter *p)
{
    const char *from = (const char *)&f->args + p->to;
    double real;
    float narrow;
    int64_t whole;
    memcpy(&narrow, from, sizeof narrow);
    memcpy(&real, from, p->kind == FIELD_F64 ? sizeof real : 0);
    memcpy(&whole, from, p->kind == FIELD_I64 ? sizeof whole : 0);
    return p->kind == FIELD_F64   ? real
           : p->kind == FIELD_F32 ? (double)narrow
           : p->kind == FIELD_I64 ? (double)whole
                                  : 0.0;
}

static bool is_member(const struct facts *f, const struct parameter *p)
{
    struct field field;
    unsigned value, n = 0;
    memcpy(&value, (const char *)&f->args + p->to, sizeof value);
    const char *const *names = p->names;
    for (int i = 0; !names && kernel_field(f->kernel, i, &field); i++)
        if (field.offset == p->from && field.kind == FIELD_ENUM)
            names = field.names;
    while (names && names[n])
        n++;
    return value < n;
}

static void judge_parameter(struct judging *j, const struct parameter *p)
{
    const double value = number(j->f, p);
    const bool real = p->kind == FIELD_F64 || p->kind == FIELD_F32;
    if (p->from == MEMBER(x_scale) && !kernel_takes_x(j->f->kernel))
        return;
    must(j, real && !(fabs(value) <= (double)FLT_MAX), STATUS(PARAMETER));
    must(j, p->kind == FIELD_ENUM && !is_member(j->f, p), STATUS(ARGUMENT));
    must(j, p->least < p->most && !(value >= p->least && value <= p->most),
         real ? STATUS(PARAMETER) : STATUS(SHAPE));
    if (p->from == MEMBER(scale) && j->f->signature->freqs) /* 0 would leave no encoding */
        must(j, value == 0.0, STATUS(PARAMETER));
    if (p->from == MEMBER(num_buckets)) {
        const bool both = j->f->problem.bidirectional;
        must(j, value < (both ? 4 : 2) || value > 4096 || (both && fmod(value, 2.0) != 0.0),
             STATUS(SHAPE));
        must(j, j->f->extent[DIM_ROW] >= 0 && value != (double)j->f->extent[DIM_ROW],
             STATUS(SHAPE));
    }
}

/* Every |i + query_offset - j| below 2^24, and among the columns of a table that has them. */
static void judge_distances(struct judging *j)
{
    const struct facts *f = j->f;
    const int64_t queries = f->extent[DIM_QUERY], keys = f->extent[DIM_KEY];
    if (!signature_argument(f->signature, MEMBER(query_offset)) || queries < 0 || keys < 0)
        return;
    const wide most = (wide)f->problem.query_offset + queries - 1,
               least = (wide)f->problem.query_offset - (keys - 1);
    must(j, most >= 1 << 24 || least <= -(1 << 24), STATUS(SHAPE));
    if (!f->signature->computed || f->extent[DIM_COLUMN] < 0)
        return;
    int64_t first;
    memcpy(&first, (const char *)&f->args + f->signature->computed, sizeof first);
    must(j, first > least || most - first >= f->extent[DIM_COLUMN], STATUS(SHAPE));
}

/* ---- All of it ---- */

static void judge_rows(struct judging *j)
{
    const struct facts *f = j->f;
    bool terms = false, optional = false;
    for (EACH(d, f)) {
        optional = optional || (d->row->role == ROLE_INPUT && d->row->present);
        terms = terms || (d->row->role == ROLE_INPUT && d->row->present && d->there);
        if (d->row->role == ROLE_X && !kernel_takes_x(f->kernel)) {
            must(j, d->there, STATUS(ARGUMENT));
        } else if (d->there && d->row->form == FORM_TENSOR) {
            judge_form(j, d);
            judge_agreement(j, d);
        } else if (!d->sound && !d->there) {
            continue;
        } else if (d->row->form == FORM_POSITIONS) {
            judge_positions(j, d);
        } else if (d->row->form != FORM_TENSOR) {
            judge_pointer(j, d);
        }
        for (EACH(out, f))
            if (out->row->role == ROLE_OUTPUT && out != d &&
                (d->row->role != ROLE_OUTPUT || out < d))
                judge_apart(j, out, d);
    }
    must(j, optional && !terms, STATUS(ARGUMENT));
}

/* From where errors go, whole words, and up to 8 times as much as is known where that is zero. */
static bool is_taken(const struct facts *f, size_t size, bool filled)
{
    return size >= 2 * sizeof(void *) && size % sizeof(void *) == 0 &&
           size <= 8 * f->signature->size && (size <= f->signature->size || !filled);
}

struct verdict judge(const struct facts *f, size_t size, bool filled)
{
    struct judging j = { .f = f };
    bool empty = false;
    if (!is_taken(f, size, filled))
        return (struct verdict){ STATUS(ARGUMENT), 0 };
    for (EACH(d, f)) {
        empty = empty || (d->row->role == ROLE_OUTPUT && d->sound && d->empty);
    }
    judge_rows(&j);
    for (EACH_PARAMETER(p, f->signature))
        judge_parameter(&j, p);
    judge_pairs(&j);
    judge_distances(&j);
    if (f->signature->freqs)
        judge_plan(&j);
    if (empty) {
        j.v.may |= j.v.must;
        j.v.must = 0;
    }
    return j.v;
}
