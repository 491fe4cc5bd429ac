/* Makes prompts from the arguments of calls, and writes answers to their outputs (see prompt.h). */
#include "prompt.h"
#include "base/text/text.h"
#include "conformance/problem/notation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names of safetensors. */
static const char *const stored_dtypes[] = {
    [POSENC_DTYPE_F32] = "F32", [POSENC_DTYPE_F16] = "F16", [POSENC_DTYPE_BF16] = "BF16"
};

/* ---- Dense tensors ---- */

/* Appends a tensor to the prompt, and returns its zeroed data; NULL if out of memory. */
static void *add_tensor(struct prompt *p, const char *name, const char *dtype, int rank,
                        const int64_t *shape)
{
    struct message_tensor tensor = message_tensor(name, dtype, rank, shape);
    void *data = arena_get(&p->arena, tensor.bytes + 1);
    tensor.data = data;
    p->message.tensors[p->message.n++] = tensor;
    return data;
}

/* Returns the canonical shape of an activation [batch, tokens, heads, channels] or of another tensor. */
static int canonical_shape(const struct prompt *p, const struct tensor_spec *spec,
                           const struct posenc_tensor *t, int64_t shape[4])
{
    const bool has_heads = spec->dims[2] == DIM_HEAD;
    if (kernel_on_scores(p->kernel) || t->rank != 4) {
        memcpy(shape, t->shape, sizeof t->shape);
        return t->rank;
    }
    shape[0] = t->shape[0] * t->shape[1];
    shape[1] = has_heads ? t->shape[2] : t->shape[3];
    shape[2] = has_heads ? t->shape[3] : 0;
    return has_heads ? 3 : 2;
}

/* Copies the rows of a tensor, from channel `skipped` on, to dense memory or from there. */
enum direction { GATHER, SCATTER };
static void copy_rows(const struct posenc_tensor *t, int64_t skipped, char *dense,
                      enum direction direction)
{
    const size_t item = storage_size(t->dtype),
                 bytes = (size_t)(t->shape[t->rank - 1] - skipped) * item;
    for (int64_t r = 0, n = bytes ? storage_rows(t) : 0; r < n; r++, dense += bytes) {
        char *row = (char *)storage_row(t, r) + (size_t)skipped * item;
        if (direction == GATHER)
            memcpy(dense, row, bytes);
        else
            memcpy(row, dense, bytes);
    }
}

static const struct posenc_tensor *tensor_at(const struct prompt *p,
                                             const struct tensor_spec *spec)
{
    return (const struct posenc_tensor *)(const void *)((const char *)p->args + spec->offset);
}

static int64_t skipped_channels(const struct prompt *p, const struct tensor_spec *spec)
{
    const bool has_channels = spec->role != ROLE_INPUT;
    return signature_of(p->kernel)->copies && has_channels ? p->problem.rotary_offset : 0;
}

static bool add_strided(struct prompt *p, const struct tensor_spec *spec,
                        const struct posenc_tensor *t, const char *name)
{
    const int64_t skipped = skipped_channels(p, spec);
    int64_t shape[4];
    const int rank = canonical_shape(p, spec, t, shape);
    shape[rank - 1] -= skipped;
    void *data = add_tensor(p, name, stored_dtypes[t->dtype], rank, shape);
    if (data)
        copy_rows(t, skipped, data, GATHER);
    return data;
}

/* ---- Positions ---- */

static const struct tensor_spec *find_spec(const struct prompt *p, enum argument_form form,
                                           enum tensor_role role)
{
    for (EACH_TENSOR(spec, signature_of(p->kernel)))
        if (spec->form == form && spec->role == role)
            return spec;
    return NULL;
}

/* Returns x or, without x, the first output, whose dimensions are those of the call. */
static const struct posenc_tensor *main_tensor(const struct prompt *p)
{
    return tensor_at(
        p, find_spec(p, FORM_TENSOR, kernel_takes_x(p->kernel) ? ROLE_X : ROLE_OUTPUT));
}

/* The tokens of a call, [batch, tokens], and their positions. */
struct tokens {
    int64_t batch, n;
    const struct posenc_positions *positions;
};

static struct tokens tokens_of(const struct prompt *p)
{
    const struct posenc_tensor *t = main_tensor(p);
    const size_t offset = find_spec(p, FORM_POSITIONS, ROLE_INPUT)->offset;
    return (struct tokens){ t->shape[0], t->shape[1],
                            (const void *)((const char *)p->args + offset) };
}

/* Returns a position as f64, which holds every accepted one. */
static double position_of(const struct tokens *tokens, int64_t b, int64_t t, int axis)
{
    const struct posenc_positions *p = tokens->positions;
    const int64_t at = b * p->stride_batch + t * p->stride_token + axis * p->stride_axis;
    switch (p->kind) {
    case POSENC_POSITIONS_OFFSET:
        return (double)(p->offset + t);
    case POSENC_POSITIONS_I32:
        return ((const int32_t *)p->data)[at];
    case POSENC_POSITIONS_I64:
        return (double)((const int64_t *)p->data)[at];
    case POSENC_POSITIONS_F32:
        break;
    }
    return (double)((const float *)p->data)[at];
}

/* Adds positions: [tokens], or [axes, tokens] if there are several axes. */
static bool add_positions(struct prompt *p, int axes)
{
    const struct tokens tokens = tokens_of(p);
    const int64_t all = tokens.batch * tokens.n, shape[2] = { axes, all };
    const bool real = tokens.positions->kind == POSENC_POSITIONS_F32;
    void *data = add_tensor(p, "positions", real ? "F32" : "I64", axes > 1 ? 2 : 1,
                            axes > 1 ? shape : shape + 1);
    for (int64_t i = 0; data && i < axes * all; i++) {
        const double position =
            position_of(&tokens, i % all / tokens.n, i % tokens.n, (int)(i / all));
        if (real)
            ((float *)data)[i] = (float)position;
        else
            ((int64_t *)data)[i] = (int64_t)position;
        p->farthest = (int64_t)fmax((double)p->farthest, ceil(fabs(position)));
    }
    return data;
}

/* Adds the row of cos or sin for each token, [tokens, pairs]; -sin for the transpose. */
static bool add_angles(struct prompt *p, const struct tensor_spec *spec)
{
    const struct posenc_tensor *t = tensor_at(p, spec);
    const struct tokens tokens = tokens_of(p);
    const int64_t all = tokens.batch * tokens.n, pairs = t->shape[1];
    const size_t item = storage_size(t->dtype);
    const bool negated = spec->stream == STREAM_SIN && p->problem.transpose;
    char *data =
        add_tensor(p, spec->name, stored_dtypes[t->dtype], 2, (const int64_t[]){ all, pairs });
    for (int64_t i = 0; data && i < all; i++) {
        char *to = data + (size_t)(i * pairs) * item;
        memcpy(to, storage_row(t, (int64_t)position_of(&tokens, i / tokens.n, i % tokens.n, 0)),
               (size_t)pairs * item);
        for (size_t end = item; negated && end <= (size_t)pairs * item; end += item)
            to[end - 1] = (char)(to[end - 1] ^ 0x80); /* the sign of every type */
    }
    return data;
}

/* ---- Frequencies ---- */

/* Adds inv_freq in the precision of the numerics mode, and the axis of each pair if there are several. */
static bool add_frequencies(struct prompt *p, const struct posenc_freqs_view *view)
{
    const bool exact = view->numerics == POSENC_NUMERICS_EXACT;
    const int64_t n = view->n_pairs;
    void *inv_freq = add_tensor(p, "inv_freq", exact ? "F64" : "F32", 1, &n);
    int32_t *axis = view->n_axes > 1 ? add_tensor(p, "axis", "I32", 1, &n) : NULL;
    for (int64_t i = 0; axis && i < n; i++)
        axis[i] = view->axis[i];
    if (inv_freq)
        memcpy(inv_freq, exact ? (const void *)view->omega : view->omega_f32,
               (size_t)n * (exact ? sizeof(double) : sizeof(float)));
    return inv_freq && (axis || view->n_axes < 2);
}

/* ---- Arrays ---- */

/* Adds an array of f32 or int32. Slopes that differ by batch have a stride. */
static bool add_array(struct prompt *p, const struct tensor_spec *spec)
{
    const bool is_shared = spec->shared && spec->shared(&p->problem);
    const enum dim *dims = spec->dims + is_shared;
    const int rank = tensor_dims(spec) - is_shared;
    const int64_t shape[2] = { problem_extent(&p->problem, dims[0]),
                               problem_extent(&p->problem, dims[1]) };
    const char *from = arguments_data(p->args, spec);
    int64_t stride = 0;
    if (spec->stride_batch)
        memcpy(&stride, (const char *)p->args + spec->stride_batch, sizeof stride);
    char *data =
        add_tensor(p, spec->name, spec->form == FORM_INTEGERS ? "I32" : "F32", rank, shape);
    const int64_t rows = rank == 2 ? shape[0] : 1, width = shape[rank - 1];
    for (int64_t r = 0; data && r < rows; r++)
        memcpy(data + r * width * 4, from + r * (stride ? stride : width) * 4,
               (size_t)width * 4);
    return data;
}

/* ---- Inputs and outputs ---- */

static bool add_input(struct prompt *p, const struct tensor_spec *spec)
{
    const bool is_angle = spec->stream == STREAM_COS || spec->stream == STREAM_SIN;
    if (spec->form == FORM_POSITIONS)
        return kernel_rotates(p->kernel) || signature_of(p->kernel)->freqs ||
               add_positions(p, 1);
    if (spec->form == FORM_TENSOR && kernel_rotates(p->kernel) && is_angle)
        return add_angles(p, spec);
    if (spec->form == FORM_TENSOR)
        return tensor_at(p, spec)->rank == 0 || /* absent */
               add_strided(p, spec, tensor_at(p, spec), spec->name);
    const bool follows = spec->size && spec->dims[0] == DIM_NONE; /* thresholds of t5 */
    return follows || add_array(p, spec);
}

static void add_output(struct prompt *p, const struct tensor_spec *spec)
{
    struct prompt_output *output = &p->outputs[p->n_outputs++];
    int64_t shape[4];
    output->to = *tensor_at(p, spec);
    output->skipped = skipped_channels(p, spec);
    const int rank = canonical_shape(p, spec, &output->to, shape);
    shape[rank - 1] -= output->skipped;
    output->form = message_tensor(spec->name, stored_dtypes[output->to.dtype], rank, shape);
}

/* ---- The problem ---- */

/* Sets the sizes to those of the call's tensors. Batches are part of the tokens. */
static void set_sizes(struct prompt *p)
{
    struct problem *problem = &p->problem;
    const struct posenc_tensor *t = main_tensor(p);
    if (kernel_on_scores(p->kernel)) {
        problem->batch = t->shape[0];
        problem->heads = t->shape[1];
        problem->queries = t->shape[2];
        problem->keys = t->shape[3];
        return;
    }
    problem->batch = 1;
    problem->tokens = t->shape[0] * t->shape[1];
    problem->heads = t->shape[2];
    problem->dim = t->shape[3] - skipped_channels(p, find_spec(p, FORM_TENSOR, ROLE_OUTPUT));
    for (EACH_TENSOR(spec, signature_of(p->kernel)))
        if (spec->stream == STREAM_COS && spec->role == ROLE_INPUT)
            problem->rotary_dim = 2 * tensor_at(p, spec)->shape[1];
}

/* ---- Metadata ---- */

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

/* Sets the metadata. `problem` is that of the line for people. */
static bool describe(struct prompt *p, const struct problem *problem, const char *case_id)
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

/* ---- All of it ---- */

static bool add_all_frequencies(struct prompt *p, const struct signature *s)
{
    const struct posenc_freqs *freqs;
    memcpy(&freqs, (const char *)p->args + s->freqs, sizeof freqs);
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    struct posenc_freqs_spec *spec = &p->problem.freqs;
    spec->numerics = view.numerics;
    spec->dim = view.dim;
    spec->attention_factor = view.attention_factor;
    if (view.n_axes == 1) /* sinusoids of several axes arrive one axis at a time */
        memset(spec->mrope_section, 0, sizeof spec->mrope_section);
    return add_positions(p, view.n_axes) && add_frequencies(p, &view);
}

bool prompt_make(struct prompt *p, enum posenc_kernel kernel, const void *args,
                 const struct problem *problem, const char *case_id)
{
    const struct signature *s = signature_of(kernel);
    *p = (struct prompt){ .kernel = kernel, .args = args, .problem = *problem };
    bool made = true;
    for (EACH_PARAMETER(parameter, s))
        parameter_load(parameter, p->args, &p->problem);
    set_sizes(p);
    if (s->freqs)
        made = add_all_frequencies(p, s);
    for (EACH_TENSOR(spec, s)) {
        const bool is_output = spec->role == ROLE_OUTPUT;
        const bool is_present = spec->role != ROLE_X || kernel_takes_x(kernel);
        if (is_output)
            add_output(p, spec);
        else if (is_present)
            made = made && add_input(p, spec);
        if (is_output && problem_accumulates(&p->problem))
            made = made && add_strided(p, spec, tensor_at(p, spec), "init");
    }
    return made && describe(p, problem, case_id);
}

void prompt_free(struct prompt *p)
{
    arena_free(&p->arena);
    message_free(&p->message);
}

/* ---- Answers ---- */

/* Copies the channels before rotary_offset, which the program did not see. */
static void copy_skipped(const struct prompt *p)
{
    const struct tensor_spec *spec = find_spec(p, FORM_TENSOR, ROLE_X);
    const struct prompt_output *output = &p->outputs[0];
    const struct posenc_tensor *x = spec ? tensor_at(p, spec) : NULL;
    const size_t bytes = (size_t)output->skipped * storage_size(output->to.dtype);
    for (int64_t r = 0, n = bytes && x ? storage_rows(x) : 0; r < n; r++)
        memmove(storage_row(&output->to, r), storage_row(x, r), bytes);
}

static bool has_output(const struct prompt *p, const char *name)
{
    for (int o = 0; o < p->n_outputs; o++)
        if (strcmp(p->outputs[o].form.name, name) == 0)
            return true;
    return false;
}

bool prompt_accept(const struct prompt *p, const struct message *answer,
                   char reason[MESSAGE_TEXT])
{
    char got[MESSAGE_TEXT], want[MESSAGE_TEXT];
    for (size_t i = 0; i < answer->n; i++)
        if (!has_output(p, answer->tensors[i].name))
            return notation_fail(reason, "it has a tensor '%s', expected '%s'%s",
                                 answer->tensors[i].name, p->outputs[0].form.name,
                                 p->n_outputs > 1 ? " and 'sin'" : "");
    for (int o = 0; o < p->n_outputs; o++) {
        const struct message_tensor *form = &p->outputs[o].form,
                                    *tensor = message_find(answer, form->name);
        message_describe(form, want);
        if (tensor)
            message_describe(tensor, got);
        if (!tensor || strcmp(got, want) != 0)
            return notation_fail(reason, "%s is %.60s, expected %.60s", form->name,
                                 tensor ? got : "missing", want);
    }
    copy_skipped(p);
    for (int o = 0; o < p->n_outputs; o++)
        copy_rows(&p->outputs[o].to, p->outputs[o].skipped,
                  (char *)(uintptr_t)message_find(answer, p->outputs[o].form.name)->data,
                  SCATTER);
    return true;
}

bool prompt_answer(struct prompt *p, struct message *answer)
{
    *answer = (struct message){ .metadata = json_object() };
    for (int o = 0; o < p->n_outputs; o++) {
        struct message_tensor tensor = p->outputs[o].form;
        char *data = arena_get(&p->arena, tensor.bytes + 1);
        if (!data)
            return false;
        copy_rows(&p->outputs[o].to, p->outputs[o].skipped, data, GATHER);
        tensor.data = data;
        answer->tensors[answer->n++] = tensor;
    }
    return answer->metadata;
}
