/*
 * Static estimates are shown as what they are, beside results and without them, and change nothing
 * else in a report.  The records are tests/estimates.jsonl (invented numbers) and those of
 * test_reports.c.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/formats/grid.h"
#include "reports/report.h"
#include "rendered.h"
#include "conformance/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static json_t *both(const json_t *first, const json_t *second)
{
    json_t *all = json_copy((json_t *)first);
    json_array_extend(all, (json_t *)second);
    return all;
}

static void test_console(const json_t *estimates)
{
    char *text = rendered("console", estimates, 60);
    const char *title = text ? strstr(text, "Static estimates") : NULL;
    require(title && !strstr(title + 1, "Static estimates"),
            "console: one section, titled as what it is");
    require(!contains(text, "trust"), "console: a file of estimates is of no machine");
    require(contains(text, "  neon              cortex-a72  neoverse-n1\n"
                           "  lanes                      4            4\n"
                           "  rope_half               12.0         8.00\n"
                           "  rope_table exact        48.0            -\n"
                           "  alibi causal               -         14.0\n"),
            "console: cycles for 16 results by loop and core, the last of two estimates, - for "
            "none");
    require(contains(text, "  avx2              znver4  measured\n"
                           "  lanes                  8\n"
                           "  rope_half           2.00      2.20\n"),
            "console: a core that was at hand has its times beside the estimates");
    bool fits = text != NULL;
    for (const char *line = text; line && *line; line += strcspn(line, "\n") + 1)
        fits = fits && text_width(line) - text_width(line + strcspn(line, "\n")) <= 60;
    require(fits, "console: no line is wider than the window");
    free(text);
}

static void test_caveats(const json_t *estimates)
{
    char *text = rendered("md", estimates, 0);
    require(contains(text, "avx2 on znver4 0.50 to 3.00 (median 1.10)"),
            "the caveats say how far off the estimates of a core at hand were");
    require(contains(text, "cortex-a72 is taken for a Cortex-A57.") &&
                !contains(text, "taken for a own"),
            "and which core's model is another's");
    require(contains(text, "llvm-mca 19.1.7") && contains(text, "clang 19.1.7"),
            "and where the numbers come from");
    json_t *unmeasured = json_deep_copy(estimates);
    for (size_t i = 0; i < json_array_size(unmeasured); i++)
        json_object_del(json_array_get(unmeasured, i), "measured_per_vector");
    char *none = rendered("md", unmeasured, 0);
    require(contains(none, "was not measured") && !contains(none, "median"),
            "or that nobody knows how far off they are");
    free(text);
    free(none);
    json_decref(unmeasured);
}

static void test_markdown(const json_t *estimates)
{
    char *text = rendered("md", estimates, 0);
    require(contains(text, "## Static estimates (llvm-mca, not measured)\n") &&
                contains(text, "| neon |") && contains(text, "| rope_table exact | 48.0 | - |"),
            "md: the same tables");
    require(!contains(text, "## Method") && !contains(text, "To get this again"),
            "md: nothing is said of a machine");
    free(text);
}

/* What a report says of its results does not change when estimates lie beside them. */
static void test_beside(const json_t *run, const json_t *estimates)
{
    static const char *const formats[] = { "console", "md" };
    json_t *after = both(run, estimates), *before = both(estimates, run);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *alone = rendered(formats[i], run, 132), *last = rendered(formats[i], after, 132),
             *first = rendered(formats[i], before, 132), sentence[96];
        size_t n = alone ? strlen(alone) : 0;
        snprintf(sentence, sizeof sentence,
                 "%s: results are told as they are alone, in either order", formats[i]);
        require(n && last && first && strcmp(last, first) == 0 &&
                    strncmp(last, alone, n) == 0 && last[n] != 0 &&
                    !contains(alone, "Static estimates"),
                sentence);
        free(alone);
        free(last);
        free(first);
    }
    json_decref(after);
    json_decref(before);
}

static bool refused(const json_t *record, const char *named)
{
    char error[RECORDS_ERROR] = "", *line = json_dumps(record, JSON_COMPACT);
    json_t *list = json_array();
    FILE *in = tmpfile();
    bool no = in && line && fprintf(in, "\n%s\n", line) > 0 && fseek(in, 0, SEEK_SET) == 0 &&
              records_read(in, "text", list, NULL, error) != 0 && contains(error, "line 2") &&
              contains(error, named);
    if (!no)
        printf("# %s: %s\n", line, error);
    if (in)
        fclose(in);
    free(line);
    json_decref(list);
    return no;
}

static void test_refusals(const json_t *estimates)
{
    static const char *const members[] = { "kernel",
                                           "profile",
                                           "variant",
                                           "backend",
                                           "core",
                                           "tool",
                                           "cycles_per_element",
                                           "elements_per_vector" };
    bool all = true;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *bad = json_deep_copy(json_array_get(estimates, 1));
        json_object_del(bad, members[i]);
        all = all && refused(bad, members[i]);
        json_object_set_new(bad, members[i], json_string(i < 6 ? "" : "inf or so"));
        all = all && refused(bad, members[i]);
        json_object_set_new(bad, members[i], json_integer(-1));
        all = all && refused(bad, members[i]);
        json_decref(bad);
    }
    require(all, "a malformed estimate is refused, its line and member named");
    json_t *bad = json_deep_copy(json_array_get(estimates, 1));
    json_object_set_new(bad, "measured_per_vector", json_integer(0));
    require(refused(bad, "measured_per_vector"), "so is one that was measured to take no time");
    json_decref(bad);
}

/* A file may name any number of cores, of any length. */
static void test_many(const json_t *estimates)
{
    json_t *many = json_array();
    for (int i = 0; i < 100; i++) {
        char core[200];
        json_t *estimate = json_deep_copy(json_array_get(estimates, 1));
        snprintf(core, sizeof core, "%0*d", 1 + i, i);
        json_object_set_new(estimate, "core", json_string(core));
        json_object_set_new(estimate, "measured_per_vector", json_real(3.0));
        json_array_append_new(many, estimate);
    }
    struct node *root = report_make(many, NULL);
    const struct node *table = root && root->first ? root->first->first : NULL;
    require(table && table->kind == TABLE && table->table->n_columns <= TABLE_COLUMNS &&
                table_rows(table->table) == 2 && table->next->kind != TABLE,
            "a table holds as many cores as fit");
    document_free(root);
    char *text = rendered("console", many, 80);
    require(contains(text, "Static estimates"),
            "and estimates without a header are shown, too");
    free(text);
    json_decref(many);
}

int main(int argc, char **argv)
{
    char error[RECORDS_ERROR];
    json_t *estimates = json_array(), *run = json_array();
    if (argc != 3 || records_load(argv[1], estimates, error) ||
        records_load(argv[2], run, error)) {
        fprintf(stderr, "test_estimate: %s\n",
                argc == 3 ? error : "usage: test_estimate estimates.jsonl run.jsonl");
        return 2;
    }
    test_console(estimates);
    test_caveats(estimates);
    test_markdown(estimates);
    test_beside(run, estimates);
    test_refusals(estimates);
    test_many(estimates);
    json_decref(estimates);
    json_decref(run);
    return tap_end();
}
