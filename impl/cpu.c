/*
 * Detection of CPU features, once per process. The header of each architecture (cpu_*.h) defines:
 *
 *   struct feature_source        where the CPU reports a feature
 *   CPU_FEATURES                 a FEATURE(name, level, source) for each feature; backends that need
 *                                features of a higher level are preferred
 *   read_cpu()                   reads all features
 *   has_feature(source)          returns true if the CPU and the operating system support a feature
 *   read_key(key, size)          writes the key of the CPU model: see posenc_cpu_key()
 */
#define _GNU_SOURCE /* syscall() */
#include "registry.h"

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
#else /* no features are known, as no backend needs any */
struct feature_source {
    int none;
};
#define CPU_FEATURES
static void read_cpu(void) {}
static bool has_feature(const struct feature_source *source) { return source->none; }
static void read_key(char *key, size_t size) { snprintf(key, size, "unknown"); }
#endif

static const struct feature {
    const char *name, *missing_reason;
    int level;
    struct feature_source source;
} features[] = {
#define FEATURE(name, level, ...) { name, "CPU lacks " name, level, __VA_ARGS__ },
    CPU_FEATURES
#undef FEATURE
    { NULL, NULL, 0, { 0 } }, /* an array must not be empty */
};
enum { FEATURE_COUNT = sizeof features / sizeof features[0] - 1 };

static struct {
    bool has[FEATURE_COUNT + 1];
    char names[256];
    char key[64];
} cpu;

/* Prefixes of the keys of CPUs on which software prefetch is slower than hardware prefetchers alone:
 * Zen 4, which has models 1xh, 6xh, 7xh and Axh of family 19h (measurements: docs/performance/memory.md). */
static const char *const no_prefetch_keys[] = { "amd-19-1", "amd-19-6", "amd-19-7",
                                                "amd-19-a" };

bool posenc_prefetch_enabled = true;

static bool needs_no_prefetch(const char *key)
{
    for (size_t i = 0; i < sizeof no_prefetch_keys / sizeof *no_prefetch_keys; i++)
        if (strncmp(key, no_prefetch_keys[i], strlen(no_prefetch_keys[i])) == 0)
            return true;
    return false;
}

static void detect(void)
{
    read_cpu();
    read_key(cpu.key, sizeof cpu.key);
    posenc_prefetch_enabled = !needs_no_prefetch(cpu.key);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        cpu.has[i] = has_feature(&features[i].source);
        if (!cpu.has[i])
            continue;
        if (cpu.names[0])
            strcat(cpu.names, " ");
        strcat(cpu.names, features[i].name); /* names[] holds all of them */
    }
}

/* The first caller detects features. Concurrent callers spin for the microseconds that it takes. */
static void detect_once(void)
{
    enum { UNKNOWN, BUSY, KNOWN };
    static atomic_int state = UNKNOWN;
    int current = atomic_load_explicit(&state, memory_order_acquire);
    if (current == KNOWN)
        return;
    if (current == UNKNOWN && atomic_compare_exchange_strong(&state, &current, BUSY)) {
        detect();
        atomic_store_explicit(&state, KNOWN, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&state, memory_order_acquire) != KNOWN)
        ;
}

/* Results of next_feature() that are no index of a feature. */
enum { AT_END = -1, UNKNOWN = -2, THIS_LIBRARY = -3, OTHER_LIBRARY = -4 };

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

/* Returns the index of the feature that the first word of *text names, or one of the above. Advances *text past the
 * word. */
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

const char *posenc_cpu_unavailable_reason(const char *list)
{
    if (!list)
        return NULL;
    detect_once();
    for (;;) {
        int i = next_feature(&list);
        if (i == AT_END)
            return NULL;
        if (i == OTHER_LIBRARY)
            return "made with another version of posenc";
        if (i == UNKNOWN)
            return "needs a CPU feature this library does not know";
        if (i >= 0 && !cpu.has[i])
            return features[i].missing_reason;
    }
}

int posenc_cpu_level(const char *list)
{
    int level = 0;
    if (!list)
        return level;
    for (;;) {
        int i = next_feature(&list);
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
