/*
 * Cases of application: rotations, sums, biases.  Inputs come from the recipes of inputs.c;
 * each case has its own seed, but for the published ones of ONNX.
 */
#include "golden.h"

#include <math.h>

static const char vaswani[] = "arXiv:1706.03762 section 3.5";
static const char roformer[] = "arXiv:2104.09864 section 3.4.2";
static const char press[] =
    "arXiv:2108.12409 section 3; attention_with_linear_biases get_slopes";
static const char raffel[] = "arXiv:1910.10683 section 2.1; mesh transformer_layers.py";
static const char gpt2[] = "gpt-2 src/model.py wpe";

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

static const int64_t shuffled[] = { 7, 0, 4095, 3, 3, 40, 2 };

/* ---- rope ---- */

static struct problem *rotation(struct golden *golden, enum posenc_kernel kernel,
                                const char *flags, const char *note, const char *suffix,
                                int64_t head_dim, int64_t rotary_dim)
{
    struct problem *p = add_case(golden, kernel, flags, note, roformer, "%s", suffix);
    p->dim = head_dim;
    p->rotary_dim = rotary_dim;
    p->heads = 2;
    p->tokens = 3;
    p->rows = 16;
    p->first = 1;
    return p;
}

static void list_shapes(struct golden *golden, enum posenc_kernel k)
{
    struct problem *p;
    rotation(golden, k, "Pairing", "the other pairing; sign of a sine", "hd4", 4, 4);
    p = rotation(golden, k, "Pairing", "rows of cos and sin by position, not by token", "hd128",
                 128, 128);
    p->position_kind = POSENC_POSITIONS_I64;
    p->positions = shuffled;
    p->rows = 4096;
    rotation(golden, k, "Pairing", "a tail shorter than a vector", "hd42", 42, 42)->heads = 3;
    rotation(golden, k, "Pairing", "the least head", "hd2", 2, 2)->tokens = 7;
    p = rotation(golden, k, "Pairing", "position 0 is the identity, all else is not",
                 "hd32-from0", 32, 32);
    p->first = 0;
    rotation(golden, k, "Pairing Partial", "phi-2: the tail rotated too", "hd80-r32", 80, 32);
    rotation(golden, k, "Pairing Partial", "GPT-NeoX: pairs span the head, not rotary_dim",
             "hd96-r24", 96, 24);
    rotation(golden, k, "Pairing Partial", "GPT-J", "hd256-r64", 256, 64)->heads = 1;
    rotation(golden, k, "Pairing Partial", "a tail of two channels", "hd6-r4", 6, 4)->tokens =
        7;
    p = rotation(golden, k, "SpecialValues",
                 "NaN or infinity lost, or spread to another pair; -0", "hd64-special", 64, 64);
    p->special = true;
    p->tokens = 4;
    p = rotation(golden, k, "SpecialValues Partial", "the tail copies NaN, -0 and subnormals",
                 "hd20-r4-special", 20, 4);
    p->special = true;
    p->tokens = 4;
}

static void list_memory(struct golden *golden, enum posenc_kernel k)
{
    struct problem *p;
    rotation(golden, k, "Pairing Transpose", "transpose ignored", "hd64-transpose", 64, 64)
        ->transpose = true;
    p = rotation(golden, k, "Pairing Transpose Partial InPlace",
                 "in place: x0 read after it was written", "hd20-r12-transpose-in-place", 20,
                 12);
    p->transpose = p->in_place = true;
    p = rotation(golden, k, "Pairing InPlace Stride", "in place, rows apart", "hd64-in-place",
                 64, 64);
    p->in_place = true;
    p->pad = 3;
    p->offset_bytes = 4;
    p = rotation(golden, k, "Batch", "batch > 1 with one token each: wrong rows",
                 "hd32-batch4-token1", 32, 32);
    p->batch = 4;
    p->tokens = 1;
    p->position_kind = POSENC_POSITIONS_I32;
    p->batch_shift = 3;
    p = rotation(golden, k, "Batch Stride", "[tokens, batch]: position = batch index",
                 "hd32-token-major", 32, 32);
    p->batch = 2;
    p->token_major = true;
    p = rotation(golden, k, "Batch", "one list of positions for every batch",
                 "hd32-batch2-shared", 32, 32);
    p->batch = 2;
    p->tokens = COUNT(shuffled);
    p->position_kind = POSENC_POSITIONS_I32;
    p->positions = shuffled;
    p->rows = 4096;
    p->heads = 1;
}

void list_rope(struct golden *golden)
{
    add_group(golden, "rope");
    for (int k = 0; k < 2; k++) {
        list_shapes(golden, k ? POSENC_KERNEL_rope_interleaved : POSENC_KERNEL_rope_half);
        list_memory(golden, k ? POSENC_KERNEL_rope_interleaved : POSENC_KERNEL_rope_half);
    }
}

/* ---- The published tests of ONNX RotaryEmbedding-23 ---- */

/* 16 node tests, test_rotary_embedding..., of 8 computations: each is there as one node and as
 * its function body (_expanded), with the same data. */
void list_onnx(struct golden *golden)
{
    static const char source[] =
        "ONNX RotaryEmbedding-23, onnx/backend/test/case/node/rotaryembedding.py";
    static const char given[] = "cos and sin made anew from positions: these are of no angle",
                      ids[] = "the row of another token or batch, where a cache has all rows",
                      tail[] = "the tail rotated too, or pairs that span the head";
    const enum posenc_kernel half = POSENC_KERNEL_rope_half,
                             interleaved = POSENC_KERNEL_rope_interleaved;
    const struct {
        const char *name, *flags, *note;
        enum posenc_kernel kernel;
        enum recipe recipe;
        int64_t rotary_dim;
    } all[] = {
        { "", "Pairing Batch", given, half, RECIPE_ONNX, 8 },
        { "-3d-input", "Pairing Batch", "heads and tokens exchanged", half, RECIPE_ONNX_3D, 8 },
        { "-interleaved", "Pairing Batch", given, interleaved, RECIPE_ONNX, 8 },
        { "-with-rotary-dim", "Pairing Batch Partial", tail, half, RECIPE_ONNX, 4 },
        { "-with-interleaved-rotary-dim", "Pairing Batch Partial", tail, interleaved,
          RECIPE_ONNX, 4 },
        { "-no-position-ids", "Pairing Batch", ids, half, RECIPE_ONNX_NO_POSITION_IDS, 8 },
        { "-no-position-ids-interleaved", "Pairing Batch", ids, interleaved,
          RECIPE_ONNX_NO_POSITION_IDS, 8 },
        { "-no-position-ids-rotary-dim", "Pairing Batch Partial", tail, half,
          RECIPE_ONNX_NO_POSITION_IDS, 4 },
    };
    add_group(golden, "onnx");
    for (int64_t k = 0; k < COUNT(all); k++) {
        struct problem *p = add_case(golden, all[k].kernel, all[k].flags, all[k].note, source,
                                     "onnx-rotary-embedding%s", all[k].name);
        const bool cache = all[k].recipe != RECIPE_ONNX_NO_POSITION_IDS;
        p->batch = 2;
        p->tokens = 3;
        p->heads = 4;
        p->dim = 8;
        p->rotary_dim = all[k].rotary_dim;
        p->rows = cache ? 50 : p->batch * p->tokens;
        p->position_kind = POSENC_POSITIONS_I64;
        p->batch_shift = cache ? 0 : p->tokens;
        p->recipe = all[k].recipe;
    }
}

/* ---- learned_add, sinusoidal_add ---- */

static void vary(struct problem *p, int k)
{
    switch (k) {
    case 1:
        p->in_place = true;
        break;
    case 2:
        p->batch = 3;
        p->token_major = true;
        break;
    case 3:
        p->x_scale = 22.627416997969522f; /* sqrt(512) */
        break;
    case 4:
        p->pad = 3;
        p->offset_bytes = 4;
        p->batch = 2;
        break;
    case 5:
        p->special = true;
        break;
    case 6:
        p->position_kind = POSENC_POSITIONS_I32;
        p->positions = shuffled;
        p->tokens = COUNT(shuffled);
        break;
    case 7:
        p->position_kind = POSENC_POSITIONS_I64;
        p->batch = 4;
        p->tokens = 1;
        p->batch_shift = 5;
        break;
    default:
        break;
    }
}

static const struct {
    const char *name, *flags, *note;
} variants[] = {
    { "plain", "Scale", "the table value added twice or not at all" },
    { "in-place", "InPlace", "x read after it was written" },
    { "token-major", "Batch Stride", "[tokens, batch, dim]: position = batch index" },
    { "scale", "Scale", "x_scale applied to the table, or rounded before the sum" },
    { "stride", "Stride Batch", "rows taken as dense; aligned loads" },
    { "special", "SpecialValues", "NaN or infinity lost" },
    { "positions", "Batch", "token index taken for the position" },
    { "batch4-token1", "Batch", "batch > 1 with one token: one row for all" },
};

static void list_learned_add(struct golden *golden)
{
    add_group(golden, "learned_add");
    for (int k = 0; k < COUNT(variants); k++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_learned_add, variants[k].flags,
                                     variants[k].note, gpt2, "d37-%s", variants[k].name);
        p->dim = 37;
        p->rows = k == 6 ? 4096 : 32;
        p->tokens = 5;
        p->first = 2;
        vary(p, k);
    }
    struct problem *p =
        add_case(golden, POSENC_KERNEL_learned_add, "Batch",
                 "the last row of the table taken for out of range", gpt2, "d768-last");
    p->dim = 768;
    p->rows = 4;
    p->tokens = 1;
    p->first = 3;
}

static void list_sinusoidal_add(struct golden *golden)
{
    struct problem *p;
    add_group(golden, "sinusoidal_add");
    for (int k = 0; k < COUNT(variants); k++)
        for (int hf = 0; hf < 2; hf++) {
            p = add_case(golden, POSENC_KERNEL_sinusoidal_add, variants[k].flags,
                         variants[k].note, vaswani, "d37-%s", variants[k].name);
            p->freqs.dim = 37;
            p->freqs.profile = hf ? POSENC_HF_F32 : POSENC_EXACT;
            p->tokens = 5;
            p->first = hf ? 16777213 : 131070;
            vary(p, k);
        }
    for (int layout = 1; layout < 3; layout++) {
        p = add_case(golden, POSENC_KERNEL_sinusoidal_add, "Layout OddDim Negative",
                     "the zero column of an odd width leaves x as it is", vaswani, "d21-%s",
                     layout == 1 ? "sincos" : "cossin");
        p->freqs.dim = 21;
        p->layout = (enum posenc_layout)layout;
        p->tokens = 9;
        p->first = -4;
        p->scale = 0.5;
    }
    p = add_case(golden, POSENC_KERNEL_sinusoidal_add, "Endpoint Layout",
                 "the denominator n taken for n - 1", "whisper/model.py sinusoids",
                 "d64-endpoint");
    p->freqs.dim = 64;
    p->freqs.convention = POSENC_ENDPOINT;
    p->layout = POSENC_SIN_COS;
    p->tokens = 4;
    p->first = 60;
}

void list_added(struct golden *golden)
{
    list_learned_add(golden);
    list_sinusoidal_add(golden);
}

/* ---- alibi, t5 ---- */

static struct problem *scores(struct golden *golden, enum posenc_kernel kernel,
                              const char *flags, const char *note, const char *source,
                              const char *suffix, int64_t heads, int64_t queries, int64_t keys,
                              int64_t query_offset)
{
    struct problem *p = add_case(golden, kernel, flags, note, source, "%s", suffix);
    p->heads = heads;
    p->queries = queries;
    p->keys = keys;
    p->query_offset = query_offset;
    return p;
}

static void list_slopes(struct golden *golden)
{
    static const int64_t heads[] = { 1, 8, 12, 32, 40, 64, 71, 112 };
    for (int64_t k = 0; k < COUNT(heads); k++)
        for (int causal = 0; causal < 2; causal++) {
            struct problem *p =
                add_case(golden, POSENC_KERNEL_alibi, causal ? "Slopes Causal" : "Slopes",
                         causal ? "a key after the query not masked, or the query itself"
                                : "slopes from h = 0, or uniform where heads are no power of 2",
                         press, "h%d-%s", (int)heads[k], causal ? "causal" : "symmetric");
            p->heads = heads[k];
            p->queries = 2;
            p->keys = 5;
            p->query_offset = 2;
            p->causal = causal != 0;
        }
}

static void list_alibi(struct golden *golden)
{
    const enum posenc_kernel alibi = POSENC_KERNEL_alibi, add = POSENC_KERNEL_alibi_add;
    scores(golden, alibi, "Slopes LargePosition",
           "decoding far out: distances formed in f16 or bf16", press, "h8-decode", 8, 1, 9,
           131071);
    scores(golden, alibi, "Slopes F32Integer", "the greatest distance", press, "h1-far", 1, 1,
           3, 16777215);
    scores(golden, alibi, "Negative", "queries before the keys", press, "h4-before", 4, 3, 7,
           -5);
    scores(golden, alibi, "Causal Negative", "all masked", press, "h4-before-causal", 4, 3, 7,
           -5)
        ->causal = true;
    scores(golden, alibi, "Slopes", "alibi_bias_max left at 8", press, "h12-max16", 12, 2, 7, 0)
        ->alibi_bias_max = 16;
    scores(golden, alibi, "Stride", "rows apart", press, "h3-pad", 3, 4, 21, 17)->pad = 3;
    struct problem *p;
    p = scores(golden, add, "Scale Batch", "scale applied to the bias as well", press,
               "h12-scale", 12, 2, 9, 7);
    p->x_scale = 0.125f;
    p->batch = 2;
    p = scores(golden, add, "Scale", "product rounded before the sum", press,
               "h5-scale-inexact", 5, 3, 17, 14);
    p->x_scale = 0.088388346f; /* 1/sqrt(128) */
    p = scores(golden, add, "Causal Scale", "mask lost in the sum", press, "h8-causal", 8, 3,
               17, 14);
    p->causal = true;
    p = scores(golden, add, "InPlace Stride", "in place, rows apart, unaligned", press,
               "h3-in-place", 3, 4, 21, 17);
    p->in_place = true;
    p->pad = 5;
    p->offset_bytes = 8;
    p = scores(golden, add, "SpecialValues Causal",
               "NaN or +infinity masked away: inf - inf is NaN", press, "h4-special", 4, 4, 33,
               20);
    p->special = p->causal = true;
}

struct buckets {
    const char *name;
    int64_t num_buckets, max_distance;
    bool bidirectional;
    int64_t keys; /* one query in their middle, or at their end */
};

static void list_t5(struct golden *golden)
{
    static const struct buckets all[] = {
        { "b32-m128-bi", 32, 128, true, 281 },     { "b32-m128-uni", 32, 128, false, 161 },
        { "b64-m128-bi", 64, 128, true, 281 },     { "b320-m800-bi", 320, 800, true, 1641 },
        { "b320-m800-uni", 320, 800, false, 831 }, { "b32-m1000-bi", 32, 1000, true, 1031 },
        { "b128-m512-uni", 128, 512, false, 541 }, { "b4-m7-bi", 4, 7, true, 25 },
        { "b2-m3-uni", 2, 3, false, 9 },
    };
    for (int64_t k = 0; k < COUNT(all); k++) {
        const int64_t middle = all[k].bidirectional ? all[k].keys / 2 : all[k].keys - 8;
        struct problem *p = scores(
            golden, POSENC_KERNEL_t5_bias, "Buckets",
            all[k].bidirectional ? "a logarithm one ulp low; the halves of the table exchanged"
                                 : "keys after the query not in bucket 0",
            raffel, all[k].name, 1, 1, all[k].keys, middle);
        p->num_buckets = all[k].num_buckets;
        p->max_distance = all[k].max_distance;
        p->bidirectional = all[k].bidirectional;
    }
}

static void list_t5_bias(struct golden *golden)
{
    static const struct {
        const char *name, *flags, *note;
        enum posenc_kernel kernel;
    } more[] = {
        { "h12-square", "Buckets", "heads and buckets exchanged in the table",
          POSENC_KERNEL_t5_bias },
        { "h8-decode", "Buckets LargePosition", "one query far out", POSENC_KERNEL_t5_bias },
        { "h6-add", "Buckets Batch", "a bias per batch", POSENC_KERNEL_t5_bias_add },
        { "h6-add-scale", "Buckets Scale", "scale applied to the bias",
          POSENC_KERNEL_t5_bias_add },
        { "h3-add-in-place", "Buckets InPlace Stride", "in place, rows apart",
          POSENC_KERNEL_t5_bias_add },
        { "h4-add-special", "SpecialValues", "NaN or infinity lost",
          POSENC_KERNEL_t5_bias_add },
    };
    for (int k = 0; k < COUNT(more); k++) {
        static const int64_t heads[] = { 12, 8, 6, 6, 3, 4 };
        struct problem *p =
            scores(golden, more[k].kernel, more[k].flags, more[k].note, raffel, more[k].name,
                   heads[k], k == 1 ? 1 : 5, k == 1 ? 19 : 21, k == 1 ? 100000 : 3);
        p->num_buckets = 32;
        p->max_distance = 128;
        p->bidirectional = k != 1;
        p->batch = k == 2 ? 2 : 1;
        p->x_scale = k == 3 ? 0.088388346f : 1.0f;
        p->in_place = k == 4;
        p->pad = k == 4 ? 3 : 0;
        p->offset_bytes = k == 4 ? 12 : 0;
        p->special = k == 5;
    }
}

void list_bias(struct golden *golden)
{
    add_group(golden, "alibi");
    list_slopes(golden);
    list_alibi(golden);
    add_group(golden, "t5");
    list_t5(golden);
    list_t5_bias(golden);
}
