/* Tests the record of a machine, its measurement quality, and the noise that a run saw. */
#include "base/machine/env.h"
#include "base/machine/noise.h"
#include "base/records.h"
#include "base/tap/tap.h"

#include <string.h>

static char grade_of(json_t *env)
{
    json_t *quality = env_quality(env);
    const char grade = record_text(quality, "grade")[0];
    json_decref(quality);
    return grade;
}

static void test_quality(void)
{
    json_t *env =
        json_pack("{s:{s:s},s:{s:s},s:{s:b,s:s},s:{s:i},s:{s:f}}", "frequency", "governor",
                  "performance", "timer", "source", "tsc", "build", "optimised", 1, "type",
                  "release", "cpus", "online", 2, "noise", "load1", 1.5);
    require(grade_of(env) == 'A', "A for a quiet machine");
    json_object_set_new(json_object_get(env, "frequency"), "governor",
                        json_string("powersave"));
    require(grade_of(env) == 'B', "B for a governor that saves power");
    json_object_set_new(json_object_get(env, "noise"), "load1", json_real(2.5));
    require(grade_of(env) == 'D', "D for more work than it has CPUs");
    json_decref(env);
}

static void test_between(void)
{
    struct noise_counters
        start = { .wall_s = 5.0, .busy_s = 100.0, .own_s = 3.0, .ticks = 1000 },
        stop = { .wall_s = 15.0, .busy_s = 125.0, .own_s = 12.0, .ticks = 3000, .steal = 20 };
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
            "it is not recorded if the system does not report it");
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
    test_quality();
    test_between();
    test_env();
    return tap_end();
}
