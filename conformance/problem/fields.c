/*
 * The table of fields, and which a kernel has: see fields.h.
 */
#include "fields.h"

#include "signature.h"

#include <stdio.h>
#include <string.h>

static const char *const recipe_names[] = { "mix", "onnx", "onnx_3d", "onnx_no_position_ids",
                                            NULL };
static const char *const kind_names[] = { "offset", "i32", "i64", "f32", NULL };

#define AT(member) offsetof(struct problem, member)
static const struct field shared[] = {
    { "dtype", FIELD_ENUM, AT(dtype), dtype_names, NULL },
    { "table_dtype", FIELD_ENUM, AT(table_dtype), dtype_names, NULL },
    { "values_dtype", FIELD_ENUM, AT(values), dtype_names, NULL },
    { "profile", FIELD_ENUM, AT(freqs.profile), profile_names, NULL },
    { "freq_convention", FIELD_ENUM, AT(freqs.convention), convention_names, NULL },
    { "scaling", FIELD_ENUM, AT(freqs.scaling), scaling_names, NULL },
    { "dim", FIELD_I64, AT(freqs.dim), NULL, NULL },
    { "rotary_dim", FIELD_I64, AT(freqs.dim), NULL, NULL },
    { "rope_theta", FIELD_F64, AT(freqs.rope_theta), NULL, NULL },
    { "factor", FIELD_F64, AT(freqs.factor), NULL, NULL },
    { "original_max_position_embeddings", FIELD_F64, AT(freqs.original_max_position_embeddings),
      NULL, NULL },
    { "low_freq_factor", FIELD_F64, AT(freqs.low_freq_factor), NULL, NULL },
    { "high_freq_factor", FIELD_F64, AT(freqs.high_freq_factor), NULL, NULL },
    { "beta_fast", FIELD_F64, AT(freqs.beta_fast), NULL, NULL },
    { "beta_slow", FIELD_F64, AT(freqs.beta_slow), NULL, NULL },
    { "truncate", FIELD_BOOL, AT(freqs.truncate), NULL, NULL },
    { "attention_factor", FIELD_F64, AT(freqs.attention_factor), NULL, NULL },
    { "mscale", FIELD_F64, AT(freqs.mscale), NULL, NULL },
    { "mscale_all_dim", FIELD_F64, AT(freqs.mscale_all_dim), NULL, NULL },
    { "max_position_embeddings", FIELD_F64, AT(freqs.max_position_embeddings), NULL, NULL },
    { "seq_len", FIELD_I64, AT(freqs.seq_len), NULL, NULL },
    { "partial_rotary_factor", FIELD_F64, AT(freqs.partial_rotary_factor), NULL, NULL },
    { "mrope_section", FIELD_SECTIONS, AT(freqs.mrope_section), NULL, NULL },
    { "mrope_layout", FIELD_ENUM, AT(freqs.mrope_layout), mrope_layout_names, NULL },
    { "mrope_grid", FIELD_I64, AT(mrope_grid), NULL, NULL },
    { "xpos_scale_base", FIELD_F64, AT(freqs.xpos_scale_base), NULL, NULL },
    { "xpos_centre", FIELD_F64, AT(freqs.xpos_centre), NULL, NULL },
    { "xpos_inverse", FIELD_BOOL, AT(freqs.xpos_inverse), NULL, NULL },
    { "short_factor", FIELD_FACTORS, AT(freqs.short_factor), NULL, NULL },
    { "long_factor", FIELD_FACTORS, AT(freqs.long_factor), NULL, NULL },
    { "short_factor_last", FIELD_F64, AT(short_factor_last), NULL, NULL },
    { "long_factor_last", FIELD_F64, AT(long_factor_last), NULL, NULL },
    { "inv_freq", FIELD_PAIRS, AT(freqs.values), NULL, NULL },
    { "layout", FIELD_ENUM, AT(layout), layout_names, NULL },
    { "scale", FIELD_F64, AT(scale), NULL, NULL },
    { "x_scale", FIELD_F32, AT(x_scale), NULL, NULL },
    { "batch", FIELD_I64, AT(batch), NULL, NULL },
    { "tokens", FIELD_I64, AT(tokens), NULL, NULL },
    { "heads", FIELD_I64, AT(heads), NULL, NULL },
    { "dim", FIELD_I64, AT(dim), NULL, NULL },
    { "head_dim", FIELD_I64, AT(dim), NULL, NULL },
    { "rotary_dim", FIELD_I64, AT(rotary_dim), NULL, NULL },
    { "rotary_offset", FIELD_I64, AT(rotary_offset), NULL, NULL },
    { "rows", FIELD_I64, AT(rows), NULL, NULL },
    { "queries", FIELD_I64, AT(queries), NULL, NULL },
    { "keys", FIELD_I64, AT(keys), NULL, NULL },
    { "query_offset", FIELD_I64, AT(query_offset), NULL, NULL },
    { "num_buckets", FIELD_I64, AT(num_buckets), NULL, NULL },
    { "position_buckets", FIELD_I64, AT(num_buckets), NULL, NULL },
    { "max_distance", FIELD_I64, AT(max_distance), NULL, NULL },
    { "alibi_bias_max", FIELD_F64, AT(alibi_bias_max), NULL, NULL },
    { "slopes_by_batch", FIELD_BOOL, AT(slopes_by_batch), NULL, NULL },
    { "window_height", FIELD_I64, AT(window_height), NULL, NULL },
    { "window_width", FIELD_I64, AT(window_width), NULL, NULL },
    { "window_class", FIELD_BOOL, AT(window_class), NULL, NULL },
    { "distances", FIELD_I64, AT(distances), NULL, NULL },
    { "relative", FIELD_ENUM, AT(relative), relative_names, NULL },
    { "without_c2p", FIELD_BOOL, AT(without_c2p), NULL, NULL },
    { "with_p2c", FIELD_BOOL, AT(with_p2c), NULL, NULL },
    { "accumulate", FIELD_BOOL, AT(accumulate), NULL, NULL },
    { "causal", FIELD_BOOL, AT(causal), NULL, NULL },
    { "bidirectional", FIELD_BOOL, AT(bidirectional), NULL, NULL },
    { "transpose", FIELD_BOOL, AT(transpose), NULL, NULL },
    { "position_kind", FIELD_ENUM, AT(position_kind), kind_names, NULL },
    { "position_offset", FIELD_I64, AT(first), NULL, NULL },
    { "positions", FIELD_POSITIONS, AT(positions), NULL, NULL },
    { "batch_shift", FIELD_I64, AT(batch_shift), NULL, NULL },
    { "time_step", FIELD_F64, AT(time_step), NULL, NULL },
    { "in_place", FIELD_BOOL, AT(in_place), NULL, NULL },
    { "token_major", FIELD_BOOL, AT(token_major), NULL, NULL },
    { "pad", FIELD_I64, AT(pad), NULL, NULL },
    { "offset_bytes", FIELD_I64, AT(offset_bytes), NULL, NULL },
    { "seed", FIELD_U64, AT(seed), NULL, NULL },
    { "special", FIELD_BOOL, AT(special), NULL, NULL },
    { "recipe", FIELD_ENUM, AT(recipe), recipe_names, NULL },
};
enum { N_SHARED = sizeof shared / sizeof *shared };

/* Whether a list of words has this one. */
static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* Two fields are called dim and rotary_dim: those of plans, and those of the others. */
static bool of_plan(const struct field *field)
{
    return field->offset >= AT(freqs) &&
           field->offset < AT(freqs) + sizeof(struct posenc_freqs_spec);
}

static bool words_apply(const struct field *field, enum posenc_kernel kernel)
{
    static const char every[] = "dtype batch in_place pad offset_bytes seed special";
    if (has_word(every, field->name))
        return true;
    const bool twin = has_word("dim rotary_dim", field->name);
    return has_word(signature_of(kernel)->fields, field->name) &&
           (!twin || of_plan(field) == kernel_has_plan(kernel));
}

/* Looked up once: each check of the suites notes its problem. */
static bool applies(const struct field *field, enum posenc_kernel kernel)
{
    enum { UNKNOWN, YES, NO };
    static _Atomic unsigned char known[POSENC_KERNEL_COUNT][N_SHARED];
    _Atomic unsigned char *answer = &known[kernel][field - shared];
    if (*answer == UNKNOWN)
        *answer = words_apply(field, kernel) ? YES : NO;
    return *answer == YES;
}

/* What the layout of each tensor has. */
static const struct field layout_fields[] = {
    { "pad", FIELD_I64, offsetof(struct tensor_layout, pad), NULL, NULL },
    { "offset_bytes", FIELD_I64, offsetof(struct tensor_layout, offset_bytes), NULL, NULL },
    { "stride", FIELD_STRIDES, offsetof(struct tensor_layout, n_strides), NULL, NULL },
};
enum { N_LAYOUT = sizeof layout_fields / sizeof *layout_fields };

/* Field i after those of the table. */
static bool further_field(const struct signature *s, int i, struct field *field)
{
    for (EACH_PARAMETER(own, s))
        if (own->name && i-- == 0) {
            *field = (struct field){ own->name, own->kind, own->from, own->names, NULL };
            return true;
        }
    for (EACH_TENSOR(row, s))
        for (int k = 0; k < N_LAYOUT; k++) {
            const bool has = row->form == FORM_TENSOR || row->form == FORM_POSITIONS;
            if (!has || i-- != 0)
                continue;
            *field = layout_fields[k];
            field->tensor = row->name;
            field->offset +=
                AT(layouts) + (size_t)(row - s->tensors) * sizeof(struct tensor_layout);
            return true;
        }
    return false;
}

bool kernel_field(enum posenc_kernel kernel, int i, struct field *field)
{
    for (int k = 0; k < N_SHARED; k++)
        if (applies(&shared[k], kernel) && i-- == 0) {
            *field = shared[k];
            return true;
        }
    return further_field(signature_of(kernel), i, field);
}

void field_name(const struct field *field, char name[FIELD_TEXT])
{
    snprintf(name, FIELD_TEXT, "%s%s%s", field->tensor ? field->tensor : "",
             field->tensor ? "." : "", field->name);
}

bool kernel_field_find(enum posenc_kernel kernel, const char *name, struct field *field)
{
    for (int k = 0; k < N_SHARED; k++)
        if (strcmp(shared[k].name, name) == 0 && applies(&shared[k], kernel)) {
            *field = shared[k];
            return true;
        }
    char other[FIELD_TEXT];
    for (int i = 0; further_field(signature_of(kernel), i, field); i++) {
        field_name(field, other);
        if (strcmp(name, other) == 0)
            return true;
    }
    return false;
}
