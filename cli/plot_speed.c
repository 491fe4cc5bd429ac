/*
 * posenc plot speed: each backend against plain C, from the records of a run.
 */
#include "plot.h"
#include "reports/records.h"

static int draw_speed(const void *data, const struct plot_target *target,
                      char error[PLOT_ERROR])
{
    return plot_speedup(data, target, error);
}

int command_plot_speed(struct cli *cli, const struct outputs *outputs)
{
    char error[RECORDS_ERROR];
    json_t *records = json_array();
    int status = EXIT_FINE;
    if (records_load(cli->operands[1], records, error) != 0)
        status = cli_refuse(cli, "FILE", NULL, "%s", error);
    if (status == EXIT_FINE)
        status = plot_draw(cli, outputs, draw_speed, records);
    if (status == EXIT_FINE)
        plot_speedup_facts(records, plot_facts(outputs));
    json_decref(records);
    return status;
}
