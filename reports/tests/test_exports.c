/*
 * What other people's programs are given: numbers by name, in their formats.  Their rules are stated here
 * again, as they were read in those programs; cli/tests/exports.sh feeds the programs themselves where they
 * are installed.  All records are made up.
 */
#define _POSIX_C_SOURCE 200809L
#include "compared.h"
#include "conformance/tap/tap.h"
#include "rendered.h"

#include <ctype.h>
#include <math.h>

static const char *const nobody[] = { NULL };

/* A timing of each backend, one that was not timed, one compared, one counted. */
static json_t *results(void)
{
    json_t *records = fed_run("alibi", nobody);
    feed_time(records, "alibi", "prefill",
              (struct fed_time){ "avx2", 123.4567, 1.0, 0.2, 0.8 });
    feed_time(records, "alibi", "prefill", (struct fed_time){ "libm", 400.0, 2.0, 0.2, 0.2 });
    feed(records, "{s:s,s:s,s:s,s:s,s:s}", "t", "bench", "case", "alibi/f32/given/prefill",
         "kernel", "alibi", "backend", "neon", "refused", "not provided");
    feed_pair(records, (struct fed_pair){ "decode", "avx2", "slower", 1.075, true });
    feed_count(records, "prefill", "base", 4000);
    feed_count(records, "prefill", "head", 5000);
    return records;
}

static json_t *parsed(const char *format, const json_t *records)
{
    char *text = rendered(format, records, 0);
    json_error_t error;
    json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!json)
        printf("# %s: %s\n", format, text ? error.text : "not rendered");
    free(text);
    return json;
}

/* The entry of a list with that name, which no other has. */
static const json_t *named(const json_t *list, const char *name)
{
    const json_t *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(record_text(json_array_get(list, i), "name"), name) == 0) {
            found = json_array_get(list, i);
            n++;
        }
    return n == 1 ? found : NULL;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }

/* As the action does: a sign, blanks, and a number with nothing behind it. */
static double range_of(const char *range)
{
    const char *sign = strstr(range, "±");
    if (!sign)
        return -1.0;
    sign += strlen("±");
    sign += strspn(sign, " ");
    char *end;
    double value = isdigit((unsigned char)*sign) ? strtod(sign, &end) : -1.0;
    return value >= 0.0 && *end == '\0' ? value : -1.0;
}

static bool entry_of_the_action(const json_t *entry)
{
    static const char *const rescaled[] = { "s", "ms", "us", "ns", "µs", "/iter", "ops/" };
    const char *unit = record_text(entry, "unit");
    bool good =
        *record_text(entry, "name") && *unit &&
        json_is_number(json_object_get(entry, "value")) &&
        record_value(entry, "value", 0.0) > 0.0 &&
        (!json_object_get(entry, "range") || range_of(record_text(entry, "range")) >= 0.0);
    for (size_t i = 0; i < sizeof rescaled / sizeof *rescaled; i++)
        good = good && (i < 5 ? strcmp(unit, rescaled[i]) != 0 : !strstr(unit, rescaled[i]));
    return good;
}

static void test_gha(void)
{
    json_t *records = results(), *list = parsed("gha", records);
    bool entries = json_array_size(list) == 4, unique = entries;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        entries = entries && entry_of_the_action(entry);
        unique = unique && named(list, record_text(entry, "name")) == entry;
    }
    require(entries,
            "gha: every entry is one that the action reads, and what was not timed has none");
    require(unique, "gha: no name stands there twice");
    require(range_of("± 0.012") == 0.012 && range_of("0.012") < 0.0 &&
                range_of("± 0.012 (99 %)") < 0.0,
            "and the rule for ranges can fail");
    const json_t *avx2 = named(list, "alibi/f32/given/prefill/avx2"),
                 *libm = named(list, "alibi/f32/given/prefill/libm");
    require(near(record_value(avx2, "value", 0.0), 1.25) &&
                near(record_value(libm, "value", 0.0), 5.0),
            "gha: a timing is a multiple of its roof, and the slower one the larger");
    require(near(range_of(record_text(avx2, "range")), 0.0125),
            "gha: its range is the wider side of the interval, in the same unit");
    const json_t *pair = named(list, "alibi/f32/given/decode/avx2 head/base");
    require(near(record_value(pair, "value", 0.0), 1.075) &&
                near(range_of(record_text(pair, "range")), 0.02),
            "gha: a pair is the time of head over base's");
    require(near(record_value(named(list, "alibi/f32/given/prefill/avx2 instructions"), "value",
                              0.0),
                 5.0),
            "gha: a count is head's, for each element");
    json_decref(list);
    json_decref(records);
}

/* https://bencher.dev/bmf.json, and what Bencher says of names. */
static bool is_bmf(const json_t *all)
{
    const char *name, *measure;
    json_t *benchmark, *metric;
    bool good = json_is_object(all) && json_object_size(all) > 0;
    json_object_foreach((json_t *)all, name, benchmark)
    {
        good = good && *name && strlen(name) <= 1024 && json_is_object(benchmark) &&
               json_object_size(benchmark) > 0;
        json_object_foreach(benchmark, measure, metric)
        {
            const json_t *value = json_object_get(metric, "value"),
                         *lower = json_object_get(metric, "lower_value"),
                         *upper = json_object_get(metric, "upper_value");
            good = good && *measure && strlen(measure) <= 64 && json_is_number(value) &&
                   (!lower || json_is_number(lower)) && (!upper || json_is_number(upper)) &&
                   (!lower || json_number_value(lower) <= json_number_value(value)) &&
                   (!upper || json_number_value(upper) >= json_number_value(value));
            for (const char *p = measure; *p; p++)
                good = good &&
                       (islower((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '-');
        }
    }
    return good;
}

static double metric_of(const json_t *all, const char *name, const char *measure,
                        const char *value)
{
    return record_value(
        json_object_get(json_object_get(json_object_get(all, name), measure), value), "", -1.0);
}

static void test_bmf(void)
{
    json_t *records = results();
    feed_error(records, "alibi", "given",
               (struct fed_error){ "avx2", "prefill", "pair ulp", 0.94, 1.5 });
    feed_error(records, "alibi", "given",
               (struct fed_error){ "avx2", "broken", "ulp", (double)INFINITY, 1.5 });
    json_t *all = parsed("bmf", records);
    const char *prefill = "alibi/f32/given/prefill/avx2";
    require(is_bmf(all), "bmf: as the schema has it");
    json_t *not_one = json_pack("{s:{s:{s:s}}}", "x", "y", "value", "1");
    require(!is_bmf(not_one), "and the check for that can fail");
    json_decref(not_one);
    require(near(metric_of(all, prefill, "latency", "value"), 123456.7) &&
                near(metric_of(all, prefill, "latency", "lower_value"), 0.99 * 123456.7) &&
                near(metric_of(all, prefill, "latency", "upper_value"), 1.01 * 123456.7),
            "bmf: latency is ns, with its interval");
    require(near(metric_of(all, prefill, "roof-share", "value"), 0.8),
            "bmf: and the share of the roof");
    require(near(metric_of(all, prefill, "max-pair-ulp", "value"), 0.94),
            "bmf: an error is a measure of the same benchmark, by its metric");
    require(
        near(metric_of(all, prefill, "instructions-per-element", "value"), 5.0) &&
            near(metric_of(all, "alibi/f32/given/decode/avx2", "head-to-base", "upper_value"),
                 1.095),
        "bmf: counts and pairs");
    require(!json_object_get(all, "alibi/f32/given/broken/avx2") &&
                !json_object_get(all, "alibi/f32/given/prefill/neon"),
            "bmf: no infinity, and nothing of what was not timed");
    char *text = rendered("bmf", records, 0);
    require(text && !contains(text, "paper"), "bmf: names do not carry the CPU");
    free(text);
    json_decref(all);
    json_decref(records);
}

static bool entry_of_google(const json_t *e)
{
    static const char *const texts[] = { "name", "run_name", "run_type", "time_unit" };
    static const char *const numbers[] = { "family_index", "per_family_instance_index",
                                           "repetitions",  "repetition_index",
                                           "threads",      "iterations",
                                           "real_time",    "cpu_time" };
    bool good =
        record_value(e, "real_time", 0.0) > 0.0 && !json_object_get(e, "error_occurred");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        good = good && *record_text(e, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        good = good && json_is_number(json_object_get(e, numbers[i]));
    return good;
}

static void test_gbench(void)
{
    json_t *records = results(), *file = parsed("gbench", records);
    const json_t *list = json_object_get(file, "benchmarks"),
                 *context = json_object_get(file, "context");
    bool entries = json_array_size(list) == 4;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i);
        entries = entries && entry_of_google(e) && named(list, record_text(e, "name")) == e;
    }
    require(entries, "gbench: an entry a timing, each with a time and a name of its own");
    require(json_is_array(json_object_get(context, "caches")) &&
                json_is_integer(json_object_get(context, "num_cpus")) &&
                json_is_array(json_object_get(context, "load_avg")),
            "gbench: the context has caches, which Bencher asks for");
    const json_t *avx2 = named(list, "alibi/f32/given/prefill/avx2"),
                 *libm = named(list, "alibi/f32/given/prefill/libm");
    require(near(record_value(avx2, "real_time", 0.0), 123456.7) &&
                strcmp(record_text(avx2, "time_unit"), "ns") == 0,
            "gbench: the time is the median, in ns");
    require(record_value(avx2, "family_index", -1.0) ==
                    record_value(libm, "family_index", -2.0) &&
                record_value(libm, "per_family_instance_index", 0.0) == 1.0,
            "gbench: the backends of a case are a family");
    require(record_value(avx2, "instructions_per_element", 0.0) == 5.0 &&
                near(record_value(avx2, "bytes_per_second", 0.0), 1e15 / 123456.7),
            "gbench: counters, flat: bytes a second, and instructions");
    require(
        near(record_value(named(list, "alibi/f32/given/decode/avx2/base"), "real_time", 0.0),
             50.0) &&
            near(
                record_value(named(list, "alibi/f32/given/decode/avx2/head"), "real_time", 0.0),
                53.75),
        "gbench: a pair is two entries, base and head");
    json_decref(file);
    json_decref(records);
}

/* What else tells results apart. */
static void test_names(void)
{
    json_t *records = results();
    feed(records, "{s:s,s:s,s:s,s:s,s:f,s:i,s:{s:f}}", "t", "bench", "case",
         "alibi/f32/given/prefill", "kernel", "alibi", "backend", "avx2", "median_ns", 30.0,
         "threads", 4, "roof", "ratio", 0.5);
    for (int lanes = 4; lanes <= 8; lanes += 4)
        feed(records, "{s:s,s:s,s:s,s:s,s:f,s:i}", "t", "count", "case",
             "alibi/f32/given/count", "kernel", "alibi", "backend", "sve", "per_element",
             8.0 / lanes, "lanes", lanes);
    json_t *gha = parsed("gha", records), *gbench = parsed("gbench", records);
    require(named(gha, "alibi/f32/given/prefill/avx2/threads:4") &&
                named(gha, "alibi/f32/given/prefill/avx2") &&
                named(json_object_get(gbench, "benchmarks"),
                      "alibi/f32/given/prefill/avx2/threads:4"),
            "names: threads, where there are several");
    require(near(record_value(named(gha, "alibi/f32/given/count/sve/lanes:4 instructions"),
                              "value", 0.0),
                 2.0) &&
                near(record_value(named(gha, "alibi/f32/given/count/sve/lanes:8 instructions"),
                                  "value", 0.0),
                     1.0),
            "names: lanes of what was counted");
    json_decref(gha);
    json_decref(gbench);
    json_decref(records);
}

static void test_machines(void)
{
    json_t *records = fed_run("alibi", nobody);
    struct fed_time time = { "avx2", 100.0, 1.0, 0.2, 0.8 };
    feed_time(records, "alibi", "prefill", time);
    feed_machine(records, "stone/KVM", true);
    feed_time(records, "alibi", "prefill", time);
    json_t *gha = parsed("gha", records), *bmf = parsed("bmf", records),
           *gbench = parsed("gbench", records);
    const json_t *list = json_object_get(gbench, "benchmarks");
    const char *first = "paper: alibi/f32/given/prefill/avx2",
               *second = "stone/KVM: alibi/f32/given/prefill/avx2";
    require(named(gha, first) && named(gha, second) && json_array_size(gha) == 2,
            "gha: of several machines names begin with theirs");
    require(json_object_get(bmf, first) && json_object_get(bmf, second), "bmf: likewise");
    require(
        named(list, first) && named(list, second) &&
            contains(record_text(json_object_get(gbench, "context"), "machines"), "several"),
        "gbench: likewise, and the context says so");
    json_decref(gha);
    json_decref(bmf);
    json_decref(gbench);
    json_decref(records);
}

/* Files may hold any number, and nothing at all. */
static void test_odd(void)
{
    json_t *records = fed_run("alibi", nobody);
    feed_machine(records, "stone", true);
    static const char *const formats[] = { "gha", "bmf", "gbench" };
    bool empty = true;
    for (size_t i = 0; i < 3; i++) {
        json_t *json = parsed(formats[i], records);
        empty = empty && json;
        json_decref(json);
    }
    require(empty, "what has no timings is a list without entries");
    feed(records, "{s:s,s:s,s:s,s:s,s:s,s:f,s:{s:f},s:f}", "t", "bench", "case", "alibi/x",
         "kernel", "alibi", "backend", "avx2", "median_ns", "inf", "rounds", 1e308, "ci", "lo",
         -1e308, "gbps", 1e308);
    feed(records, "{s:s,s:s,s:s,s:s,s:f,s:{s:s}}", "t", "pair", "case", "alibi/y", "backend",
         "avx2", "verdict", "new", "ratio", 1e308, "base", "ns", "nan");
    bool all = true;
    for (size_t i = 0; i < 3; i++) {
        json_t *json = parsed(formats[i], records);
        char *text = rendered(formats[i], records, 0);
        all = all && json && !contains(text, "inf") && !contains(text, "nan");
        json_decref(json);
        free(text);
    }
    require(all, "numbers that nobody measured make no file that cannot be read");
    json_decref(records);
}

static bool badge_is(const json_t *records, const char *color, const char *message)
{
    json_t *badge = parsed("badge", records);
    bool good = record_value(badge, "schemaVersion", 0.0) == 1.0 &&
                strcmp(record_text(badge, "color"), color) == 0 &&
                contains(record_text(badge, "message"), message) &&
                contains(record_text(badge, "label"), "posenc");
    if (!good)
        printf("# %s, %s\n", record_text(badge, "color"), record_text(badge, "message"));
    json_decref(badge);
    return good;
}

static void test_badge(void)
{
    json_t *records = json_array();
    struct fed_check check = { "h1", "avx2", "pass", "", "" };
    feed_machine(records, "paper", true);
    require(badge_is(records, "lightgrey", "nothing was checked"),
            "badge: nothing is no success");
    feed_check(records, check);
    require(badge_is(records, "brightgreen", "1 check passed"), "badge: all passed");
    feed_pair(records, (struct fed_pair){ "decode", "avx2", "slower", 1.02, true });
    require(badge_is(records, "brightgreen", "1 slower"), "badge: slower within the budget");
    feed_pair(records, (struct fed_pair){ "decode", "avx2", "slower", 1.05, true });
    require(badge_is(records, "red", "1 slower"), "badge: slower beyond the budget");
    feed_pair(records, (struct fed_pair){ "decode", "avx2", "same", 1.0, false });
    feed_change(records, "h1", 0.5, 0.94, 1);
    require(badge_is(records, "red", "1 result worse"), "badge: a result that got worse");
    json_decref(records);
    records = fed_run("alibi", nobody);
    feed_check(records, check);
    require(badge_is(records, "red", "incomplete"), "badge: a run that ended early");
    feed(records, "{s:s,s:b}", "t", "footer", "complete", 1);
    require(badge_is(records, "green", "passed"), "badge: a quick run is no bright green");
    check.status = "crash";
    feed_check(records, check);
    require(badge_is(records, "red", "1 of 1 checks failed"), "badge: a crash");
    json_decref(records);
    records = json_array();
    feed_machine(records, "paper", true);
    feed(records, "{s:s,s:s}", "t", "machine", "grade", "C");
    feed_machine(records, "stone", true);
    feed(records, "{s:s,s:s}", "t", "machine", "grade", "B");
    require(badge_is(records, "yellow", "grade C to measure"),
            "badge: the worst of two machines");
    json_decref(records);
}

int main(void)
{
    test_gha();
    test_bmf();
    test_gbench();
    test_names();
    test_machines();
    test_odd();
    test_badge();
    return tap_end();
}
