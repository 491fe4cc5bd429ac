/*
 * Makes the record of a probe: schema posenc.results/2 (base/records.h). posenc doctor adds a
 * grade and findings to it.
 */
#include "emit.h"

#include <math.h>

static void set_number(json_t *record, const char *name, double value)
{
    if (!isnan(value))
        json_object_set_new(record, name, record_number(value));
}

static void add_floor(json_t *list, const char *place, size_t bytes, bool pinned,
                      const struct doctor_floor *f)
{
    if (f->call_ns <= 0.0)
        return;
    json_t *floor = json_pack(
        "{s:s,s:I,s:b,s:I,s:I}", "place", place, "bytes", (json_int_t)bytes, "pinned", pinned,
        "rounds", (json_int_t)f->floor.rounds, "comparisons", (json_int_t)f->floor.comparisons);
    set_number(floor, "call_ns", f->call_ns);
    set_number(floor, "typical_pct", 100.0 * expm1(f->floor.median));
    set_number(floor, "largest_pct", 100.0 * expm1(f->floor.largest));
    set_number(floor, "process_pct", 100.0 * expm1(f->floor.launch));
    set_number(floor, "detectable_pct", 100.0 * f->floor.apart);
    json_array_append_new(list, floor);
}

static json_t *floors(const struct doctor *d)
{
    static const char *const places[DOCTOR_PLACES] = { "cache", "DRAM" };
    json_t *list = json_array();
    for (int i = 0; i < DOCTOR_PLACES; i++) {
        add_floor(list, places[i], d->bytes[i], true, &d->floor[i]);
        add_floor(list, places[i], d->bytes[i], false, &d->loose[i]);
    }
    return list;
}

static json_t *frequency(const struct doctor *d)
{
    json_t *f = json_object();
    if (d->ghz <= 0.0)
        return f;
    set_number(f, "ghz", d->ghz);
    set_number(f, "low", d->ghz_low);
    set_number(f, "high", d->ghz_high);
    set_number(f, "after_sleep", d->speed.after_sleep);
    set_number(f, "settled_ms", 1e3 * d->speed.settled_s);
    if (d->speed.after_vectors > 0.0)
        set_number(f, "after_vectors", d->speed.after_vectors);
    return f;
}

static json_t *gaps(const struct probe_gaps *g)
{
    json_t *gaps = json_object(), *count = json_array();
    if (g->seconds > 0.0) {
        for (int i = 0; i < GAP_KINDS; i++)
            json_array_append_new(count, json_integer((json_int_t)g->count[i]));
        set_number(gaps, "seconds", g->seconds);
        set_number(gaps, "lost_pct", 100.0 * g->lost_s / g->seconds);
        set_number(gaps, "longest_us", 1e6 * g->longest_s);
        set_number(gaps, "over_100us", (double)(g->count[2] + g->count[3]));
        json_object_set(gaps, "from_1_10_100_1000us", count);
    }
    json_decref(count);
    return gaps;
}

static json_t *denormals(const struct probe_denormals *d)
{
    json_t *record = json_object();
    if (d->told)
        json_object_set_new(record, "flushed", json_boolean(d->flushed));
    set_number(record, "times", d->times);
    return record;
}

static json_t *beside(const struct doctor_options *options, const struct doctor *d)
{
    json_t *list = json_array();
    for (int i = 0; i < 2; i++) {
        if (isnan(d->beside[i][IN_CACHE]) && isnan(d->beside[i][IN_DRAM]))
            continue;
        json_t *one = json_pack("{s:i,s:b}", "cpu", options->beside[i], "sibling", i == 0);
        set_number(one, "cache", d->beside[i][IN_CACHE]);
        set_number(one, "dram", d->beside[i][IN_DRAM]);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *measured(const struct doctor_options *options, const struct doctor *d)
{
    json_t *pages = json_object();
    set_number(pages, "small_over_huge", d->small_pages);
    return json_pack("{s:o,s:{s:f,s:f,s:b},s:o,s:o,s:o,s:o,s:o}", "floors", floors(d), "clock",
                     "step_ns", d->clock.step_ns, "reading_ns", d->clock.reading_ns,
                     "backwards", d->clock.backwards, "frequency", frequency(d), "gaps",
                     gaps(&d->gaps), "denormals", denormals(&d->denormals), "pages", pages,
                     "beside", beside(options, d));
}

json_t *emit_probe(const struct doctor_options *options, const struct doctor *d,
                   json_t *neighbours)
{
    const struct doctor_floor *cache = &d->floor[IN_CACHE], *dram = &d->floor[IN_DRAM];
    json_t *machine = json_pack("{s:s,s:i,s:f,s:{},s:o,s:o}", "t", "doctor", "cpu", d->cpu,
                                "seconds", d->seconds, "detectable", "measured",
                                measured(options, d), "neighbours", neighbours);
    if (!machine)
        return NULL;
    json_t *apart = json_object_get(machine, "detectable");
    if (cache->call_ns > 0.0)
        set_number(apart, "cache_pct", 100.0 * cache->floor.apart);
    if (dram->call_ns > 0.0)
        set_number(apart, "dram_pct", 100.0 * dram->floor.apart);
    if (cache->call_ns > 0.0)
        set_number(machine, "control_pct",
                   100.0 * expm1(dram->call_ns > 0.0
                                     ? fmax(cache->floor.launch, dram->floor.launch)
                                     : cache->floor.launch));
    return machine;
}
