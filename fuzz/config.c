/*
 * A model's config.json.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/models/model.h"
#include "fuzz.h"
#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[MODEL_ERROR];
    struct model model;
    FILE *in = size > 0 ? fmemopen((void *)data, size, "rb") : NULL;
    if (in && model_from_file(in, "x/config.json", &model, error) == 0) {
        if (!text_is_plain(model.notes) || !text_is_plain(model.title) ||
            !text_is_plain(model.source))
            abort();
        model_free(&model);
    }
    if (in)
        fclose(in);
    return 0;
}
