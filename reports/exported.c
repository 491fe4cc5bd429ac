/*
 * Names and lists for other people's programs; see exported.h.
 */
#include "exported.h"

#include <math.h>
#include <string.h>

/* Digits of a number: more than any clock here, and no tail like 0.30000000000000004. */
#define EXPORTED_DUMP (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(8))

void exported_name(char name[EXPORTED_NAME], const char *machine, const char *id,
                   const char *backend, int threads, const char *what)
{
    char team[32] = "";
    if (threads > 1)
        snprintf(team, sizeof team, "/threads:%d", threads);
    snprintf(name, EXPORTED_NAME, "%.160s%s%.160s/%.80s%s%s%s", machine ? machine : "",
             machine ? ": " : "", id, backend, team, *what ? " " : "", what);
}

void exported_count_name(char name[EXPORTED_NAME], const char *machine, const json_t *count,
                         const char *what)
{
    const double lanes = record_value(count, "lanes", 0.0);
    char width[24] = "", backend[96];
    if (lanes > 0.0)
        snprintf(width, sizeof width, "/lanes:%.0f", lanes);
    snprintf(backend, sizeof backend, "%.60s%s", record_text(count, "backend"), width);
    exported_name(name, machine, record_text(count, "case"), backend, 1, what);
}

const char *exported_machine(const json_t *records, const struct results *results)
{
    return results_machines(records) > 1 ? record_text(results->env, "env_id") : NULL;
}

void exported_entry(struct exported *list, const char *name, json_t *entry)
{
    json_t *key = name ? json_string(name) : NULL;
    list->failed |= !entry || (name && !key);
    if (!list->failed) {
        fputs(list->n++ ? ",\n" : "\n", list->out);
        list->failed = (key && (json_dumpf(key, list->out, EXPORTED_DUMP) ||
                                fputs(":", list->out) == EOF)) ||
                       json_dumpf(entry, list->out, EXPORTED_DUMP);
    }
    json_decref(key);
    json_decref(entry);
}

void exported_number(json_t *object, const char *name, double value)
{
    if (isfinite(value))
        json_object_set_new(object, name, json_real(value));
}

double exported_roof(const struct bench_row *row)
{
    double share = record_value(row->json, "roof.ratio", 0.0);
    return share > 0.0 ? 1.0 / share : 0.0;
}

double instructions_per_element(const json_t *count)
{
    double elements = record_value(count, "elements", 0.0), none = (double)NAN;
    double instructions = record_value(count, "instructions", none);
    if (strcmp(record_text(count, "build"), "base") == 0)
        return none;
    return record_value(count, "per_element", elements > 0.0 ? instructions / elements : none);
}

double exported_count(const struct results *r, const struct bench_row *row)
{
    double found = (double)NAN;
    for (size_t i = 0; i < r->n_counts; i++) {
        const json_t *count = r->counts[i];
        if (strcmp(record_text(count, "kernel"), row->kernel) == 0 &&
            strcmp(record_text(count, "dtype"), row->dtype) == 0 &&
            strcmp(record_text(count, "profile"), row->profile) == 0 &&
            strcmp(record_text(count, "backend"), row->backend) == 0 &&
            !isnan(instructions_per_element(count)))
            found = instructions_per_element(count);
    }
    return found;
}
