/*
 * What both readers of golden vectors share: the list of parameters, memory, files.
 */
#include "vectors_fields.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char pack_magic[PACK_MAGIC + 1] = "posenc.vectors/1";

static const char *const recipe_names[] = { "mix", "onnx", "onnx_3d", "onnx_no_position_ids",
                                            NULL };
static const char *const kind_names[] = { "offset", "i32", "i64", "f32", NULL };

enum {
    SINE = 1 << SIGNATURE_sinusoidal,
    LEARNED = 1 << SIGNATURE_learned,
    GRAD = 1 << SIGNATURE_learned_grad,
    TABLE = 1 << SIGNATURE_rope_table,
    ROPE = 1 << SIGNATURE_rope,
    ALIBI = 1 << SIGNATURE_alibi,
    T5 = 1 << SIGNATURE_t5,
    DISTANCE = 1 << SIGNATURE_distance,
    WINDOW = 1 << SIGNATURE_window,
    TERMS = 1 << SIGNATURE_relative,
    SUM = 1 << SIGNATURE_relative_sum,
    PLAN = SINE | TABLE,
    TOKENS = PLAN | LEARNED | GRAD | ROPE,
    RELATIVE = TERMS | SUM,
    SCORES = ALIBI | T5 | DISTANCE | WINDOW | RELATIVE,
    LINES = SCORES & ~WINDOW, /* queries and keys are as many as one likes */
    ALL = TOKENS | SCORES,
};

#define AT(member) offsetof(struct problem, member)
const struct field problem_fields[N_FIELDS] = {
    { "dtype", FIELD_ENUM, AT(dtype), ALL, dtype_names },
    { "table_dtype", FIELD_ENUM, AT(table_dtype), ROPE, dtype_names },
    { "values_dtype", FIELD_ENUM, AT(values), ALL & ~TABLE, dtype_names },
    { "profile", FIELD_ENUM, AT(freqs.profile), PLAN, profile_names },
    { "freq_convention", FIELD_ENUM, AT(freqs.convention), PLAN, convention_names },
    { "scaling", FIELD_ENUM, AT(freqs.scaling), PLAN, scaling_names },
    { "dim", FIELD_I64, AT(freqs.dim), SINE, NULL },
    { "rotary_dim", FIELD_I64, AT(freqs.dim), TABLE, NULL },
    { "rope_theta", FIELD_F64, AT(freqs.rope_theta), PLAN, NULL },
    { "factor", FIELD_F64, AT(freqs.factor), PLAN, NULL },
    { "original_max_position_embeddings", FIELD_F64, AT(freqs.original_max_position_embeddings),
      PLAN, NULL },
    { "low_freq_factor", FIELD_F64, AT(freqs.low_freq_factor), PLAN, NULL },
    { "high_freq_factor", FIELD_F64, AT(freqs.high_freq_factor), PLAN, NULL },
    { "beta_fast", FIELD_F64, AT(freqs.beta_fast), PLAN, NULL },
    { "beta_slow", FIELD_F64, AT(freqs.beta_slow), PLAN, NULL },
    { "truncate", FIELD_BOOL, AT(freqs.truncate), PLAN, NULL },
    { "attention_factor", FIELD_F64, AT(freqs.attention_factor), PLAN, NULL },
    { "mscale", FIELD_F64, AT(freqs.mscale), PLAN, NULL },
    { "mscale_all_dim", FIELD_F64, AT(freqs.mscale_all_dim), PLAN, NULL },
    { "max_position_embeddings", FIELD_F64, AT(freqs.max_position_embeddings), PLAN, NULL },
    { "seq_len", FIELD_I64, AT(freqs.seq_len), PLAN, NULL },
    { "partial_rotary_factor", FIELD_F64, AT(freqs.partial_rotary_factor), PLAN, NULL },
    { "mrope_section_t", FIELD_I64, AT(freqs.mrope_section[0]), PLAN, NULL },
    { "mrope_section_h", FIELD_I64, AT(freqs.mrope_section[1]), PLAN, NULL },
    { "mrope_section_w", FIELD_I64, AT(freqs.mrope_section[2]), PLAN, NULL },
    { "mrope_layout", FIELD_ENUM, AT(freqs.mrope_layout), PLAN, mrope_layout_names },
    { "mrope_grid", FIELD_I64, AT(mrope_grid), PLAN, NULL },
    { "xpos_scale_base", FIELD_F64, AT(freqs.xpos_scale_base), TABLE, NULL },
    { "xpos_centre", FIELD_F64, AT(freqs.xpos_centre), TABLE, NULL },
    { "xpos_inverse", FIELD_BOOL, AT(freqs.xpos_inverse), TABLE, NULL },
    { "short_factor_last", FIELD_F64, AT(short_factor_last), PLAN, NULL },
    { "long_factor_last", FIELD_F64, AT(long_factor_last), PLAN, NULL },
    { "layout", FIELD_ENUM, AT(layout), SINE, layout_names },
    { "scale", FIELD_F64, AT(scale), SINE | TERMS, NULL },
    { "x_scale", FIELD_F32, AT(x_scale), SINE | LEARNED | (SCORES & ~SUM), NULL },
    { "batch", FIELD_I64, AT(batch), ALL, NULL },
    { "tokens", FIELD_I64, AT(tokens), TOKENS, NULL },
    { "heads", FIELD_I64, AT(heads), ROPE | SCORES, NULL },
    { "dim", FIELD_I64, AT(dim), LEARNED | GRAD, NULL },
    { "head_dim", FIELD_I64, AT(dim), ROPE, NULL },
    { "rotary_dim", FIELD_I64, AT(rotary_dim), ROPE, NULL },
    { "rotary_offset", FIELD_I64, AT(rotary_offset), ROPE, NULL },
    { "rows", FIELD_I64, AT(rows), LEARNED | GRAD | ROPE, NULL },
    { "queries", FIELD_I64, AT(queries), LINES, NULL },
    { "keys", FIELD_I64, AT(keys), LINES, NULL },
    { "query_offset", FIELD_I64, AT(query_offset), LINES, NULL },
    { "num_buckets", FIELD_I64, AT(num_buckets), T5, NULL },
    { "position_buckets", FIELD_I64, AT(num_buckets), RELATIVE, NULL },
    { "max_distance", FIELD_I64, AT(max_distance), T5 | RELATIVE, NULL },
    { "alibi_bias_max", FIELD_F64, AT(alibi_bias_max), ALIBI, NULL },
    { "slopes_by_batch", FIELD_BOOL, AT(slopes_by_batch), ALIBI, NULL },
    { "window_height", FIELD_I64, AT(window_height), WINDOW, NULL },
    { "window_width", FIELD_I64, AT(window_width), WINDOW, NULL },
    { "window_class", FIELD_BOOL, AT(window_class), WINDOW, NULL },
    { "distances", FIELD_I64, AT(distances), DISTANCE, NULL },
    { "relative", FIELD_ENUM, AT(relative), RELATIVE, relative_names },
    { "without_c2p", FIELD_BOOL, AT(without_c2p), TERMS, NULL },
    { "with_p2c", FIELD_BOOL, AT(with_p2c), TERMS, NULL },
    { "accumulate", FIELD_BOOL, AT(accumulate), GRAD, NULL },
    { "causal", FIELD_BOOL, AT(causal), ALIBI, NULL },
    { "bidirectional", FIELD_BOOL, AT(bidirectional), T5, NULL },
    { "transpose", FIELD_BOOL, AT(transpose), ROPE, NULL },
    { "position_kind", FIELD_ENUM, AT(position_kind), TOKENS, kind_names },
    { "position_offset", FIELD_I64, AT(first), TOKENS, NULL },
    { "batch_shift", FIELD_I64, AT(batch_shift), TOKENS, NULL },
    { "time_step", FIELD_F64, AT(time_step), PLAN, NULL },
    { "in_place", FIELD_BOOL, AT(in_place), ALL, NULL },
    { "token_major", FIELD_BOOL, AT(token_major), TOKENS, NULL },
    { "pad", FIELD_I64, AT(pad), ALL, NULL },
    { "offset_bytes", FIELD_I64, AT(offset_bytes), ALL, NULL },
    { "seed", FIELD_U64, AT(seed), ALL, NULL },
    { "special", FIELD_BOOL, AT(special), ALL, NULL },
    { "recipe", FIELD_ENUM, AT(recipe), ROPE, recipe_names },
};

bool field_applies(const struct field *field, enum posenc_kernel kernel)
{
    return (field->signatures >> kernel_signature(kernel) & 1) != 0;
}

struct problem problem_blank(enum posenc_kernel kernel)
{
    return (struct problem){
        .kernel = kernel,
        .freqs = POSENC_FREQS_SPEC,
        .scale = 1.0,
        .x_scale = 1.0f,
        .batch = 1,
        .alibi_bias_max = 8.0,
    };
}

double bits_to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t double_to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint64_t field_get(const struct field *field, const struct problem *problem)
{
    const char *at = (const char *)problem + field->offset;
    uint64_t bits;
    bool flag;
    float narrow;
    int member;
    switch (field->kind) {
    case FIELD_BOOL:
        memcpy(&flag, at, sizeof flag);
        return flag;
    case FIELD_F32:
        memcpy(&narrow, at, sizeof narrow);
        return double_to_bits((double)narrow);
    case FIELD_ENUM:
        memcpy(&member, at, sizeof member);
        return (uint64_t)member;
    case FIELD_I64:
    case FIELD_U64:
    case FIELD_F64:
        break;
    }
    memcpy(&bits, at, sizeof bits);
    return bits;
}

void field_set(const struct field *field, struct problem *problem, uint64_t bits)
{
    char *at = (char *)problem + field->offset;
    const bool flag = bits != 0;
    const int member = (int)bits;
    switch (field->kind) {
    case FIELD_BOOL:
        memcpy(at, &flag, sizeof flag);
        return;
    case FIELD_F32: {
        const float narrow = (float)bits_to_double(bits);
        memcpy(at, &narrow, sizeof narrow);
        return;
    }
    case FIELD_ENUM:
        memcpy(at, &member, sizeof member);
        return;
    case FIELD_I64:
    case FIELD_U64:
    case FIELD_F64:
        memcpy(at, &bits, sizeof bits);
    }
}

/* ---- Memory and files ---- */

struct kept {
    struct kept *next;
    double data[]; /* aligned for any of ours */
};

void *vectors_keep(struct vectors *vectors, size_t bytes)
{
    struct kept *kept = calloc(1, sizeof *kept + bytes);
    if (!kept)
        return NULL;
    kept->next = vectors->memory;
    vectors->memory = kept;
    return kept->data;
}

void vectors_free(struct vectors *vectors)
{
    for (struct kept *kept = vectors->memory, *next; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
    *vectors = (struct vectors){ .n = 0 };
}

void *vectors_read_file(struct vectors *vectors, const char *path, size_t *bytes, char *error)
{
    errno = 0;
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0 && size < LONG_MAX && fseek(file, 0, SEEK_SET) == 0)
        data = vectors_keep(vectors, (size_t)size + 1);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size)
        data = NULL;
    if (!data)
        snprintf(error, VECTORS_ERROR, "%s: cannot be read: %s", path,
                 errno ? strerror(errno) : "it is too short or no file");
    else
        *bytes = (size_t)size;
    if (file)
        fclose(file);
    return data;
}
