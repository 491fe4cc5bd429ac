/*
 * CPU features by name. Each architecture's header tells what there is:
 *
 *   CPU_FEATURES        FEATURE(name, level, place) each: its rung of the ladder of instruction
 *                       sets, and where it is found, the members of a struct place
 *   struct place, read_cpu(), has_feature(place), read_key(key, size)
 */
#define _GNU_SOURCE /* syscall() */
#include "cpu.h"
#include "internal.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include "cpu_x86.h"
#elif defined(__aarch64__)
#include "cpu_arm.h"
#elif defined(__riscv)
#include "cpu_riscv.h"
#else
#include "cpu_other.h"
#endif

static const struct feature {
    const char *name, *lacking;
    int level;
    struct place place;
} features[] = {
#define FEATURE(name, level, ...) { name, "CPU lacks " name, level, __VA_ARGS__ },
    CPU_FEATURES
#undef FEATURE
    { NULL, NULL, 0, { 0 } },
};
enum { FEATURE_COUNT = sizeof features / sizeof features[0] - 1 };

static struct {
    bool has[FEATURE_COUNT + 1];
    char names[256];
    char key[64];
} cpu;

/* Beginnings of the keys of CPUs whose own prefetchers do better alone: Zen 4, models 1xh, 6xh, 7xh and Axh
 * of family 19h; on model 11h asking takes 1.1 to 1.3 times as long (docs/performance.md). */
static const char *const prefetching[] = { "amd-19-1", "amd-19-6", "amd-19-7", "amd-19-a" };

bool posenc_asks_ahead = true;

static bool prefetches_alone(const char *key)
{
    for (size_t i = 0; i < sizeof prefetching / sizeof *prefetching; i++)
        if (strncmp(key, prefetching[i], strlen(prefetching[i])) == 0)
            return true;
    return false;
}

static void detect(void)
{
    read_cpu();
    read_key(cpu.key, sizeof cpu.key);
    posenc_asks_ahead = !prefetches_alone(cpu.key);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        cpu.has[i] = has_feature(&features[i].place);
        if (!cpu.has[i])
            continue;
        if (cpu.names[0])
            strcat(cpu.names, " ");
        strcat(cpu.names, features[i].name); /* all names together fit */
    }
}

/* The first caller detects; others that come meanwhile wait the microseconds it takes. */
static void detect_once(void)
{
    enum { UNKNOWN, BUSY, KNOWN };
    static atomic_int state = UNKNOWN;
    int seen = atomic_load_explicit(&state, memory_order_acquire);
    if (seen == KNOWN)
        return;
    if (seen == UNKNOWN && atomic_compare_exchange_strong(&state, &seen, BUSY)) {
        detect();
        atomic_store_explicit(&state, KNOWN, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&state, memory_order_acquire) != KNOWN)
        ;
}

enum { AT_END = -1, UNKNOWN = -2, THIS_LIBRARY = -3, OTHER_LIBRARY = -4 }; /* no features */

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

/* The feature that is the first word of *text, which moves past it, or one of the above. */
static int next_feature(const char **text)
{
    static const char library[] = "posenc-";
    const char *word = *text + strspn(*text, " ");
    size_t length = strcspn(word, " ");
    *text = word + length;
    if (length == 0)
        return AT_END;
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (is_word(word, length, features[i].name))
            return i;
    if (strncmp(word, library, strlen(library)) != 0)
        return UNKNOWN;
    return is_word(word, length, "posenc-" POSENC_VERSION) ? THIS_LIBRARY : OTHER_LIBRARY;
}

const char *posenc_cpu_obstacle(const char *needs)
{
    if (!needs)
        return NULL;
    detect_once();
    for (;;) {
        int i = next_feature(&needs);
        if (i == AT_END)
            return NULL;
        if (i == OTHER_LIBRARY)
            return "made with another version of posenc";
        if (i == UNKNOWN)
            return "needs a CPU feature this library does not know";
        if (i >= 0 && !cpu.has[i])
            return features[i].lacking;
    }
}

int posenc_cpu_level(const char *needs)
{
    int level = 0;
    if (!needs)
        return level;
    for (;;) {
        int i = next_feature(&needs);
        if (i == AT_END)
            return level;
        if (i >= 0 && features[i].level > level)
            level = features[i].level;
    }
}

const char *posenc_cpu_features(void)
{
    detect_once();
    return cpu.names;
}

const char *posenc_cpu_key(void)
{
    detect_once();
    return cpu.key;
}
