/* Edits the copy of a call for a mistake, and compares values with those that it predicts. */
#include "hypothesis.h"

#include "conformance/problem/signature.h"
#include "base/text/text.h"

#include <math.h>
#include <string.h>

/* ---- Fields ---- */

static double edited_value(const struct field_edit *edit, double value)
{
    switch (edit->kind) {
    case EDIT_SET:
        return edit->value;
    case EDIT_ADD:
        return value + edit->value;
    case EDIT_POWER:
        return pow(value, edit->value);
    case EDIT_NOT:
        return value == 0.0 ? 1.0 : 0.0;
    case EDIT_MAGNITUDE:
        return fabs(value);
    case EDIT_AT_LEAST:
        return fmax(value, edit->value);
    case EDIT_AT_MOST:
        return fmin(value, edit->value);
    }
    return value;
}

bool field_edit_apply(const struct field_edit *edit, struct problem *problem)
{
    struct field field;
    if (!kernel_field_find(problem->kernel, edit->field, &field) || field.list != LIST_NONE)
        return false;
    field_set_number(&field, problem, edited_value(edit, field_number(&field, problem)));
    return true;
}

/* ---- Edits of a call ---- */

float *hypothesis_copy(struct hypothesis *h, const float *values, int64_t n)
{
    float *copy = arena_get(&h->arena, (size_t)n * sizeof *copy);
    return copy ? memcpy(copy, values, (size_t)n * sizeof *copy) : NULL;
}

static enum posenc_dtype rounding_of(const struct hypothesis *h)
{
    return h->mistake->type == TYPE_OF_X ? h->call->problem.dtype
                                         : (enum posenc_dtype)h->mistake->type;
}

double hypothesis_round(const struct hypothesis *h, double value)
{
    return (double)storage_round(rounding_of(h), (float)value);
}

bool hypothesis_rounds(struct hypothesis *h)
{
    return h->call->problem.dtype !=
           (h->mistake->type == TYPE_OF_X ? POSENC_DTYPE_F32 : rounding_of(h));
}

bool hypothesis_remove_x(struct hypothesis *h)
{
    const struct output *out = &h->call->outputs[0];
    const size_t n = (size_t)(out->rows * out->width);
    if (kernel_adds_onto_x(h->call->problem.kernel))
        h->edited.x = arena_get(&h->arena, n * sizeof *h->edited.x);
    return !h->call->x || h->edited.x;
}

/* ---- Hypotheses ---- */

/* Returns true if the library accepts the edited frequencies: the oracle relies on that. */
static bool has_valid_freqs(const struct hypothesis *h)
{
    struct posenc_freqs *freqs = NULL;
    if (!kernel_has_freqs(h->edited.problem.kernel) ||
        memcmp(&h->edited.problem.freqs, &h->call->problem.freqs,
               sizeof h->call->problem.freqs) == 0)
        return true;
    const bool valid = posenc_freqs_create(&h->edited.problem.freqs, &freqs, NULL) == POSENC_OK;
    posenc_freqs_destroy(freqs);
    return valid;
}

bool mistake_concerns(const struct mistake *mistake, enum posenc_kernel kernel)
{
    const char *names[] = { posenc_kernel_name(kernel), signature_of(kernel)->name };
    struct field field;
    bool named = !mistake->kernels;
    for (int i = 0; i < 2 && !named; i++)
        named = text_has_word(mistake->kernels, ' ', names[i], strlen(names[i]));
    for (int i = 0; i < MOST_FIELD_EDITS && mistake->fields[i].kind; i++)
        named = named && kernel_field_find(kernel, mistake->fields[i].field, &field);
    return named &&
           (!mistake->position || kernel_field_find(kernel, "position_offset", &field));
}

/* Returns false for a gradient, whose rows belong to positions, and for scores. */
static bool rows_have_tokens(const struct call *call)
{
    const enum posenc_kernel kernel = call->problem.kernel;
    return !kernel_on_scores(kernel) && kernel != POSENC_KERNEL_LEARNED_GRAD;
}

bool hypothesis_begin(struct hypothesis *h, const struct mistake *mistake,
                      const struct call *call)
{
    const int64_t width = call->outputs[0].width; /* of both outputs, if there are two */
    *h = (struct hypothesis){
        .mistake = mistake, .call = call, .edited = *call, .width = width
    };
    if (!mistake_concerns(mistake, call->problem.kernel))
        return false;
    if (mistake->rounded != POSENC_DTYPE_F32 &&
        call->outputs[0].tensor.dtype != POSENC_DTYPE_F32)
        return false;
    for (int i = 0; i < MOST_FIELD_EDITS && mistake->fields[i].kind; i++)
        field_edit_apply(&mistake->fields[i], &h->edited.problem);
    h->want = arena_get(&h->arena, (size_t)(3 * width) * sizeof *h->want);
    h->magnitudes = h->want + width;
    h->scratch = h->magnitudes + width;
    h->is_term = mistake->score;
    if (!h->want || (mistake->edit && !mistake->edit(h)) || !has_valid_freqs(h) ||
        (mistake->position && !rows_have_tokens(call) && !hypothesis_place_tokens(h)))
        return false;
    h->oracle = oracle_create(&h->edited);
    return h->oracle;
}

void hypothesis_end(struct hypothesis *h)
{
    oracle_destroy(h->oracle);
    arena_free(&h->arena);
}

/* Adds x * x_scale to a row of terms, for kernels that do. The terms are rounded to f32 first. */
static void add_x(struct hypothesis *h)
{
    const struct call *call = h->call;
    for (int64_t k = 0; kernel_adds_onto_x(call->problem.kernel) && k < h->width; k++)
        if (h->want[k] != UNKNOWN_VALUE)
            h->want[k] =
                (double)call->x[h->row * h->width + k] * (double)call->problem.x_scale +
                (double)(float)h->want[k];
}

bool hypothesis_row(struct hypothesis *h, int output, int64_t row)
{
    const struct mistake *mistake = h->mistake;
    const struct problem *p = &h->call->problem;
    h->output = output;
    h->row = row;
    for (int64_t k = 0; k < h->width; k++)
        h->magnitudes[k] = 0.0;
    if (kernel_on_scores(p->kernel)) {
        h->head = row / p->queries;
        h->query = row % p->queries;
    }
    if (mistake->position && rows_have_tokens(h->call) && !hypothesis_place_row(h))
        return false;
    if (mistake->row)
        mistake->row(h);
    else if (!mistake->score)
        oracle_compute_row(h->oracle, output, row, h->want, h->magnitudes);
    for (int64_t j = 0; mistake->score && j < h->width; j++) {
        h->want[j] = mistake->score(h, j);
        h->magnitudes[j] = isfinite(h->want[j]) ? fabs(h->want[j]) : 0.0;
    }
    if (mistake->change)
        mistake->change(h);
    if (h->is_term)
        add_x(h);
    return true;
}

/* ---- Comparison ---- */

/* Returns the least unit of errors of a value: the largest cosine for angles, x * x_scale for a sum. */
static double least_magnitude(const struct hypothesis *h, int64_t column)
{
    const struct problem *p = &h->call->problem;
    double least = 0.0;
    if (kernel_has_freqs(p->kernel) && p->freqs.xpos_scale_base == 0.0)
        least = signature_argument(signature_of(p->kernel), MEMBER(scale))
                    ? fabs(p->scale)
                    : posenc_freqs_view_of(h->call->freqs).attention_factor;
    if (kernel_adds_onto_x(p->kernel))
        least = fmax(least,
                     fabs((double)h->call->x[h->row * h->width + column] * (double)p->x_scale));
    return least;
}

/* Returns the tolerance of a value: a few ulp of its larger term in f32, and half an ulp of each narrower type to
 * which it is rounded. */
static double tolerance_of(const struct hypothesis *h, double want, double magnitude)
{
    const double few = 4.0;
    const struct signature *s = signature_of(h->call->problem.kernel);
    const double ulps =
        s->error_limit ? fmax(few, s->error_limit(&h->call->problem, false)) : few;
    const enum posenc_dtype narrower[] = { h->call->outputs[0].tensor.dtype,
                                           h->mistake->rounded };
    double tolerance = ulps * exact_ulp(POSENC_DTYPE_F32, fmax(fabs(want), magnitude));
    for (int i = 0; i < 2; i++)
        if (narrower[i] != POSENC_DTYPE_F32)
            tolerance += 0.5 * exact_ulp(narrower[i], fabs(want));
    return tolerance;
}

bool hypothesis_predicts(const struct hypothesis *h, int64_t column, float got)
{
    const double want = h->want[column];
    const bool is_written = float_to_bits(got) != CALL_CANARY;
    if (want == UNWRITTEN_VALUE || !is_written)
        return want == UNWRITTEN_VALUE && !is_written;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want))
        return (double)got ==
               (double)storage_round(h->call->outputs[0].tensor.dtype, (float)want);
    const double magnitude = fmax(h->magnitudes[column], least_magnitude(h, column));
    return storage_round(h->mistake->rounded, got) == got &&
           fabs((double)got - want) <= tolerance_of(h, want, magnitude);
}
