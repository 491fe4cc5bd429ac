/*
 * What the generator makes of the cases: reference values, and the specs to certify.
 */
#include "conformance/problem/cases.h"
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn static void end(const char *id, const char *what)
{
    fprintf(stderr, "golden: %s: %s\n", id, what);
    exit(2);
}

/* Inputs come from the recipe that every reader of the vectors uses; only they do. */
static void fill_case(struct vectors *vectors, struct vector_case *c)
{
    struct call call;
    const enum posenc_status status = call_create(&call, &c->problem, &memory_plain);
    if (status != POSENC_OK) {
        char text[256];
        posenc_error_text(&call.error, text, sizeof text);
        end(c->id, text);
    }
    c->n_outputs = call.n_outputs;
    for (int o = 0; o < call.n_outputs; o++) {
        c->output_names[o] = call.outputs[o].name;
        c->rows[o] = call.outputs[o].rows;
        c->width[o] = call.outputs[o].width;
        double *want =
            arena_get(&vectors->arena, (size_t)(c->rows[o] * c->width[o]) * sizeof *want);
        if (!want)
            end(c->id, "out of memory");
        reference_output(&call, o, want);
        c->want[o] = want;
    }
    call_destroy(&call);
}

void fill_cases(struct vectors *vectors)
{
    for (size_t i = 0; i < vectors->n; i++)
        fill_case(vectors, &vectors->cases[i]);
}

/* ---- Specs to certify ---- */

bool profile_applies(const struct posenc_freqs_spec *spec)
{
    const bool restarts = spec->mrope_layout >= POSENC_MROPE_RESTARTED;
    if (spec->profile == POSENC_GGML_F32 && (spec->convention != POSENC_EXPONENT || restarts))
        return false;
    return scaling_in_profile(spec->scaling, spec->profile);
}

/* Uneven factors; the first below 1. */
static void fill_factors(double *factors, int64_t n, double last)
{
    for (int64_t i = 0; i < n; i++)
        factors[i] = 0.9 + last * (double)(i * i) / (double)(n * n);
}

/* Adds a spec, with factors where it takes some, unless it is there; padding that differs makes it
 * another one at worst. */
static int64_t add_spec(struct posenc_freqs_spec *specs, int64_t n, int64_t most,
                        const struct posenc_freqs_spec *spec)
{
    enum { MOST_PAIRS = 256 };
    static double factors[2][MOST_PAIRS];
    if (n == most)
        end("certified.txt", "there are more specs than are certified");
    specs[n] = *spec;
    if (spec->scaling == POSENC_SCALING_LONGROPE) {
        fill_factors(factors[0], MOST_PAIRS, 3.3);
        fill_factors(factors[1], MOST_PAIRS, 64.1);
        specs[n].short_factor = factors[0];
        specs[n].long_factor = factors[1];
    }
    int64_t k = 0;
    while (memcmp(&specs[k], &specs[n], sizeof *specs) != 0)
        k++;
    return k == n ? n + 1 : n;
}

int64_t certified_specs(const struct vectors *vectors, struct posenc_freqs_spec *specs,
                        int64_t most)
{
    const struct problem_list *more = cases(CASES_CERTIFIED);
    int64_t n = 0;
    for (size_t i = 0; i < more->n; i++)
        n = add_spec(specs, n, most, &more->lines[i].problem.freqs);
    for (size_t i = 0; i < vectors->n; i++) {
        struct posenc_freqs_spec spec = vectors->cases[i].problem.freqs;
        spec.profile = POSENC_EXACT;
        if (kernel_has_plan(vectors->cases[i].problem.kernel) && !spec.values &&
            spec.xpos_scale_base == 0)
            n = add_spec(specs, n, most, &spec);
    }
    return n;
}
