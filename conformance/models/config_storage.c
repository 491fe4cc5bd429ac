/*
 * The type that a model's tensors are stored as, where its configuration says so: dtype, or
 * torch_dtype as files of older releases call it; what stands at the top of a file goes before what
 * its model of text says (huggingface/transformers, configuration_utils.py and, of dtype="auto",
 * modeling_utils.py).
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

/* By the names of attributes of torch. */
static const struct {
    const char *name;
    enum posenc_dtype dtype;
} types[] = { { "float32", POSENC_F32 },
              { "float", POSENC_F32 },
              { "float16", POSENC_F16 },
              { "half", POSENC_F16 },
              { "bfloat16", POSENC_BF16 } };
enum { N_TYPES = sizeof types / sizeof *types, TYPE_TEXT = 48 };

static void take_type(const struct fields *f, const char *member, const char *type,
                      struct model *m)
{
    for (int i = 0; i < N_TYPES; i++) {
        if (strcmp(type, types[i].name) == 0) {
            m->storage = types[i].dtype;
            snprintf(m->storage_from, sizeof m->storage_from, "%s", member);
            return;
        }
    }
    note(
        f,
        "%s is %s, which is no type of storage here (float32, float16, bfloat16): f32 is taken",
        member, type);
}

void config_storage(const struct fields *f, const json_t *json, struct model *m)
{
    const json_t *text = json_object_get(json, "text_config");
    const struct {
        const json_t *object;
        const char *name, *path;
    } members[] = { { json, "dtype", "dtype" },
                    { json, "torch_dtype", "torch_dtype" },
                    { text, "dtype", "text_config.dtype" },
                    { text, "torch_dtype", "text_config.torch_dtype" } };
    const char *first = NULL;
    char counts[TYPE_TEXT];
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *value = json_object_get(members[i].object, members[i].name);
        char type[TYPE_TEXT];
        if (!value || json_is_null(value))
            continue;
        field_text(members[i].object, members[i].name, "no text", type, sizeof type);
        const char *plain = strncmp(type, "torch.", 6) == 0 ? type + 6 : type;
        if (!first) {
            first = members[i].path;
            snprintf(counts, sizeof counts, "%s", plain);
            take_type(f, first, plain, m);
        } else if (strcmp(plain, counts) != 0) {
            note(f, "%s is %s where %s is %s: %s counts", members[i].path, plain, first, counts,
                 first);
        }
    }
}
