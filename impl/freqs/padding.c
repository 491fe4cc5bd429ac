/*
 * Positions of sequences with padding. Let n(t) be the number of tokens up to t that are no padding. Token t is at
 * position
 *
 *   padding_idx + n(t),  or padding_idx if it is padding
 *
 * so that padding on the left changes no position. The table for sequences of up to T tokens has
 * T + padding_idx + 1 rows. For sequences without padding, padding_idx may be -1: their positions begin at 0.
 *
 * Reference: facebookresearch/fairseq fairseq/utils.py, make_positions; Hugging Face modeling_roberta.py,
 * create_position_ids_from_input_ids.
 */
#include "impl/internal.h"

/* Computes the positions of one sequence, and writes them unless `positions` is NULL. Returns false if one is
 * not in [0, 2^31). */
static bool fill_sequence(int64_t tokens, const uint8_t *mask, int64_t padding_idx,
                          int32_t *positions)
{
    int64_t count = 0;
    for (int64_t t = 0; t < tokens; t++) {
        count += mask[t] != 0;
        int64_t position = mask[t] != 0 ? padding_idx + count : padding_idx;
        if (position < 0 || position > INT32_MAX)
            return false;
        if (positions)
            positions[t] = (int32_t)position;
    }
    return true;
}

enum posenc_status posenc_padding_positions(int64_t batch, int64_t tokens, const uint8_t *mask,
                                            int64_t padding_idx, int32_t *positions,
                                            struct posenc_error *error)
{
    if (!mask || !positions)
        return reject(error, POSENC_ERR_ARGUMENT, "mask or positions (NULL)");
    enum posenc_status status =
        require_range(error, POSENC_ERR_SHAPE, "batch", batch, 0, INT32_MAX);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "tokens", tokens, 0, INT32_MAX);
    if (!status)
        status = require_range(error, POSENC_ERR_POSITION, "padding_idx", padding_idx,
                               INT32_MIN, INT32_MAX);
    if (status)
        return status;
    batch = tokens == 0 ? 0 : batch; /* no loop over up to 2^31 empty sequences */
    /* All sequences are checked first, as an error leaves the output unchanged. */
    for (int64_t b = 0; b < batch; b++)
        if (!fill_sequence(tokens, mask + b * tokens, padding_idx, NULL))
            return reject_value(error, POSENC_ERR_POSITION,
                                "position of a sequence, with this padding_idx",
                                (double)padding_idx);
    for (int64_t b = 0; b < batch; b++)
        fill_sequence(tokens, mask + b * tokens, padding_idx, positions + b * tokens);
    return POSENC_OK;
}
