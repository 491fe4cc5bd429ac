/*
 * Laws of positions that are more than an integer a token, all to the bit: a pair's values are
 * a function of its own position alone, however many others the token has, and a whole time is
 * the integer.
 *
 *   axes-of-text       the same position on all axes is that of a plan without sections: text
 *   in a
 *                      model of pictures
 *   axes-apart         each pair has the values of its own axis' position
 *   axes-restarted     sections that restart are encodings of their own
 *   sections           a sinusoidal encoding of several axes is those of its sections, side by
 *                      side
 *   whole-times        a time without a fraction is the integer; -0 is 0
 *   times-mirror       a negative time flips the sine and leaves the cosine
 *   times-between      pair 0 turns by a quarter from one quarter to the next
 *
 * Su et al. 2104.09864; Wang et al. 2409.12191 (axes).
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 37, GRID = 7, MODELS = 3 };

/* A picture by one of the MODELS, in a profile. */
static struct problem picture(int model, enum posenc_profile profile)
{
    static const int64_t sections[MODELS][3] = { { 16, 24, 24 },
                                                 { 24, 20, 20 },
                                                 { 11, 11, 10 } };
    struct problem p = problem_default(POSENC_KERNEL_rope_table);
    p.freqs.profile = profile;
    p.freqs.rope_theta = 1e6;
    p.freqs.dim = 0;
    p.freqs.mrope_layout = model == 0 ? POSENC_MROPE_CHUNKED : POSENC_MROPE_INTERLEAVED;
    for (int axis = 0; axis < 3; axis++) {
        p.freqs.mrope_section[axis] = sections[model][axis];
        p.freqs.dim += 2 * sections[model][axis];
    }
    p.tokens = TOKENS;
    p.mrope_grid = GRID;
    p.first = -3;
    p.position_kind = POSENC_POSITIONS_I32;
    p.batch = 2;
    p.batch_shift = 5000;
    return p;
}

/* A plan of plain RoPE with the positions that problem `of` has on an axis. */
static struct problem plain_axis(const struct problem *of, int axis, int64_t positions[TOKENS])
{
    struct problem p = *of;
    for (int k = 0; k < 3; k++)
        p.freqs.mrope_section[k] = 0;
    p.freqs.mrope_layout = POSENC_MROPE_CHUNKED;
    p.mrope_grid = 0;
    for (int64_t t = 0; t < TOKENS; t++)
        positions[t] = problem_axis_position(of, 0, t, axis);
    p.positions = positions;
    return p;
}

/* Columns of both tables: of `got` [to, to + n), of `want` [from, from + n). */
static void require_columns(struct tally *t, const struct copy *got, int64_t to,
                            const struct copy *want, int64_t from, int64_t n, const char *what)
{
    for (int o = 0; o < 2; o++)
        for (int64_t r = 0; r < got->rows[o]; r++)
            require_same_bits(t, copy_row(got, o, r) + to, copy_row(want, o, r) + from, n,
                              what);
}

/* ---- Axes ---- */

/* Every axis has the positions of the first, in memory of its own. */
static void edit_same_axes(struct call *call, const void *user)
{
    (void)user;
    struct posenc_positions *p = call_positions(call);
    int32_t *data = (int32_t *)(uintptr_t)p->data;
    for (int64_t i = 0; i < 3 * p->stride_axis; i++)
        data[i] = data[i % p->stride_axis];
}

static void law_text(struct tally *t, enum posenc_kernel kernel)
{
    (void)kernel;
    for (int profile = 0; profile_names[profile]; profile++)
        for (int model = 0; model < MODELS; model++) {
            struct problem axes = picture(model, (enum posenc_profile)profile), text = axes,
                           plain;
            struct copy each = { .n = 0 }, one = { .n = 0 }, want = { .n = 0 };
            int64_t positions[TOKENS];
            plain = plain_axis(&axes, 0, positions);
            text.mrope_grid = 0;
            text.positions = positions;
            if (run_problem(t, &plain, NULL, NULL, &want) &&
                run_problem(t, &text, NULL, NULL, &one) &&
                run_problem(t, &axes, edit_same_axes, NULL, &each)) {
                require_same_copy(t, &one, &want, "one position for all axes");
                require_same_copy(t, &each, &want, "the same position on each axis");
            }
            copy_free(&each);
            copy_free(&one);
            copy_free(&want);
            t->problem = NULL;
        }
}

/* Which axis turns a pair: written down once for each model, a letter a pair. */
static const char *const axis_of_pair[MODELS] = {
    "tttttttttttttttthhhhhhhhhhhhhhhhhhhhhhhhwwwwwwwwwwwwwwwwwwwwwwww",
    "thwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwtttt",
    "thwthwthwthwthwthwthwthwthwthwth",
};

static void law_apart(struct tally *t, enum posenc_kernel kernel)
{
    static const char letters[] = "thw";
    (void)kernel;
    for (int profile = 0; profile_names[profile]; profile++)
        for (int k = 0; k < MODELS * 3; k++) {
            struct problem axes = picture(k / 3, (enum posenc_profile)profile), plain;
            struct copy got = { .n = 0 }, want = { .n = 0 };
            int64_t positions[TOKENS];
            plain = plain_axis(&axes, k % 3, positions);
            if (run_problem(t, &plain, NULL, NULL, &want) &&
                run_problem(t, &axes, NULL, NULL, &got))
                for (int64_t i = 0; i < axes.freqs.dim / 2; i++)
                    if (axis_of_pair[k / 3][i] == letters[k % 3])
                        require_columns(t, &got, i, &want, i, 1,
                                        "a pair at its axis' position");
            copy_free(&got);
            copy_free(&want);
            t->problem = NULL;
        }
}

/* Qwen2-VL's pictures, and sections of three sizes. */
static void law_restarted(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t sections[][3] = { { 20, 20, 0 }, { 5, 16, 11 } };
    (void)kernel;
    for (int k = 0; k < 6; k++) {
        enum posenc_profile profile =
            k % 3 == 2 ? POSENC_TORCH_EXP_F32 : (enum posenc_profile)(k % 3);
        struct problem axes = picture(0, profile);
        struct copy got = { .n = 0 };
        int64_t column = 0;
        axes.freqs.mrope_layout = POSENC_MROPE_RESTARTED;
        axes.freqs.dim = 0;
        for (int axis = 0; axis < 3; axis++) {
            axes.freqs.mrope_section[axis] = sections[k / 3][axis];
            axes.freqs.dim += 2 * sections[k / 3][axis];
        }
        bool ok = run_problem(t, &axes, NULL, NULL, &got);
        for (int axis = 0; axis < 3 && ok && sections[k / 3][axis]; axis++) {
            int64_t positions[TOKENS], n = sections[k / 3][axis];
            struct problem own = plain_axis(&axes, axis, positions);
            struct copy want = { .n = 0 };
            own.freqs.dim = 2 * n;
            if (run_problem(t, &own, NULL, NULL, &want))
                require_columns(t, &got, column, &want, 0, n, "a section as its own encoding");
            copy_free(&want);
            column += n;
        }
        copy_free(&got);
        t->problem = NULL;
    }
}

/* The plan of one section in a call that has room for all of them. */
struct own_plan {
    struct posenc_freqs *freqs;
    int64_t from;
};

static void edit_own_plan(struct call *call, const void *user)
{
    const struct own_plan *own = user;
    call->args.sinusoidal.freqs = own->freqs;
    struct posenc_tensor *const tensors[] = { call_x(call), call_out(call) };
    for (int k = 0; k < 2; k++)
        if (tensors[k]->data) {
            tensors[k]->data = (float *)tensors[k]->data + own->from;
            tensors[k]->shape[tensors[k]->rank - 1] = posenc_freqs_view(own->freqs).dim;
        }
}

/* Columns [from, from + 2n) of an encoding against the plan of that axis alone. */
static void check_section(struct tally *t, const struct problem *p, int axis, int64_t from,
                          const struct copy *got)
{
    int64_t positions[TOKENS], n = 2 * p->freqs.mrope_section[axis];
    struct problem one = plain_axis(p, axis, positions);
    struct posenc_freqs_spec spec = one.freqs;
    struct own_plan own = { NULL, from };
    struct copy want = { .n = 0 };
    spec.dim = n;
    if (require(t, posenc_freqs_create(&spec, &own.freqs, NULL) == POSENC_OK,
                "no plan for a section") &&
        run_problem(t, &one, edit_own_plan, &own, &want))
        for (int64_t r = 0; r < got->rows[0]; r++)
            require_same_bits(t, copy_row(got, 0, r) + from, copy_row(&want, 0, r) + from, n,
                              "a section as its own encoding");
    posenc_freqs_destroy(own.freqs);
    copy_free(&want);
}

static void law_sections(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t sections[][3] = { { 24, 24, 0 }, { 7, 23, 0 }, { 9, 1, 16 } };
    static const enum posenc_profile profiles[] = { POSENC_EXACT, POSENC_HF_F32,
                                                    POSENC_TORCH_EXP_F32 };
    for (int k = 0; k < 9; k++) {
        const int64_t *section = sections[k % 3];
        struct problem p = picture(0, profiles[k / 3]);
        struct copy got = { .n = 0 };
        p.kernel = kernel;
        p.layout = (enum posenc_layout)((k + k / 3) % 3);
        p.scale = k == 4 ? 0.125 : 1.0;
        p.x_scale = 0.75f;
        p.freqs.mrope_layout = POSENC_MROPE_RESTARTED;
        p.freqs.dim = 2 * (section[0] + section[1] + section[2]);
        memcpy(p.freqs.mrope_section, section, sizeof p.freqs.mrope_section);
        if (run_problem(t, &p, NULL, NULL, &got))
            for (int64_t axis = 0, from = 0; axis < 3 && section[axis];
                 from += 2 * section[axis++])
                check_section(t, &p, (int)axis, from, &got);
        copy_free(&got);
        t->problem = NULL;
    }
}

/* ---- Times ---- */

static struct problem at_times(enum posenc_kernel kernel, int setting)
{
    struct problem p = problem_default(kernel);
    p.freqs.dim = kernel == POSENC_KERNEL_rope_table ? 66 : 67;
    p.freqs.profile = (enum posenc_profile)(setting % 4);
    p.layout = (enum posenc_layout)(setting % 3);
    p.position_kind = POSENC_POSITIONS_F32;
    return p;
}

/* Integers that f32 holds, with runs, jumps and both ends. */
static const int64_t integers[] = { -2147483520, -16777216, -65, -64,      -1,
                                    0,           1,         2,   3,        63,
                                    64,          65,        8,   16777215, 2147483520 };
enum { INTEGERS = sizeof integers / sizeof integers[0] };

static void edit_negative_zero(struct call *call, const void *user)
{
    (void)user;
    float *data = (float *)(uintptr_t)call_positions(call)->data;
    for (int64_t i = 0; i < INTEGERS; i++)
        data[i] = data[i] == 0.0f ? -0.0f : data[i];
}

static void law_whole_times(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < 4; setting++) {
        struct problem times = at_times(kernel, setting), whole;
        struct copy got = { .n = 0 }, signed_zero = { .n = 0 }, want = { .n = 0 };
        times.positions = integers;
        times.tokens = INTEGERS;
        whole = times;
        whole.position_kind = POSENC_POSITIONS_I64;
        if (run_problem(t, &whole, NULL, NULL, &want) &&
            run_problem(t, &times, NULL, NULL, &got) &&
            run_problem(t, &times, edit_negative_zero, NULL, &signed_zero)) {
            require_same_copy(t, &got, &want, "a whole time");
            require_same_copy(t, &signed_zero, &want, "time -0");
        }
        copy_free(&got);
        copy_free(&signed_zero);
        copy_free(&want);
        t->problem = NULL;
    }
}

/* Whether a column of an output holds sines. */
static bool is_sine(const struct problem *p, int o, int64_t column)
{
    int64_t half = p->freqs.dim / 2;
    if (p->kernel == POSENC_KERNEL_rope_table)
        return o == 1;
    return p->layout == POSENC_INTERLEAVED ? column % 2 == 0
                                           : (column < half) == (p->layout == POSENC_SIN_COS);
}

/* Times of a dozen magnitudes, the subnormal ones too. */
static void law_times_mirror(struct tally *t, enum posenc_kernel kernel)
{
    static const double steps[] = { 0.3, 1e-3, 1e-20, 1e-42, 1234.567, 99999.3 };
    for (int k = 0; k < 12; k++) {
        struct problem p = at_times(kernel, k), minus = p;
        struct copy right = { .n = 0 }, left = { .n = 0 };
        p.positions = minus.positions = (const int64_t[11]){ 0 };
        p.tokens = minus.tokens = 11;
        p.time_step = steps[k % 6];
        minus.time_step = -steps[k % 6];
        bool ok =
            run_problem(t, &p, NULL, NULL, &right) && run_problem(t, &minus, NULL, NULL, &left);
        for (int o = 0; ok && o < right.n; o++)
            for (int64_t r = 1; r < right.rows[o]; r++)
                for (int64_t c = 0; c < right.width[o]; c++) {
                    float value = copy_row(&right, o, r)[c];
                    bool flips = is_sine(&p, o, c) &&
                                 (p.layout == POSENC_INTERLEAVED || c < p.freqs.dim / 2 * 2);
                    value = flips ? -value : value;
                    require_same_bits(t, &copy_row(&left, o, r)[c], &value, 1,
                                      "a negative time");
                }
        copy_free(&right);
        copy_free(&left);
        t->problem = NULL;
    }
}

/* Pair 0 turns by 1 a position, so by 1/4 from each of these times to the next: sines and
 * cosines within TABLE_ERROR of those. */
static void law_times_between(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < 4; setting++) {
        struct problem p = at_times(kernel, setting);
        struct copy table = { .n = 0 };
        p.layout = POSENC_INTERLEAVED;
        p.positions = (const int64_t[41]){ 0 };
        p.tokens = 41;
        p.time_step = 0.25;
        if (run_problem(t, &p, NULL, NULL, &table))
            for (int64_t r = 0; r < p.tokens; r++) {
                bool two = table.n == 2;
                double sine = (double)copy_row(&table, two, r)[0];
                double cosine = (double)copy_row(&table, 0, r)[two ? 0 : 1];
                require_within(t, sine, sin((double)r / 4.0), TABLE_ERROR, "sine at quarters");
                require_within(t, cosine, cos((double)r / 4.0), TABLE_ERROR,
                               "cosine at quarters");
            }
        copy_free(&table);
        t->problem = NULL;
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_positions[] = {
    { "axes-of-text", law_text, KERNELS(K(rope_table)) },
    { "axes-apart", law_apart, KERNELS(K(rope_table)) },
    { "axes-restarted", law_restarted, KERNELS(K(rope_table)) },
    { "sections", law_sections, KERNELS(K(sinusoidal), K(sinusoidal_add)) },
    { "whole-times", law_whole_times,
      KERNELS(K(sinusoidal), K(sinusoidal_add), K(rope_table)) },
    { "times-mirror", law_times_mirror, KERNELS(K(sinusoidal), K(rope_table)) },
    { "times-between", law_times_between, KERNELS(K(sinusoidal), K(rope_table)) },
};
const int n_laws_positions = sizeof laws_positions / sizeof laws_positions[0];
