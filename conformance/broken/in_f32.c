/*
 * Calls in f32, whatever their storage: mistakes of arithmetic are made on such calls, mistakes
 * of storage by how these copies are read and stored.
 */
#include "mistake.h"

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

/* To nearest even; a NaN keeps its upper bits, so that what a kernel copies is what it was. */
static uint16_t narrow(enum posenc_dtype dtype, float value)
{
    const int64_t fraction = dtype == POSENC_F16 ? 10 : 7;
    const uint32_t bits = bits_of(value), payload = (bits & 0x7fffffu) >> (23 - fraction);
    if (!isnan(value) || payload == 0)
        return storage_narrow(dtype, value);
    return (uint16_t)(bits >> 31 << 15 | (dtype == POSENC_F16 ? 0x7c00u : 0x7f80u) | payload);
}

static void load(const struct f32_copy *c)
{
    load_mistake *const widen = mistake_now->load ? mistake_now->load : storage_widen;
    for (int64_t r = 0; r < storage_rows(&c->stored); r++) {
        const uint16_t *stored = storage_row(&c->stored, r);
        float *row = storage_row(&c->wide, r);
        for (int64_t i = 0; i < c->stored.shape[c->stored.rank - 1]; i++)
            row[i] = widen(c->stored.dtype, stored[i]);
    }
}

static void store(const struct f32_copy *c)
{
    store_mistake *const to_nearest = mistake_now->store ? mistake_now->store : narrow;
    for (int64_t r = 0; r < storage_rows(&c->stored); r++) {
        const float *row = storage_row(&c->wide, r);
        uint16_t *stored = storage_row(&c->stored, r);
        for (int64_t i = 0; i < c->stored.shape[c->stored.rank - 1]; i++)
            stored[i] = to_nearest(c->stored.dtype, row[i]);
    }
}

static void exchange(struct entered *e, struct posenc_tensor *t, bool output)
{
    if (!t || !t->data || t->dtype == POSENC_F32 || storage_rows(t) == 0 ||
        t->shape[t->rank - 1] == 0)
        return;
    for (int k = 0; k < e->n_copies; k++)
        if (e->copies[k].stored.data == t->data) { /* in place */
            *t = e->copies[k].wide;
            return;
        }
    struct f32_copy *c = &e->copies[e->n_copies++];
    *c = (struct f32_copy){ *t, *t, output };
    c->wide.dtype = POSENC_F32;
    c->wide.data = malloc((size_t)extent(t) * sizeof(float));
    if (!c->wide.data)
        exit(2);
    load(c);
    *t = c->wide;
}

void in_f32_open(struct entered *e)
{
    const struct parts *p = &e->parts;
    exchange(e, p->out, true);
    exchange(e, p->second, true);
    exchange(e, p->x, false);
    exchange(e, p->terms[0], false);
    exchange(e, p->terms[1], false);
}

void in_f32_close(struct entered *e)
{
    for (int k = 0; k < e->n_copies; k++) {
        if (e->copies[k].output)
            store(&e->copies[k]);
        free(e->copies[k].wide.data);
    }
    e->n_copies = 0;
}
