/*
 * posenc: positional encodings of transformers, on CPUs.
 *
 * Three stages, each usable alone:
 *   frequencies   struct posenc_freqs, a plan made once           posenc_freqs_create()
 *   tables        cosines and sines of position x frequency       posenc_rope_table(), ...
 *   application   onto activations or attention scores            posenc_rope_half(), ...
 *
 * Every kernel call has one shape:
 *
 *     struct posenc_rope_args args = posenc_rope_args_init();
 *     args.x = ...; args.cos = ...;
 *     enum posenc_status status = posenc_rope_half(NULL, &args);
 *
 * The first argument is a backend, or NULL for the selected one. Arguments are validated
 * before anything is written: on an error every output is untouched. Kernels allocate nothing,
 * touch no memory but their arguments', leave all else as it was, and may run on any number of
 * threads at once.
 *
 * Units: angles in radians, strides in elements, sizes in elements unless a name says bytes.
 *
 * Growth. A struct that begins with `size` may get members at its end, and only there. Start
 * from its posenc_..._init(): it sets the size that your compiler saw and the defaults. The
 * library takes a smaller size, with defaults for what the program does not know; a larger one
 * only where what the library does not know is zero (else ARGUMENT). Values of an enum are
 * never used again.
 *
 * Stable is all of this header but the section behind POSENC_EXPERIMENTAL, which may change in
 * any release. C11, and C++ from 11 on.
 */
#ifndef POSENC_H
#define POSENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0
#define POSENC_VERSION       "0.1.0"

/* The binary interface, which the SONAME names. It changes when a program or plug-in that was
 * built against an older header can no longer be run. */
#define POSENC_ABI 4u

/* For a DLL define POSENC_BUILDS_DLL where it is made and POSENC_USES_DLL where it is used. */
#if defined(POSENC_BUILDS_DLL)
#define POSENC_API __declspec(dllexport)
#elif defined(POSENC_USES_DLL)
#define POSENC_API __declspec(dllimport)
#elif defined(__GNUC__)
#define POSENC_API __attribute__((visibility("default")))
#else
#define POSENC_API
#endif
#if defined(__GNUC__)
#define POSENC_MUST_CHECK __attribute__((warn_unused_result))
#else
#define POSENC_MUST_CHECK
#endif

/* All members zero, in both languages. */
#ifdef __cplusplus
#define POSENC_ZERO                                                                            \
    {                                                                                          \
    }
#else
#define POSENC_ZERO                                                                            \
    {                                                                                          \
        0                                                                                      \
    }
#endif

/* Version of the library that was loaded, "major.minor.patch". */
POSENC_API const char *posenc_version(void);

/* ---- Errors ---- */

/* What the caller got wrong. Anything but POSENC_OK left the outputs untouched. */
enum posenc_status {
    POSENC_OK = 0,
    POSENC_ERR_ARGUMENT = 1,   /* a required pointer is NULL, a size or an enum is unknown */
    POSENC_ERR_SHAPE = 2,      /* a dimension is out of range or two tensors disagree */
    POSENC_ERR_STRIDE = 3,     /* last dimension not contiguous, or an output overlaps itself */
    POSENC_ERR_DTYPE = 4,      /* this kernel does not take this element type */
    POSENC_ERR_ODD = 5,        /* a dimension that must be even is odd */
    POSENC_ERR_ROTARY_DIM = 6, /* rotary_dim or rotary_offset does not fit in head_dim */
    POSENC_ERR_THETA = 7,      /* rope_theta is not finite and positive, or of no use */
    POSENC_ERR_PARAMETER = 8,  /* another parameter is not finite or out of its range */
    POSENC_ERR_POSITION = 9,   /* |position| >= 2^31, or a row of a table that does not exist */
    POSENC_ERR_OVERLAP = 10,   /* input and output overlap without being the same tensor */
    POSENC_ERR_OVERFLOW = 11,  /* the size of a tensor in bytes does not fit */
    POSENC_ERR_UNKNOWN = 12,   /* no backend of that name */
    POSENC_ERR_UNSUPPORTED = 13,  /* this CPU cannot run that backend */
    POSENC_ERR_NOT_PROVIDED = 14, /* that backend lacks this kernel */
    POSENC_ERR_MEMORY = 15,       /* a plan could not be allocated */
};

/* A sentence without a full stop, for any value. */
POSENC_API const char *posenc_status_string(enum posenc_status status);

/* Detail of a refusal, filled when the caller passes one: what was wrong, the value met and the
 * range that would have been accepted (least > most: not a range). `what` is a static string.
 */
struct posenc_error {
    enum posenc_status status;
    const char *what;
    double value;
    double least, most;
};

/* The refusal as a sentence without a full stop: "WHAT is VALUE, expected from LEAST to MOST: " and
 * posenc_status_string(), without the range where there is none. As snprintf() writes: `size` bytes
 * at most, cut where they do not hold it and always ended by a 0; with size 0 none, and text may be
 * NULL. Returns the length of the whole, without the 0. `error` was filled, and is not NULL. */
POSENC_API size_t posenc_error_text(const struct posenc_error *error, char *text, size_t size);

/* ---- Tensors and positions ---- */

/* How elements are stored: IEEE binary32, binary16, or the upper half of a binary32 (bfloat16).
 * Arithmetic is f32 whatever the storage; a result is the f32 result rounded once more, to
 * nearest even, subnormals included. x and out of a call have one type; cosines and sines may
 * have another; tables that are learned, slopes and what is computed from integers are f32. */
enum posenc_dtype { POSENC_DTYPE_F32 = 0, POSENC_DTYPE_F16, POSENC_DTYPE_BF16 };

/* Arrays of n elements from one storage to another, as kernels read and write them: to 16 bits
 * rounded to nearest even, subnormals included, infinity where f32 exceeds them by half of a last
 * place or more; from 16 bits exact. A NaN keeps its sign and the upper bits of its payload, and is
 * quiet in 16 bits; there and back is thus the same 16 bits but of a signalling NaN. The bits are
 * the same on every platform. `from` and `to` lie apart: not in place.
 * Errors: ARGUMENT (NULL or not aligned, unless n is 0), SHAPE (n below 0), OVERLAP, OVERFLOW. */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_f32_to_f16(int64_t n, const float *from,
                                                                  uint16_t *to);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_f16_to_f32(int64_t n, const uint16_t *from, float *to);
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_f32_to_bf16(int64_t n, const float *from,
                                                                   uint16_t *to);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_bf16_to_f32(int64_t n, const uint16_t *from, float *to);

/* Where a call writes: up to four dimensions, the last one contiguous (stride 1). Strides are
 * in elements and may be negative; no two elements may share memory. Any alignment of the
 * element type will do. */
struct posenc_tensor {
    void *data;
    enum posenc_dtype dtype;
    int32_t rank;
    int64_t shape[4];
    int64_t stride[4];
};

/* What a call only reads: the same, member for member, and a stride of 0 repeats what is
 * there. */
struct posenc_const_tensor {
    const void *data;
    enum posenc_dtype dtype;
    int32_t rank;
    int64_t shape[4];
    int64_t stride[4];
};

/* A dense f32 tensor of `rank` dimensions (1 to 4; unused sizes are ignored). */
POSENC_API struct posenc_tensor posenc_dense(void *data, int rank, int64_t d0, int64_t d1,
                                             int64_t d2, int64_t d3);
POSENC_API struct posenc_const_tensor posenc_const_dense(const void *data, int rank, int64_t d0,
                                                         int64_t d1, int64_t d2, int64_t d3);

/* A tensor that is written, as an input: x = posenc_view(out) is a call in place. */
static inline struct posenc_const_tensor posenc_view(struct posenc_tensor tensor)
{
    struct posenc_const_tensor view;
    int i;
    view.data = tensor.data;
    view.dtype = tensor.dtype;
    view.rank = tensor.rank;
    for (i = 0; i < 4; i++) {
        view.shape[i] = tensor.shape[i];
        view.stride[i] = tensor.stride[i];
    }
    return view;
}

enum posenc_position_kind {
    POSENC_POSITIONS_OFFSET = 0, /* token t is at position offset + t, in every batch */
    POSENC_POSITIONS_I32,        /* int32_t data[batch * stride_batch + token * stride_token] */
    POSENC_POSITIONS_I64,        /* of each array a stride_token of 0 means 1: it is dense */
    POSENC_POSITIONS_F32, /* float data[]: times, of diffusion; not where positions are rows */
};

/* Positions of tokens. Computed encodings take |position| < 2^31 of either sign, and fractions as
 * POSITIONS_F32 (a whole one has the bits of the integer); rows of a table lie in [0, rows). On axis
 * a of a plan (mrope_section) they are at data[a * stride_axis + ...]; an offset, or stride_axis 0, is
 * the same position on all: that of text. Batches share positions with stride_batch 0. Tokens that
 * share one repeat it in the array, or are batches of one token each, at an offset. Of an offset data
 * and strides are ignored; an array has to lie in the address space as its strides say (ERR_OVERFLOW). */
struct posenc_positions {
    enum posenc_position_kind kind;
    int64_t offset;
    const void *data;
    int64_t stride_batch, stride_token, stride_axis;
};

/* ---- Stage 1: frequencies ---- */

/* How the angle is formed (see docs/accuracy.md). Concerns frequencies and tables only. */
enum posenc_numerics {
    POSENC_NUMERICS_EXACT = 0, /* real mathematics, rounded once */
    POSENC_NUMERICS_HF_F32,    /* Hugging Face: f32 inverse frequency times f32 position */
    POSENC_NUMERICS_GGML_F32, /* ggml: position times theta^(-2/dim), i times over, in f32; a ggml
                             built for FMA rounds once less where yarn blends */
    POSENC_NUMERICS_TORCH_EXP_F32, /* exp of f32 2i times f32 -ln(theta)/dim, times f32 position */
};

enum posenc_spacing {
    POSENC_SPACING_EXPONENT = 0, /* theta^(-2i/dim): Vaswani et al. 2017, every RoPE */
    POSENC_SPACING_ENDPOINT, /* theta^(-i/(n-1)), n = dim/2 (n = 1: 1): tensor2tensor, Whisper */
};

/* Context extension, by the rules of Hugging Face modeling_rope_utils.py (ntk: of others). L
 * is original_max_position_embeddings, M max_position_embeddings. What each takes besides
 * `factor`, and what becomes of theta^(-2i/dim) = omega:
 *   linear        omega / factor  (Chen et al. 2306.15595)
 *   llama3        low_freq_factor, high_freq_factor, L: omega / factor for long wavelengths
 *   yarn          L, beta_fast, beta_slow, truncate, attention_factor, mscale, mscale_all_dim
 *                 (Peng et al. 2309.00071)
 *   dynamic       M, seq_len: theta (factor s/M - (factor - 1))^(dim/(dim-2)), s the larger of
 *                 seq_len and M; in numerics mode hf_f32 beyond M in f32, as there s is a tensor
 *   ntk           theta factor^(dim/(dim-2)), at any length
 *   longrope      L, seq_len, short_factor, long_factor: omega / long_factor[i] where seq_len >
 *                 L, else / short_factor[i]; `factor` (M/L) only makes the attention factor
 *                 (Ding et al. 2402.13753)
 *   proportional  partial_rotary_factor: omega / factor of the first
 *                 floor(partial_rotary_factor dim/2) pairs, 0 of the others: those do not turn
 *   resonance     2 pi / lambda, lambda the whole number nearest to the wavelength 2 pi / omega:
 *                 a pair repeats itself exactly after lambda positions (Wang et al. 2403.00071).
 *                 Nothing besides; numerics mode exact; rope_theta from 1
 *   resonance_yarn    the same of what yarn makes, with its parameters
 * Profile hf_f32 has those up to proportional, ggml_f32 those up to longrope and no endpoint,
 * torch_exp_f32 none (ARGUMENT).
 */
enum posenc_scaling {
    POSENC_SCALING_NONE = 0,
    POSENC_SCALING_LINEAR,
    POSENC_SCALING_LLAMA3,
    POSENC_SCALING_YARN,
    POSENC_SCALING_DYNAMIC,
    POSENC_SCALING_NTK,
    POSENC_SCALING_LONGROPE,
    POSENC_SCALING_PROPORTIONAL,
    POSENC_SCALING_RESONANCE,
    POSENC_SCALING_RESONANCE_YARN,
};

/* Rotations by several positions a token: time, height and width of what a picture shows
 * (multimodal RoPE, Wang et al. 2409.12191), or height and width (2-D RoPE). mrope_section
 * says how many pairs turn with each axis (none after a 0); the sum is dim/2.
 *   chunked      the first section's pairs with axis 0, then those of axis 1, ... (Qwen2-VL)
 *   interleaved  three axes by turns: pair i with axis i % 3 while i < 3 mrope_section[i % 3],
 *                else with axis 0, so a section of more than every third pair is cut (Qwen3-VL)
 *   restarted    as chunked, with the frequencies of a section those of an encoding of its own
 *                size, theta^(-j/section) (the vision tower of Qwen2-VL)
 *   dealt        as chunked, with the frequencies of all pairs dealt out to the axes by turns while
 *                their sections last: of two that are alike the first axis has theta^(-2i/dim) for
 *                i = 0, 2, 4, ..., the second those between (the tower of Pixtral)
 *   alternating  as restarted, the pairs themselves dealt out so: axis 0, 1, 0, 1, ... with
 *                frequencies 1, 1, theta^(-1/section), ... (the tower of Kimi K2.5)
 * The last three are without scaling, endpoint or `values`, and not in numerics mode ggml_f32 (ARGUMENT).
 */
enum posenc_mrope_layout {
    POSENC_MROPE_LAYOUT_QWEN2_VL = 0,
    POSENC_MROPE_LAYOUT_QWEN3_VL,
    POSENC_MROPE_LAYOUT_QWEN2_VL_VISION,
    POSENC_MROPE_LAYOUT_PIXTRAL,
    POSENC_MROPE_LAYOUT_KIMI,
};

/* What a plan is made from. Start from posenc_freqs_spec_init(). */
struct posenc_freqs_spec {
    size_t size;
    enum posenc_numerics numerics;
    enum posenc_spacing spacing;
    enum posenc_scaling scaling;
    int64_t dim;       /* rotary_dim, or d_model of a sinusoidal encoding; 1 to 65536 */
    double rope_theta; /* base, max_timescale, temperature, max_period; > 0 */
    double factor;     /* 1 to 10^6 */
    double original_max_position_embeddings;  /* 1 (longrope: 2) to 2^40 */
    double low_freq_factor, high_freq_factor; /* 2^-40 to 2^40, low no more than high */
    double beta_fast, beta_slow;              /* 2^-40 to 2^40, slow no more than fast */
    bool truncate;                            /* yarn: correction range to whole pair indices */
    /* 0: derive it (yarn: 0.1 ln factor + 1, or from both mscales; longrope:
     * sqrt(1 + ln factor / ln L); else 1) */
    double attention_factor, mscale, mscale_all_dim;
    double max_position_embeddings; /* 1 to 2^40 */
    int64_t seq_len; /* tokens the plan is for, up to 2^40; 0: no more than the model takes */
    double partial_rotary_factor;             /* of one pair at least, up to 1 */
    const double *short_factor, *long_factor; /* [dim/2], at least 2^-10 each */
    int64_t mrope_section[3];                 /* all 0: one position a token */
    enum posenc_mrope_layout mrope_layout;
    /* xPos (Sun et al. 2212.10554): cosines and sines of position p times
     * zeta_i^((p - xpos_centre) / xpos_scale_base), zeta_i = (2i + 0.4 dim) / (1.4 dim); to the
     * power of minus one with xpos_inverse, which keys take and queries do not. 0: none.
     * Profile exact, one axis, dim even; xpos_scale_base from 1, both up to 2^40. Positions so
     * far from the centre that an f32 overflows are refused (POSITION). (torchscale's centre
     * is half the length, rounded up; flash-attention's, rounded down.) */
    double xpos_scale_base, xpos_centre;
    bool xpos_inverse;
    /* Caller's own frequencies, [ceil(dim/2)] radians per position, 0 to 2^16, in place of
     * rope_theta and without a scaling (ARGUMENT); or NULL. */
    const double *values;
};
static inline struct posenc_freqs_spec posenc_freqs_spec_init(void)
{
    struct posenc_freqs_spec spec = POSENC_ZERO;
    spec.size = sizeof spec;
    spec.rope_theta = 10000.0;
    spec.factor = 1.0;
    spec.beta_fast = 32.0;
    spec.beta_slow = 1.0;
    spec.truncate = true;
    spec.partial_rotary_factor = 1.0;
    return spec;
}

/* An immutable plan; may be shared between threads. Its bits are the same on every platform.
 */
struct posenc_freqs;

/* Errors: ARGUMENT, SHAPE (dim), THETA, PARAMETER, MEMORY. `error` may be NULL. */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_freqs_create(const struct posenc_freqs_spec *spec, struct posenc_freqs **freqs,
                    struct posenc_error *error);
POSENC_API void posenc_freqs_destroy(struct posenc_freqs *freqs);

/* What a plan holds, for reading: for each pair the frequency in radians per position as f64
 * and f32 (numerics mode hf_f32: the f32 value in that framework's operation order; the f64 is the
 * exact one), and as a binary fraction of a turn, turn = (turn_hi + turn_lo / 2^64) / 2^64. */
struct posenc_freqs_view {
    enum posenc_numerics numerics;
    int64_t dim, n_pairs; /* n_pairs = ceil(dim/2) */
    const double *omega;
    const float *omega_f32;
    const uint64_t *turn_hi, *turn_lo;
    double attention_factor; /* multiplies cosines and sines of rope_table */
    int32_t n_axes;          /* of positions; 1 without mrope_section */
    const uint8_t *axis;     /* [n_pairs]: that of each pair; NULL where there is one */
};
/* The pointers live as long as the plan, which must not be NULL. */
POSENC_API struct posenc_freqs_view posenc_freqs_view(const struct posenc_freqs *freqs);

/* ALiBi slopes, f32 [n_heads], each correctly rounded: 2^(-alibi_bias_max h / n_heads), h = 1,
 * ..., for a power of two; else those of the next lower power P followed by every other one of
 * 2P (Press et al. 2108.12409, reference code). Errors: ARGUMENT, SHAPE (n_heads 1 to 65536),
 * PARAMETER (alibi_bias_max > 0, <= 64). */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_alibi_slopes(int64_t n_heads, double alibi_bias_max, float *slopes);

/* T5 buckets as integers: thresholds[b] is the least distance of bucket b in one direction, for
 * b < num_buckets (unidirectional) or num_buckets/2 (bidirectional); decided in exact
 * arithmetic (Raffel et al. 1910.10683). A distance n is in the last bucket b with
 * thresholds[b] <= n. Errors: ARGUMENT, SHAPE (num_buckets 2 (4 when bidirectional, and even)
 * to 4096), PARAMETER (max_distance above the number of exact buckets, below 2^24). */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_t5_thresholds(int64_t num_buckets,
                                                                     int64_t max_distance,
                                                                     bool bidirectional,
                                                                     int32_t *thresholds);

/* ---- What other encodings are made from ---- */

/* Positions where some tokens are padding (fairseq, RoBERTa, OPT): padding_idx for padding,
 * else padding_idx plus the count of tokens so far, this one included. mask and positions are
 * [batch, tokens], dense; a byte of 0 is padding. Errors: ARGUMENT, SHAPE, POSITION (not every
 * result in [0, 2^31)). */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_padding_positions(int64_t batch, int64_t tokens, const uint8_t *mask,
                         int64_t padding_idx, int32_t *positions);

/* Rows of a table for each query and key of a window, for window_bias: index [n, n], dense.
 *   swin  n = height width tokens, row by row; (dy + height - 1)(2 width - 1) + dx + width - 1
 *         with d = query - key (Liu et al. 2103.14030): a table of (2 height - 1)(2 width - 1)
 *         rows
 *   beit  n = 1 + height width, a class token before the others; three rows more: of the class
 *         token as query, as key, and with itself (Bao et al. 2106.08254, as in Hugging Face)
 * Errors: ARGUMENT, SHAPE (sizes 1 to 256). */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_swin_index(int64_t height, int64_t width,
                                                                  int32_t *index);
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_beit_index(int64_t height, int64_t width,
                                                                  int32_t *index);

/* Columns of terms by relative position, for relative_bias and relative_sum: index
 * [queries + keys - 1], element i - j + keys - 1 for query i and key j, whose distance is
 * d = i + query_offset - j.
 *   shaw            clip(-d, -max_distance, max_distance) + max_distance: 2 max_distance + 1
 *                   columns (Shaw et al. 1803.02155)
 *   transformer_xl  d = keys - queries + i - j: min(keys - 1 - d, keys - 1), keys columns, that
 *                   of distance 0 last; later keys take it too, and are for the caller to mask
 *                   (Dai et al. 1901.02860)
 *   deberta         clip(bucket(d) + span, 0, 2 span - 1), 2 span columns, where span is
 *                   position_buckets, or max_distance with position_buckets 0 (bucket(d) = d
 *                   then); else with m = position_buckets / 2, |d| <= m: bucket(d) = d; beyond,
 *                   d's sign times ceil(ln(|d|/m) / ln((max_distance - 1)/m) (m - 1)) + m,
 *                   decided in exact arithmetic (He et al. 2006.03654, as in Hugging Face)
 * Errors: ARGUMENT, SHAPE (sizes from 1, they and |distance| below 2^24; max_distance 1 to 2^20;
 * position_buckets even, 4 to 4096, below max_distance). */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_shaw_index(int64_t queries, int64_t keys,
                                                                  int64_t query_offset,
                                                                  int64_t max_distance,
                                                                  int32_t *index);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_transformer_xl_index(int64_t queries, int64_t keys, int32_t *index);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_deberta_index(int64_t queries, int64_t keys, int64_t query_offset,
                     int64_t position_buckets, int64_t max_distance, int32_t *index);

/* Biases by distance, for distance_bias: values [n_heads, n], f32, each correctly rounded;
 * column k is distance d = first + k.
 *   kerple_log    -p[h] ln(1 + a[h] |d|)   p, a finite and above 0 (Chi et al. 2205.09921)
 *   kerple_power  -a[h] |d|^p[h]           p up to 2
 *   sandwich      (sum over i < dim/2 of cos(d 10000^(-2i/dim)) - dim/2) scale[h]: the inner
 *                 product of sinusoidal encodings, 0 at distance 0 (Chi et al. 2212.10356);
 *                 scale[h], e.g. n_heads / (8 h) for h = 1 ..., is the caller's
 * Errors: ARGUMENT, SHAPE (n_heads 1 to 65536, n from 1, |d| < 2^24, dim even, 2 to 65536), PARAMETER. */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_kerple_log(int64_t n_heads,
                                                                  const float *p,
                                                                  const float *a, int64_t first,
                                                                  int64_t n, float *values);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_kerple_power(int64_t n_heads, const float *p, const float *a, int64_t first, int64_t n,
                    float *values);
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_sandwich(int64_t dim, int64_t n_heads,
                                                                const float *scale,
                                                                int64_t first, int64_t n,
                                                                float *values);

/* Initial values of a learned table, N(0, sigma): table [rows, dim], dense f32. Row r of them
 * is row first_row + r of the seed's, whatever the other rows and however many; the bits are
 * the same on every platform. Errors: ARGUMENT, SHAPE (dim 1 to 65536, rows, first_row +
 * rows up to 2^31), PARAMETER (sigma finite in f32, above 0). */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_normal(uint64_t seed, int64_t first_row,
                                                              int64_t rows, int64_t dim,
                                                              double sigma, float *table);

/* ---- Stages 2 and 3: the kernels and their arguments ---- */

/* Who computes: NULL for the backend selected for this kernel on this machine. */
struct posenc_backend;

enum posenc_layout {
    POSENC_LAYOUT_INTERLEAVED = 0, /* sin, cos, sin, cos, ...; odd dim ends in a sine */
    POSENC_LAYOUT_SIN_COS, /* all sines, then all cosines; odd dim ends in a zero column */
    POSENC_LAYOUT_COS_SIN, /* all cosines, then all sines; likewise */
};

/* sinusoidal: out[b,t,:] = scale * PE(position(b,t)).
 * sinusoidal_add: out = fma(x, x_scale, scale * PE), the table value rounded to f32 first;
 * equals table-then-add to the last bit.
 * Shapes: out and x [batch, tokens, dim] (rank 3) or [tokens, dim] (rank 2); dim that of freqs.
 * [tokens, batch, dim] is the same thing by strides. x and out may be the same tensor; may not
 * overlap otherwise.
 * A plan whose mrope_layout is restarted makes an encoding of several axes (2-D: MAE, DETR):
 * for each section the layout above, of 2 section columns, at the position on its axis, side by
 * side. Errors: ARGUMENT, SHAPE, STRIDE, DTYPE, PARAMETER, POSITION, OVERLAP,
 * OVERFLOW.
 * Source: Vaswani et al. 1706.03762 section 3.5. */
struct posenc_sinusoidal_args {
    size_t size;
    struct posenc_error *error; /* may be NULL */
    const struct posenc_freqs *freqs;
    enum posenc_layout layout;
    double scale;  /* finite, not 0 */
    float x_scale; /* e.g. sqrt(d_model) */
    struct posenc_positions positions;
    struct posenc_const_tensor x; /* sinusoidal_add only; data NULL for sinusoidal */
    struct posenc_tensor out;
};
static inline struct posenc_sinusoidal_args posenc_sinusoidal_args_init(void)
{
    struct posenc_sinusoidal_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.scale = 1.0;
    args.x_scale = 1.0f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_sinusoidal(const struct posenc_backend *backend,
                  const struct posenc_sinusoidal_args *args);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_sinusoidal_add(const struct posenc_backend *backend,
                      const struct posenc_sinusoidal_args *args);

/* learned_add: out[b,t,:] = fma(x[b,t,:], x_scale, table[position(b,t),:]).
 * Shapes: x, out [batch, tokens, dim] or [tokens, dim]; table [rows, dim]. A position outside
 * [0, rows) is refused (POSITION: the position and rows - 1 are in `error`). x and out may be
 * the same tensor. Errors as above. */
struct posenc_learned_args {
    size_t size;
    struct posenc_error *error;
    float x_scale;
    struct posenc_positions positions;
    struct posenc_const_tensor x, table;
    struct posenc_tensor out;
};
static inline struct posenc_learned_args posenc_learned_args_init(void)
{
    struct posenc_learned_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.x_scale = 1.0f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_learned_add(const struct posenc_backend *backend,
                   const struct posenc_learned_args *args);

/* learned_grad, the gradient of a learned table: out[r,:] = the sum of x[b,t,:], what arrives
 * at the sum, over the tokens at position r in ascending order of (b, t), in f32 from +0 on;
 * onto what out holds with `accumulate`. Shapes: x [batch, tokens, dim] or [tokens, dim]; out
 * f32 [rows, dim]. (The gradient of the activations is x_scale times what arrives.)  Errors as
 * above. */
struct posenc_learned_grad_args {
    size_t size;
    struct posenc_error *error;
    bool accumulate;
    struct posenc_positions positions;
    struct posenc_const_tensor x;
    struct posenc_tensor out;
};
static inline struct posenc_learned_grad_args posenc_learned_grad_args_init(void)
{
    struct posenc_learned_grad_args args = POSENC_ZERO;
    args.size = sizeof args;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_learned_grad(const struct posenc_backend *backend,
                    const struct posenc_learned_grad_args *args);

/* cos[b,t,i] = m cos(position(b,t) * omega_i), sin likewise, m the plan's attention factor; the
 * position is that of the pair's axis where the plan has several.
 * Profile exact rounds m*cos once; hf_f32 rounds the cosine, then its product with (float)m.
 * Shapes: cos, sin [batch, tokens, n_pairs] or [tokens, n_pairs]; dim of the plan must be even.
 * cos and sin must not overlap. Errors: ARGUMENT, SHAPE, STRIDE, DTYPE, ODD, POSITION,
 * OVERLAP, OVERFLOW. Source: Su et al. 2104.09864 section 3.4. */
struct posenc_rope_table_args {
    size_t size;
    struct posenc_error *error;
    const struct posenc_freqs *freqs;
    struct posenc_positions positions;
    struct posenc_tensor cos, sin;
};
static inline struct posenc_rope_table_args posenc_rope_table_args_init(void)
{
    struct posenc_rope_table_args args = POSENC_ZERO;
    args.size = sizeof args;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_rope_table(const struct posenc_backend *backend,
                  const struct posenc_rope_table_args *args);

/* Rotates rotary_dim = 2 * cos.shape[last] channels of each head from rotary_offset on, copies
 * the rest:
 *     y0 = x0 cos - x1 sin,   y1 = x1 cos + x0 sin          (transpose: sin -> -sin)
 * The transpose is the gradient: what arrives at y, turned back, is what x receives.
 * Shapes: x, out [batch, tokens, heads, head_dim], or rank 3 without batch, any strides; cos,
 * sin [rows, rotary_dim/2], the row of token (b,t) being position(b,t). x and out may be the
 * same tensor. Errors: ARGUMENT, SHAPE, STRIDE, DTYPE, ROTARY_DIM, POSITION, OVERLAP,
 * OVERFLOW. Source: Su et al. 2104.09864 (interleaved); GPT-NeoX, Llama in Hugging Face form
 * (half). */
struct posenc_rope_args {
    size_t size;
    struct posenc_error *error;
    bool transpose;
    int64_t rotary_offset; /* first channel that turns: 0 but for a window in the head */
    struct posenc_positions positions;
    struct posenc_const_tensor cos, sin; /* of one type, which need not be that of x */
    struct posenc_const_tensor x;
    struct posenc_tensor out;
};
static inline struct posenc_rope_args posenc_rope_args_init(void)
{
    struct posenc_rope_args args = POSENC_ZERO;
    args.size = sizeof args;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_rope_half(const struct posenc_backend *backend, const struct posenc_rope_args *args);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_rope_interleaved(const struct posenc_backend *backend,
                        const struct posenc_rope_args *args);

/* alibi:     out[h,i,j] = bias(h,i,j) = -slopes[h] |i + query_offset - j|
 * alibi_add: out[b,h,i,j] = fma(x[b,h,i,j], x_scale, bias(h,i,j)), e.g. x_scale = 1/sqrt(d_k)
 * The bias at distance 0 is +0. With `causal` it is -infinity for keys after the query
 * (j > i + query_offset).
 * Shapes: x, out [batch, heads, queries, keys], or the same without batch; slopes f32 [heads],
 * or [batch, heads] with slopes_stride_batch, which is 0 where batches share them. Distances
 * below 2^24. x and out may be the same tensor. Errors: ARGUMENT, SHAPE, STRIDE, DTYPE,
 * PARAMETER, OVERLAP, OVERFLOW. Source: Press et al. 2108.12409. */
struct posenc_alibi_args {
    size_t size;
    struct posenc_error *error;
    const float *slopes;
    int64_t slopes_stride_batch;
    bool causal;
    int64_t
        query_offset; /* position of query 0 minus that of key 0; keys - queries: ends align */
    float x_scale;
    struct posenc_const_tensor x; /* alibi_add only; data NULL for alibi */
    struct posenc_tensor out;
};
static inline struct posenc_alibi_args posenc_alibi_args_init(void)
{
    struct posenc_alibi_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.x_scale = 1.0f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_alibi(const struct posenc_backend *backend, const struct posenc_alibi_args *args);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_alibi_add(const struct posenc_backend *backend, const struct posenc_alibi_args *args);

/* t5_bias:     out[h,i,j] = table[bucket(j - i - query_offset), h]
 * t5_bias_add: out[b,h,i,j] = fma(x[b,h,i,j], x_scale, that)          (T5 itself: x_scale = 1)
 * `thresholds` come from posenc_t5_thresholds with the same num_buckets, bidirectional: the
 * first is 0, the others are above it and never fall. Keys after the query use the upper half
 * of the buckets (bidirectional) or bucket 0 (not).
 * Shapes: t5_bias has one bias for all batches, out [heads, queries, keys]; t5_bias_add as
 * alibi_add; table [num_buckets, heads]. Errors as alibi. */
struct posenc_t5_args {
    size_t size;
    struct posenc_error *error;
    int64_t num_buckets;
    bool bidirectional;
    const int32_t *thresholds;
    int64_t query_offset;
    float x_scale;
    struct posenc_const_tensor table;
    struct posenc_const_tensor x; /* t5_bias_add only; data NULL for t5_bias */
    struct posenc_tensor out;
};
static inline struct posenc_t5_args posenc_t5_args_init(void)
{
    struct posenc_t5_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.x_scale = 1.0f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_t5_bias(const struct posenc_backend *backend, const struct posenc_t5_args *args);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_t5_bias_add(const struct posenc_backend *backend, const struct posenc_t5_args *args);

/* distance_bias:     out[h,i,j] = values[h, i + query_offset - j - first]
 * distance_bias_add: out[b,h,i,j] = fma(x[b,h,i,j], x_scale, that)
 * Any bias that depends on the distance alone: posenc_kerple_log() and the like.
 * Shapes: as t5_bias and t5_bias_add; values f32 [heads, n]; every distance of the call in
 * [first, first + n) (SHAPE). Errors as alibi. */
struct posenc_distance_args {
    size_t size;
    struct posenc_error *error;
    int64_t query_offset, first;
    float x_scale;
    struct posenc_const_tensor values;
    struct posenc_const_tensor x; /* distance_bias_add only; data NULL for distance_bias */
    struct posenc_tensor out;
};
static inline struct posenc_distance_args posenc_distance_args_init(void)
{
    struct posenc_distance_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.x_scale = 1.0f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_distance_bias(const struct posenc_backend *backend,
                     const struct posenc_distance_args *args);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_distance_bias_add(const struct posenc_backend *backend,
                         const struct posenc_distance_args *args);

/* window_bias:     out[h,i,j] = table[index[i, j], h]
 * window_bias_add: out[b,h,i,j] = fma(x[b,h,i,j], x_scale, that); b counts windows
 * Shapes: as t5_bias and t5_bias_add; index int32 [queries, keys], dense, from
 * posenc_swin_index() or of any origin, each in [0, rows) (POSITION: the index and rows - 1 are
 * in `error`); table f32 [rows, heads]. Errors as alibi, and POSITION. */
struct posenc_window_args {
    size_t size;
    struct posenc_error *error;
    const int32_t *index;
    float x_scale;
    struct posenc_const_tensor table;
    struct posenc_const_tensor x; /* window_bias_add only; data NULL for window_bias */
    struct posenc_tensor out;
};
static inline struct posenc_window_args posenc_window_args_init(void)
{
    struct posenc_window_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.x_scale = 1.0f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_window_bias(const struct posenc_backend *backend, const struct posenc_window_args *args);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_window_bias_add(const struct posenc_backend *backend,
                       const struct posenc_window_args *args);

/* Terms of attention by relative position, c = index[i - j + keys - 1]:
 * relative_bias:     out[b,h,i,j] = bias(b,h,i,j) = fma(scale, p2c[b,h,j,c], fl(scale
 *                    c2p[b,h,i,c]))
 * relative_bias_add: out[b,h,i,j] = fma(x[b,h,i,j], x_scale, bias(b,h,i,j))
 * c2p: products of the queries with what is learned for each column (DeBERTa's
 * content-to-position, Shaw's q a^K, Transformer-XL's (q + v) R, before its shift); p2c: of the
 * keys (DeBERTa; its paper writes delta(j,i) there, the column of j - i; its code reads that of
 * i - j, as for c2p, and models were trained with the code, so that is done here). Either may be
 * absent (data NULL): bias is then fl(scale times the other).
 * Shapes: x, out [batch, heads, queries, keys]; c2p [batch, heads, queries, columns]; p2c
 * [batch, heads, keys, columns]; all without batch, or all with; one type. index int32
 * [queries + keys - 1], dense, from posenc_deberta_index() or the like, each in [0, columns)
 * (POSITION). x and out may be the same tensor; c2p and p2c lie apart from out. Errors as
 * alibi, and POSITION. */
struct posenc_relative_args {
    size_t size;
    struct posenc_error *error;
    const int32_t *index;
    float scale, x_scale; /* scale: e.g. 1/sqrt(3 d_k) for DeBERTa with both terms */
    struct posenc_const_tensor c2p, p2c;
    struct posenc_const_tensor x; /* relative_bias_add only; data NULL for relative_bias */
    struct posenc_tensor out;
};
static inline struct posenc_relative_args posenc_relative_args_init(void)
{
    struct posenc_relative_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.scale = 1.0f;
    args.x_scale = 1.0f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_relative_bias(const struct posenc_backend *backend,
                     const struct posenc_relative_args *args);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_relative_bias_add(const struct posenc_backend *backend,
                         const struct posenc_relative_args *args);

/* relative_sum: out[b,h,i,c] = the sum of x[b,h,i,j] over the keys j in ascending order whose
 * index[i - j + keys - 1] is c, in f32 from +0 on. Of attention weights this is what
 * multiplies Shaw's a^V; of a gradient of scores, what c2p receives.
 * Shapes: x [batch, heads, queries, keys]; out [batch, heads, queries, columns]; both without
 * batch, or both with; one type. x and out lie apart. index as relative_bias. Errors as
 * relative_bias. */
struct posenc_relative_sum_args {
    size_t size;
    struct posenc_error *error;
    const int32_t *index;
    struct posenc_const_tensor x;
    struct posenc_tensor out;
};
static inline struct posenc_relative_sum_args posenc_relative_sum_args_init(void)
{
    struct posenc_relative_sum_args args = POSENC_ZERO;
    args.size = sizeof args;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_relative_sum(const struct posenc_backend *backend,
                    const struct posenc_relative_sum_args *args);

/* RMS norm of each head of queries or keys, then the rotation of rope_half, before attention:
 *     r   = 1 / sqrt(s / n + epsilon),   s the sum of x_i^2 over the n channels of the head
 *     v_i = (x_i r) (weight_i + weight_offset)
 *     y0  = v0 cos - v1 sin,   y1 = v1 cos + v0 sin       (channels that turn; the others: v)
 * across_heads: s is over all heads of the token, n = heads * head_dim (OLMo 2); a call then has
 * all of them. weight_offset: 1 for Gemma, whose weights are stored less 1.
 * The order of the sum: x_i^2 goes to partial sum i % 64 of its head, by one fma where a backend
 * fuses, i ascending; the upper half of the 64 is added to the lower, until one is left; heads are
 * added in ascending order. All else is rounded one operation at a time, the rotation as in
 * rope_half. Each v is right to ((m + 8) / 2 + 5) 2^-24 of it and terms in 2^-48, with m =
 * ceil(head_dim / 64), or heads - 1 more across heads; to half a 2^-24 more where nothing fuses.
 * Squares are f32: beyond |x| = 1.8e19 / sqrt(n) their sum is infinite, r is 0, and so is what
 * was finite; an infinite x becomes NaN, one NaN makes all of its norm NaN.
 * Shapes: x, out, cos, sin, positions and rotary_offset as rope_half; weight f32 [heads,
 * head_dim], any stride of heads (0: one for all), or [head_dim]. epsilon from 2^-64; n up to
 * 2^24. x and out may be the same tensor; weight lies apart from out. Errors: as rope_half,
 * PARAMETER (epsilon, weight_offset). Source: Zhang and Sennrich 1910.07467; Qwen3 2505.09388;
 * Gemma 3 2503.19786; OLMo 2 2501.00656. */
struct posenc_rope_qk_norm_args {
    size_t size;
    struct posenc_error *error;
    float epsilon, weight_offset;
    bool across_heads;
    int64_t rotary_offset; /* first channel that turns */
    struct posenc_positions positions;
    struct posenc_const_tensor cos, sin; /* of one type, which need not be that of x */
    struct posenc_const_tensor weight;
    struct posenc_const_tensor x;
    struct posenc_tensor out;
};
static inline struct posenc_rope_qk_norm_args posenc_rope_qk_norm_args_init(void)
{
    struct posenc_rope_qk_norm_args args = POSENC_ZERO;
    args.size = sizeof args;
    args.epsilon = 1e-6f;
    return args;
}
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_rope_qk_norm(const struct posenc_backend *backend,
                    const struct posenc_rope_qk_norm_args *args);

/* ---- The simple case ---- */

/* Which channels of a head turn together. */
enum posenc_pairing {
    POSENC_PAIRING_HALF = 0, /* i and i + rotary_dim/2: Llama as in Hugging Face, GPT-NeoX */
    POSENC_PAIRING_INTERLEAVED = 1, /* 2i and 2i + 1: Llama as published, GPT-J */
};

/* A model's rotation: its plan, and the rows of cosines and sines it has needed so far. Any
 * number of threads may use one at once; allocates when it is made and when it sees positions
 * beyond its rows (512 at first, then twice as many, up to 2^20; of positions beyond those, and
 * of negative ones, rows are made for the call). */
struct posenc_rope;

/* `spec` says rope_theta, scaling and dim, the channels of a head that turn, from the first on;
 * head_dim is at least that. What turns queries and keys differently (xPos) takes two objects.
 * Errors: as posenc_freqs_create(), ODD, ROTARY_DIM. */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_rope_create(const struct posenc_freqs_spec *spec, int64_t head_dim,
                   enum posenc_pairing pairing, struct posenc_rope **rotary,
                   struct posenc_error *error);
/* No thread may be using it; NULL is fine. */
POSENC_API void posenc_rope_destroy(struct posenc_rope *rotary);
/* Its plan, which lives as long. */
POSENC_API const struct posenc_freqs *posenc_rope_freqs(const struct posenc_rope *rotary);
/* Makes the rows of positions 0 ... positions - 1 now, up to 2^20 of them, so that calls with no
 * others allocate nothing. Errors: ARGUMENT, POSITION, MEMORY. */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_rope_reserve(struct posenc_rope *rotary,
                                                                    int64_t positions);

/* Turns queries and keys in place, on the backend that is selected: q [tokens, q_heads,
 * head_dim], k [tokens, k_heads, head_dim], dense, of one type; with 0 heads there are none and
 * the pointer may be NULL. Token t is at first_position + t (of a step of decoding: the number
 * of tokens in the KV cache), or at positions[t]; |position| < 2^31. Errors: ARGUMENT, SHAPE,
 * DTYPE, POSITION, OVERLAP, OVERFLOW, MEMORY; then neither q nor k has changed. */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_rope_apply(struct posenc_rope *rotary, enum posenc_dtype dtype, int64_t tokens,
                  int64_t first_position, void *q, int64_t q_heads, void *k, int64_t k_heads);
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_rope_apply_at(struct posenc_rope *rotary, enum posenc_dtype dtype, int64_t tokens,
                     const int32_t *positions, void *q, int64_t q_heads, void *k,
                     int64_t k_heads);

/* x = fma(x, x_scale, sinusoidal encoding), in place: x [tokens, dim], dense, dim that of the
 * plan, from first_position on. x_scale: 1, or sqrt(d_model) where a model scales its
 * embeddings. Errors: as posenc_sinusoidal_add(). */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_add_sinusoids(const struct posenc_freqs *freqs, enum posenc_layout layout,
                     enum posenc_dtype dtype, int64_t tokens, int64_t first_position,
                     float x_scale, void *x);

/* ---- Kernels and backends ---- */

/* Ids of kernels: only ever added to. */
enum posenc_kernel {
    POSENC_KERNEL_SINUSOIDAL = 0,
    POSENC_KERNEL_SINUSOIDAL_ADD = 1,
    POSENC_KERNEL_LEARNED_ADD = 2,
    POSENC_KERNEL_LEARNED_GRAD = 3,
    POSENC_KERNEL_ROPE_TABLE = 4,
    POSENC_KERNEL_ROPE_HALF = 5,
    POSENC_KERNEL_ROPE_INTERLEAVED = 6,
    POSENC_KERNEL_ALIBI = 7,
    POSENC_KERNEL_ALIBI_ADD = 8,
    POSENC_KERNEL_T5_BIAS = 9,
    POSENC_KERNEL_T5_BIAS_ADD = 10,
    POSENC_KERNEL_DISTANCE_BIAS = 11,
    POSENC_KERNEL_DISTANCE_BIAS_ADD = 12,
    POSENC_KERNEL_WINDOW_BIAS = 13,
    POSENC_KERNEL_WINDOW_BIAS_ADD = 14,
    POSENC_KERNEL_RELATIVE_BIAS = 15,
    POSENC_KERNEL_RELATIVE_BIAS_ADD = 16,
    POSENC_KERNEL_RELATIVE_SUM = 17,
    POSENC_KERNEL_ROPE_QK_NORM = 18,
    POSENC_KERNEL_COUNT /* of this header: a later one may have more */
};

/* A backend: a named set of kernels. Also what a plug-in exports, a shared object that a program
 * opens (dlopen(), dlsym()) to name it in its calls or to add it to the list, as
 *     const struct posenc_backend posenc_plugin;
 * A kernel it lacks is NULL. The library calls a kernel with arguments it has validated and
 * brought to one form: positions checked, all activations rank 4 ([batch, tokens, heads, dim];
 * heads = 1 for encodings that are added; [batch, heads, queries, keys] for scores), tables
 * rank 2, cos/sin of rope_table rank 4 with heads = 1, biases without batch rank 4 with batch =
 * 1; the out of learned_grad rank 2; stride_token of positions in an array not 0. In place
 * means x.data == out.data.
 *
 * Of a backend built against an older header `size` ends earlier: the kernels beyond it are not
 * provided. It is handed whole arguments of the library that calls it, args->size of them. */
struct posenc_backend {
    size_t size;
    uint32_t abi;
    const char *name;   /* [a-z0-9_]+ */
    const char *family; /* backends of one family share their limits and, unless their compiler
                           contracts, their bits */
    const char *description; /* one line */
    const char *needs; /* CPU features, space separated, as posenc_cpu_features names them; and
                          "posenc-" POSENC_VERSION of one for that version alone */
    int32_t (*lanes)(void); /* f32 lanes of its widest vector; NULL for plain C */
    bool fused;             /* contracts one product of a rotation into an fma */
    bool f16_bf16;  /* takes those types, too; one that does not is never handed them, not even
                      as cosines and sines */
    bool contracts; /* its compiler makes an fma of products and sums where it likes (as gcc
                       does for a CPU that has it, unless told -ffp-contract=off): its rotations
                       in 16 bits need not be those in f32, rounded, nor members of its family
                       give the same bits. Where older headers had padding: 0 */
    enum posenc_status (*sinusoidal)(const struct posenc_sinusoidal_args *args);
    enum posenc_status (*sinusoidal_add)(const struct posenc_sinusoidal_args *args);
    enum posenc_status (*learned_add)(const struct posenc_learned_args *args);
    enum posenc_status (*learned_grad)(const struct posenc_learned_grad_args *args);
    enum posenc_status (*rope_table)(const struct posenc_rope_table_args *args);
    enum posenc_status (*rope_half)(const struct posenc_rope_args *args);
    enum posenc_status (*rope_interleaved)(const struct posenc_rope_args *args);
    enum posenc_status (*alibi)(const struct posenc_alibi_args *args);
    enum posenc_status (*alibi_add)(const struct posenc_alibi_args *args);
    enum posenc_status (*t5_bias)(const struct posenc_t5_args *args);
    enum posenc_status (*t5_bias_add)(const struct posenc_t5_args *args);
    enum posenc_status (*distance_bias)(const struct posenc_distance_args *args);
    enum posenc_status (*distance_bias_add)(const struct posenc_distance_args *args);
    enum posenc_status (*window_bias)(const struct posenc_window_args *args);
    enum posenc_status (*window_bias_add)(const struct posenc_window_args *args);
    enum posenc_status (*relative_bias)(const struct posenc_relative_args *args);
    enum posenc_status (*relative_bias_add)(const struct posenc_relative_args *args);
    enum posenc_status (*relative_sum)(const struct posenc_relative_sum_args *args);
    enum posenc_status (*rope_qk_norm)(const struct posenc_rope_qk_norm_args *args);
};

/* Name of a kernel ("rope_half"), its summary, and the id of a name (POSENC_KERNEL_COUNT:
 * none). */
POSENC_API const char *posenc_kernel_name(enum posenc_kernel kernel);
POSENC_API const char *posenc_kernel_summary(enum posenc_kernel kernel);
POSENC_API enum posenc_kernel posenc_kernel_find(const char *name);

/* Whether a backend provides a kernel. */
POSENC_API bool posenc_backend_provides(const struct posenc_backend *backend,
                                        enum posenc_kernel kernel);

/* The backends built into this library, whether or not this CPU runs them, then those that were
 * added; NULL past the end. */
POSENC_API const struct posenc_backend *posenc_backend_at(size_t index);
POSENC_API const struct posenc_backend *posenc_backend_find(const char *name);
/* Adds a backend to the list, a plug-in's say, which has to live until the process ends. It
 * serves calls that name it, and those that posenc_select() or, when it was added before the
 * first call, POSENC_BACKEND gives it; it is never a default. Any thread may. Errors: ARGUMENT
 * (another ABI, or a name that another one has), MEMORY (after 16 of them). */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_backend_add(const struct posenc_backend *backend);
/* NULL when the backend can run here; else the first thing that is missing, e.g. "CPU lacks
 * avx512f". */
POSENC_API const char *posenc_backend_unavailable_reason(const struct posenc_backend *backend);

/* What the CPU has of the features backends may need, space separated; and its key: on x86
 * vendor-family-model-stepping in hexadecimal ("amd-1a-02-1"), on ARM
 * implementer-part-variant-revision ("arm-d40-1-1"), on RISC-V the three ids of its makers. */
POSENC_API const char *posenc_cpu_features(void);
POSENC_API const char *posenc_cpu_key(void);

/* Chooses for calls with backend NULL. `text` is a backend's name, or lines
 *     kernel backend [dtype [bytes]]
 * or NULL to go back to the environment (POSENC_BACKEND: exactly that one; POSENC_MAX_ISA: none
 * that needs more of the CPU than that one; POSENC_TUNING: the lines of that file, which
 * posenc tune wrote) and the order of features. A line with a dtype (f32, f16, bf16) is about
 * calls stored so, one with bytes about those whose posenc_footprint() is at most that; of the
 * lines of a kernel (24 at most) the first that holds counts, and where none does all is as
 * without. The text of a tuning file is taken, too, and refused (UNSUPPORTED) when it is of another
 * CPU or another build of this library.
 * Atomic; calls under way finish with the old choice. Errors: ARGUMENT (a line that is none),
 * UNKNOWN, UNSUPPORTED, NOT_PROVIDED, MEMORY; the selection is then unchanged. */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_select(const char *text);

/* Who serves a kernel when no backend is given, and why; where that depends on the call, f32 and
 * a footprint of 0 (posenc_selection_for()). `backend` is NULL when none does (a
 * POSENC_BACKEND that is unknown or cannot run here; calls then return `status`). */
struct posenc_selection {
    const struct posenc_backend *backend;
    enum posenc_status status;
    const char *reason; /* e.g. "POSENC_BACKEND=avx2", "first of the list that runs here" */
};
POSENC_API struct posenc_selection posenc_selection(enum posenc_kernel kernel);

/* ---- Not yet stable: may change in any release ---- */
#ifdef POSENC_EXPERIMENTAL

/* A call that is checked once and run many times, by one thread at a time: decoding, where a
 * step has other activations and the next position. A run costs a few comparisons more than
 * the kernel. Of sinusoidal, sinusoidal_add (plans of one axis), learned_add, rope_half,
 * rope_interleaved and rope_qk_norm; what grows with the cache (scores) has another shape at
 * each step. */
struct posenc_prepared;

/* Checks a call as posenc_<kernel>() would, args the kernel's, and keeps all of it but its
 * activations and positions: plan, tables, `error` and the backend selected now have to live,
 * unchanged, as long. There is something to do in it (SHAPE). Errors: as the kernel,
 * NOT_PROVIDED, MEMORY. */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_prepare(const struct posenc_backend *backend, enum posenc_kernel kernel,
               const void *args, struct posenc_prepared **prepared);
POSENC_API void posenc_prepared_destroy(struct posenc_prepared *prepared);

/* Runs it with other data of the same shapes, strides and type, x NULL where the kernel takes
 * none, and another offset of the positions; or, where it was prepared with an array of
 * positions, with another one of that kind. Errors: those of a call with these arguments, told
 * in its `error`; ARGUMENT, where it was prepared with the other kind of positions. */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_run(struct posenc_prepared *prepared, const void *x, void *out, int64_t offset);
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_run_at(struct posenc_prepared *prepared,
                                                              const void *x, void *out,
                                                              const void *positions);

/* Bytes that the tensors of a call hold, its table of positions or cosines left out: activations,
 * scores, terms and what they are added to, x once where it is out. `args` is the kernel's struct.
 * 0: NULL, no such kernel, or a size that is none. */
POSENC_API uint64_t posenc_footprint(enum posenc_kernel kernel, const void *args);

/* posenc_selection() for calls stored as `dtype` of that footprint. */
POSENC_API struct posenc_selection
posenc_selection_for(enum posenc_kernel kernel, enum posenc_dtype dtype, uint64_t bytes);

/* Chooses as posenc_select() does with the text of a tuning file, which posenc tune wrote to the file
 * `path`, whatever POSENC_TUNING says. `reason` (NULL: none is wanted; `size` bytes, 512 hold any)
 * says what was refused and why, or is made empty. Errors: those of posenc_select(); ARGUMENT, too,
 * for a file that cannot be read or is none. */
POSENC_API POSENC_MUST_CHECK enum posenc_status posenc_load_tuning(const char *path,
                                                                   char *reason, size_t size);

/* Which build of the library this is: its version, compiler and optimisation, and a sum of its
 * sources. */
POSENC_API const char *posenc_build(void);

/* Part k of the n parts that a call is cut into, one for each thread: `part` becomes arguments of
 * the same kind, to be run as any others. All n together write what the whole call writes, with
 * the same bits, each element once, in any order. `args` and `part` are of the kernel's struct;
 * part has args->size bytes, and may be args itself.
 * A part is a range of one axis of out: tokens, batches or, of rotations, heads; of scores heads,
 * batches or queries; of learned_grad channels; never keys. Of those that can be cut between cache
 * lines (64 bytes) that axis is taken that makes the largest part smallest, and no two parts write
 * one line. Where none can (data that begin amid a line, rows without room between them) neighbours
 * may both write the line in which they meet. A part that nothing is left for has tensors without
 * elements and does nothing; there are such wherever n exceeds what can be cut.
 * k from 0 to n - 1, n from 1 to 2^31 - 1; every k needs the same args and n. Reads args alone, no
 * tensor, position or index; any number of threads may at once. What is not looked at here is
 * refused when a part runs, and of it alone: the others will have been written. Parts may be refused
 * at once: part->error is NULL, and a thread that wants the detail sets it to an error of its own.
 * Errors, told in args->error by k = 0 alone; part is then as it was: ARGUMENT (NULL, no such kernel,
 * size), SHAPE (k, n, a rank, sizes that are not those of out), DTYPE, POSITION (offset near 2^63). */
POSENC_API POSENC_MUST_CHECK enum posenc_status
posenc_split(enum posenc_kernel kernel, const void *args, int64_t k, int64_t n, void *part);

#endif /* POSENC_EXPERIMENTAL */

#ifdef __cplusplus
}
#endif
#endif
