/*
 * Positions where some tokens are padding: with n(t) the tokens up to t that are not,
 *
 *   padding_idx + n(t),  or padding_idx for padding
 *
 * so that padding on the left moves nothing. Tables of such models have padding_idx + 1 rows
 * more than tokens.
 *
 * Reference: facebookresearch/fairseq fairseq/utils.py, make_positions; Hugging Face
 * modeling_roberta.py, create_position_ids_from_input_ids.
 */
#include "impl/internal.h"

/* One row; written where positions is not NULL. Whether each is in [0, 2^31). */
static bool positions_of_row(int64_t tokens, const uint8_t *mask, int64_t padding_idx,
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
                                            int64_t padding_idx, int32_t *positions)
{
    if (!mask || !positions)
        return POSENC_ERR_ARGUMENT;
    if (batch < 0 || batch > INT32_MAX || tokens < 0 || tokens > INT32_MAX)
        return POSENC_ERR_SHAPE;
    if (padding_idx < INT32_MIN || padding_idx > INT32_MAX)
        return POSENC_ERR_POSITION;
    batch = tokens == 0 ? 0 : batch; /* up to 2^31 rows of nothing */
    for (int64_t b = 0; b < batch; b++)
        if (!positions_of_row(tokens, mask + b * tokens, padding_idx, NULL))
            return POSENC_ERR_POSITION;
    for (int64_t b = 0; b < batch; b++)
        positions_of_row(tokens, mask + b * tokens, padding_idx, positions + b * tokens);
    return POSENC_OK;
}
