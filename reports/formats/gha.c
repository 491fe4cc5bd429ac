/*
 * Commands of GitHub's workflows: an annotation for each check that failed, and one line of counts.
 * https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
 */
#include "reports/report.h"

#include <string.h>

/* Of a message; of a property, which ends at a colon or comma, too. */
static void escaped(const char *text, bool property, FILE *out)
{
    for (; *text; text++) {
        bool plain = !strchr(property ? "%\r\n:," : "%\r\n", *text);
        if (plain)
            fputc(*text, out);
        else
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

static void annotation(const struct conf_row *c, FILE *out)
{
    char title[256];
    bool weak = strcmp(c->status, "weak") == 0;
    if (!weak && strcmp(c->status, "fail") != 0 && strcmp(c->status, "crash") != 0)
        return;
    snprintf(title, sizeof title, "%s: %s", c->backend, c->id);
    fprintf(out, "::%s title=", weak ? "warning" : "error");
    escaped(title, true, out);
    fputs("::", out);
    escaped(*c->reason ? c->reason : c->status, false, out);
    if (*c->repro)
        fputs("%0Arepeat with: ", out);
    escaped(c->repro, false, out);
    fputc('\n', out);
}

int format_gha(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    for (size_t m = 0; m < results_machines(records); m++) {
        struct results r;
        if (results_make(records, m, &r))
            return -1;
        for (size_t i = 0; i < r.n_conf; i++)
            annotation(&r.conf[i], out);
        struct counts t = count_conf(&r, NULL, NULL, NULL);
        fprintf(out, "::notice title=posenc on ");
        escaped(record_text(r.env, "cpu.name"), true, out);
        fprintf(out, "::%d failed, %d passed, %d crashed, %d skipped, %d weak\n", t.fail,
                t.pass, t.crash, t.skipped + t.unsupported, t.weak);
        results_free(&r);
    }
    return 0;
}
