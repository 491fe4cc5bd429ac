/* rope_table: cosines and sines of the rotary angles (Su et al. 2104.09864). */
#include "shared.h"

#define PAIRS .dims = { DIM_BATCH, DIM_TOKEN, DIM_PAIR }

const struct signature signature_rope_table = {
    BLANK(rope_table),
    .tensors = { { OUT(rope_table, cos), PAIRS },
                 { OUT(rope_table, sin), PAIRS },
                 POSITIONS(rope_table) },
    .freqs = ARGUMENT(rope_table, freqs),
    .rotary = MEMBER(freqs.dim),
    .fields = FIELDS_FREQS "rotary_dim xpos_scale_base xpos_centre xpos_inverse",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .work = WORK_ANGLES,
};
