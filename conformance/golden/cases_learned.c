/*
 * Cases of learned tables: what models add to the index of a token before they look its row up,
 * and the gradient of the table.
 */
#include "golden.h"

static const char opt[] = "transformers modeling_opt.py OPTLearnedPositionalEmbedding";
static const char roberta[] =
    "transformers modeling_roberta.py create_position_ids_from_input_ids";
static const char fairseq[] = "fairseq utils.py make_positions";
static const char gradient[] = "torch nn.Embedding: rows of a gradient add up, token by token";

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

/* ---- Positions ---- */

static struct problem *rows_of(struct golden *golden, const char *note, const char *source,
                               const char *flags, const char *suffix, int64_t rows)
{
    struct problem *p =
        add_case(golden, POSENC_KERNEL_learned_add, flags, note, source, "%s", suffix);
    p->dim = 16;
    p->rows = rows;
    return p;
}

static void list_positions(struct golden *golden)
{
    static const int64_t right[] = { 2, 3, 4, 1, 1 }, left[] = { 1, 1, 2, 3, 4 },
                         inner[] = { 2, 1, 3, 1, 1, 4, 5 }, none[] = { 1, 1, 1 };
    static const struct {
        const char *name, *note;
        const int64_t *positions;
        int64_t n;
    } padded[] = {
        { "padding-right", "padding given positions of its own", right, COUNT(right) },
        { "padding-left", "padding before the text counted", left, COUNT(left) },
        { "padding-inner", "padding within the text counted", inner, COUNT(inner) },
        { "padding-alone", "the row of padding left out", none, COUNT(none) },
    };
    static const int64_t last[] = { 512, 513, 1, 1 };
    struct problem *p;
    p = rows_of(golden, "the offset of 2 left out", opt, "RowOffset", "opt-first", 2050);
    p->first = 2;
    p->tokens = 3;
    p = rows_of(golden, "2048 positions, so 2050 rows: the last two out of range", opt,
                "RowOffset", "opt-last", 2050);
    p->first = 2047;
    p->tokens = 3;
    p = rows_of(golden, "padding_idx + 1 left out, or the last of 514 rows out of range",
                roberta, "RowOffset Padding", "roberta-last", 514);
    at_positions(p, last, COUNT(last));
    for (int64_t k = 0; k < COUNT(padded); k++) {
        p = rows_of(golden, padded[k].note, fairseq, "Padding", padded[k].name, 32);
        at_positions(p, padded[k].positions, padded[k].n);
    }
    p = add_case(golden, POSENC_KERNEL_sinusoidal_add, "Padding Endpoint Layout",
                 "positions from padding_idx + 1 on: those of fairseq's sinusoids",
                 "fairseq modules/sinusoidal_positional_embedding.py", "d18-padding");
    p->freqs.dim = 18;
    p->freqs.convention = POSENC_ENDPOINT;
    p->layout = POSENC_SIN_COS;
    p->x_scale = 4.2426406871192848f; /* sqrt(18) */
    at_positions(p, inner, COUNT(inner));
}

/* ---- Gradients ---- */

static struct problem *gradient_of(struct golden *golden, const char *flags, const char *note,
                                   const char *suffix, int64_t dim, int64_t rows,
                                   int64_t tokens)
{
    struct problem *p =
        add_case(golden, POSENC_KERNEL_learned_grad, flags, note, gradient, "%s", suffix);
    p->dim = dim;
    p->rows = rows;
    p->tokens = tokens;
    return p;
}

static void list_gradients(struct golden *golden)
{
    enum { MANY = 300 };
    static const int64_t repeated[] = { 3, 3, 0, 3, 11, 0, 3 };
    static int64_t one_row[MANY], two_rows[MANY];
    struct problem *p;
    gradient_of(golden, "Gradient", "rows of no token left as they were, or NaN", "d37-once",
                37, 9, 5)
        ->first = 2;
    p = gradient_of(golden, "Gradient", "the last token of a row, where there are several",
                    "d19-repeated", 19, 12, 0);
    at_positions(p, repeated, COUNT(repeated));
    for (int64_t t = 0; t < MANY; t++) {
        one_row[t] = 0;
        two_rows[t] = t * t % 7 % 2;
    }
    p = gradient_of(golden, "Gradient Order", "sums in pairs, by parts or from the end",
                    "d24-one-row", 24, 1, 0);
    at_positions(p, one_row, MANY);
    p = gradient_of(golden, "Gradient Order", "sums in the order of another row",
                    "d33-two-rows", 33, 2, 0);
    at_positions(p, two_rows, MANY);
    p = gradient_of(golden, "Gradient Order Accumulate",
                    "what out holds added last, or added twice", "d37-accumulate", 37, 12, 0);
    at_positions(p, repeated, COUNT(repeated));
    p->accumulate = true;
    p = gradient_of(golden, "Gradient Accumulate", "rows of no token set to 0",
                    "d20-accumulate-once", 20, 6, 3);
    p->accumulate = true;
    p->pad = 3;
    p = gradient_of(golden, "Gradient Order Batch Stride",
                    "batches summed in the order of memory, which is token by token",
                    "d21-token-major", 21, 4, 4);
    p->batch = 5;
    p->token_major = true;
    p = gradient_of(golden, "Gradient Order Batch", "positions of another batch",
                    "d18-batch-shift", 18, 9, 6);
    p->batch = 4;
    p->position_kind = POSENC_POSITIONS_I64;
    p->batch_shift = 1;
    p = gradient_of(golden, "Gradient SpecialValues",
                    "NaN or infinity in another row; -0 where the sum begins at +0",
                    "d40-special", 40, 6, 6);
    p->special = true;
    p = gradient_of(golden, "Gradient RowOffset", "rows 0 and 1, which OPT never reads",
                    "d8-opt", 8, 8, 6);
    p->first = 2;
    p = gradient_of(golden, "Gradient", "no token: nothing but zeros", "d5-empty", 5, 3, 0);
    p = gradient_of(golden, "Gradient Stride", "rows apart, unaligned", "d13-stride", 13, 5, 5);
    p->pad = 3;
    p->offset_bytes = 4;
}

void list_learned(struct golden *golden)
{
    add_group(golden, "learned_positions");
    list_positions(golden);
    add_group(golden, "learned_grad");
    list_gradients(golden);
}
