/*
 * Findings about frequency, clock and power; see findings.h.
 */
#include "findings.h"
#include "records.h"
#include "sysfs.h"

#include <string.h>

enum { SAMPLE_NS = 100000 };            /* the least that a sample lasts */
static const double felt_pct = 1.0;     /* a frequency that varies by less is steady */
static const double dear_reading = 200; /* ns: a clock that takes a system call */

static bool hidden(const char *text) { return !*text || strcmp(text, NOT_EXPOSED) == 0; }

/* What a core loses after a sleep, in %; below 0: not measured. */
static double waking_pct(const struct diagnosis *d)
{
    double share = measured_number(d, "frequency.after_sleep");
    return share > 0.0 ? 100.0 * (share < 1.0 ? 1.0 - share : 0.0) : COST_UNKNOWN;
}

static void governor(struct diagnosis *d)
{
    static const struct remedy faster = {
        "Let the clock stay up, or warm up longer than it takes to rise.",
        "sudo cpupower frequency-set -g performance", true
    };
    const char *name = record_text(d->env, "freq.governor"),
               *driver = record_text(d->env, "freq.driver"),
               *preference = record_text(d->env, "freq.preference");
    double waking = waking_pct(d);
    if (hidden(name))
        found_hidden(d, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    else if (strcmp(name, "performance") == 0)
        found(d, FINDING_FINE, "governor", 0.0, NULL, "%s (%s)", name, driver);
    else
        found(d, FINDING_COSTS, "governor", waking, &faster,
              "the frequency governor is %s (%s%s%s)", name, driver,
              hidden(preference) ? "" : ", preference ", hidden(preference) ? "" : preference);
}

static void waking(struct diagnosis *d)
{
    static const struct remedy awake = {
        "Keep the core from deep sleep; bench and compare warm up before each sample.",
        "sudo cpupower idle-set -D 10", true
    };
    double pct = waking_pct(d);
    if (pct < 0.0 || (!hidden(record_text(d->env, "freq.governor")) &&
                      strcmp(record_text(d->env, "freq.governor"), "performance") != 0))
        return; /* not measured, or the governor's */
    found(
        d, pct > 3.0 ? FINDING_NOTE : FINDING_FINE, "waking", pct, pct > 3.0 ? &awake : NULL,
        "after a sleep of 30 ms the core begins at %.0f %% of its frequency and takes %.1f ms "
        "to settle",
        100.0 - pct, measured_number(d, "frequency.settled_ms"));
}

static void drift(struct diagnosis *d)
{
    static const struct remedy intel = {
        "Switch turbo off: what is left does not depend on heat and on other cores.",
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo", true
    };
    static const struct remedy others = {
        "Switch boost off: what is left does not depend on heat and on other cores.",
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost", true
    };
    static const struct remedy ratios = {
        "Believe ratios within a run alone, as compare does; no time beside one of yesterday.",
        NULL, false
    };
    const char *boost = record_text(d->env, "freq.boost");
    bool on = strcmp(boost, "1") == 0;
    double ghz = measured_number(d, "frequency.ghz"), low = measured_number(d, "frequency.low"),
           high = measured_number(d, "frequency.high"),
           pct = ghz > 0.0 ? 100.0 * (high - low) / ghz : COST_UNKNOWN;
    const struct remedy *remedy = !on ? &ratios
                                  : strncmp(record_text(d->env, "freq.driver"), "intel", 5) == 0
                                      ? &intel
                                      : &others;
    if (pct < 0.0)
        found_hidden(d, "frequency", "a chain of additions for this architecture");
    else
        found(d,
              pct > felt_pct ? FINDING_COSTS
              : on           ? FINDING_NOTE
                             : FINDING_FINE,
              "frequency", pct, pct > felt_pct || on ? remedy : NULL,
              "%.2f GHz, between %.2f and %.2f in nine of ten samples; turbo is %s", ghz, low,
              high,
              hidden(boost) ? NOT_EXPOSED
              : on          ? "on"
                            : "off");
}

static void vectors(struct diagnosis *d)
{
    static const struct remedy narrower = {
        "Time wide and narrow backends in runs of their own, or keep to 256 bits.",
        "POSENC_MAX_ISA=avx2 posenc bench", false
    };
    double share = measured_number(d, "frequency.after_vectors");
    if (share > 0.0 && share < 0.97)
        found(d, FINDING_COSTS, "AVX-512", 100.0 * (1.0 - share), &narrower,
              "after 512-bit arithmetic the core runs at %.0f %% of its frequency",
              100.0 * share);
    else if (share > 0.0)
        found(d, FINDING_FINE, "AVX-512", 0.0, NULL, "lowers the frequency by less than 3 %%");
}

/* How a clock is made quick again. */
static const struct remedy *faster_clock(const struct diagnosis *d)
{
    static const struct remedy choose = {
        "Take the CPU's own counter.",
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
        true
    };
    static const struct remedy boot = {
        "The kernel distrusts the CPU's counter (dmesg says why); if it errs, boot with "
        "tsc=reliable.",
        "sudo dmesg | grep -i tsc", true
    };
    static const struct remedy guest = {
        "Its readings leave the guest: a host that passes the CPU's counter on has quick ones.",
        NULL, false
    };
    if (strcmp(record_text(d->env, "timer.source"), "tsc") == 0)
        return &guest;
    return strstr(record_text(d->env, "timer.sources"), "tsc") ? &choose : &boot;
}

static void clock_source(struct diagnosis *d)
{
    const char *source = record_text(d->env, "timer.source");
    double reading = measured_number(d, "clock.reading_ns"),
           step = measured_number(d, "clock.step_ns");
    bool backwards = json_is_true(json_object_get(
        json_object_get(json_object_get(d->machine, "measured"), "clock"), "backwards"));
    bool slow = reading > dear_reading || strcmp(source, "hpet") == 0 ||
                strcmp(source, "acpi_pm") == 0 || strcmp(source, "jiffies") == 0;
    if (reading < 0.0)
        return;
    found(d, backwards || slow ? FINDING_COSTS : FINDING_FINE, "clock",
          100.0 * reading / SAMPLE_NS, backwards || slow ? faster_clock(d) : NULL,
          "%s: a reading takes %.0f ns, in steps of %.0f ns%s", source, reading, step,
          backwards ? ", and it was seen to run backwards" : "");
}

static void power(struct diagnosis *d)
{
    static const struct remedy mains = { "Plug it in.", NULL, false };
    static const struct remedy cooler = {
        "Let it cool, or keep it below the frequency at which it gets hot.",
        "sudo cpupower frequency-set -u 2GHz", true
    };
    const char *source = record_text(d->env, "limits.power");
    double heat = record_value(d->noise, "heat", -1.0);
    if (strcmp(source, "battery") == 0)
        found(d, FINDING_COSTS, "power", COST_UNKNOWN, &mains, "it runs on its battery");
    else if (strcmp(source, "mains") == 0)
        found(d, FINDING_FINE, "power", 0.0, NULL, "from the mains");
    if (heat > 0.0)
        found(d, FINDING_COSTS, "heat", COST_UNKNOWN, &cooler,
              "the CPU was slowed %.0f times because it was hot", heat);
    else if (heat >= 0.0)
        found(d, FINDING_FINE, "heat", 0.0, NULL, "the CPU was not slowed by it");
}

void find_clocks(struct diagnosis *d)
{
    governor(d);
    drift(d);
    waking(d);
    vectors(d);
    clock_source(d);
    power(d);
}
