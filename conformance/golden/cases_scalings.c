/*
 * Cases of scaled frequencies, and of the profiles ggml_f32 and torch_exp_f32.  Settings of models
 * are those of ENCODINGS, from each model's published configuration; longrope's factors go
 * evenly from 1 (problem.h).
 */
#include "golden.h"

static const char hugging_face[] = "transformers modeling_rope_utils.py";
static const char yarn_paper[] =
    "arXiv:2309.00071 section 3.2; transformers modeling_rope_utils.py";
static const char longrope_paper[] =
    "arXiv:2402.13753; transformers modeling_rope_utils.py _compute_longrope_parameters";
static const char proportional_code[] =
    "transformers modeling_rope_utils.py _compute_proportional_rope_parameters";
static const char ggml[] = "ggml-cpu/ops.cpp ggml_rope_cache_init, rope_yarn; ggml.c";
static const char pytorch_module[] =
    "pytorch/examples word_language_model/model.py PositionalEncoding";

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

/* Both sides of zero and of 4096, the ends of long contexts and of positions. */
static const int64_t contexts[] = {
    0, 1, 4095, 4096, 131071, 1048575, 2147483647, -1, -131071
};
/* What an iterated product does to them: also where the position itself is rounded. */
static const int64_t iterated[] = { 0,        1,          511,  8191,    131071,   1048575,
                                    16777217, 2147483647, -511, -131071, -16777217 };

static void at_contexts(struct problem *problem)
{
    at_positions(problem, contexts, COUNT(contexts));
}

static void at_iterated(struct problem *problem)
{
    at_positions(problem, iterated, COUNT(iterated));
}

/* ---- Linear, llama3, YaRN ---- */

struct family {
    const char *name, *flags, *note;
    int64_t dim;
    double rope_theta, factor, context;
    double low, high;            /* llama3 */
    double beta_fast, beta_slow; /* yarn; 0: 32 and 1 */
    bool whole;                  /* truncate */
    double attention, mscale, mscale_all_dim;
};

static const struct family linear_families[] = {
    { "linear8", "Linear", "factor applied to the position, or not at all", 128, 1e6, 8, 0, 0,
      0, 0, 0, true, 0, 0, 0 },
    { "linear2.5", "Linear", "a factor that is no power of two", 64, 1e4, 2.5, 0, 0, 0, 0, 0,
      true, 0, 0, 0 },
    { "linear4-attention", "Linear AttentionFactor", "an explicit factor without yarn ignored",
      32, 1e4, 4, 0, 0, 0, 0, 0, true, 1.25, 0, 0 },
};
static const struct family llama3_families[] = {
    { "llama31", "Llama3", "wavelengths in the smooth band; factor 8, bands 1 and 4 of 8192",
      128, 5e5, 8, 8192, 1, 4, 0, 0, true, 0, 0, 0 },
    { "llama32", "Llama3", "factor 32 over 64 channels", 64, 5e5, 32, 8192, 1, 4, 0, 0, true, 0,
      0, 0 },
    { "llama4-scout", "Llama3", "low = high: 0/0 in the band between", 128, 5e5, 16, 8192, 1, 1,
      0, 0, true, 0, 0, 0 },
};
static const struct family yarn_families[] = {
    { "qwen3", "Yarn AttentionFactor", "factor 4 of 32768; ramp from 23 to 40", 128, 1e6, 4,
      32768, 0, 0, 0, 0, true, 0, 0, 0 },
    { "gpt-oss", "Yarn YarnTruncate AttentionFactor", "truncate = false rounded to whole pairs",
      64, 150000, 32, 4096, 0, 0, 0, 0, false, 0, 0, 0 },
    { "gpt-oss-truncated", "Yarn YarnTruncate AttentionFactor",
      "truncate = true taken for false", 64, 150000, 32, 4096, 0, 0, 0, 0, true, 0, 0, 0 },
    { "deepseek-v3", "Yarn AttentionFactor", "both mscales 1: factor 1, not g", 64, 1e4, 40,
      4096, 0, 0, 0, 0, true, 0, 1, 1 },
    { "deepseek-v2", "Yarn AttentionFactor", "mscale 1 over mscale_all_dim 0.707", 64, 1e4, 40,
      4096, 0, 0, 0, 0, true, 0, 1, 0.707 },
    { "ministral3", "Yarn AttentionFactor", "factor 16 of 16384", 128, 1e6, 16, 16384, 0, 0, 0,
      0, true, 0, 1, 1 },
    { "devstral2", "Yarn AttentionFactor", "base 1e8, factor 48 of 8192", 128, 1e8, 48, 8192, 0,
      0, 0, 0, true, 0, 1, 1 },
    { "attention", "Yarn AttentionFactor",
      "an explicit attention factor multiplied by g as well", 64, 1e4, 16, 4096, 0, 0, 0, 0,
      true, 0.75, 0, 0 },
    { "beta-equal", "Yarn AttentionFactor", "an empty ramp divided by zero", 64, 1e4, 8, 4096,
      0, 0, 4, 4, false, 0, 0, 0 },
    { "beta-equal-whole", "Yarn AttentionFactor", "an empty ramp, rounded outwards to one pair",
      64, 1e4, 8, 4096, 0, 0, 4, 4, true, 0, 0, 0 },
    { "clamped", "Yarn AttentionFactor", "a range that begins below pair 0", 32, 1e4, 8, 64, 0,
      0, 0, 0, true, 0, 0, 0 },
};

static struct posenc_freqs_spec spec_of(const struct family *family,
                                        enum posenc_scaling scaling)
{
    struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
    spec.scaling = scaling;
    spec.dim = family->dim;
    spec.rope_theta = family->rope_theta;
    spec.factor = family->factor;
    spec.original_max_position_embeddings = family->context;
    spec.low_freq_factor = family->low;
    spec.high_freq_factor = family->high;
    if (family->beta_fast != 0) {
        spec.beta_fast = family->beta_fast;
        spec.beta_slow = family->beta_slow;
    }
    spec.truncate = family->whole;
    spec.attention_factor = family->attention;
    spec.mscale = family->mscale;
    spec.mscale_all_dim = family->mscale_all_dim;
    return spec;
}

struct posenc_freqs_spec llama31_spec(void)
{
    return spec_of(&llama3_families[0], POSENC_SCALING_LLAMA3);
}

static void list_family(struct golden *golden, const struct family *families, int64_t n,
                        enum posenc_scaling scaling, enum posenc_profile profile,
                        const char *source)
{
    const bool as_ggml = profile == POSENC_GGML_F32, yarn = scaling == POSENC_SCALING_YARN;
    for (int64_t k = 0; k < n; k++) {
        const char *note =
            as_ggml && yarn
                ? "frequencies blended instead of angles; truncate obeyed, where ggml rounds"
                : families[k].note;
        struct problem *p =
            add_case(golden, POSENC_KERNEL_rope_table, families[k].flags, note,
                     as_ggml ? ggml : source, "%s%s", yarn ? "yarn-" : "", families[k].name);
        p->freqs = spec_of(&families[k], scaling);
        p->freqs.profile = profile;
        at_few(p);
    }
}

void list_families(struct golden *golden, enum posenc_profile profile)
{
    list_family(golden, linear_families, COUNT(linear_families), POSENC_SCALING_LINEAR, profile,
                hugging_face);
    list_family(golden, llama3_families, COUNT(llama3_families), POSENC_SCALING_LLAMA3, profile,
                hugging_face);
    list_family(golden, yarn_families, COUNT(yarn_families), POSENC_SCALING_YARN, profile,
                yarn_paper);
}

/* ---- Dynamic, NTK, LongRoPE, proportional ---- */

struct extension {
    const char *name, *flags, *note;
    enum posenc_scaling scaling;
    int64_t dim;
    double rope_theta, factor, context; /* context: M of dynamic, L of longrope */
    int64_t seq_len;
    double share;                 /* proportional */
    double short_last, long_last; /* longrope */
    double attention;
};

#define DYNAMIC      .scaling = POSENC_SCALING_DYNAMIC, .rope_theta = 1e4
#define NTK          .scaling = POSENC_SCALING_NTK, .rope_theta = 1e4
#define LONGROPE     .scaling = POSENC_SCALING_LONGROPE, .rope_theta = 1e4
#define PROPORTIONAL .scaling = POSENC_SCALING_PROPORTIONAL, .factor = 1

static const struct extension extensions[] = {
    { "dynamic-below", "Dynamic", "s below M not raised to it: the base shrinks", DYNAMIC,
      .dim = 128, .factor = 2, .context = 4096, .seq_len = 3000 },
    { "dynamic-unset", "Dynamic", "no length taken for length 0: a negative base, NaN", DYNAMIC,
      .dim = 128, .factor = 2, .context = 4096 },
    { "dynamic-at-max", "Dynamic", "scaled at s = M, where nothing is", DYNAMIC, .dim = 128,
      .factor = 2, .context = 4096, .seq_len = 4096 },
    { "dynamic-past-max", "Dynamic", "not scaled one token past M", DYNAMIC, .dim = 128,
      .factor = 2, .context = 4096, .seq_len = 4097 },
    { "dynamic-8192", "Dynamic LargePosition", "base 30527.736748807 from s/M = 2", DYNAMIC,
      .dim = 128, .factor = 2, .context = 4096, .seq_len = 8192 },
    { "dynamic-16384", "Dynamic LargePosition", "base 72195.8600865 from s/M = 4", DYNAMIC,
      .dim = 128, .factor = 2, .context = 4096, .seq_len = 16384 },
    { "dynamic-factor1", "Dynamic", "factor 1 taken for no scaling: s/M still counts", DYNAMIC,
      .dim = 64, .factor = 1, .context = 2048, .seq_len = 8192 },
    { "dynamic-uneven", "Dynamic Base", "f s/M - (f-1) with no step exact", DYNAMIC, .dim = 96,
      .factor = 2.7, .context = 6000, .seq_len = 100001 },
    { "dynamic-r4", "Dynamic", "exponent d/(d-2) = 2, the largest of an even dim", DYNAMIC,
      .dim = 4, .factor = 3, .context = 4096, .seq_len = 10000 },
    { "dynamic-attention", "Dynamic AttentionFactor", "an explicit factor without yarn ignored",
      DYNAMIC, .dim = 32, .factor = 4, .context = 2048, .seq_len = 4000, .attention = 1.25 },
    { "ntk8", "Ntk LargePosition", "exponent d/(d-1), or factor applied to the frequencies",
      NTK, .dim = 128, .factor = 8 },
    { "ntk2.5", "Ntk", "a factor that is no power of two", NTK, .dim = 64, .factor = 2.5 },
    { "ntk1", "Ntk", "factor 1 changes nothing", NTK, .dim = 64, .factor = 1 },
    { "ntk-r4", "Ntk", "exponent 2", NTK, .dim = 4, .factor = 4 },
    { "ntk-r6", "Ntk", "exponent 3/2", NTK, .dim = 6, .factor = 32 },
    { "longrope-at-l", "LongRope AttentionFactor", "long factors from L on instead of past it",
      LONGROPE, .dim = 96, .factor = 32, .context = 4096, .seq_len = 4096, .short_last = 1.5,
      .long_last = 47.77 },
    { "longrope-past-l", "LongRope AttentionFactor LargePosition",
      "short factors at L + 1, the first length that is long", LONGROPE, .dim = 96,
      .factor = 32, .context = 4096, .seq_len = 4097, .short_last = 1.5, .long_last = 47.77 },
    { "longrope-unset", "LongRope AttentionFactor",
      "no length given: the model's own context, so the short factors", LONGROPE, .dim = 96,
      .factor = 32, .context = 4096, .short_last = 1.5, .long_last = 47.77 },
    { "longrope-phi4-mini", "LongRope AttentionFactor LargePosition",
      "131072 tokens; factor 1.190238071 on cosines and sines, once", LONGROPE, .dim = 96,
      .factor = 32, .context = 4096, .seq_len = 131072, .short_last = 1, .long_last = 47.77 },
    { "longrope-factor1", "LongRope AttentionFactor", "M = L: attention factor 1", LONGROPE,
      .dim = 64, .factor = 1, .context = 4096, .seq_len = 5000, .short_last = 1,
      .long_last = 3 },
    { "longrope-attention", "LongRope AttentionFactor",
      "an explicit factor multiplied by the derived one as well", LONGROPE, .dim = 32,
      .factor = 4, .context = 8192, .seq_len = 9000, .short_last = 1, .long_last = 2.5,
      .attention = 1.5 },
    { "longrope-below1", "LongRope AttentionFactor", "factors below 1: faster than plain",
      LONGROPE, .dim = 64, .factor = 2.5, .context = 1000, .seq_len = 1001, .short_last = 1,
      .long_last = 0.3 },
    { "gemma4", "Proportional LargePosition Negative",
      "64 of 256 pairs turn, exponents over 512: over 128, or packed into a leading slice",
      PROPORTIONAL, .dim = 512, .rope_theta = 1e6, .share = 0.25 },
    { "proportional-half", "Proportional Negative", "frequencies not divided by the factor",
      .scaling = POSENC_SCALING_PROPORTIONAL, .dim = 128, .rope_theta = 1e4, .factor = 8,
      .share = 0.5 },
    { "proportional-whole", "Proportional", "share 1 is plain", PROPORTIONAL, .dim = 64,
      .rope_theta = 1e4, .share = 1 },
    { "proportional-float", "Proportional", "0.3 of 20 is 6 in Python's floats, so 3 pairs",
      PROPORTIONAL, .dim = 20, .rope_theta = 1e4, .share = 0.3 },
    { "proportional-floor", "Proportional", "6.5 pairs rounded up, or 13 channels",
      PROPORTIONAL, .dim = 50, .rope_theta = 1e4, .share = 0.26 },
    { "proportional-one", "Proportional Negative", "a single pair turns", PROPORTIONAL,
      .dim = 64, .rope_theta = 1e4, .share = 0.03125 },
};
#undef DYNAMIC
#undef NTK
#undef LONGROPE
#undef PROPORTIONAL

static void extend(struct problem *p, const struct extension *e)
{
    p->freqs.scaling = e->scaling;
    p->freqs.dim = e->dim;
    p->freqs.rope_theta = e->rope_theta;
    p->freqs.factor = e->factor;
    if (e->scaling == POSENC_SCALING_DYNAMIC)
        p->freqs.max_position_embeddings = e->context;
    if (e->scaling == POSENC_SCALING_LONGROPE)
        p->freqs.original_max_position_embeddings = e->context;
    if (e->scaling == POSENC_SCALING_PROPORTIONAL)
        p->freqs.partial_rotary_factor = e->share;
    p->freqs.seq_len = e->seq_len;
    p->freqs.attention_factor = e->attention;
    p->short_factor_last = e->short_last;
    p->long_factor_last = e->long_last;
}

static const char *source_of(const struct extension *e)
{
    return e->scaling == POSENC_SCALING_LONGROPE       ? longrope_paper
           : e->scaling == POSENC_SCALING_PROPORTIONAL ? proportional_code
           : e->scaling == POSENC_SCALING_NTK ? "arXiv:2309.00071 section 3.1, NTK-aware"
                                              : hugging_face;
}

static void list_extensions(struct golden *golden, enum posenc_profile profile)
{
    for (int64_t k = 0; k < COUNT(extensions); k++) {
        const struct extension *e = &extensions[k];
        if (profile == POSENC_GGML_F32 && e->scaling == POSENC_SCALING_PROPORTIONAL)
            continue;
        struct problem *p =
            add_case(golden, POSENC_KERNEL_rope_table, e->flags, e->note,
                     profile == POSENC_GGML_F32 ? ggml : source_of(e), "%s", e->name);
        extend(p, e);
        p->freqs.profile = profile;
        at_contexts(p);
    }
}

/* In the sinusoidal kernel: odd dims, and zeros whose sign a scale of -1 changes. */
static void list_extended_rows(struct golden *golden, enum posenc_profile profile)
{
    struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "Ntk OddDim",
                                 "exponent d/(d-2) of an odd dim: 3",
                                 "arXiv:2309.00071 section 3.1, NTK-aware", "d3-ntk");
    p->freqs.dim = 3;
    p->freqs.profile = profile;
    p->freqs.scaling = POSENC_SCALING_NTK;
    p->freqs.factor = 4;
    at_contexts(p);
    for (int minus = 0; minus < 2; minus++) {
        p = add_case(golden, POSENC_KERNEL_sinusoidal,
                     minus ? "Proportional Negative Scale" : "Proportional Negative Layout",
                     "sines of pairs that rest: -0 before position 0, +0 from it on",
                     proportional_code, "d40-proportional%s", minus ? "-scale-minus1" : "");
        p->freqs.dim = 40;
        p->freqs.profile = profile;
        p->freqs.scaling = POSENC_SCALING_PROPORTIONAL;
        p->freqs.partial_rotary_factor = 0.25;
        p->layout = minus ? POSENC_INTERLEAVED : POSENC_SIN_COS;
        p->scale = minus ? -1 : 1;
        at_contexts(p);
    }
}

void list_scalings(struct golden *golden)
{
    add_group(golden, "scalings");
    for (int profile = POSENC_EXACT; profile <= POSENC_HF_F32; profile++) {
        list_extensions(golden, (enum posenc_profile)profile);
        list_extended_rows(golden, (enum posenc_profile)profile);
    }
}

/* ---- ggml_f32 and torch_exp_f32 ---- */

static void list_plain(struct golden *golden, enum posenc_profile profile, const char *flags,
                       const char *note, const char *source)
{
    static const int64_t dims[] = { 2, 6, 64, 80, 96, 128, 256 };
    static const double bases[] = { 1.5e5, 5e5, 1e6, 1e7 };
    static const char *const names[] = { "1.5e5", "5e5", "1e6", "1e7" };
    for (int64_t d = 0; d < COUNT(dims); d++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_rope_table, flags, note, source,
                                     "r%d", (int)dims[d]);
        p->freqs.dim = dims[d];
        p->freqs.profile = profile;
        at_iterated(p);
    }
    for (int64_t b = 0; b < COUNT(bases); b++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_rope_table, flags, note, source,
                                     "r128-base-%s", names[b]);
        p->freqs.dim = 128;
        p->freqs.rope_theta = bases[b];
        p->freqs.profile = profile;
        at_iterated(p);
    }
}

static void list_rows(struct golden *golden, enum posenc_profile profile, const char *flag,
                      const char *note, const char *source)
{
    static const struct {
        const char *id;
        int64_t dim;
        enum posenc_layout layout;
        double scale;
    } rows[] = {
        { "d64", 64, POSENC_INTERLEAVED, 1 },        { "d64-sincos", 64, POSENC_SIN_COS, 1 },
        { "d64-scale3", 64, POSENC_INTERLEAVED, 3 }, { "d1", 1, POSENC_INTERLEAVED, 1 },
        { "d7", 7, POSENC_INTERLEAVED, 1 },          { "d7-cossin", 7, POSENC_COS_SIN, 1 },
        { "d512", 512, POSENC_INTERLEAVED, 1 }
    };
    for (int64_t k = 0; k < COUNT(rows); k++) {
        struct problem *p =
            add_case(golden, POSENC_KERNEL_sinusoidal, flag, note, source, "%s", rows[k].id);
        p->freqs.dim = rows[k].dim;
        p->freqs.profile = profile;
        p->layout = rows[k].layout;
        p->scale = rows[k].scale;
        if (rows[k].dim == 512)
            at_few(p);
        else
            at_iterated(p);
    }
    struct problem *p =
        add_case(golden, POSENC_KERNEL_sinusoidal, flag,
                 "off by one position in a run across zero", source, "d20-run-zero");
    p->freqs.dim = 20;
    p->freqs.profile = profile;
    p->first = -5;
    p->tokens = 11;
}

void list_ggml_f32(struct golden *golden)
{
    add_group(golden, "ggml_f32");
    list_plain(golden, POSENC_GGML_F32, "GgmlF32 LargePosition F32Integer Negative",
               "each angle from its own power instead of the one before it", ggml);
    list_families(golden, POSENC_GGML_F32);
    list_extensions(golden, POSENC_GGML_F32);
    list_rows(golden, POSENC_GGML_F32, "GgmlF32",
              "iterated angles in the sinusoidal table, odd rows and other layouts", ggml);
}

void list_torch_exp_f32(struct golden *golden)
{
    add_group(golden, "torch_exp_f32");
    list_rows(golden, POSENC_TORCH_EXP_F32, "TorchExpF32",
              "a power where exp of a product was taken", pytorch_module);
    list_plain(golden, POSENC_TORCH_EXP_F32, "TorchExpF32 LargePosition F32Integer Negative",
               "-log(theta)/d rounded to f32 after the product instead of before",
               pytorch_module);
    static const int64_t dims[] = { 2, 5, 64 };
    for (int64_t d = 0; d < COUNT(dims); d++) {
        struct problem *p = add_case(golden, POSENC_KERNEL_sinusoidal, "TorchExpF32 Endpoint",
                                     "the denominator n taken for n - 1",
                                     "fairseq modules/sinusoidal_positional_embedding.py",
                                     "d%d-endpoint", (int)dims[d]);
        p->freqs.dim = dims[d];
        p->freqs.profile = POSENC_TORCH_EXP_F32;
        p->freqs.convention = POSENC_ENDPOINT;
        p->layout = POSENC_SIN_COS;
        at_iterated(p);
    }
}

/* ---- Certification ---- */

bool profile_applies(const struct posenc_freqs_spec *spec)
{
    const bool plain = spec->scaling == POSENC_SCALING_NONE;
    const bool restarts = spec->mrope_layout == POSENC_MROPE_RESTARTED;
    if (spec->profile == POSENC_GGML_F32)
        return spec->scaling != POSENC_SCALING_PROPORTIONAL &&
               spec->convention == POSENC_EXPONENT && !restarts;
    return spec->profile != POSENC_TORCH_EXP_F32 || plain;
}

/* Uneven factors; the first below 1. */
static void fill_factors(double *factors, int64_t n, double last)
{
    for (int64_t i = 0; i < n; i++)
        factors[i] = 0.9 + last * (double)(i * i) / (double)(n * n);
}

static int64_t extension_specs(struct posenc_freqs_spec *specs, int64_t most)
{
    enum { MOST_PAIRS = 256 };
    static double short_factor[MOST_PAIRS], long_factor[MOST_PAIRS];
    int64_t n = 0;
    fill_factors(short_factor, MOST_PAIRS, 3.3);
    fill_factors(long_factor, MOST_PAIRS, 64.1);
    for (int64_t k = 0; k < COUNT(extensions) && n < most; k++) {
        struct problem p = problem_blank(POSENC_KERNEL_rope_table);
        extend(&p, &extensions[k]);
        specs[n] = p.freqs;
        specs[n].short_factor = short_factor;
        specs[n++].long_factor = long_factor;
    }
    return n;
}

int64_t certified_specs(struct posenc_freqs_spec *specs, int64_t most)
{
    static const struct {
        const struct family *families;
        int64_t n;
        enum posenc_scaling scaling;
    } all[] = { { linear_families, COUNT(linear_families), POSENC_SCALING_LINEAR },
                { llama3_families, COUNT(llama3_families), POSENC_SCALING_LLAMA3 },
                { yarn_families, COUNT(yarn_families), POSENC_SCALING_YARN } };
    static const struct {
        int64_t dim;
        double base;
        enum posenc_convention convention;
    } plain[] = { { 512, 1e4, 0 },
                  { 768, 1e4, 0 },
                  { 128, 1e4, 0 },
                  { 128, 5e5, 0 },
                  { 128, 1e6, 0 },
                  { 64, 1.5e5, 0 },
                  { 64, 5e6, 0 },
                  { 64, 1e7, 0 },
                  { 64, 1e8, 0 },
                  { 7, 2.5, 0 },
                  { 20, 0.5, 0 },
                  { 512, 1e4, POSENC_ENDPOINT },
                  { 5, 1e4, POSENC_ENDPOINT },
                  { 3, 1e4, POSENC_ENDPOINT },
                  { 42, 123.456, 0 } };
    int64_t n = 0;
    for (int64_t k = 0; k < COUNT(plain) && n < most; k++) {
        specs[n] = (struct posenc_freqs_spec)POSENC_FREQS_SPEC;
        specs[n].dim = plain[k].dim;
        specs[n].rope_theta = plain[k].base;
        specs[n++].convention = plain[k].convention;
    }
    for (int64_t a = 0; a < COUNT(all); a++)
        for (int64_t k = 0; k < all[a].n && n < most; k++)
            specs[n++] = spec_of(&all[a].families[k], all[a].scaling);
    n += extension_specs(specs + n, most - n);
    return n + sectioned_specs(specs + n, most - n);
}
