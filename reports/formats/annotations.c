/*
 * Annotations of GitHub's workflows: an error for each check that failed, each output that was wrong, each
 * result that got worse and each case that a gate fails on; then a line of counts.  GitHub shows ten errors,
 * ten warnings and ten notices of a step, and drops the others without a word: here the last line says how
 * many there were.
 * https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
 */
#include "reports/exported.h"
#include "reports/noise.h"
#include "reports/outcome.h"
#include "reports/ranking.h"
#include "reports/report.h"

#include <string.h>

enum { SHOWN = 10 }; /* of each kind, by GitHub */

struct annotations {
    FILE *out;
    const char *machine; /* NULL where there is one */
    size_t errors, warnings;
};

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

/* Begins an annotation; false where GitHub would not show it. */
static bool begin(struct annotations *a, bool error, const char *backend, const char *id)
{
    size_t *n = error ? &a->errors : &a->warnings;
    char title[EXPORTED_NAME];
    if ((*n)++ >= SHOWN)
        return false;
    snprintf(title, sizeof title, "%.80s%s%.160s: %.160s", a->machine ? a->machine : "",
             a->machine ? ": " : "", backend, id);
    fprintf(a->out, "::%s title=", error ? "error" : "warning");
    escaped(title, true, a->out);
    fputs("::", a->out);
    return true;
}

static void add_check(struct annotations *a, const struct conf_row *c)
{
    const bool weak = strcmp(c->status, "weak") == 0;
    char words[CHECK_TEXT];
    if (!weak && strcmp(c->status, "fail") != 0 && strcmp(c->status, "crash") != 0)
        return;
    if (!begin(a, !weak, c->backend, c->id))
        return;
    check_words(c, words);
    escaped(words, false, a->out);
    if (*c->repro)
        fputs("%0Arepeat with: ", a->out);
    escaped(c->repro, false, a->out);
    fputc('\n', a->out);
}

static void add_wrong(struct annotations *a, const struct bench_row *b)
{
    if (!is_wrong(b) || !begin(a, true, b->backend, b->id))
        return;
    escaped(b->refused, false, a->out);
    fputs(", and was not timed\n", a->out);
}

static void add_change(struct annotations *a, const struct change_row *change)
{
    char words[CHANGE_TEXT];
    const char *problem = record_text(change->json, "problem");
    if (change->worse <= 0 || !begin(a, true, change->backend, change->id))
        return;
    change_words(change, words);
    escaped(words, false, a->out);
    if (*problem)
        fputs("%0Aproblem: ", a->out);
    escaped(problem, false, a->out);
    fputc('\n', a->out);
}

/* An error where head does not work or a gate fails, a warning of what is slower and no matter to it. */
static void add_pair(struct annotations *a, const struct pair_row *row)
{
    char words[PAIR_TEXT];
    if ((!row->broken && row->kind != VERDICT_SLOWER) ||
        !begin(a, row->broken || row->fails, row->backend, row->id))
        return;
    pair_words(row, words);
    fprintf(a->out, "%s ", row_word(row));
    escaped(words, false, a->out);
    fputc('\n', a->out);
}

static int add_comparison(struct annotations *a, const struct results *r)
{
    struct comparison c;
    if (comparison_make(r, &c))
        return -1;
    for (size_t i = 0; i < c.n_changes; i++)
        add_change(a, &c.changes[i]);
    for (size_t i = 0; i < c.n; i++)
        add_pair(a, &c.rows[i]);
    comparison_free(&c);
    return 0;
}

/* Whether the machine was quiet, in a line without marks. */
static void add_noise(struct annotations *a, const struct results *r)
{
    char text[NOISE_TEXT], *end = text;
    if (!noise_warning(r, text) || !begin(a, false, "posenc", "timings"))
        return;
    for (const char *p = text; *p; p++)
        if (*p != '*' && *p != '`')
            *end++ = *p;
    *end = 0;
    escaped(text, false, a->out);
    fputc('\n', a->out);
}

/* What a doctor found to disturb timings now, and what to type against it. */
static void add_findings(struct annotations *a, const struct results *r)
{
    const json_t *list = json_object_get(r->machine, "findings");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *f = json_array_get(list, i);
        if (strcmp(record_text(f, "level"), "costs") != 0 ||
            !begin(a, false, "doctor", record_text(f, "what")))
            continue;
        escaped(record_text(f, "evidence"), false, a->out);
        fputs("%0A", a->out);
        escaped(record_text(f, "fix"), false, a->out);
        if (*record_text(f, "command"))
            fputs("%0A", a->out);
        escaped(record_text(f, "command"), false, a->out);
        fputc('\n', a->out);
    }
}

static int add_machine(struct annotations *a, const json_t *records, size_t machine)
{
    struct results r;
    if (results_make(records, machine, &r))
        return -1;
    a->machine = exported_machine(records, &r);
    for (size_t i = 0; i < r.n_conf; i++)
        add_check(a, &r.conf[i]);
    for (size_t i = 0; i < r.n_bench; i++)
        add_wrong(a, &r.bench[i]);
    const int status = add_comparison(a, &r);
    add_noise(a, &r);
    add_findings(a, &r);
    results_free(&r);
    return status;
}

static void add_more(size_t n, const char *what, FILE *out)
{
    if (n > SHOWN)
        fprintf(out, "; GitHub shows %d of %zu %s, all are in the records (--out jsonl)", SHOWN,
                n, what);
}

int format_annotations(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct annotations a = { .out = out };
    struct outcome o;
    char words[OUTCOME_TEXT];
    if (outcome_of(records, &o))
        return -1;
    if (o.partial && begin(&a, true, "posenc", "incomplete"))
        fputs("a run ended early: what it had is here\n", out);
    for (size_t m = 0; m < results_machines(records); m++)
        if (add_machine(&a, records, m))
            return -1;
    outcome_words(&o, words);
    fputs("::notice title=posenc::", out);
    escaped(words, false, out);
    add_more(a.errors, "errors", out);
    add_more(a.warnings, "warnings", out);
    fputc('\n', out);
    return 0;
}
