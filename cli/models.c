/* Reads models and says what is to be known of them (see models.h). */
#define _POSIX_C_SOURCE 200809L
#include "reports/show.h"
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
            fprintf(stderr, "%s: %s\n", model->name, notes[i]);
    return EXIT_FINE;
}
