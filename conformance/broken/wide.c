/*
 * Calls in f32, whatever their storage: see wide.h.
 */
#include "wide.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements from the first to the last. */
static int64_t extent(const struct posenc_tensor *t)
{
    int64_t last = 0;
    for (int d = 0; d < t->rank; d++)
        last += (t->shape[d] - 1) * t->stride[d];
    return last + 1;
}

static bool is_empty(const struct posenc_tensor *t)
{
    return !t->data || storage_rows(t) == 0 || t->shape[t->rank - 1] == 0;
}

/* To nearest even; a NaN keeps its upper bits, so that what a kernel copies is what it was. */
static uint16_t narrow(enum posenc_dtype dtype, float value)
{
    const int64_t fraction = dtype == POSENC_F16 ? 10 : 7;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t payload = (bits & 0x7fffffu) >> (23 - fraction);
    if (!isnan(value) || payload == 0)
        return storage_narrow(dtype, value);
    return (uint16_t)(bits >> 31 << 15 | (dtype == POSENC_F16 ? 0x7c00u : 0x7f80u) | payload);
}

static void read_rows(const struct wide *wide, const struct posenc_tensor *from,
                      const struct posenc_tensor *to)
{
    const bool other = wide->by && wide->by->widen;
    for (int64_t r = 0; r < storage_rows(from); r++) {
        const uint16_t *stored = storage_row(from, r);
        float *row = storage_row(to, r);
        for (int64_t i = 0; i < from->shape[from->rank - 1]; i++)
            row[i] = (other ? wide->by->widen : storage_widen)(from->dtype, stored[i]);
    }
}

static void write_rows(const struct wide *wide, const struct posenc_tensor *from,
                       const struct posenc_tensor *to)
{
    const bool other = wide->by && wide->by->narrow;
    for (int64_t r = 0; r < storage_rows(to); r++) {
        const float *row = storage_row(from, r);
        uint16_t *stored = storage_row(to, r);
        for (int64_t i = 0; i < to->shape[to->rank - 1]; i++)
            stored[i] = (other ? wide->by->narrow : narrow)(to->dtype, row[i]);
    }
}

static void exchange(struct wide *wide, struct posenc_tensor *t, bool output)
{
    if (t->dtype == POSENC_F32 || is_empty(t))
        return;
    for (int k = 0; k < wide->n; k++)
        if (wide->of[k].stored.data == t->data) { /* in place */
            wide->of[k].output |= output;
            *t = wide->of[k].copy;
            return;
        }
    struct posenc_tensor copy = *t;
    copy.dtype = POSENC_F32;
    copy.data = malloc((size_t)extent(t) * sizeof(float));
    if (!copy.data)
        exit(2);
    read_rows(wide, t, &copy);
    wide->of[wide->n].stored = *t;
    wide->of[wide->n].copy = copy;
    wide->of[wide->n++].output = output;
    *t = copy;
}

void wide_input(struct wide *wide, struct posenc_const_tensor *t)
{
    exchange(wide, owned(t), false);
}

void wide_output(struct wide *wide, struct posenc_tensor *t) { exchange(wide, t, true); }

void wide_close(struct wide *wide)
{
    for (int k = 0; k < wide->n; k++) {
        if (wide->of[k].output)
            write_rows(wide, &wide->of[k].copy, &wide->of[k].stored);
        free(wide->of[k].copy.data);
    }
    wide->n = 0;
}
