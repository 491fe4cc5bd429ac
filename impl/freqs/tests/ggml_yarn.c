/*
 * How far profile ggml_f32 with yarn is from a ggml built for a machine with FMA, whose compiler
 * rounds interp (1 - mix) + extrap mix once less: the numbers of docs/accuracy.md.
 */
#include "impl/freqs/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POSITIONS = 131072, MOST_PAIRS = 64 };

struct model {
    const char *name;
    int64_t dim;
    double rope_theta, factor, original_max_position_embeddings;
};

static const struct model models[] = {
    { "Qwen3-8B, factor 4", 128, 1e6, 4, 32768 },
    { "gpt-oss", 64, 150000, 32, 4096 },
    { "DeepSeek-V3", 64, 1e4, 40, 4096 },
    { "Ministral 3", 128, 1e6, 16, 16384 },
};

struct apart {
    long angles, differ, off_the_ramp; /* those of pairs that blend nothing */
    double most;                       /* of a cosine or a sine */
};

static struct posenc_freqs *plan_of(const struct model *model)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    spec.profile = POSENC_GGML_F32;
    spec.scaling = POSENC_SCALING_YARN;
    spec.dim = model->dim;
    spec.rope_theta = model->rope_theta;
    spec.factor = model->factor;
    spec.original_max_position_embeddings = model->original_max_position_embeddings;
    if (posenc_freqs_create(&spec, &freqs, NULL))
        abort();
    return freqs;
}

static void compare(const struct posenc_freqs *freqs, int64_t position, struct apart *apart)
{
    const int64_t n = freqs->view.n_pairs;
    float angles[MOST_PAIRS], phi = (float)position;
    posenc_ggml_f32_angles(freqs, phi, 0, n, angles);
    for (int64_t i = 0; i < n; i++, phi *= freqs->ggml.theta_scale) {
        const float kept = freqs->ggml.kept[i];
        const float rest = phi * kept;
        const float fused = fmaf(freqs->ggml.freq_scale * phi, 1.0f - kept, rest);
        const double a = (double)angles[i], b = (double)fused;
        apart->angles++;
        if (a == b)
            continue;
        apart->differ++;
        apart->off_the_ramp += kept == 0.0f || kept == 1.0f;
        apart->most = fmax(apart->most, fmax(fabs(cos(a) - cos(b)), fabs(sin(a) - sin(b))));
    }
}

int main(void)
{
    struct apart all = { 0 };
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        struct posenc_freqs *freqs = plan_of(&models[m]);
        struct apart apart = { 0 };
        for (int64_t position = 0; position < POSITIONS; position++)
            compare(freqs, position, &apart);
        posenc_freqs_destroy(freqs);
        printf("%s: %ld of %ld angles, cosines and sines by up to %.2g\n", models[m].name,
               apart.differ, apart.angles, apart.most);
        all.angles += apart.angles;
        all.differ += apart.differ;
        all.off_the_ramp += apart.off_the_ramp;
        all.most = fmax(all.most, apart.most);
    }
    printf("all: %ld of %ld, %.2g\n", all.differ, all.angles, all.most);
    const bool as_written = all.angles == 25165824 && all.differ == 449954 &&
                            all.off_the_ramp == 0 && all.most > 2.35e-4 && all.most < 2.45e-4;
    printf("%s: the numbers of docs/accuracy.md\n", as_written ? "ok" : "FAILED");
    return as_written ? 0 : 1;
}
