/*
 * The rules of posenc.h: which statuses a call with these arguments may have.
 *
 * If several arguments are wrong, the library chooses which one it names.  Of a call whose output has
 * no elements it may look at nothing else.
 */
#include "calls.h"

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

/* ---- One operand ---- */

static wide step_of(const struct operand *o, int i)
{
    return o->stride[i] < 0 ? -(wide)o->stride[i] : o->stride[i];
}

/* Returns true if each dimension encloses those of smaller strides, so that elements are distinct. */
static bool encloses(const struct operand *o)
{
    wide extent = 1;
    bool done[4] = { false };
    for (int round = 0; round < o->n; round++) {
        int next = -1;
        for (int i = 0; i < o->n; i++)
            if (!done[i] && o->shape[i] > 1 && (next < 0 || step_of(o, i) < step_of(o, next)))
                next = i;
        if (next < 0)
            break;
        done[next] = true;
        if (step_of(o, next) < extent)
            return false;
        extent += step_of(o, next) * (o->shape[next] - 1);
    }
    return true;
}

static int by_address(const void *a, const void *b)
{
    char *const *x = a, *const *y = b;
    return (*x > *y) - (*x < *y);
}

/* The addresses of all elements, ascending; NULL if they are too many or do not exist. */
static char **addresses(const struct operand *o, int64_t *n)
{
    enum { MOST = 1 << 14 };
    *n = o->backed && o->sound && !o->empty ? operand_count(o) : 0;
    char **at = *n > 0 && *n <= MOST ? malloc((size_t)*n * sizeof *at) : NULL;
    for (int64_t i = 0; at && i < *n; i++)
        at[i] = operand_element(o, i);
    if (at)
        qsort(at, (size_t)*n, sizeof *at, by_address);
    return at;
}

static void judge_distinct(struct judging *j, const struct operand *o)
{
    int64_t n;
    bool twice = false;
    if (encloses(o))
        return;
    char **at = addresses(o, &n);
    for (int64_t i = 1; at && i < n; i++)
        twice = twice || at[i] - at[i - 1] < o->item;
    free(at);
    for (int i = 0; i < o->n; i++)
        twice = twice || (o->shape[i] > 1 && o->stride[i] == 0);
    must(j, twice, STATUS(STRIDE));
    may(j, !twice, STATUS(STRIDE));
}

/* Elements have an address, aligned, and their bytes can be counted. */
static void judge_bytes(struct judging *j, const struct operand *o)
{
    const uintptr_t at = (uintptr_t)o->data;
    const bool large = o->below > INT64_MAX || o->above > INT64_MAX || o->below > (wide)at ||
                       o->above > (wide)(UINTPTR_MAX - at);
    must(j, !o->data || at % (uintptr_t)o->item != 0, STATUS(ARGUMENT));
    must(j, o->data && large, STATUS(OVERFLOW));
    may(j, large, STATUS(OVERFLOW));
}

/* A last dimension has a size from 1 on, but there may be no keys. */
static void judge_form(struct judging *j, const struct operand *o)
{
    const struct posenc_tensor *t = facts_view(j->f, o->row);
    const int64_t n = tensor_dims(o->row), lacks = n - t->rank;
    const bool may_lack = o->row->dims[0] == DIM_BATCH || o->row->one_for_all;
    const bool keys = o->row->dims[n - 1] == DIM_KEY;
    const bool no_batch = o->row->dims[0] == DIM_BATCH && !kernel_has_batch(j->f->kernel);
    must(j, lacks < 0 || lacks > (may_lack ? 1 : 0) || (no_batch && lacks != 1), STATUS(SHAPE));
    for (int i = 0; i < 4 && i < t->rank; i++)
        must(j, t->shape[i] < (i == t->rank - 1 && !keys) || t->shape[i] > INT32_MAX,
             STATUS(SHAPE));
    must(j, (unsigned)t->dtype > (o->row->type == TYPE_F32 ? POSENC_F32 : POSENC_BF16),
         STATUS(DTYPE));
    if (!o->sound || o->empty)
        return;
    must(j, o->shape[o->n - 1] > 1 && o->stride[o->n - 1] != 1, STATUS(STRIDE));
    judge_bytes(j, o);
    if (o->row->role == ROLE_OUTPUT)
        judge_distinct(j, o);
}

/* ---- Several operands ---- */

/* Tensors agree in what their dimensions count, in having a batch, and in type. */
static void judge_agreement(struct judging *j, const struct operand *o)
{
    const struct posenc_tensor *t = facts_view(j->f, o->row);
    const struct tensor_row *out = signature_output(j->f->signature, 0);
    const int64_t n = tensor_dims(o->row), lacks = n - t->rank;
    for (int i = 0; i < t->rank && i < 4 && i + lacks >= 0 && i + lacks < n; i++) {
        const int64_t extent = j->f->extent[o->row->dims[i + lacks]];
        must(j, extent >= 0 && t->shape[i] != extent, STATUS(SHAPE));
    }
    if (o->row->dims[0] == DIM_BATCH && out->dims[0] == DIM_BATCH)
        must(j, lacks != (int64_t)tensor_dims(out) - facts_view(j->f, out)->rank,
             STATUS(SHAPE));
    for (EACH_OPERAND(other, j->f))
        if (other->used && other->row->form == FORM_TENSOR && other->row->type == o->row->type)
            must(j, facts_view(j->f, other->row)->dtype != t->dtype, STATUS(DTYPE));
}

static bool same_tensor(const struct operand *a, const struct operand *b)
{
    bool same = a->data == b->data && a->n == b->n && a->item == b->item;
    for (int i = 0; same && i < a->n; i++)
        same = a->shape[i] == b->shape[i] && (a->shape[i] <= 1 || a->stride[i] == b->stride[i]);
    return same;
}

/* Returns true if an element of one has a byte of an element of the other. */
static bool share_bytes(const struct operand *a, const struct operand *b)
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

/* Outputs share no element with anything, but x may be out; woven tensors may be rejected. */
static void judge_apart(struct judging *j, const struct operand *out, const struct operand *o)
{
    const wide from = (wide)(uintptr_t)out->data - out->below,
               to = (wide)(uintptr_t)out->data + out->above,
               first = (wide)(uintptr_t)o->data - o->below,
               end = (wide)(uintptr_t)o->data + o->above;
    if (!out->sound || out->empty || !out->data || !o->used || !o->sound || o->empty ||
        !o->data || to <= first || end <= from)
        return;
    if (o->row->role == ROLE_X && kernel_in_place(j->f->kernel) && same_tensor(out, o))
        return;
    const bool shared = share_bytes(out, o) || out->data == o->data;
    must(j, shared, STATUS(OVERLAP));
    may(j, !shared, STATUS(OVERLAP));
}

/* ---- Frequencies and pairs ---- */

static void judge_freqs(struct judging *j)
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

static double position_at(const struct operand *o, enum posenc_position_kind kind, int64_t i)
{
    const char *at = operand_element(o, i);
    int64_t whole = 0;
    int32_t narrow;
    float time;
    memcpy(&narrow, at, sizeof narrow);
    memcpy(&time, at, sizeof time);
    memcpy(&whole, at, o->item == 8 ? sizeof whole : 0);
    return kind == POSENC_POSITIONS_F32   ? (double)time
           : kind == POSENC_POSITIONS_I32 ? (double)narrow
                                          : (double)whole;
}

static void judge_positions(struct judging *j, const struct operand *o)
{
    const struct posenc_positions *p =
        (const struct posenc_positions *)(const void *)facts_view(j->f, o->row);
    const bool planned = kernel_has_freqs(j->f->kernel);
    const int64_t tokens = j->f->extent[DIM_TOKEN];
    may(j, j->f->spec && j->f->spec->xpos_scale_base != 0.0, STATUS(POSITION));
    if (p->kind == POSENC_OFFSET) {
        judge_position(j, (double)p->offset);
        judge_position(j, (double)p->offset + (double)(tokens > 0 ? tokens - 1 : 0));
        return;
    }
    must(j, (unsigned)p->kind > (planned ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64),
         STATUS(ARGUMENT));
    may(j, (unsigned)p->kind > POSENC_POSITIONS_F32, STATUS(OVERFLOW));
    if (!o->sound || o->empty || !o->data) {
        must(j, !o->data, STATUS(ARGUMENT));
        return;
    }
    judge_bytes(j, o);
    may(j, !o->backed, STATUS(POSITION));
    for (int64_t i = 0, n = o->backed ? operand_count(o) : 0; i < n; i++)
        judge_position(j, position_at(o, p->kind, i));
}

/* ---- Arrays behind pointers ---- */

/* Values are finite, indices within their table, and thresholds begin with 0 and never fall. */
static void judge_content(struct judging *j, const struct operand *o)
{
    const bool index = o->row->form == FORM_INTEGERS && tensor_dims(o->row) > 0;
    const unsigned status = index ? STATUS(POSITION) : STATUS(PARAMETER);
    const int64_t n = o->backed ? operand_count(o) : 0, end = facts_index_end(j->f);
    int32_t before = 0;
    may(j, !o->backed, status);
    for (int64_t i = 0; i < n; i++) {
        int32_t whole;
        float real;
        memcpy(&whole, operand_element(o, i), sizeof whole);
        memcpy(&real, operand_element(o, i), sizeof real);
        if (o->row->form == FORM_FLOATS)
            must(j, !isfinite(real), status);
        else if (index)
            must(j, end >= 0 && (whole < 0 || whole >= end), status);
        else
            must(j, i == 0 ? whole != 0 : whole < 1 || whole < before, status);
        before = whole;
    }
}

static void judge_pointer(struct judging *j, const struct operand *o)
{
    must(j, !o->data, STATUS(ARGUMENT));
    if (!o->data || !o->sound || o->empty)
        return;
    judge_bytes(j, o);
    if ((uintptr_t)o->data % (uintptr_t)o->item == 0)
        judge_content(j, o);
}

/* ---- Parameters ---- */

static double number_of(const struct facts *f, const struct parameter *p)
{
    const char *from = (const char *)&f->args + p->to;
    double real = 0.0;
    float narrow;
    int64_t whole = 0;
    memcpy(&narrow, from, p->kind == FIELD_F32 ? sizeof narrow : 0);
    memcpy(&real, from, p->kind == FIELD_F64 ? sizeof real : 0);
    memcpy(&whole, from, p->kind == FIELD_I64 ? sizeof whole : 0);
    return p->kind == FIELD_F32 ? (double)narrow : p->kind == FIELD_F64 ? real : (double)whole;
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
    const double value = number_of(j->f, p);
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

/* Every |i + query_offset - j| is below 2^24, and among the columns of a table that has them. */
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

/* ---- A whole call ---- */

static void judge_operand(struct judging *j, const struct operand *o)
{
    if (o->row->role == ROLE_X && !kernel_takes_x(j->f->kernel)) {
        must(j, o->used, STATUS(ARGUMENT));
    } else if (o->used && o->row->form == FORM_TENSOR) {
        judge_form(j, o);
        judge_agreement(j, o);
    } else if (!o->sound && !o->used) {
        return;
    } else if (o->row->form == FORM_POSITIONS) {
        judge_positions(j, o);
    } else if (o->row->form != FORM_TENSOR) {
        judge_pointer(j, o);
    }
    for (EACH_OPERAND(out, j->f))
        if (out->row->role == ROLE_OUTPUT && out != o &&
            (o->row->role != ROLE_OUTPUT || out < o))
            judge_apart(j, out, o);
}

/* A struct of arguments reaches beyond `error`, has whole words, and at most 8 times the known
 * size, where the rest is 0. */
static bool is_size_taken(const struct facts *f, size_t size, bool filled)
{
    return size >= 2 * sizeof(void *) && size % sizeof(void *) == 0 &&
           size <= 8 * f->signature->size && (size <= f->signature->size || !filled);
}

struct verdict rules_judge(const struct facts *f, size_t size, bool filled)
{
    struct judging j = { .f = f };
    bool empty = false, terms = false, optional = false;
    if (!is_size_taken(f, size, filled))
        return (struct verdict){ STATUS(ARGUMENT), 0 };
    for (EACH_OPERAND(o, f)) {
        const bool is_optional = o->row->role == ROLE_INPUT && o->row->present;
        optional = optional || is_optional;
        terms = terms || (is_optional && o->used);
        empty = empty || (o->row->role == ROLE_OUTPUT && o->sound && o->empty);
        judge_operand(&j, o);
    }
    must(&j, optional && !terms, STATUS(ARGUMENT));
    for (EACH_PARAMETER(p, f->signature))
        judge_parameter(&j, p);
    judge_pairs(&j);
    judge_distances(&j);
    if (f->signature->freqs)
        judge_freqs(&j);
    if (empty) {
        j.v.may |= j.v.must;
        j.v.must = 0;
    }
    return j.v;
}
