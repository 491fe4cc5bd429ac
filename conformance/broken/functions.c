/*
 * Broken functions: see functions.h and broken.def.  Builders do what the real one does, its
 * refusals too, and then change what it made.
 */
#include "functions.h"

#include "broken.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

struct broken_functions broken_functions;

#define CALL(function, ...)                                                                    \
    return broken_functions.function                                                           \
               ? (broken_enter(), broken_functions.function(__VA_ARGS__))                      \
               : posenc_##function(__VA_ARGS__)

enum posenc_status broken_alibi_slopes(int64_t n_heads, double alibi_bias_max, float *slopes)
{
    CALL(alibi_slopes, n_heads, alibi_bias_max, slopes);
}

enum posenc_status broken_t5_thresholds(int64_t num_buckets, int64_t max_distance,
                                        bool bidirectional, int32_t *thresholds)
{
    CALL(t5_thresholds, num_buckets, max_distance, bidirectional, thresholds);
}

enum posenc_status broken_padding_positions(int64_t batch, int64_t tokens, const uint8_t *mask,
                                            int64_t padding_idx, int32_t *positions)
{
    CALL(padding_positions, batch, tokens, mask, padding_idx, positions);
}

enum posenc_status broken_swin_index(int64_t height, int64_t width, int32_t *index)
{
    CALL(swin_index, height, width, index);
}

enum posenc_status broken_beit_index(int64_t height, int64_t width, int32_t *index)
{
    CALL(beit_index, height, width, index);
}

enum posenc_status broken_shaw_index(int64_t queries, int64_t keys, int64_t query_offset,
                                     int64_t max_distance, int32_t *index)
{
    CALL(shaw_index, queries, keys, query_offset, max_distance, index);
}

enum posenc_status broken_transformer_xl_index(int64_t queries, int64_t keys, int32_t *index)
{
    CALL(transformer_xl_index, queries, keys, index);
}

enum posenc_status broken_deberta_index(int64_t queries, int64_t keys, int64_t query_offset,
                                        int64_t position_buckets, int64_t max_distance,
                                        int32_t *index)
{
    CALL(deberta_index, queries, keys, query_offset, position_buckets, max_distance, index);
}

enum posenc_status broken_sinusoidal(const struct posenc_backend *backend,
                                     const struct posenc_sinusoidal_args *args)
{
    CALL(sinusoidal, backend, args);
}

enum posenc_status broken_sinusoidal_add(const struct posenc_backend *backend,
                                         const struct posenc_sinusoidal_args *args)
{
    CALL(sinusoidal_add, backend, args);
}

void functions_install(struct subject *subject)
{
#define INSTALL(function) subject->function = broken_##function;
    BROKEN_FUNCTIONS(INSTALL)
#undef INSTALL
    subject->freqs_create = broken_freqs_create;
}

/* ---- Slopes ---- */

/* One geometric sequence however many heads, its exponents from h = `first` on. */
static enum posenc_status geometric(int64_t n_heads, double alibi_bias_max, int64_t first,
                                    float *slopes)
{
    enum posenc_status status = posenc_alibi_slopes(n_heads, alibi_bias_max, slopes);
    for (int64_t h = 0; status == POSENC_OK && h < n_heads; h++)
        slopes[h] = (float)exp2(-alibi_bias_max * (double)(h + first) / (double)n_heads);
    return status;
}

enum posenc_status slopes_from_zero(int64_t n_heads, double alibi_bias_max, float *slopes)
{
    bool power = (n_heads & (n_heads - 1)) == 0;
    return power ? geometric(n_heads, alibi_bias_max, 0, slopes)
                 : posenc_alibi_slopes(n_heads, alibi_bias_max, slopes);
}

enum posenc_status slopes_geometric(int64_t n_heads, double alibi_bias_max, float *slopes)
{
    return geometric(n_heads, alibi_bias_max, 1, slopes);
}

/* ---- T5 ---- */

/* Thresholds as a logarithm in floating point makes them: bucket exact + trunc(log(n/exact) /
 * log(max_distance/exact) (n_buckets - exact)). */
static enum posenc_status by_log(int64_t num_buckets, int64_t max_distance, bool bidirectional,
                                 float (*log_of)(float), int32_t *thresholds)
{
    enum posenc_status status =
        posenc_t5_thresholds(num_buckets, max_distance, bidirectional, thresholds);
    if (status != POSENC_OK)
        return status;
    const int64_t buckets = bidirectional ? num_buckets / 2 : num_buckets, exact = buckets / 2;
    const float all = (float)(buckets - exact), span = logf((float)max_distance / (float)exact);
    int64_t from = exact; /* the next threshold to find */
    for (int64_t n = exact; exact > 0 && n <= 2 * max_distance && from < buckets; n++) {
        int64_t bucket = exact + (int64_t)(log_of((float)n / (float)exact) / span * all);
        for (; from <= bucket && from < buckets; from++)
            thresholds[from] = (int32_t)n;
    }
    return status;
}

/* What is not above 1 has no logarithm below 0. */
static float low_log(float x) { return x > 1.0f ? nextafterf(logf(x), 0.0f) : 0.0f; }
enum posenc_status thresholds_low_log(int64_t num_buckets, int64_t max_distance,
                                      bool bidirectional, int32_t *thresholds)
{
    return by_log(num_buckets, max_distance, bidirectional, low_log, thresholds);
}

static float bf16_log(float x) { return round_to(POSENC_BF16, logf(x)); }
enum posenc_status thresholds_bf16_log(int64_t num_buckets, int64_t max_distance,
                                       bool bidirectional, int32_t *thresholds)
{
    return by_log(num_buckets, max_distance, bidirectional, bf16_log, thresholds);
}

/* ---- Padding ---- */

/* Token t of its batch: `count` tokens so far, this one included, of t + 1. */
typedef int64_t padded_position(bool token, int64_t count, int64_t t, int64_t padding_idx);

static enum posenc_status padded(int64_t batch, int64_t tokens, const uint8_t *mask,
                                 int64_t padding_idx, int32_t *positions,
                                 padded_position *position)
{
    enum posenc_status status =
        posenc_padding_positions(batch, tokens, mask, padding_idx, positions);
    for (int64_t b = 0; status == POSENC_OK && b < batch; b++)
        for (int64_t t = 0, count = 0; t < tokens; t++) {
            const bool token = mask[b * tokens + t] != 0;
            count += token;
            positions[b * tokens + t] = (int32_t)position(token, count, t, padding_idx);
        }
    return status;
}

static int64_t from_zero(bool token, int64_t count, int64_t t, int64_t padding_idx)
{
    (void)t;
    return token ? count - 1 : padding_idx;
}
enum posenc_status padding_from_zero(int64_t batch, int64_t tokens, const uint8_t *mask,
                                     int64_t padding_idx, int32_t *positions)
{
    return padded(batch, tokens, mask, padding_idx, positions, from_zero);
}

static int64_t counted(bool token, int64_t count, int64_t t, int64_t padding_idx)
{
    (void)count;
    return token ? padding_idx + t + 1 : padding_idx;
}
enum posenc_status padding_counted(int64_t batch, int64_t tokens, const uint8_t *mask,
                                   int64_t padding_idx, int32_t *positions)
{
    return padded(batch, tokens, mask, padding_idx, positions, counted);
}

static int64_t count_so_far(bool token, int64_t count, int64_t t, int64_t padding_idx)
{
    (void)token, (void)t;
    return padding_idx + count;
}
enum posenc_status padding_keeps_count(int64_t batch, int64_t tokens, const uint8_t *mask,
                                       int64_t padding_idx, int32_t *positions)
{
    return padded(batch, tokens, mask, padding_idx, positions, count_so_far);
}

/* ---- Windows ---- */

enum posenc_status swin_turned(int64_t height, int64_t width, int32_t *index)
{
    enum posenc_status status = posenc_swin_index(height, width, index);
    const int64_t n = height * width, rows = (2 * height - 1) * (2 * width - 1);
    for (int64_t i = 0; status == POSENC_OK && i < n * n; i++)
        index[i] = (int32_t)(rows - 1) - index[i];
    return status;
}

enum posenc_status swin_sides_swapped(int64_t height, int64_t width, int32_t *index)
{
    return posenc_swin_index(width, height, index);
}

enum posenc_status beit_class_swapped(int64_t height, int64_t width, int32_t *index)
{
    enum posenc_status status = posenc_beit_index(height, width, index);
    const int64_t n = height * width + 1, rows = (2 * height - 1) * (2 * width - 1);
    for (int64_t i = 0; status == POSENC_OK && i < n * n; i++)
        index[i] += index[i] == rows ? 1 : index[i] == rows + 1 ? -1 : 0;
    return status;
}

/* ---- Columns by relative position ---- */

static int64_t clip(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

enum posenc_status shaw_turned(int64_t queries, int64_t keys, int64_t query_offset,
                               int64_t max_distance, int32_t *index)
{
    enum posenc_status status =
        posenc_shaw_index(queries, keys, query_offset, max_distance, index);
    for (int64_t e = 0; status == POSENC_OK && e < queries + keys - 1; e++)
        index[e] = (int32_t)(2 * max_distance) - index[e];
    return status;
}

enum posenc_status shaw_short(int64_t queries, int64_t keys, int64_t query_offset,
                              int64_t max_distance, int32_t *index)
{
    enum posenc_status status =
        posenc_shaw_index(queries, keys, query_offset, max_distance, index);
    for (int64_t e = 0; status == POSENC_OK && e < queries + keys - 1; e++)
        index[e] = (int32_t)clip(index[e], 1, 2 * max_distance - 1);
    return status;
}

/* The table of sines in ascending order of distance, where it is made in descending order. */
enum posenc_status transformer_xl_ascending(int64_t queries, int64_t keys, int32_t *index)
{
    enum posenc_status status = posenc_transformer_xl_index(queries, keys, index);
    for (int64_t e = 0; status == POSENC_OK && e < queries + keys - 1; e++)
        index[e] = (int32_t)(keys - 1) - index[e];
    return status;
}

/* Shifted by one column too many. */
enum posenc_status transformer_xl_one_off(int64_t queries, int64_t keys, int32_t *index)
{
    enum posenc_status status = posenc_transformer_xl_index(queries, keys, index);
    for (int64_t e = 0; status == POSENC_OK && e < queries + keys - 1; e++)
        index[e] = (int32_t)clip(index[e] - 1, 0, keys - 1);
    return status;
}

/* What a log bucket of DeBERTa's is made from: a distance beyond m = position_buckets/2, m, and
 * max_distance. */
typedef int64_t far_bucket(int64_t distance, int64_t m, int64_t most);

static enum posenc_status buckets(int64_t queries, int64_t keys, int64_t query_offset,
                                  int64_t position_buckets, int64_t max_distance,
                                  int32_t *index, far_bucket *bucket)
{
    enum posenc_status status = posenc_deberta_index(queries, keys, query_offset,
                                                     position_buckets, max_distance, index);
    const int64_t m = position_buckets / 2, span = position_buckets;
    for (int64_t e = 0; status == POSENC_OK && m > 0 && e < queries + keys - 1; e++) {
        const int64_t distance = e - (keys - 1) + query_offset;
        if (llabs(distance) > m)
            index[e] = (int32_t)clip(bucket(distance, m, max_distance) + span, 0, 2 * span - 1);
    }
    return status;
}

/* How many buckets beyond m, as a real number; f64 is within 1e-9 of where it is whole. */
static double beyond(int64_t far, int64_t m, int64_t most)
{
    return log((double)far / (double)m) / log((double)(most - 1) / (double)m) * (double)(m - 1);
}

static int64_t rounded_up(double real) { return (int64_t)ceil(real - 1e-9); }

static int64_t with_sign(int64_t bucket, int64_t distance)
{
    return distance < 0 ? -bucket : bucket;
}

static int64_t truncated(int64_t distance, int64_t m, int64_t most)
{
    return with_sign((int64_t)(beyond(llabs(distance), m, most) + 1e-9) + m, distance);
}
enum posenc_status deberta_truncated(int64_t queries, int64_t keys, int64_t query_offset,
                                     int64_t position_buckets, int64_t max_distance,
                                     int32_t *index)
{
    return buckets(queries, keys, query_offset, position_buckets, max_distance, index,
                   truncated);
}

static int64_t unsigned_bucket(int64_t distance, int64_t m, int64_t most)
{
    return rounded_up(beyond(llabs(distance), m, most)) + m;
}
enum posenc_status deberta_unsigned(int64_t queries, int64_t keys, int64_t query_offset,
                                    int64_t position_buckets, int64_t max_distance,
                                    int32_t *index)
{
    return buckets(queries, keys, query_offset, position_buckets, max_distance, index,
                   unsigned_bucket);
}

/* The last distance before max_distance is a whole bucket, and its logarithm 1 ulp high. */
static int64_t high_log(int64_t distance, int64_t m, int64_t most)
{
    const float log_position = nextafterf(logf((float)llabs(distance) / (float)m), INFINITY) /
                               logf((float)(most - 1) / (float)m) * (float)(m - 1);
    return with_sign((int64_t)ceilf(log_position) + m, distance);
}
enum posenc_status deberta_high_log(int64_t queries, int64_t keys, int64_t query_offset,
                                    int64_t position_buckets, int64_t max_distance,
                                    int32_t *index)
{
    return buckets(queries, keys, query_offset, position_buckets, max_distance, index,
                   high_log);
}

/* Distances beyond the last cut to it first, as in the table of the authors' code. */
static int64_t clamped(int64_t distance, int64_t m, int64_t most)
{
    const int64_t far = clip(llabs(distance), 0, most - 1);
    return with_sign(rounded_up(beyond(far, m, most)) + m, distance);
}
enum posenc_status deberta_clamped(int64_t queries, int64_t keys, int64_t query_offset,
                                   int64_t position_buckets, int64_t max_distance,
                                   int32_t *index)
{
    return buckets(queries, keys, query_offset, position_buckets, max_distance, index, clamped);
}

enum posenc_status deberta_short(int64_t queries, int64_t keys, int64_t query_offset,
                                 int64_t position_buckets, int64_t max_distance, int32_t *index)
{
    enum posenc_status status = posenc_deberta_index(queries, keys, query_offset,
                                                     position_buckets, max_distance, index);
    const int64_t span = position_buckets > 0 ? position_buckets : max_distance;
    for (int64_t e = 0; status == POSENC_OK && e < queries + keys - 1; e++)
        index[e] = (int32_t)clip(index[e], 0, 2 * span - 2);
    return status;
}

/* ---- The front-end: encodings of several axes ---- */

/* Whether each axis has positions of its own. */
static bool has_axes(const struct posenc_sinusoidal_args *args)
{
    return args->freqs && posenc_freqs_view(args->freqs).n_axes > 1 &&
           args->positions.kind != POSENC_OFFSET && args->positions.stride_axis != 0;
}

/* The axes from the last one on: a picture's x where its y was meant. */
static struct posenc_sinusoidal_args swapped(const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    struct posenc_positions *p = &a.positions;
    if (has_axes(args)) {
        const int64_t last = posenc_freqs_view(args->freqs).n_axes - 1;
        const int64_t size = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
        p->data = (const char *)p->data + last * p->stride_axis * size;
        p->stride_axis = -p->stride_axis;
    }
    return a;
}

enum posenc_status sinusoidal_axes_swapped(const struct posenc_backend *backend,
                                           const struct posenc_sinusoidal_args *args)
{
    const struct posenc_sinusoidal_args a = swapped(args);
    return posenc_sinusoidal(backend, &a);
}

enum posenc_status sinusoidal_add_axes_swapped(const struct posenc_backend *backend,
                                               const struct posenc_sinusoidal_args *args)
{
    const struct posenc_sinusoidal_args a = swapped(args);
    return posenc_sinusoidal_add(backend, &a);
}

/* Frequencies that go on from one section to the next: theta^(-2i/dim) of the whole. */
static struct posenc_freqs *continued(const struct posenc_freqs_view *view, int64_t from,
                                      int64_t n)
{
    struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
    struct posenc_freqs *freqs = NULL;
    double *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; values && i < n; i++)
        values[i] = pow(1e4, -(double)(from + i) / (double)view->n_pairs);
    spec.dim = 2 * n;
    spec.profile = view->profile;
    spec.values = values;
    if (!values || posenc_freqs_create(&spec, &freqs, NULL) != POSENC_OK)
        exit(2);
    free(values);
    return freqs;
}

enum posenc_status sinusoidal_axes_continued(const struct posenc_backend *backend,
                                             const struct posenc_sinusoidal_args *args)
{
    enum posenc_status status = POSENC_OK;
    if (!has_axes(args))
        return posenc_sinusoidal(backend, args);
    const struct posenc_freqs_view view = posenc_freqs_view(args->freqs);
    for (int64_t from = 0, n; status == POSENC_OK && from < view.n_pairs; from += n) {
        struct posenc_sinusoidal_args part = *args;
        const int axis = view.axis[from];
        const int64_t size = args->positions.kind == POSENC_POSITIONS_I64 ? 8 : 4;
        for (n = 1; from + n < view.n_pairs && view.axis[from + n] == axis;)
            n++;
        struct posenc_freqs *freqs = continued(&view, from, n);
        part.freqs = freqs;
        part.positions.data =
            (const char *)part.positions.data + axis * part.positions.stride_axis * size;
        part.out.data =
            (char *)part.out.data + 2 * from * (int64_t)storage_size(part.out.dtype);
        part.out.shape[part.out.rank - 1] = 2 * n;
        status = posenc_sinusoidal(backend, &part);
        posenc_freqs_destroy(freqs);
    }
    return status;
}
