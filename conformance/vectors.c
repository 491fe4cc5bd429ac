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

static const char *const dtype_names[] = { "f32", NULL };
static const char *const recipe_names[] = { "mix", "onnx", "onnx_3d", "onnx_no_position_ids",
                                            NULL };
static const char *const kind_names[] = { "offset", "i32", "i64", "f32", NULL };

enum {
    SINE = 1 << SIGNATURE_sinusoidal,
    LEARNED = 1 << SIGNATURE_learned,
    TABLE = 1 << SIGNATURE_rope_table,
    ROPE = 1 << SIGNATURE_rope,
    ALIBI = 1 << SIGNATURE_alibi,
    T5 = 1 << SIGNATURE_t5,
    PLAN = SINE | TABLE,
    TOKENS = SINE | LEARNED | TABLE | ROPE,
    SCORES = ALIBI | T5,
    ALL = TOKENS | SCORES,
};

#define AT(member) offsetof(struct problem, member)
const struct field problem_fields[N_FIELDS] = {
    { "dtype", FIELD_ENUM, AT(dtype), ALL, dtype_names },
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
    { "mrope_section_t", FIELD_I64, AT(freqs.mrope_section[0]), TABLE, NULL },
    { "mrope_section_h", FIELD_I64, AT(freqs.mrope_section[1]), TABLE, NULL },
    { "mrope_section_w", FIELD_I64, AT(freqs.mrope_section[2]), TABLE, NULL },
    { "mrope_layout", FIELD_ENUM, AT(freqs.mrope_layout), TABLE, mrope_layout_names },
    { "mrope_grid", FIELD_I64, AT(mrope_grid), TABLE, NULL },
    { "short_factor_last", FIELD_F64, AT(short_factor_last), PLAN, NULL },
    { "long_factor_last", FIELD_F64, AT(long_factor_last), PLAN, NULL },
    { "layout", FIELD_ENUM, AT(layout), SINE, layout_names },
    { "scale", FIELD_F64, AT(scale), SINE, NULL },
    { "x_scale", FIELD_F32, AT(x_scale), SINE | LEARNED | SCORES, NULL },
    { "batch", FIELD_I64, AT(batch), ALL, NULL },
    { "tokens", FIELD_I64, AT(tokens), TOKENS, NULL },
    { "heads", FIELD_I64, AT(heads), ROPE | SCORES, NULL },
    { "dim", FIELD_I64, AT(dim), LEARNED, NULL },
    { "head_dim", FIELD_I64, AT(dim), ROPE, NULL },
    { "rotary_dim", FIELD_I64, AT(rotary_dim), ROPE, NULL },
    { "rows", FIELD_I64, AT(rows), LEARNED | ROPE, NULL },
    { "queries", FIELD_I64, AT(queries), SCORES, NULL },
    { "keys", FIELD_I64, AT(keys), SCORES, NULL },
    { "query_offset", FIELD_I64, AT(query_offset), SCORES, NULL },
    { "num_buckets", FIELD_I64, AT(num_buckets), T5, NULL },
    { "max_distance", FIELD_I64, AT(max_distance), T5, NULL },
    { "alibi_bias_max", FIELD_F64, AT(alibi_bias_max), ALIBI, NULL },
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
