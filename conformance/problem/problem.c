/*
 * Problems: what the list of kernels says of each, a small valid case, positions, useful bytes.
 */
#include "inputs.h"
#include "storage.h"

const char *const profile_names[] = { "exact", "hf_f32", "ggml_f32", "torch_exp_f32", NULL };
const char *const convention_names[] = { "exponent", "endpoint", NULL };
const char *const scaling_names[] = { "none", "linear",   "llama3",       "yarn", "dynamic",
                                      "ntk",  "longrope", "proportional", NULL };
const char *const mrope_layout_names[] = { "chunked", "interleaved", "restarted", NULL };
const char *const layout_names[] = { "interleaved", "sin_cos", "cos_sin", NULL };
const char *const dtype_names[] = { "f32", "f16", "bf16", NULL };
const char *const relative_names[] = { "deberta", "shaw", "transformer_xl", NULL };

/* ---- The list of kernels ---- */

enum stage { TABLE, APPLY };
enum takes_x { NONE, APART, IN_PLACE };
enum rows { TOKENS, QUERIES };
enum angles { PLANNED, GIVEN };

static const struct listed {
    enum signature signature;
    enum stage stage;
    enum takes_x x;
    enum rows rows;
    enum angles angles;
} listed[] = {
#define POSENC_KERNEL(name, signature, summary, stage, x, rows, angles)                        \
    { SIGNATURE_##signature, stage, x, rows, angles },
#include "posenc_kernels.def"
};

enum signature kernel_signature(enum posenc_kernel kernel) { return listed[kernel].signature; }

const char *kernel_stage(enum posenc_kernel kernel)
{
    return listed[kernel].stage == TABLE ? "table" : "apply";
}

bool kernel_takes_x(enum posenc_kernel kernel) { return listed[kernel].x != NONE; }
bool kernel_in_place(enum posenc_kernel kernel) { return listed[kernel].x == IN_PLACE; }
bool kernel_on_scores(enum posenc_kernel kernel) { return listed[kernel].rows == QUERIES; }
bool kernel_has_plan(enum posenc_kernel kernel) { return listed[kernel].angles == PLANNED; }

/* ---- A small case ---- */

/* Queries that end where the keys do. */
static void default_scores(struct problem *p)
{
    p->heads = 4;
    p->queries = 5;
    p->keys = 9;
    p->query_offset = 4;
}

static void default_relative(struct problem *p)
{
    default_scores(p);
    p->max_distance = 16;
    p->num_buckets = 8;
    p->with_p2c = true;
    if (kernel_signature(p->kernel) == SIGNATURE_relative_sum) {
        p->relative = RELATIVE_SHAW;
        p->max_distance = 3;
        p->num_buckets = 0;
        p->with_p2c = false;
    }
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
    case SIGNATURE_learned_grad:
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
        default_scores(&p);
        p.alibi_bias_max = 8.0;
        break;
    case SIGNATURE_t5:
        default_scores(&p);
        p.num_buckets = 32;
        p.max_distance = 128;
        p.bidirectional = true;
        break;
    case SIGNATURE_distance:
        default_scores(&p);
        break;
    case SIGNATURE_window:
        p.heads = 4;
        p.window_height = 3;
        p.window_width = 5;
        p.queries = p.keys = problem_window(&p);
        break;
    case SIGNATURE_relative:
    case SIGNATURE_relative_sum:
        default_relative(&p);
        break;
    }
    return p;
}

/* ---- Positions ---- */

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

/* ---- Sizes ---- */

int64_t problem_window(const struct problem *problem)
{
    return problem->window_height * problem->window_width + problem->window_class;
}

int64_t problem_rows(const struct problem *problem)
{
    switch (kernel_signature(problem->kernel)) {
    case SIGNATURE_t5:
        return problem->num_buckets;
    case SIGNATURE_window:
        return (2 * problem->window_height - 1) * (2 * problem->window_width - 1) +
               (problem->window_class ? 3 : 0);
    default:
        return problem->rows;
    }
}

int64_t problem_columns(const struct problem *problem)
{
    if (kernel_signature(problem->kernel) == SIGNATURE_distance)
        return problem->distances ? problem->distances
                                  : problem_distances(problem->queries, problem->keys);
    switch (problem->relative) {
    case RELATIVE_DEBERTA:
        return 2 * (problem->num_buckets ? problem->num_buckets : problem->max_distance);
    case RELATIVE_SHAW:
        return 2 * problem->max_distance + 1;
    case RELATIVE_TRANSFORMER_XL:
        break;
    }
    return problem->keys;
}

int64_t problem_distances(int64_t queries, int64_t keys)
{
    return queries > 0 && keys > 0 ? queries + keys - 1 : 0;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* What the tokens, or the scores, of x or out count; a rotation in place need not touch the
 * channels it does not turn. */
static int64_t elements(const struct problem *p)
{
    int64_t tokens = p->batch * p->tokens, scores = p->batch * p->heads * p->queries * p->keys;
    switch (kernel_signature(p->kernel)) {
    case SIGNATURE_sinusoidal:
        return tokens * p->freqs.dim;
    case SIGNATURE_rope_table:
        return 2 * tokens * (p->freqs.dim / 2);
    case SIGNATURE_learned:
    case SIGNATURE_learned_grad:
        return tokens * p->dim;
    case SIGNATURE_rope:
        return tokens * p->heads * (p->in_place ? p->rotary_dim : p->dim);
    case SIGNATURE_window:
        return p->batch * p->heads * problem_window(p) * problem_window(p);
    default:
        return scores;
    }
}

/* Rows of a learned table that the tokens ask for, at most. */
static int64_t rows_used(const struct problem *p)
{
    bool shared = p->position_kind == POSENC_OFFSET || p->batch_shift == 0;
    return least(shared ? p->tokens : p->batch * p->tokens, p->rows);
}

/* Bytes of the terms that the scores ask for: of each row as many columns as it has scores. */
static int64_t term_bytes(const struct problem *p)
{
    int64_t columns = problem_columns(p), rows = p->batch * p->heads;
    int64_t c2p = rows * p->queries * least(p->keys, columns),
            p2c = rows * p->keys * least(p->queries, columns);
    return ((p->without_c2p ? 0 : c2p) + (p->with_p2c ? p2c : 0)) *
           (int64_t)storage_size(p->dtype);
}

/* Bytes beside activations and scores: f32 tables, indices, terms; what sums are written to. */
static int64_t other_bytes(const struct problem *p)
{
    int64_t item = (int64_t)storage_size(p->dtype), n = problem_window(p);
    int64_t index = 4 * problem_distances(p->queries, p->keys);
    switch (kernel_signature(p->kernel)) {
    case SIGNATURE_learned:
        return 4 * rows_used(p) * p->dim;
    case SIGNATURE_learned_grad:
        return 4 * (p->accumulate ? 2 * rows_used(p) : p->rows) * p->dim;
    case SIGNATURE_distance:
        return 4 * p->heads * problem_distances(p->queries, p->keys);
    case SIGNATURE_window:
        return 4 * (n * n + p->heads * problem_rows(p));
    case SIGNATURE_relative:
        return index + term_bytes(p);
    case SIGNATURE_relative_sum:
        return index + item * p->batch * p->heads * p->queries * problem_columns(p);
    default:
        return 0;
    }
}

size_t problem_bytes(const struct problem *p)
{
    int64_t moved = kernel_in_place(p->kernel) ? 2 : 1; /* x and out */
    return (size_t)(moved * elements(p)) * storage_size(p->dtype) + (size_t)other_bytes(p);
}

size_t problem_working_set(const struct problem *p)
{
    size_t twice = 0;
    if (p->in_place && kernel_in_place(p->kernel))
        twice = (size_t)elements(p) * storage_size(p->dtype);
    else if (kernel_signature(p->kernel) == SIGNATURE_learned_grad && p->accumulate)
        twice = (size_t)(4 * rows_used(p) * p->dim);
    return problem_bytes(p) - twice;
}
