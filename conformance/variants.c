/*
 * The list of variants.  Each is there for something: a tail shorter than a vector, an odd dim,
 * a step over a block of 64 positions, the far end of positions, the positions closest to a
 * zero of a sine, strides, special values.
 */
#include "variants.h"
#include "inputs.h"

/* Closest to zeros of a sine or cosine (dim 512, pair 25; dim 768, pair 317), both ends of the
 * range, both sides of a block and of 2^20. */
static const int64_t hard_positions[] = { 0,           1,          63,          64,
                                          65,          1715512116, -1715512116, 2147483647,
                                          -2147483647, 497577,     -497577,     1048575,
                                          1048576,     16777217,   -2 };
static const int64_t table_rows[] = { 5, 0, 15, 3, 3, 15, 8, 1, 2 };

static void llama31(struct posenc_freqs_spec *f)
{
    f->rope_theta = 500000.0;
    f->scaling = POSENC_SCALING_LLAMA3;
    f->factor = 8.0;
    f->low_freq_factor = 1.0;
    f->high_freq_factor = 4.0;
    f->original_max_position_embeddings = 8192.0;
}

static void gpt_oss(struct posenc_freqs_spec *f)
{
    f->rope_theta = 150000.0;
    f->scaling = POSENC_SCALING_YARN;
    f->factor = 32.0;
    f->truncate = false;
    f->original_max_position_embeddings = 4096.0;
}

/* Phi-4-mini at 131072 tokens, its factors evenly spaced. */
static void phi4_mini(struct problem *p)
{
    p->freqs.scaling = POSENC_SCALING_LONGROPE;
    p->freqs.factor = 32.0;
    p->freqs.original_max_position_embeddings = 4096.0;
    p->freqs.seq_len = 131072;
    p->short_factor_last = 1.0;
    p->long_factor_last = 47.77;
}

static void at(struct problem *p, enum posenc_position_kind kind, const int64_t *positions,
               int64_t n)
{
    p->position_kind = kind;
    p->positions = positions;
    p->tokens = n;
}

/* Positions beyond one integer a token: times with a fraction, tokens of a picture.  Sinusoidal
 * tables have times alone. */
static const char *placed(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    const bool table = kernel_signature(p->kernel) == SIGNATURE_rope_table;
    p->position_kind = POSENC_POSITIONS_F32;
    p->time_step = 0.37;
    if (v == 14) {
        f->dim = table ? 66 : 67;
        p->layout = POSENC_COS_SIN;
        p->first = -50;
        return "d67-times";
    }
    if (!table)
        return NULL;
    p->mrope_grid = 7;
    if (v == 15) { /* Qwen3-VL */
        f->dim = 128;
        f->rope_theta = 5e6;
        f->mrope_layout = POSENC_MROPE_INTERLEAVED;
        f->mrope_section[0] = 24;
        f->mrope_section[1] = f->mrope_section[2] = 20;
        p->position_kind = POSENC_POSITIONS_I32;
        p->first = -3;
        p->batch = 2;
        p->batch_shift = 131072;
        p->pad = 3;
        return "d128-interleaved";
    }
    if (v == 16) { /* Qwen2-VL's pictures, and between their patches */
        f->dim = 80;
        f->mrope_layout = POSENC_MROPE_RESTARTED;
        f->mrope_section[0] = f->mrope_section[1] = 20;
        return "d80-restarted";
    }
    return NULL;
}

/* The scaling families beyond: rows with a step over a block and a tail. */
static const char *extended(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    p->tokens = 37;
    switch (v) {
    case 10:
        f->dim = 128;
        f->scaling = POSENC_SCALING_DYNAMIC;
        f->factor = 2.0;
        f->max_position_embeddings = 4096.0;
        f->seq_len = 100001;
        p->first = 99965;
        return "d128-dynamic";
    case 11:
        f->dim = 66;
        f->scaling = POSENC_SCALING_NTK;
        f->factor = 8.0;
        p->layout = POSENC_COS_SIN;
        p->first = -20;
        return "d66-ntk";
    case 12:
        f->dim = 96;
        phi4_mini(p);
        p->first = 131040;
        p->in_place = true;
        return "d96-longrope";
    case 13:
        f->dim = 80;
        f->rope_theta = 1e6;
        f->scaling = POSENC_SCALING_PROPORTIONAL;
        f->partial_rotary_factor = 0.25;
        p->layout = POSENC_SIN_COS;
        p->first = -5;
        return "d80-proportional";
    default:
        return placed(p, v);
    }
}

static const char *sinusoidal(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    switch (v) {
    case 0:
        p->tokens = 130;
        return "d64-t130";
    case 1:
        f->dim = kernel_signature(p->kernel) == SIGNATURE_rope_table ? 6 : 7;
        p->layout = POSENC_SIN_COS;
        p->batch = 2;
        p->first = -3;
        return "d7-negative";
    case 2:
        f->dim = 130;
        f->convention = POSENC_ENDPOINT;
        p->layout = POSENC_COS_SIN;
        p->tokens = 33;
        p->first = -77;
        p->scale = 0.125;
        p->x_scale = 11.313708f;
        return "d130-endpoint";
    case 3:
        f->dim = 512;
        p->tokens = 99;
        p->first = 2147483648 - 99;
        return "d512-p2e31";
    case 4:
        f->dim = 96;
        f->scaling = POSENC_SCALING_LINEAR;
        f->factor = 4.0;
        at(p, POSENC_POSITIONS_I64, NULL, 21);
        p->batch = 3;
        p->first = 50;
        p->batch_shift = 1000;
        p->pad = 3;
        p->offset_bytes = 4;
        p->token_major = true;
        return "d96-i64";
    case 5:
        f->dim = 128;
        llama31(f);
        p->tokens = 70;
        p->first = 131000;
        p->in_place = true;
        return "d128-llama31";
    case 6:
        gpt_oss(f);
        p->layout = POSENC_SIN_COS;
        p->tokens = 70;
        p->first = 4090;
        p->special = true;
        return "d64-yarn";
    case 7:
        f->dim = kernel_signature(p->kernel) == SIGNATURE_rope_table ? 2 : 1;
        return "d1";
    case 8:
    case 9:
        f->dim = v == 8 ? 512 : 768;
        at(p, POSENC_POSITIONS_I32, hard_positions,
           sizeof hard_positions / sizeof *hard_positions);
        return v == 8 ? "d512-hard" : "d768-hard";
    default:
        return extended(p, v);
    }
}

/* Whether a profile has what a variant asks for: torch_exp_f32 no scaling, ggml_f32 no endpoint
 *, no proportional scaling and no sections that restart. */
static bool in_profile(const struct posenc_freqs_spec *f)
{
    if (f->profile == POSENC_GGML_F32)
        return f->convention == POSENC_EXPONENT && f->scaling != POSENC_SCALING_PROPORTIONAL &&
               f->mrope_layout != POSENC_MROPE_RESTARTED;
    return f->profile != POSENC_TORCH_EXP_F32 || f->scaling == POSENC_SCALING_NONE;
}

static const char *learned(struct problem *p, int v)
{
    switch (v) {
    case 0:
        p->x_scale = 6.9282032f;
        return "d48";
    case 1:
        p->dim = 1;
        p->first = 9;
        return "d1";
    case 2:
        p->dim = 131;
        at(p, POSENC_POSITIONS_I32, table_rows, sizeof table_rows / sizeof *table_rows);
        p->in_place = true;
        return "d131-i32";
    case 3:
        p->dim = 67;
        at(p, POSENC_POSITIONS_I64, NULL, 4);
        p->batch = 3;
        p->batch_shift = 5;
        p->pad = 5;
        p->offset_bytes = 12;
        p->token_major = true;
        p->special = true;
        return "d67-i64";
    default:
        return NULL;
    }
}

static const char *rope(struct problem *p, int v)
{
    switch (v) {
    case 0:
        return "hd64";
    case 1:
        p->dim = 96;
        p->rotary_dim = 24;
        p->batch = 2;
        p->special = true;
        return "hd96-r24";
    case 2:
        p->dim = 71;
        p->rotary_dim = 70;
        p->transpose = true;
        p->token_major = true;
        p->batch = 2;
        p->pad = 3;
        p->offset_bytes = 4;
        return "hd71-r70-transpose";
    case 3:
        p->dim = p->rotary_dim = 128;
        p->rows = 4200;
        p->first = 4090;
        p->tokens = 9;
        p->in_place = true;
        return "hd128-in-place";
    case 4:
        p->dim = p->rotary_dim = 2;
        at(p, POSENC_POSITIONS_I32, table_rows, sizeof table_rows / sizeof *table_rows);
        return "hd2-i32";
    case 5:
        p->dim = 80;
        p->rotary_dim = 32;
        p->batch = 2;
        p->batch_shift = 6;
        at(p, POSENC_POSITIONS_I64, NULL, 5);
        p->in_place = p->transpose = p->special = true;
        return "hd80-r32-i64";
    default:
        return NULL;
    }
}

/* What alibi and t5 share: shapes of scores. */
static const char *scores(struct problem *p, int v)
{
    bool add = kernel_takes_x(p->kernel);
    switch (v) {
    case 0:
        p->x_scale = add ? 0.125f : 1.0f;
        return "h4";
    case 1:
        p->heads = 12;
        p->queries = p->keys = 70;
        p->query_offset = 0;
        p->causal = true;
        p->bidirectional = false;
        return "h12-causal";
    case 2:
        p->heads = 7;
        p->queries = 3;
        p->keys = 301;
        p->query_offset = 298;
        p->batch = add ? 2 : 1;
        p->in_place = true;
        p->pad = 5;
        p->offset_bytes = 4;
        return "h7-k301";
    case 3:
        p->heads = 5;
        p->queries = 9;
        p->keys = 33;
        p->query_offset = -20;
        p->alibi_bias_max = 16.0;
        p->num_buckets = 320;
        p->max_distance = 800;
        p->special = true;
        p->x_scale = add ? 0.08838835f : 1.0f;
        return "h5-ahead";
    case 4:
        p->heads = 1;
        p->queries = 1;
        p->keys = 1;
        p->query_offset = 8388607;
        return "h1-far";
    default:
        return NULL;
    }
}

/* One of the list, whether or not its profile has it; seeds follow from the place in the list. */
static bool listed(enum posenc_kernel kernel, enum posenc_profile profile, int v,
                   struct problem *problem, const char **name)
{
    *problem = problem_default(kernel);
    *name = NULL;
    switch (kernel_signature(kernel)) {
    case SIGNATURE_sinusoidal:
    case SIGNATURE_rope_table:
        problem->freqs.profile = profile;
        *name = sinusoidal(problem, v);
        break;
    case SIGNATURE_learned:
        *name = learned(problem, v);
        break;
    case SIGNATURE_rope:
        *name = rope(problem, v);
        break;
    case SIGNATURE_alibi:
    case SIGNATURE_t5:
        *name = scores(problem, v);
        break;
    }
    problem->seed = 1000 + (uint64_t)v;
    return *name != NULL;
}

bool variant(enum posenc_kernel kernel, enum posenc_profile profile, int v,
             struct problem *problem, const char **name)
{
    for (int k = 0; listed(kernel, profile, k, problem, name); k++)
        if (in_profile(&problem->freqs) && v-- == 0)
            return true;
    return false;
}
