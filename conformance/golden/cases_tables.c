/*
 * Cases of the tables: sinusoidal, rope_table, profiles exact and hf_f32, and the positions that
 * are hard.
 * Parameters of models are those of ENCODINGS, from each model's published configuration.
 */
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char vaswani[] = "arXiv:1706.03762 section 3.5";
static const char tensor2tensor[] =
    "tensor2tensor layers/common_attention.py get_timing_signal_1d";
static const char roformer[] = "arXiv:2104.09864 section 3.2.2";
static const char hugging_face[] = "transformers modeling_rope_utils.py";

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

/* Where f32 angles, block ends and 24-bit integers give way. */
static const int64_t usual[] = { 0,        1,         2,          40,         511,    4095,
                                 8191,     32767,     65535,      65536,      131071, 1048575,
                                 16777215, 16777216,  16777217,   2147483647, -1,     -40,
                                 -131071,  -16777217, -2147483647 };
static const int64_t few[] = { 1, 511, 131071, 16777217, 2147483647, -8191 };

void at_positions(struct problem *problem, const int64_t *positions, int64_t n)
{
    problem->position_kind = n % 2 ? POSENC_POSITIONS_I64 : POSENC_POSITIONS_I32;
    problem->positions = positions;
    problem->tokens = n;
}

static void at_usual(struct problem *problem) { at_positions(problem, usual, COUNT(usual)); }

void at_few(struct problem *problem) { at_positions(problem, few, COUNT(few)); }

static void at_run(struct problem *problem, int64_t first, int64_t tokens)
{
    problem->position_kind = POSENC_OFFSET;
    problem->first = first;
    problem->tokens = tokens;
}

/* ---- sinusoidal ---- */

static const char *const layout_id[] = { "interleaved", "sincos", "cossin" };

static void list_layouts(struct golden *golden)
{
    static const int64_t dims[] = { 1, 2, 3, 4, 5, 6, 7, 8, 20, 64 };
    for (int64_t d = 0; d < COUNT(dims); d++)
        for (int layout = 0; layout < 3; layout++)
            for (int endpoint = 0; endpoint < 2; endpoint++) {
                const bool odd = dims[d] % 2 != 0;
                if (dims[d] == 64 && layout == POSENC_COS_SIN)
                    continue;
                struct problem *p = add_case(
                    golden, POSENC_KERNEL_sinusoidal,
                    odd        ? "OddDim Layout LargePosition Negative F32Integer"
                    : endpoint ? "Endpoint Layout LargePosition Negative F32Integer"
                               : "Layout LargePosition Negative F32Integer",
                    odd        ? "a cosine written past an odd row, or its last column left out"
                    : endpoint ? "the denominator n taken for n - 1"
                               : "columns in another order; angles formed in f32",
                    endpoint ? tensor2tensor : vaswani, "d%d-%s%s", (int)dims[d],
                    layout_id[layout], endpoint ? "-endpoint" : "");
                p->freqs.dim = dims[d];
                p->freqs.convention = endpoint ? POSENC_ENDPOINT : POSENC_EXPONENT;
                p->layout = (enum posenc_layout)layout;
                at_usual(p);
            }
}

static void list_long_positions(struct golden *golden)
{
    static const struct {
        const char *name;
        int64_t position;
    } at[] = { { "p0", 0 },
               { "p1", 1 },
               { "p40", 40 },
               { "p8191", 8191 },
               { "p131071", 131071 },
               { "p1e6", 1000000 },
               { "p2e20", 1048576 },
               { "p2e24", 16777216 },
               { "p2e24p1", 16777217 },
               { "p2e31m1000", 2147482648 },
               { "p2e31m1", 2147483647 } };
    for (int64_t k = 0; k < COUNT(at); k++) {
        struct problem *p =
            add_case(golden, POSENC_KERNEL_sinusoidal,
                     at[k].position > 16777216 ? "LargePosition F32Integer" : "LargePosition",
                     "the whole row at one position: range reduction of every frequency",
                     vaswani, "d512-%s", at[k].name);
        p->freqs.dim = 512;
        at_run(p, at[k].position, 1);
    }
    static const int64_t dims[] = { 128, 384, 768 };
    for (int64_t d = 0; d < COUNT(dims); d++) {
        struct problem *p = add_case(
            golden, POSENC_KERNEL_sinusoidal, "LargePosition F32Integer Negative",
            "widths of models, positions beyond f32", vaswani, "d%d-far", (int)dims[d]);
        p->freqs.dim = dims[d];
        at_few(p);
    }
    struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "Endpoint Layout",
                                 "the encoder table of Whisper: i/(n-1), sines first",
                                 "whisper/model.py sinusoids", "whisper-d384");
    p->freqs.dim = 384;
    p->freqs.convention = POSENC_ENDPOINT;
    p->layout = POSENC_SIN_COS;
    at_run(p, 1497, 3);
}

static void list_runs(struct golden *golden)
{
    static const struct {
        const char *name;
        int64_t first, tokens;
    } runs[] = { { "from0", 0, 20 },          { "block64", 60, 9 },
                 { "zero", -5, 11 },          { "minus64", -70, 12 },
                 { "f32end", 16777210, 12 },  { "top", 2147483640, 8 },
                 { "bottom", -2147483647, 8 } };
    for (int64_t k = 0; k < COUNT(runs); k++) {
        struct problem *p =
            add_case(golden, POSENC_KERNEL_sinusoidal, "Consecutive Negative LargePosition",
                     "off by one position at the end of a block or across zero", vaswani,
                     "d20-run-%s", runs[k].name);
        p->freqs.dim = 20;
        at_run(p, runs[k].first, runs[k].tokens);
    }
    for (int major = 0; major < 2; major++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "Batch Stride",
                                     "position = batch index instead of token index", vaswani,
                                     "d20-batch%s", major ? "-token-major" : "");
        p->freqs.dim = 20;
        at_positions(p, few, 4);
        p->batch = 3;
        p->batch_shift = 1000;
        p->token_major = major != 0;
        p->pad = major ? 3 : 0;
        p->offset_bytes = major ? 4 : 0;
    }
    struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "Batch",
                                 "a batch of single tokens: every row has its own position",
                                 vaswani, "d20-batch5-token1");
    p->freqs.dim = 20;
    at_positions(p, few + 2, 1);
    p->batch = 5;
    p->batch_shift = -131072;
}

static void list_scales(struct golden *golden)
{
    static const double scales[] = { 0.17677669529663687, -1, 3, 0.1 };
    static const char *const names[] = { "sqrt2d", "minus1", "3", "0.1" };
    for (int64_t k = 0; k < COUNT(scales); k++) {
        struct problem *p =
            add_case(golden, POSENC_KERNEL_sinusoidal, "Scale",
                     "scale left out, or the product rounded twice",
                     "mlx nn.SinusoidalPositionalEncoding", "d64-scale-%s", names[k]);
        p->freqs.dim = 64;
        p->scale = scales[k];
        at_few(p);
    }
    static const double bases[] = { 1.5e5, 5e5, 1e6, 5e6, 1e7, 1e8, 2.5, 0.5 };
    static const char *const base_names[] = { "1.5e5", "5e5", "1e6", "5e6",
                                              "1e7",   "1e8", "2.5", "0.5" };
    for (int64_t k = 0; k < COUNT(bases); k++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "Base LargePosition",
                                     "10000 built in", vaswani, "d20-base-%s", base_names[k]);
        p->freqs.dim = 20;
        p->freqs.rope_theta = bases[k];
        at_few(p);
    }
    static const double own[] = { 1, 0.5, 0.1, 3, 1e-6 };
    struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "Base LargePosition",
                                 "the caller's own frequencies replaced by the built-in ones",
                                 vaswani, "d10-own-frequencies");
    p->freqs.dim = 10;
    p->freqs.values = own;
    at_few(p);
}

void list_sinusoidal(struct golden *golden)
{
    add_group(golden, "sinusoidal");
    list_layouts(golden);
    list_long_positions(golden);
    list_runs(golden);
    list_scales(golden);
}

/* ---- convergents ---- */

void list_convergents(struct golden *golden)
{
    static const struct {
        const char *name;
        int64_t dim;
        double base;
        int64_t known[2]; /* found by searches before, and to be kept */
    } plans[] = { { "d512", 512, 1e4, { 1715512116, 0 } }, { "d768", 768, 1e4, { 497577, 0 } },
                  { "d128", 128, 1e4, { 0, 0 } },          { "d128-5e5", 128, 5e5, { 0, 0 } },
                  { "d128-1e6", 128, 1e6, { 0, 0 } },      { "d768-1e6", 768, 1e6, { 0, 0 } } };
    add_group(golden, "convergents");
    for (int64_t k = 0; k < COUNT(plans); k++) {
        struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
        spec.dim = plans[k].dim;
        spec.rope_theta = plans[k].base;
        struct reference_plan plan;
        reference_plan_init(&plan, &spec);
        for (int kind = 0; kind < 2; kind++) {
            int64_t positions[32];
            int64_t n = hard_positions(&plan, kind, plans[k].dim == 128 ? 14 : 5, positions);
            if (kind == 0 && plans[k].known[0])
                positions[n++] = plans[k].known[0];
            const bool rope = plans[k].base != 1e4;
            struct problem *p = add_case(
                golden, rope ? POSENC_KERNEL_rope_table : POSENC_KERNEL_sinusoidal,
                "Convergent LargePosition F32Integer",
                "f64 rotation errs by 1e-16 absolutely: thousands of ulps next to a zero",
                vaswani, "convergents-%s-%s", plans[k].name, kind ? "cos" : "sin");
            p->freqs = spec;
            at_positions(p, keep_positions(golden, positions, n), n);
        }
        reference_plan_clear(&plan);
    }
}

/* ---- rope_table ---- */

void list_rope_table(struct golden *golden)
{
    static const int64_t dims[] = { 2, 4, 6, 8, 20, 24, 32, 42, 48, 64, 80, 96, 128, 256 };
    static const double bases[] = { 1.5e5, 5e5, 1e6, 5e6, 1e7, 1e8 };
    static const char *const names[] = { "1.5e5", "5e5", "1e6", "5e6", "1e7", "1e8" };
    add_group(golden, "rope_table");
    for (int64_t d = 0; d < COUNT(dims); d++) {
        struct problem *p = add_case(
            golden, POSENC_KERNEL_rope_table, "LargePosition F32Integer Negative",
            "every rotary_dim of models; tails of vectors", roformer, "r%d", (int)dims[d]);
        p->freqs.dim = dims[d];
        if (dims[d] == 64)
            at_usual(p);
        else
            at_few(p);
    }
    for (int64_t b = 0; b < COUNT(bases); b++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_rope_table, "Base LargePosition",
                                     "10000 built in", roformer, "r64-base-%s", names[b]);
        p->freqs.dim = 64;
        p->freqs.rope_theta = bases[b];
        at_few(p);
    }
    struct problem *p = add_case(golden, POSENC_KERNEL_rope_table, "Consecutive Negative",
                                 "off by one position across zero", roformer, "r32-run-zero");
    p->freqs.dim = 32;
    at_run(p, -5, 11);
    p = add_case(golden, POSENC_KERNEL_rope_table, "Consecutive LargePosition",
                 "off by one position at the end of a block", roformer, "r32-run-block64");
    p->freqs.dim = 32;
    at_run(p, 131064, 12);
    p = add_case(golden, POSENC_KERNEL_rope_table, "Batch Stride", "rows of another batch",
                 roformer, "r32-batch3-token1");
    p->freqs.dim = 32;
    at_positions(p, few + 1, 1);
    p->batch = 3;
    p->batch_shift = 77;
    p->pad = 5;
    p = add_case(golden, POSENC_KERNEL_rope_table, "Llama3 LargePosition F32Integer Negative",
                 "every usual position under llama3 scaling", hugging_face,
                 "llama31-positions");
    p->freqs = llama31_spec();
    at_usual(p);
    list_families(golden, POSENC_EXACT);
}

/* ---- hf_f32 ---- */

void list_hf_f32(struct golden *golden)
{
    add_group(golden, "hf_f32");
    static const int64_t dims[] = { 2, 6, 64, 96, 128 };
    for (int64_t d = 0; d < COUNT(dims); d++) {
        struct problem *p = add_case(
            golden, POSENC_KERNEL_rope_table, "Profile F32Integer LargePosition Negative",
            "exact where the f32 order was asked; position not rounded to f32", hugging_face,
            "r%d", (int)dims[d]);
        p->freqs.dim = dims[d];
        p->freqs.profile = POSENC_HF_F32;
        if (dims[d] == 64)
            at_usual(p);
        else
            at_few(p);
    }
    static const double bases[] = { 1.5e5, 5e5, 1e6, 1e7 };
    static const char *const names[] = { "1.5e5", "5e5", "1e6", "1e7" };
    for (int64_t b = 0; b < COUNT(bases); b++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_rope_table, "Profile Base",
                                     "the power formed as exp2 or exp of a product",
                                     hugging_face, "r128-base-%s", names[b]);
        p->freqs.dim = 128;
        p->freqs.rope_theta = bases[b];
        p->freqs.profile = POSENC_HF_F32;
        at_few(p);
    }
    list_families(golden, POSENC_HF_F32);
    for (int scaled = 0; scaled < 2; scaled++) {
        struct problem *p =
            add_case(golden, POSENC_KERNEL_sinusoidal, scaled ? "Profile Scale" : "Profile",
                     "f32 angles in the sinusoidal table", hugging_face, "d64%s",
                     scaled ? "-scale3" : "");
        p->freqs.dim = 64;
        p->freqs.profile = POSENC_HF_F32;
        p->scale = scaled ? 3 : 1;
        at_usual(p);
    }
    struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "Profile OddDim Layout",
                                 "odd width in halves", hugging_face, "d7-sincos");
    p->freqs.dim = 7;
    p->freqs.profile = POSENC_HF_F32;
    p->layout = POSENC_SIN_COS;
    at_few(p);
}
