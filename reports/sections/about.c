/*
 * What a report is of: the machine in a line, and how much was checked and timed.
 */
#include "reports/trust.h"
#include "reports/report.h"

#include <string.h>

enum { NAMED = 64 };

/* One line for a terminal. */
static void heading(struct node *into, const struct results *r, const char *grade)
{
    const char *virt = record_text(r->env, "virt.kind");
    add_text(into, PARAGRAPH, ON_TERMINAL, "posenc %s  %s  %s%s%s  trust %s  %s run",
             record_text(r->header, "tool.version"), record_text(r->env, "cpu.name"),
             record_text(r->env, "cpu.key"), *virt ? "/" : "", virt, r->env ? grade : "-",
             record_text(r->header, "mode"));
}

/* For a terminal, which has no facts of the machine: why that grade. */
static void reasons(struct node *into, const json_t *trust)
{
    const json_t *list = json_object_get(trust, "reasons");
    char text[512] = "";
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(list) && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? "; " : "",
                               json_string_value(json_array_get(list, i)));
    if (*text)
        add_text(into, NOTE, ON_TERMINAL, "trust %s: %s", record_text(trust, "grade"), text);
}

static void sentences(struct node *into, const struct results *r, const char *grade)
{
    struct counts t = count_all(r);
    char checked[160] = "not checked in this run", timed[80] = "none in this run";
    size_t here = 0;
    for (size_t b = 0; b < r->n_backends; b++)
        here += r->backends[b].available;
    if (t.total)
        snprintf(checked, sizeof checked, "**%d failed**, %d passed, %d skipped",
                 t.fail + t.crash, t.pass, t.skipped + t.unsupported);
    if (r->n_bench)
        snprintf(timed, sizeof timed, "%zu cases, trust %.8s", r->n_cases, grade);
    add_text(into, PARAGRAPH, ON_PAGE,
             "**%s** (%s), %zu backends run here.  Conformance: %s.  Timing: %s.",
             record_text(r->env, "cpu.name"), record_text(r->env, "cpu.key"), here, checked,
             timed);
    const char *names[NAMED];
    if (r->n_others)
        add_text(
            into, PARAGRAPH, ON_PAGE,
            "%zu of these checks are of kernels (%zu) that the %s shown here %s not use: they "
            "are counted, and not shown.",
            r->n_others, other_kernels(r, false, names, NAMED),
            r->n_models == 1 ? "model" : "models", r->n_models == 1 ? "does" : "do");
}

void section_about(struct node *into, const struct results *r,
                   const struct render_options *options)
{
    (void)options;
    json_t *trust = env_trust(r->env, r->noise, median_null(r));
    if (!results_of_doctor(r)) {
        heading(into, r, record_text(trust, "grade"));
        if (r->env)
            reasons(into, trust);
    }
    if (r->n_pairs + r->n_changes == 0 && !results_of_doctor(r))
        sentences(into, r, record_text(trust, "grade"));
    json_decref(trust);
}
