/*
 * Tests the search for mistakes: similar mistakes are distinguished, faults that are no known mistake
 * have no name, and right kernels never have one. The faults of conformance/cases/faults.txt test more of the table.
 */
#include "mistakes.h"

#include "base/tap/tap.h"
#include "conformance/problem/notation.h"
#include "hypothesis.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Faulty kernels: an edit of the arguments or of the outputs, or a call that is rejected ---- */

static void (*edit_arguments)(union arguments *args);
static void (*edit_output)(const struct posenc_tensor *out);
static int calls_left; /* before calls are rejected */

static enum posenc_status run_edited(enum posenc_kernel kernel, union arguments args,
                                     const struct posenc_tensor *out,
                                     const struct posenc_backend *backend,
                                     struct posenc_error *error)
{
    enum posenc_status status = POSENC_ERR_ARGUMENT;
    if (calls_left-- <= 0)
        return status;
    if (edit_arguments)
        edit_arguments(&args);
    switch (kernel) {
    case POSENC_KERNEL_ROPE_HALF:
        status = posenc_rope_half(backend, &args.rope, error);
        break;
    case POSENC_KERNEL_SINUSOIDAL:
        status = posenc_sinusoidal(backend, &args.sinusoidal, error);
        break;
    case POSENC_KERNEL_T5_BIAS:
        status = posenc_t5_bias(backend, &args.t5, error);
        break;
    case POSENC_KERNEL_ROPE_TABLE:
        status = posenc_rope_table(backend, &args.rope_table, error);
        break;
    default:
        status = posenc_alibi(backend, &args.alibi, error);
        break;
    }
    if (edit_output && status == POSENC_OK)
        edit_output(out);
    return status;
}

#define EDITED(ID, name, signature, output)                                                    \
    static enum posenc_status edited_##name(const struct posenc_backend *backend,              \
                                            const struct posenc_##signature##_args *args,      \
                                            struct posenc_error *error)                        \
    {                                                                                          \
        return run_edited(POSENC_KERNEL_##ID, (union arguments){ .signature = *args },         \
                          &args->output, backend, error);                                      \
    }
EDITED(ROPE_HALF, rope_half, rope, out)
EDITED(SINUSOIDAL, sinusoidal, sinusoidal, out)
EDITED(ROPE_TABLE, rope_table, rope_table, cos)
EDITED(ALIBI, alibi, alibi, out)
EDITED(T5_BIAS, t5_bias, t5, out)

static void turn_backward(union arguments *args)
{
    args->rope.transpose = !args->rope.transpose;
}
static void turn_forward(union arguments *args) { args->rope.transpose = false; }
static void count_from_1(union arguments *args) { args->sinusoidal.positions.offset++; }
static void ignore_scale(union arguments *args) { args->sinusoidal.scale = 1.0; }
static void mask_nothing(union arguments *args) { args->alibi.causal = false; }
static void shift_queries(union arguments *args) { args->alibi.query_offset++; }

/* Uses the buckets of T5's own configurations, where the table is as large. */
static void use_32_buckets(union arguments *args)
{
    static int32_t thresholds[32];
    struct posenc_t5_buckets *buckets = &args->t5.buckets;
    if (buckets->num_buckets < 32)
        return;
    args->t5.table.shape[0] = 32;
    const enum posenc_status status =
        posenc_t5_buckets_compute(32, 128, buckets->bidirectional, thresholds, buckets, NULL);
    assert(status == POSENC_OK);
}

/* Rounds array positions to bf16: it edits memory of the call, which every run fills anew. */
static void round_positions(union arguments *args)
{
    static int64_t rounded[512];
    struct posenc_positions *positions = &args->rope_table.positions;
    const int64_t n = args->rope_table.cos.shape[1];
    for (int64_t t = 0; t < n && t < 512; t++) {
        const int64_t position =
            positions->data ? ((const int64_t *)positions->data)[t] : positions->offset + t;
        rounded[t] = (int64_t)storage_round(POSENC_DTYPE_BF16, (float)position);
    }
    positions->kind = POSENC_POSITIONS_I64;
    positions->data = rounded;
    positions->stride_batch = positions->stride_axis = 0;
    positions->stride_token = 1;
}

static float *element(const struct posenc_tensor *out, int64_t r, int64_t k)
{
    return storage_row_f32(out, r) + k;
}

static void spoil_element(const struct posenc_tensor *out) { *element(out, 0, 0) += 1.0f; }

static void spoil_tail(const struct posenc_tensor *out)
{
    const int64_t width = out->shape[out->rank - 1];
    for (int64_t r = 0; r < storage_rows(out); r++)
        for (int64_t k = width - width % 4; k < width; k++)
            *element(out, r, k) += 0.25f;
}

/* Zeroes the last two channels: in a call of two, the whole output. */
static void zero_tail(const struct posenc_tensor *out)
{
    const int64_t width = out->shape[out->rank - 1];
    for (int64_t r = 0; r < storage_rows(out); r++)
        *element(out, r, width - 2) = *element(out, r, width - 1) = 0.0f;
}

static void spoil_head(const struct posenc_tensor *out)
{
    for (int64_t r = 1; r < storage_rows(out) && out->shape[2] > 1; r += out->shape[2])
        *element(out, r, 0) = 2.0f * *element(out, r, 0) + 1.0f;
}

static void add_noise(const struct posenc_tensor *out)
{
    for (int64_t r = 0; r < storage_rows(out); r++)
        for (int64_t k = 0; k < out->shape[out->rank - 1]; k++)
            *element(out, r, k) +=
                1e-3f * (float)(rng_u64((uint64_t)r, (uint64_t)k) >> 40) * 0x1p-24f;
}

static void spoil_late_tokens(const struct posenc_tensor *out)
{
    for (int64_t r = 512 * out->shape[2]; r < storage_rows(out); r++)
        *element(out, r, 1) *= 1.5f;
}

/* ---- Faulty frequencies ---- */

static void (*edit_spec)(struct posenc_freqs_spec *spec);

static enum posenc_status create_edited(const struct posenc_freqs_spec *spec,
                                        struct posenc_freqs **freqs, struct posenc_error *error)
{
    struct posenc_freqs_spec edited = *spec;
    if (edit_spec)
        edit_spec(&edited);
    return posenc_freqs_create(&edited, freqs, error);
}

static void use_hf_f32(struct posenc_freqs_spec *spec)
{
    spec->numerics = POSENC_NUMERICS_HF_F32;
}
static void ignore_theta(struct posenc_freqs_spec *spec) { spec->rope_theta = 10000.0; }
static void ignore_scaling(struct posenc_freqs_spec *spec)
{
    spec->scaling = POSENC_SCALING_NONE;
    spec->attention_factor = 0.0;
}
static void drop_attention_factor(struct posenc_freqs_spec *spec)
{
    spec->attention_factor = 1.0;
}

/* ---- The tests ---- */

#define ROPE  "rope_half head_dim=10 rotary_dim=10 heads=2 tokens=3 rows=8 position_offset=1"
#define TABLE "rope_table rotary_dim=16 tokens=4 position_offset=1000"
#define YARN  TABLE " scaling=yarn factor=4 original_max_position_embeddings=64"
static const struct row {
    const char *name, *problem, *mistake;
    void (*arguments)(union arguments *args);
    void (*output)(const struct posenc_tensor *out);
    void (*spec)(struct posenc_freqs_spec *spec);
    int calls; /* 0: any number */
} rows[] = {
    { "a sine of the other sign", ROPE,
      "the sine has the other sign: the rotation turns backward", .arguments = turn_backward },
    { "a sine of the other sign in a transposed call", ROPE " transpose=true",
      "the sine has the other sign: the rotation turns backward", .arguments = turn_backward },
    { "transpose ignored", ROPE " transpose=true",
      "transpose is ignored: the rotation always turns forward", .arguments = turn_forward },
    { "consecutive tokens from 1", "sinusoidal dim=8 tokens=3",
      "the positions of consecutive tokens begin one too high, as if counted from 1",
      .arguments = count_from_1 },
    { "a scale that is ignored", "sinusoidal dim=8 tokens=3 scale=2", "scale is ignored",
      .arguments = ignore_scale },
    { "a mask that is ignored", "alibi heads=2 queries=3 keys=5 causal=true",
      "causal is ignored: keys after the query are not masked", .arguments = mask_nothing },
    { "an offset of queries", "alibi heads=2 queries=3 keys=5", "query_offset is one too high",
      .arguments = shift_queries },
    { "the number of buckets",
      "t5_bias heads=2 queries=3 keys=90 query_offset=80 num_buckets=64 max_distance=128",
      "num_buckets is 32 whatever is given", .arguments = use_32_buckets },
    { "angles in f32", "rope_table rotary_dim=16 tokens=4 position_offset=70000",
      "angles are those of the numerics mode hf_f32", .spec = use_hf_f32 },
    { "positions in bf16", TABLE, "positions are rounded to bf16",
      .arguments = round_positions },
    { "theta", TABLE " rope_theta=5e5", "rope_theta is 10000 whatever is given",
      .spec = ignore_theta },
    { "a scaling that is ignored", YARN, "the scaling is ignored", .spec = ignore_scaling },
    { "a factor that is missing", YARN, "the attention factor is missing",
      .spec = drop_attention_factor },
    { "one call and many values", "rope_half head_dim=10 rotary_dim=10 heads=2 tokens=7 rows=8",
      "the sine has the other sign: the rotation turns backward", .arguments = turn_backward,
      .calls = 1 },
    { "one call and few values", "rope_half head_dim=2 rotary_dim=2 heads=1 tokens=2 rows=8",
      "", .arguments = turn_backward, .calls = 1 },
    { "one wrong element", ROPE, "", .output = spoil_element },
    { "a wrong tail", ROPE, "", .output = spoil_tail },
    { "a tail of zeros that is a whole small output",
      "rope_half head_dim=2 rotary_dim=2 heads=1 tokens=3 rows=8 position_offset=1", "",
      .output = zero_tail },
    { "one wrong head", ROPE, "", .output = spoil_head },
    { "noise", ROPE, "", .output = add_noise },
    { "wrong tokens from 512 on",
      "rope_half head_dim=4 rotary_dim=4 heads=1 tokens=520 rows=520", "",
      .output = spoil_late_tokens },
    { "noise in a table", TABLE, "", .output = add_noise },
    { "one wrong element of a bias", "alibi heads=2 queries=3 keys=5", "",
      .output = spoil_element },
};

static void test_row(const struct row *row)
{
    struct implementation implementation = implementation_of(posenc_backend_find("scalar"));
    struct problem_line line;
    struct arena arena = { NULL };
    char error[NOTATION_ERROR], text[MISTAKE_TEXT] = "", name[160];
    implementation.rope_half = edited_rope_half;
    implementation.sinusoidal = edited_sinusoidal;
    implementation.rope_table = edited_rope_table;
    implementation.alibi = edited_alibi;
    implementation.t5_bias = edited_t5_bias;
    implementation.freqs_create = create_edited;
    edit_arguments = row->arguments;
    edit_output = row->output;
    edit_spec = row->spec;
    calls_left = row->calls ? row->calls : 1000;
    const bool searched = notation_read(row->problem, &line, &arena, error) &&
                          mistakes_find(&implementation, &line.problem, text);
    if (strcmp(text, row->mistake) != 0)
        printf("# matches: %s\n", text);
    snprintf(name, sizeof name, "%s: %s", row->name, *row->mistake ? row->mistake : "no name");
    require(searched && strcmp(text, row->mistake) == 0, name);
    arena_free(&arena);
}

/* Requires that no right kernel has a mistake, in any type. */
static void test_right_kernels(const char *backend)
{
    const struct implementation implementation =
        implementation_of(posenc_backend_find(backend));
    bool right = true;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int dtype = POSENC_DTYPE_F32; dtype <= POSENC_DTYPE_BF16; dtype++) {
            struct problem p = problem_default((enum posenc_kernel)k);
            char text[MISTAKE_TEXT];
            p.dtype = p.values_dtype = (enum posenc_dtype)dtype;
            right = !mistakes_find(&implementation, &p, text) && !*text && right;
        }
    require(right, backend);
}

/* Requires that some kernel has each field that the tables edit, and that the words for kernels are such. */
static void test_spelling(void)
{
    int wrong = 0;
    for (const struct mistake *const *table = mistake_tables; *table; table++)
        for (const struct mistake *mistake = *table; mistake->sentence; mistake++) {
            const bool edits = mistake->fields[0].kind || mistake->edit || mistake->row ||
                               mistake->position || mistake->score || mistake->rounded;
            bool applies = false;
            for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
                applies = applies || mistake_concerns(mistake, (enum posenc_kernel)k);
            if (!edits || !applies || strlen(mistake->sentence) >= MISTAKE_TEXT / 2)
                printf("# %s\n", mistake->sentence);
            wrong += !edits || !applies || strlen(mistake->sentence) >= MISTAKE_TEXT / 2;
        }
    require(wrong == 0, "each mistake edits something, in a kernel that exists, in few words");
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        test_row(&rows[i]);
    test_right_kernels("scalar");
    test_right_kernels("libm");
    test_spelling();
    return tap_end();
}
