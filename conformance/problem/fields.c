/*
 * The table of fields, and which a kernel has: see fields.h.
 */
#include "fields.h"

#include "signature.h"
#include "spelling.h"

#include <stdio.h>
#include <string.h>

static const char *const recipe_names[] = { "mix", "onnx", "onnx_3d", "onnx_no_position_ids",
                                            NULL };
static const char *const kind_names[] = { "offset", "i32", "i64", "f32", NULL };

static const struct field shared[] = {
#include "fields.inc"
};
enum { N_SHARED = sizeof shared / sizeof *shared };

/* Two fields are called dim and rotary_dim: those of plans, and those of the others. */
static bool of_plan(const struct field *field)
{
    return field->offset >= MEMBER(freqs) &&
           field->offset < MEMBER(freqs) + sizeof(struct posenc_freqs_spec);
}

static bool words_apply(const struct field *field, enum posenc_kernel kernel)
{
    static const char every[] = "dtype batch in_place pad offset_bytes seed special";
    const size_t n = strlen(field->name);
    if (has_word(every, ' ', field->name, n))
        return true;
    const bool twin = has_word("dim rotary_dim", ' ', field->name, n);
    return has_word(signature_of(kernel)->fields, ' ', field->name, n) &&
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
    { .name = "pad", .offset = offsetof(struct tensor_layout, pad) },
    { .name = "offset_bytes", .offset = offsetof(struct tensor_layout, offset_bytes) },
    { .name = "stride",
      .list = LIST_STRIDES,
      .offset = offsetof(struct tensor_layout, n_strides) },
};
enum { N_LAYOUT = sizeof layout_fields / sizeof *layout_fields };

struct field parameter_field(const struct parameter *own)
{
    return (struct field){
        .name = own->name, .kind = own->kind, .offset = own->from, .names = own->names
    };
}

void field_name(const struct field *field, char name[FIELD_TEXT])
{
    snprintf(name, FIELD_TEXT, "%s%s%s", field->tensor ? field->tensor : "",
             field->tensor ? "." : "", field->name);
}

/* Whether a field is the one that is looked for: that of the name or, without one, the i-th. */
static bool is_sought(const struct field *field, const char *name, int *i)
{
    char own[FIELD_TEXT];
    if (!name)
        return (*i)-- == 0;
    if (!field->tensor)
        return strcmp(field->name, name) == 0;
    field_name(field, own);
    return strcmp(own, name) == 0;
}

static bool seek(enum posenc_kernel kernel, const char *name, int i, struct field *field)
{
    const struct signature *s = signature_of(kernel);
    for (const struct field *at = shared; at < shared + N_SHARED; at++) {
        *field = *at;
        if (applies(at, kernel) && is_sought(field, name, &i))
            return true;
    }
    for (EACH_PARAMETER(own, s)) {
        *field = parameter_field(own);
        if (own->name && is_sought(field, name, &i))
            return true;
    }
    for (EACH_TENSOR(row, s))
        for (int k = 0; k < N_LAYOUT; k++) {
            *field = layout_fields[k];
            field->tensor = row->name;
            field->offset +=
                MEMBER(layouts) + (size_t)(row - s->tensors) * sizeof(struct tensor_layout);
            if ((row->form == FORM_TENSOR || row->form == FORM_POSITIONS) &&
                is_sought(field, name, &i))
                return true;
        }
    return false;
}

bool kernel_field(enum posenc_kernel kernel, int i, struct field *field)
{
    return seek(kernel, NULL, i, field);
}

bool kernel_field_find(enum posenc_kernel kernel, const char *name, struct field *field)
{
    return seek(kernel, name, 0, field);
}
