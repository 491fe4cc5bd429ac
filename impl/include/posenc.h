/**
 * @file posenc.h
 * @brief Positional encodings of transformers, on CPUs.
 *
 * An encoding has three stages. Each can be used alone:
 *
 *   frequencies   struct posenc_freqs, made once               posenc_freqs_create()
 *   tables        cosines and sines of position x frequency    posenc_rope_table(), posenc_sinusoidal()
 *   application   to activations or to attention scores        posenc_rope_half(), posenc_alibi_add()
 *
 * Two calls rotate the queries and keys of a model, struct posenc_rope: posenc_rope_create() and
 * posenc_rope_apply(). Every kernel beneath is called alike:
 *
 *     struct posenc_rope_args args = posenc_rope_args_init();
 *     args.cos = ...; args.sin = ...; args.out = ...;
 *     enum posenc_status status = posenc_rope_half(NULL, &args, NULL);
 *
 * The first argument is a backend, or NULL for the one that is selected for this CPU. A kernel checks all
 * arguments before it writes. On an error, every output is unchanged. A kernel touches only the memory of its
 * arguments and allocates nothing. The first call with a NULL backend also reads the environment and allocates
 * the selection; posenc_select(NULL, NULL) does so ahead of time. Threads may call at once if their outputs are
 * disjoint.
 *
 * Overlap: no input, positions included, may overlap an output, unless a docstring allows it. Two tensors overlap
 * if the ranges from their first to their last byte intersect. Some tensors may interleave instead. Two tensors of
 * equal strides do so in an array [tokens, 2, n] where their rows alternate: the second begins n elements after the
 * first, and the token stride of both is 2 n. Any strides are accepted that such an array, of one dimension more,
 * may have without a shared element. cos and sin of posenc_rope_table() may interleave, and x and out where they may
 * be the same tensor. For q and k, see posenc_rope_apply().
 *
 * Headers: posenc.h has the encodings of tokens and the selection of a backend. posenc/relative.h has biases on
 * attention scores: ALiBi, T5, windows, relative positions. posenc/backend.h lists backends and declares what a
 * plug-in exports. posenc/experimental.h may change in any release.
 *
 * Units: angles are in radians, strides and sizes in elements unless a name says bytes.
 *
 * Errors: each function that can fail returns enum posenc_status. Its last parameter, `error`, receives the details
 * and may be NULL. A kernel with a NULL backend may also return the status of the selection: POSENC_ERR_UNKNOWN,
 * _UNSUPPORTED, _NOT_PROVIDED or _MEMORY; with a backend, _UNSUPPORTED, _NOT_PROVIDED, or _ARGUMENT if it was built
 * for another ABI.
 *
 * Compatibility: structs grow in three ways. Arguments, specs and backends begin with `size` and may get members at
 * their end. Start from the posenc_..._init(), which sets the size that your compiler saw, and the defaults; a
 * library rejects members that it lacks unless they are zero. posenc_freqs_view and posenc_selection may get members
 * at their end, too; the caller passes their size. Tensors, positions and T5's buckets have reserved members, which
 * the caller leaves zero. Values of an enum are never reused. An enum is 32 bits wide, even with -fshort-enums.
 *
 * The headers are C11, and C++ from 11 on.
 */
#ifndef POSENC_H
#define POSENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For a DLL, define POSENC_BUILDS_DLL where it is built and POSENC_USES_DLL where it is used. */
#if defined(POSENC_BUILDS_DLL)
#define POSENC_API __declspec(dllexport)
#elif defined(POSENC_USES_DLL)
#define POSENC_API __declspec(dllimport)
#elif defined(__GNUC__)
#define POSENC_API __attribute__((visibility("default")))
#else
#define POSENC_API
#endif

/* A function whose result must be checked. */
#if defined(__GNUC__)
#define POSENC_CHECKED POSENC_API __attribute__((warn_unused_result))
#else
#define POSENC_CHECKED POSENC_API
#endif

/* An enum of 32 bits, even with -fshort-enums. A later library may return values that this header lacks. */
#if defined(__GNUC__)
#define POSENC_ENUM __attribute__((mode(SI)))
#else
#define POSENC_ENUM
#endif

/* ---- Version ---- */

#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0
#define POSENC_VERSION       "0.1.0"

/** Version of this header as one number that grows: 10000 major + 100 minor + patch. */
#define POSENC_VERSION_NUMBER                                                                  \
    (POSENC_VERSION_MAJOR * 10000 + POSENC_VERSION_MINOR * 100 + POSENC_VERSION_PATCH)

/** Binary interface, which the SONAME contains. It changes when a program or a plug-in has to be compiled again. */
#define POSENC_ABI 5u

/** @brief Returns the version of the library that was loaded, "major.minor.patch". */
POSENC_API const char *posenc_version(void);

/** @brief Returns POSENC_VERSION_NUMBER of the library that was loaded. */
POSENC_API int32_t posenc_version_number(void);

/* ---- Errors ---- */

/** Result of a call. Unless it is POSENC_OK, every output is unchanged. */
enum POSENC_ENUM posenc_status {
    POSENC_OK = 0,
    POSENC_ERR_ARGUMENT = 1, /**< a pointer is NULL or misaligned, or a choice is invalid */
    POSENC_ERR_SHAPE = 2,    /**< a dimension is out of range, or two tensors disagree */
    POSENC_ERR_STRIDE = 3,   /**< last dimension not contiguous, or an output overlaps itself */
    POSENC_ERR_DTYPE = 4,    /**< the kernel does not take this element type */
    POSENC_ERR_ODD = 5,      /**< the dim of a rotation is odd */
    POSENC_ERR_ROTARY_DIM = 6, /**< the rotated channels do not fit into head_dim */
    POSENC_ERR_THETA = 7,      /**< rope_theta is invalid, or gives unusable frequencies */
    POSENC_ERR_PARAMETER = 8,  /**< another parameter is not finite or out of its range */
    POSENC_ERR_POSITION = 9,   /**< |position| >= 2^31, or a table has no such row or column */
    POSENC_ERR_OVERLAP = 10,   /**< tensors overlap without being the same tensor */
    POSENC_ERR_OVERFLOW = 11,  /**< a tensor does not fit into the address space */
    POSENC_ERR_UNKNOWN = 12,   /**< no backend of that name */
    POSENC_ERR_UNSUPPORTED = 13,  /**< not for this CPU, or not for this build */
    POSENC_ERR_NOT_PROVIDED = 14, /**< that backend lacks this kernel */
    POSENC_ERR_MEMORY = 15        /**< out of memory, or a list is full */
};

/** @brief Returns a phrase that describes a status; any value is allowed. */
POSENC_API const char *posenc_status_string(enum posenc_status status);

/** Details of an error. A call fills it only if it fails; it need not be initialised. */
struct posenc_error {
    enum posenc_status status;
    int32_t reserved_int;
    double value;       /**< the value that was passed, integers beyond 2^53 rounded */
    double least, most; /**< range that would be accepted; there is none if least > most */
    int64_t reserved[2];
    char what[512]; /**< name of the value, for people; empty if there is nothing to name */
};

/**
 * @brief Writes an error as one phrase: "dim is 0, expected from 1 to 65536: ..."
 *
 * Works like snprintf(): it writes at most `size` bytes, the last of them 0.
 * @param error  an error that a call has filled; not NULL
 * @param text   receives the phrase; may be NULL if size is 0
 * @return length of the whole phrase, without the 0
 */
POSENC_API size_t posenc_error_text(const struct posenc_error *error, char *text, size_t size);

/* ---- Tensors ---- */

/**
 * Element types: IEEE binary32, binary16, and the upper half of a binary32 (bfloat16).
 *
 * Arithmetic is f32 for each of them. A 16-bit result is the f32 result, rounded to nearest even, subnormals
 * included. Activations x and out have one dtype. Cosines and sines may have another. Slopes, weights and the tables
 * of learned, T5, window and distance biases are f32.
 */
enum POSENC_ENUM posenc_dtype {
    POSENC_DTYPE_F32 = 0,
    POSENC_DTYPE_F16 = 1,
    POSENC_DTYPE_BF16 = 2 /**< bfloat16 */
};

/**
 * Memory that a call writes: up to four dimensions, the last one contiguous (stride 1).
 *
 * Strides are in elements and may be negative. No two elements may share memory: with the dimensions sorted by
 * |stride|, each stride is at least 1 plus the sum of |stride| (size - 1) of those before; otherwise the status is
 * POSENC_ERR_STRIDE. Data need only the alignment of their element type.
 */
struct posenc_tensor {
    void *data;
    enum posenc_dtype dtype;
    int32_t rank;     /**< 1 to 4 */
    int64_t shape[4]; /**< each 0 to 2^31 - 1; data may be NULL if one is 0 */
    int64_t stride[4];
    int64_t reserved[2]; /**< 0 */
};

/** Memory that a call only reads. The members are those of posenc_tensor; a stride of 0 repeats elements. */
struct posenc_const_tensor {
    const void *data;
    enum posenc_dtype dtype;
    int32_t rank;
    int64_t shape[4];
    int64_t stride[4];
    int64_t reserved[2];
};

/**
 * @brief Return a dense tensor of two, three or four dimensions.
 *
 * Nothing is checked here. The call that uses the tensor checks it.
 */
POSENC_API struct posenc_tensor posenc_tensor_2d(enum posenc_dtype dtype, void *data,
                                                 int64_t d0, int64_t d1);
POSENC_API struct posenc_tensor posenc_tensor_3d(enum posenc_dtype dtype, void *data,
                                                 int64_t d0, int64_t d1, int64_t d2);
POSENC_API struct posenc_tensor posenc_tensor_4d(enum posenc_dtype dtype, void *data,
                                                 int64_t d0, int64_t d1, int64_t d2,
                                                 int64_t d3);

/**
 * @brief Returns a tensor with any strides.
 * @param rank    number of dimensions, 1 to 4
 * @param shape   [rank]
 * @param stride  [rank], in elements; NULL if the tensor is dense
 */
POSENC_API struct posenc_tensor posenc_tensor_strided(enum posenc_dtype dtype, void *data,
                                                      int32_t rank, const int64_t *shape,
                                                      const int64_t *stride);

/** @brief Return a read-only tensor. */
POSENC_API struct posenc_const_tensor
posenc_const_tensor_2d(enum posenc_dtype dtype, const void *data, int64_t d0, int64_t d1);
POSENC_API struct posenc_const_tensor posenc_const_tensor_3d(enum posenc_dtype dtype,
                                                             const void *data, int64_t d0,
                                                             int64_t d1, int64_t d2);
POSENC_API struct posenc_const_tensor posenc_const_tensor_4d(enum posenc_dtype dtype,
                                                             const void *data, int64_t d0,
                                                             int64_t d1, int64_t d2,
                                                             int64_t d3);
POSENC_API struct posenc_const_tensor
posenc_const_tensor_strided(enum posenc_dtype dtype, const void *data, int32_t rank,
                            const int64_t *shape, const int64_t *stride);

/** @brief Returns a read-only view of a tensor. */
POSENC_API struct posenc_const_tensor posenc_const_view(struct posenc_tensor tensor);

/**
 * @brief Convert n elements, as kernels read and write them.
 *
 * To 16 bits: rounds to nearest even, subnormals included. A value that exceeds the largest f16 or bf16 by half a
 * unit in its last place becomes infinite. A NaN keeps its sign and the upper bits of its payload, and becomes quiet.
 * From 16 bits: exact. The bits are the same on every platform.
 *
 * @param n     number of elements, at least 0
 * @param from  [n], aligned
 * @param to    [n], aligned; must not overlap `from`
 * @param error receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT (NULL or not aligned, unless n is 0), POSENC_ERR_SHAPE (n < 0),
 *         POSENC_ERR_OVERLAP, POSENC_ERR_OVERFLOW
 */
POSENC_CHECKED enum posenc_status posenc_f32_to_f16(int64_t n, const float *from, uint16_t *to,
                                                    struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_f16_to_f32(int64_t n, const uint16_t *from, float *to,
                                                    struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_f32_to_bf16(int64_t n, const float *from, uint16_t *to,
                                                     struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_bf16_to_f32(int64_t n, const uint16_t *from, float *to,
                                                     struct posenc_error *error);

/* ---- Positions ---- */

/** Source of the positions of tokens. */
enum POSENC_ENUM posenc_position_kind {
    POSENC_POSITIONS_OFFSET = 0, /**< token t is at position offset + t, in every batch */
    POSENC_POSITIONS_I32 = 1, /**< int32_t data[batch * stride_batch + token * stride_token] */
    POSENC_POSITIONS_I64 = 2, /**< int64_t data[], likewise */
    /** float data[]: may be fractions, such as diffusion times; not for rows of a table */
    POSENC_POSITIONS_F32 = 3
};

/**
 * Positions of tokens (ONNX: position_ids; Hugging Face: position_ids, cache_position).
 *
 * Kernels that compute angles (sinusoidal, sinusoidal_add, rope_table, posenc_rope_apply()) take |position| < 2^31.
 * The others read rows of a table, from 0 on, and reject F32. An F32 position that is a whole number gives the bits
 * of that integer. With POSENC_POSITIONS_OFFSET, data and strides are ignored.
 */
struct posenc_positions {
    enum posenc_position_kind kind;
    int64_t offset;
    const void *data;
    /** The number of tokens for a dense [batch, tokens] array; 0: all batches share one row */
    int64_t stride_batch;
    int64_t stride_token; /**< 0: dense, as 1 */
    /** For multimodal RoPE (mrope_section); 0: all axes have the same position, as in text */
    int64_t stride_axis;
    int64_t reserved[2]; /**< 0 */
};

/** @brief Returns the positions offset, offset + 1, ... of consecutive tokens, in every batch. */
POSENC_API struct posenc_positions posenc_positions_from(int64_t offset);

/**
 * @brief Returns positions that are read from a dense array.
 * @param kind          type of the elements; not POSENC_POSITIONS_OFFSET
 * @param data          [tokens], or [batch, tokens] with stride_batch = tokens
 * @param stride_batch  elements from one batch to the next; 0: all batches have the same positions
 */
POSENC_API struct posenc_positions
posenc_positions_array(enum posenc_position_kind kind, const void *data, int64_t stride_batch);

/* ---- Frequencies ---- */

/** Arithmetic that forms an angle. It concerns frequencies and tables only: see docs/accuracy.md. */
enum POSENC_ENUM posenc_numerics {
    POSENC_NUMERICS_EXACT = 0,  /**< real numbers, rounded once */
    POSENC_NUMERICS_HF_F32 = 1, /**< Hugging Face: f32 inverse frequency times f32 position */
    /** ggml: f32 position, multiplied i times by rope_theta^(-2/dim). A ggml that uses FMA instructions rounds once
     *  less where yarn blends. */
    POSENC_NUMERICS_GGML_F32 = 2,
    /** PyTorch's tutorial: exp(2i * -ln(rope_theta)/dim) in f32, times position */
    POSENC_NUMERICS_TORCH_EXP_F32 = 3
};

/** Exponents of the frequencies (diffusers: downscale_freq_shift 0 and 1). */
enum POSENC_ENUM posenc_spacing {
    POSENC_SPACING_EXPONENT = 0, /**< theta^(-2i/dim): Vaswani et al. 2017, and every RoPE */
    /** theta^(-i/(n - 1)), n = dim/2; 1 if n is 1: tensor2tensor, Whisper */
    POSENC_SPACING_ENDPOINT = 1
};

/**
 * Rules that extend the context, named as in modeling_rope_utils.py of Hugging Face.
 *
 * Each rule changes the frequency omega = theta^(-2i/dim). L is original_max_position_embeddings, M is
 * max_position_embeddings. Each but RESONANCE takes `factor`, at least 1, and requires the parameters that are
 * listed:
 *
 *   LINEAR         omega / factor (Chen et al. 2306.15595)
 *   LLAMA3         low_freq_factor, high_freq_factor, L: omega / factor where L omega / (2 pi) is below
 *                  low_freq_factor, omega where it is above high_freq_factor, a blend between
 *   YARN           L, beta_fast, beta_slow, truncate, attention_factor, mscale, mscale_all_dim; theta > 1
 *                  (Peng et al. 2309.00071)
 *   DYNAMIC        M, seq_len: theta (factor s/M - (factor - 1))^(dim/(dim - 2)), s = max(seq_len, M). With
 *                  POSENC_NUMERICS_HF_F32 and s > M it is computed in f32, as Hugging Face has a tensor there.
 *   NTK            theta factor^(dim/(dim - 2)), at any length; dim >= 3, as for DYNAMIC
 *   LONGROPE       L, seq_len, short_factor, long_factor: omega / long_factor[i] if seq_len > L, otherwise
 *                  omega / short_factor[i]. `factor`, M/L, affects only the attention factor (Ding et al. 2402.13753).
 *   PROPORTIONAL   partial_rotary_factor: omega / factor for the first floor(partial_rotary_factor dim/2) pairs, and
 *                  0 for the others, which are not rotated
 *   RESONANCE      2 pi / lambda, where lambda is the integer nearest to the wavelength 2 pi / omega. A pair then
 *                  repeats exactly after lambda positions (Wang et al. 2403.00071). It takes no parameters and needs
 *                  POSENC_NUMERICS_EXACT and rope_theta >= 1.
 *   RESONANCE_YARN the same, applied to the frequencies of YARN, with its parameters
 *
 * HF_F32 has the rules up to PROPORTIONAL. GGML_F32 has those up to LONGROPE, but not POSENC_SPACING_ENDPOINT.
 * TORCH_EXP_F32 has none. Any other combination is rejected with POSENC_ERR_ARGUMENT.
 */
enum POSENC_ENUM posenc_scaling {
    POSENC_SCALING_NONE = 0,
    POSENC_SCALING_LINEAR = 1,
    POSENC_SCALING_LLAMA3 = 2,
    POSENC_SCALING_YARN = 3,
    POSENC_SCALING_DYNAMIC = 4,
    POSENC_SCALING_NTK = 5,
    POSENC_SCALING_LONGROPE = 6,
    POSENC_SCALING_PROPORTIONAL = 7,
    POSENC_SCALING_RESONANCE = 8,
    POSENC_SCALING_RESONANCE_YARN = 9 /**< YaRN, then resonance */
};

/**
 * Assignment of pairs to axes where a token has several positions.
 *
 * Multimodal RoPE has three axes: time, height and width (Wang et al. 2409.12191). 2-D RoPE has height and width.
 * mrope_section[a] is the number of pairs of axis a, and the sum is dim/2. There are no axes after a 0.
 *
 *   QWEN2_VL         the pairs of axis 0 come first, then those of axis 1, and so on
 *   QWEN3_VL         three axes take turns: pair i has axis i % 3 while i < 3 mrope_section[i % 3], otherwise axis 0.
 *                    A section of more than a third of the pairs is therefore cut.
 *   QWEN2_VL_VISION  as QWEN2_VL, but each section has its own frequencies, theta^(-j/section)
 *   PIXTRAL          as QWEN2_VL, but the frequencies of all pairs are given to the axes in turn. With two equal
 *                    sections, axis 0 has theta^(-2i/dim) for i = 0, 2, 4, ..., and axis 1 has those between.
 *   KIMI             as QWEN2_VL_VISION, but the pairs take turns: axis 0, 1, 0, 1, ... with the frequencies 1, 1,
 *                    theta^(-1/section), theta^(-1/section), ... (vision encoder of Kimi K2.5)
 *
 * The last three allow no scaling, no POSENC_SPACING_ENDPOINT, no `values` and not GGML_F32: POSENC_ERR_ARGUMENT.
 */
enum POSENC_ENUM posenc_mrope_layout {
    POSENC_MROPE_LAYOUT_QWEN2_VL = 0,
    POSENC_MROPE_LAYOUT_QWEN3_VL = 1,
    POSENC_MROPE_LAYOUT_QWEN2_VL_VISION = 2, /**< also the 2-D sinusoids of MAE and DETR */
    POSENC_MROPE_LAYOUT_PIXTRAL = 3,
    POSENC_MROPE_LAYOUT_KIMI = 4
};

/** Parameters of frequencies. Start from posenc_freqs_spec_init(). */
struct posenc_freqs_spec {
    size_t size;
    enum posenc_numerics numerics;
    enum posenc_spacing spacing;
    enum posenc_scaling scaling;
    int64_t dim; /**< rotary_dim, or d_model of a sinusoidal encoding; 1 to 65536 */
    /** Above 0; also called base, max_timescale, temperature and max_period (default: 10000) */
    double rope_theta;
    double factor;                            /**< 1 to 10^6 (default: 1) */
    double original_max_position_embeddings;  /**< 1 (LONGROPE: 2) to 2^40 */
    double low_freq_factor, high_freq_factor; /**< 2^-40 to 2^40, low <= high */
    double beta_fast, beta_slow; /**< 2^-40 to 2^40, slow <= fast (default: 32 and 1) */
    /** YARN: round the correction range to whole pair indices (default: true) */
    bool truncate;
    /** 0 derives them. YARN, RESONANCE_YARN: 0.1 ln(factor) + 1, or from both mscales. LONGROPE:
     *  sqrt(1 + ln(factor)/ln(L)). Others: 1. */
    double attention_factor, mscale, mscale_all_dim;
    double max_position_embeddings; /**< 1 to 2^40 */
    int64_t seq_len; /**< tokens that will be used, up to 2^40; 0: at most those of training */
    double partial_rotary_factor; /**< at least one pair, at most 1 (default: 1) */
    const double *short_factor,
        *long_factor;         /**< [ceil(dim/2)], 2^-10 to 2^40; ggml: freq_factors */
    int64_t mrope_section[4]; /**< all 0: a token has one position. The fourth is 0. */
    enum posenc_mrope_layout mrope_layout;
    /**
     * xPos (Sun et al. 2212.10554): cosines and sines at position p are multiplied by
     * zeta_i^((p - xpos_centre) / xpos_scale_base), zeta_i = (2i + 0.4 dim) / (1.4 dim). With xpos_inverse the factor
     * is the reciprocal: keys take it, queries do not. An xpos_scale_base of 0 means no xPos.
     *
     * xPos needs POSENC_NUMERICS_EXACT, one axis and an even dim. xpos_scale_base is 1 to 2^40, xpos_centre at most
     * 2^40. A position so far from the centre that an f32 overflows is rejected with POSENC_ERR_POSITION. The centre
     * of torchscale is half the length, rounded up; that of flash-attention is rounded down.
     */
    double xpos_scale_base, xpos_centre;
    bool xpos_inverse;
    /** Frequencies of the caller, [ceil(dim/2)], 0 to 2^16 radians per position. They replace rope_theta and allow no
     *  scaling. NULL: none */
    const double *values;
};

/**
 * @brief Writes the defaults of struct posenc_freqs_spec, and its size.
 * @param spec  receives them
 * @param size  sizeof(struct posenc_freqs_spec), as the caller sees it
 */
POSENC_API void posenc_freqs_spec_defaults(struct posenc_freqs_spec *spec, size_t size);

/** @brief Returns a spec with the defaults. */
static inline struct posenc_freqs_spec posenc_freqs_spec_init(void)
{
    struct posenc_freqs_spec spec;
    posenc_freqs_spec_defaults(&spec, sizeof spec);
    return spec;
}

/** Frequencies, immutable once they are created. Threads may share them. Their bits are the same on every platform. */
struct posenc_freqs;

/**
 * @brief Creates frequencies.
 *
 * Hugging Face: inv_freq. ggml: freq_base, freq_scale, n_ctx_orig, beta_fast and beta_slow of ggml_rope_ext(). Its
 * attn_factor multiplies what YaRN derives; attention_factor replaces it. Frequencies lie in [2^-80, 2^16], with
 * RESONANCE from 2^-50.
 * @param spec   parameters; not kept
 * @param freqs  receives the frequencies, which posenc_freqs_destroy() frees
 * @param error  receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE (dim), POSENC_ERR_THETA, POSENC_ERR_PARAMETER,
 *         POSENC_ERR_MEMORY
 */
POSENC_CHECKED enum posenc_status posenc_freqs_create(const struct posenc_freqs_spec *spec,
                                                      struct posenc_freqs **freqs,
                                                      struct posenc_error *error);

/** @brief Frees frequencies that no call is using; NULL is allowed. */
POSENC_API void posenc_freqs_destroy(struct posenc_freqs *freqs);

/** Values of frequencies. The pointers are valid until the frequencies are destroyed. */
struct posenc_freqs_view {
    enum posenc_numerics numerics;
    int64_t dim, n_pairs;   /**< n_pairs = ceil(dim/2) */
    const double *omega;    /**< [n_pairs] radians per position, rounded once in every mode */
    const float *omega_f32; /**< [n_pairs]; in the operation order of HF_F32 or TORCH_EXP_F32 */
    /** [n_pairs] fractional part of the turns per position: (turn_hi + turn_lo / 2^64) / 2^64 */
    const uint64_t *turn_hi, *turn_lo;
    double attention_factor; /**< multiplies the cosines and sines of posenc_rope_table() */
    int32_t n_axes;          /**< of positions; 1 without mrope_section */
    const uint8_t *axis;     /**< [n_pairs]: the axis of each pair; NULL if there is one axis */
};

/**
 * @brief Fills a view of frequencies.
 * @param freqs  not NULL
 * @param view   receives the first `size` bytes of the view; members that this library lacks become 0
 * @param size   sizeof(struct posenc_freqs_view), as the caller sees it
 */
POSENC_API void posenc_freqs_view_get(const struct posenc_freqs *freqs,
                                      struct posenc_freqs_view *view, size_t size);

/** @brief Returns a view of frequencies. */
static inline struct posenc_freqs_view posenc_freqs_view_of(const struct posenc_freqs *freqs)
{
    struct posenc_freqs_view view;
    posenc_freqs_view_get(freqs, &view, sizeof view);
    return view;
}

/* ---- Kernels ---- */

/** Kernels. A number is never reused. */
enum POSENC_ENUM posenc_kernel {
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
    POSENC_KERNEL_COUNT,            /**< kernels of this header; a later one may have more */
    POSENC_KERNEL_NONE = 0x7fffffff /**< no kernel has this name */
};

/** A set of kernels for one instruction set: see posenc/backend.h. */
struct posenc_backend;

/**
 * @brief Writes the defaults of a kernel's arguments, and their size.
 *
 * The posenc_..._args_init() below call it. Other languages can call it directly.
 * @param kernel  any kernel that takes these arguments
 * @param args    receives the struct; all zero if there is no such kernel
 * @param size    size of the struct, as the caller sees it
 */
POSENC_API void posenc_args_defaults(enum posenc_kernel kernel, void *args, size_t size);

/** Order of sines and cosines in a row of a sinusoidal encoding. */
enum POSENC_ENUM posenc_layout {
    POSENC_LAYOUT_INTERLEAVED = 0, /**< sin, cos, sin, cos, ...; an odd dim ends in a sine */
    POSENC_LAYOUT_SIN_COS = 1, /**< all sines, then all cosines; an odd dim ends in a zero */
    /** All cosines, then all sines (diffusers: flip_sin_to_cos); likewise */
    POSENC_LAYOUT_COS_SIN = 2
};

/** Arguments of posenc_sinusoidal() and posenc_sinusoidal_add(). */
struct posenc_sinusoidal_args {
    size_t size;
    const struct posenc_freqs *freqs;
    enum posenc_layout layout;
    double scale;  /**< finite in f32, not 0 (default: 1) */
    float x_scale; /**< factor of x, such as sqrt(d_model) (default: 1) */
    struct posenc_positions positions;
    /** sinusoidal_add: as out, or left zero for in place. sinusoidal: zero. */
    struct posenc_const_tensor x;
    struct posenc_tensor out; /**< [batch, tokens, dim] or [tokens, dim] */
};
static inline struct posenc_sinusoidal_args posenc_sinusoidal_args_init(void)
{
    struct posenc_sinusoidal_args args;
    posenc_args_defaults(POSENC_KERNEL_SINUSOIDAL, &args, sizeof args);
    return args;
}

/**
 * @brief Compute sinusoidal encodings PE, as a table or added to activations.
 *
 *     sinusoidal      out[b,t,:] = scale PE(position(b,t))
 *     sinusoidal_add  out[b,t,:] = fma(x[b,t,:], x_scale, scale PE(position(b,t)))
 *
 * PE(p) has sin(p omega_i) and cos(p omega_i), in the order of `layout`. It is rounded to f32 before the fma, so
 * sinusoidal_add has the bits of a table that is added. Activations [tokens, batch, dim] are expressed by strides.
 * Counterparts: get_timestep_embedding() of diffusers, whose downscale_freq_shift is enum posenc_spacing;
 * ggml_timestep_embedding(), with POSENC_LAYOUT_COS_SIN; the position table of Whisper.
 *
 * Frequencies with POSENC_MROPE_LAYOUT_QWEN2_VL_VISION give an encoding with several axes, as the 2-D encodings of
 * MAE and DETR. The sections lie side by side. Section a has 2 mrope_section[a] columns in the layout above, at the
 * position on axis a. Other layouts of axes, and xPos, are for posenc_rope_table() alone: POSENC_ERR_ARGUMENT.
 *
 * @param backend  NULL for the selected one
 * @param args     dim of x and out is that of freqs. x and out are the same tensor, or do not overlap.
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, _SHAPE, _STRIDE, _DTYPE, _PARAMETER, _POSITION, _OVERLAP, _OVERFLOW
 *
 * Source: Vaswani et al. 1706.03762, section 3.5.
 */
POSENC_CHECKED enum posenc_status posenc_sinusoidal(const struct posenc_backend *backend,
                                                    const struct posenc_sinusoidal_args *args,
                                                    struct posenc_error *error);
POSENC_CHECKED enum posenc_status
posenc_sinusoidal_add(const struct posenc_backend *backend,
                      const struct posenc_sinusoidal_args *args, struct posenc_error *error);

/** Arguments of posenc_learned_add(). */
struct posenc_learned_args {
    size_t size;
    float x_scale; /**< factor of x (default: 1) */
    struct posenc_positions positions;
    struct posenc_const_tensor x;     /**< as out; left zero: in place */
    struct posenc_const_tensor table; /**< f32 [rows, dim] */
    struct posenc_tensor out;         /**< [batch, tokens, dim] or [tokens, dim] */
};
static inline struct posenc_learned_args posenc_learned_args_init(void)
{
    struct posenc_learned_args args;
    posenc_args_defaults(POSENC_KERNEL_LEARNED_ADD, &args, sizeof args);
    return args;
}

/**
 * @brief Adds rows of a learned table to activations: GPT-2, BERT, OPT (nn.Embedding; ggml_get_rows() and ggml_add()).
 *
 *     out[b,t,:] = fma(x[b,t,:], x_scale, table[position(b,t),:])
 *
 * @param backend  NULL for the selected one
 * @param args     x and out are the same tensor, or do not overlap. The table must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or the errors of posenc_sinusoidal_add(). A position outside [0, rows) is POSENC_ERR_POSITION:
 *         error->value is the position and error->most is rows - 1.
 */
POSENC_CHECKED enum posenc_status posenc_learned_add(const struct posenc_backend *backend,
                                                     const struct posenc_learned_args *args,
                                                     struct posenc_error *error);

/** Arguments of posenc_learned_grad(). */
struct posenc_learned_grad_args {
    size_t size;
    bool accumulate; /**< add to the values that out holds (default: false) */
    struct posenc_positions positions;
    /** gradient of the sum, [batch, tokens, dim] or [tokens, dim] */
    struct posenc_const_tensor x;
    struct posenc_tensor out; /**< f32 [rows, dim] */
};
static inline struct posenc_learned_grad_args posenc_learned_grad_args_init(void)
{
    struct posenc_learned_grad_args args;
    posenc_args_defaults(POSENC_KERNEL_LEARNED_GRAD, &args, sizeof args);
    return args;
}

/**
 * @brief Computes the gradient of a learned table.
 *
 * out[r,:] is the sum of x[b,t,:] over the tokens at position r, in ascending order of (b, t). The sum is f32 and
 * starts from +0, or with `accumulate` from out. The gradient of the activations is x_scale x.
 *
 * @param backend  NULL for the selected one
 * @param args     x and out must not overlap
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or the errors of posenc_learned_add()
 */
POSENC_CHECKED enum posenc_status
posenc_learned_grad(const struct posenc_backend *backend,
                    const struct posenc_learned_grad_args *args, struct posenc_error *error);

/** Arguments of posenc_rope_table(). */
struct posenc_rope_table_args {
    size_t size;
    const struct posenc_freqs *freqs; /**< of an even dim */
    struct posenc_positions positions;
    struct posenc_tensor cos, sin; /**< [batch, tokens, n_pairs] or [tokens, n_pairs] */
};
static inline struct posenc_rope_table_args posenc_rope_table_args_init(void)
{
    struct posenc_rope_table_args args;
    posenc_args_defaults(POSENC_KERNEL_ROPE_TABLE, &args, sizeof args);
    return args;
}

/**
 * @brief Computes the cosines and sines of rotary angles (ONNX: cos_cache and sin_cache; Hugging Face: rotary_emb()).
 *
 *     cos[b,t,i] = m cos(position(b,t) omega_i)      sin[b,t,i] = m sin(position(b,t) omega_i)
 *
 * m is the attention factor of the frequencies. EXACT rounds m cos once. The other modes round the cosine, then its
 * product with (float)m. The position is that on the axis of the pair if there are several. A row has n_pairs values;
 * Hugging Face repeats them to fill head_dim.
 *
 * @param backend  NULL for the selected one
 * @param args     cos and sin must not overlap; they may interleave, as in one [tokens, 2, n_pairs] array
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, _SHAPE, _STRIDE, _DTYPE, _ODD, _POSITION, _OVERLAP, _OVERFLOW
 *
 * Source: Su et al. 2104.09864, section 3.4.
 */
POSENC_CHECKED enum posenc_status posenc_rope_table(const struct posenc_backend *backend,
                                                    const struct posenc_rope_table_args *args,
                                                    struct posenc_error *error);

/** Arguments of posenc_rope_half() and posenc_rope_interleaved(). */
struct posenc_rope_args {
    size_t size;
    bool transpose;        /**< use -sin, as the gradient does (default: false) */
    int64_t rotary_offset; /**< first channel that is rotated (default: 0) */
    struct posenc_positions positions;
    struct posenc_const_tensor cos,
        sin; /**< [rows, rotary_dim/2], of one dtype. Positions are rows. */
    struct posenc_const_tensor x; /**< as out; left zero: in place */
    /** [batch, tokens, heads, head_dim] or [tokens, heads, head_dim] */
    struct posenc_tensor out;
};
static inline struct posenc_rope_args posenc_rope_args_init(void)
{
    struct posenc_rope_args args;
    posenc_args_defaults(POSENC_KERNEL_ROPE_HALF, &args, sizeof args);
    return args;
}

/**
 * @brief Rotate queries or keys by a table of cosines and sines.
 *
 *     y0 = x0 cos - x1 sin      y1 = x1 cos + x0 sin      (transpose: -sin)
 *
 * rope_half rotates the channels i and i + rotary_dim/2 together: rotate_half() of Hugging Face, GGML_ROPE_TYPE_NEOX,
 * ONNX RotaryEmbedding with interleaved=0. rope_interleaved rotates 2i and 2i + 1: Llama as published, GPT-J,
 * GGML_ROPE_TYPE_NORMAL, interleaved=1.
 *
 * rotary_dim is twice the last dimension of cos. Channels outside [rotary_offset, rotary_offset + rotary_dim) are
 * copied. x and out may have any strides but for the last dimension, so [batch, heads, tokens, head_dim] and a fused
 * QKV need no copy. cos and sin may be views of one [rows, rotary_dim] cache. Pass the first half of each row
 * of a full-width table of Hugging Face.
 *
 * @param backend  NULL for the selected one
 * @param args     x and out are the same tensor, or do not overlap. cos and sin must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, _SHAPE, _STRIDE, _DTYPE, _ROTARY_DIM, _POSITION, _OVERLAP, _OVERFLOW
 *
 * Source: Su et al. 2104.09864 (interleaved); GPT-NeoX, and Llama in Hugging Face's form (half).
 */
POSENC_CHECKED enum posenc_status posenc_rope_half(const struct posenc_backend *backend,
                                                   const struct posenc_rope_args *args,
                                                   struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_rope_interleaved(const struct posenc_backend *backend,
                                                          const struct posenc_rope_args *args,
                                                          struct posenc_error *error);

/** Arguments of posenc_rope_qk_norm(). */
struct posenc_rope_qk_norm_args {
    size_t size;
    float epsilon;         /**< at least 2^-64 (default: 1e-6) */
    float weight_offset;   /**< 1 for Gemma, which stores weight - 1 (default: 0) */
    bool across_heads;     /**< norm over all heads of a token, as in OLMo 2 (default: false) */
    int64_t rotary_offset; /**< first channel that is rotated (default: 0) */
    struct posenc_positions positions;
    struct posenc_const_tensor cos, sin; /**< as in posenc_rope_args */
    /** f32 [heads, head_dim] or [head_dim]; stride 0: all heads share it */
    struct posenc_const_tensor weight;
    struct posenc_const_tensor x; /**< as out; left zero: in place */
    /** [batch, tokens, heads, head_dim] or [tokens, heads, head_dim] */
    struct posenc_tensor out;
};
static inline struct posenc_rope_qk_norm_args posenc_rope_qk_norm_args_init(void)
{
    struct posenc_rope_qk_norm_args args;
    posenc_args_defaults(POSENC_KERNEL_ROPE_QK_NORM, &args, sizeof args);
    return args;
}

/**
 * @brief Applies an RMS norm to each head of queries or keys (q_norm, k_norm), then the rotation of posenc_rope_half().
 *
 *     r   = 1 / sqrt(s / n + epsilon)      s is the sum of x_i^2 over the n channels of the head
 *     v_i = (x_i r) (weight_i + weight_offset)
 *     y0  = v0 cos - v1 sin,   y1 = v1 cos + v0 sin       (rotated channels; the others are v)
 *
 * With across_heads, s covers all heads of the token and n = heads head_dim; the call must have all of them. n is at
 * most 2^24.
 *
 * Order of the sum: x_i^2 is added to partial sum i % 64 of its head, i ascending, by one fma if the backend fuses.
 * Then the upper half of the 64 sums is added to the lower half until one is left. Heads are added in ascending
 * order. Everything else is rounded one operation at a time. With m = ceil(head_dim / 64), plus heads - 1 across
 * heads, each v has a relative error of at most ((m + 8) / 2 + 5) 2^-24 and terms in 2^-48; 2^-25 more if nothing
 * fuses.
 *
 * Squares are f32. Beyond |x| = 1.8e19 / sqrt(n) their sum is infinite, r is 0, and finite channels become 0. An
 * infinite x becomes NaN. One NaN makes its whole norm NaN.
 *
 * @param backend  NULL for the selected one
 * @param args     x and out are the same tensor, or do not overlap. cos, sin and weight must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or the errors of posenc_rope_half(), or POSENC_ERR_PARAMETER (epsilon, weight_offset)
 *
 * Source: Zhang and Sennrich 1910.07467; Qwen3 2505.09388; Gemma 3 2503.19786; OLMo 2 2501.00656.
 */
POSENC_CHECKED enum posenc_status
posenc_rope_qk_norm(const struct posenc_backend *backend,
                    const struct posenc_rope_qk_norm_args *args, struct posenc_error *error);

/* ---- Inputs of learned encodings ---- */

/**
 * @brief Computes positions where some tokens are padding (fairseq, RoBERTa, OPT:
 * create_position_ids_from_input_ids()).
 *
 * A token has padding_idx plus the number of tokens so far, itself included. Padding has padding_idx.
 * @param mask       [batch, tokens], dense; 0 is padding
 * @param positions  [batch, tokens], dense; must not overlap mask
 * @param error      receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE, POSENC_ERR_POSITION (a result outside [0, 2^31))
 */
POSENC_CHECKED enum posenc_status
posenc_padding_positions(int64_t batch, int64_t tokens, const uint8_t *mask,
                         int64_t padding_idx, int32_t *positions, struct posenc_error *error);

/**
 * @brief Draws initial values of a learned table from N(0, sigma).
 *
 * Row r of the call is row first_row + r of the seed, whatever other rows are drawn. The bits are the same on every
 * platform.
 * @param dim    columns, 1 to 65536
 * @param sigma  standard deviation, above 0 and finite in f32
 * @param table  f32 [rows, dim], dense
 * @param error  receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE (dim, rows, or first_row + rows above 2^31),
 *         POSENC_ERR_PARAMETER (sigma)
 */
POSENC_CHECKED enum posenc_status posenc_learned_fill_normal(uint64_t seed, int64_t first_row,
                                                             int64_t rows, int64_t dim,
                                                             double sigma, float *table,
                                                             struct posenc_error *error);

/* ---- The rotation of a model ---- */

/** Channels of a head that are rotated together. */
enum POSENC_ENUM posenc_pairing {
    POSENC_PAIRING_HALF = 0,       /**< i and i + rotary_dim/2: posenc_rope_half() */
    POSENC_PAIRING_INTERLEAVED = 1 /**< 2i and 2i + 1: posenc_rope_interleaved() */
};

/**
 * The rotation of a model: its frequencies, and the cosines and sines of the positions that were needed so far.
 *
 * Any number of threads may use one object. It keeps rows from position 0 on, 512 at first, and twice as many when a
 * call needs more, up to 2^20. A row takes 4 rotary_dim bytes: up to 512 MiB with rotary_dim 128. Smaller tables are
 * freed with the object, so that there may be twice as much. Negative and larger positions, fractions, and positions
 * that differ by axis are computed for each call.
 */
struct posenc_rope;

/**
 * @brief Creates the rotation of a model.
 * @param spec     frequencies; spec->dim is rotary_dim, the number of channels that are rotated, even. With xPos,
 *                 queries and keys need two objects.
 * @param pairing  channels that are rotated together
 * @param rope     receives the object, which posenc_rope_destroy() frees
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or the errors of posenc_freqs_create(), or POSENC_ERR_ODD (spec->dim)
 */
POSENC_CHECKED enum posenc_status posenc_rope_create(const struct posenc_freqs_spec *spec,
                                                     enum posenc_pairing pairing,
                                                     struct posenc_rope **rope,
                                                     struct posenc_error *error);

/** @brief Frees an object that no thread is using; NULL is allowed. */
POSENC_API void posenc_rope_destroy(struct posenc_rope *rope);

/**
 * @brief Returns the frequencies of a rotation, which live as long as the object.
 * @param rope  not NULL
 */
POSENC_API const struct posenc_freqs *posenc_rope_freqs(const struct posenc_rope *rope);

/**
 * @brief Computes the rows of positions 0 ... n - 1 now, so that calls with such integers allocate nothing.
 *
 * Rows are rounded up to a power of two, at least 512.
 * @param n      0 to 2^20
 * @param error  receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_POSITION (n, or xPos overflows in one of these rows),
 *         POSENC_ERR_MEMORY
 */
POSENC_CHECKED enum posenc_status posenc_rope_reserve(struct posenc_rope *rope, int64_t n,
                                                      struct posenc_error *error);

/**
 * @brief Rotates queries and keys in place (Hugging Face: apply_rotary_pos_emb(); ggml: ggml_rope_ext_inplace()).
 *
 * q and k are [tokens, heads, head_dim] or [batch, tokens, heads, head_dim], with equal batch and tokens. Heads,
 * head_dim, dtype and strides may differ, so [batch, heads, tokens, head_dim] and the parts of a fused QKV need no
 * copy. The first rotary_dim channels of each head are rotated. To rotate other channels, as in MLA, pass a tensor
 * that begins there.
 *
 * @param rope       may be in use by other threads
 * @param positions  of the tokens, for q and k alike; NULL for 0, 1, 2, ... With a KV cache, the offset is the
 *                   number of tokens in it.
 * @param q, k       rotated in place; either may be NULL. They must not overlap, but may interleave by token or by
 *                   batch if both have the same stride there, in bytes. An example is one array [tokens, heads of q
 *                   + heads of k, head_dim].
 * @param error      receives the details of an error; may be NULL
 * @return POSENC_OK, or the errors of posenc_rope_half(), or POSENC_ERR_MEMORY. On an error neither q nor k has
 *         changed.
 */
POSENC_CHECKED enum posenc_status posenc_rope_apply(struct posenc_rope *rope,
                                                    const struct posenc_positions *positions,
                                                    const struct posenc_tensor *q,
                                                    const struct posenc_tensor *k,
                                                    struct posenc_error *error);

/**
 * @brief Does what posenc_rope_apply() does, with pointers to dense arrays.
 * @param dtype           of q and k
 * @param first_position  position of token 0; the other tokens follow
 * @param q               [tokens, q_heads, head_dim]; ignored if q_heads is 0
 * @param k               [tokens, k_heads, head_dim]; ignored if k_heads is 0
 * @param error           receives the details of an error; may be NULL
 * @return as posenc_rope_apply()
 */
POSENC_CHECKED enum posenc_status
posenc_rope_apply_dense(struct posenc_rope *rope, enum posenc_dtype dtype, int64_t tokens,
                        int64_t head_dim, int64_t first_position, void *q, int64_t q_heads,
                        void *k, int64_t k_heads, struct posenc_error *error);

/**
 * @brief Adds sinusoidal encodings to dense activations, in place: posenc_sinusoidal_add() with pointers.
 * @param dtype           of x
 * @param first_position  position of token 0; the other tokens follow
 * @param x_scale         factor of x: 1, or sqrt(d_model) if the model scales its embeddings
 * @param x               [tokens, dim], dim as in freqs
 * @param error           receives the details of an error; may be NULL
 * @return as posenc_sinusoidal_add()
 */
POSENC_CHECKED enum posenc_status
posenc_sinusoidal_add_dense(const struct posenc_freqs *freqs, enum posenc_layout layout,
                            enum posenc_dtype dtype, int64_t tokens, int64_t first_position,
                            float x_scale, void *x, struct posenc_error *error);

/* ---- Selection of a backend ---- */

/**
 * @brief Chooses the backends of calls whose backend is NULL.
 *
 * The choice is atomic. Calls that are running finish with the old one.
 *
 * NULL goes back to the environment, of which the first variable that is set applies, and to the features of the CPU:
 *   POSENC_BACKEND=NAME  exactly this backend
 *   POSENC_MAX_ISA=NAME  no backend that needs more of the CPU than this one
 *   POSENC_TUNING=FILE   the choices of a tuning file, which `posenc tune` writes
 * If the first two name no backend that can run, this call succeeds and calls of kernels fail. A tuning file that
 * cannot be used is ignored. posenc_selection_get() reports the reason.
 *
 * A text is the name of a backend, the content of a tuning file, or lines
 *     KERNEL BACKEND [DTYPE [BYTES]]
 * `#` begins a comment. A line with DTYPE (f32, f16, bf16) concerns calls whose out has it. A line with BYTES
 * concerns calls whose posenc_footprint() is at most that. The first line that matches a call applies. A kernel may
 * have 24 lines. If none of its lines matches, the CPU decides. A kernel without a line keeps the choice of NULL.
 *
 * A selection takes about 13 KiB, which are kept until the process ends.
 *
 * @param text   the choice; not kept
 * @param error  receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT (an invalid line), POSENC_ERR_UNKNOWN, POSENC_ERR_UNSUPPORTED (this CPU
 *         cannot run it, or the tuning file is of another CPU or build), POSENC_ERR_NOT_PROVIDED, POSENC_ERR_MEMORY.
 *         The selection is then unchanged.
 */
POSENC_CHECKED enum posenc_status posenc_select(const char *text, struct posenc_error *error);

/**
 * @brief Chooses the backend of one kernel, and leaves the others as they are.
 * @param kernel   kernel whose calls have a NULL backend
 * @param backend  backend for them, which has to live until the process ends; NULL for the choice of the environment
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT (no such kernel), POSENC_ERR_UNSUPPORTED, POSENC_ERR_NOT_PROVIDED,
 *         POSENC_ERR_MEMORY
 */
POSENC_CHECKED enum posenc_status posenc_select_backend(enum posenc_kernel kernel,
                                                        const struct posenc_backend *backend,
                                                        struct posenc_error *error);

/**
 * @brief Chooses as posenc_select() does with the content of a tuning file.
 * @param path   file that `posenc tune` wrote on this machine
 * @param error  receives the details of an error, with the line; may be NULL
 * @return as posenc_select(); POSENC_ERR_ARGUMENT if it cannot be read
 */
POSENC_CHECKED enum posenc_status posenc_load_tuning(const char *path,
                                                     struct posenc_error *error);

/**
 * @brief Returns the bytes that the tensors of a call hold.
 *
 * Outputs, x, c2p, p2c, and the tables of T5, window and distance biases count; x counts once if it is out.
 * Positions, cosines, sines and weights that are read, and a learned table, do not count.
 * @param kernel  kernel of the call
 * @param args    its arguments
 * @return number of bytes; 0 if args is NULL, its size is invalid, or there is no such kernel
 */
POSENC_API uint64_t posenc_footprint(enum posenc_kernel kernel, const void *args);

/** The backend of calls whose backend is NULL. */
struct posenc_selection {
    const struct posenc_backend *backend; /**< NULL if calls fail with `status` */
    enum posenc_status status;            /**< POSENC_OK, or the status that calls fail with */
    const char *reason; /**< such as "POSENC_BACKEND=avx2"; valid until the process ends */
};

/**
 * @brief Reports the backend of a call.
 * @param kernel     kernel of the call
 * @param dtype      dtype of its out
 * @param bytes      its posenc_footprint(); 0 gives the choice for the smallest calls
 * @param selection  receives the first `size` bytes
 * @param size       sizeof(struct posenc_selection), as the caller sees it
 */
POSENC_API void posenc_selection_get(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                     uint64_t bytes, struct posenc_selection *selection,
                                     size_t size);

/** @brief Returns what posenc_selection_get() reports. */
static inline struct posenc_selection
posenc_selection_of(enum posenc_kernel kernel, enum posenc_dtype dtype, uint64_t bytes)
{
    struct posenc_selection selection;
    posenc_selection_get(kernel, dtype, bytes, &selection, sizeof selection);
    return selection;
}

#undef POSENC_ENUM
#ifdef __cplusplus
}
#endif
#endif
