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
    int64_t pairs, rows;
    float *values[2]; /* [2][rows][pairs] */
};
enum { VALUES = 1 << 16 };

static enum posenc_status create_tables(const struct posenc_freqs_spec *spec,
                                        enum posenc_profile profile, struct tables *t,
                                        struct posenc_error *error)
{
    struct posenc_freqs_spec own = *spec;
    enum posenc_status status = POSENC_OK;
    t->pairs = (spec->dim + 1) / 2;
    t->rows = t->pairs < VALUES ? VALUES / t->pairs : 1;
    for (int i = 0; i < 2 && status == POSENC_OK; i++) {
        own.profile = i == 0 ? profile : POSENC_EXACT;
        status = posenc_freqs_create(&own, &t->freqs[i], error);
        t->values[i] = malloc(2 * (size_t)(t->rows * t->pairs) * sizeof *t->values[i]);
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

static enum posenc_status compute(struct tables *t, int64_t first, int64_t rows,
                                  struct posenc_error *error)
{
    enum posenc_status status = POSENC_OK;
    apart_enter("rope_table");
    for (int i = 0; i < 2 && status == POSENC_OK; i++) {
        struct posenc_rope_table_args args = posenc_rope_table_args_init();
        args.error = error;
        args.freqs = t->freqs[i];
        args.positions.offset = first;
        args.cos = posenc_dense(t->values[i], 2, rows, t->pairs, 0, 0);
        args.sin = posenc_dense(t->values[i] + rows * t->pairs, 2, rows, t->pairs, 0, 0);
        status = posenc_rope_table(NULL, &args);
    }
    apart_leave();
    return status;
}

/* Whether a difference at a position is larger. */
static bool is_off(const struct tables *t, int64_t rows, int64_t row, float limit)
{
    int off = 0;
    for (int64_t half = 0; half < 2; half++) {
        const float *got = t->values[0] + (half * rows + row) * t->pairs,
                    *want = t->values[1] + (half * rows + row) * t->pairs;
        for (int64_t i = 0; i < t->pairs; i++)
            off |= fabsf(got[i] - want[i]) > limit;
    }
    return off;
}

enum posenc_status drift_find(const struct posenc_freqs_spec *spec, enum posenc_profile profile,
                              int64_t length, struct drift *drift, size_t n,
                              struct posenc_error *error)
{
    struct tables t = { .pairs = 0 };
    enum posenc_status status = create_tables(spec, profile, &t, error);
    size_t passed = 0;
    for (size_t i = 0; i < n; i++)
        drift[i].first = -1;
    for (int64_t at = 0; at < length && passed < n && status == POSENC_OK; at += t.rows) {
        const int64_t rows = length - at < t.rows ? length - at : t.rows;
        status = compute(&t, at, rows, error);
        for (int64_t row = 0; row < rows && status == POSENC_OK; row++)
            while (passed < n && is_off(&t, rows, row, (float)drift[passed].limit))
                drift[passed++].first = at + row;
    }
    destroy_tables(&t);
    return status;
}
