/*
 * From which position on a profile is off: see drift.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "drift.h"
#include "apart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Cosines and sines of some positions at a time, in the profile and exact: few enough for the caches. */
struct tables {
    struct posenc_freqs *freqs[2];
    int64_t dim, rows;
    int64_t
        arrays; /* two, of cosines and sines; of an odd dim, which does not rotate, one of both */
    float *values[2]; /* [arrays][rows][dim / arrays] */
};
enum { VALUES = 1 << 16 };

static enum posenc_status create_tables(const struct posenc_freqs_spec *spec,
                                        enum posenc_profile profile, struct tables *t,
                                        struct posenc_error *error)
{
    struct posenc_freqs_spec own = *spec;
    enum posenc_status status = POSENC_OK;
    t->dim = spec->dim;
    t->arrays = spec->dim % 2 ? 1 : 2;
    t->rows = t->dim < VALUES ? VALUES / t->dim : 1;
    for (int i = 0; i < 2 && status == POSENC_OK; i++) {
        own.profile = i == 0 ? profile : POSENC_EXACT;
        status = posenc_freqs_create(&own, &t->freqs[i], error);
        t->values[i] = malloc((size_t)(t->rows * t->dim) * sizeof *t->values[i]);
        if (status == POSENC_OK && !t->values[i])
            status = POSENC_ERR_MEMORY;
    }
    return status;
}

static void destroy_tables(struct tables *t)
{
    for (int i = 0; i < 2; i++) {
        posenc_freqs_destroy(t->freqs[i]);
        free(t->values[i]);
    }
}

/* From position `first` on, in the i-th profile. */
static enum posenc_status compute(struct tables *t, int i, int64_t first, int64_t rows,
                                  struct posenc_error *error)
{
    if (t->arrays == 1) {
        struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
        args.error = error;
        args.freqs = t->freqs[i];
        args.positions.offset = first;
        args.out = posenc_dense(t->values[i], 2, rows, t->dim, 0, 0);
        return posenc_sinusoidal(NULL, &args);
    }
    const int64_t pairs = t->dim / 2;
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.error = error;
    args.freqs = t->freqs[i];
    args.positions.offset = first;
    args.cos = posenc_dense(t->values[i], 2, rows, pairs, 0, 0);
    args.sin = posenc_dense(t->values[i] + rows * pairs, 2, rows, pairs, 0, 0);
    return posenc_rope_table(NULL, &args);
}

/* Whether a difference at a position is larger. */
static bool is_off(const struct tables *t, int64_t rows, int64_t row, float limit)
{
    const int64_t width = t->dim / t->arrays;
    int off = 0;
    for (int64_t array = 0; array < t->arrays; array++) {
        const float *got = t->values[0] + (array * rows + row) * width,
                    *want = t->values[1] + (array * rows + row) * width;
        for (int64_t i = 0; i < width; i++)
            off |= fabsf(got[i] - want[i]) > limit;
    }
    return off;
}

enum posenc_status drift_find(const struct posenc_freqs_spec *spec, enum posenc_profile profile,
                              int64_t length, struct drift *drift, size_t n,
                              struct posenc_error *error)
{
    struct tables t = { .dim = 0 };
    enum posenc_status status = create_tables(spec, profile, &t, error);
    size_t passed = 0;
    for (size_t i = 0; i < n; i++)
        drift[i].first = -1;
    for (int64_t at = 0; at < length && passed < n && status == POSENC_OK; at += t.rows) {
        const int64_t rows = length - at < t.rows ? length - at : t.rows;
        apart_enter("tables");
        for (int i = 0; i < 2 && status == POSENC_OK; i++)
            status = compute(&t, i, at, rows, error);
        apart_leave();
        for (int64_t row = 0; row < rows && status == POSENC_OK; row++)
            while (passed < n && is_off(&t, rows, row, (float)drift[passed].limit))
                drift[passed++].first = at + row;
    }
    destroy_tables(&t);
    return status;
}
