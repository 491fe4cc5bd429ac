/*
 * The real kernel with other arguments: positions, parameters, types and shapes.
 */
#include "mistake.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <string.h>

/* ---- Positions ---- */

static double position_of(const struct entered *e, int64_t b, int64_t t, int axis, int axes)
{
    const struct posenc_positions *p = e->parts.positions;
    if (SLIP(swapped_axes) && axes == 3) /* h and w: the second axis from where the third is */
        axis = (3 - axis) % 3;
    const double value = position_on(p, b, t, SLIP(first_axis) ? 0 : axis);
    if (SLIP(text_on_first_axis) && p->stride_axis == 0 && axis > 0)
        return 0.0;
    if (SLIP(squared_position) && fabs(value) < 40000.0)
        return value * value;
    if (SLIP(position_in_f32) && value < 2147483520.0)
        return (double)(float)value;
    return SLIP(next_position)         ? value + 1.0
           : SLIP(position_in_16_bits) ? fmod(value, 65536.0)
           : SLIP(unsigned_position)   ? fabs(value)
           : SLIP(wrapped_position)    ? fmod(value, 2048.0)
           : SLIP(whole_time)          ? trunc(value)
           : SLIP(batch_index)         ? (double)b
                                       : value;
}

/* An array of each axis; times stay times. */
void enter_position(struct entered *e)
{
    struct posenc_positions *p = e->parts.positions;
    const bool times = p->kind == POSENC_POSITIONS_F32;
    const int axes = e->parts.second ? posenc_freqs_view(e->parts.freqs).n_axes : 1;
    const struct posenc_tensor *of = e->parts.x && e->parts.x->data ? e->parts.x : e->parts.out;
    const int64_t tokens = of->shape[1], all = of->shape[0] * tokens;
    int64_t *data = enter_keep(e, axes * all, sizeof *data);
    for (int64_t k = 0; k < axes * all; k++) {
        const double value = position_of(e, k % all / tokens, k % tokens, (int)(k / all), axes);
        if (times)
            ((float *)data)[k] = (float)value;
        else
            data[k] = (int64_t)value;
    }
    *p = (struct posenc_positions){ .kind = times ? p->kind : POSENC_POSITIONS_I64,
                                    .data = data,
                                    .stride_batch = tokens,
                                    .stride_token = 1,
                                    .stride_axis = axes > 1 ? all : 0 };
    enter_kernel(e);
}

/* ---- Other arguments ---- */

static void take_endpoint(struct entered *e)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    const struct posenc_freqs_view view = posenc_freqs_view(e->parts.freqs);
    spec.dim = view.dim;
    spec.profile = view.profile;
    spec.convention = POSENC_ENDPOINT;
    if (posenc_freqs_create(&spec, &e->freqs, NULL) == POSENC_OK)
        e->args.sinusoidal.freqs = e->freqs;
}

static void change_sinusoidal(struct entered *e)
{
    struct posenc_sinusoidal_args *a = &e->args.sinusoidal;
    if (SLIP(layout_swapped) && a->layout != POSENC_INTERLEAVED)
        a->layout = a->layout == POSENC_SIN_COS ? POSENC_COS_SIN : POSENC_SIN_COS;
    if (SLIP(endpoint_frequencies))
        take_endpoint(e);
    if (SLIP(larger_scale))
        a->scale *= 1.0001;
    if (SLIP(scale_ignored))
        a->scale = 1.0;
    if (SLIP(x_scale_ignored))
        a->x_scale = 1.0f;
    if (SLIP(times_as_integers) && a->positions.kind == POSENC_POSITIONS_F32)
        a->positions.kind = POSENC_POSITIONS_I32;
}

/* Starts a tensor so many channels later. */
static void skip_channels(struct posenc_tensor *t, int64_t n)
{
    t->data = (char *)t->data + n * (int64_t)storage_size(t->dtype);
    t->shape[3] -= n;
}

static void change_rotation(struct entered *e)
{
    struct posenc_rope_args *a = &e->args.rope;
    if (SLIP(offset_ignored))
        a->rotary_offset = 0;
    if (SLIP(transpose_ignored))
        a->transpose = false;
    if (SLIP(other_way))
        a->transpose = !a->transpose;
    if (SLIP(other_pairing))
        e->kernel = POSENC_KERNEL_rope_interleaved;
    if (SLIP(tail_not_copied))
        a->x.shape[3] = a->out.shape[3] = a->rotary_offset + 2 * a->cos.shape[1];
    if (SLIP(head_not_copied)) {
        skip_channels(input_as_writable(&a->x), a->rotary_offset);
        skip_channels(&a->out, a->rotary_offset);
        a->rotary_offset = 0;
    }
    if (SLIP(trap) && a->cos.shape[1] >= 4)
        __builtin_trap(); /* an instruction that no CPU has */
}

/* Of one tensor for another, and without their signs. */
static void change_strides_and_signs(struct entered *e)
{
    const struct signature *s = signature_of(e->kernel);
    const size_t x_scale = signature_argument(s, MEMBER(x_scale));
    struct posenc_tensor *x = e->parts.x, *cos = NULL;
    for (int i = 0; SLIP(strides_of_out) && x->data != e->parts.out->data && i < 4; i++)
        x->stride[i] = e->parts.out->stride[i];
    for (EACH_TENSOR(row, s))
        if (SLIP(stride_of_cos) && row->type == TYPE_TABLE) {
            struct posenc_tensor *table = row_argument(&e->args, row);
            cos = cos ? cos : table;
            table->stride[0] = cos->stride[0];
        }
    if (SLIP(token_stride_ignored))
        e->parts.positions->stride_token = 1;
    if (SLIP(x_scale_unsigned)) {
        const float magnitude = fabsf(e->parts.x_scale);
        memcpy((char *)&e->args + x_scale, &magnitude, sizeof magnitude);
    }
    if (SLIP(term_scale_unsigned))
        e->args.relative.scale = fabsf(e->args.relative.scale);
}

static void change_others(struct entered *e)
{
    union arguments *a = &e->args;
    for (EACH_TENSOR(row, signature_of(e->kernel))) {
        struct posenc_tensor *table = row_argument(a, row); /* cosines, sines */
        if (SLIP(tables_read_as_x) && row->type == TYPE_TABLE && table->dtype != POSENC_F32 &&
            e->stored != POSENC_F32)
            table->dtype = e->stored;
    }
    if (SLIP(each_head_alone))
        a->rope_qk_norm.across_heads = false;
    if (SLIP(weight_offset_ignored))
        a->rope_qk_norm.weight_offset = 0.0f;
    if (SLIP(weight_of_first_head))
        a->rope_qk_norm.weight.stride[0] = 0;
    if (SLIP(usual_epsilon))
        a->rope_qk_norm.epsilon = fmaxf(a->rope_qk_norm.epsilon, 1e-6f);
    if (SLIP(accumulate_ignored))
        a->learned_grad.accumulate = false;
    if (SLIP(first_batch_alone) && a->learned_grad.x.shape[0] > 1)
        a->learned_grad.x.shape[0] = 1;
    if (SLIP(slopes_of_first_batch))
        a->alibi.slopes_stride_batch = 0;
    if (SLIP(term_scale_ignored))
        a->relative.scale = 1.0f;
}

static void copy_first_column_to_the_odd(const struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out;
    const int64_t dim = out->shape[3];
    for (int64_t r = 0; dim % 2 == 1 && r < storage_rows(out); r++) {
        void *row = storage_row(out, r);
        storage_put(out->dtype, row, dim - 1, dim > 1 ? storage_get(out->dtype, row, 0) : 1.0f);
    }
}

void enter_arguments(struct entered *e)
{
    change_sinusoidal(e);
    change_rotation(e);
    change_others(e);
    change_strides_and_signs(e);
    enter_kernel(e);
    if (SLIP(copied_odd_column) && e->args.sinusoidal.layout != POSENC_INTERLEAVED)
        copy_first_column_to_the_odd(e);
}
