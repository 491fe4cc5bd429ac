/*
 * Indices of window_bias: rows of a bias table for each pair of tokens in a window. Tokens are numbered row by row.
 * With (dy, dx) the position of the query minus that of the key, the pair has row
 *
 *   (dy + height - 1)(2 width - 1) + dx + width - 1
 *
 * of (2 height - 1)(2 width - 1). BEiT has a class token before the others, and three further rows: class to token,
 * token to class, class to class.
 *
 * Reference: Liu et al. 2103.14030, microsoft/Swin-Transformer models/swin_transformer.py, WindowAttention; Bao et al.
 * 2106.08254, Hugging Face modeling_beit.py, generate_relative_position_index.
 */
#include "impl/internal.h"

enum { MAX_SIDE = 256 };

/* Fills the indices of all pairs of tokens. Each row of `index` has `stride` elements. */
static void fill_pairs(int64_t height, int64_t width, int64_t stride, int32_t *index)
{
    int64_t tokens = height * width;
    for (int64_t query = 0; query < tokens; query++)
        for (int64_t key = 0; key < tokens; key++) {
            int64_t dy = query / width - key / width, dx = query % width - key % width;
            index[query * stride + key] =
                (int32_t)((dy + height - 1) * (2 * width - 1) + dx + width - 1);
        }
}

static enum posenc_status check_sizes(int64_t height, int64_t width, const int32_t *index,
                                      struct posenc_error *error)
{
    if (!index)
        return reject(error, POSENC_ERR_ARGUMENT, "index (NULL)");
    enum posenc_status status =
        require_range(error, POSENC_ERR_SHAPE, "height", height, 1, MAX_SIDE);
    return status ? status
                  : require_range(error, POSENC_ERR_SHAPE, "width", width, 1, MAX_SIDE);
}

enum posenc_status posenc_swin_index(int64_t height, int64_t width, int32_t *index,
                                     struct posenc_error *error)
{
    enum posenc_status status = check_sizes(height, width, index, error);
    if (!status)
        fill_pairs(height, width, height * width, index);
    return status;
}

enum posenc_status posenc_beit_index(int64_t height, int64_t width, int32_t *index,
                                     struct posenc_error *error)
{
    enum posenc_status status = check_sizes(height, width, index, error);
    if (status)
        return status;
    int64_t n = height * width + 1;
    int32_t from_class = (int32_t)((2 * height - 1) * (2 * width - 1));
    fill_pairs(height, width, n, index + n + 1);
    for (int64_t k = 1; k < n; k++) {
        index[k] = from_class;
        index[k * n] = from_class + 1;
    }
    index[0] = from_class + 2;
    return POSENC_OK;
}
