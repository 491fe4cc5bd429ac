/*
 * Functions of the page of posenc explore, over the public interface of the library.
 *
 * The build compiles this file and the scalar backend to WebAssembly (reports/meson.build).  The page calls
 * the functions from lib.js, which names their arguments.  Numbers are int32_t or double, arrays are pointers
 * into linear memory, and names of enums are their values.  A function that can fail returns a status; 0 is
 * success.  error_text() describes the last failure.
 */
#include <posenc/backend.h>

#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

static struct posenc_error error;

/* ---- Memory and errors ---- */

EXPORT(take) void *take(int32_t bytes) { return malloc((size_t)bytes); }

EXPORT(drop) void drop(void *memory) { free(memory); }

EXPORT(error_text) const char *error_text(void)
{
    static char text[640];
    if (!*error.what)
        return posenc_status_string(error.status);
    posenc_error_text(&error, text, sizeof text);
    return text;
}

EXPORT(version) const char *version(void) { return posenc_version(); }

/* Forgets the last failure, for a call that is about to begin. */
static struct posenc_error *fresh_error(void)
{
    error = (struct posenc_error){ .status = POSENC_OK };
    return &error;
}

/* Keeps the status of functions that report no detail. */
static int32_t kept(enum posenc_status status)
{
    error.status = status;
    return (int32_t)status;
}

static const struct posenc_backend *scalar(void) { return posenc_backend_find("scalar"); }

/* ---- Frequencies ---- */

/* Members of struct posenc_freqs_spec that the page sets, each as a double, in this order. */
#define MEMBERS(MEMBER)                                                                        \
    MEMBER(numerics, enum posenc_numerics)                                                     \
    MEMBER(spacing, enum posenc_spacing)                                                       \
    MEMBER(scaling, enum posenc_scaling)                                                       \
    MEMBER(dim, int64_t)                                                                       \
    MEMBER(rope_theta, double)                                                                 \
    MEMBER(factor, double)                                                                     \
    MEMBER(original_max_position_embeddings, double)                                           \
    MEMBER(low_freq_factor, double)                                                            \
    MEMBER(high_freq_factor, double)                                                           \
    MEMBER(beta_fast, double)                                                                  \
    MEMBER(beta_slow, double)                                                                  \
    MEMBER(truncate, bool)                                                                     \
    MEMBER(attention_factor, double)                                                           \
    MEMBER(mscale, double)                                                                     \
    MEMBER(mscale_all_dim, double)                                                             \
    MEMBER(max_position_embeddings, double)                                                    \
    MEMBER(seq_len, int64_t)                                                                   \
    MEMBER(partial_rotary_factor, double)                                                      \
    MEMBER(mrope_section[0], int64_t)                                                          \
    MEMBER(mrope_section[1], int64_t)                                                          \
    MEMBER(mrope_section[2], int64_t)                                                          \
    MEMBER(mrope_layout, enum posenc_mrope_layout)                                             \
    MEMBER(xpos_scale_base, double)                                                            \
    MEMBER(xpos_centre, double)                                                                \
    MEMBER(xpos_inverse, bool)

/* Returns their names, separated by spaces. */
EXPORT(spec_names) const char *spec_names(void)
{
#define NAME(member, type) #member " "
    return MEMBERS(NAME);
}

EXPORT(spec_defaults) void spec_defaults(double *values)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
#define GET(member, type) *values++ = (double)spec.member;
    MEMBERS(GET)
}

/* Returns frequencies, or NULL.  The arrays are factors of LongRoPE and frequencies of the caller; each may be NULL. */
EXPORT(freqs_create)
struct posenc_freqs *freqs_create(const double *values, const double *short_factor,
                                  const double *long_factor, const double *omega)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
#define SET(member, type) spec.member = (type)*values++;
    MEMBERS(SET)
    spec.short_factor = short_factor;
    spec.long_factor = long_factor;
    spec.values = omega;
    return kept(posenc_freqs_create(&spec, &freqs, fresh_error())) ? NULL : freqs;
}

EXPORT(freqs_destroy) void freqs_destroy(struct posenc_freqs *freqs)
{
    posenc_freqs_destroy(freqs);
}

EXPORT(freqs_pairs) int32_t freqs_pairs(const struct posenc_freqs *freqs)
{
    return (int32_t)posenc_freqs_view_of(freqs).n_pairs;
}

EXPORT(freqs_attention_factor) double freqs_attention_factor(const struct posenc_freqs *freqs)
{
    return posenc_freqs_view_of(freqs).attention_factor;
}

/* Writes the frequencies of all pairs as f64 and f32, and the axis of the position that each pair uses. */
EXPORT(freqs_read)
void freqs_read(const struct posenc_freqs *freqs, double *omega, float *omega_f32,
                uint8_t *axis)
{
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    const size_t n = (size_t)view.n_pairs;
    memcpy(omega, view.omega, n * sizeof *omega);
    memcpy(omega_f32, view.omega_f32, n * sizeof *omega_f32);
    memset(axis, 0, n);
    if (view.axis)
        memcpy(axis, view.axis, n);
}

/* ---- Tables and rotations ---- */

/* Positions of tokens: from `first` on without an array, else int32_t or float by `kind`.  If the frequencies have
 * several axes, the array has a row for each. */
static struct posenc_positions positions_of(int32_t kind, double first, const void *data,
                                            int32_t axis_stride)
{
    return (struct posenc_positions){ .kind = (enum posenc_position_kind)kind,
                                      .offset = (int64_t)first,
                                      .data = data,
                                      .stride_axis = axis_stride };
}

static int32_t axis_stride(const struct posenc_freqs *freqs, int32_t tokens)
{
    return posenc_freqs_view_of(freqs).n_axes > 1 ? tokens : 0;
}

EXPORT(sinusoidal)
int32_t sinusoidal(const struct posenc_freqs *freqs, int32_t layout, double scale, int32_t kind,
                   double first, const void *positions, int32_t tokens, float *out)
{
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.freqs = freqs;
    args.layout = (enum posenc_layout)layout;
    args.scale = scale;
    args.positions = positions_of(kind, first, positions, axis_stride(freqs, tokens));
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, out, tokens, posenc_freqs_view_of(freqs).dim);
    return kept(posenc_sinusoidal(scalar(), &args, fresh_error()));
}

EXPORT(rope_table)
int32_t rope_table(const struct posenc_freqs *freqs, int32_t kind, double first,
                   const void *positions, int32_t tokens, float *cosines, float *sines)
{
    const int64_t pairs = posenc_freqs_view_of(freqs).n_pairs;
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.freqs = freqs;
    args.positions = positions_of(kind, first, positions, axis_stride(freqs, tokens));
    args.cos = posenc_tensor_2d(POSENC_DTYPE_F32, cosines, tokens, pairs);
    args.sin = posenc_tensor_2d(POSENC_DTYPE_F32, sines, tokens, pairs);
    return kept(posenc_rope_table(scalar(), &args, fresh_error()));
}

/* Rotates x [tokens, heads, head_dim].  Token t uses row first_row + t of the cosines and sines [rows, pairs],
 * or row index[t]. */
EXPORT(rotate)
int32_t rotate(int32_t pairing, int32_t transpose, int32_t tokens, int32_t heads,
               int32_t head_dim, int32_t rotary_offset, const float *cosines,
               const float *sines, int32_t rows, int32_t pairs, int32_t first_row,
               const int32_t *index, const float *x, float *out)
{
    struct posenc_rope_args args = posenc_rope_args_init();
    args.transpose = transpose != 0;
    args.rotary_offset = rotary_offset;
    args.positions = positions_of(index ? POSENC_POSITIONS_I32 : POSENC_POSITIONS_OFFSET,
                                  first_row, index, 0);
    args.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, cosines, rows, pairs);
    args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sines, rows, pairs);
    args.x = posenc_const_tensor_3d(POSENC_DTYPE_F32, x, tokens, heads, head_dim);
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, out, tokens, heads, head_dim);
    return kept(pairing == POSENC_PAIRING_HALF
                    ? posenc_rope_half(scalar(), &args, fresh_error())
                    : posenc_rope_interleaved(scalar(), &args, fresh_error()));
}

/* ---- Biases and indices ---- */

EXPORT(alibi_slopes) int32_t alibi_slopes(int32_t heads, double bias_max, float *slopes)
{
    return kept(posenc_alibi_slopes(heads, bias_max, slopes, fresh_error()));
}

EXPORT(alibi)
int32_t alibi(int32_t heads, int32_t queries, int32_t keys, int32_t query_offset,
              int32_t causal, const float *slopes, float *out)
{
    struct posenc_alibi_args args = posenc_alibi_args_init();
    args.slopes = slopes;
    args.causal = causal != 0;
    args.query_offset = query_offset;
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, out, heads, queries, keys);
    return kept(posenc_alibi(scalar(), &args, fresh_error()));
}

EXPORT(t5_thresholds)
int32_t t5_thresholds(int32_t num_buckets, int32_t max_distance, int32_t bidirectional,
                      int32_t *thresholds)
{
    struct posenc_t5_buckets buckets;
    return kept(posenc_t5_buckets_compute(num_buckets, max_distance, bidirectional != 0,
                                          thresholds, &buckets, fresh_error()));
}

/* The table is [num_buckets, heads]. */
EXPORT(t5_bias)
int32_t t5_bias(int32_t num_buckets, int32_t bidirectional, const int32_t *thresholds,
                const float *table, int32_t heads, int32_t queries, int32_t keys,
                int32_t query_offset, float *out)
{
    struct posenc_t5_args args = posenc_t5_args_init();
    args.buckets.num_buckets = num_buckets;
    args.buckets.bidirectional = bidirectional != 0;
    args.buckets.thresholds = thresholds;
    args.query_offset = query_offset;
    args.table = posenc_const_tensor_2d(POSENC_DTYPE_F32, table, num_buckets, heads);
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, out, heads, queries, keys);
    return kept(posenc_t5_bias(scalar(), &args, fresh_error()));
}

/* Writes index [n, n], n = height width, and one more with a class token (BEiT). */
EXPORT(window_index)
int32_t window_index(int32_t height, int32_t width, int32_t class_token, int32_t *index)
{
    return kept(class_token ? posenc_beit_index(height, width, index, fresh_error())
                            : posenc_swin_index(height, width, index, fresh_error()));
}

/* Writes index [queries + keys - 1]; element i - j + keys - 1 is that of query i and key j. */
EXPORT(deberta_index)
int32_t deberta_index(int32_t queries, int32_t keys, int32_t query_offset,
                      int32_t position_buckets, int32_t max_distance, int32_t *index)
{
    return kept(posenc_deberta_index(queries, keys, query_offset, position_buckets,
                                     max_distance, index, fresh_error()));
}

EXPORT(shaw_index)
int32_t shaw_index(int32_t queries, int32_t keys, int32_t query_offset, int32_t max_distance,
                   int32_t *index)
{
    return kept(
        posenc_shaw_index(queries, keys, query_offset, max_distance, index, fresh_error()));
}

/* ---- Numbers ---- */

/* Rounds n elements to a storage of 16 bits and back, in place; `half` has room for them. */
EXPORT(round_to) int32_t round_to(int32_t dtype, int32_t n, float *values, uint16_t *half)
{
    enum posenc_status status;
    if (dtype == POSENC_DTYPE_F16) {
        status = posenc_f32_to_f16(n, values, half, NULL);
        return kept(status ? status : posenc_f16_to_f32(n, half, values, fresh_error()));
    }
    status = posenc_f32_to_bf16(n, values, half, NULL);
    return kept(status ? status : posenc_bf16_to_f32(n, half, values, fresh_error()));
}

/* Writes values of N(0, sigma) [rows, dim], the same on every platform. */
EXPORT(normal)
int32_t normal(int32_t seed, int32_t rows, int32_t dim, double sigma, float *table)
{
    return kept(posenc_learned_fill_normal((uint64_t)(uint32_t)seed, 0, rows, dim, sigma, table,
                                           fresh_error()));
}
