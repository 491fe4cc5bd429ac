/*
 * Whether the library's plans agree with MPFR, within what they promise.
 */
#include "certify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool library_pair(const struct reference_plan *plan,
                         const struct posenc_freqs_view *view, int64_t i)
{
    const enum posenc_profile profile = plan->spec->profile;
    const bool framework = profile == POSENC_HF_F32 || profile == POSENC_TORCH_EXP_F32;
    const double omega = mpfr_get_d(plan->omega[i], MPFR_RNDN);
    const double f32 =
        framework ? plan->inv_freq[i] : (double)mpfr_get_flt(plan->omega[i], MPFR_RNDN);
    const uint64_t turn[2] = { view->turn_hi[i], view->turn_lo[i] };
    const double distance = turn_distance(plan, i, turn, 2);
    const double allowed =
        ldexp(omega, -102) + 0x1p-127; /* 104 bits and the last of the turn's */
    if (view->omega[i] == omega && (double)view->omega_f32[i] == f32 && distance <= allowed)
        return true;
    complain(plan->spec,
             "library, pair %d:\n"
             "  omega %a, MPFR %a;  f32 %a, MPFR %a;  turn off by %g (allowed %g)",
             (int)i, view->omega[i], omega, (double)view->omega_f32[i], f32, distance, allowed);
    return false;
}

/* In an f32 profile the sine of an f32 angle is rounded once: a table with other bits has other
 * angles. */
static bool library_output(const struct call *call, int o, const double *want, const char *name)
{
    const int64_t width = call->outputs[o].width;
    for (int64_t k = 0; k < call->outputs[o].rows * width; k++) {
        const float got = call_row(call, o, k / width)[k % width], right = odd_to_f32(want[k]);
        if (memcmp(&got, &right, sizeof got) == 0)
            continue;
        fprintf(stderr, "golden: library, %s: %s row %lld column %lld: %a, MPFR %a\n", name,
                call->outputs[o].name, (long long)(k / width), (long long)(k % width),
                (double)got, want[k]);
        return false;
    }
    return true;
}

static bool library_rows(const struct call *call, int o, const double *want, const char *name)
{
    struct call run = *call;
    return call_run(&run, posenc_backend_find("scalar")) == POSENC_OK &&
           library_output(&run, o, want, name);
}

static bool library_plan(const struct posenc_freqs_spec *spec, uint64_t seed, void *user)
{
    struct posenc_freqs *freqs;
    struct reference_plan plan;
    bool good = true;
    (void)user;
    if (posenc_freqs_create(spec, &freqs, NULL) != POSENC_OK) {
        complain(spec, "library refuses it");
        return false;
    }
    const struct posenc_freqs_view view = posenc_freqs_view(freqs);
    reference_plan_init(&plan, spec);
    for (int64_t i = 0; i < plan.n_pairs; i++) {
        good = library_pair(&plan, &view, i) && good;
        const int axis = view.axis ? view.axis[i] : 0;
        if (axis != reference_axis(spec, i)) {
            complain(spec, "library, pair %d on axis %d", (int)i, axis);
            good = false;
        }
    }
    if (view.n_pairs != plan.n_pairs || view.attention_factor != plan.attention_factor) {
        complain(spec, "library, attention factor %a, MPFR %a", view.attention_factor,
                 plan.attention_factor);
        good = false;
    }
    reference_plan_clear(&plan);
    posenc_freqs_destroy(freqs);
    return good && (spec->profile == POSENC_EXACT || check_rows(spec, seed, library_rows));
}

int certify_library(const struct vectors *cases)
{
    const int64_t plans = for_specs(cases, library_plan, NULL);
    if (plans >= 0)
        printf("library's frequencies = MPFR: %lld plans\n", (long long)plans);
    return plans < 0;
}
