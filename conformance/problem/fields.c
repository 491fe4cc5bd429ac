/*
 * The table of fields, the fields of each kernel, and the scaling families of scalings.txt; see
 * fields.h.
 */
#include "fields.h"
#include "columns.h"
#include "signature.h"
#include "base/text/text.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* In the order of enum recipe, enum woven and enum posenc_position_kind. */
static const char *const recipe_names[] = { "mix", "onnx",  "onnx_3d", "onnx_no_position_ids",
                                            "any", "edges", "index",   NULL };
static const char *const woven_names[] = { "none",   "rows",    "rows_swapped",
                                           "blocks", "tensors", NULL };
static const char *const position_kind_names[] = { "offset", "i32", "i64", "f32", NULL };

static const struct field shared_fields[] = {
#include "fields.inc"
};
enum { N_SHARED = sizeof shared_fields / sizeof *shared_fields };

/* Two pairs of fields share the names dim and rotary_dim. Returns true for those in freqs. */
static bool is_in_freqs(const struct field *field)
{
    return field->offset >= MEMBER(freqs) &&
           field->offset < MEMBER(freqs) + sizeof(struct posenc_freqs_spec);
}

static bool field_applies(const struct field *field, enum posenc_kernel kernel)
{
    static const char common[] = "dtype batch in_place pad offset_bytes seed special";
    const size_t n = strlen(field->name);
    if (has_word(common, ' ', field->name, n))
        return true;
    if (strcmp(field->name, "woven") == 0)
        return kernel_woven_row(kernel) != NULL;
    const bool shares_name = has_word("dim rotary_dim", ' ', field->name, n);
    return has_word(signature_of(kernel)->fields, ' ', field->name, n) &&
           (!shares_name || is_in_freqs(field) == kernel_has_freqs(kernel));
}

/* Fields of the layout of each tensor. */
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

/* ---- Fields of a kernel ---- */

enum { MOST_FIELDS = N_SHARED + MOST_PARAMETERS + MOST_TENSORS * N_LAYOUT };

/* Computed once, because each check of the suites prints its problem. */
static struct kernel_fields {
    int n;
    struct field fields[MOST_FIELDS];
} lists[POSENC_KERNEL_COUNT];

static void list_fields(struct kernel_fields *list, enum posenc_kernel kernel)
{
    const struct signature *s = signature_of(kernel);
    for (const struct field *at = shared_fields; at < shared_fields + N_SHARED; at++)
        if (field_applies(at, kernel))
            list->fields[list->n++] = *at;
    for (EACH_PARAMETER(own, s))
        if (own->name)
            list->fields[list->n++] = parameter_field(own);
    for (EACH_TENSOR(row, s))
        for (int k = 0; k < N_LAYOUT; k++) {
            struct field field = layout_fields[k];
            field.tensor = row->name;
            field.offset +=
                MEMBER(layouts) + (size_t)(row - s->tensors) * sizeof(struct tensor_layout);
            if (row->form == FORM_TENSOR || row->form == FORM_POSITIONS)
                list->fields[list->n++] = field;
        }
}

static void list_all_kernels(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        list_fields(&lists[k], (enum posenc_kernel)k);
}

static const struct kernel_fields *fields_of(enum posenc_kernel kernel)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list_all_kernels);
    return &lists[kernel];
}

bool kernel_field(enum posenc_kernel kernel, int i, struct field *field)
{
    const struct kernel_fields *list = fields_of(kernel);
    if (i < 0 || i >= list->n)
        return false;
    *field = list->fields[i];
    return true;
}

bool kernel_field_find(enum posenc_kernel kernel, const char *name, struct field *field)
{
    char full_name[FIELD_TEXT];
    const struct kernel_fields *list = fields_of(kernel);
    for (const struct field *at = list->fields; at < list->fields + list->n; at++) {
        if (at->tensor)
            field_name(at, full_name);
        if (strcmp(at->tensor ? full_name : at->name, name) == 0) {
            *field = *at;
            return true;
        }
    }
    return false;
}

/* ---- Scaling families ---- */

static const struct scaling_rows {
    const char *name, *profiles, *rope_type, *parameters, *unused; /* a fifth column */
} scaling_rows[] = {
#include "scalings.inc"
};

#undef ROW
#define ROW(name, ...) name,
const char *const scaling_names[] = {
#include "scalings.inc"
    NULL
};

const char *scaling_rope_type(enum posenc_scaling scaling)
{
    return *scaling_rows[scaling].rope_type ? scaling_rows[scaling].rope_type : NULL;
}

bool scaling_takes(enum posenc_scaling scaling, const char *parameter, size_t length)
{
    return has_word(scaling_rows[scaling].parameters, ' ', parameter, length);
}

bool scaling_in_profile(enum posenc_scaling scaling, enum posenc_profile profile)
{
    const char *name = profile_names[profile];
    return profile == POSENC_EXACT ||
           has_word(scaling_rows[scaling].profiles, ' ', name, strlen(name));
}
