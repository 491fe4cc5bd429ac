/*
 * What a person reads in a report, of the run in tests/run.jsonl (invented numbers).
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/report.h"
#include "reports/show.h"
#include "fed.h"
#include "rendered.h"
#include "conformance/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* The cells of a row of a table in Markdown, trimmed; how many. */
static int cells_of(const char *line, char cell[16][64])
{
    int n = 0;
    for (const char *p = line + 1; n < 16 && *p && *p != '\n';) {
        size_t bytes = strcspn(p, "|\n"), begin = strspn(p, " "), end = bytes;
        while (end > begin && p[end - 1] == ' ')
            end--;
        snprintf(cell[n++], 64, "%.*s", (int)(end > begin ? end - begin : 0), p + begin);
        p += bytes + (p[bytes] == '|');
    }
    return n;
}

/* "1.20 us" in ns. */
static double as_time(const char *text)
{
    char unit[8] = "";
    double value;
    return sscanf(text, "%lf %7s", &value, unit) == 2 ? value * (*unit == 'm'   ? 1e6
                                                                 : *unit == 'u' ? 1e3
                                                                                : 1.0)
                                                      : 0.0;
}

/* A row of a table of times. */
struct timing {
    int shape;
    double roof, time, rate;
    char backend[64], percent[64], libm[64], autovec[64];
};

/* Those of the section "Speed": shape, size, roof, backend, time, +-, GB/s, of roof, bound by, libm,
 * autovec. */
static int timings_of(const char *text, struct timing *rows, int most)
{
    int n = 0, shape = 0;
    double roof = 0.0;
    const char *line = text ? strstr(text, "## Speed") : NULL;
    for (; line && *line && n < most; line += strcspn(line, "\n") + 1) {
        char cell[16][64];
        if (*line != '|' || cells_of(line, cell) != 12 || !strstr(cell[7], " %"))
            continue;
        shape += *cell[2] != 0;
        roof = *cell[2] ? strtod(cell[2], NULL) : roof;
        struct timing *row = &rows[n++];
        *row = (struct timing){ .shape = shape,
                                .roof = roof,
                                .time = as_time(cell[4]),
                                .rate = strtod(cell[6], NULL) };
        snprintf(row->backend, 64, "%s", cell[3]);
        snprintf(row->percent, 64, "%s", cell[7]);
        snprintf(row->libm, 64, "%s", cell[9]);
        snprintf(row->autovec, 64, "%s", cell[10]);
    }
    return n;
}

/* The least time of a family in the rows of a shape, which follow each other; 0: it has none. */
static double least_time(const struct timing *row, const struct timing *end, const char *family)
{
    const int shape = row->shape;
    double least = 0.0;
    for (; row < end && row->shape == shape; row++)
        if (strncmp(row->backend, family, strlen(family)) == 0 &&
            (least <= 0.0 || row->time < least))
            least = row->time;
    return least;
}

/* A reader with a calculator divides what is printed, and finds what is printed. */
static void test_quotients(const json_t *records)
{
    enum { MOST = 200 };
    static struct timing rows[MOST];
    char *text = rendered("md", records, 0), want[64];
    const int n = timings_of(text, rows, MOST);
    bool percents = true, factors = true;
    const struct timing *first = rows; /* of its shape */
    for (const struct timing *row = rows; row < rows + n; row++) {
        if (row->shape != first->shape)
            first = row;
        snprintf(want, sizeof want, "%.0f %%", 100.0 * row->rate / row->roof);
        percents = percents && strcmp(want, row->percent) == 0;
        double libm = least_time(first, rows + n, "libm"),
               autovec = least_time(first, rows + n, "autovec");
        factors = factors && strcmp(show_times(libm / row->time), row->libm) == 0 &&
                  strcmp(show_times(autovec / row->time), row->autovec) == 0;
    }
    require(n > 20 && percents, "GB/s over the roof's are the percentage that is printed");
    require(n > 20 && factors,
            "the time of libm or autovec over a backend's is the factor that is printed");
    free(text);
}

/* ---- What a token costs ---- */

/* The record of the model with another number for how often its rotation is called; to be freed. */
static json_t *with_times(const json_t *records, int times)
{
    json_t *copy = json_deep_copy(records), *record, *one;
    size_t i, k;
    json_array_foreach(copy, i, record)
    {
        json_array_foreach(json_object_get(record, "cases"), k, one)
        {
            if (strcmp(record_text(one, "kernel"), "rope_half") == 0)
                json_object_set_new(one, "times", json_integer(times));
        }
    }
    return copy;
}

/* One timing of avx512, 176.86 ns, with another interval, which is taken over; to be freed. */
static json_t *with_interval(const json_t *records, json_t *interval)
{
    json_t *copy = json_deep_copy(records), *record;
    size_t i;
    json_array_foreach(copy, i, record)
    {
        if (strcmp(record_text(record, "case"), "rope_half/f32/given/llama-3.1-8b-decode") ==
                0 &&
            strcmp(record_text(record, "backend"), "avx512") == 0)
            json_object_set(record, "ci", interval);
    }
    json_decref(interval);
    return copy;
}

static void test_cost(const json_t *records)
{
    char *text = rendered("md", records, 0);
    require(contains(text, "- decode = 32 x 177 ns (`rope_half`)") &&
                contains(text, "- prefill exact = 32 x 135 us (`rope_half`) + ") &&
                contains(text, "us (`rope_table`)"),
            "what a token costs is told as the sum of the model's calls, each as often as it "
            "is made");
    require(contains(text, "| avx512 (default) | 5.66 us ±1 % | "),
            "by backend, the default named, with an interval"); /* 32 x 176.86 ns */
    require(contains(text, "takes **5.66 us**, with `libm` "), "and among the first lines");
    require(!contains(text, "| autovec_v4 | 7.3"), "a backend that is wrong has no cost");
    free(text);
    json_t *bare = with_interval(records, json_null());
    text = rendered("md", bare, 0);
    require(contains(text, "| avx512 (default) | 5.66 us noisy | "),
            "a sum of which one timing has no interval is not called exact");
    free(text);
    json_decref(bare);
    json_t *wide = with_interval(
        records, json_pack("{s:f,s:f,s:f}", "level", 0.99, "lo", 170.0, "hi", 200.0));
    text = rendered("md", wide, 0);
    require(contains(text, "| avx512 (default) | 5.66 us noisy | "),
            "one of which a timing is noisy is marked as that timing is");
    free(text);
    json_decref(wide);
    json_t *wrong = json_deep_copy(records);
    feed(wrong, "{s:s,s:s,s:s,s:s,s:s,s:s}", "t", "conf", "case", "rope_half/f32/given/odd",
         "kernel", "rope_half", "backend", "avx512", "suite", "vectors", "status", "fail");
    text = rendered("md", wrong, 0);
    require(contains(text, "### What a token") && !contains(text, "- decode = "),
            "nor is the sum told of a default that is wrong");
    free(text);
    json_decref(wrong);
    json_t *unknown = with_times(records, 0);
    text = rendered("console", unknown, 80);
    require(
        contains(text, "does not say in how many layers") && !contains(text, "decode ="),
        "nothing is added up where the configuration does not say how many layers there are");
    free(text);
    json_decref(unknown);
}

/* ---- The first screen ---- */

/* How many lines of a text come before the first with these words; -1: none has them. */
static int lines_before(const char *text, const char *what)
{
    const char *at = text ? strstr(text, what) : NULL;
    int n = 0;
    for (const char *p = text; at && p < at; p++)
        n += *p == '\n';
    return at ? n : -1;
}

static void test_first_screen(const json_t *records)
{
    static const char *const formats[] = { "console", "md", "html" };
    for (int i = 0; i < 3; i++) {
        char *text = rendered(formats[i], records, 80), sentence[96];
        const char *answer = text ? strstr(text, ": the default, ") : NULL,
                   *force = text ? strstr(text, "To force another backend: ") : NULL,
                   *machine = text ? strstr(text, "AMD EPYC") : NULL;
        snprintf(
            sentence, sizeof sentence,
            "%s: which backend, whether it is right and how to force another come before the "
            "machine",
            formats[i]);
        require(answer && force && machine && answer < force && force < machine &&
                    strstr(answer, "right in all of its ") < force,
                sentence);
        if (i < 2)
            require(lines_before(text, "To force another backend: ") < 24,
                    "on the first screen");
        free(text);
    }
}

/* Readings of 30 % to either side. */
static void test_noise_answer(const json_t *records)
{
    json_t *noisy = json_deep_copy(records), *record;
    size_t i;
    json_array_foreach(noisy, i, record)
    {
        double median = record_value(record, "median_ns", 0.0);
        json_object_set_new(json_object_get(record, "ci"), "lo", json_real(0.7 * median));
        json_object_set_new(json_object_get(record, "ci"), "hi", json_real(1.3 * median));
    }
    char *text = rendered("md", noisy, 0);
    require(
        contains(text,
                 "was timed at 4 shapes, all too noisy to tell who is fastest, and right") &&
            !contains(text, "at 0 of 4"),
        "the answer of a busy machine says that it is none, and that outputs are right");
    free(text);
    json_decref(noisy);
}

/* Both words stand in one line. */
static bool side_by_side(const char *text, const char *left, const char *right)
{
    for (const char *line = text; line && *line;) {
        size_t n = strcspn(line, "\n");
        const char *a = strstr(line, left), *b = a ? strstr(a, right) : NULL;
        if (b && b < line + n)
            return true;
        line += n + (line[n] != 0);
    }
    return false;
}

static void test_columns(const json_t *records)
{
    static const int widths[] = { 80, 100 };
    for (int i = 0; i < 2; i++) {
        char *text = rendered("console", records, widths[i]), sentence[96];
        const char *answers = text ? strstr(text, "\nLlama 3.1 8B\n") : NULL;
        snprintf(sentence, sizeof sentence, "the answers have time beside GB/s in %d columns",
                 widths[i]);
        require(side_by_side(answers, " time ", " GB/s ") &&
                    side_by_side(answers, " 135 us ", " 155 "),
                sentence);
        size_t longest = 0;
        for (const char *line = text; line && *line; line += strcspn(line, "\n") + 1) {
            size_t columns = 0;
            for (const char *p = line; *p && *p != '\n'; p++)
                columns += ((unsigned char)*p & 0xc0) != 0x80;
            bool command =
                strncmp(line, "    posenc", 10) == 0 || strstr(line, "posenc verify");
            longest = columns > longest && !command ? columns : longest;
        }
        snprintf(sentence, sizeof sentence, "no line is wider than %d columns", widths[i]);
        if (longest > (size_t)widths[i])
            printf("# %zu columns\n", longest);
        require(longest <= (size_t)widths[i], sentence);
        free(text);
    }
    char *narrow = rendered("console", records, 60);
    require(contains(narrow, "(no room for libm") && contains(narrow, " in 60 columns)"),
            "columns that a window has no room for are named");
    free(narrow);
}

/* ---- A report by model ---- */

/* The run as a report by model would have it, with a check of a kernel that fails; to be freed. */
static json_t *by_model(const json_t *records, const char *kernel)
{
    json_t *copy = json_deep_copy(records), *header = json_array_get(copy, 0);
    json_object_set_new(header, "by_model", json_true());
    json_array_append_new(copy, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "t", "conf",
                                          "case", "other/f32/given/broken", "kernel", kernel,
                                          "profile", "given", "backend", "avx2", "suite",
                                          "memory", "status", "fail", "reason",
                                          "wrote too much", "dtype", "f32"));
    return copy;
}

static void test_by_model(const json_t *records)
{
    json_t *narrow = by_model(records, "alibi");
    char *md = rendered("md", narrow, 0), *console = rendered("console", narrow, 100),
         *whole = rendered("md", records, 0);
    require(contains(whole, "\n| sinusoidal |") &&
                contains(whole, "Largest error of `sinusoidal`"),
            "a report of everything shows every kernel");
    require(md && !contains(md, "| sinusoidal |") && !contains(md, "`sinusoidal`") &&
                contains(md, "| rope_half |") && contains(md, "Largest error of `rope_table`"),
            "one by model its kernels alone, in matrix and errors");
    require(contains(md, "## 3 failed") && !contains(md, "wrote too much") &&
                contains(md, "1 is of kernels that are not used here: `alibi`."),
            "a failure elsewhere is counted and named");
    require(contains(console, "3 failed\n") && contains(console, "2 failed, ") &&
                contains(console, " of them are of kernels (2) that are not used here") &&
                contains(md, "of these checks are of kernels (2) that the model shown"),
            "and how many checks of how many kernels are not shown");
    free(md);
    free(console);
    free(whole);
    json_t *twice = json_deep_copy(narrow); /* and a run of everything on the same machine */
    json_array_extend(twice, (json_t *)records);
    md = rendered("md", twice, 0);
    require(contains(md, "| sinusoidal |"),
            "with a run of everything beside it nothing is left out");
    free(md);
    json_decref(twice);
    json_decref(narrow);
}

/* ---- Words ---- */

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; text && (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* What is explained is explained once, on the screen where it is met first. */
static void test_words(const json_t *records)
{
    static const struct {
        const char *word, *begins; /* and how its explanation does */
    } words[] = {
        { "roof", "the most GB/s" },        { "pair ulp", "ulp of the larger" },
        { "prefill", "a step that takes" }, { "decode", "a step that makes" },
        { "trust", "how far times" },       { "interval, ±", "where the median" },
        { "libm", "plain loops" },          { "autovec", "those loops" },
        { "bound by", "what alone" },       { "default", "the backend that" },
        { "evidence", "vectors are" },
    };
    static const char *const formats[] = { "console", "md", "html" };
    static const char *const shape[] = { "%s: %s", "- **%s**: %s", "<strong>%s</strong>: %s" };
    json_t *noisy = json_deep_copy(records);
    json_array_append_new(noisy, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "t", "conf", "case",
                                           "rope_half/f32/given/thin", "kernel", "rope_half",
                                           "profile", "given", "backend", "avx2", "suite",
                                           "accuracy", "status", "weak"));
    for (int f = 0; f < 3; f++) {
        char *text = rendered(formats[f], noisy, 200), explained[96], sentence[128];
        bool all = text != NULL;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            snprintf(explained, sizeof explained, shape[f], words[w].word, words[w].begins);
            const char *at = text ? strstr(text, explained) : NULL,
                       *met = text ? strstr(text, words[w].word) : NULL;
            const bool good = at && count(text, explained) == 1 && met <= at + 12;
            if (!good)
                printf("# %s: %s %d times\n", formats[f], words[w].word,
                       count(text, explained));
            all = all && good;
        }
        snprintf(sentence, sizeof sentence,
                 "%s: words are explained once, not before they are met", formats[f]);
        require(all, sentence);
        require(lines_before(text, "ulp of the larger") < lines_before(text, "Conformance") ||
                    f == 2,
                "near where they are met");
        require(contains(text, "passed on less than it takes"),
                "weak, too, where there is one");
        free(text);
    }
    char *text = rendered("console", records, 100);
    require(!contains(text, "weak"), "and not where there is none");
    free(text);
    json_decref(noisy);
}

int main(int argc, char **argv)
{
    char error[RECORDS_ERROR];
    json_t *records = json_array();
    if (argc != 2 || records_load(argv[1], records, error)) {
        fprintf(stderr, "test_pages: %s\n", argc == 2 ? error : "usage: test_pages run.jsonl");
        return 2;
    }
    test_quotients(records);
    test_cost(records);
    test_first_screen(records);
    test_noise_answer(records);
    test_columns(records);
    test_by_model(records);
    test_words(records);
    json_decref(records);
    return tap_end();
}
