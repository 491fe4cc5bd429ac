/*
 * Kernels broken on purpose.  Each is a real kernel with one mistake; the program `broken` runs
 * the engine on each and fails when one of them passes.
 */
#ifndef POSENC_BROKEN_H
#define POSENC_BROKEN_H

#include <posenc.h>

/* The backend whose kernels are broken; a member of family template, so that every suite
 * applies. */
extern const struct posenc_backend *broken_base;

#define BROKEN(name, kernel, signature, suite, what)                                           \
    enum posenc_status name(const struct posenc_##signature##_args *args);
#include "broken.def"

/* Plans broken on purpose: each changes a spec into the mistaken one; false when it is none
 * that the mistake concerns. */
#define BROKEN_PLAN(name, suite, what) bool name(struct posenc_freqs_spec *spec);
#include "broken.def"

/* The one that plans of calls go through, or NULL; and what counts that something was
 * broken. */
extern bool (*broken_plan)(struct posenc_freqs_spec *spec);
void broken_enter(void);
enum posenc_status broken_freqs_create(const struct posenc_freqs_spec *spec,
                                       struct posenc_freqs **freqs, struct posenc_error *error);

/* For kernels that leave their memory on purpose: AddressSanitizer would end the program at the
 * first of them, while the suites have guard pages and patterns to catch them with. */
#if defined(__GNUC__)
#define BROKEN_UNWATCHED __attribute__((no_sanitize("address")))
#else
#define BROKEN_UNWATCHED
#endif

/* The real kernel in f32, whatever the storage, and then an edit of each row that it wrote. */
typedef void sinusoidal_edit(const struct posenc_sinusoidal_args *args, int64_t b, int64_t t,
                             float *row);
enum posenc_status broken_sinusoidal_rows(const struct posenc_sinusoidal_args *args,
                                          sinusoidal_edit *edit);
typedef void rope_table_edit(const struct posenc_rope_table_args *args, int64_t b, int64_t t,
                             float *cosines, float *sines);
enum posenc_status broken_rope_table_rows(const struct posenc_rope_table_args *args,
                                          rope_table_edit *edit);

/* Row (i0, i1, i2) of an f32 activation in the form backends get it; likewise of an input. */
static inline float *broken_row(const struct posenc_tensor *t, int64_t i0, int64_t i1,
                                int64_t i2)
{
    return (float *)t->data + i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
}
static inline const float *broken_input(const struct posenc_const_tensor *t, int64_t i0,
                                        int64_t i1, int64_t i2)
{
    return (const float *)t->data + i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
}

/* On an axis; of a time without its fraction. */
static inline int64_t broken_on_axis(const struct posenc_positions *p, int64_t b, int64_t t,
                                     int axis)
{
    int64_t at = b * p->stride_batch + t * p->stride_token + axis * p->stride_axis;
    return p->kind == POSENC_OFFSET          ? p->offset + t
           : p->kind == POSENC_POSITIONS_I32 ? ((const int32_t *)p->data)[at]
           : p->kind == POSENC_POSITIONS_I64 ? ((const int64_t *)p->data)[at]
                                             : (int64_t)((const float *)p->data)[at];
}

static inline int64_t broken_position(const struct posenc_positions *p, int64_t b, int64_t t)
{
    return broken_on_axis(p, b, t, 0);
}

static inline float broken_time(const struct posenc_positions *p, int64_t b, int64_t t,
                                int axis)
{
    return p->kind == POSENC_POSITIONS_F32
               ? ((const float *)p
                      ->data)[b * p->stride_batch + t * p->stride_token + axis * p->stride_axis]
               : (float)broken_on_axis(p, b, t, axis);
}

/* The last bit of x turned over. */
static inline float broken_last_bit(float x)
{
    union {
        float f;
        uint32_t u;
    } bits = { x };
    bits.u ^= 1u;
    return bits.f;
}

#endif
