/*
 * per_layer_config of transformers 5: {"5": {"head_dim": 512}, ...}, members that differ from layer to
 * layer.  What it says of all layers of full attention alike is what global_head_dim and
 * num_global_key_value_heads said; anything else is refused.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

static const char *const members[][2] = {
    { "head_dim", "global_head_dim" }, { "num_key_value_heads", "num_global_key_value_heads" }
};

static bool is_full(const json_t *types, size_t layer)
{
    const char *type = json_string_value(json_array_get(types, layer));
    return type && strcmp(type, "full_attention") == 0;
}

/* Takes what one layer says, which must be what those before it did. */
static int take_layer(const struct fields *f, const char *layer, const json_t *says, json_t *to)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)says, name, value)
    {
        const char *global = NULL;
        for (size_t i = 0; i < 2; i++)
            if (strcmp(name, members[i][0]) == 0)
                global = members[i][1];
        if (!global)
            return refuse(
                f,
                "per_layer_config has '%.40s' for layer %.10s: known are head_dim and "
                "num_key_value_heads",
                name, layer);
        const json_t *before = json_object_get(to, global);
        if (before && !json_equal(before, value))
            return refuse(f,
                          "per_layer_config has another %s for layer %.10s than for layers of "
                          "full attention before it: the same for all of them is needed",
                          name, layer);
        json_object_set(to, global, value);
    }
    return 0;
}

int config_layers(struct fields *f, json_t **owned)
{
    const json_t *layers = json_object_get(f->file, "per_layer_config"), *says;
    const json_t *types = json_object_get(f->file, "layer_types");
    const char *key;
    size_t said = 0, full = 0;
    *owned = NULL;
    if (!layers || json_is_null(layers))
        return 0;
    if (!json_is_object(layers))
        return refuse(f, "per_layer_config is no object: one such as {\"5\": {\"head_dim\": "
                         "512}}, or null, is needed");
    if (json_object_size(layers) == 0)
        return 0;
    *owned = json_copy((json_t *)f->file);
    json_object_foreach((json_t *)layers, key, says)
    {
        char *end;
        const size_t layer = strtoul(key, &end, 10);
        if (*end || !is_full(types, layer))
            return refuse(f,
                          "per_layer_config has layer '%.20s', which layer_types does not call "
                          "full_attention: it is read of layers of full attention alone",
                          key);
        said++;
        if (take_layer(f, key, says, *owned))
            return -1;
    }
    for (size_t i = 0; i < json_array_size(types); i++)
        full += is_full(types, i);
    f->file = *owned;
    return said == full ? 0
                        : refuse(f,
                                 "per_layer_config has %zu layers of full attention where "
                                 "layer_types has %zu: all of them, or none, are needed",
                                 said, full);
}
