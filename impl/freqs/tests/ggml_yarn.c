/*
 * Tests the numbers in docs/accuracy.md about YaRN in numerics mode ggml_f32: its distance from a ggml that was built
 * for FMA, where the compiler rounds interp (1 - mix) + extrap mix once less.
 */
#include "impl/freqs/freqs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POSITIONS = 131072, MAX_PAIRS = 64 };

struct yarn_case {
    const char *name;
    int64_t dim;
    double rope_theta, factor, original_max_position_embeddings;
};

static const struct yarn_case cases[] = {
    { "Qwen3-8B, factor 4", 128, 1e6, 4, 32768 },
    { "gpt-oss", 64, 150000, 32, 4096 },
    { "DeepSeek-V3", 64, 1e4, 40, 4096 },
    { "Ministral 3", 128, 1e6, 16, 16384 },
};

/* Counts of angles, and the largest difference of a cosine or sine. */
struct difference {
    long angles, differ;
    long off_the_ramp; /* angles that differ though their pairs blend nothing */
    double largest;
};

static struct posenc_freqs *make_freqs(const struct yarn_case *model)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    spec.numerics = POSENC_NUMERICS_GGML_F32;
    spec.scaling = POSENC_SCALING_YARN;
    spec.dim = model->dim;
    spec.rope_theta = model->rope_theta;
    spec.factor = model->factor;
    spec.original_max_position_embeddings = model->original_max_position_embeddings;
    if (posenc_freqs_create(&spec, &freqs, NULL))
        abort();
    return freqs;
}

static void compare(const struct posenc_freqs *freqs, int64_t position,
                    struct difference *difference)
{
    const int64_t n = freqs->view.n_pairs;
    float angles[MAX_PAIRS], phi = (float)position;
    posenc_ggml_f32_angles(freqs, phi, 0, n, angles);
    for (int64_t i = 0; i < n; i++, phi *= freqs->ggml.theta_scale) {
        const float mix = freqs->ggml.ramp_mix[i];
        const float rest = phi * mix;
        const float fused = fmaf(freqs->ggml.freq_scale * phi, 1.0f - mix, rest);
        const double a = (double)angles[i], b = (double)fused;
        difference->angles++;
        if (a == b)
            continue;
        difference->differ++;
        difference->off_the_ramp += mix == 0.0f || mix == 1.0f;
        difference->largest =
            fmax(difference->largest, fmax(fabs(cos(a) - cos(b)), fabs(sin(a) - sin(b))));
    }
}

int main(void)
{
    struct difference all = { 0 };
    for (size_t m = 0; m < sizeof cases / sizeof cases[0]; m++) {
        struct posenc_freqs *freqs = make_freqs(&cases[m]);
        struct difference difference = { 0 };
        for (int64_t position = 0; position < POSITIONS; position++)
            compare(freqs, position, &difference);
        posenc_freqs_destroy(freqs);
        printf("%s: %ld of %ld angles, cosines and sines by up to %.2g\n", cases[m].name,
               difference.differ, difference.angles, difference.largest);
        all.angles += difference.angles;
        all.differ += difference.differ;
        all.off_the_ramp += difference.off_the_ramp;
        all.largest = fmax(all.largest, difference.largest);
    }
    printf("all: %ld of %ld, %.2g\n", all.differ, all.angles, all.largest);
    const bool as_documented = all.angles == 25165824 && all.differ == 449954 &&
                               all.off_the_ramp == 0 && all.largest > 2.35e-4 &&
                               all.largest < 2.45e-4;
    printf("%s: the numbers of docs/accuracy.md\n", as_documented ? "ok" : "FAILED");
    return as_documented ? 0 : 1;
}
