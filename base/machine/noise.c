/*
 * Says what else a machine did; see noise.h.
 */
#include "noise.h"

#include <stdio.h>

static const double felt = 0.1; /* share of a machine */

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
