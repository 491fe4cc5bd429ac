/*
 * Formats for continuous integration and for spreadsheets, on records of every kind: what each says, and
 * that it stays within what its readers take.  All records are made up.
 */
#define _POSIX_C_SOURCE 200809L
#include "compared.h"
#include "conformance/tap/tap.h"
#include "rendered.h"

#include <math.h>

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; text && (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* Every kind of end: passed, failed, crashed, cannot run; slower for good or not, unclear; worse, moved. */
static json_t *ends(bool finished)
{
    json_t *records = json_array();
    feed_machine(records, "paper", finished);
    feed_check(records, (struct fed_check){ "h1", "avx2", "pass", "", "" });
    feed_check(records, (struct fed_check){ "h2", "avx2", "fail",
                                            "wrote past <out>, \"here\"\n\xef\xbf\xbf",
                                            "posenc verify --backend avx2 --case h2" });
    feed_check(records, (struct fed_check){ "h3", "avx2", "crash", "SIGILL </details> | `<x>`",
                                            "posenc verify --case h3" });
    feed_check(records, (struct fed_check){ "h4", "neon", "unsupported", "needs neon", "" });
    feed(records, "{s:s,s:s,s:s,s:s,s:s}", "t", "bench", "case", "alibi/f32/given/prefill",
         "kernel", "alibi", "backend", "libm", "refused", "wrong: 3 of 64 rows");
    feed_pair(records, (struct fed_pair){ "slow", "avx2", "slower", 1.075, true });
    feed_pair(records, (struct fed_pair){ "little", "avx2", "slower", 1.02, true });
    feed_pair(records, (struct fed_pair){ "perhaps", "avx2", "slower", 1.075, false });
    feed_pair(records, (struct fed_pair){ "noisy", "avx2", "unclear", 1.04, false });
    feed_pair(records, (struct fed_pair){ "quick", "avx2", "faster", 0.9, true });
    feed_change(records, "h1", 0.5, 0.94, 1);
    feed_change(records, "h2", 0.94, 0.5, 0);
    feed_change(records, "h3", 0.5, 0.5, -1);
    feed_count(records, "slow", "base", 4000);
    feed(records, "{s:s,s:s,s:[{s:s,s:s,s:f,s:s,s:s,s:s},{s:s,s:s,s:s}]}", "t", "machine",
         "grade", "C", "findings", "what", "governor", "level", "costs", "cost_pct", 4.0,
         "evidence", "powersave", "fix", "performance", "command",
         "cpupower frequency-set -g performance", "what", "swap", "level", "fine", "evidence",
         "none");
    return records;
}

/* The test case of that name, up to the next one; "" where there is none, or two. */
static const char *test_case(const char *text, const char *name)
{
    static char found[2048];
    char begin[160];
    snprintf(begin, sizeof begin, "<testcase name=\"alibi/f32/given/%s\"", name);
    const char *at = text && count(text, begin) == 1 ? strstr(text, begin) : NULL;
    const char *end = at ? strpbrk(at, "\n") : NULL;
    if (at && end && end[-2] != '/')
        end = strstr(at, "</testcase>");
    snprintf(found, sizeof found, "%.*s", at && end ? (int)(end - at) : 0, at ? at : "");
    return found;
}

static void test_junit(void)
{
    json_t *records = ends(true);
    char *text = rendered("junit", records, 0);
    require(contains(test_case(text, "h2 [vectors]"), "<failure ") &&
                contains(test_case(text, "h3 [vectors]"), "<error ") &&
                contains(test_case(text, "h4 [vectors]"), "<skipped message=\"needs neon\"/>"),
            "junit: a check that failed, crashed, cannot run here");
    require(contains(test_case(text, "h2 [vectors]"),
                     "repeat with: posenc verify --backend avx2 --case h2"),
            "junit: the line to repeat a failure stands in its text");
    require(contains(test_case(text, "h2 [vectors]"),
                     "wrote past &lt;out&gt;, &quot;here&quot;&#10;?\" type"),
            "junit: what XML cannot hold does not stand there");
    require(contains(test_case(text, "slow [compare]"), "<failure ") &&
                contains(test_case(text, "slow [compare]"), "+7.5 %"),
            "junit: slower beyond the budget and confirmed is a failure");
    require(!contains(test_case(text, "little [compare]"), "<failure") &&
                !contains(test_case(text, "perhaps [compare]"), "<failure") &&
                contains(test_case(text, "little [compare]"), "<testcase") &&
                contains(test_case(text, "perhaps [compare]"), "<testcase"),
            "junit: within the budget, or not confirmed, it is none");
    require(contains(test_case(text, "noisy [compare]"),
                     "<skipped message=\"UNCLEAR +4.0 % (3.0 to 6.0): 3 of 3"),
            "junit: unclear is skipped, with why");
    require(contains(test_case(text, "h1 [accuracy, change of error]"),
                     "<failure message=\"0.94 ulp, was 0.5") &&
                !contains(test_case(text, "h2 [accuracy, change of error]"), "<failure") &&
                !contains(test_case(text, "h3 [accuracy, change of error]"), "<failure"),
            "junit: a result that got worse is a failure; better or moved is none");
    require(contains(test_case(text, "prefill [bench]"), "wrong: 3 of 64 rows"),
            "junit: an output that was not timed since it was wrong is a failure");
    require(contains(text,
                     "<testsuites name=\"posenc\" tests=\"13\" failures=\"4\" errors=\"1\">") &&
                count(text, "<testcase ") == 13 && count(text, "<failure ") == 4 &&
                count(text, "<error ") == 1 && count(text, "<skipped ") == 2 &&
                count(text, " skipped=\"1\"") == 2 && count(text, " skipped=\"0\"") == 1,
            "junit: the totals are those of what stands there");
    require(contains(text, "name=\"doctor\" value=\"C\""),
            "junit: and what doctor thinks of the machine");
    free(text);
    json_decref(records);
    records = ends(false);
    text = rendered("junit", records, 0);
    require(contains(text, "errors=\"2\"") && contains(text, "type=\"incomplete\""),
            "junit: a run that ended early is an error");
    free(text);
    json_decref(records);
}

/* GitLab knows a test by class and name. */
static void test_unique(void)
{
    json_t *records = ends(true);
    feed_check(records, (struct fed_check){ "h1", "libm", "pass", "", "" });
    feed_machine(records, "stone", true);
    feed_check(records, (struct fed_check){ "h1", "avx2", "pass", "", "" });
    char *text = rendered("junit", records, 0), *saved = NULL;
    json_t *seen = json_object();
    size_t tests = 0;
    for (char *line = text ? strtok_r(text, "\n", &saved) : NULL; line;
         line = strtok_r(NULL, "\n", &saved)) {
        char *end = strstr(line, "\">");
        end = end ? end : strstr(line, "\"/>");
        if (!contains(line, "<testcase ") || !end)
            continue;
        *end = 0;
        tests++;
        json_object_set_new(seen, line, json_true());
    }
    require(tests == 15 && json_object_size(seen) == tests,
            "junit: no two tests have one class and one name, on whatever backend and machine");
    json_decref(seen);
    free(text);
    json_decref(records);
}

/* ---- CSV ---- */

/* The next field as RFC 4180 has it; *ends: a line does behind it.  false: that is no CSV. */
static bool field(const char **text, char *into, size_t size, bool *ends)
{
    const char *p = *text;
    size_t n = 0;
    bool quoted = *p == '"';
    for (p += quoted; *p; p++) {
        if (quoted && p[0] == '"' && p[1] != '"')
            break;
        if (!quoted && strchr(",\r\n\"", *p))
            break;
        p += quoted && *p == '"';
        if (n + 1 < size)
            into[n++] = *p;
    }
    into[n] = 0;
    p += quoted;
    *ends = p[0] == '\r' && p[1] == '\n';
    *text = p + (*ends ? 2 : 1);
    return (*ends || *p == ',') && (!quoted || p[-1] == '"');
}

enum { COLUMNS = 128 };

static size_t line_of(const char **text, char fields[COLUMNS][256])
{
    bool ends = false;
    size_t n = 0;
    while (!ends && n < COLUMNS)
        if (!field(text, fields[n++], sizeof fields[0], &ends))
            return 0;
    return n;
}

/* The field of a column in the line whose kind and case these are; NULL where there is no such. */
static const char *csv_at(const char *text, const char *kind, const char *name,
                          const char *column)
{
    static char head[COLUMNS][256], line[COLUMNS][256];
    size_t n = text ? line_of(&text, head) : 0, at = 0, id = 0;
    for (size_t c = 0; c < n; c++) {
        at = strcmp(head[c], column) == 0 ? c : at;
        id = strcmp(head[c], "case") == 0 ? c : id;
    }
    while (n > 0 && at > 0 && *text && line_of(&text, line) == n)
        if (strcmp(line[1], kind) == 0 &&
            (!*name || (strlen(line[id]) > strlen(name) &&
                        strcmp(line[id] + strlen(line[id]) - strlen(name), name) == 0)))
            return line[at];
    return NULL;
}

static bool csv_is(const char *text, const char *kind, const char *name, const char *column,
                   const char *want)
{
    const char *got = csv_at(text, kind, name, column);
    if (!got || strcmp(got, want) != 0)
        printf("# %s of %s %s: %s\n", column, kind, name, got ? got : "not there");
    return got && strcmp(got, want) == 0;
}

static void test_csv(void)
{
    json_t *records = ends(true);
    char *text = rendered("csv", records, 0);
    require(csv_is(text, "conf", "h2", "reason", "wrote past <out>, \"here\"\n\xef\xbf\xbf"),
            "csv: a text comes back as it was");
    require(csv_is(text, "pair", "slow", "ratio", "1.075") &&
                csv_is(text, "pair", "slow", "base.ns", "50") &&
                csv_is(text, "pair", "slow", "ci.hi", "1.095") &&
                csv_is(text, "pair", "slow", "verdict", "slower") &&
                csv_is(text, "pair", "slow", "confirmed", "true"),
            "csv: a pair, its times and its verdict");
    require(csv_is(text, "change", "h1", "worse", "true") &&
                csv_is(text, "change", "h2", "worse", "false") &&
                csv_is(text, "change", "h3", "worse", "") &&
                csv_is(text, "change", "h1", "base.max", "0.5") &&
                csv_is(text, "change", "h1", "witness", "position 7"),
            "csv: a change, worse, better or only another one");
    require(csv_is(text, "count", "slow", "instructions", "4000") &&
                csv_is(text, "count", "slow", "build", "base") &&
                csv_is(text, "machine", "", "cost_pct", "4") &&
                csv_is(text, "machine", "", "grade", "C") &&
                csv_is(text, "machine", "", "level", "costs"),
            "csv: a count, and what doctor found");
    require(count(text, "\r\n") == 17, "csv: a line a result");
    free(text);
    json_decref(records);
}

/* ---- What GitHub takes ---- */

static void test_annotations(void)
{
    json_t *records = ends(false);
    char *text = rendered("annotations", records, 0);
    require(text && strncmp(text, "::error title=posenc%3A incomplete::", 36) == 0,
            "annotations: a run that ended early comes first");
    require(
        contains(text,
                 "::error title=avx2%3A alibi/f32/given/slow::SLOWER +7.5 %25 (6.5 to 9.5)") &&
            contains(text, "::warning title=avx2%3A alibi/f32/given/little::") &&
            contains(text, "::warning title=avx2%3A alibi/f32/given/perhaps::") &&
            !contains(text, "given/noisy"),
        "annotations: an error where a gate fails, a warning of what else is slower");
    require(contains(text, "::error title=avx2%3A alibi/f32/given/h1::0.94 ulp, was 0.5") &&
                contains(text, "::error title=libm%3A alibi/f32/given/prefill::wrong: 3 of 64"),
            "annotations: results that got worse, and outputs that are wrong");
    require(
        contains(text,
                 "::warning title=doctor%3A governor::powersave%0Aperformance%0Acpupower ") &&
            !contains(text, "swap"),
        "annotations: what disturbs the machine, with what to type");
    require(count(text, "::error ") == 6 && count(text, "\n") == 10,
            "annotations: a line each, and one of counts");
    free(text);
    json_decref(records);
}

/* 20 000 failures, each with much to say. */
static json_t *many_failures(void)
{
    static char repro[1900];
    json_t *records = json_array();
    memset(repro, 'x', sizeof repro - 1);
    feed_machine(records, "paper", true);
    for (int i = 0; i < 20000; i++) {
        char name[32];
        snprintf(name, sizeof name, "h%d", i);
        feed_check(records,
                   (struct fed_check){ name, "avx2", i % 7 ? "fail" : "crash", "no", repro });
    }
    return records;
}

/* Whether every part of a page is closed, and its last line is whole. */
static bool is_whole(const char *text)
{
    size_t n = text ? strlen(text) : 0;
    return n > 0 && text[n - 1] == '\n' &&
           count(text, "<details>") + count(text, "\\</details>") ==
               count(text, "</details>") &&
           count(text, "<summary>") == count(text, "</summary>") && count(text, "```") % 2 == 0;
}

static void test_many(void)
{
    json_t *records = many_failures();
    char *page = rendered("summary", records, 0), *comment = rendered("comment", records, 0),
         *lines = rendered("annotations", records, 0);
    require(page && strncmp(page, "## posenc: 20 000 of 20 000 checks failed\n", 42) == 0,
            "summary: the verdict is the first line");
    require(is_whole(page) && strlen(page) <= 1024 * 1024 && contains(page, "given/h49 "),
            "summary: of 20 000 failures, within 1024 KiB, whole, with the first of them");
    require(is_whole(comment) && strlen(comment) <= 64 * 1024 &&
                contains(comment, "given/h0 ") && contains(comment, " more."),
            "comment: within 64 KiB, with as many of them as fit, and how many more there are");
    require(count(lines, "::error ") == 10 && count(lines, "\n") == 11 &&
                contains(lines, "GitHub shows 10 of 20000 errors"),
            "annotations: ten errors, which is what GitHub shows, and how many there are");
    free(page);
    free(comment);
    free(lines);
    json_decref(records);
}

/* More evidence than fits. */
static void test_much(void)
{
    static char much[1200];
    json_t *records = json_array();
    memset(much, 'x', sizeof much - 1);
    for (int m = 0; m < 12; m++) {
        char name[64];
        snprintf(name, sizeof name, "machine-%d", m);
        feed_machine(records, name, true);
        feed_check(records, (struct fed_check){ "h1", "avx2", m == 11 ? "fail" : "pass", "no",
                                                "again" });
        for (int i = 0; m < 4 && i < 60; i++) { /* some have much to say */
            snprintf(name, sizeof name, "broken-%d", i);
            feed_check(records, (struct fed_check){ name, "avx2", "fail", much, "again" });
        }
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "backend-%d", i);
            feed(records, "{s:s,s:s,s:s,s:s,s:b}", "t", "backend", "id", name, "family", "own",
                 "description", much, "available", 1);
        }
    }
    char *page = rendered("summary", records, 0), *comment = rendered("comment", records, 0);
    require(is_whole(page) && strlen(page) <= 1024 * 1024 && strlen(page) > 512 * 1024,
            "summary: of 12 machines as much as fits");
    const char *last = page ? strstr(page, "### machine-11") : NULL,
               *folded = page ? strstr(page, "<details>") : NULL;
    require(last && folded && last < folded && contains(last, "1 failed"),
            "summary: every machine's failures before anybody's evidence");
    require(contains(page, "> Left out, to stay within 1024 KiB: ") &&
                contains(page, "Backends, machine-11 (12"),
            "summary: what is left out is named");
    require(is_whole(comment) && strlen(comment) <= 64 * 1024 &&
                contains(comment, "### machine-11") &&
                contains(comment, "> Left out, to stay within 64 KiB: "),
            "comment: likewise, of every machine something");
    free(page);
    free(comment);
    json_decref(records);
}

static void test_little(void)
{
    json_t *records = ends(true);
    char *page = rendered("summary", records, 0);
    require(contains(page, "| SIGILL \\</details> \\| `<x>` |"),
            "summary: what a check says opens and closes nothing");
    require(is_whole(page) && !contains(page, "Left out") && contains(page, "wrote past") &&
                contains(page, "<details><summary>Machine and build</summary>"),
            "summary: where all fits nothing is left out");
    require(
        page &&
            strncmp(page,
                    "## posenc: 2 of 3 checks failed, 1 output wrong, 1 result worse, 3 slower",
                    72) == 0,
        "summary: what is bad comes first");
    free(page);
    json_decref(records);
}

int main(void)
{
    test_junit();
    test_unique();
    test_csv();
    test_annotations();
    test_many();
    test_much();
    test_little();
    return tap_end();
}
