/*
 * The list of findings, see findings.h.
 */
#include "findings.h"
#include "records.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = { "costs", "note", "fine", "hidden" };

static json_t *text_or_null(const char *text) { return text ? json_string(text) : json_null(); }

void found(struct diagnosis *d, enum finding_level level, const char *what, double cost_pct,
           const struct remedy *remedy, const char *evidence, ...)
{
    static const struct remedy none = { NULL, NULL, false };
    char text[400];
    va_list list;
    va_start(list, evidence);
    vsnprintf(text, sizeof text, evidence, list);
    va_end(list);
    remedy = remedy ? remedy : &none;
    json_array_append_new(
        d->list,
        json_pack("{s:s,s:s,s:o,s:s,s:o,s:o,s:b}", "what", what, "level", level_names[level],
                  "cost_pct", cost_pct >= 0.0 ? record_number(cost_pct) : json_null(),
                  "evidence", text, "fix", text_or_null(remedy->fix), "command",
                  text_or_null(remedy->command), "root", remedy->root));
}

void found_hidden(struct diagnosis *d, const char *what, const char *where)
{
    found(d, FINDING_HIDDEN, what, COST_UNKNOWN, NULL, "%s is not there, or cannot be read",
          where);
}

double measured_number(const struct diagnosis *d, const char *path)
{
    return record_value(json_object_get(d->machine, "measured"), path, -1.0);
}

const json_t *floor_in(const json_t *machine, const char *place, bool pinned)
{
    const json_t *floors = json_object_get(json_object_get(machine, "measured"), "floors");
    for (size_t i = 0; i < json_array_size(floors); i++) {
        const json_t *floor = json_array_get(floors, i);
        if (strcmp(record_text(floor, "place"), place) == 0 &&
            json_is_true(json_object_get(floor, "pinned")) == pinned)
            return floor;
    }
    return NULL;
}

static int level_of(const json_t *finding)
{
    const char *name = record_text(finding, "level");
    int level = 0;
    while (level < FINDING_HIDDEN && strcmp(level_names[level], name) != 0)
        level++;
    return level;
}

/* Costs before notes; what costs more before what costs less, and what is not known behind. */
static int by_cost(const json_t *a, const json_t *b)
{
    int levels = level_of(a) - level_of(b);
    double x = record_value(a, "cost_pct", -1.0), y = record_value(b, "cost_pct", -1.0);
    return levels ? levels : (x < y) - (x > y);
}

/* Equal ones stay in the order in which they were found. */
static json_t *sorted(json_t *list)
{
    for (size_t i = 1; i < json_array_size(list); i++)
        for (size_t j = i;
             j > 0 && by_cost(json_array_get(list, j - 1), json_array_get(list, j)) > 0; j--) {
            json_t *moved = json_incref(json_array_get(list, j));
            json_array_remove(list, j);
            json_array_insert_new(list, j - 1, moved);
        }
    return list;
}

json_t *findings_of(const json_t *env, const json_t *noise, const json_t *machine)
{
    struct diagnosis d = { env, noise, machine, json_array() };
    find_system(&d);
    find_cores(&d);
    find_clocks(&d);
    find_memory(&d);
    return sorted(d.list);
}
