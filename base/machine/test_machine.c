/*
 * The record of a machine, its measurement quality, and what a run saw of other programs.
 */
#include "base/machine/env.h"
#include "base/machine/noise.h"
#include "base/machine/trust.h"
#include "base/records.h"
#include "conformance/tap/tap.h"

#include <string.h>

static void test_trust(void)
{
    json_t *env =
        json_pack("{s:{s:s},s:{s:s},s:{s:b,s:s}}", "frequency", "governor", "performance",
                  "timer", "source", "tsc", "build", "optimised", 1, "type", "release");
    json_t *good = env_trust(env, NULL, 0.2), *noisy = env_trust(env, NULL, 4.0);
    require(strcmp(record_text(good, "grade"), "A") == 0 &&
                strcmp(record_text(noisy, "grade"), "D") == 0 &&
                json_array_size(json_object_get(noisy, "reasons")) == 1,
            "A for a quiet machine, D with its reason for a noisy one");
    json_decref(env);
    json_decref(good);
    json_decref(noisy);
}

static void test_others(void)
{
    json_t *env = json_pack("{s:{s:i},s:{s:s}}", "cpus", "online", 2, "frequency", "governor",
                            "performance"),
           *noise = json_pack("{s:f,s:f}", "others", 1.0, "load1", 0.5),
           *trust = env_trust(env, noise, 0.1);
    require(strcmp(record_text(trust, "grade"), "D") == 0,
            "D if other programs took half of the machine");
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
            "others took what ran less what this program ran, over the time");
    json_decref(noise);
    stop.ticks = start.ticks = 0;
    noise = noise_between(&start, &stop, 2.5);
    require(record_value(noise, "others", -1.0) == -1.0,
            "it is not recorded if the system does not tell");
    json_decref(noise);
}

static void test_env(void)
{
    struct env_library library = { "1.2.3", "key", "one two", NULL, NULL };
    json_t *env = env_record(&library, "");
    require(env && strcmp(record_text(env, "build.library"), "1.2.3") == 0 &&
                json_array_size(json_object_get(json_object_get(env, "cpu"), "features")) ==
                    2 &&
                strchr("ABCD", record_text(env, "quality.grade")[0]),
            "the record of this machine has library, features and quality");
    json_decref(env);
    library = (struct env_library){ "1.2.3", "key", "", "a machine of paper", NULL };
    env = env_record(&library, "");
    require(strcmp(record_text(env, "emulator"), library.emulator) == 0 &&
                strcmp(record_text(env, "quality.grade"), "D") == 0 &&
                strcmp(record_text(env, "env_id"), "key/emulated") == 0,
            "an emulator is recorded, of quality D, and a machine of its own");
    json_decref(env);
}

int main(void)
{
    test_trust();
    test_others();
    test_between();
    test_env();
    return tap_end();
}
