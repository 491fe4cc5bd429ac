/*
 * The worst error shows the worst of each metric, and no backend is painted as a choice for a difference
 * that is none.  All records are made up.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/show.h"
#include "reports/tradeoff.h"
#include "conformance/tap/tap.h"
#include "fed.h"
#include "rendered.h"

#include <math.h>

static const char *const shapes[] = { "paper-table", NULL };

static bool says(const json_t *records, const char *format, const char *what)
{
    char *text = rendered(format, records, 132);
    bool found = contains(text, what);
    free(text);
    return found;
}

/* Plain loops judged in ulp below 2^10 and by their absolute error beyond, where a cosine near its zero
 * may have the wrong sign. */
static const struct fed_error loops[] = {
    { "libm", "scan-p2e10", "ulp", 0.4999, 1.0 },
    { "libm", "scan-p2e17", "abs", 3.0e-8, 3.1e-8 },
    { "libm", "scan-p2e31", "abs", 2.062876e-7, 5.07e-7 },
    { "libm", "search-p2e31", "abs", 1.2e-7, 5.07e-7 },
    { "libm", "canaries", "exact", 0.0, 0.0 },
};

static json_t *loops_alone(void)
{
    static const char *const backends[] = { "libm", NULL };
    json_t *records = fed_run("sinusoidal", backends);
    feed_model(records, "sinusoidal", shapes);
    feed_time(records, "sinusoidal", shapes[0],
              (struct fed_time){ "libm", 100.0, 1.0, 0.2, 0 });
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        feed_error(records, "sinusoidal", "given", loops[i]);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        feed_error(records, "sinusoidal", "exact", loops[i]);
    return records;
}

static void test_both(void)
{
    json_t *records = loops_alone();
    require(says(records, "md", "0.50 ulp (limit 1), 2.1e-07 abs (limit 5.07e-07) from 2^10") &&
                says(records, "console", "0.50 ulp, 2.1e-07 abs from 2^10"),
            "beside a speed stand the ulp and the absolute error, and from where on");
    require(says(records, "md", "| 0.50 ulp | 3.0e-08 abs | 2.1e-07 abs | below 2^10 |"),
            "by position: what each range says");
    require(says(records, "md", "| libm | 0.50 ulp | 1 |") &&
                says(records, "md",
                     "| libm | 2.1e-07 abs | 5.07e-07 | position 7; judged so from 2^10"),
            "and each metric has its line where the errors are listed");
    json_decref(records);
}

/* ---- What is found ---- */

static struct worst worst_of_three(const struct fed_error *errors)
{
    static const char *const backends[] = { "x", NULL };
    static struct results r;
    static json_t *records;
    struct worst worst;
    if (records) {
        results_free(&r);
        json_decref(records);
    }
    records = fed_run("alibi", backends);
    for (int i = 0; i < 3; i++)
        feed_error(records, "alibi", "given", errors[i]);
    results_make(records, 0, &r);
    worst_errors(&r, &(struct worst_of){ .kernel = "alibi" }, &worst);
    return worst;
}

/* A golden case of a table times 3, and one of the model's own scale. */
static void test_scale(void)
{
    static const char *const backends[] = { "libm", NULL };
    static const double scales[] = { 1.0, 3.0, 0.5 };
    static const double errors[] = { 0.8, 2.0, 1.2 };
    json_t *records = fed_run("sinusoidal", backends);
    struct results r;
    struct worst worst;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "d64-%d", i);
        feed_error(records, "sinusoidal", "exact",
                   (struct fed_error){ "libm", name, "ulp", errors[i], 2.5 });
        json_object_set_new(json_array_get(records, json_array_size(records) - 1), "scale",
                            json_real(scales[i]));
    }
    struct bench_row timed = { .kernel = "sinusoidal",
                               .dtype = "f32",
                               .profile = "exact",
                               .backend = "libm",
                               .scale = 1 };
    results_make(records, 0, &r);
    worst_of_row(&r, &timed, &worst);
    require(worst.n == 1 && worst.of[0]->max == 0.8,
            "the error of a table times 3 is none of a model's without a scale");
    timed.scale = 0.5;
    worst_of_row(&r, &timed, &worst);
    require(worst.n == 1 && worst.of[0]->max == 1.2, "but that of its own scale is");
    worst_errors(&r, &(struct worst_of){ .kernel = "sinusoidal" }, &worst);
    require(worst.n == 1 && worst.of[0]->max == 2.0, "and among all errors it is listed");
    results_free(&r);
    json_decref(records);
}

/* Whatever is printed, what passed reads as what passed, and what failed as what failed. */
static void test_judged(void)
{
    static const struct {
        double max, limit;
        const char *metric, *error, *shown;
    } all[] = {
        { 2.9802325e-08, 2.99e-08, "abs", "2.98e-08 abs", "2.99e-08" },
        { 2.06e-07, 5.07e-07, "abs", "2.1e-07 abs", "5.07e-07" },
        { 1.9999, 2.0, "ulp", "2.00 ulp", "2" },
        { 2.0000001, 2.0, "ulp", "2.0000001 ulp", "2" },
        { 1.4999999, 1.49999995, "pair_ulp", "1.50 pair ulp", "1.5" },
        { 0.0, 0.0, "exact", "same bits", "0" },
        { 3.0, 0.0, "exact", "3 differ", "0" },
        { HUGE_VAL, 1.0, "ulp", "infinite ulp", "1" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct shown_error shown = show_judged(all[i].max, all[i].limit, all[i].metric);
        require(strcmp(shown.error, all[i].error) == 0 &&
                    strcmp(shown.limit, all[i].shown) == 0,
                all[i].error);
    }
}

static void test_metrics(void)
{
    char text[WORST_TEXT];
    static const struct fed_error mixed[] = { { "x", "a", "abs", 1e-9, 1e-3 },
                                              { "x", "b", "pair_ulp", 1.4, 2.0 },
                                              { "x", "c", "ulp", 0.6, 0.5 } };
    struct worst worst = worst_of_three(mixed);
    require(worst.n == 3 && strcmp(worst_text(&worst, false, text),
                                   "0.60 ulp, 1.40 pair ulp, 1.0e-09 abs") == 0,
            "no metric hides another, however much of its limit was used");
    static const struct fed_error none[] = { { "x", "a", "ulp", 0.2, 1.0 },
                                             { "x", "b", "ulp", (double)NAN, 1.0 },
                                             { "x", "c", "ulp", 0.6, 1.0 } };
    worst = worst_of_three(none);
    require(worst.n == 1 && isnan(worst.of[0]->max), "a value that is none is the worst");
    static const struct fed_error differ[] = { { "x", "a", "exact", 0.0, 0.0 },
                                               { "x", "b", "exact", 3.0, 0.0 },
                                               { "x", "c", "ulp", 0.5, 1.0 } };
    worst = worst_of_three(differ);
    require(strcmp(worst_text(&worst, false, text), "0.50 ulp, 3 differ") == 0,
            "bits that differ are said beside an ulp");
    static const struct fed_error same[] = { { "x", "a", "exact", 0.0, 0.0 },
                                             { "x", "b", "exact", 0.0, 0.0 },
                                             { "x", "c", "exact", 0.0, 0.0 } };
    worst = worst_of_three(same);
    require(strcmp(worst_text(&worst, false, text), "same bits") == 0 && worst_is_exact(&worst),
            "same bits where that is all there is to say");
}

/* ---- Accuracy against speed ---- */

static enum point_kind kind_of(const json_t *records, const char *backend)
{
    struct results r;
    struct point points[RANKED];
    int kind = -1;
    if (results_make(records, 0, &r))
        return BEATEN;
    for (size_t i = tradeoff_points(&r, "alibi", points); i-- > 0;)
        if (strcmp(points[i].bench->backend, backend) == 0)
            kind = (int)points[i].kind;
    results_free(&r);
    return (enum point_kind)kind;
}

static void test_tradeoff(void)
{
    static const char *const backends[] = { "fast",  "twin", "slow", "right",
                                            "loops", "wide", NULL };
    static const struct fed_time time[] = {
        { "fast", 10.0, 1.0, 0.2, 0 },   { "twin", 10.2, 1.0, 0.2, 0 },
        { "slow", 1000.0, 1.0, 0.2, 0 }, { "right", 500.0, 1.0, 0.2, 0 },
        { "loops", 900.0, 1.0, 0.2, 0 }, { "wide", 600.0, 40.0, 0.2, 0 },
    };
    static const struct fed_error error[] = {
        { "fast", "a", "ulp", 1.001, 2.0 },  { "twin", "a", "ulp", 0.999, 2.0 },
        { "slow", "a", "ulp", 1.000, 2.0 },  { "right", "a", "ulp", 0.5, 1.0 },
        { "loops", "a", "ulp", 1.001, 2.0 }, { "loops", "b", "abs", 2e-7, 5e-7 },
        { "wide", "a", "ulp", 0.5, 1.0 },
    };
    json_t *records = fed_run("alibi", backends);
    for (size_t i = 0; i < sizeof time / sizeof *time; i++)
        feed_time(records, "alibi", shapes[0], time[i]);
    for (size_t i = 0; i < sizeof error / sizeof *error; i++)
        feed_error(records, "alibi", "given", error[i]);
    require(kind_of(records, "slow") == BEATEN,
            "0.001 ulp less at a hundredth of the speed is beaten");
    require(kind_of(records, "fast") == UNBEATEN && kind_of(records, "twin") == UNBEATEN,
            "two that differ by less than 3 % and a tenth of an error do not beat each other");
    require(kind_of(records, "right") == UNBEATEN, "half the error is worth its time");
    require(kind_of(records, "loops") == BEATEN,
            "an absolute error beyond a range is one error more, and hides nobody");
    require(kind_of(records, "wide") == UNSETTLED, "what is noisy beats nobody, nor is beaten");
    feed_time(records, "alibi", shapes[0], (struct fed_time){ "wide", 11.0, 20.0, 0.2, 0 });
    require(kind_of(records, "right") == UNSETTLED,
            "but who is as right and far behind it is not called unbeaten");
    json_decref(records);
}

int main(void)
{
    test_both();
    test_metrics();
    test_scale();
    test_judged();
    test_tradeoff();
    return tap_end();
}
