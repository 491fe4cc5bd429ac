/*
 * JUnit XML: a suite for each backend, and a test case for each check, each output that bench looked at, each
 * pair and each change of a comparison.  What is no success is one of
 *
 *     failure   a check that failed, or proves nothing (type weak); an output that was wrong; a result that got
 *               worse; SLOWER where a gate fails on it
 *     error     a crash; a run that ended early, as a suite of its own
 *     skipped   what cannot run here, with what is missing; UNCLEAR and what cannot be compared, with why
 *
 * The line to repeat a failure stands in its text, since properties of cases are not read everywhere.  The class
 * name begins with the backend, and with the machine where there are several: GitLab knows a test by class and
 * name alone.  Attributes are those of the schema of Jenkins' xUnit plug-in (junit-10.xsd), which has no
 * `skipped` on the outermost element and no `file` of a case.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/exported.h"
#include "reports/outcome.h"
#include "reports/ranking.h"
#include "reports/report.h"
#include "reports/show.h"

#include <stdlib.h>
#include <string.h>

struct tally {
    size_t tests, failures, errors, skipped;
};

struct junit {
    FILE *out;
    const char *machine; /* NULL where there is one */
    struct comparison comparison;
    struct tally tally; /* of the suite that is being written */
};

enum end { PASSED, FAILURE, ERROR, SKIPPED };

/* Text and attribute values alike; characters XML 1.0 cannot hold become '?': U+FFFE and U+FFFF, and most
 * below a blank. */
static void xml(const char *text, FILE *out)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0) {
            fputc('?', out);
            text += 2;
        } else if (c == '<')
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

struct test {
    const char *id, *kernel, *profile, *dtype, *backend, *kind;
    enum end end;
    const char *type, *message; /* of what is no success */
    const char *detail, *repro; /* its text; "" where there is none */
};

static const char *const end_names[] = { "", "failure", "error", "skipped" };

static void write_end(const struct test *t, FILE *out)
{
    fprintf(out, "\n      <%s", end_names[t->end]);
    attribute("message", t->message, out);
    if (t->end == SKIPPED) {
        fputs("/>\n    ", out);
        return;
    }
    attribute("type", t->type, out);
    fputc('>', out);
    xml(t->detail, out);
    if (*t->repro)
        fputs("\n repeat with: ", out);
    xml(t->repro, out);
    fprintf(out, "</%s>\n    ", end_names[t->end]);
}

static void write_test(struct junit *j, const struct test *t)
{
    char class_name[320], name[320];
    snprintf(class_name, sizeof class_name, "%.80s%s%.60s.%.60s.%.40s.%.20s",
             j->machine ? j->machine : "", j->machine ? "." : "", t->backend, t->kernel,
             t->profile, t->dtype);
    snprintf(name, sizeof name, "%.200s [%.60s]", t->id, t->kind);
    fputs("    <testcase", j->out);
    attribute("name", name, j->out);
    attribute("classname", class_name, j->out);
    fputs(t->end == PASSED ? "/>\n" : ">", j->out);
    if (t->end != PASSED) {
        write_end(t, j->out);
        fputs("</testcase>\n", j->out);
    }
    j->tally.tests++;
    j->tally.failures += t->end == FAILURE;
    j->tally.errors += t->end == ERROR;
    j->tally.skipped += t->end == SKIPPED;
}

static void write_check(struct junit *j, const struct conf_row *c)
{
    const bool crash = strcmp(c->status, "crash") == 0, weak = strcmp(c->status, "weak") == 0;
    char words[CHECK_TEXT];
    check_words(c, words);
    write_test(j, &(struct test){ .id = c->id,
                                  .kernel = c->kernel,
                                  .profile = c->profile,
                                  .dtype = c->dtype,
                                  .backend = c->backend,
                                  .kind = c->suite,
                                  .end = strcmp(c->status, "pass") == 0          ? PASSED
                                         : strcmp(c->status, "skipped") == 0     ? SKIPPED
                                         : strcmp(c->status, "unsupported") == 0 ? SKIPPED
                                         : crash                                 ? ERROR
                                                                                 : FAILURE,
                                  .type = crash        ? "crash"
                                          : weak       ? "weak"
                                          : *c->metric ? c->metric
                                                       : c->suite,
                                  .message = words,
                                  .detail = words,
                                  .repro = c->repro });
}

/* What bench looked at before it timed it; a kernel that a backend lacks is none of that. */
static void write_output(struct junit *j, const struct bench_row *b)
{
    if (*b->refused && !is_wrong(b))
        return;
    write_test(j, &(struct test){ .id = b->id,
                                  .kernel = b->kernel,
                                  .profile = b->profile,
                                  .dtype = b->dtype,
                                  .backend = b->backend,
                                  .kind = "bench",
                                  .end = is_wrong(b) ? FAILURE : PASSED,
                                  .type = "wrong output",
                                  .message = b->refused,
                                  .detail = "it was not timed",
                                  .repro = "" });
}

static struct test test_of(const json_t *record, const char *kind)
{
    return (struct test){ .id = record_text(record, "case"),
                          .kernel = record_text(record, "kernel"),
                          .profile = record_text(record, "profile"),
                          .dtype = record_text(record, "dtype"),
                          .backend = record_text(record, "backend"),
                          .kind = kind,
                          .repro = "" };
}

static void write_pair(struct junit *j, const struct pair_row *row)
{
    const bool open = row->kind == VERDICT_UNCLEAR || row->kind == VERDICT_INCOMPARABLE ||
                      row->kind == VERDICT_REMOVED;
    struct test t = test_of(row->json, "compare");
    char words[PAIR_TEXT], message[PAIR_TEXT + 24], detail[160];
    pair_words(row, words);
    snprintf(message, sizeof message, "%s%s%s", row_word(row), *words ? " " : "", words);
    snprintf(detail, sizeof detail, "%s, was %s; budget %.1f %%", show_time(row->head_ns),
             show_time(row->base_ns), 100.0 * row->budget);
    t.end = row->broken || row->fails ? FAILURE : open ? SKIPPED : PASSED;
    t.type = row->broken ? "broken" : "slower";
    t.message = message;
    t.detail = row->broken ? words : detail;
    write_test(j, &t);
}

static void write_change(struct junit *j, const struct change_row *change)
{
    char kind[64], words[CHANGE_TEXT], repro[512] = "";
    struct test t = test_of(change->json, kind);
    const char *problem = record_text(change->json, "problem");
    snprintf(kind, sizeof kind, "%.20s, change of %.20s", change->suite, change->what);
    change_words(change, words);
    if (*problem)
        snprintf(repro, sizeof repro, "posenc verify --backend %.60s --problem '%.380s'",
                 change->backend, problem);
    t.end = change->worse > 0 ? FAILURE : PASSED;
    t.type = change->what;
    t.message = words;
    t.detail = "";
    t.repro = repro;
    write_test(j, &t);
}

static void write_suite(struct junit *j, const struct results *r, const char *name,
                        const char *family, const char *body, FILE *out)
{
    const struct tally *t = &j->tally;
    char whole[200];
    snprintf(whole, sizeof whole, "%.100s%s%.80s", j->machine ? j->machine : "",
             j->machine ? ": " : "", name);
    fputs("  <testsuite", out);
    attribute("name", whole, out);
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\"", t->tests,
            t->failures, t->errors, t->skipped);
    if (*record_text(r->header, "started"))
        attribute("timestamp", record_text(r->header, "started"), out);
    fputs(">\n    <properties>\n", out);
    property("family", family, out);
    property("cpu", record_text(r->env, "cpu.key"), out);
    property("mode", record_text(r->header, "mode"), out);
    property("version", record_text(r->header, "tool.version"), out);
    property("vectors", record_text(r->header, "vectors.sha256"), out);
    property("note", vectors_note(r), out);
    property("doctor", record_text(r->machine, "grade"), out);
    fprintf(out, "    </properties>\n%s  </testsuite>\n", body);
}

static void write_cases(struct junit *j, const struct results *r, const char *backend)
{
    for (size_t i = 0; i < r->n_conf; i++)
        if (strcmp(r->conf[i].backend, backend) == 0)
            write_check(j, &r->conf[i]);
    for (size_t i = 0; i < r->n_bench; i++)
        if (strcmp(r->bench[i].backend, backend) == 0)
            write_output(j, &r->bench[i]);
    for (size_t i = 0; i < j->comparison.n_changes; i++)
        if (strcmp(j->comparison.changes[i].backend, backend) == 0)
            write_change(j, &j->comparison.changes[i]);
    for (size_t i = 0; i < j->comparison.n; i++)
        if (strcmp(j->comparison.rows[i].backend, backend) == 0)
            write_pair(j, &j->comparison.rows[i]);
}

/* The cases of a backend, or of no backend that the run is complete, behind its counts; added to `all`. */
static int add_suite(struct junit *j, const struct results *r, const struct backend_row *b,
                     struct tally *all, FILE *out)
{
    char *body = NULL;
    size_t size;
    j->out = open_memstream(&body, &size);
    j->tally = (struct tally){ 0 };
    if (!j->out)
        return -1;
    if (b)
        write_cases(j, r, b->id);
    else
        write_test(j, &(struct test){ .id = "the run is complete",
                                      .kernel = "posenc",
                                      .profile = "run",
                                      .dtype = "all",
                                      .backend = "posenc",
                                      .kind = "run",
                                      .end = ERROR,
                                      .type = "incomplete",
                                      .message = "a run ended early: what it had is here",
                                      .detail = "",
                                      .repro = "" });
    if (fclose(j->out)) {
        free(body);
        return -1;
    }
    if (j->tally.tests > 0)
        write_suite(j, r, b ? b->id : "posenc", b ? b->family : "", body, out);
    all->tests += j->tally.tests;
    all->failures += j->tally.failures;
    all->errors += j->tally.errors;
    all->skipped += j->tally.skipped;
    free(body);
    return 0;
}

static int add_machine(const json_t *records, size_t machine, struct tally *all, FILE *out)
{
    struct results r;
    if (results_make(records, machine, &r))
        return -1;
    struct junit j = { .machine = exported_machine(records, &r) };
    int status = comparison_make(&r, &j.comparison);
    if (status == 0 && r.finished < r.runs)
        status = add_suite(&j, &r, NULL, all, out);
    for (size_t b = 0; status == 0 && b < r.n_backends; b++)
        status = add_suite(&j, &r, &r.backends[b], all, out);
    comparison_free(&j.comparison);
    results_free(&r);
    return status;
}

int format_junit(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct tally all = { 0 };
    char *suites = NULL;
    size_t size;
    FILE *body = open_memstream(&suites, &size);
    int status = body ? 0 : -1;
    for (size_t m = 0; status == 0 && m < results_machines(records); m++)
        status = add_machine(records, m, &all, body);
    if (body && fclose(body))
        status = -1;
    if (status == 0)
        fprintf(out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"posenc\" "
                "tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n%s</testsuites>\n",
                all.tests, all.failures, all.errors, suites);
    free(suites);
    return status;
}
