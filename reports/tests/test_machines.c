/*
 * Runs of several machines are shown side by side.
 */
#define _POSIX_C_SOURCE 200809L
#include "machines.h"
#include "rendered.h"
#include "conformance/tap/tap.h"

static void feed_bench(json_t *records, const struct fed_machine *m, const char *id_of,
                       double fastest_us, double tie)
{
    for (int b = 0; m->backends[b]; b++)
        feed_time(records, "alibi", id_of,
                  (struct fed_time){ m->backends[b],
                                     b == 0   ? fastest_us
                                     : b == 1 ? fastest_us * tie
                                              : 4.0 * fastest_us,
                                     1.0, 0.1, 0.8 / (b + 1) });
}

/* Three files as posenc report reads them, one after the other. */
static json_t *three_machines(void)
{
    static const struct fed_file files[] = {
        { "a", &fed_avx512, "a", 0, 0, 12, .ends = NULL },
        { "b", &fed_avx2, "b", 0, 0, 9, .differs = 4, .ends = "killed" },
        { "c", &fed_arm, "c", 0, 0, 9, .ends = NULL },
    };
    static const char *const shapes[] = { "paper-prefill", "paper-decode", NULL };
    json_t *all = json_array();
    for (size_t i = 0; i < 3; i++) {
        json_t *records = fed_records(&files[i]);
        const bool ended = i != 1;
        json_t *footer =
            ended ? json_incref(json_array_get(records, json_array_size(records) - 1)) : NULL;
        if (ended)
            json_array_remove(records, json_array_size(records) - 1);
        feed_model(records, "alibi", shapes);
        feed_bench(records, files[i].machine, "paper-prefill", 10.0 + (double)i, 1.0);
        if (i != 2)
            feed_bench(records, files[i].machine, "paper-decode", 1.0, 2.0);
        if (footer)
            json_array_append_new(records, footer);
        json_array_extend(all, records);
        json_decref(records);
    }
    return all;
}

static bool fits(const char *text, size_t width)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line != 0) {
        size_t columns = 0;
        for (const char *p = line; *p && *p != '\n'; p++)
            columns += ((unsigned char)*p & 0xc0) != 0x80;
        if (columns > width) {
            printf("# %.*s\n", (int)strcspn(line, "\n"), line);
            return false;
        }
    }
    return true;
}

static void test_across(void)
{
    json_t *records = three_machines();
    char *text = rendered("console", records, 80), *wide = rendered("console", records, 120),
         *md = rendered("md", records, 0), *html = rendered("html", records, 0);
    const char *first = text ? strstr(text, "Machine 1") : NULL;
    require(text && strncmp(text, "3 machines\n", 11) == 0 && fits(text, 80) && wide &&
                fits(wide, 120),
            "three machines: they come first, within 80 and 120 columns");
    const char *names[] = { "amd-1a-02-1",         "intel-06-9e-d",
                            "arm-41-d4f-r0p1",     "partial",
                            "Conformance by CPU",  "The fastest by CPU",
                            "Backends that failed" };
    bool told = first != NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        told = told && strstr(text, names[i]) && strstr(text, names[i]) < first;
    require(told, "three machines: what they share is told before each by itself");
    require(contains(md, "| alibi | ● 48 | ✗ 3/27 | ● 27 |"),
            "three machines: a column for each CPU, checks of all its backends");
    require(contains(md, "| avx512 | ● 12 | cannot run | · |") &&
                contains(md, "| neon | cannot run | · | ● 9 |"),
            "three machines: what a CPU cannot run, and what it does not know");
    require(contains(html, "The fastest by CPU") &&
                contains(md, "| Paper Model | `alibi` | prefill | avx512 = avx2 80 % | none "
                             "conforms | neon = scalar 80 % |"),
            "three machines: the fastest on each that conforms, and its share of the roof");
    require(contains(md, "| decode | avx512 80 % | none conforms | · |"),
            "three machines: a shape that one of them did not time");
    if (getenv("SHOW"))
        fputs(getenv("SHOW")[0] == '8' ? text : wide, stderr);
    free(text);
    free(wide);
    free(md);
    free(html);
    json_decref(records);
}

int main(void)
{
    test_across();
    return tap_end();
}
