/*
 * A badge: the JSON that shields.io asks an endpoint for.  https://shields.io/badges/endpoint-badge
 *
 * Bright green is for a full run: a quick one is green at best.
 */
#include "reports/exported.h"
#include "reports/formats.h"
#include "reports/outcome.h"

static const char *color_of(const struct outcome *o)
{
    if (!outcome_is_good(o))
        return "red";
    if (*o->vectors)
        return "lightgrey";
    if (o->checks.pass > 0)
        return o->quick ? "green" : "brightgreen";
    if (o->pairs > 0)
        return o->slower > 0 ? "orange" : "brightgreen";
    return o->grade == 'A'   ? "brightgreen"
           : o->grade == 'B' ? "green"
           : o->grade == 'C' ? "yellow"
           : o->grade        ? "orange"
                             : "lightgrey";
}

int format_badge(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct outcome o;
    char words[OUTCOME_TEXT];
    if (outcome_of(records, &o))
        return -1;
    outcome_words(&o, words);
    json_t *badge =
        json_pack("{s:i,s:s,s:s,s:s,s:b}", "schemaVersion", 1, "label",
                  o.quick && o.checks.total > 0 ? "posenc (quick)" : "posenc", "message", words,
                  "color", color_of(&o), "isError", !outcome_is_good(&o));
    bool failed = !badge || json_dumpf(badge, out, JSON_COMPACT) || fputc('\n', out) == EOF;
    json_decref(badge);
    return failed ? -1 : 0;
}
