/*
 * Declarations that the library's own files share: errors, the inside of struct posenc_freqs, positions and the
 * built-in backends. Nothing here is exported.
 */
#ifndef POSENC_INTERNAL_H
#define POSENC_INTERNAL_H

#include <math.h>

#include <posenc/backend.h>
#include <posenc/experimental.h>

#if defined(__FAST_MATH__)
#error "posenc's promises need IEEE arithmetic: do not build it with -ffast-math"
#endif

/* ---- Errors ---- */

/* Fills *error, unless it is NULL, and returns `status`. Values from least to most would have been accepted. */
static inline __attribute__((cold)) enum posenc_status
reject_range(struct posenc_error *error, enum posenc_status status, const char *what,
             double value, double least, double most)
{
    if (error) {
        *error = (struct posenc_error){
            .status = status, .value = value, .least = least, .most = most
        };
        for (size_t i = 0; i < sizeof error->what - 1 && what[i]; i++)
            error->what[i] = what[i];
    }
    return status;
}

/* Rejects a value that has no range, which is stored as least > most. */
static inline enum posenc_status reject_value(struct posenc_error *error,
                                              enum posenc_status status, const char *what,
                                              double value)
{
    return reject_range(error, status, what, value, 1.0, 0.0);
}

static inline enum posenc_status reject(struct posenc_error *error, enum posenc_status status,
                                        const char *what)
{
    return reject_value(error, status, what, 0.0);
}

/* Rejects a whole number that is not in [least, most]. */
static inline enum posenc_status require_range(struct posenc_error *error,
                                               enum posenc_status status, const char *what,
                                               int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most
               ? POSENC_OK
               : reject_range(error, status, what, (double)value, (double)least, (double)most);
}

/* ---- Frequencies ---- */

/* Padding of the arrays of struct posenc_freqs, in elements. Rows are padded with zeros to a multiple of it, so that
 * kernels may load whole vectors. Each array is also readable this far past its last row, as the arrays of a section
 * begin at a later pair (posenc_freqs_section()). It must not be less than the lanes of the widest f32 vector. */
enum { POSENC_FREQS_PAD = 64 };

/* Kernels compute a block of consecutive positions from the angle of its first position, the anchor. A block consists
 * of groups, and each group is computed from its two middle rows (kernels/sincos.h). */
enum { POSENC_BLOCK = 64, POSENC_GROUP = 8, POSENC_GROUPS = POSENC_BLOCK / POSENC_GROUP };

/* Frequencies, immutable once they are created. */
struct posenc_freqs {
    struct posenc_freqs_view view; /* its arrays have `stride` elements */
    int64_t stride;                /* n_pairs rounded up to POSENC_FREQS_PAD */
    bool whole; /* each wavelength is a whole number of positions: see posenc_whole_zero() */
    uint32_t *whole_turns; /* [stride]: whole turns per position; view.turn_* is the fraction */

    /* Rotations, correctly rounded, only of numerics mode exact (else NULL).
     * middle [POSENC_GROUPS][4][stride]: cos, sin of (8 b + 3) omega and cos, sin of
     * (8 b + 4) omega, the angles from the anchor to the middle rows of group b.
     * twice_cos [stride]: 2 cos omega. */
    double *middle, *twice_cos;

    /* Numerics mode ggml_f32: phi_0 = position, phi_(i+1) = phi_i * theta_scale. With e = phi_i / divisor[i], the angle
     * of pair i is freq_scale * e, or, if `blends` (YaRN), freq_scale * e * (1 - ramp_mix[i]) + e * ramp_mix[i]. */
    struct {
        float theta_scale, freq_scale;
        float *divisor, *ramp_mix; /* [stride]; NULL in other modes */
        bool blends;
    } ggml;

    /* xPos multiplies cosines and sines of pair i by zeta_i^(+-(position - centre) / scale_base); the sign is - with
     * xpos_inverse. The arrays are NULL without xPos.
     * xpos_step [POSENC_BLOCK][stride]: zeta_i^(+-c / scale_base), the factor for c positions.
     * xpos_rate_hi + xpos_rate_lo [stride]: +-log2(zeta_i) / scale_base.
     * xpos_reach: the largest |position - centre| at which each factor, times the attention factor, is in [2^-126,
     * 2^126]; negative if there is none. */
    double *xpos_step, *xpos_rate_hi, *xpos_rate_lo;
    double xpos_centre, xpos_reach;

    int64_t section[3]; /* pairs of each axis in the layout QWEN2_VL_VISION, otherwise 0 */
    void *memory; /* the allocation that holds the struct and its arrays; NULL in a section */
};

/* Returns the frequencies of one axis in the layout QWEN2_VL_VISION, which cover 2 section[axis] columns. They point
 * into the arrays of `freqs`. */
struct posenc_freqs posenc_freqs_section(const struct posenc_freqs *freqs, int axis);

/* Writes the factors of cosines and sines of pairs i ... i + n - 1 with xPos: the attention factor times
 * zeta^(+-(position - centre) / scale_base). Their relative error is below 2^-51 up to 64 positions beyond xpos_reach.
 * The factors of position + c are xpos_step[c * stride + pair] times as large. */
void posenc_xpos_scale(const struct posenc_freqs *freqs, double position, int64_t i, int64_t n,
                       double *scale);

/* Reduces the angles of pairs i ... i + n - 1 at a time > 0, in numerics mode exact: each angle is q quarter turns and
 * r radians, |r| <= pi/4. The relative error of r is below 2^-51. */
void posenc_time_angles(const struct posenc_freqs *freqs, float time, int64_t i, int64_t n,
                        double *r, uint64_t *q);

/* Computes the angles of pairs i ... i + n - 1 from phi = phi_i, in numerics mode ggml_f32. Returns phi_(i+n). */
float posenc_ggml_f32_angles(const struct posenc_freqs *freqs, float phi, int64_t i, int64_t n,
                             float *angles);

/* Returns true if `value`, a computed cosine or sine times `scale`, stands for an exact zero. The position and the
 * wavelength of the frequency omega are whole numbers: the real value is then 0 or at least sin(omega/4), and the
 * computed one is off by less than omega/2^20 below position 2^31. */
static inline bool posenc_whole_zero(double value, double omega, double scale)
{
    return fabs(value) < omega * 0.125 * fabs(scale);
}

/* ---- Elements and positions ---- */

static inline size_t posenc_dtype_size(enum posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

static inline size_t posenc_position_size(enum posenc_position_kind kind)
{
    return kind == POSENC_POSITIONS_I64 ? sizeof(int64_t) : sizeof(int32_t);
}

/* Returns the positions on one axis of multimodal RoPE. */
static inline struct posenc_positions
posenc_positions_on_axis(const struct posenc_positions *positions, int32_t axis)
{
    struct posenc_positions on_axis = *positions;
    if (on_axis.kind != POSENC_POSITIONS_OFFSET && axis != 0 && on_axis.stride_axis != 0)
        on_axis.data = (const char *)on_axis.data +
                       axis * on_axis.stride_axis * (int64_t)posenc_position_size(on_axis.kind);
    return on_axis;
}

/* ---- Backends ---- */

/* The built-in backends. The build leaves out those that it cannot compile. */
#define POSENC_BACKEND(name) extern const struct posenc_backend posenc_backend_##name;
#include "backends.def"

/* True if kernels prefetch on this CPU when they read memory in order. It is set together with the CPU's features,
 * before the first call. */
extern bool posenc_prefetch_enabled;

/* Specifiers of a function that is part of a kernel. Builds that are checked but never timed define
 * POSENC_PARTS_CALLED: without inlining they compile in a tenth of the time. */
#ifdef POSENC_PARTS_CALLED
#define POSENC_PART static inline
#else
#define POSENC_PART static inline __attribute__((always_inline))
#endif

#endif
