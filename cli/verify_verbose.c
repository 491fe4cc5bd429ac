/*
 * posenc verify -v: prints one golden vector or --problem LINE with the values that each backend computes beside those
 * of the oracle, then the verdicts. A value looks like this:
 *
 *     [    3]  got 0.5              0x1p-1           want 0.5                       off by 0 ulp
 */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "conformance/oracle/oracle.h"
#include "conformance/problem/notation.h"
#include "conformance/suites/suites.h"
#include "data.h"
#include "session.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_COLUMNS = 6 };

/* ---- Values ---- */

/* Calls of one problem that have been printed, with the backend of each. */
struct shown_calls {
    size_t n;
    const struct posenc_backend *backends[BACKENDS_MAX];
    struct call calls[BACKENDS_MAX];
};

/* Returns the error of a value in ulp of the output's element type. */
static double error_in_ulp(const struct output *output, float got, double want)
{
    const enum posenc_dtype dtype = output->tensor.dtype;
    return dtype == POSENC_DTYPE_F32 ? exact_ulp_error(got, want)
                                     : exact_stored_error(dtype, got, want, 0.0).error;
}

/* Returns the index in [rows][width] of the value of output o with the largest error. The first infinite error, such as
 * that of a NaN in place of a number, has precedence. Errors of rotations are absolute here, as cancellation makes
 * errors in ulp large near zero. */
static int64_t find_worst(const struct call *call, const struct oracle_answer *answer, int o)
{
    const struct output *output = &call->outputs[o];
    const bool rotates = kernel_rotates(call->problem.kernel);
    double largest = -1.0;
    int64_t worst = 0;
    for (int64_t i = 0; i < output->rows * output->width; i++) {
        const float got = call_row(call, o, i / output->width)[i % output->width];
        const double want = answer->want[o][i];
        const double ulps = error_in_ulp(output, got, want);
        const double error = rotates ? fabs((double)got - want) : ulps;
        if (!isfinite(ulps) && !(rotates && isfinite(error)))
            return i;
        if (isfinite(error) && error > largest) {
            largest = error;
            worst = i;
        }
    }
    return worst;
}

/* Prints SHOWN_COLUMNS values of a row of output o, from `index` in [rows][width] on. */
static void print_row(const struct call *call, const struct oracle_answer *answer, int o,
                      int64_t index)
{
    const struct output *output = &call->outputs[o];
    const int64_t row = index / output->width, first = index % output->width;
    printf("    %s, row %lld\n", output->name, (long long)row);
    for (int64_t i = first; i < output->width && i < first + SHOWN_COLUMNS; i++) {
        const float got = call_row(call, o, row)[i];
        const double want = answer->want[o][row * output->width + i];
        printf("    [%5lld]  got %-16.9g %-15a  want %-24.17g  off by %.3g ulp\n", (long long)i,
               (double)got, (double)got, want, error_in_ulp(output, got, want));
    }
}

static void print_outputs(const struct call *call, const struct oracle_answer *answer)
{
    for (int o = 0; o < call->n_outputs; o++) {
        const int64_t worst = find_worst(call, answer, o), before = SHOWN_COLUMNS / 2;
        const int64_t column = worst % call->outputs[o].width;
        print_row(call, answer, o, 0);
        if (worst >= call->outputs[o].width || column >= SHOWN_COLUMNS) { /* not shown yet */
            printf("    ... and round the largest difference:\n");
            print_row(call, answer, o, worst - (column < before ? column : before));
        }
    }
}

static bool has_same_bits(const struct call *a, const struct call *b)
{
    bool same = true;
    for (int o = 0; o < a->n_outputs; o++)
        for (int64_t r = 0; r < a->outputs[o].rows; r++)
            same &= memcmp(call_row(a, o, r), call_row(b, o, r),
                           (size_t)a->outputs[o].width * sizeof(float)) == 0;
    return same;
}

/* Runs a problem on a backend and prints its outputs, or the name of a backend with the same outputs. */
static void show_backend(struct shown_calls *shown, const struct posenc_backend *backend,
                         const struct problem *problem)
{
    struct call *call = &shown->calls[shown->n];
    enum posenc_status status = call_create(call, problem, &tensor_allocator_default);
    if (status == POSENC_OK) {
        worker_enter_kernel(posenc_kernel_name(problem->kernel));
        status = call_run(call, backend);
        worker_leave_kernel();
    }
    struct oracle_answer *answer = status == POSENC_OK ? oracle_get_answer(call) : NULL;
    size_t same = 0;
    while (answer && same < shown->n && !has_same_bits(&shown->calls[same], call))
        same++;
    printf("  %s", backend->name);
    if (answer && same == shown->n) {
        puts("");
        print_outputs(call, answer);
        shown->backends[shown->n++] = backend;
    } else {
        char text[256] = "no memory for the expected values";
        if (status != POSENC_OK)
            posenc_error_text(&call->error, text, sizeof text);
        if (answer)
            printf(": the same bits as %s\n", shown->backends[same]->name);
        else
            printf(": %s\n", text);
        call_destroy(call);
    }
    oracle_release_answer(answer);
}

/* Prints the values that each backend returns. */
static void show_values(const struct problem *problem, const struct selection *selected)
{
    char *line = problem_print_line(problem);
    printf("Problem\n  %s\n\nValues, beside those of the oracle\n", line);
    free(line);
    struct shown_calls *shown = cli_allocate(1, sizeof *shown);
    for (size_t i = 0; i < selected->n; i++)
        if (posenc_backend_provides(selected->backends[i], problem->kernel) &&
            !posenc_backend_unavailable_reason(selected->backends[i]))
            show_backend(shown, selected->backends[i], problem);
    while (shown->n > 0)
        call_destroy(&shown->calls[--shown->n]);
    free(shown);
    puts("");
}

/* ---- Verdicts ---- */

struct verdict_counts {
    size_t n, failed;
};

/* Prints a verdict. The result of an unsupported backend belongs to no case and is left out. */
static void print_verdict(void *user, const struct conf_result *r)
{
    struct verdict_counts *counts = user;
    if (r->status == CONF_UNSUPPORTED)
        return;
    if (counts->n++ == 0)
        puts("Verdicts");
    counts->failed += r->status == CONF_FAIL || r->status == CONF_CRASH;
    printf("  %-13s %-11s %s", r->backend ? r->backend->name : "", r->suite,
           conf_status_name[r->status]);
    if (r->metric) {
        struct formatted_error shown = format_error(r->max, r->limit, r->metric);
        printf("  %s (limit %s)", shown.error, shown.limit);
        if (r->worst_at[0] != '\0')
            printf(" at %s: got %a, want %.17g", r->worst_at, (double)r->got, r->want);
        printf(", %llu values, %llu not correctly rounded", (unsigned long long)r->checked,
               (unsigned long long)r->misrounded);
    }
    printf("%s%s\n", r->reason[0] != '\0' ? ": " : "", r->reason);
    if (r->mistake[0] != '\0')
        printf("    matches: %s\n", r->mistake);
    else if (r->searched)
        puts("    no known mistake reproduces these values");
}

/* Prints the problem, its values and the verdicts. Returns the exit code. */
static int show_problem(const struct problem *problem, const struct selection *selected,
                        const struct conf_options *options)
{
    struct verdict_counts counts = { 0 };
    show_values(problem, selected);
    conf_run(selected->backends, selected->n, options, print_verdict, &counts);
    return counts.failed > 0 ? EXIT_CONFORMANCE : EXIT_OK;
}

/* ---- The command ---- */

static int show_line(const struct cli *cli, const struct selection *selected)
{
    struct problem_line line;
    struct arena arena = { NULL };
    problem_read_option(cli, &line, &arena);
    select_require(cli, selected, line.problem.kernel);
    const struct conf_options options = { .only = &line.problem, .suite = "problem" };
    const int status = show_problem(&line.problem, selected, &options);
    arena_free(&arena);
    return status;
}

/* Rejects the id of a case that is no golden vector. */
static const struct vector_case *find_case(const struct vectors *vectors, const char *id)
{
    const struct vector_case *nearest = vectors->cases;
    for (size_t i = 1; i < vectors->n; i++)
        if (text_edit_distance(id, vectors->cases[i].id) < text_edit_distance(id, nearest->id))
            nearest = &vectors->cases[i];
    if (strcmp(nearest->id, id) != 0)
        cli_reject("--case", id,
                   "no case has this id among the golden vectors; the nearest is %s "
                   "(posenc list cases)",
                   nearest->id);
    return nearest;
}

static int show_case(const struct cli *cli, const struct selection *selected)
{
    struct vectors vectors;
    if (cli->cases.n != 1)
        cli_reject(
            "--verbose", NULL,
            "expected --case ID of one case (posenc list cases), or --problem LINE, beside it");
    data_load_vectors(cli, &vectors);
    const struct vector_case *c = find_case(&vectors, cli->cases.item[0]);
    select_require(cli, selected, c->problem.kernel);
    const struct conf_options options = {
        .full = true, .case_glob = c->id, .suite = "vectors", .vectors = &vectors
    };
    printf("%s\n\n  what it detects   %s\n  flags             %s\n  source            %s\n\n",
           c->id, c->note, c->flags, c->source);
    const int status = show_problem(&c->problem, selected, &options);
    vectors_free(&vectors);
    return status;
}

int verify_verbose(struct cli *cli)
{
    struct selection selected;
    cli_check_options_with(cli, WITH_VERBOSE, "--verbose");
    select_all(cli, &selected, true);
    return cli->problem ? show_line(cli, &selected) : show_case(cli, &selected);
}
