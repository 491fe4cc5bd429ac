/*
 * What the library's own files share: the inside of a plan, the built-in backends.
 * Nothing here is exported.
 */
#ifndef POSENC_INTERNAL_H
#define POSENC_INTERNAL_H

#include <math.h>

#define POSENC_EXPERIMENTAL
#include <posenc.h>

#if defined(__FAST_MATH__)
#error "posenc's promises need IEEE arithmetic: do not build it with -ffast-math"
#endif

/* Rows of a plan's arrays are padded with zeros to a multiple of this, so that kernels may
 * read whole vectors of them (never of a caller's memory), and each array is readable this
 * far past its last row, so that they may where the array begins at a later pair
 * (posenc_freqs_section()). At least the lanes of the widest f32 vector. */
enum { POSENC_PLAN_PAD = 64 };

/* Positions that share an anchor, and those among them that come from the same two middle rows
 * (kernels/sincos.h). */
enum { POSENC_BLOCK = 64, POSENC_GROUP = 8, POSENC_GROUPS = POSENC_BLOCK / POSENC_GROUP };

struct posenc_freqs {
    struct posenc_freqs_view view; /* its arrays have `stride` elements */
    int64_t stride;                /* n_pairs rounded up to POSENC_PLAN_PAD */
    bool whole;                    /* wavelengths are whole positions: posenc_whole_zero() */
    /* Profile exact only; NULL otherwise, all rounded correctly. [POSENC_GROUPS][4][stride]: cos
     * and sin from an anchor to the middle rows of group b, (8 b + 3) omega and (8 b + 4) omega;
     * [stride]: 2 cos omega. */
    double *middle, *twice_cos;
    /* Profile ggml_f32: phi_0 = position, phi_(i+1) = phi_i * theta_scale; pair i turns by
     * e = phi_i / divisor[i] blended with freq_scale * e, of which kept[i] is e. */
    struct {
        float theta_scale, freq_scale;
        float *divisor, *kept; /* NULL in other profiles */
        bool blends;           /* else nothing is kept: freq_scale * e */
    } ggml;
    uint32_t
        *turn_whole; /* [stride]: whole turns a position, where turn is what exceeds them */
    /* xPos; NULL without. xpos_step [POSENC_BLOCK][stride]: zeta_i^(+-c / xpos_scale_base),
     * what c positions more multiply cosines and sines by; minus with xpos_inverse. */
    double *xpos_step;
    double *xpos_rate_hi, *xpos_rate_lo; /* [stride]: +-log2(zeta_i) / xpos_scale_base, a sum */
    double xpos_centre, xpos_reach;
    int64_t section[3]; /* pairs of each axis where sections restart; 0 in other plans */
    void *memory;       /* the one allocation behind all of the arrays; NULL in a section */
};

/* The plan of one section of a plan whose sections restart (section[0] is not 0), made of its
 * arrays: one axis, of 2 section[axis] columns. Lives as long as the plan. */
struct posenc_freqs posenc_freqs_section(const struct posenc_freqs *freqs, int axis);

/* Plan with xPos: the attention factor times zeta^(+-(position - centre) / xpos_scale_base)
 * of n pairs from i, each with a relative error below 2^-51, for positions in reach or 64
 * beyond. Those of position + c are xpos_step[c * stride + pair] times as much. */
void posenc_xpos_scale(const struct posenc_freqs *freqs, double position, int64_t i, int64_t n,
                       double *scale);

/* Plan with xPos: the greatest |position - centre| at which each of these is in [2^-126,
 * 2^126]; negative where there is none. */
static inline double posenc_xpos_reach(const struct posenc_freqs *freqs)
{
    return freqs->xpos_reach;
}

/* Profile exact, time > 0 of any fraction: the angle of each of n pairs from i is q quarter
 * turns and r radians, |r| <= pi/4, r with a relative error below 2^-51. */
void posenc_time_angles(const struct posenc_freqs *freqs, float time, int64_t i, int64_t n,
                        double *r, uint64_t *q);

/* Profile ggml_f32: the angles of pairs i ... i + n - 1 from phi = phi_i; returns phi_(i+n). */
float posenc_ggml_f32_angles(const struct posenc_freqs *freqs, float phi, int64_t i, int64_t n,
                             float *angles);

/* True if kernels prefetch on this CPU when they read memory in order. It is set when the features of the CPU
 * are read, before any call. */
extern bool posenc_asks_ahead;

/* Bytes of an element. */
static inline size_t posenc_dtype_size(enum posenc_dtype dtype)
{
    return dtype == POSENC_F32 ? sizeof(float) : sizeof(uint16_t);
}

static inline size_t posenc_position_size(enum posenc_position_kind kind)
{
    return kind == POSENC_POSITIONS_I64 ? sizeof(int64_t) : sizeof(int32_t);
}

/* Positions on one axis, of which there are as many as the plan says. */
static inline struct posenc_positions posenc_axis(const struct posenc_positions *positions,
                                                  int32_t axis)
{
    struct posenc_positions of = *positions;
    if (of.kind != POSENC_OFFSET && axis != 0 && of.stride_axis != 0)
        of.data = (const char *)of.data +
                  axis * of.stride_axis * (int64_t)posenc_position_size(of.kind);
    return of;
}

/* Returns true if a cosine or sine at a whole position is a zero, for a whole wavelength w. Real
 * ones are 0 or, p/w being a fourth of 1/w or more away from it, sin(omega/4) at least; computed ones
 * are off by less than omega/2^20 below position 2^31. */
static inline bool posenc_whole_zero(double value, double omega, double scale)
{
    return fabs(value) < omega * 0.125 * fabs(scale);
}

/* The built-in backends; one that is not in this build is absent from the list. */
#define POSENC_BACKEND(name) extern const struct posenc_backend posenc_backend_##name;
#include "backends.def"

/* Before a part of a kernel. Builds that are checked and never timed call it: compilers take a tenth of the time. */
#ifdef POSENC_PARTS_CALLED
#define POSENC_PART static inline
#else
#define POSENC_PART static inline __attribute__((always_inline))
#endif

#endif
