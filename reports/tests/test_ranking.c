/*
 * Noise does not become advice: what reports say of timings that cannot tell, that can, and that cannot
 * be.  All records are made up.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/ranking.h"
#include "conformance/tap/tap.h"
#include "fed.h"
#include "rendered.h"

#include <math.h>

static const char *const one_shape[] = { "paper-prefill", NULL };
static const char *const two_shapes[] = { "paper-prefill", "paper-decode", NULL };

/* A run with a model's shapes, each timed on the same backends; the first of them is the default. */
static json_t *timed(const char *kernel, const char *const *shapes, const struct fed_time *time,
                     size_t per_shape)
{
    const char *backends[RANKED] = { NULL };
    for (size_t i = 0; i < per_shape; i++)
        backends[i] = time[i].backend;
    json_t *records = fed_run(kernel, backends);
    feed_model(records, kernel, shapes);
    for (size_t s = 0; shapes[s]; s++)
        for (size_t i = 0; i < per_shape; i++)
            feed_time(records, kernel, shapes[s], time[s * per_shape + i]);
    return records;
}

static bool says(const json_t *records, const char *format, const char *what)
{
    char *text = rendered(format, records, 100);
    bool found = contains(text, what);
    free(text);
    return found;
}

static bool advises(const json_t *records, const char *line)
{
    return says(records, "md", line) && says(records, "console", line) &&
           says(records, "html", line) && says(records, "md", "posenc_select()");
}

/* No format names another backend for posenc_select(). */
static bool stays(const json_t *records)
{
    return !says(records, "md", "posenc_select()") &&
           !says(records, "console", "posenc_select()") &&
           !says(records, "html", "posenc_select()") &&
           says(records, "md", "The default stays");
}

/* Nor is the default called slower at one of the shapes. */
static bool is_praised(const json_t *records)
{
    return stays(records) && !says(records, "console", "% slower") &&
           !says(records, "md", "% slower");
}

/* ---- Examples that were met ---- */

static void test_gpt2(void)
{
    static const struct fed_time time[] = {
        { "avx512", 40.0, 6.0, 0.4, 0 },     { "avx2", 38.0, 5.0, 0.4, 0 },
        { "autovec_v3", 37.0, 5.0, 0.4, 0 }, { "avx512", 0.10, 7.0, 0.4, 0 },
        { "avx2", 0.098, 6.0, 0.4, 0 },      { "autovec_v3", 0.095, 6.0, 0.4, 0 },
    };
    json_t *records = timed("learned_add", two_shapes, time, 3);
    require(is_praised(records) && says(records, "md", "autovec_v3 = avx2 = avx512") &&
                says(records, "md", "avx512 (tie)"),
            "two ties at two shapes are no reason to leave the default (GPT-2, autovec_v3)");
    json_decref(records);
}

static void test_noisy_ties(void)
{
    static const struct fed_time time[] = {
        { "avx512", 14.0, 54.0, 1.0, 0 },
        { "avx2", 13.0, 48.0, 1.0, 0 },
        { "scalar", 9.0, 40.0, 1.0, 0 },
        { "libm", 12.0, 44.0, 1.0, 0 },
    };
    json_t *records = timed("t5_bias", one_shape, time, 4);
    require(is_praised(records) && says(records, "console", "too noisy to tell") &&
                says(records, "md", "too noisy to tell"),
            "four ties at 40 to 54 % recommend nobody (t5_bias, scalar)");
    require(!says(records, "console", "fastest\n") && says(records, "console", "noisy") &&
                says(records, "html", "4 of 4 timings are noisy: ") &&
                says(records, "md", "4 of 4 timings are noisy: ") &&
                says(records, "console", "timings are noisy"), /* it breaks its lines */
            "all of them are marked, and the mark is explained");
    json_decref(records);
}

static void test_wide(void)
{
    static const struct fed_time time[] = {
        { "avx2", 180.0, 1.0, 0.4, 0 },
        { "avx512", 172.0, 1024.4, 0.4, 0 },
    };
    json_t *records = timed("alibi", one_shape, time, 2);
    char *text = rendered("console", records, 100);
    const char *table = text ? strstr(text, "+-") : NULL,
               *wide = table ? strstr(table, "172 us") : NULL,
               *narrow = table ? strstr(table, "180 us") : NULL;
    require(wide && narrow && strstr(wide, "noisy") && strstr(wide, "noisy") < narrow &&
                strstr(narrow, "fastest"),
            "172 us with an interval of 1024 % is not the fastest");
    require(says(records, "md", "**avx2**; noisy: avx512") &&
                says(records, "console", "avx2 (1 noisy)") && is_praised(records),
            "but is named as one that might be");
    free(text);
    json_decref(records);
}

static void test_skipped(void)
{
    static const struct fed_time time[] = {
        { "avx512", 100.0, 1.0, 0.0, 0 },
        { "avx2", 105.0, 1.0, 0.0, 0 },
        { "scalar", 107.0, 9.0, 0.0, 0 },
        { "libm", 120.0, 1.0, 0.0, 0 },
    };
    json_t *records = timed("alibi", one_shape, time, 4);
    require(says(records, "md", "**avx512 = avx2 = scalar**"),
            "no tie skips a row that is faster than it");
    json_decref(records);
}

static void test_outrun(void)
{
    static const struct fed_time time[] = {
        { "avx512", 30.0, 12.0, 0.4, 0 },
        { "scalar", 900.0, 1.0, 0.4, 0 },
    };
    json_t *records = timed("alibi", one_shape, time, 2);
    require(says(records, "md", "**too noisy to tell**") &&
                !says(records, "console", " fastest\n") && is_praised(records),
            "the one that is known well is not the fastest where a noisy one is beyond reach");
    json_decref(records);
}

/* ---- The rule ---- */

static void require_advice(const char *name, const char *line, const char *const *shapes,
                           const struct fed_time *time, size_t per_shape)
{
    json_t *records = timed("alibi", shapes, time, per_shape);
    require(line ? advises(records, line) : stays(records), name);
    json_decref(records);
}

static void test_advice(void)
{
    static const struct fed_time clear[] = { { "avx512", 110.0, 1.0, 0.2, 0 },
                                             { "avx2", 100.0, 1.0, 0.2, 0 } };
    require_advice("a backend that is faster beyond doubt is named", "alibi avx2", one_shape,
                   clear, 2);
    static const struct fed_time small[] = { { "avx512", 102.5, 0.1, 0.2, 0 },
                                             { "avx2", 100.0, 0.1, 0.2, 0 } };
    require_advice("one that gains 2.5 % is not, however narrow the intervals", NULL, one_shape,
                   small, 2);
    static const struct fed_time copies[] = { { "avx512", 110.0, 1.0, 9.0, 0 },
                                              { "avx2", 100.0, 1.0, 9.0, 0 } };
    require_advice("nor where a copy of a backend is as far from itself", NULL, one_shape,
                   copies, 2);
    static const struct fed_time wild[] = { { "avx512", 300.0, 1.0, 12.0, 0 },
                                            { "avx2", 100.0, 1.0, 12.0, 0 } };
    require_advice("a copy 12 % from itself makes every row of its case noisy", NULL, one_shape,
                   wild, 2);
    static const struct fed_time beyond[] = { { "avx512", 300.0, 1.0, 0.2, 0.5 },
                                              { "avx2", 50.0, 8.0, 0.2, 3.0 } };
    require_advice("three times the roof, to 8 %, is not believed", NULL, one_shape, beyond, 2);
    static const struct fed_time both[] = {
        { "avx512", 110.0, 1.0, 0.2, 0 },
        { "avx2", 70.0, 1.0, 0.2, 0 },
        { "avx512", 100.0, 1.0, 0.2, 0 },
        { "avx2", 110.0, 1.0, 0.2, 0 },
    };
    require_advice("a backend that loses at another shape is not named", NULL, two_shapes, both,
                   2);
    static const struct fed_time half[] = {
        { "avx512", 110.0, 1.0, 0.2, 0 },
        { "avx2", 70.0, 1.0, 0.2, 0 },
        { "avx512", 100.0, 30.0, 0.2, 0 },
        { "avx2", 110.0, 1.0, 0.2, 0 },
    };
    require_advice("nor one of which nothing is known at another shape", NULL, two_shapes, half,
                   2);
    static const struct fed_time three[] = { { "scalar", 200.0, 1.0, 0.2, 0 },
                                             { "avx512", 100.1, 1.0, 0.2, 0 },
                                             { "avx2", 100.0, 1.0, 0.2, 0 } };
    require_advice("of two that tie the one is named that the records list first",
                   "alibi avx512", one_shape, three, 3);
}

/* ---- Who is wrong ---- */

static void feed_wrong(json_t *records, const char *backend, const char *shape)
{
    char id[96];
    snprintf(id, sizeof id, "alibi/f32/given/%s", shape);
    feed(records, "{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "t", "bench", "case", id, "kernel", "alibi",
         "profile", "given", "backend", backend, "family", backend, "refused",
         "wrong: got 1 want 2, not the same bits, at head 3");
}

static void test_wrong_output(void)
{
    static const struct fed_time time[] = {
        { "avx512", 110.0, 1.0, 0.2, 0 }, { "avx2", 100.0, 1.0, 0.2, 0 },
        { "scalar", 900.0, 1.0, 0.2, 0 }, { "avx512", 99.0, 1.0, 0.2, 0 },
        { "avx2", 100.0, 1.0, 0.2, 0 },   { "scalar", 900.0, 1.0, 0.2, 0 }
    };
    json_t *records = timed("alibi", two_shapes, time, 3);
    require(says(records, "md", "and right wherever it was timed") &&
                !says(records, "md", "not timed**"),
            "outputs that bench compared are not called unchecked");
    feed_wrong(records, "avx2", "paper-decode");
    require(says(records, "console", "1 output was wrong, and not timed: avx2 at") &&
                says(records, "md", "avx2` at alibi/f32/given/paper-decode: got 1 want 2") &&
                says(records, "html", "at head 3") && says(records, "md", "The default stays"),
            "an output that bench found wrong is said on the first screen");
    feed_wrong(records, "avx512", "paper-decode");
    require(says(records, "console", "2 outputs were wrong, and not timed; the first:") &&
                says(records, "md", "avx512 (does NOT conform)") &&
                says(records, "md", "**wrong**: its output at 1 of them") &&
                says(records, "md", "**The default is wrong** for `alibi` (avx512)") &&
                !says(records, "md", "The default stays"),
            "a default whose output is wrong does not stay");
    json_decref(records);
}

static void test_wrong_default(void)
{
    static const struct fed_time time[] = { { "avx512", 110.0, 1.0, 0.2, 0 },
                                            { "avx2", 100.0, 1.0, 0.2, 0 } };
    json_t *records = timed("alibi", one_shape, time, 2);
    feed(records, "{s:s,s:s,s:s,s:s,s:s,s:s}", "t", "conf", "case", "alibi/f32/given/odd",
         "kernel", "alibi", "backend", "avx512", "suite", "vectors", "status", "fail");
    require(says(records, "console", "The default is wrong for alibi (avx512)") &&
                !says(records, "md", "The default stays"),
            "nor does one that fails a check");
    require(says(records, "md", "is not the fastest at any of 1 shape,"),
            "a default that is nowhere the fastest is not praised for none of them");
    json_decref(records);
}

/* ---- Intervals ---- */

static void test_intervals(void)
{
    struct bench_row a = { .refused = "",
                           .median = 100.0,
                           .lo = 99.0,
                           .hi = 101.0,
                           .level = 0.99 },
                     b = a;
    b.median = 104.0, b.lo = 101.0, b.hi = 105.0;
    require(rows_meet(&a, &b) && !is_faster(&a, &b), "intervals that touch meet");
    b.lo = 101.5;
    require(!rows_meet(&a, &b) && is_faster(&a, &b) && !is_faster(&b, &a),
            "apart, and by 4 %: faster");
    b.level = 0.0;
    require(is_noisy(&b) && isinf(row_width(&b)) && !is_faster(&a, &b),
            "a row without an interval decides nothing");
    a.lo = 89.0;
    require(is_noisy(&a), "the wider side of an interval counts");
}

int main(void)
{
    test_gpt2();
    test_noisy_ties();
    test_wide();
    test_skipped();
    test_outrun();
    test_advice();
    test_wrong_output();
    test_wrong_default();
    test_intervals();
    return tap_end();
}
