/*
 * The set of cases: how one is added, which flags exist, where reference values come from.
 */
#include "golden.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct flag golden_flags[] = {
    { "Accumulate", "SUM_ORDER", "a gradient added to what is there, which comes first" },
    { "AttentionFactor", "SCALING",
      "cos and sin are multiplied by the attention factor, once" },
    { "Axes", "INDEXING",
      "several positions a token: pairs turned by another axis than their own" },
    { "Base", "FREQUENCY", "rope_theta other than 10000, and frequencies that must follow it" },
    { "Batch", "INDEXING",
      "positions of a batch: rows of another batch, or batch taken for token" },
    { "Buckets", "INTEGER_LOGARITHM", "distances around every T5 bucket boundary" },
    { "Causal", "MASK", "keys after the query are -infinity, keys before it are not" },
    { "ClassToken", "INDEXING",
      "three more rows of a window: class token as query, as key, with itself" },
    { "Clip", "INDEXING", "distances beyond the farthest column" },
    { "Consecutive", "BLOCKING",
      "runs of positions across the ends of blocks and across zero" },
    { "Convergent", "CANCELLATION",
      "sin or cos almost vanishes: absolute errors show as ulps" },
    { "Distance", "SIGN", "a value for each distance query - key" },
    { "Dynamic", "SCALING",
      "a base that grows with the sequence s beyond max_position_embeddings, and only there" },
    { "Endpoint", "FREQUENCY", "the frequency convention i/(n-1) taken for 2i/d" },
    { "F32Integer", "POSITION_ROUNDING", "positions that f32 does not hold" },
    { "GgmlF32", "OPERATION_ORDER",
      "ggml's angles: an f32 product iterated over the pairs; YaRN blends two angles" },
    { "Gradient", "INDEXING", "rows that several tokens look up, and rows of none" },
    { "InPlace", "ALIASING", "x and out are one tensor" },
    { "LargePosition", "RANGE_REDUCTION", "the angle loses its bits in f32" },
    { "Layout", "LAYOUT", "sines and cosines in another order" },
    { "Linear", "SCALING", "linear scaling by a factor" },
    { "Llama3", "SCALING", "the three bands of llama3 scaling" },
    { "LogBuckets", "INTEGER_LOGARITHM", "distances around the ends of DeBERTa's buckets" },
    { "LongRope", "SCALING",
      "a divisor for each pair, pair i of n having 1 + (last - 1) (i / (n - 1)) in f64 with "
      "last = short_factor_last up to original_max_position_embeddings tokens, "
      "long_factor_last beyond" },
    { "Negative", "SIGN", "negative positions: cos even, sin odd" },
    { "Ntk", "SCALING", "a base raised by factor^(d/(d-2))" },
    { "OddDim", "LAYOUT", "odd dimension: last sine, or zero column" },
    { "Order", "SUM_ORDER", "f32 sums whose bits depend on the order, which is ascending" },
    { "Overflow", "STORAGE", "f32 results beyond the largest f16 or bf16" },
    { "Padding", "INDEXING", "positions where some tokens are padding" },
    { "Pairing", "PAIRING", "pairs (i, i + r/2) taken for (2i, 2i + 1) or the reverse" },
    { "Partial", "PARTIAL_ROTARY", "rotary_dim below head_dim: the tail is a copy" },
    { "Profile", "OPERATION_ORDER", "the f32 operation order of Hugging Face" },
    { "Proportional", "PARTIAL_ROTARY",
      "a share of all pairs turns, exponents over the whole dim; the others rest" },
    { "RotaryOffset", "PARTIAL_ROTARY",
      "a window of channels turns: copies before it and after it" },
    { "RowOffset", "INDEXING", "position 0 is another row than row 0" },
    { "Scale", "SCALING", "scale of the table or of x" },
    { "Shift", "INDEXING", "the relative shift of Transformer-XL" },
    { "Slopes", "SLOPES", "ALiBi slopes of this number of heads" },
    { "SlopesByBatch", "INDEXING", "ALiBi slopes of each batch" },
    { "SpecialValues", "CLASS", "NaN, infinities, zeros of both signs, subnormals" },
    { "Storage", "STORAGE", "f16 or bf16 in memory: f32 arithmetic, then one rounding" },
    { "Stride", "INDEXING", "rows apart, tokens before batches, unaligned" },
    { "Subnormal", "STORAGE", "results below the least normal value of their type" },
    { "TableStorage", "STORAGE", "cosines and sines of another type than x" },
    { "Terms", "INDEXING",
      "a column of terms by relative position, of the query or of the key" },
    { "Tie", "STORAGE", "f32 results halfway between two of the storage type: to even" },
    { "Time", "POSITION_ROUNDING", "positions with a fraction, as f32" },
    { "TorchExpF32", "OPERATION_ORDER",
      "exp of f32 2i times f32 -ln(theta)/d, as the widespread PyTorch module has it" },
    { "Transpose", "SIGN", "the inverse rotation: sin changes its sign" },
    { "TwoRoundings", "STORAGE",
      "to f32, then to the storage type: not what one rounding gives" },
    { "Window", "INDEXING", "a row of the table for each query and key of a window" },
    { "XPos", "SCALING",
      "cosines and sines that grow or shrink with the distance from a centre" },
    { "Yarn", "SCALING", "the ramp of YaRN" },
    { "YarnTruncate", "SCALING", "the correction range rounded to whole pairs, or not" },
    { NULL, NULL, NULL },
};

static void *keep(struct golden *golden, size_t bytes)
{
    void *memory = vectors_keep(&golden->vectors, bytes);
    if (!memory) {
        fputs("golden: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

void add_group(struct golden *golden, const char *name)
{
    golden->groups[golden->n_groups++] =
        (struct group){ .name = name, .first = golden->vectors.n };
}

struct problem *add_case(struct golden *golden, enum posenc_kernel kernel, const char *flags,
                         const char *note, const char *source, const char *suffix, ...)
{
    enum { SUFFIX = 96 };
    if (golden->vectors.n == MAX_CASES) {
        fprintf(stderr, "golden: more than %d cases\n", MAX_CASES);
        exit(2);
    }
    char *id = keep(golden, SUFFIX);
    va_list args;
    va_start(args, suffix);
    vsnprintf(id, SUFFIX, suffix, args);
    va_end(args);
    struct vector_case *c = &golden->vectors.cases[golden->vectors.n++];
    golden->groups[golden->n_groups - 1].n++;
    *c = (struct vector_case){ .id = id, .flags = flags, .note = note, .source = source };
    c->problem = problem_blank(kernel);
    return &c->problem;
}

int64_t *keep_positions(struct golden *golden, const int64_t *positions, int64_t n)
{
    int64_t *copy = keep(golden, (size_t)n * sizeof *copy);
    memcpy(copy, positions, (size_t)n * sizeof *copy);
    return copy;
}

/* Inputs follow from the id (FNV-1a), so that a new case leaves the others as they are; those
 * of ONNX from seed 0.  Of a case in f16 or bf16 from the id it has in f32: the same inputs. */
static uint64_t seed_of(const char *id)
{
    uint64_t hash = 2166136261u;
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * 16777619u & UINT32_MAX;
    return hash;
}

/* All but kernels that compute what they write from positions alone. */
static bool draws_inputs(enum posenc_kernel kernel)
{
    return !kernel_has_plan(kernel) || kernel_takes_x(kernel);
}

/* kernel/dtype/profile/suffix */
static const char *new_id(struct golden *golden, const struct vector_case *c,
                          enum posenc_dtype dtype)
{
    enum { ID = 96 };
    const struct problem *p = &c->problem;
    const char *profile =
        kernel_has_plan(p->kernel) ? profile_names[p->freqs.profile] : "given";
    char *id = keep(golden, ID);
    const int n = snprintf(id, ID, "%s/%s/%s/%s", posenc_kernel_name(p->kernel),
                           dtype_names[dtype], profile, c->id);
    if (n >= ID || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_./-") != strlen(id)) {
        fprintf(stderr, "golden: %s is no id\n", id);
        exit(2);
    }
    return id;
}

static void complete_id(struct golden *golden, struct vector_case *c)
{
    struct problem *p = &c->problem;
    const char *id = new_id(golden, c, p->dtype);
    for (struct vector_case *other = golden->vectors.cases; other < c; other++)
        if (strcmp(other->id, id) == 0) {
            fprintf(stderr, "golden: two cases are called %s\n", id);
            exit(2);
        }
    if (p->recipe == RECIPE_MIX && draws_inputs(p->kernel))
        p->seed = seed_of(new_id(golden, c, POSENC_F32));
    c->id = id;
}

static void check_flags(const struct vector_case *c)
{
    char flags[128];
    snprintf(flags, sizeof flags, "%s", c->flags);
    for (char *flag = strtok(flags, " "); flag; flag = strtok(NULL, " ")) {
        const struct flag *known = golden_flags;
        while (known->name && strcmp(known->name, flag) != 0)
            known++;
        if (!known->name) {
            fprintf(stderr, "golden: %s: unknown flag %s\n", c->id, flag);
            exit(2);
        }
    }
}

/* Inputs come from the recipe that every reader of the vectors uses; only they do. */
static void fill_case(struct golden *golden, struct vector_case *c)
{
    struct call call;
    const enum posenc_status status = call_create(&call, &c->problem, &memory_plain);
    if (status != POSENC_OK) {
        fprintf(stderr, "golden: %s: %s: %s (%g)\n", c->id, posenc_status_string(status),
                call.error.what ? call.error.what : "", call.error.value);
        exit(2);
    }
    c->n_outputs = call.n_outputs;
    for (int o = 0; o < call.n_outputs; o++) {
        c->output_names[o] = call.outputs[o].name;
        c->rows[o] = call.outputs[o].rows;
        c->width[o] = call.outputs[o].width;
        double *want = keep(golden, (size_t)(c->rows[o] * c->width[o]) * sizeof *want);
        reference_output(&call, o, want);
        c->want[o] = want;
    }
    call_destroy(&call);
}

void golden_create(struct golden *golden)
{
    *golden = (struct golden){ .n_groups = 0 };
    golden->vectors.cases = keep(golden, MAX_CASES * sizeof *golden->vectors.cases);
    list_sinusoidal(golden);
    list_convergents(golden);
    list_rope_table(golden);
    list_hf_f32(golden);
    list_scalings(golden);
    list_ggml_f32(golden);
    list_torch_exp_f32(golden);
    list_mrope(golden);
    list_times(golden);
    list_rope(golden);
    list_onnx(golden);
    list_added(golden);
    list_bias(golden);
    list_learned(golden);
    list_axes(golden);
    list_relative(golden);
    list_storage(golden);
    for (size_t i = 0; i < golden->vectors.n; i++) {
        complete_id(golden, &golden->vectors.cases[i]);
        check_flags(&golden->vectors.cases[i]);
        fill_case(golden, &golden->vectors.cases[i]);
    }
}
