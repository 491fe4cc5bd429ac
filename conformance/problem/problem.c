/* Problems: properties of each kernel from posenc_kernels.def, positions, sizes (see problem.h). */
#include "signature.h"

const char *const numerics_names[] = { "exact", "hf_f32", "ggml_f32", "torch_exp_f32", NULL };
const char *const spacing_names[] = { "exponent", "endpoint", NULL };
const char *const mrope_layout_names[] = { "qwen2_vl", "qwen3_vl", "qwen2_vl_vision",
                                           "pixtral",  "kimi",     NULL };
const char *const layout_names[] = { "interleaved", "sin_cos", "cos_sin", NULL };
const char *const dtype_names[] = { "f32", "f16", "bf16", NULL };
const char *const relative_names[] = { "deberta", "shaw", "transformer_xl", NULL };

/* ---- The list of kernels ---- */

enum stage { TABLE, APPLY };
enum takes_x { NONE, APART, IN_PLACE };
enum rows { TOKENS, QUERIES };
enum angles { PLANNED, GIVEN };
enum pairs { ALONE, HALVES, ADJACENT };

/* Columns of posenc_kernels.def. */
static const struct kernel_facts {
    enum signature_id signature;
    enum stage stage;
    enum takes_x x;
    enum rows rows;
    enum angles angles;
    enum pairs pairs;
} kernel_facts[] = {
#define POSENC_KERNEL(ID, name, signature, summary, stage, x, rows, angles, pairs)             \
    { SIGNATURE_##signature, stage, x, rows, angles, pairs },
#include "posenc_kernels.def"
};

enum signature_id kernel_signature(enum posenc_kernel kernel)
{
    return kernel_facts[kernel].signature;
}

const char *kernel_stage(enum posenc_kernel kernel)
{
    return kernel_facts[kernel].stage == TABLE ? "table" : "apply";
}

bool kernel_takes_x(enum posenc_kernel kernel) { return kernel_facts[kernel].x != NONE; }
bool kernel_in_place(enum posenc_kernel kernel) { return kernel_facts[kernel].x == IN_PLACE; }
bool kernel_on_scores(enum posenc_kernel kernel)
{
    return kernel_facts[kernel].rows == QUERIES;
}
bool kernel_has_freqs(enum posenc_kernel kernel)
{
    return kernel_facts[kernel].angles == PLANNED;
}
bool kernel_rotates(enum posenc_kernel kernel) { return kernel_facts[kernel].pairs != ALONE; }

bool kernel_pairs_adjacent(enum posenc_kernel kernel)
{
    return kernel_facts[kernel].pairs == ADJACENT;
}

/* ---- Channels that rotate ---- */

struct channel_rotation problem_rotation(const struct problem *p, int64_t channel)
{
    const int64_t half = p->rotary_dim / 2, i = channel - p->rotary_offset;
    const bool adjacent = kernel_pairs_adjacent(p->kernel);
    if (!kernel_rotates(p->kernel) || i < 0 || i >= 2 * half)
        return (struct channel_rotation){ .partner = channel };
    const bool second = adjacent ? i % 2 == 1 : i >= half;
    const int64_t step = adjacent ? 1 : half;
    return (struct channel_rotation){ .rotates = true,
                                      .second = second,
                                      .pair = adjacent ? i / 2 : i % half,
                                      .partner = second ? channel - step : channel + step };
}

/* ---- Positions ---- */

bool problem_draws_positions(const struct problem *problem)
{
    return problem->position_kind != POSENC_POSITIONS_OFFSET &&
           (problem->recipe == RECIPE_ONNX || problem->recipe == RECIPE_ONNX_3D);
}

int64_t problem_position(const struct problem *problem, int64_t b, int64_t t)
{
    if (problem->position_kind == POSENC_POSITIONS_OFFSET)
        return problem->first + t;
    if (problem_draws_positions(problem))
        return problem_draw_position(problem, b, t);
    int64_t base = problem->positions ? problem->positions[t] : problem->first + t;
    return base + b * problem->batch_shift;
}

int problem_axes(const struct problem *problem)
{
    const int64_t *section = problem->freqs.mrope_section;
    int axes = 1;
    if (problem->mrope_grid <= 0 || problem->position_kind == POSENC_POSITIONS_OFFSET ||
        section[0] == 0)
        return 1;
    while (axes < 3 && section[axes] != 0)
        axes++;
    return axes;
}

int64_t problem_axis_position(const struct problem *problem, int64_t b, int64_t t, int axis)
{
    int axes = problem_axes(problem);
    if (axes == 1)
        return problem_position(problem, b, t);
    const int64_t base = problem->first + b * problem->batch_shift;
    if (axis == axes - 1)
        return base + t % problem->mrope_grid;
    return axis == axes - 2 ? base + t / problem->mrope_grid : base;
}

double problem_time(const struct problem *problem, int64_t b, int64_t t, int axis)
{
    double position = (double)problem_axis_position(problem, b, t, axis);
    if (problem->position_kind == POSENC_POSITIONS_F32)
        position = (double)(float)(position + (double)t * problem->time_step) + 0.0; /* no -0 */
    return position;
}

/* ---- Sizes ---- */

int64_t problem_window_size(const struct problem *problem)
{
    return problem->window_height * problem->window_width + problem->window_class;
}

int64_t problem_scattered_index(const struct problem *problem, int64_t i, int64_t n)
{
    enum { RUN = 61 };
    const uint64_t bits = rng_u64(problem->seed, (uint64_t)(i / RUN)),
                   steps = (uint64_t)(i % RUN);
    const uint64_t all = n > 0 ? (uint64_t)n : 1, begin = (bits >> 2) % all;
    const uint64_t slopes[] = { 0, all - 1, 1, 1 }; /* stays, falls, rises, rises */
    return (int64_t)((begin + slopes[bits % 4] * steps) % all);
}

int64_t problem_count_distances(int64_t queries, int64_t keys)
{
    return queries > 0 && keys > 0 ? queries + keys - 1 : 0;
}
