/* Reads the option --problem and refuses what goes against it (see problem.h). */
#include "problem.h"
#include "conformance/problem/cost.h"

#include <stdio.h>
#include <string.h>

/* A value takes about a microsecond to be known exactly: minutes. */
static const double MOST_VALUES = 1 << 26;

int problem_take(const struct cli *cli, struct problem_line *line, struct arena *arena)
{
    char error[NOTATION_ERROR];
    struct call call;
    if (cli_refuse_beside_problem(cli) != EXIT_FINE)
        return EXIT_USAGE;
    if (!notation_read(cli->problem, line, arena, error))
        return cli_refuse(cli, "--problem", NULL, "%s", error);
    struct problem_limits limits = problem_limits_here();
    limits.values = strcmp(cli->command, "bench") == 0 ? 0.0 : MOST_VALUES;
    if (!problem_within(&line->problem, &limits, error))
        return cli_refuse(cli, "--problem", NULL, "%s", error);
    enum posenc_status status = call_create(&call, &line->problem, &memory_plain);
    if (status != POSENC_OK)
        return cli_refuse_status(cli, "--problem", status, &call.error);
    bool empty = call.outputs[0].rows < 1 || call.outputs[0].width < 1;
    call_destroy(&call);
    if (empty)
        return cli_refuse(cli, "--problem", cli->problem, "has no element: expected %s above 0",
                          kernel_on_scores(line->problem.kernel) ? "heads, queries and keys"
                                                                 : "batch and tokens");
    return EXIT_FINE;
}

void problem_id(const struct problem *problem, char *id, size_t size)
{
    snprintf(id, size, "%s/%s/%s/problem", posenc_kernel_name(problem->kernel),
             dtype_names[problem->dtype],
             kernel_has_plan(problem->kernel) ? profile_names[problem->freqs.profile]
                                              : "given");
}
