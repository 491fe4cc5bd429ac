/*
 * Rules of posenc.h: finds the statuses that a call with given arguments may have. For an x of rank 7 and a NaN as
 * epsilon, these are SHAPE and PARAMETER.
 *
 * If several arguments are wrong, the library may name any of them, so all their statuses are required. If an output
 * has no elements, the library need not check the other arguments.
 */
#include "calls.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct judge {
    const struct call_facts *f;
    struct expected_statuses verdict; /* so far */
};

/* The call breaks a rule, so that it is rejected with this status, or that of another broken rule. */
static void reject_if(struct judge *j, bool is_broken, unsigned status)
{
    j->verdict.required |= is_broken ? status : 0u;
}

/* The rules leave it to the library. */
static void may_reject_if(struct judge *j, bool is_doubtful, unsigned status)
{
    j->verdict.allowed |= is_doubtful ? status : 0u;
}

static const struct posenc_tensor *tensor_of(const struct judge *j, const struct operand *o)
{
    return facts_argument(j->f, o->row);
}

/* ---- One operand ---- */

static int128 magnitude(int64_t stride) { return stride < 0 ? -(int128)stride : stride; }

/* Returns true if each stride is at least the extent of the dimensions with smaller strides: the rule for outputs. */
static bool dimensions_nest(int rank, const int64_t *shape, const int64_t *stride)
{
    int128 extent = 1;
    bool done[MOST_DIMS + 1] = { false };
    for (int round = 0; round < rank; round++) {
        int next = -1;
        for (int i = 0; i < rank; i++)
            if (!done[i] && shape[i] > 1 &&
                (next < 0 || magnitude(stride[i]) < magnitude(stride[next])))
                next = i;
        if (next < 0)
            break;
        done[next] = true;
        if (magnitude(stride[next]) < extent)
            return false;
        extent += magnitude(stride[next]) * (shape[next] - 1);
    }
    return true;
}

/* Requires an address that is aligned, and bytes that lie in the address space. */
static void judge_bytes(struct judge *j, const struct operand *o)
{
    const uintptr_t at = (uintptr_t)o->data;
    const bool large = o->bytes_below > INT64_MAX || o->bytes_above > INT64_MAX ||
                       o->bytes_below > (int128)at ||
                       o->bytes_above > (int128)(UINTPTR_MAX - at);
    reject_if(j, !o->data || at % (uintptr_t)o->item_bytes != 0, STATUS(ARGUMENT));
    reject_if(j, o->data && large, STATUS(OVERFLOW));
    may_reject_if(j, large, STATUS(OVERFLOW));
}

/* Requires rank, sizes, type and strides that the row may have. The last dimension has at least one
 * element, unless it counts keys. */
static void judge_form(struct judge *j, const struct operand *o)
{
    const struct posenc_tensor *t = tensor_of(j, o);
    const int64_t n = tensor_dims(o->row), missing = n - t->rank;
    const bool may_be_missing = o->row->dims[0] == DIM_BATCH || o->row->is_broadcastable;
    const bool counts_keys = o->row->dims[n - 1] == DIM_KEY;
    const bool no_batch = o->row->dims[0] == DIM_BATCH && !kernel_has_batch(j->f->kernel);
    reject_if(j, missing < 0 || missing > (may_be_missing ? 1 : 0), STATUS(SHAPE));
    reject_if(j, no_batch && missing != 1, STATUS(SHAPE));
    for (int i = 0; i < 4 && i < t->rank; i++) {
        const int64_t least = i == t->rank - 1 && !counts_keys ? 1 : 0;
        reject_if(j, t->shape[i] < least || t->shape[i] > INT32_MAX, STATUS(SHAPE));
    }
    const unsigned last_dtype = o->row->type == TYPE_F32 ? POSENC_DTYPE_F32 : POSENC_DTYPE_BF16;
    reject_if(j, (unsigned)t->dtype > last_dtype, STATUS(DTYPE));
    if (!o->well_formed || o->empty)
        return;
    reject_if(j, o->shape[o->rank - 1] > 1 && o->stride[o->rank - 1] != 1, STATUS(STRIDE));
    judge_bytes(j, o);
    reject_if(j, o->row->role == ROLE_OUTPUT && !dimensions_nest(o->rank, o->shape, o->stride),
              STATUS(STRIDE));
}

/* ---- Several operands ---- */

/* Requires tensors to agree in type, in having a batch, and in the size of dimensions that count the same. */
static void judge_agreement(struct judge *j, const struct operand *o)
{
    const struct posenc_tensor *t = tensor_of(j, o);
    const struct operand *out = facts_output(j->f);
    const int64_t n = tensor_dims(o->row), missing = n - t->rank;
    for (int i = 0; i < t->rank && i < 4 && i + missing >= 0 && i + missing < n; i++) {
        const int64_t extent = j->f->extent[o->row->dims[i + missing]];
        reject_if(j, extent >= 0 && t->shape[i] != extent, STATUS(SHAPE));
    }
    if (o->row->dims[0] == DIM_BATCH && out->row->dims[0] == DIM_BATCH)
        reject_if(j, missing != (int64_t)tensor_dims(out->row) - tensor_of(j, out)->rank,
                  STATUS(SHAPE));
    for (EACH_OPERAND(other, j->f))
        if (other->used && other->row->form == FORM_TENSOR && other->row->type == o->row->type)
            reject_if(j, tensor_of(j, other)->dtype != t->dtype, STATUS(DTYPE));
}

static bool same_layout(const struct operand *a, const struct operand *b)
{
    bool same = a->rank == b->rank && a->item_bytes == b->item_bytes;
    for (int i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i] && (a->shape[i] <= 1 || a->stride[i] == b->stride[i]);
    return same;
}

/* Returns true if two tensors of equal layout are one tensor with a further dimension, of which no elements share
 * memory. */
static bool are_interleaved(const struct operand *a, const struct operand *b)
{
    int64_t shape[MOST_DIMS + 1] = { 2 }, stride[MOST_DIMS + 1] = {
        (int64_t)((uintptr_t)b->data - (uintptr_t)a->data) / a->item_bytes
    };
    memcpy(shape + 1, a->shape, sizeof a->shape);
    memcpy(stride + 1, a->stride, sizeof a->stride);
    return dimensions_nest(a->rank + 1, shape, stride);
}

/* Rejects outputs whose bytes lie between the first and the last byte of another operand. Exceptions are x in place,
 * and x or a second output in the gaps of the first output. */
static void judge_apart(struct judge *j, const struct operand *out, const struct operand *o)
{
    const int128 from = (int128)(uintptr_t)out->data - out->bytes_below,
                 to = (int128)(uintptr_t)out->data + out->bytes_above,
                 first = (int128)(uintptr_t)o->data - o->bytes_below,
                 end = (int128)(uintptr_t)o->data + o->bytes_above;
    if (!operand_has_elements(out) || !out->data || !operand_has_elements(o) || !o->data ||
        to <= first || end <= from)
        return;
    const bool is_in_place = o->row->role == ROLE_X && kernel_in_place(j->f->kernel) &&
                             out->data == o->data,
               is_in_gaps = o->row == kernel_woven_row(j->f->kernel) && are_interleaved(out, o);
    reject_if(j, !same_layout(out, o) || !(is_in_place || is_in_gaps), STATUS(OVERLAP));
}

/* ---- Frequencies and pairs ---- */

static void judge_freqs(struct judge *j)
{
    const struct call_facts *f = j->f;
    const struct posenc_freqs *freqs;
    memcpy(&freqs, (const char *)&f->args + f->signature->freqs, sizeof freqs);
    reject_if(j, !freqs, STATUS(ARGUMENT));
    if (!freqs)
        return;
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    if (f->signature->channels) {
        reject_if(j,
                  view.n_axes > 1 &&
                      f->freqs_spec->mrope_layout != POSENC_MROPE_LAYOUT_QWEN2_VL_VISION,
                  STATUS(ARGUMENT));
        reject_if(j, f->freqs_spec->xpos_scale_base != 0.0, STATUS(ARGUMENT));
        reject_if(j, f->extent[DIM_CHANNEL] >= 0 && f->extent[DIM_CHANNEL] != view.dim,
                  STATUS(SHAPE));
        return;
    }
    reject_if(j, view.dim % 2 != 0, STATUS(ODD));
    reject_if(j, f->extent[DIM_PAIR] >= 0 && f->extent[DIM_PAIR] != view.n_pairs,
              STATUS(SHAPE));
}

static void judge_pairs(struct judge *j)
{
    const int64_t pairs = j->f->extent[DIM_PAIR], channels = j->f->extent[DIM_CHANNEL],
                  offset = j->f->problem.rotary_offset;
    if (!kernel_rotates(j->f->kernel) || pairs < 0 || channels < 0)
        return;
    reject_if(j, 2 * pairs > channels, STATUS(ROTARY_DIM));
    reject_if(j, offset < 0 || offset > channels - 2 * pairs, STATUS(ROTARY_DIM));
    may_reject_if(j, j->f->signature->uses_head && channels * j->f->extent[DIM_HEAD] > 1 << 24,
                  STATUS(SHAPE));
}

/* ---- Positions ---- */

static void judge_position(struct judge *j, double value)
{
    const bool has_freqs = kernel_has_freqs(j->f->kernel);
    const double most = has_freqs ? INT32_MAX : (double)j->f->extent[DIM_ROW] - 1.0;
    reject_if(j, !(value >= (has_freqs ? -most : 0.0) && value <= most), STATUS(POSITION));
}

static double read_position(const struct operand *o, enum posenc_position_kind kind, int64_t i)
{
    const char *at = operand_element(o, i);
    if (kind == POSENC_POSITIONS_F32)
        return bits_to_double(value_get(FIELD_F32, at));
    return (double)(int64_t)value_get(o->item_bytes == 8 ? FIELD_I64 : FIELD_ENUM, at);
}

static void judge_positions(struct judge *j, const struct operand *o)
{
    const struct posenc_positions *p = facts_argument(j->f, o->row);
    const bool has_freqs = kernel_has_freqs(j->f->kernel);
    const int64_t tokens = j->f->extent[DIM_TOKEN];
    may_reject_if(j, j->f->freqs_spec && j->f->freqs_spec->xpos_scale_base != 0.0,
                  STATUS(POSITION));
    if (p->kind == POSENC_POSITIONS_OFFSET) {
        judge_position(j, (double)p->offset);
        judge_position(j, (double)p->offset + (double)(tokens > 0 ? tokens - 1 : 0));
        return;
    }
    reject_if(j, (unsigned)p->kind > (has_freqs ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64),
              STATUS(ARGUMENT));
    may_reject_if(j, (unsigned)p->kind > POSENC_POSITIONS_F32, STATUS(OVERFLOW));
    if (!o->well_formed || o->empty || !o->data) {
        reject_if(j, !o->data, STATUS(ARGUMENT));
        return;
    }
    judge_bytes(j, o);
    may_reject_if(j, !o->backed, STATUS(POSITION));
    for (int64_t i = 0, n = o->backed ? operand_count(o) : 0; i < n; i++)
        judge_position(j, read_position(o, p->kind, i));
}

/* ---- Arrays behind pointers ---- */

/* Requires finite values, indices within their table, and thresholds that begin with 0 and never fall. */
static void judge_content(struct judge *j, const struct operand *o)
{
    const bool is_index = o->row->form == FORM_INTEGERS && tensor_dims(o->row) > 0;
    const unsigned status = is_index ? STATUS(POSITION) : STATUS(PARAMETER);
    const int64_t n = o->backed ? operand_count(o) : 0, end = facts_index_end(j->f);
    int64_t before = 0;
    may_reject_if(j, !o->backed, status);
    for (int64_t i = 0; i < n; i++) {
        const char *at = operand_element(o, i);
        const int64_t whole = (int64_t)value_get(FIELD_ENUM, at);
        if (o->row->form == FORM_FLOATS)
            reject_if(j, !isfinite(bits_to_double(value_get(FIELD_F32, at))), status);
        else if (is_index)
            reject_if(j, end >= 0 && (whole < 0 || whole >= end), status);
        else if (i == 0)
            reject_if(j, whole != 0, status);
        else
            reject_if(j, whole < 1 || whole < before, status);
        before = whole;
    }
}

static void judge_pointer(struct judge *j, const struct operand *o)
{
    reject_if(j, !o->data, STATUS(ARGUMENT));
    if (!o->data || !o->well_formed || o->empty)
        return;
    judge_bytes(j, o);
    if ((uintptr_t)o->data % (uintptr_t)o->item_bytes == 0)
        judge_content(j, o);
}

/* ---- Parameters ---- */

/* Returns true if an enum has the value of the argument. */
static bool is_member(const struct call_facts *f, const struct parameter *p)
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

static void judge_parameter(struct judge *j, const struct parameter *p)
{
    const uint64_t bits = value_get(p->kind, (const char *)&j->f->args + p->to);
    const bool real = p->kind == FIELD_F64 || p->kind == FIELD_F32;
    const double value = real ? bits_to_double(bits) : (double)(int64_t)bits;
    if (p->from == MEMBER(x_scale) && !kernel_takes_x(j->f->kernel))
        return;
    reject_if(j, real && !(fabs(value) <= (double)FLT_MAX), STATUS(PARAMETER));
    reject_if(j, p->kind == FIELD_ENUM && !is_member(j->f, p), STATUS(ARGUMENT));
    reject_if(j, p->least < p->most && !(value >= p->least && value <= p->most),
              real ? STATUS(PARAMETER) : STATUS(SHAPE));
    if (p->from == MEMBER(scale) && j->f->signature->freqs) /* 0 leaves no encoding */
        reject_if(j, value == 0.0, STATUS(PARAMETER));
    if (p->from == MEMBER(num_buckets)) {
        const bool both = j->f->problem.bidirectional;
        reject_if(j,
                  value < (both ? 4 : 2) || value > 4096 || (both && fmod(value, 2.0) != 0.0),
                  STATUS(SHAPE));
        reject_if(j, j->f->extent[DIM_ROW] >= 0 && value != (double)j->f->extent[DIM_ROW],
                  STATUS(SHAPE));
    }
}

/* Requires every |i + query_offset - j| to be below 2^24. A table of distances has a column for each of them. */
static void judge_distances(struct judge *j)
{
    const struct call_facts *f = j->f;
    const int64_t queries = f->extent[DIM_QUERY], keys = f->extent[DIM_KEY];
    if (!signature_argument(f->signature, MEMBER(query_offset)) || queries < 0 || keys < 0)
        return;
    const int128 most = (int128)f->problem.query_offset + queries - 1,
                 least = (int128)f->problem.query_offset - (keys - 1);
    reject_if(j, most >= 1 << 24 || least <= -(1 << 24), STATUS(SHAPE));
    if (!f->signature->computed || f->extent[DIM_COLUMN] < 0)
        return;
    int64_t first;
    memcpy(&first, (const char *)&f->args + f->signature->computed, sizeof first);
    reject_if(j, first > least || most - first >= f->extent[DIM_COLUMN], STATUS(SHAPE));
}

static void judge_operand(struct judge *j, const struct operand *o)
{
    const bool unread_x = o->row->role == ROLE_X && !kernel_takes_x(j->f->kernel);
    if (unread_x) {
        reject_if(j, o->used, STATUS(ARGUMENT));
    } else if (o->used && o->row->form == FORM_TENSOR) {
        judge_form(j, o);
        judge_agreement(j, o);
    } else if (!o->well_formed && !o->used) {
        return; /* positions or an index without an element of x */
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

/* Returns true if the library takes arguments of this size: whole words, from the member `error` on
 * to 8 times the known size, and zeros beyond what it knows. */
static bool is_size_accepted(const struct call_facts *f, size_t size, bool filled)
{
    return size >= 2 * sizeof(void *) && size % sizeof(void *) == 0 &&
           size <= 8 * f->signature->size && (size <= f->signature->size || !filled);
}

struct expected_statuses rules_judge(const struct call_facts *f, size_t size, bool filled)
{
    struct judge j = { .f = f };
    bool empty_output = false, has_terms = false, needs_terms = false;
    if (!is_size_accepted(f, size, filled))
        return (struct expected_statuses){ .required = STATUS(ARGUMENT) };
    for (EACH_OPERAND(o, f)) {
        const bool is_term = o->row->role == ROLE_INPUT && o->row->present;
        needs_terms = needs_terms || is_term;
        has_terms = has_terms || (is_term && o->used);
        empty_output =
            empty_output || (o->row->role == ROLE_OUTPUT && o->well_formed && o->empty);
        judge_operand(&j, o);
    }
    reject_if(&j, needs_terms && !has_terms, STATUS(ARGUMENT));
    for (EACH_PARAMETER(p, f->signature))
        judge_parameter(&j, p);
    judge_pairs(&j);
    judge_distances(&j);
    if (f->signature->freqs)
        judge_freqs(&j);
    if (empty_output)
        return (struct expected_statuses){ .allowed = j.verdict.required | j.verdict.allowed };
    return j.verdict;
}
