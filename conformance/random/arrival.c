/*
 * A backend that looks at its arguments: see arrival.h.
 */
#include "arrival.h"

#include "conformance/problem/storage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- The backend ---- */

static struct {
    bool entered;
    union arguments args;
} seen;

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status look_##name(const struct posenc_##signature##_args *args)        \
    {                                                                                          \
        seen.entered = true;                                                                   \
        seen.args.signature = *args;                                                           \
        return POSENC_OK;                                                                      \
    }
#include <posenc_kernels.def>

static const struct posenc_backend looking = {
    .size = sizeof looking,
    .abi = POSENC_ABI,
    .name = "looking",
    .family = "looking",
    .description = "computes nothing",
    .needs = "",
    .f16_bf16 = true,
#define POSENC_KERNEL(kernel_name, ...) .kernel_name = look_##kernel_name,
#include <posenc_kernels.def>
};

/* ---- What arrived ---- */

__attribute__((format(printf, 3, 4))) static bool agrees(char wrong[ARRIVAL_TEXT], bool same,
                                                         const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!same && !wrong[0])
        vsnprintf(wrong, ARRIVAL_TEXT, format, list);
    va_end(list);
    return same;
}

/* Dimensions longer than 1 are those of the row, one after the other, at the strides that were
 * drawn; the form in which kernels get a tensor has others besides. */
static void tensor_agrees(const struct call *call, const struct tensor_row *row, char *wrong)
{
    const struct problem *p = &call->problem;
    const struct tensor_layout *layout = tensor_layout(p, row);
    const struct posenc_tensor *t = row_argument(&seen.args, row);
    const int n = tensor_dims(row);
    int at = 0;
    if (tensor_elements(p, row) == 0)
        return;
    agrees(wrong, t->data == call_data(call, row), "the data of %s is elsewhere", row->name);
    agrees(wrong, t->dtype == tensor_dtype(p, row), "the type of %s is another", row->name);
    for (int i = 0; i < n; i++) {
        const int64_t size = problem_extent(p, row->dims[i]);
        const bool drawn = layout->n_strides && i < n - 1 && !p->woven;
        while (at < t->rank && t->shape[at] == 1)
            at++;
        if (size == 1)
            continue;
        if (!agrees(wrong, at < t->rank && t->shape[at] == size,
                    "dimension %d of %s is not %lld", i, row->name, (long long)size))
            return;
        agrees(wrong, !drawn || t->stride[at] == layout->stride[i],
               "stride %d of %s is not %lld", i, row->name, (long long)layout->stride[i]);
        at++;
    }
}

static double position_read(const struct posenc_positions *p, int64_t b, int64_t t, int axis)
{
    const int64_t at = b * p->stride_batch + t * p->stride_token + axis * p->stride_axis;
    return p->kind == POSENC_OFFSET          ? (double)(p->offset + t)
           : p->kind == POSENC_POSITIONS_I32 ? (double)((const int32_t *)p->data)[at]
           : p->kind == POSENC_POSITIONS_I64 ? (double)((const int64_t *)p->data)[at]
                                             : (double)((const float *)p->data)[at];
}

static void positions_agree(const struct call *call, const struct tensor_row *row, char *wrong)
{
    const struct problem *p = &call->problem;
    const struct posenc_positions *positions = row_argument(&seen.args, row);
    agrees(wrong, positions->kind == p->position_kind, "positions are of another kind");
    for (int64_t i = 0; i < p->batch * p->tokens && !wrong[0]; i++)
        for (int axis = 0; axis < problem_axes(p); axis++)
            agrees(wrong,
                   position_read(positions, i / p->tokens, i % p->tokens, axis) ==
                       problem_time(p, i / p->tokens, i % p->tokens, axis),
                   "position of token %lld of all is not %.9g", (long long)i,
                   problem_time(p, i / p->tokens, i % p->tokens, axis));
}

static void parameters_agree(const struct call *call, const struct signature *s, char *wrong)
{
    for (EACH_PARAMETER(own, s)) {
        const void *from = (const char *)&call->problem + own->from,
                   *to = (const char *)&seen.args + own->to;
        float narrow;
        if (own->from_size != own->to_size) {
            double wide;
            memcpy(&wide, from, sizeof wide);
            narrow = (float)wide;
            from = &narrow;
        }
        agrees(wrong, memcmp(from, to, own->to_size) == 0, "argument %d is another",
               (int)(own - s->parameters));
    }
}

static void all_agrees(const struct call *call, char *wrong)
{
    const struct signature *s = signature_of(call->problem.kernel);
    for (EACH_TENSOR(row, s))
        if (tensor_present(&call->problem, row) && row->form == FORM_TENSOR)
            tensor_agrees(call, row, wrong);
        else if (row->form == FORM_POSITIONS)
            positions_agree(call, row, wrong);
    parameters_agree(call, s, wrong);
}

/* Sections that restart are calls of their own. */
static bool comes_in_sections(const struct problem *p)
{
    return p->freqs.mrope_section[1] != 0 && p->freqs.mrope_layout == POSENC_MROPE_RESTARTED;
}

/* Of a call that was refused outputs are as they were. */
static void untouched(const struct call *call, char *wrong)
{
    const struct problem *p = &call->problem;
    for (int o = 0; o < call->n_outputs && !p->in_place && !problem_accumulates(p); o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++)
            for (int64_t c = 0; c < call->outputs[o].width; c++)
                agrees(wrong, float_to_bits(call_row(call, o, r)[c]) == CALL_CANARY,
                       "%s was written by a call that was refused", call->outputs[o].name);
}

enum arrival arrive(const struct problem *problem, char wrong[ARRIVAL_TEXT])
{
    struct call call;
    wrong[0] = '\0';
    if (call_create(&call, problem, NULL) != POSENC_OK)
        return ARRIVAL_REFUSED;
    seen.entered = false;
    const bool accepted = call_run(&call, &looking) == POSENC_OK;
    if (!accepted)
        untouched(&call, wrong);
    else if (seen.entered && !comes_in_sections(problem))
        all_agrees(&call, wrong);
    call_destroy(&call);
    return !accepted ? ARRIVAL_REFUSED : !seen.entered ? ARRIVAL_EMPTY : ARRIVAL_ENTERED;
}
