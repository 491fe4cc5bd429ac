/*
 * Shards become the run that they are shares of, and what does not belong together is refused by
 * name; runs of several machines are shown side by side.
 */
#define _POSIX_C_SOURCE 200809L
#include "machines.h"
#include "rendered.h"
#include "conformance/tap/tap.h"

static const struct fed_file whole = { "whole", &fed_avx512, "w", 0, 0, 10, .ends = NULL };
#define SHARD(name, run_id, i, ...)                                                            \
    {                                                                                          \
        name, &fed_avx512, run_id, i, 3, 10, __VA_ARGS__                                       \
    }
#define FINE .ends = "whole"

/* The results of one kind among the records, without their surroundings. */
static json_t *results_of(const json_t *records)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(records); i++)
        if (strcmp(record_text(json_array_get(records, i), "t"), "conf") == 0)
            json_array_append(list, json_array_get(records, i));
    return list;
}

static size_t count(const json_t *records, const char *kind)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(records); i++)
        n += strcmp(record_text(json_array_get(records, i), "t"), kind) == 0;
    return n;
}

static bool same_results(const json_t *a, const json_t *b)
{
    json_t *x = results_of(a), *y = results_of(b);
    const bool same = json_array_size(x) > 0 && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static void test_union(void)
{
    const struct fed_file shards[] = { SHARD("r2", "c", 2, FINE), SHARD("r0", "a", 0, FINE),
                                       SHARD("r1", "b", 1, FINE) };
    char error[MERGE_ERROR];
    json_t *merged = json_array(), *notes = json_array(), *one = fed_records(&whole);
    const bool fine = fed_merge(shards, 3, false, merged, notes, error) == MERGE_FINE;
    require(
        fine && same_results(merged, one),
        "shards become the results of one run, in its order, whatever the order of the files");
    require(count(merged, "header") == 1 && count(merged, "env") == 1 &&
                count(merged, "part") == 3 && count(merged, "backend") == 5 &&
                json_array_size(json_object_get(json_array_get(merged, 0), "merged")) == 3,
            "one header names what was merged; what the shards have in common is there once");
    require(strcmp(record_text(json_array_get(merged, 0), "vectors.sha256"), "91c4") == 0 &&
                strcmp(record_text(json_array_get(merged, 0), "mode"), "quick") == 0 &&
                json_array_size(notes) == 0,
            "the header tells vectors and mode");

    /* What was merged may be merged again, with another machine. */
    struct merge_input input[2];
    json_array_append_new(merged, json_pack("{s:s,s:b}", "t", "footer", "complete", 1));
    json_t *other =
        fed_records(&(struct fed_file){ "arm", &fed_arm, "x", 0, 0, 4, .ends = NULL });
    json_t *again = json_array(), *header = json_pack("{s:s}", "t", "header");
    input[0] = (struct merge_input){ "merged", merged, { 0, false } };
    input[1] = (struct merge_input){ "arm", other, { 0, false } };
    require(merge_records(input, 2, false, header, again, notes, error) == MERGE_FINE &&
                count(again, "part") == 4 && count(again, "env") == 2 &&
                count(again, "conf") == count(one, "conf") + count(other, "conf"),
            "a merged file and a run of another machine");
    input[1].records = merged;
    json_array_clear(again);
    require(merge_records(input, 2, false, header, again, notes, error) == MERGE_REFUSED &&
                contains(error, "hold the same run"),
            "a merged file twice is refused");
    json_decref(header);
    json_decref(again);
    json_decref(other);
    json_decref(one);
    json_decref(merged);
    json_decref(notes);
}

/* Files that are not to be merged, the status, and what the message names. */
static const struct refused {
    const char *sentence;
    struct fed_file file[4];
    enum merge_status status;
    const char *named[3];
    bool mixed;
} refused[] = {
    { "a shard that is missing",
      { SHARD("r0", "a", 0, FINE), SHARD("r2", "c", 2, FINE) },
      MERGE_MISSING,
      { "shard 1 of 3", "verify on amd-1a-02-1/KVM" },
      false },
    { "two that are",
      { SHARD("r1", "a", 1, FINE) },
      MERGE_MISSING,
      { "shards 0, 2 of 3", "0 to 2" },
      false },
    { "a shard that is there twice",
      { SHARD("r0", "a", 0, FINE), SHARD("r1", "b", 1, FINE), SHARD("r2", "c", 2, FINE),
        SHARD("again", "d", 1, FINE) },
      MERGE_REFUSED,
      { "shard 1/3", "r1", "again" },
      false },
    { "a file that is there twice",
      { SHARD("r0", "a", 0, FINE), SHARD("copy", "a", 0, FINE) },
      MERGE_REFUSED,
      { "r0 and copy", "same run" },
      false },
    { "a shard that was interrupted",
      { SHARD("r0", "a", 0, FINE), SHARD("r1", "b", 1, .ends = "interrupted"),
        SHARD("r2", "c", 2, FINE) },
      MERGE_REFUSED,
      { "r1: is partial", "--resume r1" },
      false },
    { "a shard that was killed",
      { SHARD("r0", "a", 0, FINE), SHARD("r1", "b", 1, .ends = "killed"),
        SHARD("r2", "c", 2, FINE) },
      MERGE_REFUSED,
      { "r1: line ", "ends early", "--resume r1" },
      false },
    { "a whole run that was killed",
      { { "w", &fed_arm, "w", 0, 0, 3, .ends = "killed" } },
      MERGE_REFUSED,
      { "w: line ", "ends early" },
      false },
    { "a shard of other vectors",
      { SHARD("r0", "a", 0, FINE), SHARD("r1", "b", 1, .vectors = "77aa"),
        SHARD("r2", "c", 2, FINE) },
      MERGE_REFUSED,
      { "r1", "77aa", "91c4" },
      false },
    { "a machine with other vectors",
      { { "w", &fed_arm, "w", 0, 0, 3, .vectors = "77aa" },
        { "x", &fed_avx2, "x", 0, 0, 3, .ends = NULL } },
      MERGE_REFUSED,
      { "x: its vectors are 91c4", "77aa" },
      false },
    { "a shard of another mode",
      { SHARD("r0", "a", 0, FINE), SHARD("r1", "b", 1, .mode = "full"),
        SHARD("r2", "c", 2, FINE) },
      MERGE_REFUSED,
      { "r1", "mode", "full" },
      false },
    { "a shard of another suite",
      { SHARD("r0", "a", 0, FINE), SHARD("r1", "b", 1, .suite = "vectors"),
        SHARD("r2", "c", 2, FINE) },
      MERGE_REFUSED,
      { "r1", "--suite", "vectors" },
      false },
    { "a shard of another version",
      { SHARD("r0", "a", 0, FINE), SHARD("r1", "b", 1, .version = "0.2.0"),
        SHARD("r2", "c", 2, FINE) },
      MERGE_REFUSED,
      { "r1", "tool.version", "0.2.0" },
      false },
    { "shards of two runs that were cut otherwise",
      { SHARD("r0", "a", 0, FINE),
        SHARD("r1", "b", 1, FINE),
        SHARD("r2", "c", 2, FINE),
        { "r3", &fed_avx512, "d", 3, 4, 10, .ends = NULL } },
      MERGE_REFUSED,
      { "r3", "shard.n", "4" },
      false },
    { "results of one machine that differ",
      { { "w", &fed_arm, "w", 0, 0, 3, .ends = NULL },
        { "x", &fed_arm, "x", 0, 0, 3, .differs = 2 } },
      MERGE_REFUSED,
      { "x: alibi/f32/given/case-2 of neon on arm-41-d4f-r0p1 differs", "w" },
      false },
    { "shards that ran on two CPUs",
      { SHARD("r0", "a", 0, FINE),
        { "r1", &fed_avx2, "b", 1, 3, 10, .ends = NULL },
        SHARD("r2", "c", 2, FINE) },
      MERGE_MISSING,
      { "shard 1 of 3", "amd-1a-02-1/KVM", "--mixed" },
      false },
    { "of shards of two CPUs one that is missing",
      { SHARD("r0", "a", 0, FINE), { "r1", &fed_avx2, "b", 1, 3, 10, .ends = NULL } },
      MERGE_MISSING,
      { "shard 2 of 3" },
      true },
};

static void test_refusals(void)
{
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        const struct refused *r = &refused[k];
        char error[MERGE_ERROR], sentence[128];
        json_t *notes = json_array();
        size_t n = 0;
        while (n < 4 && r->file[n].name)
            n++;
        bool right = fed_merge(r->file, n, r->mixed, NULL, notes, error) == r->status;
        for (int i = 0; i < 3 && r->named[i]; i++)
            right = right && contains(error, r->named[i]);
        if (!right)
            printf("# %s\n", error);
        snprintf(sentence, sizeof sentence, "refused: %s", r->sentence);
        require(right, sentence);
        json_decref(notes);
    }
}

static void test_attempts(void)
{
    const struct fed_file shards[] = { SHARD("r0", "a", 0, FINE),
                                       SHARD("r1", "b", 1, .ends = "killed", .mode = "full"),
                                       SHARD("r2", "c", 2, FINE), SHARD("r1-2", "d", 1, FINE) };
    char error[MERGE_ERROR];
    json_t *merged = json_array(), *notes = json_array(), *one = fed_records(&whole);
    require(fed_merge(shards, 4, false, merged, notes, error) == MERGE_FINE &&
                same_results(merged, one) && json_array_size(notes) == 1 &&
                contains(json_string_value(json_array_get(notes, 0)), "r1 is passed over") &&
                contains(json_string_value(json_array_get(notes, 0)), "r1-2 has it"),
            "an attempt that did not finish is passed over beside one that did, and said");
    json_array_clear(merged);
    json_array_clear(notes);
    const struct fed_file twice[] = { { "w", &fed_arm, "w", 0, 0, 3, .ends = NULL },
                                      { "x", &fed_arm, "x", 0, 0, 5, .ends = NULL } };
    require(fed_merge(twice, 2, false, merged, notes, error) == MERGE_FINE &&
                count(merged, "conf") == 15 &&
                contains(json_string_value(json_array_get(notes, 0)), "9 results"),
            "the same results of one machine are kept once, and said");
    json_array_clear(merged);
    const struct fed_file mixed[] = { SHARD("r0", "a", 0, FINE),
                                      { "r1", &fed_avx2, "b", 1, 3, 10, .ends = NULL },
                                      SHARD("r2", "c", 2, FINE) };
    const bool fine = fed_merge(mixed, 3, true, merged, notes, error) == MERGE_FINE;
    json_array_append_new(merged, json_pack("{s:s,s:b}", "t", "footer", "complete", 1));
    char *text = rendered("console", merged, 80);
    require(fine && contains(text, "shards 0, 2 of 3") && contains(text, "shard 1 of 3"),
            "--mixed: shards of two CPUs, and each says which it ran");
    free(text);
    json_decref(one);
    json_decref(merged);
    json_decref(notes);
}

/* ---- Several machines in a report ---- */

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
    test_union();
    test_refusals();
    test_attempts();
    test_across();
    return tap_end();
}
