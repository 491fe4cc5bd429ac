/* Between the parts of the model loader: what a configuration says, before it becomes calls. */
#ifndef POSENC_MODEL_CONFIG_H
#define POSENC_MODEL_CONFIG_H

#include "model.h"

#include <jansson.h>

enum encoding { SINUSOIDAL, LEARNED, ROPE_HALF, ROPE_INTERLEAVED, ALIBI, T5 };

struct config {
    enum encoding encoding;
    int64_t width, heads, key_heads, head_dim, rotary_dim, length;
    int64_t num_buckets, max_distance;
    double alibi_bias_max;
    bool decodes; /* generates token by token */
};

/* Fills `config` and the facts of `model` (all but name and cases).  0, or -1 with
 * a message. */
int config_read(const json_t *json, struct config *config, struct model *model,
                char error[MODEL_ERROR]);

/* Fills the cases and the problems to verify. */
void config_cases(const struct config *config, struct model *model);

#endif
