/*
 * Models that see pictures: positions with three axes, and the vision towers that rotate by row
 * and column.  What a configuration says of them, what of that reaches the plans, and the
 * angles of a picture's tokens against the rule stated in its own words here.
 */
#define _XOPEN_SOURCE 700
#include "conformance/tap/tap.h"
#include "test_text.h"

#include <stdio.h>

static struct model m, other;
static char error[MODEL_ERROR];

static bool loads(const char *text)
{
    model_free(&m);
    if (load_text(text, &m, error) == 0)
        return true;
    printf("# %s\n", error);
    return false;
}

static bool built_in(const char *name)
{
    model_free(&m);
    return model_by_name(name, &m, error) == 0;
}

/* The axes of a problem's pairs are those spelt in `axes`: "001122". */
static bool has_axes(const struct problem *p, const char *axes)
{
    struct posenc_freqs *freqs;
    if (!p || posenc_freqs_create(&p->freqs, &freqs, NULL) != POSENC_OK)
        return false;
    struct posenc_freqs_view view = posenc_freqs_view(freqs);
    bool same = view.n_pairs == (int64_t)strlen(axes) && view.axis != NULL;
    for (int64_t i = 0; same && i < view.n_pairs; i++)
        same = view.axis[i] == axes[i] - '0';
    posenc_freqs_destroy(freqs);
    return same;
}

/* Runs a table; NULL where it cannot be made. */
static struct call *run_table(const struct problem *p, struct call *call)
{
    const struct posenc_backend *scalar = posenc_backend_find("scalar");
    if (!p || call_create(call, p, &memory_plain) != POSENC_OK)
        return NULL;
    if (call_run(call, scalar) == POSENC_OK)
        return call;
    call_destroy(call);
    return NULL;
}

/* Whether the cosine and sine of a pair of a token are those of `position`. */
static bool turned(const struct call *call, int64_t token, int64_t pair, double position)
{
    double angle = position * omega_of(&call->problem, pair, NULL);
    return fabs((double)call_row(call, 0, token)[pair] - cos(angle)) < 1e-6 &&
           fabs((double)call_row(call, 1, token)[pair] - sin(angle)) < 1e-6;
}

/* The same bits with and without axes. */
static bool as_one_axis(const struct problem *with)
{
    struct call a, b;
    struct problem without = *with;
    memset(without.freqs.mrope_section, 0, sizeof without.freqs.mrope_section);
    bool same = false;
    if (!run_table(with, &a))
        return false;
    if (run_table(&without, &b)) {
        same = true;
        for (int o = 0; o < 2; o++)
            for (int64_t r = 0; r < with->tokens; r++)
                same &= memcmp(call_row(&a, o, r), call_row(&b, o, r),
                               (size_t)with->freqs.dim / 2 * sizeof(float)) == 0;
        call_destroy(&b);
    }
    call_destroy(&a);
    return same;
}

#define T16 "0000000000000000"
#define H24 "111111111111111111111111"
#define W24 "222222222222222222222222"
#define THW "012012012012012"

static void test_presets(void)
{
    const struct problem *p;
    require(built_in("qwen2-vl-7b") && m.freqs.mrope_section[0] == 16 &&
                m.freqs.mrope_section[1] == 24 && m.freqs.mrope_section[2] == 24 &&
                m.freqs.mrope_layout == POSENC_MROPE_CHUNKED &&
                has_axes(find_case(&m, "rope_table/f32/exact", "7b-decode"), T16 H24 W24),
            "Qwen2-VL turns 16 pairs with time, 24 with the height and 24 with the width");
    require((p = find_case(&m, "rope_half/f32/given", "7b-decode")) && p->heads == 32 &&
                p->dim == 128,
            "of 28 + 4 heads of 128");
    require((p = find_case(&m, "rope_table/f32/exact", "7b-prefill")) &&
                p->position_kind == POSENC_OFFSET && as_one_axis(p) &&
                (p = find_case(&m, "rope_table/f32/hf_f32", "7b-decode")) && as_one_axis(p),
            "text, at the same position on each axis, as a model of one axis to the last bit");
    require(!strstr(m.notes, "not covered"), "nothing of it is left uncovered");
    require(built_in("qwen3-vl-2b") && m.freqs.mrope_layout == POSENC_MROPE_INTERLEAVED &&
                has_axes(find_case(&m, "rope_table/f32/exact", "2b-decode"),
                         THW THW THW THW "0000"),
            "Qwen3-VL by turns, and the last four of 64 pairs with time");
    require(built_in("qwen3.5-0.8b") && m.freqs.dim == 64 && m.freqs.rope_theta == 1e7 &&
                (p = find_case(&m, "rope_half/f32/given", "8b-decode")) && p->dim == 256 &&
                p->rotary_dim == 64 &&
                has_axes(find_case(&m, "rope_table/f32/exact", "8b-decode"), THW THW "01"),
            "Qwen3.5 by turns in 64 of 256 channels");
    require(strstr(m.notes, "(num_position_embeddings) are not covered") &&
                !strstr(m.notes, "vision_config"),
            "its notes name what its tower adds, and not its rotation");
}

/* Token 67 of a picture 32 wide: row 2, column 3. */
static void test_picture(void)
{
    const struct problem *p = NULL;
    struct call call;
    require(built_in("qwen2-vl-7b") &&
                (p = find_case(&m, "rope_table/f32/exact", "7b-image")) && p->tokens == 1024 &&
                p->mrope_grid == 32 && p->first == 512 &&
                p->position_kind == POSENC_POSITIONS_I64,
            "a picture of 32 x 32 tokens follows 512 of text");
    bool made = run_table(p, &call);
    require(made && turned(&call, 67, 0, 512.0) && turned(&call, 67, 15, 512.0),
            "all of it at the time 512");
    require(made && turned(&call, 67, 16, 514.0) && turned(&call, 67, 39, 514.0),
            "row 2 at the height 514");
    require(made && turned(&call, 67, 40, 515.0) && turned(&call, 67, 63, 515.0),
            "column 3 at the width 515");
    if (made)
        call_destroy(&call);
    bool wide = false, last = false;
    for (size_t i = 0; i < m.n_verify; i++) {
        const struct problem *v = &m.verify[i];
        wide |= v->mrope_grid == 32 && v->tokens > 32 && v->first == 512;
        last |= v->mrope_grid > 0 && v->mrope_grid < 32 && v->tokens > v->mrope_grid &&
                v->first + v->mrope_grid == 32768;
    }
    require(wide && last, "verified are its first rows, and a picture at the last positions");
}

static void test_tower(void)
{
    const struct problem *p;
    struct call call;
    require(built_in("qwen2-vl-7b") &&
                (p = find_case(&m, "rope_half/f32/given", "vision-image")) && p->heads == 32 &&
                p->dim == 80 && p->rotary_dim == 80 && p->tokens == 4096 && p->rows == 4096,
            "its vision tower rotates 16 + 16 heads of 80 of 4096 patches");
    require(!find_case(&m, "rope_", "vision-decode") && !find_case(&m, "rope_", "n-prefill"),
            "which are all there is: it does not decode");
    p = find_case(&m, "rope_table/f32/hf_f32", "vision-image");
    require(p && p->freqs.mrope_layout == POSENC_MROPE_RESTARTED &&
                p->freqs.profile == POSENC_HF_F32 && p->freqs.mrope_section[0] == 20 &&
                p->freqs.mrope_section[1] == 20 && p->freqs.mrope_section[2] == 0,
            "20 pairs by row, 20 by column, in the profile of its code, too");
    p = find_case(&m, "rope_table/f32/exact", "vision-image");
    bool same = p != NULL;
    for (int64_t j = 0; same && j < 20; j++) {
        double omega = pow(1e4, -(double)j / 20.0);
        same = fabs(omega_of(p, j, NULL) - omega) < 1e-12 &&
               fabs(omega_of(p, 20 + j, NULL) - omega) < 1e-12;
    }
    require(same, "with the same frequencies, 10000^(-j/20), for both");
    bool made = run_table(p, &call);
    require(made && turned(&call, 0, 5, 0.0) && turned(&call, 131, 5, 2.0) &&
                turned(&call, 131, 25, 3.0) && turned(&call, 4095, 0, 63.0) &&
                turned(&call, 4095, 20, 63.0),
            "patch 131 of 64 x 64 is in row 2, column 3; the last in row 63, column 63");
    if (made)
        call_destroy(&call);
    require(built_in("qwen3-vl-2b") &&
                (p = find_case(&m, "rope_half/f32/given", "vision-image")) && p->heads == 32 &&
                p->dim == 64,
            "that of Qwen3-VL 2B has heads of 64");
}

#define QWEN2(rope, vision)                                                                    \
    "{\"model_type\": \"qwen2_5_vl\", " TEXT "\"rope_scaling\": {" rope                        \
    "}, \"vision_config\": {" vision "}}"
#define SECTIONS "\"type\": \"mrope\", \"mrope_section\": [2, 3, 3]"
#define QWEN3(rope)                                                                            \
    "{\"model_type\": \"qwen3_5_text\", \"hidden_size\": 256, \"num_attention_heads\": 4, "    \
    "\"max_position_embeddings\": 100, \"rope_parameters\": {\"rope_theta\": 1e7" rope "}}"

static void test_spellings(void)
{
    bool both = loads(QWEN2(SECTIONS, "\"hidden_size\": 32, \"num_heads\": 2")) &&
                load_text("{\"model_type\": \"qwen2_5_vl\", \"text_config\": {\"model_type\": "
                          "\"qwen2_5_vl_text\", " TEXT "\"rope_scaling\": {\"mrope_section\": "
                          "[2, 3, 3], \"rope_type\": \"default\", \"type\": \"default\"}}, "
                          "\"vision_config\": {\"model_type\": \"qwen2_5_vl_vision\", "
                          "\"hidden_size\": 32, \"num_attention_heads\": 2, "
                          "\"rope_parameters\": {\"rope_type\": \"axial\", \"rope_theta\": "
                          "10000}}}",
                          &other, error) == 0;
    require(both && same_cases(&m, &other) &&
                find_case(&m, "rope_half/f32/given", "vision-image"),
            "nested, in a later spelling, it is the same model");
    model_free(&other);
    require(loads(QWEN3("")) && m.freqs.mrope_layout == POSENC_MROPE_INTERLEAVED &&
                m.freqs.mrope_section[2] == 10,
            "without mrope_section a model of Qwen3.5 has 11, 11, 10, by turns");
    require(loads("{\"model_type\": \"llama\", " TEXT "\"rope_scaling\": {\"rope_type\": "
                  "\"default\", \"mrope_section\": [3, 3, 2], \"mrope_interleaved\": true}}") &&
                has_axes(find_case(&m, "rope_table/f32/exact", "-decode"), "01201201"),
            "where a type does not decide it mrope_interleaved does");
    require(loads("{\"model_type\": \"qwen2_5_vl\", " TEXT
                  "\"rope_scaling\": {\"type\": \"yarn\", \"mrope_section\": [2, 3, 3], "
                  "\"factor\": 4, \"original_max_position_embeddings\": 25}}") &&
                m.freqs.scaling == POSENC_SCALING_YARN && m.freqs.mrope_section[0] == 2,
            "three axes may be scaled as well");
    require(loads("{\"model_type\": \"qwen2_vl\", \"hidden_size\": 64, "
                  "\"num_attention_heads\": 4, \"max_position_embeddings\": 2, "
                  "\"rope_theta\": 1e4, \"rope_scaling\": {" SECTIONS "}}") &&
                find_case(&m, "rope_table/f32/exact", "-image")->mrope_grid == 2,
            "a picture is no larger than the positions there are");
    require(loads(QWEN2(SECTIONS, "\"patch_size\": 14")) &&
                strstr(m.notes, "vision_config is not covered: it does not say its "
                                "hidden_size") &&
                !find_case(&m, "rope_", "vision-image"),
            "a tower that does not say its size is not covered, and noted");
    require(built_in("gemma-3-4b") && strstr(m.notes, "vision_config is not covered: this is"),
            "nor is one that does not rotate");
}

/* As many parts as there can be. */
static void test_most_parts(void)
{
#define LAYERS(type, theta)                                                                    \
    "\"" type "\": {\"rope_type\": \"longrope\", \"original_max_position_embeddings\": 50, "   \
    "\"short_factor\": [1, 1, 1, 1, 1, 1, 1, 1], \"long_factor\": [2, 2, 2, 2, 2, 2, 2, 2], "  \
    "\"mrope_section\": [2, 3, 3], \"rope_theta\": " theta "}"
    bool loaded =
        loads("{\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 64, "
              "\"num_attention_heads\": 4, \"max_position_embeddings\": 100, "
              "\"rope_parameters\": {" LAYERS("full_attention", "1e4") ", " LAYERS(
                  "sliding_attention",
                  "1e5") ", " LAYERS("chunked_attention",
                                     "1e6") "}, \"vision_config\": {\"hidden_size\": 64, "
                                            "\"num_heads\": 4}}");
    require(loaded && find_case(&m, "rope_table/f32/exact", "full-image") &&
                find_case(&m, "rope_table/f32/exact", "sliding-image") &&
                find_case(&m, "rope_table/f32/exact", "chunked-image") &&
                find_case(&m, "rope_table/f32/exact", "vision-image") && m.n_owned == 3 &&
                find_case(&m, "rope_half/f32/given", "vision-image"),
            "three types of layers, each with its pictures and factors, and a tower");
    require(loaded && find_case(&m, "rope_half/f32/given", "-prefill") &&
                !find_case(&m, "rope_half/f32/given", "full-prefill"),
            "whose layers, tower aside, make one call");
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *named;
    } bad[] = {
        { QWEN2(SECTIONS ", \"mrope_interleaved\": true", ""),
          "mrope_interleaved is true: the code of this model_type takes chunked sections" },
        { QWEN3(", \"mrope_interleaved\": false"),
          "mrope_interleaved is false: the code of this model_type takes interleaved" },
        { QWEN3(", \"partial_rotary_factor\": 0.5"),
          "mrope_section adds up to 32 pairs: 16, half of rotary_dim, are needed" },
        { QWEN2(SECTIONS, "\"hidden_size\": 32"), "vision_config: num_heads is missing" },
        { QWEN2(SECTIONS, "\"hidden_size\": \"32\", \"num_heads\": 2"),
          "vision_config: hidden_size is" },
        { QWEN2(SECTIONS, "\"hidden_size\": 32, \"num_heads\": 0"),
          "vision_config: num_heads is 0" },
        { QWEN2(SECTIONS, "\"hidden_size\": 36, \"num_heads\": 2"),
          "vision_config: hidden_size is 36 for 2 heads: a multiple of 4 for each" },
        { QWEN2(SECTIONS, "\"hidden_size\": 33, \"num_heads\": 2"),
          "vision_config: hidden_size is 33 for 2 heads" },
        { QWEN2(SECTIONS, "\"hidden_size\": 1, \"num_heads\": 2"),
          "vision_config: hidden_size is 1 for 2 heads" },
        { QWEN2(SECTIONS, "\"hidden_size\": 32, \"num_heads\": 2, \"spatial_merge_size\": 99"),
          "vision_config: spatial_merge_size is 99" },
        { QWEN2(SECTIONS, "\"hidden_size\": 32, \"num_heads\": 2, \"rope_parameters\": "
                          "{\"rope_theta\": 0}"),
          "vision_config: rope_theta is 0" },
        { QWEN2(SECTIONS, "\"hidden_size\": 1048576, \"num_heads\": 4"),
          "vision_config: its frequencies cannot be made" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char sentence[160];
        *error = 0;
        model_free(&m);
        int status = load_text(bad[i].text, &m, error);
        snprintf(sentence, sizeof sentence, "refused, naming %s", bad[i].named);
        require(status == -1 && strstr(error, bad[i].named), sentence);
        if (!strstr(error, bad[i].named))
            printf("# %s\n", error);
    }
}

int main(void)
{
    test_presets();
    test_picture();
    test_tower();
    test_spellings();
    test_most_parts();
    test_refusals();
    model_free(&m);
    return tap_end();
}
