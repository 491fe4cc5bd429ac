/*
 * The sections "Backends", which says of each that cannot run here why, and "Machine and
 * build".
 */
#include "reports/trust.h"
#include "reports/report.h"
#include "reports/show.h"

#include <stdarg.h>
#include <string.h>

static void add_backends(struct node *into, const struct results *r)
{
    struct node *section = add_section(into, ON_PAGE, "Backends");
    struct table *table = add_table(section, EVERYWHERE, "backend|family|runs here|what it is");
    for (size_t b = 0; b < r->n_backends; b++) {
        const struct backend_row *row = &r->backends[b];
        table_cell(table, "%s", row->id);
        table_cell(table, "%s", row->family);
        table_cell(table, "%s%s",
                   row->available ? "yes" : "no: ", row->available ? "" : row->reason);
        table_cell(table, "%s", row->description);
    }
}

FORMATTED(3, 4)
static void add_fact(struct table *table, const char *name, const char *format, ...)
{
    char value[640];
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    table_cell(table, "%s", name);
    table_cell(table, "%s", *value ? value : "not recorded");
}

static void add_caches(const json_t *env, struct table *table)
{
    char text[200] = "";
    size_t at = 0;
    const json_t *list = json_object_get(env, "caches");
    for (size_t i = 0; i < json_array_size(list) && at < sizeof text; i++) {
        const json_t *c = json_array_get(list, i);
        const char *type = record_text(c, "type");
        if (strcmp(type, "Instruction") == 0)
            continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%sL%.0f%s %s", at ? ", " : "",
                               record_value(c, "level", 0.0),
                               strcmp(type, "Data") == 0 ? "d" : "",
                               show_bytes(record_value(c, "bytes", 0.0)));
    }
    add_fact(table, "caches", "%s", text);
}

static void add_noise_and_trust(const struct results *r, struct table *table)
{
    const json_t *noise = r->noise;
    double null_pct = median_null(r);
    char stolen[40] = "", copies[80] = "", others[64] = "", text[512];
    double taken = record_value(noise, "others", -1.0);
    if (noise)
        snprintf(stolen, sizeof stolen, ", %.2f %% stolen",
                 record_value(noise, "steal_pct", 0.0));
    if (null_pct >= 0.0)
        snprintf(copies, sizeof copies, ", a copy of a backend %.1f %% from itself (median)",
                 null_pct);
    if (taken >= 0.0)
        snprintf(others, sizeof others, ", other programs took %.2f CPUs", taken);
    add_fact(table, "noise", "load %.2f%s%s%s",
             noise ? record_value(noise, "load1", 0.0)
                   : record_value(r->env, "noise.load1", 0.0),
             others, stolen, copies);
    json_t *trust = env_trust(r->env, noise, null_pct);
    const json_t *reasons = json_object_get(trust, "reasons");
    size_t used = (size_t)snprintf(text, sizeof text, "%s", record_text(trust, "grade"));
    for (size_t i = 0; i < json_array_size(reasons) && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "; " : ": ",
                                 json_string_value(json_array_get(reasons, i)));
    json_decref(trust);
    add_fact(table, "trust", "%s", text);
}

static void add_environment(struct node *into, const struct results *r)
{
    const json_t *env = r->env;
    struct node *section = add_section(into, ON_PAGE, "Machine and build");
    struct table *table = add_table(section, EVERYWHERE, "fact|value");
    if (!env)
        return;
    add_fact(table, "CPU", "%s (%s)", record_text(env, "cpu.name"),
             record_text(env, "cpu.key"));
    if (*record_text(env, "emulator"))
        add_fact(table, "emulator", "%s", record_text(env, "emulator"));
    const char *virt = record_text(env, "virt.kind");
    add_fact(table, "CPUs", "%.0f allowed of %.0f%s%s", record_value(env, "cpus.allowed", 0.0),
             record_value(env, "cpus.online", 0.0), *virt ? ", under " : "", virt);
    add_caches(env, table);
    add_fact(table, "clock", "governor %s, driver %s, boost %s",
             record_text(env, "freq.governor"), record_text(env, "freq.driver"),
             record_text(env, "freq.boost"));
    add_fact(table, "system", "%s, %s, %s", record_text(env, "os.distro"),
             record_text(env, "os.kernel"), record_text(env, "os.libc"));
    add_fact(table, "memory", "pages of %s, transparent huge pages: %s",
             show_bytes(record_value(env, "mem.page", 0.0)), record_text(env, "mem.thp"));
    add_fact(table, "build", "%s %s, %s, %s", record_text(env, "build.cc"),
             record_text(env, "build.version"), record_text(env, "build.type"),
             record_text(env, "build.flags"));
    add_fact(table, "timer", "%s (%s), overhead %s", record_text(env, "timer.clock"),
             record_text(env, "timer.source"),
             show_time(record_value(env, "timer.overhead_ns", 0.0)));
    if (results_of_doctor(r)) /* which measured more, and graded it */
        add_fact(table, "trust", "%s", record_text(r->machine, "grade"));
    else
        add_noise_and_trust(r, table);
}

void section_machine(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    if (r->n_backends > 0)
        add_backends(into, r);
    add_environment(into, r);
}
