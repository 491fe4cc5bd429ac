/*
 * Two builds side by side, from records alone: what a person sees at 80 columns and on pages, the evidence of one
 * verdict, and two files of results.
 *
 *     test_compare FILE       writes the records that it renders, to be looked at by posenc report
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/compare_files.h"
#include "reports/comparison.h"
#include "conformance/tap/tap.h"
#include "fed.h"
#include "rendered.h"

#include <math.h>

static const char *const backends[] = { "avx512", "avx2", NULL };

/* ---- Pairs ---- */

static json_t *fed_compare(void)
{
    json_t *records = fed_run("rope_half", backends), *header = json_array_get(records, 0);
    json_object_set_new(header, "compare",
                        json_pack("{s:{s:s,s:s},s:{s:s,s:s,s:s}}", "base", "path",
                                  "base/libposenc.so", "version", "0.1.0", "head", "path",
                                  "head/libposenc.so", "rev", "9d0e771", "version", "0.2.0"));
    json_object_set_new(header, "argv",
                        json_pack("[s,s,s,s,s,s,s,s]", "posenc", "compare", "--gate", "--out",
                                  "md:p.md", "--case=rope*", "base/libposenc.so",
                                  "head/libposenc.so"));
    json_object_set_new(header, "options", json_pack("{s:b}", "gate", 1));
    return records;
}

struct fed_pair {
    const char *shape, *backend, *verdict, *reason;
    double ratio, half, null_ratio;
    bool confirmed;
};

/* Samples of 5 launches of 31 rounds around the ratio. */
static json_t *fed_samples(double ratio, double spread)
{
    json_t *launches = json_array();
    for (int l = 0; l < 5; l++) {
        json_t *rounds = json_array();
        for (int r = 0; r < 31; r++)
            json_array_append_new(
                rounds, json_real(log(ratio) + spread * (((r * 7 + l) % 31) - 15) / 15.0));
        json_array_append_new(launches, rounds);
    }
    return launches;
}

static json_t *feed_pair(json_t *records, struct fed_pair p)
{
    char id[96];
    snprintf(id, sizeof id, "rope_half/f32/given/%s", p.shape);
    json_t *j =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:f,s:f,s:f,s:b,s:i,s:i}", "t", "pair",
                  "kernel", "rope_half", "dtype", "f32", "profile", "given", "case", id,
                  "backend", p.backend, "family", "template", "verdict", p.verdict, "reason",
                  p.reason, "floor", 0.01, "budget", 0.03, "null_ratio", p.null_ratio,
                  "confirmed", p.confirmed, "launches", 5, "rounds", 155);
    if (p.ratio > 0.0) {
        json_object_set_new(j, "ratio", json_real(p.ratio));
        json_object_set_new(j, "ci",
                            json_pack("{s:f,s:f,s:f}", "level", 0.99, "lo", p.ratio - p.half,
                                      "hi", p.ratio + p.half));
        json_object_set_new(j, "base", json_pack("{s:f,s:s}", "ns", 50.1, "code", "1f3c2ab0"));
        json_object_set_new(j, "head",
                            json_pack("{s:f,s:s}", "ns", 50.1 * p.ratio, "code", "9d0e771c"));
        json_object_set_new(j, "samples",
                            json_pack("{s:o,s:o}", "head", fed_samples(p.ratio, 0.01), "null",
                                      fed_samples(p.null_ratio, 0.005)));
    }
    json_array_append_new(records, j);
    return j;
}

static void feed_count(json_t *records, const char *shape, const char *build,
                       double instructions)
{
    char id[96];
    snprintf(id, sizeof id, "rope_half/f32/given/%s", shape);
    feed(records, "{s:s,s:s,s:s,s:s,s:f,s:f}", "t", "count", "case", id, "backend", "avx2",
         "build", build, "instructions", instructions, "elements", 100.0);
}

static json_t *fed_pairs(void)
{
    json_t *records = fed_compare();
    for (int i = 0; i < 12; i++) {
        char shape[32];
        snprintf(shape, sizeof shape, "same-%d", i);
        feed_pair(records,
                  (struct fed_pair){ shape, "avx512", "same", "within the budget of 3 %", 1.001,
                                     0.005, 1.002, false });
    }
    feed_pair(records,
              (struct fed_pair){ "llama-3.1-8b-prefill", "avx512", "unclear",
                                 "noisy: ±6.1 %; 2.4 times as many launches would settle "
                                 "3 %",
                                 1.025, 0.061, 0.97, false });
    json_object_set_new(json_array_get(records, json_array_size(records) - 1), "more_s",
                        json_real(9.0));
    feed_pair(records,
              (struct fed_pair){ "l2-512k", "avx512", "faster", "5/5 launches; confirmed",
                                 0.891, 0.004, 1.001, true });
    feed_pair(records, (struct fed_pair){ "l2-512k", "avx2", "slower",
                                          "over the budget of 3 %; 5/5 launches; confirmed",
                                          1.075, 0.0065, 0.996, true });
    feed_pair(records, (struct fed_pair){ "dram", "avx512", "identical",
                                          "the same machine code: +2.9 % is layout or noise",
                                          1.029, 0.007, 1.0, false });
    feed_pair(records,
              (struct fed_pair){ "gone", "avx2", "removed", "", 0.0, 0.0, 0.0, false });
    feed_count(records, "l2-512k", "base", 1250.0);
    feed_count(records, "l2-512k", "head", 1300.0);
    feed(records, "{s:s,s:s,s:s,s:s,s:s,s:b,s:{s:f},s:{s:f},s:s,s:f,s:s}", "t", "change",
         "kernel", "rope_half", "case", "rope_half/f32/exact/random-7", "backend", "avx2",
         "what", "error", "worse", 1, "base", "max", 0.5, "head", "max", 0.94, "metric", "ulp",
         "limit", 1.5, "witness", "token 3 head 0 channel 17");
    feed(records, "{s:s,s:s,s:s,s:s,s:s,s:n,s:{s:s},s:{s:s},s:i,s:i}", "t", "change", "kernel",
         "rope_half", "case", "rope_half/f32/exact/l2", "backend", "avx2", "what", "bits",
         "worse", "base", "value", "1f", "head", "value", "2a", "moved", 8, "of", 4096);
    feed(records, "{s:s,s:b}", "t", "footer", "complete", 1);
    return records;
}

static int widest(const char *text)
{
    int most = 0, n = 0;
    for (; text && *text; text++) {
        n = *text == '\n' ? 0 : n + (((unsigned char)*text & 0xc0) != 0x80);
        most = n > most ? n : most;
    }
    return most;
}

static char *shown(const json_t *records, int width, bool all, const char *explain)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct render_options options = {
        .width = width, .color = 0, .all = all, .explain = explain
    };
    int status = format_console(records, out, &options);
    fclose(out);
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

/* Where none was asked for. */
static void test_no_gate(const json_t *records)
{
    json_t *open = json_deep_copy(records);
    json_object_del(json_array_get(open, 0), "options");
    char *text = shown(open, 80, false, NULL);
    require(contains(text, "1 would fail --gate") && !contains(text, "fails the gate"),
            "without --gate nothing fails one");
    free(text);
    json_decref(open);
}

static void test_console(const json_t *records)
{
    char *text = shown(records, 80, false, NULL);
    require(widest(text) <= 80, "a comparison fits 80 columns");
    require(contains(text, "SLOWER 1    FASTER 1    UNCLEAR 1    SAME 12    identical code 1"),
            "the verdicts are counted first");
    const char *slower = text ? strstr(text, "SLOWER ") : NULL;
    require(slower &&
                strstr(slower, "rope_half/f32/given/l2-512k avx2: over the budget of 3 %"),
            "a row has its reason");
    require(contains(text, "50.1 ns  53.9 ns   +7.5 %  [+6.9, +8.1] %    13 (+4.0 %)"),
            "times, change, interval and instructions stand in a line");
    require(contains(text, "about 9 s more"), "unclear says how much more would tell");
    require(contains(text, "12 the same, 1 of identical code: not listed") &&
                !contains(text, "same-3"),
            "what is the same is a count");
    require(contains(text, "1 fails the gate"), "what fails the gate is said");
    require(contains(text, "Results: 1 worse, 0 better, 1 otherwise changed"),
            "results that changed stand beside the times");
    require(contains(text, "token 3 head 0 channel 17") && contains(text, "8 of 4 096"),
            "with their witness, and how many bits moved");
    require(contains(text, "posenc compare base/libposenc.so head/libposenc.so \\\n") &&
                contains(text, "--case rope_half/f32/given/l2-512k --backend avx2"),
            "what to type next is there");
    require(contains(text, "base base/libposenc.so (0.1.0), head 9d0e771"),
            "both builds are named");
    free(text);
    text = shown(records, 80, true, NULL);
    require(contains(text, "same-3") && widest(text) <= 80, "--all lists what is the same");
    free(text);
    text = shown(records, 120, false, NULL);
    require(widest(text) <= 120 && contains(text, "SLOWER"), "it fits 120 columns");
    free(text);
}

static void test_pages(const json_t *records)
{
    char *md = rendered("md", records, 0), *html = rendered("html", records, 0);
    require(contains(md, "| rope_half/f32/given/l2-512k | avx2 | SLOWER | 50.1 ns | 53.9 ns |"),
            "Markdown has the same in a table");
    require(contains(md, "<details><summary>12 the same, 1 of identical code</summary>"),
            "and folds what is the same");
    require(contains(html, "<svg xmlns") && contains(html, "base against itself"),
            "a page draws the changes, base against itself first");
    require(contains(html, "<td class=\"bad\">SLOWER</td>"), "and colours what is slower");
    require(!contains(md, "not checked in this run"),
            "a comparison does not complain that nothing was benched");
    free(md);
    free(html);
}

static void test_explain(const json_t *records)
{
    char *text = shown(records, 80, false, "*/l2-512k");
    require(widest(text) <= 80, "the evidence fits 80 columns");
    require(contains(text, "In 5 of 5 launches head was slower than both copies of base") &&
                contains(text, "once in 243 comparisons"),
            "agreement is counted, and what chance would give");
    require(contains(text, "head 5 ") && contains(text, "base 5 ") &&
                contains(text, "+7.5 %\n"),
            "each launch is a strip with its median");
    require(contains(text, "The machine code is another"), "the code is compared");
    require(contains(text, "12.5 with base, 13 with head"), "instructions are told");
    require(!contains(text, "llama"), "others are not");
    free(text);
    text = shown(records, 80, false, "nothing");
    require(contains(text, "No pair is called nothing"), "a case that is not there is told");
    free(text);
}

static void test_numbers(const json_t *records)
{
    struct results r;
    struct comparison c;
    require(results_make(records, 0, &r) == 0 && comparison_make(&r, &c) == 0 && c.n == 17 &&
                c.rows[0].kind == VERDICT_SLOWER && c.failing == 1 && c.timed == 16,
            "what needs a person comes first");
    require(fabs(c.rows[0].head_counted - 13.0) < 1e-9 && isnan(c.rows[1].head_counted),
            "counts belong to their case and backend");
    comparison_free(&c);
    results_free(&r);
}

/* The same comparison twice: what was said last counts; how much was compared is said. */
static void test_again(void)
{
    json_t *records = fed_pairs(), *again = fed_pairs();
    json_array_extend(records, again);
    json_decref(again);
    feed(records, "{s:s,s:s,s:s,s:i,s:i,s:i}", "t", "agreement", "kernel", "rope_half",
         "backend", "avx2", "problems", 46, "values", 214259, "cases", 100);
    char *text = shown(records, 80, false, NULL);
    require(contains(text, "SLOWER 1 ") && contains(text, "SAME 12 "), "pairs are not doubled");
    require(
        contains(text, "Results of 100 cases, and 214 259 values of 46 problems: 1 worse, 0"),
        "nor are changes, and of how many is said");
    free(text);
    json_decref(records);
}

/* ---- Files ---- */

static json_t *fed_file(double error, double us, const char *cpu)
{
    json_t *records = fed_run("rope_half", backends);
    json_object_set_new(json_object_get(json_array_get(records, 1), "cpu"), "key",
                        json_string(cpu));
    feed_error(records, "rope_half", "exact",
               (struct fed_error){ "avx2", "accuracy-1", "ulp", error, 1.5 });
    feed_error(records, "rope_half", "exact",
               (struct fed_error){ "avx2", "accuracy-2", "ulp", 0.5, 1.5 });
    feed_time(records, "rope_half", "l2", (struct fed_time){ "avx2", us, 1.0, 0.1, 0.8 / us });
    feed(records, "{s:s,s:b}", "t", "footer", "complete", 1);
    return records;
}

static struct files_compared files(json_t *base, json_t *head)
{
    struct files_compared c;
    const struct result_file b = { "base.jsonl", base }, h = { "head.jsonl", head };
    require(compare_files(&b, &h, &c) == 0, "two files are compared");
    json_decref(base);
    json_decref(head);
    return c;
}

/* Records of a comparison, as a command writes them. */
static char *file_report(const struct files_compared *c, int width)
{
    json_t *records = json_array();
    feed(records, "{s:s,s:s,s:s,s:[s,s,s,s],s:O}", "t", "header", "schema", RECORDS_SCHEMA,
         "mode", "quick", "argv", "posenc", "compare", "base.jsonl", "head.jsonl", "compare",
         c->compare);
    json_array_extend(records, c->records);
    feed(records, "{s:s,s:b}", "t", "footer", "complete", 1);
    char *text = shown(records, width, false, NULL);
    json_decref(records);
    return text;
}

static void set_status(json_t *records, size_t at, const char *status)
{
    json_object_set_new(json_array_get(records, at), "status", json_string(status));
}

enum { FIRST_CHECK = 4 }; /* behind header, env and two backends */

static void test_files(void)
{
    struct files_compared c = files(fed_file(0.5, 10.0, "paper"), fed_file(0.5, 10.0, "paper"));
    require(c.results == 2 && !c.worse && !c.better && !c.moved && !c.obstacles && !c.failed,
            "the same results are the same");
    files_compared_free(&c);
    c = files(fed_file(0.5, 10.0, "paper"), fed_file(0.94, 20.0, "paper"));
    char *text = file_report(&c, 80);
    require(c.worse == 1 && c.failed == 0, "an error that grew is worse, by however little");
    require(contains(text, "0.94 ulp") && contains(text, "position 7") && widest(text) <= 80,
            "with both errors and the witness");
    require(contains(text, "Times, as a trend") && contains(text, "no verdict") &&
                !contains(text, "SLOWER"),
            "twice the time is a trend and no verdict");
    free(text);
    files_compared_free(&c);
    c = files(fed_file(0.94, 10.0, "paper"), fed_file(0.5, 10.0, "paper"));
    require(c.better == 1 && c.worse == 0, "one that shrank is better");
    files_compared_free(&c);
}

static void test_failures(void)
{
    json_t *head = fed_file(0.5, 10.0, "paper"), *base = fed_file(0.5, 10.0, "paper");
    set_status(head, FIRST_CHECK, "fail");
    struct files_compared c = files(base, head);
    require(c.failed == 1 && c.worse == 1, "a new failure is a failure");
    files_compared_free(&c);
    head = fed_file(0.5, 10.0, "paper");
    json_array_remove(head, FIRST_CHECK);
    c = files(fed_file(0.5, 10.0, "paper"), head);
    require(c.worse == 1 && c.results == 1 && c.failed == 0, "a check that is gone is worse");
    files_compared_free(&c);
    head = fed_file(0.5, 10.0, "paper");
    json_array_remove(head, FIRST_CHECK);
    json_object_set_new(json_array_get(head, 0), "mode", json_string("full"));
    c = files(fed_file(0.5, 10.0, "paper"), head);
    require(c.worse == 0, "unless another set was asked for");
    files_compared_free(&c);
    head = fed_file(0.5, 10.0, "paper");
    base = fed_file(0.5, 10.0, "paper");
    json_object_set_new(json_array_get(base, FIRST_CHECK), "digest", json_string("1f"));
    json_object_set_new(json_array_get(head, FIRST_CHECK), "digest", json_string("2a"));
    c = files(base, head);
    require(c.moved == 1, "other bits are told");
    files_compared_free(&c);
}

static void test_obstacles(void)
{
    struct files_compared c =
        files(fed_file(0.5, 10.0, "paper"), fed_file(0.94, 20.0, "stone"));
    char *text = file_report(&c, 80);
    require(c.obstacles == 1 &&
                contains(text, "Not comparable, CPU: paper in base, stone in head"),
            "another CPU is named");
    require(!contains(text, "Times, as a trend") && c.worse == 1,
            "then times say nothing, and errors still do");
    free(text);
    files_compared_free(&c);
    json_t *head = fed_file(0.5, 10.0, "paper"), *base = fed_file(0.5, 10.0, "paper");
    json_object_set_new(json_array_get(head, 0), "vectors", json_pack("{s:s}", "sha256", "b"));
    json_object_set_new(json_array_get(base, 0), "vectors", json_pack("{s:s}", "sha256", "a"));
    json_object_set_new(json_array_get(head, 1), "build", json_pack("{s:s}", "type", "debug"));
    json_object_set_new(json_array_get(base, 1), "build",
                        json_pack("{s:s}", "type", "release"));
    c = files(base, head);
    require(c.obstacles == 2, "other vectors are, and another build");
    files_compared_free(&c);
}

/* As a file of records. */
static int write_records(const json_t *records, const char *path)
{
    FILE *out = fopen(path, "w");
    const int status = out ? format_jsonl(records, out, NULL) : -1;
    return out && fclose(out) == 0 && status == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    json_t *records = fed_pairs();
    if (argc > 1)
        return write_records(records, argv[1]);
    test_numbers(records);
    test_console(records);
    test_no_gate(records);
    test_pages(records);
    test_explain(records);
    json_decref(records);
    test_again();
    test_files();
    test_failures();
    test_obstacles();
    return tap_end();
}
