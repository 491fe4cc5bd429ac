/*
 * CPU features by name.  A feature counts only if the operating system saves the registers it
 * uses.
 *
 * Reference: Intel SDM volume 2, CPUID, and volume 1 section 14.3 (detection of AVX with
 * XGETBV); AMD APM volume 3, appendix E.
 */
#include "cpu.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "posenc.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define IS_X86 1
#else
#define IS_X86 0
#endif

/*
 * FEATURE(name, level, leaf, register, bit, state)
 * level     rung of the ladder of instruction sets
 * leaf      of CPUID, an index into `leaves` below; register 0 ... 3: eax, ebx, ecx, edx
 * state     bits of XCR0 that must be set: 2 xmm, 4 ymm, 0xe0 opmask and zmm
 */
#define X86_FEATURES                                                                           \
    FEATURE("sse2", 1, LEAF_1, 3, 26, 0)                                                       \
    FEATURE("popcnt", 1, LEAF_1, 2, 23, 0)                                                     \
    FEATURE("movbe", 1, LEAF_1, 2, 22, 0)                                                      \
    FEATURE("lzcnt", 1, LEAF_EXTENDED, 2, 5, 0)                                                \
    FEATURE("bmi1", 1, LEAF_7, 1, 3, 0)                                                        \
    FEATURE("bmi2", 1, LEAF_7, 1, 8, 0)                                                        \
    FEATURE("avx", 2, LEAF_1, 2, 28, 0x06)                                                     \
    FEATURE("f16c", 2, LEAF_1, 2, 29, 0x06)                                                    \
    FEATURE("fma", 3, LEAF_1, 2, 12, 0x06)                                                     \
    FEATURE("avx2", 3, LEAF_7, 1, 5, 0x06)                                                     \
    FEATURE("avx512f", 4, LEAF_7, 1, 16, 0xe6)                                                 \
    FEATURE("avx512cd", 4, LEAF_7, 1, 28, 0xe6)                                                \
    FEATURE("avx512bw", 4, LEAF_7, 1, 30, 0xe6)                                                \
    FEATURE("avx512dq", 4, LEAF_7, 1, 17, 0xe6)                                                \
    FEATURE("avx512vl", 4, LEAF_7, 1, 31, 0xe6)                                                \
    FEATURE("avx512vbmi", 4, LEAF_7, 2, 1, 0xe6)                                               \
    FEATURE("avx512bf16", 4, LEAF_7_1, 0, 5, 0xe6)

enum leaf { LEAF_1, LEAF_7, LEAF_7_1, LEAF_EXTENDED, LEAF_COUNT };

struct feature {
    const char *name, *lacking;
    int level;
    enum leaf leaf;
    int reg, bit;
    uint32_t state;
};

static const struct feature features[] = {
#define FEATURE(name, level, leaf, reg, bit, state)                                            \
    { name, "CPU lacks " name, level, leaf, reg, bit, state },
    X86_FEATURES
#undef FEATURE
};
enum { FEATURE_COUNT = sizeof features / sizeof features[0] };

static struct {
    bool has[FEATURE_COUNT];
    char names[256];
    char key[64];
} cpu;

#if IS_X86
static uint32_t xcr0(uint32_t leaf_1_ecx)
{
    if (!(leaf_1_ecx & 1u << 27)) /* OSXSAVE */
        return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static void detect_features(void)
{
    uint32_t leaves[LEAF_COUNT][4] = { { 0 } };
    uint32_t *l1 = leaves[LEAF_1], *l7 = leaves[LEAF_7], *l71 = leaves[LEAF_7_1];
    uint32_t *extended = leaves[LEAF_EXTENDED];
    __get_cpuid(1, &l1[0], &l1[1], &l1[2], &l1[3]);
    __get_cpuid_count(7, 0, &l7[0], &l7[1], &l7[2], &l7[3]);
    if (l7[0] >= 1)
        __get_cpuid_count(7, 1, &l71[0], &l71[1], &l71[2], &l71[3]);
    __get_cpuid(0x80000001, &extended[0], &extended[1], &extended[2], &extended[3]);
    uint32_t saved = xcr0(l1[2]);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        const struct feature *f = &features[i];
        cpu.has[i] =
            (leaves[f->leaf][f->reg] >> f->bit & 1) != 0 && (saved & f->state) == f->state;
    }
}

/* vendor-family-model-stepping, the extended fields added as the manuals say. */
static void detect_key(void)
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    __get_cpuid(0, &a, &b, &c, &d);
    const uint32_t letters[3] = { b, d, c };
    char vendor[13] = "";
    memcpy(vendor, letters, 12);
    const char *name = vendor;
    if (strcmp(vendor, "AuthenticAMD") == 0)
        name = "amd";
    else if (strcmp(vendor, "GenuineIntel") == 0)
        name = "intel";
    else
        for (int i = 0; vendor[i]; i++)
            vendor[i] =
                (char)(isalnum((unsigned char)vendor[i]) ? tolower((unsigned char)vendor[i])
                                                         : '_');
    a = 0;
    __get_cpuid(1, &a, &b, &c, &d);
    uint32_t family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15)
        model |= a >> 12 & 0xf0;
    if (family == 15)
        family += a >> 20 & 0xff;
    snprintf(cpu.key, sizeof cpu.key, "%s-%x-%02x-%x", name, (unsigned)family, (unsigned)model,
             (unsigned)(a & 15));
}
#else
/* No backend needs a feature of another architecture yet: the list is empty there. */
static void detect_features(void) {}

static void detect_key(void) { snprintf(cpu.key, sizeof cpu.key, "unknown"); }
#endif

static void detect(void)
{
    detect_features();
    detect_key();
    for (int i = 0; i < FEATURE_COUNT; i++) {
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

/* The feature that is the first word of *text, which moves past it; -1 for an unknown one, -2
 * at the end. */
static int next_feature(const char **text)
{
    const char *word = *text + strspn(*text, " ");
    size_t length = strcspn(word, " ");
    *text = word + length;
    if (length == 0)
        return -2;
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (strlen(features[i].name) == length && memcmp(features[i].name, word, length) == 0)
            return i;
    return -1;
}

const char *posenc_cpu_obstacle(const char *needs)
{
    if (!needs)
        return NULL;
    detect_once();
    for (;;) {
        int i = next_feature(&needs);
        if (i == -2)
            return NULL;
        if (i == -1)
            return "needs a CPU feature this library does not know";
        if (!cpu.has[i])
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
        if (i == -2)
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
