/*
 * posenc table frequencies, drift and errors: columns of numbers as CSV (see table.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "drift.h"
#include "errors.h"
#include "problem.h"
#include "base/text/text.h"
#include "select.h"
#include "spec.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

static const double full_turn = 6.283185307179586;

/* ---- frequencies ---- */

static void write_angle(double radians, FILE *out)
{
    fprintf(out, ",%.17g,", radians);
    if (radians > 0.0)
        fprintf(out, "%.17g", full_turn / radians);
}

static void write_pairs(const struct posenc_freqs *freqs, const struct posenc_freqs *plain,
                        FILE *out)
{
    const struct posenc_freqs_view own = posenc_freqs_view(freqs),
                                   base = posenc_freqs_view(plain);
    const bool single =
        own.profile != POSENC_EXACT; /* the frequency that this mode rotates by */
    fputs(
        "pair,axis,radians,wavelength,unscaled_radians,unscaled_wavelength,attention_factor\n",
        out);
    for (int64_t i = 0; i < own.n_pairs; i++) {
        fprintf(out, "%lld,%d", (long long)i, own.axis ? own.axis[i] : 0);
        write_angle(single ? (double)own.omega_f32[i] : own.omega[i], out);
        write_angle(base.omega[i], out);
        fprintf(out, ",%.17g\n", own.attention_factor);
    }
}

/* Makes the frequencies of the options, or of a problem, and those without their scaling. */
static int make_frequencies(const struct cli *cli, const struct posenc_freqs_spec *spec,
                            struct posenc_freqs **freqs, struct posenc_freqs **plain)
{
    struct posenc_error error = { 0 };
    const struct posenc_freqs_spec base = spec_unscaled(*spec);
    enum posenc_status made = posenc_freqs_create(spec, freqs, &error);
    if (made == POSENC_OK)
        made = posenc_freqs_create(&base, plain, &error);
    return made == POSENC_OK ? EXIT_FINE : cli_refuse_status(cli, "frequencies", made, &error);
}

static int write_frequencies(struct cli *cli, const struct posenc_freqs_spec *spec,
                             const struct outputs *outputs)
{
    struct posenc_freqs *freqs = NULL, *plain = NULL;
    const int status = make_frequencies(cli, spec, &freqs, &plain);
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++)
        write_pairs(freqs, plain, outputs->output[i].stream);
    posenc_freqs_destroy(freqs);
    posenc_freqs_destroy(plain);
    return status;
}

/* ---- drift ---- */

/* The profile of the problem against the exact one, from position 0 to the last of the problem. */
static int write_drift(struct cli *cli, const struct problem *p, const struct outputs *outputs)
{
    struct drift drift[] = { { 1e-3, -1 }, { 1e-2, -1 } };
    enum { LIMITS = sizeof drift / sizeof *drift };
    struct posenc_error error = { 0 };
    const enum posenc_status status =
        drift_find(&p->freqs, p->freqs.profile, p->first + p->tokens, drift, LIMITS, &error);
    if (status != POSENC_OK)
        return cli_refuse_status(cli, "drift", status, &error);
    for (size_t i = 0; i < outputs->n; i++) {
        fputs("limit,position\n", outputs->output[i].stream);
        for (size_t k = 0; k < LIMITS; k++) {
            fprintf(outputs->output[i].stream, "%g,", drift[k].limit);
            fprintf(outputs->output[i].stream, drift[k].first < 0 ? "\n" : "%lld\n",
                    (long long)drift[k].first);
        }
    }
    return EXIT_FINE;
}

/* ---- of a problem, or of options ---- */

static int write_of_problem(struct cli *cli, unsigned kind, const struct outputs *outputs)
{
    struct arena arena = { NULL };
    struct problem_line line;
    int status = problem_take(cli, &line, &arena);
    if (status == EXIT_FINE && !kernel_has_plan(line.problem.kernel))
        status = cli_refuse(cli, "--problem", posenc_kernel_name(line.problem.kernel),
                            "has no frequencies: expected rope_table or sinusoidal");
    if (status == EXIT_FINE)
        status = kind == TABLE_DRIFT ? write_drift(cli, &line.problem, outputs)
                                     : write_frequencies(cli, &line.problem.freqs, outputs);
    arena_free(&arena);
    return status;
}

static int write_of_options(struct cli *cli, const struct outputs *outputs)
{
    struct cli_spec spec;
    int status = spec_take(cli, TABLE_FREQUENCIES, 0, &spec);
    if (status == EXIT_FINE)
        status = write_frequencies(cli, &spec.freqs, outputs);
    spec_free(&spec);
    return status;
}

/* ---- errors ---- */

static void write_curves(const struct errors *errors, FILE *out)
{
    fputs("curve,numerics,backend,position,error\n", out);
    for (size_t c = 0; c < errors->n; c++) {
        const struct error_curve *curve = &errors->curves[c];
        for (int b = 0; b < ERROR_BINS; b++)
            fprintf(out, "\"%s\",%s,%s,%.10g,%.6g\n", curve->label, curve->profile,
                    curve->backend ? curve->backend : "", errors_position(b), curve->error[b]);
    }
}

static int write_errors(struct cli *cli, const struct outputs *outputs)
{
    struct selection selected;
    struct errors errors;
    struct cli_spec spec;
    struct posenc_error error = { 0 };
    int status = spec_take(cli, TABLE_ERRORS, 128, &spec);
    if (status == EXIT_FINE)
        status = select_all(cli, &selected, false);
    if (status == EXIT_FINE)
        status = select_require(cli, &selected, POSENC_KERNEL_rope_table);
    if (status == EXIT_FINE) {
        spec_settle_length(cli, errors_last_position, &spec.freqs);
        const enum posenc_status measured =
            errors_measure(&selected, &spec.freqs, &errors, &error);
        if (measured != POSENC_OK)
            status = cli_refuse_status(cli, "errors", measured, &error);
    }
    spec_free(&spec);
    if (status != EXIT_FINE)
        return status;
    if (errors.left_out[0] != '\0')
        text_print(stderr, "posenc table: left out: %s\n", errors.left_out);
    for (size_t i = 0; i < outputs->n; i++)
        write_curves(&errors, outputs->output[i].stream);
    return EXIT_FINE;
}

int table_columns(struct cli *cli, unsigned kind, const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++)
        if (strcmp(outputs->output[i].format->name, "csv") != 0)
            return cli_refuse(cli, "--out", outputs->output[i].format->name,
                              "has no room for columns of several types: expected csv");
    return kind == TABLE_ERRORS ? write_errors(cli, outputs)
           : cli->problem       ? write_of_problem(cli, kind, outputs)
                                : write_of_options(cli, outputs);
}
