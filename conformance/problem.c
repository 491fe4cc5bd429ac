/*
 * Problems: what the list of kernels says of each, a small valid case, positions, useful bytes.
 */
#include "inputs.h"

#include <string.h>

const char *const profile_names[] = { "exact", "hf_f32", "ggml_f32", "torch_exp_f32", NULL };
const char *const convention_names[] = { "exponent", "endpoint", NULL };
const char *const scaling_names[] = { "none", "linear",   "llama3",       "yarn", "dynamic",
                                      "ntk",  "longrope", "proportional", NULL };
const char *const mrope_layout_names[] = { "chunked", "interleaved", "restarted", NULL };
const char *const layout_names[] = { "interleaved", "sin_cos", "cos_sin", NULL };

enum signature kernel_signature(enum posenc_kernel kernel)
{
    static const enum signature of[] = {
#define POSENC_KERNEL(name, signature, stage, summary) SIGNATURE_##signature,
#include "posenc_kernels.def"
    };
    return of[kernel];
}

const char *kernel_stage(enum posenc_kernel kernel)
{
    enum stage { TABLE, APPLY };
    static const enum stage of[] = {
#define POSENC_KERNEL(name, signature, stage, summary) stage,
#include "posenc_kernels.def"
    };
    return of[kernel] == TABLE ? "table" : "apply";
}

/* Kernels that add onto x; the others of their signature only write `out`. */
bool kernel_takes_x(enum posenc_kernel kernel)
{
    const char *name = posenc_kernel_name(kernel);
    size_t n = strlen(name);
    enum signature signature = kernel_signature(kernel);
    return signature == SIGNATURE_rope || (n > 4 && strcmp(name + n - 4, "_add") == 0);
}

struct problem problem_default(enum posenc_kernel kernel)
{
    struct problem p = {
        .kernel = kernel, .batch = 1, .scale = 1.0, .x_scale = 1.0f, .seed = 1
    };
    switch (kernel_signature(kernel)) {
    case SIGNATURE_sinusoidal:
    case SIGNATURE_rope_table:
        p.freqs = (struct posenc_freqs_spec)POSENC_FREQS_SPEC;
        p.freqs.dim = 64;
        p.tokens = 7;
        break;
    case SIGNATURE_learned:
        p.tokens = 7;
        p.dim = 48;
        p.rows = 16;
        break;
    case SIGNATURE_rope:
        p.tokens = 7;
        p.heads = 3;
        p.dim = p.rotary_dim = 64;
        p.rows = 16;
        break;
    case SIGNATURE_alibi:
        p.heads = 4;
        p.queries = 5;
        p.keys = 9;
        p.query_offset = 4;
        p.alibi_bias_max = 8.0;
        break;
    case SIGNATURE_t5:
        p.heads = 4;
        p.queries = 5;
        p.keys = 9;
        p.query_offset = 4;
        p.num_buckets = 32;
        p.max_distance = 128;
        p.bidirectional = true;
        break;
    }
    return p;
}

bool problem_draws_positions(const struct problem *problem)
{
    return problem->position_kind != POSENC_OFFSET &&
           (problem->recipe == RECIPE_ONNX || problem->recipe == RECIPE_ONNX_3D);
}

int64_t problem_position(const struct problem *problem, int64_t b, int64_t t)
{
    if (problem->position_kind == POSENC_OFFSET)
        return problem->first + t;
    if (problem_draws_positions(problem))
        return drawn_position(problem, b, t);
    int64_t base = problem->positions ? problem->positions[t] : problem->first + t;
    return base + b * problem->batch_shift;
}

int problem_axes(const struct problem *problem)
{
    int axes = 1;
    while (axes < 3 && problem->freqs.mrope_section[axes] != 0)
        axes++;
    return problem->mrope_grid > 0 && problem->position_kind != POSENC_OFFSET &&
                   problem->freqs.mrope_section[0] != 0
               ? axes
               : 1;
}

int64_t problem_axis_position(const struct problem *problem, int64_t b, int64_t t, int axis)
{
    int axes = problem_axes(problem);
    if (axes == 1)
        return problem_position(problem, b, t);
    int64_t base = problem->first + b * problem->batch_shift;
    return base + (axis == axes - 1   ? t % problem->mrope_grid
                   : axis == axes - 2 ? t / problem->mrope_grid
                                      : 0);
}

double problem_time(const struct problem *problem, int64_t b, int64_t t, int axis)
{
    double position = (double)problem_axis_position(problem, b, t, axis);
    if (problem->position_kind == POSENC_POSITIONS_F32)
        position = (double)(float)(position + (double)t * problem->time_step) + 0.0; /* no -0 */
    return position;
}

size_t problem_bytes(const struct problem *p)
{
    int64_t moved = kernel_takes_x(p->kernel) ? 2 : 1, elements = 0,
            batch_tokens = p->batch * p->tokens;
    switch (kernel_signature(p->kernel)) {
    case SIGNATURE_sinusoidal:
        elements = moved * batch_tokens * p->freqs.dim;
        break;
    case SIGNATURE_learned: {
        bool shared = p->position_kind == POSENC_OFFSET || p->batch_shift == 0;
        int64_t used = shared ? p->tokens : batch_tokens;
        elements = (moved * batch_tokens + (used < p->rows ? used : p->rows)) * p->dim;
        break;
    }
    case SIGNATURE_rope_table:
        elements = 2 * batch_tokens * (p->freqs.dim / 2);
        break;
    case SIGNATURE_rope: /* in place, channels past rotary_dim need not be touched */
        elements = moved * batch_tokens * p->heads * (p->in_place ? p->rotary_dim : p->dim);
        break;
    case SIGNATURE_alibi:
    case SIGNATURE_t5:
        elements = moved * p->batch * p->heads * p->queries * p->keys;
        break;
    }
    return (size_t)elements * sizeof(float);
}

size_t problem_working_set(const struct problem *p)
{
    size_t bytes = problem_bytes(p);
    if (!p->in_place || !kernel_takes_x(p->kernel))
        return bytes;
    if (kernel_signature(p->kernel) == SIGNATURE_learned)
        return bytes - (size_t)(p->batch * p->tokens * p->dim) * sizeof(float);
    return bytes / 2;
}
