/*
 * report.md: what failed, then the answer for each model, then the evidence for both, then how
 * it was measured.  Reads well on a forge and as plain text.
 */
#include "env.h"
#include "estimate.h"
#include "formats.h"
#include "sections.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_FAILURES = 50 };

static const struct look look = { .utf8 = true, .labels = true };

static void put(struct grid *grid, FILE *out)
{
    grid_markdown(grid, out);
    grid_end(grid);
    fputc('\n', out);
}

static void verdict(const struct results *r, FILE *out)
{
    struct tally t = tally_conf(r, NULL, NULL, NULL);
    size_t here = 0;
    for (size_t b = 0; b < r->n_backends; b++)
        here += r->backends[b].available;
    json_t *trust = env_trust(r->env, json_object_get(r->footer, "noise"), median_null(r));
    const char *emulator = record_text(r->env, "emulator");
    fprintf(out, "**%s** (%s), %zu backends run here.  ", record_text(r->env, "cpu.name"),
            record_text(r->env, "cpu.key"), here);
    if (t.total)
        fprintf(out, "Conformance: **%d failed**, %d passed%s%d skipped.  ", t.fail + t.crash,
                t.pass, ", ", t.skipped + t.unsupported);
    else
        fputs("Conformance: not checked in this run.  ", out);
    if (r->n_bench)
        fprintf(out, "Timing: %zu cases, trust %s.\n\n", r->n_cases,
                record_text(trust, "grade"));
    else
        fputs("Timing: none in this run.\n\n", out);
    json_decref(trust);
    if (*emulator)
        fprintf(out,
                "> Nothing was timed: %s, and times under an emulator say nothing about a "
                "CPU.\n\n",
                emulator);
    if (r->finished < r->runs)
        fprintf(out, "> Incomplete: %d of %d runs did not finish; what they had is shown.\n\n",
                r->runs - r->finished, r->runs);
    if (strcmp(record_text(r->header, "mode"), "quick") == 0)
        fputs("> A quick run: a smaller set of checks and fewer rounds than `--full`.\n\n",
              out);
}

static void failing(const struct results *r, FILE *out)
{
    struct grid grid;
    int n = section_failures(r, LISTED_FAILURES, &grid);
    if (n == 0) {
        grid_end(&grid);
        return;
    }
    fprintf(out, "## %d failed\n\n", n);
    size_t grid_rows = grid.cells_used / (size_t)grid.columns;
    put(&grid, out);
    if (grid_rows > LISTED_FAILURES)
        fputs("The others are in the records.\n\n", out);
}

/* One sentence on the profile the model's own code used. */
static void profile_note(const json_t *model, FILE *out)
{
    const char *profile = record_text(model, "trained_profile"),
               *encoding = record_text(model, "encoding");
    bool angles = strncmp(encoding, "rope", 4) == 0 || strcmp(encoding, "sinusoidal") == 0;
    if (strcmp(profile, "hf_f32") == 0)
        fputs("The code it was published with forms its angles in f32: profile `hf_f32` gives "
              "the numbers it was trained with, `exact` those of the formula.\n\n",
              out);
    else if (strcmp(profile, "exact") == 0)
        fputs("The code it was trained with forms its angles in f64: profile `exact` gives the "
              "numbers it was trained with.\n\n",
              out);
    else if (strcmp(profile, "torch_exp_f32") == 0)
        fputs("The code it was published with forms its frequencies by exp in f32: profile "
              "`torch_exp_f32` gives the numbers it was trained with, `exact` those of the "
              "formula.\n\n",
              out);
    else if (angles)
        fputs("With which rounding of the angles it was trained is not known.\n\n", out);
}

static void answer(const struct results *r, const json_t *model, FILE *out)
{
    struct grid grid;
    if (section_answers(r, model, &look, &grid) == 0) {
        grid_end(&grid);
        return;
    }
    fprintf(out, "## %s\n\n", record_text(model, "title"));
    put(&grid, out);
    char lines[512];
    if (better_choice(r, model, lines, sizeof lines)) {
        fprintf(out,
                "The default is not the fastest over these shapes.  To force one backend for "
                "all kernels: `POSENC_BACKEND=name`.  The fastest, kernel by kernel, as text "
                "for `posenc_select()`:\n\n```\n%s```\n\n",
                lines);
    } else {
        fputs("Kernel by kernel, over these shapes together, no backend gains 3 % on the "
              "default.  To force another: `POSENC_BACKEND=name`, or "
              "`posenc_select(\"name\")`.\n\n",
              out);
    }
    profile_note(model, out);
    if (*record_text(model, "notes"))
        fprintf(out, "Not covered, or to be known of this model: %s.\n\n",
                record_text(model, "notes"));
    const char *checked = record_text(model, "checked");
    fprintf(out, "Numbers of the model: %s.%s%s%s\n\n", record_text(model, "source"),
            *checked ? "  Checked against: " : "", checked, *checked ? "." : "");
}

static void by_position(const struct results *r, const char *kernel, const char *profile,
                        FILE *out)
{
    struct grid grid;
    if (section_errors_by_range(r, kernel, profile, &grid) == 0) {
        grid_end(&grid);
        return;
    }
    fprintf(out, "`%s`, profile `%s`:\n\n", kernel, profile);
    put(&grid, out);
}

static void conformance(const struct results *r, FILE *out)
{
    if (r->n_conf == 0)
        return;
    struct grid grid;
    fputs("## Conformance\n\n● passed, ✗ some failed, ☠ crashed, · not provided or not "
          "selected.\n\n",
          out);
    section_matrix_by_kernel(r, &look, &grid);
    put(&grid, out);
    section_matrix_by_suite(r, &look, &grid);
    put(&grid, out);
    fputs("## Accuracy by position\n\nThe largest error against real mathematics in each range "
          "of positions, the "
          "half ulp of rounding included.  A backend whose cell exceeds 1 ulp, or that is "
          "judged by absolute error, "
          "is no longer exact there.\n\n",
          out);
    by_position(r, "sinusoidal", "exact", out);
    by_position(r, "rope_table", "exact", out);
    by_position(r, "sinusoidal", "hf_f32", out);
    by_position(r, "rope_table", "hf_f32", out);
    fputs("<details><summary>Worst error of every kernel and backend, with where it was "
          "met</summary>\n\n",
          out);
    section_worst_errors(r, &grid);
    put(&grid, out);
    fputs("</details>\n\n", out);
}

static void speed(const struct results *r, FILE *out)
{
    if (r->n_bench == 0)
        return;
    fputs("## Speed\n\n", out);
    for (size_t k = 0; k < r->n_kernels; k++) {
        struct grid grid;
        if (section_benchmarks(r, r->kernels[k], &look, &grid) == 0) {
            grid_end(&grid);
            continue;
        }
        fprintf(out, "### %s\n\n", r->kernels[k]);
        put(&grid, out);
    }
}

static void pictures(const struct render_options *options, FILE *out)
{
    if (options->n_pictures == 0)
        return;
    fputs("## Pictures\n\n", out);
    for (size_t i = 0; i < options->n_pictures; i++)
        fprintf(out, "![%s](%s)\n\n", options->pictures[i].caption, options->pictures[i].path);
}

static void method(const struct results *r, FILE *out)
{
    fputs("## Method\n\n"
          "- Time is the median over rounds of one call; +- is the wider half of its "
          "distribution-free confidence "
          "interval.  In each round every backend of a case, a second copy of one of them, and "
          "the roofs run in "
          "random order, so that what disturbs one disturbs all.\n"
          "- GB/s counts useful bytes: inputs read once, outputs written once; tables of "
          "angles are not counted "
          "for rotations.  1 GB is 10^9 bytes.\n"
          "- The roof is the best this machine did in the same rounds with the same bytes and "
          "access pattern "
          "(store, in place, copy), whichever of plain, prefetched and non-temporal was best.\n"
          "- Backends are called a tie where their intervals overlap within the distance of a "
          "backend from its own "
          "copy.\n"
          "- ulp is the distance to the real value in units of the last place of f32; pair ulp "
          "measures a rotation "
          "in the ulp of the larger of its two products, since their difference may cancel.\n"
          "- Before a case is timed its output is compared with the verified scalar backend in "
          "full.\n\n",
          out);
    if (r->n_bench) {
        const struct bench_row *b = &r->bench[0];
        fprintf(out, "%d rounds and %.1f %% intervals in the first case; vectors %.12s.\n\n",
                b->rounds, 100.0 * b->level,
                *record_text(r->header, "vectors.sha256")
                    ? record_text(r->header, "vectors.sha256")
                    : "not loaded");
    }
}

static void machine(const struct results *r, const struct render_options *options, FILE *out)
{
    verdict(r, out);
    failing(r, out);
    for (size_t m = 0; m < r->n_models; m++)
        answer(r, r->models[m], out);
    conformance(r, out);
    pictures(options, out);
    speed(r, out);
    struct grid grid;
    fputs("## Backends\n\n", out);
    section_backends(r, &grid);
    put(&grid, out);
    fputs("## Machine and build\n\n", out);
    section_environment(r, &grid);
    put(&grid, out);
    method(r, out);
    char command[1024];
    command_of(r->header, command, sizeof command);
    fprintf(out, "To get this again:\n\n```\n%s\n```\n",
            options->command ? options->command : command);
}

static void estimates(const json_t *records, FILE *out)
{
    struct grid grid;
    size_t n = 0;
    while (section_estimates(records, n, &grid) > 0) {
        if (n++ == 0)
            fprintf(out, "%s## %s\n\n", estimates_only(records) ? "" : "\n", ESTIMATES_TITLE);
        put(&grid, out);
    }
    char *text = estimate_caveats(records);
    for (const char *line = text; line && *line; line += strcspn(line, "\n") + 1)
        fprintf(out, "%.*s\n\n", (int)strcspn(line, "\n"), line);
    free(text);
}

int render_markdown(const json_t *records, FILE *out, const struct render_options *options)
{
    size_t machines = estimates_only(records) ? 0 : results_machines(records);
    fputs("# posenc report\n\n", out);
    for (size_t m = 0; m < machines; m++) {
        struct results r;
        if (results_make(records, m, &r))
            return -1;
        if (machines > 1)
            fprintf(out, "%s# Machine %zu: %s\n\n", m ? "\n" : "", m + 1,
                    record_text(r.env, "env_id"));
        machine(&r, options, out);
        results_free(&r);
    }
    estimates(records, out);
    return 0;
}
