/*
 * JUnit XML of the conformance results: one suite a backend, classname kernel.profile.dtype,
 * the case id as name.  fail -> failure, crash -> error, unsupported and skipped -> skipped,
 * weak -> failure of type weak (a check that proves nothing).  The line to repeat a failure
 * stands in its text, since properties of cases are not read everywhere.
 */
#include "reports/report.h"
#include "reports/show.h"

#include <string.h>

/* Text and attribute values alike; characters XML 1.0 cannot hold become '?'. */
static void xml(const char *text, FILE *out)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else if (c == '\n')
            fputs("&#10;", out);
        else
            fputc(c < 0x20 && c != '\t' ? '?' : c, out);
    }
}

static void attribute(const char *name, const char *value, FILE *out)
{
    fprintf(out, " %s=\"", name);
    xml(value, out);
    fputc('"', out);
}

static void property(const char *name, const char *value, FILE *out)
{
    if (!*value)
        return;
    fputs("      <property", out);
    attribute("name", name, out);
    attribute("value", value, out);
    fputs("/>\n", out);
}

static void verdict(const struct conf_row *c, FILE *out)
{
    bool crash = strcmp(c->status, "crash") == 0;
    if (strcmp(c->status, "skipped") == 0 || strcmp(c->status, "unsupported") == 0) {
        fputs("\n      <skipped", out);
        attribute("message", *c->reason ? c->reason : c->status, out);
        fputs("/>\n    ", out);
        return;
    }
    char what[256] = "";
    const struct shown_error shown = show_judged(c->max, c->limit, c->metric);
    if (*c->metric)
        snprintf(what, sizeof what, "%s, limit %s, %s", shown.error, shown.limit, c->witness);
    fprintf(out, "\n      <%s", crash ? "error" : "failure");
    attribute("message", *c->reason ? c->reason : what, out);
    attribute("type",
              crash                            ? "crash"
              : strcmp(c->status, "weak") == 0 ? "weak"
              : *c->metric                     ? c->metric
                                               : c->suite,
              out);
    fputc('>', out);
    if (*c->metric) {
        xml(what, out);
        fputs("\n got ", out);
        xml(c->got, out);
        fputs(", want ", out);
        xml(c->want, out);
    }
    fputs("\n repeat with: ", out);
    xml(c->repro, out);
    fprintf(out, "</%s>\n    ", crash ? "error" : "failure");
}

static void test_case(const struct conf_row *c, FILE *out)
{
    char class_name[160];
    snprintf(class_name, sizeof class_name, "%s.%s.%s", c->kernel, c->profile, c->dtype);
    char name[200];
    snprintf(name, sizeof name, "%s [%s]", c->id, c->suite);
    fputs("    <testcase", out);
    attribute("name", name, out);
    attribute("classname", class_name, out);
    if (strcmp(c->status, "pass") == 0) {
        fputs("/>\n", out);
        return;
    }
    fputc('>', out);
    verdict(c, out);
    fputs("</testcase>\n", out);
}

static void counts(struct counts t, FILE *out)
{
    fprintf(out, " tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\"", t.total,
            t.fail + t.weak, t.crash, t.skipped + t.unsupported);
}

static void suite(const struct results *r, const struct backend_row *b, FILE *out)
{
    struct counts t = count_conf(r, NULL, b->id, NULL);
    if (t.total == 0)
        return;
    fputs("  <testsuite", out);
    attribute("name", b->id, out);
    counts(t, out);
    fputs(">\n    <properties>\n", out);
    property("family", b->family, out);
    property("cpu", record_text(r->env, "cpu.key"), out);
    property("mode", record_text(r->header, "mode"), out);
    property("version", record_text(r->header, "tool.version"), out);
    property("vectors", record_text(r->header, "vectors.sha256"), out);
    fputs("    </properties>\n", out);
    for (size_t i = 0; i < r->n_conf; i++)
        if (strcmp(r->conf[i].backend, b->id) == 0)
            test_case(&r->conf[i], out);
    fputs("  </testsuite>\n", out);
}

int format_junit(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct counts all = { 0 };
    size_t machines = results_machines(records);
    for (size_t m = 0; m < machines; m++) {
        struct results r;
        if (results_make(records, m, &r))
            return -1;
        struct counts t = count_conf(&r, NULL, NULL, NULL);
        all.total += t.total;
        all.fail += t.fail;
        all.weak += t.weak;
        all.crash += t.crash;
        all.skipped += t.skipped;
        all.unsupported += t.unsupported;
        results_free(&r);
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"posenc\"", out);
    counts(all, out);
    fputs(">\n", out);
    for (size_t m = 0; m < machines; m++) {
        struct results r;
        if (results_make(records, m, &r))
            return -1;
        for (size_t b = 0; b < r.n_backends; b++)
            suite(&r, &r.backends[b], out);
        results_free(&r);
    }
    fputs("</testsuites>\n", out);
    return 0;
}
