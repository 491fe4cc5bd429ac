/* Describes prompts in their metadata: parameters and expected outputs as JSON (see prompt.h). */
#include "prompt.h"
#include "base/text/text.h"
#include "conformance/problem/notation.h"

#include <stdlib.h>
#include <string.h>

json_t *prompt_parameter(const struct field *field, const struct problem *problem)
{
    json_t *list = json_array(), *value = list;
    for (int64_t i = 0; i < field_length(field, problem); i++) {
        const uint64_t bits = field_get(field, problem, i);
        json_array_append_new(list, field_is_real(field) ? json_real(bits_to_double(bits))
                                    : field->kind == FIELD_BOOL ? json_boolean(bits != 0)
                                    : field->kind == FIELD_ENUM
                                        ? json_string(field->names[bits])
                                        : json_integer((json_int_t)bits));
    }
    if (!field->list) {
        value = json_incref(json_array_get(list, 0));
        json_decref(list);
    }
    return value;
}

/* Fields that describe how posenc made the tensors of a call. */
static const char hidden_fields[] =
    "dtype table_dtype values_dtype position_kind position_offset positions batch_shift "
    "time_step token_major pad in_place woven offset_bytes seed special recipe scattered "
    "slopes_by_batch transpose mrope_grid inv_freq without_c2p with_p2c alibi_bias_max "
    "short_factor_last long_factor_last";

/* Returns true for fields that a prompt leaves out. A norm needs all channels of a head, so that rope_qk_norm has an
 * offset. */
static bool is_hidden(const struct prompt *p, const char *name)
{
    return text_has_word(hidden_fields, ' ', name, strlen(name)) ||
           (signature_of(p->kernel)->copies && strcmp(name, "rotary_offset") == 0);
}

static json_t *make_parameters(const struct prompt *p)
{
    const struct signature *s = signature_of(p->kernel);
    json_t *parameters = json_object();
    struct field field;
    for (int i = 0; kernel_field(p->kernel, i, &field); i++)
        if (!field.tensor && !is_hidden(p, field.name))
            json_object_set_new(parameters, field.name, prompt_parameter(&field, &p->problem));
    static const char *const sizes[] = { "batch", "heads", "queries", "keys" };
    for (int i = 0; i < 4 && kernel_on_scores(p->kernel); i++)
        if (kernel_field_find(POSENC_KERNEL_T5_BIAS_ADD, sizes[i], &field))
            json_object_set_new(parameters, sizes[i], prompt_parameter(&field, &p->problem));
    if (s->computed) { /* distance: the least one */
        int64_t first;
        memcpy(&first, (const char *)p->args + s->computed, sizeof first);
        json_object_set_new(parameters, "first", json_integer(first));
    }
    return parameters;
}

static json_t *make_outputs(const struct prompt *p)
{
    json_t *outputs = json_object();
    for (int o = 0; o < p->n_outputs; o++) {
        const struct message_tensor *form = &p->outputs[o].form;
        json_object_set_new(
            outputs, form->name,
            json_pack("{s:s,s:o}", "dtype", form->dtype, "shape", message_shape(form)));
    }
    return outputs;
}

static char *dump(json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    return text;
}

bool prompt_describe(struct prompt *p, const struct problem *problem, const char *case_id)
{
    enum { LONGEST = 8192 };
    char *parameters = dump(make_parameters(p)), *outputs = dump(make_outputs(p)),
         *line = malloc(LONGEST);
    if (line)
        notation_print(problem, NULL, line, LONGEST);
    const bool has_freqs = kernel_has_freqs(p->kernel);
    p->message.metadata =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "kernel", posenc_kernel_name(p->kernel),
                  "dtype", dtype_names[p->outputs[0].to.dtype], "numerics",
                  has_freqs ? numerics_names[p->problem.freqs.numerics] : "given", "parameters",
                  parameters, "outputs", outputs, "problem", line, "case", case_id);
    free(parameters);
    free(outputs);
    free(line);
    return p->message.metadata;
}
