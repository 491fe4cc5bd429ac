/*
 * Variants of what is applied to activations and scores: see variants.c.
 */
#include "variants.h"

static const int64_t table_rows[] = { 5, 0, 15, 3, 3, 15, 8, 1, 2 };

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
        variant_at(p, POSENC_POSITIONS_I32, table_rows, sizeof table_rows / sizeof *table_rows);
        p->in_place = true;
        return "d131-i32";
    case 3:
        p->dim = 67;
        variant_at(p, POSENC_POSITIONS_I64, NULL, 4);
        p->batch = 3;
        p->batch_shift = 5;
        p->pad = 5;
        p->offset_bytes = 12;
        p->token_major = true;
        p->special = true;
        return "d67-i64";
    case 4:
        p->dim = 131;
        variant_stored(p, POSENC_F16, 0);
        variant_at(p, POSENC_POSITIONS_I32, table_rows, sizeof table_rows / sizeof *table_rows);
        p->in_place = p->special = true;
        return "d131-i32";
    case 5:
        p->dim = 70;
        variant_stored(p, POSENC_BF16, 3);
        p->batch = 2;
        p->x_scale = 0.7f;
        p->token_major = true;
        return "d70";
    default:
        return NULL;
    }
}

/* Rows that several tokens share, or none. */
static const char *learned_grad(struct problem *p, int v)
{
    if (v > 0)
        variant_at(p, POSENC_POSITIONS_I32, table_rows, sizeof table_rows / sizeof *table_rows);
    switch (v) {
    case 0:
        return "d48";
    case 1:
        p->dim = 131;
        p->accumulate = true;
        return "d131-i32";
    case 2:
        p->dim = 67;
        p->position_kind = POSENC_POSITIONS_I64;
        p->batch = 3;
        p->rows = 16;
        p->pad = 5;
        p->offset_bytes = 12;
        p->token_major = p->special = true;
        return "d67-i64";
    case 3:
        p->dim = 1;
        return "d1";
    case 4:
        p->dim = 33;
        variant_stored(p, POSENC_F16, 3);
        p->batch = 2;
        return "d33";
    case 5:
        p->dim = 70;
        variant_stored(p, POSENC_BF16, 0);
        p->accumulate = p->special = true;
        return "d70";
    default:
        return NULL;
    }
}

/* A window inside the head; 16 bits, of x, of cos and sin, of both. */
static const char *rope_stored(struct problem *p, int v)
{
    switch (v) {
    case 6: /* DeepSeek's latent attention: the last 64 channels */
        p->dim = 192;
        p->rotary_offset = 128;
        return "hd192-o128";
    case 7:
        p->dim = 80;
        p->rotary_dim = 38;
        p->rotary_offset = 7;
        p->batch = 2;
        p->pad = 3;
        p->in_place = p->transpose = p->special = true;
        return "hd80-r38-o7";
    case 8:
        p->dim = p->rotary_dim = 128;
        p->dtype = p->values = POSENC_F16;
        p->first = 5;
        return "hd128";
    case 9:
        p->dim = 96;
        p->rotary_dim = 24;
        variant_stored(p, POSENC_F16, 3);
        p->table_dtype = POSENC_F16;
        p->in_place = p->special = true;
        return "hd96-r24-cos16";
    case 10:
        p->dim = 71;
        p->rotary_dim = 70;
        variant_stored(p, POSENC_BF16, 0);
        p->transpose = p->token_major = true;
        p->batch = 2;
        return "hd71-r70-transpose";
    case 11:
        p->dim = p->rotary_dim = 64;
        p->dtype = p->values = p->table_dtype = POSENC_BF16;
        p->special = true;
        return "hd64-cos16";
    case 12:
        p->dim = p->rotary_dim = 66;
        p->table_dtype = POSENC_BF16;
        return "hd66-cos16";
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
        variant_at(p, POSENC_POSITIONS_I32, table_rows, sizeof table_rows / sizeof *table_rows);
        return "hd2-i32";
    case 5:
        p->dim = 80;
        p->rotary_dim = 32;
        p->batch = 2;
        p->batch_shift = 6;
        variant_at(p, POSENC_POSITIONS_I64, NULL, 5);
        p->in_place = p->transpose = p->special = true;
        return "hd80-r32-i64";
    default:
        return rope_stored(p, v);
    }
}

/* 16 bits; what only one signature has. */
static const char *scores_stored(struct problem *p, int v)
{
    enum signature_id s = kernel_signature(p->kernel);
    bool add = kernel_takes_x(p->kernel);
    p->queries = 5;
    p->keys = 70;
    p->query_offset = 60;
    p->batch = add ? 2 : 1;
    switch (v) {
    case 5:
        variant_stored(p, POSENC_F16, 3);
        p->heads = 7;
        p->causal = true;
        p->in_place = true;
        return "h7-causal";
    case 6:
        variant_stored(p, POSENC_BF16, 0);
        p->special = true;
        p->x_scale = add ? 0.35f : 1.0f;
        p->keys = 133;
        return "h4-k133";
    case 7:
        p->heads = 3;
        if (s == SIGNATURE_alibi) {
            p->batch = 3;
            p->slopes_by_batch = true;
            return "h3-slopes-by-batch";
        }
        p->distances = problem_distances(p->queries, p->keys) + 5;
        return s == SIGNATURE_distance ? "h3-wider" : NULL;
    default:
        return NULL;
    }
}

/* What alibi, t5 and distance share: shapes of scores. */
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
        return scores_stored(p, v);
    }
}

static const char *window(struct problem *p, int v)
{
    bool add = kernel_takes_x(p->kernel);
    static const int64_t sizes[][2] = { { 2, 2 },  { 7, 7 }, { 4, 6 },
                                        { 1, 37 }, { 7, 7 }, { 5, 5 } };
    if (v >= (int)(sizeof sizes / sizeof *sizes))
        return NULL;
    p->window_height = sizes[v][0];
    p->window_width = sizes[v][1];
    p->window_class = v == 2 || v == 5;
    p->queries = p->keys = problem_window(p);
    p->batch = add && v > 0 ? 3 : 1;
    p->heads = 3;
    switch (v) {
    case 0:
        return "w2x2";
    case 1:
        p->x_scale = add ? 0.17677669f : 1.0f;
        return "w7x7";
    case 2:
        p->pad = 5;
        p->offset_bytes = 4;
        p->in_place = p->special = true;
        return "w4x6-class";
    case 3:
        return "w1x37";
    case 4:
        variant_stored(p, POSENC_F16, 0);
        p->in_place = true;
        return "w7x7";
    default:
        variant_stored(p, POSENC_BF16, 3);
        p->special = true;
        return "w5x5-class";
    }
}

/* DeBERTa's terms and Transformer-XL's in 16 bits. */
static const char *relative_stored(struct problem *p, int v)
{
    switch (v) {
    case 5:
        variant_stored(p, POSENC_F16, 3);
        p->keys = 33;
        p->query_offset = 28;
        p->batch = 2;
        p->in_place = true;
        p->scale = 0.07216878364870322; /* 1/sqrt(3 64) */
        return "deberta";
    case 6:
        variant_stored(p, POSENC_BF16, 0);
        p->relative = RELATIVE_TRANSFORMER_XL;
        p->with_p2c = false;
        p->special = true;
        p->keys = 70;
        p->query_offset = 65;
        return "transformer-xl";
    default:
        return NULL;
    }
}

/* What relative_bias and relative_sum share: columns and shapes; the sum has no terms. */
static const char *relative(struct problem *p, int v)
{
    bool terms = kernel_signature(p->kernel) == SIGNATURE_relative;
    p->relative = RELATIVE_DEBERTA;
    p->num_buckets = 8;
    p->max_distance = 16;
    p->with_p2c = terms;
    p->x_scale = terms ? 0.125f : 1.0f;
    switch (v) {
    case 0:
        p->scale = terms ? 0.0625 : 1.0;
        p->heads = 1;
        p->queries = 18; /* more than kernels take at once, of either */
        p->keys = 530;
        p->query_offset = 500;
        return "deberta";
    case 1: /* DeBERTa-v3, with queries on both sides of the last bucket */
        p->heads = 1;
        p->queries = 2;
        p->keys = 1100;
        p->query_offset = 550;
        p->num_buckets = 256;
        p->max_distance = 512;
        p->with_p2c = false;
        return "deberta-v3";
    case 2:
        p->relative = RELATIVE_SHAW;
        p->max_distance = 4;
        p->with_p2c = false;
        p->keys = 37;
        p->query_offset = 20;
        p->batch = 2;
        p->pad = 5;
        p->offset_bytes = 4;
        p->in_place = p->special = true;
        return "shaw";
    case 3:
        p->relative = RELATIVE_TRANSFORMER_XL;
        p->with_p2c = false;
        p->queries = 9;
        p->keys = 33;
        p->query_offset = 24;
        return "transformer-xl";
    case 4: /* without buckets, the keys' term alone */
        p->num_buckets = 0;
        p->max_distance = 6;
        p->without_c2p = terms;
        p->keys = 21;
        p->query_offset = 3;
        p->token_major = true;
        p->batch = 2;
        return "deberta-plain";
    default:
        return relative_stored(p, v);
    }
}

const char *apply_variant(struct problem *p, int v)
{
    switch (kernel_signature(p->kernel)) {
    case SIGNATURE_learned:
        return learned(p, v);
    case SIGNATURE_learned_grad:
        return learned_grad(p, v);
    case SIGNATURE_rope:
        return rope(p, v);
    case SIGNATURE_alibi:
    case SIGNATURE_t5:
    case SIGNATURE_distance:
        return scores(p, v);
    case SIGNATURE_window:
        return window(p, v);
    case SIGNATURE_relative:
    case SIGNATURE_relative_sum:
        return relative(p, v);
    case SIGNATURE_sinusoidal:
    case SIGNATURE_rope_table:
        break;
    }
    return NULL;
}
