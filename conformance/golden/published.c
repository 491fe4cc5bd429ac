/*
 * Figures published elsewhere, so that one reading of a formula is not checked only against
 * itself: bands of llama3, ramps and factors of YaRN, bases of dynamic scaling, LongRoPE's
 * factor, the angles of f32 frameworks, slopes of ALiBi, thresholds of T5, hard positions, the
 * outputs of ONNX's tests; and the metrics (rounding, ulps) at the ends of
 * binades and of f32.
 */
#include "conformance/exact/fixed.h"
#include "published.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int wrong;

void require_that(bool good, const char *what, const char *id)
{
    if (good)
        return;
    fprintf(stderr, "golden: not so: %s: %s\n", what, id);
    wrong++;
}

void require_near(double got, double want, double within, const char *what)
{
    if (fabs(got - want) <= within)
        return;
    fprintf(stderr, "golden: %s: %.17g, published %.17g\n", what, got, want);
    wrong++;
}

/* How many pairs keep their frequency, are blended, are divided by the factor. */
static void llama3_bands(int64_t dim, double factor, double high, int unchanged, int smooth,
                         int scaled)
{
    struct posenc_freqs_spec plain = posenc_freqs_spec_init(), spec;
    plain.dim = dim;
    plain.rope_theta = 5e5;
    spec = plain;
    spec.scaling = POSENC_SCALING_LLAMA3;
    spec.factor = factor;
    spec.original_max_position_embeddings = 8192;
    spec.low_freq_factor = 1;
    spec.high_freq_factor = high;
    struct reference_plan a, b;
    reference_plan_init(&a, &plain);
    reference_plan_init(&b, &spec);
    int counts[3] = { 0 };
    for (int64_t i = 0; i < a.n_pairs; i++) {
        mpfr_t ratio;
        mpfr_init2(ratio, 53);
        mpfr_div(ratio, a.omega[i], b.omega[i], MPFR_RNDN);
        const double r = mpfr_get_d(ratio, MPFR_RNDN);
        counts[r == 1 ? 0 : r == factor ? 2 : 1]++;
        mpfr_clear(ratio);
    }
    reference_plan_clear(&a);
    reference_plan_clear(&b);
    require_near(counts[0], unchanged, 0, "llama3 pairs unchanged");
    require_near(counts[1], smooth, 0, "llama3 pairs blended");
    require_near(counts[2], scaled, 0, "llama3 pairs scaled");
}

/* The ramp at a pair between the published ends of the correction range, not truncated. */
static void yarn_ramp(double theta, int64_t dim, double factor, double context, double low,
                      double high)
{
    struct posenc_freqs_spec plain = posenc_freqs_spec_init(), spec;
    plain.dim = dim;
    plain.rope_theta = theta;
    spec = plain;
    spec.scaling = POSENC_SCALING_YARN;
    spec.factor = factor;
    spec.original_max_position_embeddings = context;
    spec.truncate = false;
    struct reference_plan a, b;
    reference_plan_init(&a, &plain);
    reference_plan_init(&b, &spec);
    for (int64_t i = (int64_t)low - 1; i < (int64_t)high + 3 && i < a.n_pairs; i++) {
        mpfr_t ratio;
        mpfr_init2(ratio, PRECISION);
        mpfr_div(ratio, b.omega[i], a.omega[i], MPFR_RNDN);
        const double ramp = (1 - mpfr_get_d(ratio, MPFR_RNDN)) / (1 - 1 / factor);
        const double want = ((double)i - low) / (high - low);
        require_near(ramp, want < 0 ? 0 : want > 1 ? 1 : want, 2e-5, "YaRN ramp");
        mpfr_clear(ratio);
    }
    reference_plan_clear(&a);
    reference_plan_clear(&b);
}

static void known_factors(void)
{
    static const double g[][2] = { { 4, 1.138629436 },
                                   { 16, 1.277258872 },
                                   { 32, 1.346573590 },
                                   { 40, 1.368887945 },
                                   { 48, 1.387120101 } };
    for (size_t k = 0; k < sizeof g / sizeof *g; k++) {
        struct posenc_freqs_spec spec = posenc_freqs_spec_init();
        struct reference_plan plan;
        spec.dim = 4;
        spec.scaling = POSENC_SCALING_YARN;
        spec.factor = g[k][0];
        spec.original_max_position_embeddings = 4096;
        reference_plan_init(&plan, &spec);
        require_near(plan.attention_factor, g[k][1], 6e-10, "YaRN attention factor");
        reference_plan_clear(&plan);
    }
}

/* The base that a plan's last frequency is a power of. */
static void known_base(int64_t seq_len, double base, double within)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct reference_plan plan;
    spec.dim = 128;
    spec.scaling = POSENC_SCALING_DYNAMIC;
    spec.factor = 2;
    spec.max_position_embeddings = 4096;
    spec.seq_len = seq_len;
    reference_plan_init(&plan, &spec);
    mpfr_t power;
    mpfr_init2(power, PRECISION);
    mpfr_set_si(power, -128, MPFR_RNDN);
    mpfr_div_ui(power, power, 126, MPFR_RNDN);
    mpfr_pow(power, plan.omega[63], power, MPFR_RNDN);
    require_near(mpfr_get_d(power, MPFR_RNDN), base, within, "base of dynamic scaling");
    mpfr_clear(power);
    reference_plan_clear(&plan);
}

static void known_longrope(void)
{
    static const double ones[2] = { 1, 1 };
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct reference_plan plan;
    spec.dim = 4;
    spec.scaling = POSENC_SCALING_LONGROPE;
    spec.factor = 32;
    spec.original_max_position_embeddings = 4096;
    spec.short_factor = spec.long_factor = ones;
    reference_plan_init(&plan, &spec);
    require_near(plan.attention_factor, 1.190238071, 6e-10, "LongRoPE attention factor");
    reference_plan_clear(&plan);
}

/* gpt-oss with its range rounded to whole pairs: by how much a frequency is off at most, where,
 * and what that is in radians at position 32768. */
static void known_truncation(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init(), whole;
    struct reference_plan a, b;
    double most = 0, radians = 0;
    int64_t pair = 0;
    spec.dim = 64;
    spec.rope_theta = 150000;
    spec.scaling = POSENC_SCALING_YARN;
    spec.factor = 32;
    spec.original_max_position_embeddings = 4096;
    whole = spec;
    spec.truncate = false;
    reference_plan_init(&a, &spec);
    reference_plan_init(&b, &whole);
    for (int64_t i = 0; i < a.n_pairs; i++) {
        const double omega = mpfr_get_d(a.omega[i], MPFR_RNDN);
        const double off = fabs(mpfr_get_d(b.omega[i], MPFR_RNDN) - omega);
        radians = fmax(radians, 32768 * off);
        if (off / omega > most) {
            most = off / omega;
            pair = i;
        }
    }
    require_near(most, 0.76, 0.005, "gpt-oss truncated, relative change");
    require_near((double)pair, 17, 0, "gpt-oss truncated, most changed pair");
    require_near(radians, 7.2, 0.05, "gpt-oss truncated, radians at 32768");
    reference_plan_clear(&a);
    reference_plan_clear(&b);
}

/* How far the angles of an f32 profile are from real ones at most, over the pairs of dim 128,
 * to the two digits published. */
static void known_angle_error(double theta, int64_t position, enum posenc_profile profile,
                              double published)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct reference_plan plan;
    double most = 0;
    spec.dim = 128;
    spec.rope_theta = theta;
    spec.profile = profile;
    reference_plan_init(&plan, &spec);
    for (int64_t i = 0; i < plan.n_pairs; i++) {
        mpfr_t real;
        mpfr_init2(real, PRECISION);
        mpfr_mul_si(real, plan.omega[i], (long)position, MPFR_RNDN);
        mpfr_sub_d(real, real, reference_angle(&plan, i, (double)position), MPFR_RNDN);
        most = fmax(most, fabs(mpfr_get_d(real, MPFR_RNDN)));
        mpfr_clear(real);
    }
    require_near(most / published, 1, 0.06,
                 profile == POSENC_GGML_F32 ? "error of ggml's angles, to that published"
                                            : "error of hf_f32's angles, to that published");
    reference_plan_clear(&plan);
}

static void known_angle_errors(void)
{
    static const struct {
        double theta;
        int64_t position;
        double ggml, hf;
    } published[] = { { 1e4, 511, 4.0e-5, 1.8e-5 },    { 1e4, 4095, 5.0e-4, 1.4e-4 },
                      { 1e4, 8191, 9.9e-4, 4.9e-4 },   { 1e4, 32767, 2.8e-3, 1.7e-3 },
                      { 1e4, 131071, 1.3e-2, 4.2e-3 }, { 1e4, 1048575, 1.0e-1, 3.1e-2 },
                      { 5e5, 131071, 4.2e-3, 5.0e-3 }, { 5e5, 1048575, 4.4e-2, 3.9e-2 },
                      { 1e6, 131071, 1.2e-2, 5.5e-3 }, { 1e6, 1048575, 6.7e-2, 6.8e-2 } };
    for (size_t k = 0; k < sizeof published / sizeof *published; k++) {
        known_angle_error(published[k].theta, published[k].position, POSENC_GGML_F32,
                          published[k].ggml);
        known_angle_error(published[k].theta, published[k].position, POSENC_HF_F32,
                          published[k].hf);
    }
}

static void known_slopes(void)
{
    static const double exponents[12] = {
        -1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5
    };
    float slopes[112];
    reference_slopes(12, 8, slopes);
    for (int h = 0; h < 12; h++)
        require_near(log2((double)slopes[h]), exponents[h], 1e-7, "ALiBi, 12 heads");
    reference_slopes(40, 8, slopes);
    require_near(log2((double)slopes[39]), -1.875, 1e-7, "ALiBi, 40 heads, last");
    reference_slopes(71, 8, slopes);
    require_near(log2((double)slopes[70]), -0.8125, 1e-7, "ALiBi, 71 heads, last");
    reference_slopes(112, 8, slopes);
    require_near(log2((double)slopes[111]), -5.9375, 1e-7, "ALiBi, 112 heads, last");
}

static void known_thresholds(void)
{
    static const int64_t bi[] = { 8, 12, 16, 23, 32, 46, 64, 91 };
    static const int64_t uni[] = { 16, 19, 21, 24, 27, 31, 35, 40,
                                   46, 52, 59, 67, 77, 87, 99, 113 };
    for (int k = 0; k < 8; k++) {
        require_near((double)reference_bucket(bi[k], 32, 128, true), 8 + k, 0, "T5 bucket");
        require_near((double)reference_bucket(bi[k] - 1, 32, 128, true), 7 + k, 0,
                     "T5 bucket below");
    }
    for (int k = 0; k < 16; k++) {
        require_near((double)reference_bucket(uni[k], 32, 128, false), 16 + k, 0, "T5 bucket");
        require_near((double)reference_bucket(uni[k] - 1, 64, 128, true), 15 + k, 0,
                     "T5 bucket below");
    }
}

/* The positions that searches found: a sine or cosine of so little that 1e-16 is many ulps. */
static void known_hard(int64_t dim, int64_t pair, int64_t position, double below)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct reference_plan plan;
    double s, c;
    spec.dim = dim;
    reference_plan_init(&plan, &spec);
    reference_sincos(&plan, pair, (double)position, 1, &s, &c);
    if (!(fmin(fabs(s), fabs(c)) < below)) {
        fprintf(stderr, "golden: dim %d pair %d position %lld is not hard: sin %g, cos %g\n",
                (int)dim, (int)pair, (long long)position, s, c);
        wrong++;
    }
    reference_plan_clear(&plan);
}

/* ---- Metrics ---- */

/* A value of any magnitude near f32's range, often next to an f32 or to the middle of two. */
static void any_value(mpfr_t value, uint64_t k)
{
    const uint64_t z = mix64(5, k);
    mpfr_set_ui(value, (unsigned long)(z >> 40 | 1u << 23), MPFR_RNDN);
    if (z & 1)
        mpfr_add_d(value, value, 0.5, MPFR_RNDN);
    if (z & 2) {
        mpfr_t tiny;
        mpfr_init2(tiny, PRECISION);
        mpfr_set_ui_2exp(tiny, 1, -(long)(z >> 2 & 127), MPFR_RNDN);
        if (z & 1024)
            mpfr_neg(tiny, tiny, MPFR_RNDN);
        mpfr_add(value, value, tiny, MPFR_RNDN);
        mpfr_clear(tiny);
    }
    mpfr_mul_2si(value, value, (long)(z >> 11 & 511) - 300, MPFR_RNDN);
    mpfr_setsign(value, value, (z & 2048) != 0, MPFR_RNDN);
}

static void metrics_against_mpfr(void)
{
    mpfr_t value;
    mpfr_init2(value, PRECISION);
    for (uint64_t k = 0; k < 50000 && wrong == 0; k++) {
        any_value(value, k);
        const double odd = round_to_odd(value, true);
        const float nearest = mpfr_get_flt(value, MPFR_RNDN), got = odd_to_f32(odd);
        if (memcmp(&got, &nearest, sizeof got) != 0) {
            fprintf(stderr, "golden: %a to f32: %a, MPFR %a\n", odd, (double)got,
                    (double)nearest);
            wrong++;
        }
        const double error = ulp_error(got, odd);
        if (!(error <= 0.5) && !(fabs(odd) < 0x1p-149 && error <= 1)) {
            fprintf(stderr, "golden: nearest f32 of %a errs by %g ulp\n", odd, error);
            wrong++;
        }
        const float next = nextafterf(got, INFINITY);
        const double off = ulp_error(next, odd);
        if (isfinite(next) && isfinite(got) && !(off >= 0.49999 && off <= 1.50001) &&
            !(off < 2.1 && fabs(frexp((double)got, &(int){ 0 })) == 0.5)) {
            fprintf(stderr, "golden: the f32 after the nearest of %a errs by %g ulp\n", odd,
                    off);
            wrong++;
        }
    }
    mpfr_clear(value);
}

static void known_metrics(void)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    require_near(ulp_error(1.0f, 1.0), 0, 0, "ulp of 1");
    require_near(ulp_error(1.0f + FLT_EPSILON, 1.0), 1, 0, "one ulp above 1");
    require_near(ulp_error(1.0f - FLT_EPSILON / 2, 1.0), 0.5, 0,
                 "the f32 below 1, in ulps of 1");
    require_near(ulp_error(1.0f, 1.0 - 0x1p-25), 0.5, 0, "1, in ulps below it");
    require_near(ulp_error(FLT_TRUE_MIN, 0x1p-150), 0.5, 0, "half the least subnormal");
    require_near(ulp_error(0.0f, 0x1p-149), 1, 0, "a subnormal flushed");
    require_near(ulp_error(FLT_MIN, 0x1p-126 - 0x1p-149), 1, 0, "the least normal");
    require_near(ulp_error(FLT_MAX, 0x1p128), 1, 0, "overflow missed");
    require_near(ulp_error(INFINITY, 0x1p128), 0, 0, "overflow");
    require_near(ulp_error(NAN, nan), 0, 0, "NaN");
    require_near(ulp_error(INFINITY, inf), 0, 0, "infinity");
    const bool classes = isinf(ulp_error(NAN, 1)) && isinf(ulp_error(1, nan)) &&
                         isinf(ulp_error(-INFINITY, inf)) && isinf(ulp_error(INFINITY, 1)) &&
                         isinf(ulp_error(FLT_MAX, inf)) && isinf(ulp_error(-0.0f, 0.0)) &&
                         isinf(pair_ulp_error(NAN, 1, 1)) &&
                         isinf(pair_ulp_error(1, nan, nan)) &&
                         isinf(pair_ulp_error(0.0f, -0.0, 0));
    require_near(classes, 1, 0, "unequal classes");
    require_near(pair_ulp_error(0x1p-20f, 0, 1), 8, 0, "an error of 2^-20 in ulps of 1");
    require_near(pair_ulp_error(0.0f, -0.0, 1), 0, 0, "cancellation has no sign");
}

/* m times a sine for m of every magnitude, f64's subnormals and overflow included. */
static void products_against_mpfr(void)
{
    mpfr_t s, c, x;
    mpfr_inits2(PRECISION, s, c, x, (mpfr_ptr)0);
    for (uint64_t k = 0; k < 5000 && wrong == 0; k++) {
        const uint64_t z = mix64(9, k);
        const double angle = ldexp((double)(z >> 11), (int)(z & 63) - 100);
        const double m =
            ldexp((double)(mix64(z, 1) >> 11) * (z & 64 ? 1 : -1), (int)(z >> 7 & 2047) - 1100);
        struct real sine, cosine;
        if (!isfinite(m))
            continue;
        fixed_sincos(angle, &sine, &cosine);
        mpfr_set_d(x, angle, MPFR_RNDN);
        mpfr_sin_cos(s, c, x, MPFR_RNDN);
        mpfr_mul_d(s, s, m, MPFR_RNDN);
        mpfr_mul_d(c, c, m, MPFR_RNDN);
        const double a = real_times(sine, m), b = real_times(cosine, m);
        if (a != round_to_odd(s, angle == 0 || m == 0) ||
            b != round_to_odd(c, angle == 0 || m == 0)) {
            fprintf(stderr, "golden: %a times sin, cos of %a: %a and %a\n", m, angle, a, b);
            wrong++;
        }
    }
    mpfr_clears(s, c, x, (mpfr_ptr)0);
}

/* The published output tensors of ONNX RotaryEmbedding-23, f32 little-endian: that they come
 * out says that inputs and positions are the published ones too. */
static const struct {
    const char *id, *sha256;
} onnx[] = {
    { "rope_half/f32/given/onnx-rotary-embedding",
      "2b4b4f834c4b22c4c88e04a2e22d31afaf896b4184537c14ad720457c1322f93" },
    { "rope_half/f32/given/onnx-rotary-embedding-3d-input",
      "a88d15649351ac9a303caece01ca6c61691a3c803cfd8f99d6d9130eddaf426d" },
    { "rope_interleaved/f32/given/onnx-rotary-embedding-interleaved",
      "cafef373d3ed0b830456057bd4963d754b26a60e1bad456b370ed03b5b6f1e9f" },
    { "rope_half/f32/given/onnx-rotary-embedding-with-rotary-dim",
      "f93967c5f86717aa8e545142659e39d6d9659d832ea8816ee3abade6b9a98af1" },
    { "rope_interleaved/f32/given/onnx-rotary-embedding-with-interleaved-rotary-dim",
      "2ecc81d436adca759767f4b6471ce164fb82ba60efab386149972e9b892bcb09" },
    { "rope_half/f32/given/onnx-rotary-embedding-no-position-ids",
      "43fcf9515a4daa2da5aa49cde27d1e5cae1936b3f4129cdb89be6a15d18eff16" },
    { "rope_interleaved/f32/given/onnx-rotary-embedding-no-position-ids-interleaved",
      "8221718a5ef2fa51f4922baf08c17d3a8887176f887bf992556fba1b858cb7da" },
    { "rope_half/f32/given/onnx-rotary-embedding-no-position-ids-rotary-dim",
      "6810ad16e92b7db1d4ade94d9125302fc6c5ddc7a3d81f4bf46a2df2e33593cc" },
};

/* The hash of a rotation's unfused results in the order of ONNX's X. */
static bool published_hash(const struct problem *p, char hash[65])
{
    struct call call;
    if (call_create(&call, p, &memory_plain) != POSENC_OK)
        return false;
    const bool heads_first = p->recipe != RECIPE_ONNX_3D;
    const int64_t outer = heads_first ? p->heads : p->tokens,
                  inner = heads_first ? p->tokens : p->heads;
    struct sha256 sha;
    sha256_init(&sha);
    for (int64_t k = 0; k < p->batch * outer * inner; k++) {
        const int64_t b = k / inner / outer, o = k / inner % outer, i = k % inner;
        float row[8];
        oracle_row_unfused(&call, heads_first ? (b * inner + i) * outer + o : k, row);
        for (int64_t c = 0; c < p->dim; c++) {
            uint32_t bits;
            memcpy(&bits, row + c, sizeof bits);
            for (int shift = 0; shift < 32; shift += 8)
                sha256_update(&sha, &(unsigned char){ (unsigned char)(bits >> shift) }, 1);
        }
    }
    sha256_final(&sha, hash);
    call_destroy(&call);
    return true;
}

static void known_onnx(const struct vectors *vectors)
{
    size_t matched = 0, drawn = 0;
    for (size_t i = 0; i < vectors->n; i++) {
        const struct vector_case *c = &vectors->cases[i];
        char hash[65];
        if (c->problem.recipe == RECIPE_MIX)
            continue;
        drawn++;
        if (c->problem.dim != 8 || !published_hash(&c->problem, hash))
            continue;
        for (size_t k = 0; k < sizeof onnx / sizeof *onnx; k++)
            matched += strcmp(onnx[k].id, c->id) == 0 && strcmp(onnx[k].sha256, hash) == 0;
    }
    require_near((double)drawn, 8, 0, "cases of ONNX");
    require_near((double)matched, 8, 0, "cases of ONNX with the published output");
}

int certify_known(const struct vectors *vectors)
{
    wrong = 0;
    llama3_bands(128, 8, 4, 29, 6, 29);
    llama3_bands(64, 32, 4, 15, 3, 14);
    llama3_bands(128, 16, 1, 35, 0, 29);
    yarn_ramp(1e6, 128, 4, 32768, 23.5959, 39.6509);
    yarn_ramp(1e4, 64, 40, 4096, 10.4722, 22.5134);
    yarn_ramp(150000, 64, 32, 4096, 8.09278, 17.39802);
    yarn_ramp(1e6, 128, 16, 16384, 20.3850, 36.4399);
    yarn_ramp(1e8, 128, 48, 8192, 12.8805, 24.9217);
    known_factors();
    known_base(8192, 30527.7367488068, 1.1e-10); /* its last digit is one too high */
    known_base(16384, 72195.8600865, 6e-8);
    known_longrope();
    known_truncation();
    known_angle_errors();
    known_slopes();
    known_thresholds();
    known_hard(768, 317, 497577, 0x1p-36);
    known_hard(512, 25, 1715512116, 0x1p-43);
    metrics_against_mpfr();
    known_metrics();
    products_against_mpfr();
    known_onnx(vectors);
    known_relative(vectors);
    known_storage(vectors);
    known_positions(vectors);
    return wrong;
}
