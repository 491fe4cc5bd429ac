/*
 * A busy machine is named on the first screen of a report, from records alone, and a quiet one is not.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/noise.h"
#include "reports/trust.h"
#include "conformance/tap/tap.h"
#include "fed.h"
#include "rendered.h"

static const char *const backends[] = { "avx512", "avx2", NULL };

/* A footer whose run saw that; a negative number is not recorded. */
struct fed_noise {
    double others, steal_pct, load;
};

static void feed_footer(json_t *records, struct fed_noise n)
{
    json_t *noise = json_pack("{s:f,s:f}", "steal_pct", n.steal_pct, "load1", n.load);
    if (n.others >= 0.0)
        json_object_set_new(noise, "others", json_real(n.others));
    feed(records, "{s:s,s:b,s:o}", "t", "footer", "complete", 1, "noise", noise);
}

static json_t *run_with(double width_pct, double null_pct, struct fed_noise noise)
{
    json_t *records = fed_run("alibi", backends);
    feed_time(records, "alibi", "l2",
              (struct fed_time){ "avx512", 10.0, width_pct, null_pct, 0 });
    feed_time(records, "alibi", "l2", (struct fed_time){ "avx2", 20.0, 1.0, null_pct, 0 });
    feed_footer(records, noise);
    return records;
}

/* Within 24 lines of a terminal, and before the first chapter of a page. */
static bool on_first_screen(const json_t *records, const char *what)
{
    static const struct {
        const char *format, *chapter;
    } pages[] = { { "console", "\nalibi" }, { "md", "\n## " }, { "html", "<h2" } };
    bool found = true;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char *text = rendered(pages[i].format, records, 400), *end;
        int lines = 0;
        end = text ? strstr(text, pages[i].chapter) : NULL;
        if (end)
            *end = 0;
        found = found && end && contains(text, what);
        for (char *p = text; end && p < end; p++)
            lines += *p == '\n';
        found = found && (i > 0 || lines < 24);
        free(text);
    }
    return found;
}

static bool warns(const json_t *records)
{
    char *text = rendered("md", records, 0);
    bool warned =
        contains(text, "The machine was busy") || contains(text, "The machine was not quiet");
    free(text);
    return warned;
}

static void require_said(const char *name, json_t *records, const char *what)
{
    require(what ? on_first_screen(records, what) : !warns(records), name);
    json_decref(records);
}

static void test_first_screen(void)
{
    static const struct fed_noise quiet = { 0.05, 0.0, 1.2 };
    require_said("a quiet machine is not spoken of", run_with(1.0, 0.3, quiet), NULL);
    require_said("two programs beside it: busy, on the first screen of console, md and html",
                 run_with(1.0, 0.3, (struct fed_noise){ 1.9, 0.0, 4.0 }),
                 "The machine was busy");
    require_said("with how many CPUs they took",
                 run_with(1.0, 0.3, (struct fed_noise){ 1.9, 0.0, 4.0 }),
                 "other programs took 1.9 of its 2 CPUs");
    require_said("and what to do", run_with(1.0, 0.3, (struct fed_noise){ 1.9, 0.0, 4.0 }),
                 "end that and run again");
    require_said("records that know the load alone say it",
                 run_with(1.0, 0.3, (struct fed_noise){ -1.0, 0.0, 6.0 }),
                 "the load average was 6.0 on 2 CPUs");
    require_said("a load of its own is not others'",
                 run_with(1.0, 0.3, (struct fed_noise){ 0.0, 0.0, 6.0 }), NULL);
    require_said("time that was stolen",
                 run_with(1.0, 0.3, (struct fed_noise){ 0.0, 3.2, 1.0 }),
                 "a hypervisor gave 3.2 % of its time to others");
    require_said("a backend far from its own copy", run_with(1.0, 4.5, quiet),
                 "A backend was 4.5 % from its own copy");
    require_said("timings that decide nothing", run_with(30.0, 0.3, quiet),
                 "1 of 2 timings are noisy: ");
}

static void test_runs(void)
{
    json_t *records = run_with(1.0, 0.3, (struct fed_noise){ 1.5, 0.0, 3.0 }),
           *quiet = run_with(1.0, 0.3, (struct fed_noise){ 0.0, 0.0, 1.0 });
    json_array_extend(records, quiet);
    json_decref(quiet);
    require_said("of several runs the busy one is told", records,
                 "other programs took 1.5 of its 2 CPUs");
    records = fed_run("alibi", backends);
    feed_footer(records, (struct fed_noise){ 1.9, 5.0, 9.0 });
    require_said("where nothing was timed, noise harms nobody", records, NULL);
    records = run_with(1.0, 0.3, (struct fed_noise){ 0.0, 0.0, 1.0 });
    json_array_remove(records, json_array_size(records) - 1);
    json_object_set_new(json_array_get(records, 1), "noise", json_pack("{s:f}", "load1", 7.0));
    require_said("a run that was ended early tells the load it began with", records,
                 "the load average was 7.0 on 2 CPUs");
}

static void test_trust(void)
{
    json_t *env = json_pack("{s:{s:i},s:{s:s}}", "cpus", "online", 2, "freq", "governor",
                            "performance"),
           *noise = json_pack("{s:f,s:f}", "others", 1.0, "load1", 0.5),
           *trust = env_trust(env, noise, 0.1);
    require(strcmp(record_text(trust, "grade"), "D") == 0,
            "trust falls to D where others took half of a machine");
    json_decref(env);
    json_decref(noise);
    json_decref(trust);
}

static void test_between(void)
{
    struct noise_watch start = { .wall_s = 5.0, .busy_s = 100.0, .own_s = 3.0, .ticks = 1000 },
                       stop = { .wall_s = 15.0,
                                .busy_s = 125.0,
                                .own_s = 12.0,
                                .ticks = 3000,
                                .steal = 20 };
    json_t *noise = noise_between(&start, &stop, 2.5);
    require(record_value(noise, "others", -1.0) == 1.6 &&
                record_value(noise, "steal_pct", -1.0) == 1.0 &&
                record_value(noise, "wall_s", -1.0) == 10.0 &&
                record_value(noise, "load1", -1.0) == 2.5,
            "what others took is what ran less what this program ran, over the time");
    json_decref(noise);
    stop.ticks = start.ticks = 0;
    noise = noise_between(&start, &stop, 2.5);
    require(record_value(noise, "others", -1.0) == -1.0,
            "and is not told where the system does not tell");
    json_decref(noise);
}

int main(void)
{
    test_first_screen();
    test_runs();
    test_trust();
    test_between();
    return tap_end();
}
