/*
 * Tests the search for mistakes. An implementation that returns what a mistake predicts is named after that mistake;
 * faults that are no known mistake have no name, and right kernels never have one. The faults of
 * conformance/cases/faults.txt test that the predictions are right.
 */
#include "mistakes.h"

#include "base/tap/tap.h"
#include "conformance/problem/guard.h"
#include "conformance/problem/notation.h"
#include "conformance/problem/signature.h"
#include "hypothesis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- An implementation with a mistake ---- */

/* Its mistake, a further change of the outputs (or NULL), and the number of calls before it rejects them. */
static struct {
    const struct mistake *mistake;
    void (*spoil)(const struct posenc_tensor *out);
    int calls_left;
} mistaken;

/* Returns the value that a kernel with the mistake writes, by the predicted one and the right one. */
static float mistaken_value(double predicted, double right)
{
    if (predicted == UNWRITTEN_VALUE)
        return bits_to_float(CALL_CANARY);
    if (predicted == UNKNOWN_VALUE)
        return exact_round_f32(right);
    return storage_round(mistaken.mistake->rounded, exact_round_f32(predicted));
}

/* Writes a row to an output: the predicted values or, if there is no prediction, the right ones. */
static void write_row(struct hypothesis *h, bool is_predicted, const double *right,
                      const struct posenc_tensor *out)
{
    for (int64_t k = 0; k < h->width; k++)
        storage_put(out->dtype, storage_row(out, h->row), k,
                    mistaken_value(is_predicted ? h->want[k] : UNKNOWN_VALUE, right[k]));
}

static void write_rows(struct call *call, const union arguments *args)
{
    const struct signature *signature = signature_of(call->problem.kernel);
    double *right = calloc((size_t)call->outputs[0].width + 1, sizeof *right);
    struct hypothesis h;
    struct oracle *oracle = oracle_create(call);
    const bool is_possible = hypothesis_begin(&h, mistaken.mistake, call);
    for (h.row = 0; right && h.row < call->outputs[0].rows; h.row++)
        for (int o = 0; o < call->n_outputs; o++) {
            const bool is_predicted = is_possible && hypothesis_row(&h, o, h.row);
            oracle_compute_row(oracle, o, h.row, right, NULL);
            write_row(&h, is_predicted, right,
                      arguments_get((union arguments *)(uintptr_t)args,
                                    signature_output(signature, o)));
        }
    hypothesis_end(&h);
    oracle_destroy(oracle);
    free(right);
}

static enum posenc_status run_mistaken(enum posenc_kernel kernel, const void *args)
{
    struct call call;
    const struct problem problem = *guard_last_problem();
    if (mistaken.calls_left-- <= 0 || call_create(&call, &problem, NULL) != POSENC_OK)
        return POSENC_ERR_ARGUMENT;
    write_rows(&call, args);
    if (mistaken.spoil)
        mistaken.spoil(arguments_get((union arguments *)(uintptr_t)args,
                                     signature_output(signature_of(kernel), 0)));
    call_destroy(&call);
    return POSENC_OK;
}

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    static enum posenc_status mistaken_##name(const struct posenc_backend *backend,            \
                                              const struct posenc_##signature##_args *args,    \
                                              struct posenc_error *error)                      \
    {                                                                                          \
        const enum posenc_status status = posenc_##name(backend, args, error);                 \
        return status ? status : run_mistaken(POSENC_KERNEL_##ID, args);                       \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

/* Searches for the mistake of a problem. Returns false if all its values are right. */
static bool find_mistake(const char *problem, const struct mistake *mistake,
                         void (*spoil)(const struct posenc_tensor *out), int calls, char *text)
{
    struct implementation implementation = implementation_of(posenc_backend_find("scalar"));
    struct problem_line line;
    struct arena arena = { NULL };
    char error[NOTATION_ERROR] = "";
#define POSENC_KERNEL(ID, name, ...) implementation.name = mistaken_##name;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
    mistaken.mistake = mistake;
    mistaken.spoil = spoil;
    mistaken.calls_left = calls;
    *text = '\0';
    if (!notation_read(problem, &line, &arena, error))
        printf("# %s: %s\n", problem, error);
    const bool found = !*error && mistakes_find(&implementation, &line.problem, text);
    arena_free(&arena);
    return found;
}

/* ---- Every mistake ---- */

enum { ANY_CALLS = 1000000 };

/* Problems in which each mistake shows. */
#define YARN  "scaling=yarn factor=4 original_max_position_embeddings=64"
#define IMAGE "tokens=6 position_offset=10 position_kind=i64 mrope_grid=3"
static const char *const problems[] = {
    "rope_half head_dim=12 rotary_dim=8 heads=2 tokens=3 rows=8 position_offset=1 "
    "rotary_offset=2 "
    "batch=2 batch_shift=1 transpose=true",
    "rope_half head_dim=12 rotary_dim=8 heads=2 tokens=3 rows=8 position_kind=i64 dtype=bf16",
    "rope_half head_dim=12 rotary_dim=8 heads=1 tokens=3 rows=8 table_dtype=f16 in_place=true "
    "rotary_offset=4",
    "rope_interleaved head_dim=12 rotary_dim=8 heads=2 tokens=3 rows=600 position_offset=500",
    "rope_qk_norm head_dim=12 rotary_dim=8 heads=2 tokens=3 rows=8 rotary_offset=2 epsilon=0.1 "
    "weight_offset=1 position_offset=1",
    "rope_qk_norm head_dim=12 rotary_dim=8 heads=3 tokens=2 rows=8 across_heads=true "
    "dtype=bf16",
    "rope_table rotary_dim=16 tokens=4 position_offset=3001 rope_theta=5e5 batch=2 "
    "batch_shift=3",
    "rope_table rotary_dim=16 tokens=4 position_offset=3001 dtype=bf16 position_kind=f32 "
    "time_step=0.3",
    "rope_table rotary_dim=16 tokens=5 position_offset=16777217 scaling=linear factor=2",
    "rope_table rotary_dim=16 tokens=4 position_offset=-70 " YARN " truncate=false mscale=1 "
    "mscale_all_dim=0.5",
    "rope_table rotary_dim=16 tokens=4 position_offset=70 numerics=hf_f32 " YARN,
    "rope_table rotary_dim=16 tokens=4 position_offset=70 scaling=llama3 factor=4 "
    "low_freq_factor=1 high_freq_factor=4 original_max_position_embeddings=64",
    "rope_table rotary_dim=16 tokens=4 position_offset=70 scaling=longrope factor=4 "
    "original_max_position_embeddings=64 short_factor_last=2 long_factor_last=5 seq_len=100",
    "rope_table rotary_dim=16 tokens=4 position_offset=70 scaling=proportional factor=2 "
    "partial_rotary_factor=0.5",
    "rope_table rotary_dim=16 tokens=3 xpos_scale_base=512 xpos_centre=3 xpos_inverse=true",
    "rope_table rotary_dim=16 tokens=3 xpos_scale_base=512",
    "rope_table rotary_dim=48 mrope_section=12,8,4 mrope_layout=qwen3_vl " IMAGE,
    "rope_table rotary_dim=48 mrope_section=12,8,4 mrope_layout=qwen2_vl " IMAGE,
    "sinusoidal dim=8 tokens=3 scale=2 position_offset=5",
    "sinusoidal_add dim=8 tokens=3 layout=sin_cos x_scale=-2 position_offset=5 batch=2",
    "sinusoidal_add dim=8 tokens=3 dtype=bf16 freq_spacing=endpoint x_scale=3",
    "learned_add dim=6 tokens=4 rows=9 x_scale=-3 positions=3,1,1,7 position_kind=i64 batch=2 "
    "batch_shift=1",
    "learned_grad dim=5 tokens=6 rows=9 positions=1,4,4,0,7,1 position_kind=i64 batch=2 "
    "batch_shift=1",
    "learned_grad dim=5 tokens=6 rows=9 position_offset=1 accumulate=true dtype=bf16",
    "learned_grad dim=5 tokens=6 rows=9 position_offset=1 batch=2 dtype=bf16",
    "alibi heads=3 queries=3 keys=310 query_offset=300 causal=true",
    "alibi_add heads=3 queries=3 keys=5 batch=2 slopes_by_batch=true x_scale=2 query_offset=2",
    "t5_bias heads=3 queries=3 keys=90 query_offset=120 num_buckets=64 max_distance=100",
    "t5_bias heads=3 queries=3 keys=40 num_buckets=32 max_distance=60 bidirectional=true",
    "distance_bias heads=3 queries=3 keys=5 query_offset=2 distances=12",
    "window_bias heads=3 window_height=2 window_width=3",
    "relative_bias heads=2 queries=5 keys=5 max_distance=3 relative=shaw with_p2c=true "
    "scale=-0.5",
    "relative_sum heads=2 queries=4 keys=5 max_distance=3 relative=shaw batch=2",
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems, ENOUGH = 4 };

/* Requires that the mistake is named in the first few problems where its values are wrong, and that there is one. */
static bool test_mistake(const struct mistake *mistake)
{
    int n_named = 0, n_wrong = 0;
    for (int i = 0; i < N_PROBLEMS && n_wrong < ENOUGH; i++) {
        enum posenc_kernel kernel = POSENC_KERNEL_SINUSOIDAL;
        while (strncmp(problems[i], posenc_kernel_name(kernel), strcspn(problems[i], " ")) != 0)
            kernel++;
        char text[MISTAKE_TEXT];
        if (!mistake_concerns(mistake, kernel) ||
            !find_mistake(problems[i], mistake, NULL, ANY_CALLS, text))
            continue;
        const bool named = strstr(text, mistake->sentence);
        if (!named)
            printf("# %s: matches: %s\n", problems[i], text);
        n_named += named;
        n_wrong++;
    }
    return n_named > 0 && n_named == n_wrong;
}

/* Tests all mistakes but those that depend on the values: vague ones, and rows that are missing at the end. */
static void test_every_mistake(void)
{
    for (const struct mistake *const *table = mistake_tables; *table; table++)
        for (const struct mistake *mistake = *table; mistake->sentence; mistake++)
            if (!mistake->is_vague && strncmp(mistake->sentence, "the last rows", 13) != 0)
                require(test_mistake(mistake), mistake->sentence);
}

/* ---- Changes of right outputs ---- */

static const struct mistake right = { .sentence = "" }, *backward; /* the sine's other sign */

static float *element(const struct posenc_tensor *out, int64_t r, int64_t k)
{
    return storage_row_f32(out, r) + k;
}

static int64_t width_of(const struct posenc_tensor *out) { return out->shape[out->rank - 1]; }

static void spoil_element(const struct posenc_tensor *out) { *element(out, 0, 0) += 1.0f; }

static void spoil_tail(const struct posenc_tensor *out)
{
    for (int64_t r = 0; r < storage_rows(out); r++)
        for (int64_t k = width_of(out) - width_of(out) % 4; k < width_of(out); k++)
            *element(out, r, k) += 0.25f;
}

/* Zeroes the last two channels: in a call of two, the whole output. */
static void zero_tail(const struct posenc_tensor *out)
{
    for (int64_t r = 0; r < storage_rows(out); r++)
        *element(out, r, width_of(out) - 2) = *element(out, r, width_of(out) - 1) = 0.0f;
}

static void zero_last_row(const struct posenc_tensor *out)
{
    memset(element(out, storage_rows(out) - 1, 0), 0, (size_t)width_of(out) * sizeof(float));
}

static void spoil_head(const struct posenc_tensor *out)
{
    for (int64_t r = 1; r < storage_rows(out) && out->shape[2] > 1; r += out->shape[2])
        *element(out, r, 0) = 2.0f * *element(out, r, 0) + 1.0f;
}

static void add_noise(const struct posenc_tensor *out)
{
    for (int64_t r = 0; r < storage_rows(out); r++)
        for (int64_t k = 0; k < width_of(out); k++)
            *element(out, r, k) +=
                1e-3f * (float)(rng_u64((uint64_t)r, (uint64_t)k) >> 40) * 0x1p-24f;
}

static void spoil_late_tokens(const struct posenc_tensor *out)
{
    for (int64_t r = 512 * out->shape[2]; r < storage_rows(out); r++)
        *element(out, r, 1) *= 1.5f;
}

#define ROPE  "rope_half head_dim=10 rotary_dim=10 heads=2 tokens=3 rows=8 position_offset=1"
#define SMALL "rope_half head_dim=2 rotary_dim=2 heads=1 rows=8 position_offset=1"
static const struct row {
    const char *name, *problem;
    const char *mistake;                            /* that is named; "": none */
    void (*spoil)(const struct posenc_tensor *out); /* NULL: the sine has the other sign */
    int calls;                                      /* that are not rejected */
} rows[] = {
    { "one call and many values", ROPE " batch=3",
      "the sine has the other sign: the rotation turns backward", NULL, 1 },
    { "one call and few values", SMALL " tokens=2", "", NULL, 1 },
    { "one call and few wrong values", ROPE, "", zero_last_row, 1 },
    { "a last row of zeros", ROPE, "the last rows are zeros", zero_last_row, ANY_CALLS },
    { "one wrong element", ROPE, "", spoil_element, ANY_CALLS },
    { "a wrong tail", ROPE, "", spoil_tail, ANY_CALLS },
    { "a tail of zeros that is a whole small output", SMALL " tokens=3", "", zero_tail,
      ANY_CALLS },
    { "one wrong head", ROPE, "", spoil_head, ANY_CALLS },
    { "noise", ROPE, "", add_noise, ANY_CALLS },
    { "wrong tokens from 512 on",
      "rope_half head_dim=4 rotary_dim=4 heads=1 tokens=520 rows=520", "", spoil_late_tokens,
      ANY_CALLS },
    { "noise in a table", "rope_table rotary_dim=16 tokens=4 position_offset=1000", "",
      add_noise, ANY_CALLS },
    { "one wrong element of a bias", "alibi heads=2 queries=3 keys=5", "", spoil_element,
      ANY_CALLS },
};

static void test_row(const struct row *row)
{
    char text[MISTAKE_TEXT], name[160];
    const bool found = find_mistake(row->problem, row->spoil ? &right : backward, row->spoil,
                                    row->calls, text);
    if (strcmp(text, row->mistake) != 0)
        printf("# matches: %s\n", text);
    snprintf(name, sizeof name, "%s: %s", row->name, *row->mistake ? row->mistake : "no name");
    require(found && strcmp(text, row->mistake) == 0, name);
}

/* Requires that no right kernel has a mistake, in any type. */
static void test_right_kernels(const char *backend)
{
    const struct implementation implementation =
        implementation_of(posenc_backend_find(backend));
    bool all_right = true;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int dtype = POSENC_DTYPE_F32; dtype <= POSENC_DTYPE_BF16; dtype++) {
            struct problem p = problem_default((enum posenc_kernel)k);
            char text[MISTAKE_TEXT];
            p.dtype = p.values_dtype = (enum posenc_dtype)dtype;
            all_right = !mistakes_find(&implementation, &p, text) && !*text && all_right;
        }
    require(all_right, backend);
}

int main(void)
{
    static struct guard_status status; /* by which the implementation knows the problem */
    guard_set_status(&status);
    backward = mistakes_of_rotations;
    while (strncmp(backward->sentence, "the sine has the other sign", 27) != 0)
        backward++;
    test_every_mistake();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        test_row(&rows[i]);
    test_right_kernels("scalar");
    test_right_kernels("libm");
    return tap_end();
}
