/*
 * Says what else a machine did; see noise.h.
 */
#include "noise.h"
#include "document.h"
#include "ranking.h"

#include <stdarg.h>
#include <string.h>

static const double felt = 0.1;            /* share of a machine */
static const double far_from_itself = 3.0; /* a copy of a backend, in % */

bool noise_of_others(const json_t *env, const json_t *noise, char *words, size_t bytes)
{
    double cpus = record_value(env, "cpus.online", 1.0),
           others = record_value(noise, "others", -1.0),
           load = record_value(noise, "load1", record_value(env, "noise.load1", -1.0));
    if (others >= 0.0)
        snprintf(words, bytes, "other programs took %.1f of its %.0f CPUs", others, cpus);
    else
        snprintf(words, bytes, "the load average was %.1f on %.0f CPUs", load, cpus);
    return others >= 0.0 ? others > felt * cpus : load > cpus;
}

struct sentence {
    char *text;
    size_t at;
};

FORMATTED(2, 3) static void say(struct sentence *s, const char *format, ...)
{
    va_list list;
    if (s->at >= NOISE_TEXT)
        return;
    va_start(list, format);
    s->at += (size_t)vsnprintf(s->text + s->at, NOISE_TEXT - s->at, format, list);
    va_end(list);
}

/* What is severe enough to be said first, and what to do. */
static void say_disturbance(struct sentence *s, const struct results *r, bool many_noisy)
{
    char others[96];
    double steal = record_value(r->noise, "steal_pct", 0.0), copies = median_null(r);
    bool taken = noise_of_others(r->env, r->noise, others, sizeof others),
         stolen = steal > stolen_pct, apart = copies > far_from_itself;
    if (!(taken || stolen || apart || many_noisy))
        return;
    say(s, "**%s.**", taken || stolen ? "The machine was busy" : "The machine was not quiet");
    const char *begin = "  While it was measured ";
    if (taken)
        say(s, "%s%s", begin, others);
    if (stolen)
        say(s, "%sa hypervisor gave %.1f %% of its time to others", taken ? ", and " : begin,
            steal);
    if (taken || stolen)
        say(s, ".");
    if (apart)
        say(s, "  A backend was %.1f %% from its own copy (median over cases).", copies);
    say(s,
        "  %s, or give it more time with `--budget SECONDS`; `posenc doctor` says what each "
        "disturbance costs here.  ",
        taken ? "What runs beside it is shown by `top`: end that and run again"
              : "Run again at a quieter time or on a machine of your own");
}

bool noise_warning(const struct results *r, char text[NOISE_TEXT])
{
    struct sentence s = { text, 0 };
    size_t timed = 0, noisy = 0;
    for (size_t i = 0; i < r->n_bench; i++) {
        timed += !*r->bench[i].refused;
        noisy += !*r->bench[i].refused && is_noisy(&r->bench[i]);
    }
    if (timed > 0)
        say_disturbance(&s, r, 4 * noisy >= timed);
    if (noisy > 0)
        say(&s,
            "%zu of %zu timings are noisy: their interval is wider than 10 %%, or a copy of a "
            "backend was further than that from itself, or they are a fifth above the roof and "
            "not known to 3 %%.  Such are shown and decide nothing.",
            noisy, timed);
    while (s.at > 0 && s.at < NOISE_TEXT && text[s.at - 1] == ' ')
        text[--s.at] = 0;
    return s.at > 0;
}
