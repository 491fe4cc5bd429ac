/*
 * Records keep what they were given, and each format says it in its own grammar.  The run
 * rendered is tests/run.jsonl (invented numbers): a failure, a crash, a tie, a backend that
 * cannot run here.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/env.h"
#include "reports/trust.h"
#include "reports/formats/grid.h"
#include "reports/ranking.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/worst.h"
#include "rendered.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static json_t *reread(const char *text, char error[RECORDS_ERROR])
{
    json_t *list = json_array();
    FILE *in = tmpfile();
    bool good = in && fputs(text, in) >= 0 && fseek(in, 0, SEEK_SET) == 0 &&
                records_read(in, "text", list, NULL, error) == 0;
    if (in)
        fclose(in);
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

static void test_records(const json_t *records)
{
    char error[RECORDS_ERROR] = "";
    char *lines = rendered("jsonl", records, 0);
    json_t *again = lines ? reread(lines, error) : NULL;
    require(again && json_equal(again, records),
            "records that are written and read again are the same");
    json_decref(again);
    free(lines);
    struct records memory;
    require(records_open(&memory, NULL, error) == 0 &&
                records_append(&memory, json_pack("{s:s}", "t", "x")) == 0 &&
                json_array_size(memory.list) == 1 && records_append(&memory, NULL) != 0 &&
                records_close(&memory, error) != 0,
            "a record that could not be made is an error");
    require(records_open(&memory, "/nowhere/at/all.jsonl", error) != 0 &&
                contains(error, "/nowhere/at/all.jsonl"),
            "a path that cannot be written is named");

    json_t *inf = record_number(HUGE_VAL), *not = record_number(nan("")),
           *hex = record_hex(0.1);
    require(json_is_string(inf) && isinf(record_double(inf, 0.0)),
            "infinity is the string inf, and comes back");
    require(json_is_string(not ) && isnan(record_double(not, 0.0)),
            "NaN is the string nan, and comes back");
    require(record_double(hex, 0.0) == 0.1, "hexadecimal keeps every bit of 0.1");
    json_decref(inf);
    json_decref(not );
    json_decref(hex);
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *named;
    } bad[] = {
        { "{\"t\":\"header\",\"schema\":\"posenc.results/1\"}\n{\"t\":\n", "line 2" },
        { "{\"t\":\"header\",\"schema\":\"posenc.results/9\"}\n", "posenc.results/9" },
        { "{\"kernel\":\"alibi\"}\n", "line 1" },
        { "[1, 2]\n", "line 1" },
        { "\n\n", "no record" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char error[RECORDS_ERROR] = "", sentence[96];
        json_t *list = reread(bad[i].text, error);
        snprintf(sentence, sizeof sentence, "a file that is none is refused, naming: %s",
                 bad[i].named);
        require(!list && contains(error, bad[i].named) && contains(error, "posenc.results/1"),
                sentence);
        json_decref(list);
    }
}

static void test_query(const json_t *records)
{
    struct results r;
    require(results_machines(records) == 1 && results_make(records, 0, &r) == 0,
            "the run is of one machine");
    const char *id = "rope_half/f32/given/llama-3.1-8b-prefill";
    const struct bench_row *rows[32];
    size_t n = rows_of_case(&r, id, rows, 32);
    bool ordered = n == 6;
    for (size_t i = 1; i < n; i++)
        ordered = ordered && rows[i - 1]->median <= rows[i]->median;
    require(ordered, "rows of a case come fastest first");
    require(rows_meet(rows[0], rows[1]) && !rows_meet(rows[0], rows[2]),
            "intervals that overlap are a tie, others are not");
    bool checked;
    require(!conforms(&r, "rope_half", "sleef_avx512", &checked) && checked &&
                conforms(&r, "rope_half", "avx512", &checked) && checked,
            "a failed check makes a backend not conform");
    require(!conforms(&r, "rope_half", "autovec_v4", &checked), "a crash does, too");
    require(conforms(&r, "rope_half", "neon", &checked) && !checked,
            "what was not checked is not called checked");
    struct worst worst;
    worst_errors(&r, &(struct worst_of){ "sinusoidal", "f32", "libm", "exact", NULL, 0.0 },
                 &worst);
    require(worst.n == 1 && worst.of[0]->max == 19400.0,
            "the worst error of all ranges is found");
    require(strcmp(default_backend(&r, "rope_half"), "avx512") == 0,
            "the default comes from what the library chose");
    results_free(&r);

    json_t *twice = json_copy((json_t *)records);
    json_array_extend(twice, (json_t *)records);
    struct results once, both;
    require(results_make(records, 0, &once) == 0 && results_make(twice, 0, &both) == 0 &&
                once.n_bench == both.n_bench && once.n_conf == both.n_conf,
            "a result met twice counts once");
    results_free(&once);
    results_free(&both);
    json_decref(twice);
}

/* Every line of a table begins its columns where the line before does: checked on
 * the longest. */
static bool fits(const char *text, int width)
{
    for (const char *line = text; *line;) {
        size_t bytes = strcspn(line, "\n");
        int columns = 0;
        for (size_t i = 0; i < bytes; i++)
            columns += ((unsigned char)line[i] & 0xc0) != 0x80;
        if (columns > width || (bytes && line[bytes - 1] == ' ')) {
            printf("# %.*s\n", (int)bytes, line);
            return false;
        }
        line += bytes + (line[bytes] != 0);
    }
    return true;
}

static bool prints(void (*print)(const struct grid *grid, FILE *out), const struct grid *grid,
                   const char *want)
{
    char got[512] = "";
    FILE *file = tmpfile();
    if (!file)
        return false;
    print(grid, file);
    rewind(file);
    got[fread(got, 1, sizeof got - 1, file)] = 0;
    fclose(file);
    if (strcmp(got, want) != 0)
        printf("# %s\n", got);
    return strcmp(got, want) == 0;
}
static void print_console(const struct grid *grid, FILE *out) { grid_console(grid, "  ", out); }
static void print_blocks(const struct grid *grid, FILE *out)
{
    grid_blocks(grid, "  ", 24, out);
}

static void test_grid(void)
{
    static const char *const cells[] = { "alibi", "7", "8", "9", "rope", "10", "", "12" };
    struct grid grid;
    grid_begin(&grid, "kernel|avx512_bf16|sleef_avx512|>libm");
    for (int i = 0; i < 8; i++)
        grid_cell(&grid, "%s", cells[i]);
    require(prints(print_console, &grid,
                   "  kernel  avx512_bf16  sleef_avx512  libm\n"
                   "  alibi   7            8                9\n"
                   "  rope    10                           12\n"),
            "grid: columns are aligned");
    grid.split = true;
    grid.gap = 1;
    require(grid_width(&grid) == 25 && prints(print_console, &grid,
                                              "  kernel avx512 sleef_ libm\n"
                                              "         _bf16  avx512\n"
                                              "  alibi  7      8         9\n"
                                              "  rope   10              12\n"),
            "grid: heads in two lines are cut where they are widest");
    require(prints(print_blocks, &grid,
                   "  alibi  avx512_bf16 7\n"
                   "      sleef_avx512 8\n"
                   "      libm 9\n"
                   "  rope  avx512_bf16 10\n"
                   "      libm 12\n"),
            "grid: blocks are broken at the width, without blanks at the end");
    grid_end(&grid);
}

static void test_console(const json_t *records)
{
    char *text = rendered("console", records, 132);
    size_t failed = text ? (size_t)(strstr(text, "2 failed") - text) : 0;
    require(contains(text, "2 failed") && failed < 120, "console: failures come first");
    require(text && fits(text, 132),
            "console: no line is wider than the window or ends in blanks");
    require(contains(text, "avx512 = avx2"), "console: a tie is called one");
    require(!contains(text, "\033["), "console: no colour where none is wanted");
    require(contains(text, "1 failed, ") && contains(text, "1 crashed"),
            "console: ends with the counts");
    free(text);
}

static void test_markdown(const json_t *records)
{
    char *text = rendered("md", records, 0);
    const char *failures = text ? strstr(text, "## 2 failed") : NULL,
               *answer = text ? strstr(text, "## Llama") : NULL,
               *evidence = text ? strstr(text, "## Conformance") : NULL;
    require(failures && answer && evidence && failures < answer && answer < evidence,
            "md: failures, then the answer, then the evidence");
    require(contains(text, "posenc_select()"), "md: says how to force another backend");
    require(contains(text, "posenc report --model llama-3.1-8b"),
            "md: says how to get it again");
    require(contains(text, "| below 2^24 |"), "md: says up to where libm is exact");
    require(contains(text, "rope_half, 8 heads of 128 | avx512") &&
                contains(text, "+12.5 ns (12.4 to 12.7)") && !contains(text, "99.5"),
            "md: says what a call costs, as last measured");
    bool tables = true;
    size_t columns = 0;
    for (const char *line = text; line && *line; line += strcspn(line, "\n") + 1) {
        size_t bars = 0, n = strcspn(line, "\n");
        for (size_t i = 0; i < n; i++)
            bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
        if (line[0] != '|')
            bars = 0;
        tables = tables && (columns == 0 || bars == 0 || bars == columns);
        columns = bars;
    }
    require(tables, "md: every row of a table has the columns of its head");
    free(text);
}

/* What only a page or only a terminal is shown, whatever the records say. */
static void test_document(void)
{
    struct node *root = document_make("title"), *section = add_section(root, EVERYWHERE, "one");
    add_section(root, ON_PAGE, "empty");
    struct table *table = add_table(section, EVERYWHERE, "a;b|~>page|!terminal|=");
    table_line(table, "a %s", "line");
    for (int i = 0; i < 4; i++)
        table_cell(table, "%d", i);
    const struct column *column = table->column;
    require(table->n_columns == 4 && strcmp(column[0].brief, "b") == 0 && column[1].right &&
                column[1].medium == ON_PAGE && column[2].medium == ON_TERMINAL && column[3].bar,
            "document: columns say who sees them, and how");
    require(table_rows(table) == 2 && !table_at(table, 0, 0) &&
                strcmp(table_at(table, 0, 1), "a line") == 0 &&
                strcmp(table_at(table, 1, 3), "3") == 0,
            "document: cells fill rows, lines lie between");
    require(node_is_seen(section, true, false) && !node_is_seen(section->next, false, true),
            "document: a section with nothing in it is not seen");
    add_text(NULL, PARAGRAPH, EVERYWHERE, "lost");
    table_cell(NULL, "lost");
    require(!document_failed(root), "document: what has no parent is nobody's failure");
    document_free(root);
}

/* Tags open and close in order, attributes are quoted, no bare ampersand. */
static bool well_formed(const char *p)
{
    char open[16][32];
    int depth = 0;
    for (; *p; p++) {
        if (*p == '&' && !(strncmp(p, "&amp;", 5) == 0 || strncmp(p, "&lt;", 4) == 0 ||
                           strncmp(p, "&gt;", 4) == 0 || strncmp(p, "&quot;", 6) == 0 ||
                           strncmp(p, "&#10;", 5) == 0))
            return false;
        if (*p != '<')
            continue;
        bool closing = p[1] == '/', declaration = p[1] == '?', quoted = false;
        const char *name = p + 1 + closing;
        size_t n = strcspn(name, " />?\n");
        for (; *p && (*p != '>' || quoted); p++)
            quoted = quoted != (*p == '"');
        if (!*p || n >= sizeof open[0])
            return false;
        if (declaration)
            continue;
        if (closing) {
            if (depth == 0 || strlen(open[depth - 1]) != n ||
                strncmp(open[depth - 1], name, n) != 0)
                return false;
            depth--;
        } else if (p[-1] != '/') {
            if (depth == 16)
                return false;
            snprintf(open[depth++], sizeof open[0], "%.*s", (int)n, name);
        }
    }
    return depth == 0;
}

static void test_html(const json_t *records)
{
    char *text = rendered("html", records, 0);
    const char *body = text ? strstr(text, "<body>") : NULL;
    char *end = body ? strstr(body, "</body>") : NULL;
    if (end)
        end[strlen("</body>")] = 0;
    require(end && well_formed(body), "html: what is opened is closed");
    require(!well_formed("<a><b></a></b>") && !well_formed("<a>&</a>"),
            "and the check for that can fail");
    require(!contains(text, "http:") && !contains(text, "https:") && !contains(text, "src="),
            "html: nothing is loaded from elsewhere");
    require(contains(text, "prefers-color-scheme:dark"), "html: light and dark");
    require(contains(text, "wrote past &lt;out&gt;, &quot;right&quot; &amp; over"),
            "html: text of records is escaped");
    require(contains(text, "<code>hf_f32</code>") &&
                contains(text, "<strong>2 failed</strong>") && !contains(text, "**") &&
                !contains(text, "`"),
            "html: marks become elements");
    require(count(text, "<svg class=\"bar\"") > 50, "html: bars are drawn");
    free(text);
}

/* Files may hold any number. */
static void test_numbers(void)
{
    require(strcmp(show_count(2400000.0), "2 400 000") == 0 &&
                strcmp(show_count(-123456.0), "-123 456") == 0 &&
                strcmp(show_count(999.0), "999") == 0,
            "counts are read in threes");
    require(strcmp(show_count(999999999999999.0), "999 999 999 999 999") == 0 &&
                strcmp(show_count(1e308), "1e+308") == 0 &&
                strcmp(show_count(HUGE_VAL), "inf") == 0,
            "and one that no run can reach is short");
    char error[RECORDS_ERROR] = "";
    json_t *list = reread(
        "{\"t\": \"bench\", \"case\": \"alibi/f32/given/x\", \"kernel\": "
        "\"alibi\", \"profile\": \"given\", \"backend\": \"avx2\", \"median_ns\": 1e308, "
        "\"gbps\": "
        "1e308, \"threads\": 1e308, \"rounds\": \"nan\"}\n"
        "{\"t\": \"conf\", \"case\": \"alibi/f32/given/x\", \"kernel\": "
        "\"alibi\", \"profile\": \"given\", \"backend\": \"avx2\", \"suite\": \"accuracy\", "
        "\"status\": \"pass\", \"err\": {\"metric\": \"ulp\", \"max\": 1e308, "
        "\"limit\": 1e308, \"n\": 1e308, \"coverage\": \"sampled\"}}\n",
        error);
    char *md = list ? rendered("md", list, 0) : NULL;
    char *console = list ? rendered("console", list, 80) : NULL;
    require(contains(md, "1e+308 values") && contains(console, "avx2"),
            "numbers that nobody measured are rendered all the same");
    free(md);
    free(console);
    json_decref(list);
}

static void test_trust(void)
{
    json_t *env =
        json_pack("{s:{s:s},s:{s:s},s:{s:b,s:s}}", "freq", "governor", "performance", "timer",
                  "source", "tsc", "build", "optimised", 1, "type", "release");
    json_t *good = env_trust(env, NULL, 0.2), *noisy = env_trust(env, NULL, 4.0);
    require(strcmp(record_text(good, "grade"), "A") == 0 &&
                strcmp(record_text(noisy, "grade"), "D") == 0 &&
                json_array_size(json_object_get(noisy, "reasons")) == 1,
            "trust: A for a quiet machine, D with its reason for a noisy one");
    json_decref(env);
    json_decref(good);
    json_decref(noisy);
    struct env_library library = { "1.2.3", "key", "one two", NULL, NULL };
    env = env_record(&library, "");
    require(env && strcmp(record_text(env, "build.library"), "1.2.3") == 0 &&
                json_array_size(json_object_get(json_object_get(env, "cpu"), "features")) ==
                    2 &&
                strchr("ABCD", record_text(env, "trust.grade")[0]),
            "the environment of this machine can be told");
    json_decref(env);
}

static void test_emulation(void)
{
    struct env_library library = { "1.2.3", "key", "", "a machine of paper runs this program",
                                   NULL };
    json_t *records =
        json_pack("[{s:s,s:s},o]", "t", "header", "mode", "full", env_record(&library, ""));
    const json_t *env = json_array_get(records, 1);
    require(
        strcmp(record_text(env, "emulator"), library.emulator) == 0 &&
            strcmp(record_text(env, "trust.grade"), "D") == 0 &&
            strcmp(record_text(env, "env_id"), "key/emulated") == 0,
        "an emulator is recorded, nothing measured under it is trusted or mixed with others");
    char *md = rendered("md", records, 0), *console = rendered("console", records, 132);
    require(contains(md, "Nothing was timed: a machine of paper") &&
                contains(md, "| emulator | a machine of paper") &&
                contains(console, "Nothing was timed: a machine of paper"),
            "a report says why it has no times");
    free(md);
    free(console);
    json_decref(records);
}

int main(int argc, char **argv)
{
    char error[RECORDS_ERROR];
    json_t *records = json_array();
    if (argc != 2 || records_load(argv[1], records, error)) {
        fprintf(stderr, "test_reports: %s\n",
                argc == 2 ? error : "usage: test_reports run.jsonl");
        return 2;
    }
    test_records(records);
    test_refusals();
    test_query(records);
    test_grid();
    test_console(records);
    test_markdown(records);
    test_html(records);
    test_numbers();
    test_trust();
    test_emulation();
    test_document();
    require(!format_find(record_formats, BY_ALL, "html5", 5), "an unknown format is not found");
    require(!format_find(record_formats, BY_VERIFY, "gha", 3),
            "nor one that a command cannot write");
    json_decref(records);
    return tap_end();
}
