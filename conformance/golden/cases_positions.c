/*
 * Cases of positions that are more than one integer a token: several axes (multimodal RoPE, 2-D
 * RoPE) and times with a fraction (diffusion).  Sections and bases are those of ENCODINGS, from each
 * model's published configuration.
 */
#include "golden.h"

#include <math.h>
#include <string.h>

static const char qwen2_vl[] =
    "arXiv:2409.12191 section 2.1; transformers modeling_qwen2_vl.py "
    "apply_multimodal_rotary_pos_emb";
static const char qwen3_vl[] = "transformers modeling_qwen3_vl.py apply_interleaved_mrope";
static const char vision[] =
    "transformers modeling_qwen2_vl.py VisionRotaryEmbedding, rot_pos_emb";
static const char diffusers[] = "diffusers models/embeddings.py get_timestep_embedding";

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

/* ---- Axes ---- */

struct sections {
    const char *name, *note, *source;
    int64_t dim;
    double rope_theta;
    enum posenc_mrope_layout layout;
    int64_t section[3];
};

static const struct sections models[] = {
    { "qwen2-vl",
      "h and w exchanged: pairs 16 to 39 turn by height, 40 to 63 by width",
      qwen2_vl,
      128,
      1e6,
      POSENC_MROPE_CHUNKED,
      { 16, 24, 24 } },
    { "qwen3-vl",
      "interleaved taken for chunked; pairs 61 and 62, beyond 3 x 20, not by time",
      qwen3_vl,
      128,
      5e6,
      POSENC_MROPE_INTERLEAVED,
      { 24, 20, 20 } },
    { "qwen3.5",
      "32 pairs of 256 channels; the last by height, as 3 x 11 exceeds 32",
      qwen3_vl,
      64,
      1e7,
      POSENC_MROPE_INTERLEAVED,
      { 11, 11, 10 } },
    { "vision",
      "the frequencies of width not restarted: those of 20 to 39 of 80 channels",
      vision,
      80,
      1e4,
      POSENC_MROPE_RESTARTED,
      { 20, 20, 0 } },
};
/* What no model has and the rules allow. */
static const struct sections others[] = {
    { "uneven",
      "equal sections assumed",
      qwen2_vl,
      64,
      1e4,
      POSENC_MROPE_CHUNKED,
      { 3, 19, 10 } },
    { "two-axes",
      "a third axis read where there are two",
      qwen2_vl,
      32,
      1e4,
      POSENC_MROPE_CHUNKED,
      { 5, 11, 0 } },
    { "one-axis",
      "a plan of one section: plain RoPE",
      qwen2_vl,
      32,
      1e4,
      POSENC_MROPE_CHUNKED,
      { 16, 0, 0 } },
    { "clipped",
      "3 x 24 beyond the pairs there are",
      qwen3_vl,
      128,
      1e6,
      POSENC_MROPE_INTERLEAVED,
      { 20, 24, 20 } },
    { "mostly-time",
      "pairs from 12 on by turns, where h and w have ended",
      qwen3_vl,
      64,
      1e6,
      POSENC_MROPE_INTERLEAVED,
      { 26, 4, 2 } },
    { "restarted3",
      "each restart over dim, not over the section's own",
      vision,
      64,
      1e4,
      POSENC_MROPE_RESTARTED,
      { 4, 12, 16 } },
};

static void share(struct posenc_freqs_spec *spec, const struct sections *s)
{
    spec->dim = s->dim;
    spec->rope_theta = s->rope_theta;
    spec->mrope_layout = s->layout;
    memcpy(spec->mrope_section, s->section, sizeof spec->mrope_section);
}

/* Where the tokens of a case are: a text (one position on all axes), or a picture of so many columns
 * whose corner is at `first` on every axis. */
struct place {
    const char *name, *flags;
    enum posenc_position_kind kind;
    int64_t first, tokens, grid, batch, batch_shift;
    double time_step;
};

static const struct place places[] = {
    { "text", "Axes", POSENC_OFFSET, 130, 3, 0, 1, 0, 0 },
    { "text-array", "Axes Negative LargePosition", POSENC_POSITIONS_I64, -2, 5, 0, 1, 0, 0 },
    { "grid", "Axes", POSENC_POSITIONS_I32, 40, 12, 4, 1, 0, 0 },
    { "grid-negative", "Axes Negative", POSENC_POSITIONS_I64, -2, 12, 4, 1, 0, 0 },
    { "grid-long", "Axes LargePosition F32Integer", POSENC_POSITIONS_I64, 131070, 6, 3, 1, 0,
      0 },
    { "grid-batch", "Axes Batch LargePosition F32Integer", POSENC_POSITIONS_I64, 16777214, 6, 2,
      2, 2130706426, 0 },
};
enum { PLACE_GRID = 2, PLACE_LONG = 4, PLACE_BATCH = 5 };

static struct problem *add_axes(struct golden *golden, const struct sections *s,
                                const struct place *at, enum posenc_profile profile)
{
    struct problem *p = add_case(golden, POSENC_KERNEL_rope_table, at->flags, s->note,
                                 s->source, "%s-%s", s->name, at->name);
    share(&p->freqs, s);
    p->freqs.profile = profile;
    p->position_kind = at->kind;
    p->first = at->first;
    p->tokens = at->tokens;
    p->mrope_grid = at->grid;
    p->batch = at->batch;
    p->batch_shift = at->batch_shift;
    p->time_step = at->time_step;
    return p;
}

static bool has_restart(enum posenc_profile profile) { return profile != POSENC_GGML_F32; }

void list_mrope(struct golden *golden)
{
    static const struct place thirds = {
        "grid-thirds", "Axes Time Negative", POSENC_POSITIONS_F32, -1, 12, 4, 1, 0, 1.0 / 3.0
    };
    add_group(golden, "mrope");
    for (int64_t k = 0; k < COUNT(models); k++)
        for (int64_t at = 0; at < COUNT(places); at++)
            add_axes(golden, &models[k], &places[at], POSENC_EXACT);
    for (int64_t k = 0; k < COUNT(others); k++)
        add_axes(golden, &others[k], &places[PLACE_GRID], POSENC_EXACT);
    for (int profile = POSENC_HF_F32; profile_names[profile]; profile++)
        for (int64_t k = 0; k < COUNT(models); k++)
            for (int long_too = 0; long_too < 2; long_too++)
                if (models[k].layout != POSENC_MROPE_RESTARTED ||
                    has_restart((enum posenc_profile)profile))
                    add_axes(golden, &models[k], &places[long_too ? PLACE_BATCH : PLACE_GRID],
                             (enum posenc_profile)profile);
    add_axes(golden, &others[5], &places[PLACE_GRID], POSENC_HF_F32);
    for (int profile = 0; profile_names[profile]; profile++)
        add_axes(golden, &others[0], &thirds, (enum posenc_profile)profile);
    for (int profile = POSENC_EXACT; profile <= POSENC_GGML_F32; profile++) {
        struct problem *p =
            add_axes(golden, &models[0], &places[PLACE_LONG], (enum posenc_profile)profile);
        struct vector_case *c = &golden->vectors.cases[golden->vectors.n - 1];
        c->id = "qwen2-vl-yarn-grid";
        c->flags = "Axes Yarn AttentionFactor LargePosition";
        c->note = "YaRN's ramp over each section instead of over all pairs";
        p->freqs.scaling = POSENC_SCALING_YARN;
        p->freqs.factor = 4;
        p->freqs.original_max_position_embeddings = 32768;
        p->token_major = true;
        p->pad = 3;
    }
}

/* ---- Times ---- */

/* Token t is at (float)(position + t step).  f32 has halves up to 2^23, quarters up to 2^22. */
static const int64_t timesteps[] = {
    0, 999, 0, 998, 999, 17
}; /* 0 999.25 .5 998.75 1000 18.25 */
static const int64_t schedule[] = { 0, 0, 0, 0, 0, 0, 0, 0 };
static const int64_t negative[] = { 0, -1, -1000, -3, -18 };
static const int64_t thirds[] = { 0, 0, 0, 999, 41, -2 };
static const int64_t far[] = { 8388607, 8388607, 8388606, 4194303, -8388608, 2097149, 1048570 };
static const int64_t whole[] = { 0, 1, 64, 16777216, 2147483520, -1, -2147483520 };

struct times {
    const char *name, *flags, *note;
    const int64_t *positions;
    int64_t n;
    double step;
};
#define AT(list) list, COUNT(list)
static const struct times times[] = {
    { "timesteps", "Time", "a time cut to an integer: 999.25, 0.5", AT(timesteps), 0.25 },
    { "thirds", "Time", "a time that f32 rounds, or one kept in f64", AT(thirds), 1.0 / 3.0 },
    { "schedule", "Time", "times in [0, 1] not multiplied by 1000 first: 28 steps of them",
      AT(schedule), 1000.0 / 28.0 },
    { "unit", "Time", "times in [0, 1]", AT(schedule), 1.0 / 7.0 },
    { "tiny", "Time", "a phase of fixed point in which nothing is left of 1e-30", AT(schedule),
      1e-30 },
    { "subnormal", "Time", "subnormal times taken for 0", AT(schedule), 0x1p-149 },
    { "negative", "Time Negative",
      "a time below 0 rounded away from it, or its sine not flipped", AT(negative), -0.3 },
    { "far", "Time Negative LargePosition", "the angle loses its bits in f64 next to a zero",
      AT(far), 0.5 },
    { "whole", "Time Negative LargePosition", "whole times with other bits than the integer's",
      AT(whole), 0 },
};
#undef AT

static void at_times(struct problem *p, const struct times *at)
{
    p->position_kind = POSENC_POSITIONS_F32;
    p->positions = at->positions;
    p->tokens = at->n;
    p->time_step = at->step;
}

/* What embeds a time: as models have it, and what else the parameters allow. */
static const struct embedding {
    const char *name, *flags, *note, *source;
    int64_t dim;
    enum posenc_layout layout;
    enum posenc_convention convention;
    double rope_theta, scale;
    int at;
} embeddings[] = {
    { "stable-diffusion", "Time Layout", "sines first, or downscale_freq_shift 1", diffusers,
      320, POSENC_COS_SIN, POSENC_EXPONENT, 1e4, 1, 0 },
    { "ddpm", "Time Layout Endpoint", "downscale_freq_shift 1 taken for 0", diffusers, 128,
      POSENC_SIN_COS, POSENC_ENDPOINT, 1e4, 1, 0 },
    { "flux", "Time Layout", "times of 0 to 1 multiplied by 1000 in f32",
      "flux/modules/layers.py timestep_embedding", 256, POSENC_COS_SIN, POSENC_EXPONENT, 1e4, 1,
      2 },
    { "ggml-d15", "Time Layout OddDim", "the zero of an odd dim written past the row",
      "ggml-cpu/ops.cpp ggml_compute_forward_timestep_embedding", 15, POSENC_COS_SIN,
      POSENC_EXPONENT, 1e4, 1, 0 },
    { "d7-times", "Time OddDim", "the last sine of an odd dim", "arXiv:1706.03762 section 3.5",
      7, POSENC_INTERLEAVED, POSENC_EXPONENT, 1e4, 1, 6 },
    { "d64-scale1000", "Time Scale", "the scale of the values taken for one of the times",
      diffusers, 64, POSENC_SIN_COS, POSENC_EXPONENT, 1e4, 1000, 1 },
    { "d64-fast", "Time Base", "frequencies of several turns a position: whole turns count",
      diffusers, 64, POSENC_INTERLEAVED, POSENC_EXPONENT, 0x1p-10, 1, 3 },
};

static struct problem *add_time(struct golden *golden, const struct embedding *e,
                                enum posenc_profile profile)
{
    struct problem *p =
        add_case(golden, POSENC_KERNEL_sinusoidal, e->flags, e->note, e->source, "%s", e->name);
    p->freqs.dim = e->dim;
    p->freqs.convention = e->convention;
    p->freqs.rope_theta = e->rope_theta;
    p->freqs.profile = profile;
    p->layout = e->layout;
    p->scale = e->scale;
    at_times(p, &times[e->at]);
    return p;
}

struct hard {
    int64_t numerator;
    double distance;
};

/* Odd numerators m below 2^24 of times m/2 next to a zero of a sine or cosine, the n nearest:
 * positions in steps of half a frequency.  What f64 makes of such an angle has lost its bits. */
static int64_t hard_halves(int64_t dim, struct hard *best, int64_t n)
{
    struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
    struct reference_plan plan;
    int64_t found = 0, m[64];
    double distance[64];
    spec.dim = dim;
    reference_plan_init(&plan, &spec);
    for (int64_t i = 0; i < plan.n_pairs; i++)
        mpfr_div_ui(plan.omega[i], plan.omega[i], 2, MPFR_RNDN);
    for (int64_t k = 0; k < 2 * plan.n_pairs; k++) {
        const int64_t here = pair_convergents(&plan, k / 2, (int)(k % 2), 64, m, distance);
        for (int64_t j = 0; j < here; j++) {
            if (m[j] % 2 == 0 || m[j] >= 1 << 24)
                continue;
            int64_t at = found < n ? found++ : n - 1;
            if (at == n - 1 && best[at].numerator && best[at].distance <= distance[j])
                continue;
            for (; at > 0 && best[at - 1].distance > distance[j]; at--)
                best[at] = best[at - 1];
            best[at] = (struct hard){ m[j], distance[j] };
        }
    }
    reference_plan_clear(&plan);
    return found;
}

/* Odd tokens are at whole positions and a half, so the others are whole. */
static void list_hard(struct golden *golden)
{
    enum { MOST = 8 };
    struct hard best[MOST] = { { 0, 0 } };
    int64_t positions[2 * MOST];
    const int64_t n = hard_halves(512, best, MOST);
    for (int64_t k = 0; k < n; k++) {
        const int64_t whole_part = best[k].numerator / 2;
        positions[2 * k] = k % 2 ? -whole_part : whole_part;
        positions[2 * k + 1] = whole_part - k; /* + (2 k + 1) / 2 */
    }
    struct problem *p = add_case(
        golden, POSENC_KERNEL_sinusoidal, "Time Convergent",
        "a phase from an f64 product: next to a zero its error shows as ulps",
        "arXiv:1706.03762 section 3.5; positions by continued fractions", "d512-halves");
    p->freqs.dim = 512;
    p->position_kind = POSENC_POSITIONS_F32;
    p->positions = keep_positions(golden, positions, 2 * n);
    p->tokens = 2 * n;
    p->time_step = 0.5;
}

static void list_added_times(struct golden *golden)
{
    struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal_add, "Time Batch Scale",
                                 "times of batches and strides", diffusers, "d66-times-batch");
    p->freqs.dim = 66;
    p->layout = POSENC_COS_SIN;
    p->x_scale = 0.5f;
    at_times(p, &times[0]);
    p->batch = 2;
    p->batch_shift = -3;
    p->token_major = true;
    p->pad = 3;
    p->offset_bytes = 4;
    for (int odd = 0; odd < 2; odd++) {
        p = add_case(golden, POSENC_KERNEL_sinusoidal_add, odd ? "Time InPlace OddDim" : "Time",
                     odd ? "the last sine of an odd row at a time" : "a time cut to an integer",
                     diffusers, odd ? "d33-times" : "d40-times");
        p->freqs.dim = odd ? 33 : 40;
        p->in_place = odd != 0;
        p->layout = odd ? POSENC_INTERLEAVED : POSENC_SIN_COS;
        at_times(p, &times[odd ? 6 : 1]);
    }
}

void list_times(struct golden *golden)
{
    add_group(golden, "times");
    for (int profile = 0; profile_names[profile]; profile++) {
        for (int64_t k = 0; k < COUNT(embeddings); k++) {
            struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
            spec.profile = (enum posenc_profile)profile;
            spec.convention = embeddings[k].convention;
            if (profile_applies(&spec) && (profile == 0 || embeddings[k].rope_theta >= 1))
                add_time(golden, &embeddings[k], (enum posenc_profile)profile);
        }
        for (int64_t at = 0; at < COUNT(times); at++) {
            struct problem *p =
                add_case(golden, POSENC_KERNEL_rope_table, times[at].flags, times[at].note,
                         "arXiv:2104.09864 section 3.2.2", "r96-%s", times[at].name);
            p->freqs.dim = 96;
            p->freqs.profile = (enum posenc_profile)profile;
            at_times(p, &times[at]);
        }
    }
    list_hard(golden);
    list_added_times(golden);
}

/* ---- Certification ---- */

int64_t sectioned_specs(struct posenc_freqs_spec *specs, int64_t most)
{
    const int64_t all = COUNT(models) + COUNT(others);
    int64_t n = 0;
    for (; n < all && n < most; n++) {
        specs[n] = (struct posenc_freqs_spec)POSENC_FREQS_SPEC;
        share(&specs[n], n < COUNT(models) ? &models[n] : &others[n - COUNT(models)]);
    }
    if (n == most)
        return n;
    specs[n] = specs[1];
    specs[n].scaling = POSENC_SCALING_LINEAR;
    specs[n++].factor = 2.5;
    return n;
}
