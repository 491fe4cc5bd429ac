/* Reads models and says what is to be known of them (see models.h). */
#define _POSIX_C_SOURCE 200809L
#include "reports/show.h"
#include "reports/text/text.h"
#include "models.h"

#include <stdio.h>
#include <string.h>

int models_read(const struct cli *cli, const char *name, struct model *model)
{
    char error[MODEL_ERROR];
    if (model_load(name, model, error) != 0)
        return cli_refuse(cli, strchr(name, '/') ? "--config" : "--model", NULL, "%s", error);
    const char *notes[] = { model->notes,
                            show_profile(model->trained_profile, model->encoding) };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (*notes[i])
            text_print(stderr, "%s: %s\n", model->name, notes[i]);
    return EXIT_FINE;
}

const char *models_storage(const struct model *model, const struct selection *selection,
                           char text[128])
{
    const char *own = dtype_names[model->storage];
    char named[32] = "";
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        if (selection->any_dtype && selection->dtypes[dtype])
            snprintf(named + strlen(named), sizeof named - strlen(named), "%s%s",
                     *named ? ", " : "", dtype_names[dtype]);
    if (*model->storage_from == '\0')
        *text = '\0';
    else if (selection->any_dtype)
        snprintf(text, 128, "storage %s, from --dtype, where the config's %s has %s", named,
                 model->storage_from, own);
    else
        snprintf(text, 128, "storage %s, from the config's %s", own, model->storage_from);
    return text;
}
