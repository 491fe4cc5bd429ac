/*
 * What binds a row, in the column `bound by`: of records as they are, and of such as were written before
 * they named a resource.  All records are made up.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/tap/tap.h"
#include "fed.h"
#include "rendered.h"

/* A row of 1000 GB/s at half of its roof; share 0: without a limit, resource "": without its name. */
struct bound {
    const char *shape, *resource, *kind;
    double share;
    const char *cell; /* what the column says */
};

static const struct bound bounds[] = {
    { "memory", "memory", "copy", 0.5, "50 % of memory" },
    { "conversion", "conversion", "f16", 0.61, "61 % of conversion (f16)" },
    { "ports", "ports", "table", 0.49, "49 % of ports (table)" },
    { "latency", "latency", "chain", 0.72, "72 % of latency (chain)" },
    { "calls", "calls", "call", 0.88, "88 % of calls" },
    { "old-memory", "", "", 0.0, "50 % of memory" },
    { "old-conversion", "", "f64 to f32", 0.75, "75 % of conversion (f64 to f32)" },
    { "later", "thermals", "fan", 0.9, "90 % of thermals (fan)" },
};
enum { N_BOUNDS = sizeof bounds / sizeof *bounds };

static void feed_bound(json_t *records, const struct bound *bound)
{
    feed_time(records, "alibi", bound->shape, (struct fed_time){ "avx2", 1.0, 1.0, 0.5, 0.5 });
    if (bound->share <= 0.0)
        return;
    json_t *row = json_array_get(records, json_array_size(records) - 1);
    json_t *limit = json_pack("{s:s,s:s,s:f,s:f}", "kind", bound->kind, "variant", "avx2",
                              "gbps", 1000.0 / bound->share, "ratio", bound->share);
    if (*bound->resource)
        json_object_set_new(limit, "resource", json_string(bound->resource));
    json_object_set_new(row, "limit", limit);
}

/* The line of a table that begins a case of the section on speed, or NULL; to be freed. */
static char *line_of(const char *text, const char *shape)
{
    char begins[64];
    snprintf(begins, sizeof begins, "| %s |", shape);
    const char *line = text ? strstr(text, "## Speed") : NULL;
    line = line ? strstr(line, begins) : NULL;
    return line ? strndup(line, strcspn(line, "\n")) : NULL;
}

static void one_row(const struct bound *bound)
{
    static const char *const backends[] = { "avx2", NULL };
    json_t *records = fed_run("alibi", backends);
    char sentence[128], cell[64];
    feed_bound(records, bound);
    char *md = rendered("md", records, 0), *line = line_of(md, bound->shape);
    snprintf(cell, sizeof cell, "| %s |", bound->cell);
    snprintf(sentence, sizeof sentence, "%s: %s, in Markdown", bound->shape, bound->cell);
    const bool good = contains(line, cell);
    require(good, sentence);
    if (!good)
        printf("# %s\n", line ? line : "no such line");
    char *console = rendered("console", records, 120), *html = rendered("html", records, 0);
    snprintf(sentence, sizeof sentence, "%s: and on a terminal and a page", bound->shape);
    require(contains(console, bound->cell) && contains(html, bound->cell) &&
                contains(console, "bound by"),
            sentence);
    free(html);
    free(console);
    free(line);
    free(md);
    json_decref(records);
}

/* What is printed beside it, divided. */
static void quotients(void)
{
    static const char *const backends[] = { "avx2", NULL };
    json_t *records = fed_run("alibi", backends);
    feed_bound(records, &(struct bound){ "off", "ports", "line", 0.5, "" });
    json_t *row = json_array_get(records, json_array_size(records) - 1);
    json_object_set_new(json_object_get(row, "limit"), "ratio", json_real(0.52));
    char *md = rendered("md", records, 0), *line = line_of(md, "off");
    require(contains(line, "line 2000 GB/s (avx2)") && contains(line, "50 % of ports (line)"),
            "the share is that of the rates that are printed");
    free(line);
    free(md);
    json_decref(records);
}

int main(void)
{
    for (int i = 0; i < N_BOUNDS; i++)
        one_row(&bounds[i]);
    quotients();
    return tap_end();
}
