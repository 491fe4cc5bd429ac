/*
 * Calls in f32, whatever their storage: the tensors of 16 bits are exchanged for copies of the
 * same shape and strides.  Mistakes of arithmetic are made on such calls, mistakes of storage by
 * how the copies are read and stored.
 */
#include "mistake.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

/* Whether the magnitude of 16 bits is below the least normal number. */
static bool is_subnormal(enum posenc_dtype dtype, uint16_t bits)
{
    return (bits & (dtype == POSENC_F16 ? 0x7c00 : 0x7f80)) == 0;
}

/* To nearest even; a NaN keeps its upper bits, so that what a kernel copies is what it was. */
static uint16_t narrow(enum posenc_dtype dtype, float value)
{
    const bool f16 = dtype == POSENC_F16;
    const uint16_t nearest = storage_narrow(dtype, value);
    const float back = storage_widen(dtype, nearest);
    const uint32_t bits = float_to_bits(value), payload = (bits & 0x7fffffu) >> (f16 ? 13 : 16);
    /* bf16 by one addition: ties go away from zero. */
    if (SLIP(half_added) && !isnan(value))
        return (uint16_t)((bits + 0x8000u) >> 16);
    /* One with all payload bits becomes -0, others an infinity. */
    if (SLIP(nan_not_seen))
        return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    if (isnan(value))
        return payload ? (uint16_t)(bits >> 31 << 15 | (f16 ? 0x7c00u : 0x7f80u) | payload)
                       : nearest;
    if (SLIP(through_the_other))
        return storage_narrow(dtype, storage_round(f16 ? POSENC_BF16 : POSENC_F16, value));
    /* To 11 bits first, then to as many as a subnormal of f16 has. */
    if (SLIP(rounded_in_steps) && isfinite(value))
        return storage_narrow(dtype,
                              bits_to_float((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu));
    if (SLIP(flushed) && is_subnormal(dtype, nearest))
        return nearest & 0x8000;
    if ((SLIP(truncated) && fabsf(back) > fabsf(value)) ||
        (SLIP(saturated) && isinf(back) && !isinf(value)))
        return nearest - 1;
    return nearest;
}

static float widen(enum posenc_dtype dtype, uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    if (SLIP(read_flushed) && is_subnormal(dtype, bits))
        return bits_to_float(sign);
    /* f16 whose largest exponent is one like the others: infinity is 65536. */
    if (SLIP(read_finite) && (bits & 0x7c00) == 0x7c00)
        return bits_to_float(sign | 143u << 23 | (uint32_t)(bits & 0x3ff) << 13);
    return storage_widen(dtype, bits);
}

static void copy_row(const struct f32_copy *c, int64_t r, bool back)
{
    uint16_t *stored = storage_row(&c->stored, r);
    float *wide = storage_row(&c->wide, r);
    for (int64_t i = 0; i < c->stored.shape[c->stored.rank - 1]; i++)
        if (back)
            stored[i] = narrow(c->stored.dtype, wide[i]);
        else
            wide[i] = widen(c->stored.dtype, stored[i]);
}

static void copy(const struct f32_copy *c, bool back)
{
    for (int64_t r = 0; r < storage_rows(&c->stored); r++)
        copy_row(c, r, back);
}

/* Of a table the rows at the call's positions: others need not be in memory. */
static void copy_rows_at(const struct f32_copy *c, const struct entered *e)
{
    const int64_t *shape = e->parts.x->shape;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0; t < shape[1]; t++)
            copy_row(c, (int64_t)position_on(e->parts.positions, b, t, 0), false);
}

static void exchange(struct entered *e, const struct tensor_row *row)
{
    struct posenc_tensor *t = row_argument(&e->args, row);
    const int64_t rows = storage_rows(t), width = t->shape[t->rank - 1];
    if (!t->data || t->dtype == POSENC_F32 || rows == 0 || width == 0)
        return;
    for (int k = 0; k < e->n_copies; k++)
        if (e->copies[k].stored.data == t->data) { /* in place */
            *t = e->copies[k].wide;
            return;
        }
    struct f32_copy *c = &e->copies[e->n_copies++];
    *c = (struct f32_copy){ *t, *t, row->role == ROLE_OUTPUT };
    c->wide.dtype = POSENC_F32;
    c->wide.data = calloc((size_t)(rows * width), sizeof(float));
    if (!c->wide.data)
        exit(2);
    for (int64_t d = t->rank - 1, stride = 1; d >= 0; stride *= t->shape[d--])
        c->wide.stride[d] = stride;
    if (row->dims[0] == DIM_ROW && row->role == ROLE_INPUT && e->parts.positions)
        copy_rows_at(c, e);
    else
        copy(c, false);
    *t = c->wide;
}

void in_f32_open(struct entered *e)
{
    for (EACH_TENSOR(row, signature_of(e->kernel)))
        if (row->form == FORM_TENSOR)
            exchange(e, row);
}

void in_f32_close(struct entered *e)
{
    for (int k = 0; k < e->n_copies; k++) {
        if (e->copies[k].output)
            copy(&e->copies[k], true);
        free(e->copies[k].wide.data);
    }
}

void enter_storage(struct entered *e)
{
    in_f32_open(e);
    enter_kernel(e);
}
