/*
 * Features of an x86 CPU, for cpu.c: from CPUID. A feature counts only if the operating system saves the registers that
 * it uses.
 *
 * Reference: Intel SDM volume 2, CPUID, and volume 1 section 14.3 (detection of AVX with XGETBV); AMD APM volume 3,
 * appendix E.
 */
#include <cpuid.h>
#include <ctype.h>

struct feature_source {
    enum { LEAF_1, LEAF_7, LEAF_7_1, LEAF_EXTENDED, LEAF_COUNT } leaf; /* of CPUID */
    int reg, bit;   /* register 0 ... 3: eax, ebx, ecx, edx */
    uint32_t state; /* bits of XCR0 that must be set: 2 xmm, 4 ymm, 0xe0 opmask and zmm */
};

#define CPU_FEATURES                                                                           \
    FEATURE("sse2", 1, { LEAF_1, 3, 26, 0 })                                                   \
    FEATURE("popcnt", 1, { LEAF_1, 2, 23, 0 })                                                 \
    FEATURE("movbe", 1, { LEAF_1, 2, 22, 0 })                                                  \
    FEATURE("lzcnt", 1, { LEAF_EXTENDED, 2, 5, 0 })                                            \
    FEATURE("bmi1", 1, { LEAF_7, 1, 3, 0 })                                                    \
    FEATURE("bmi2", 1, { LEAF_7, 1, 8, 0 })                                                    \
    FEATURE("avx", 2, { LEAF_1, 2, 28, 0x06 })                                                 \
    FEATURE("f16c", 2, { LEAF_1, 2, 29, 0x06 })                                                \
    FEATURE("fma", 3, { LEAF_1, 2, 12, 0x06 })                                                 \
    FEATURE("avx2", 3, { LEAF_7, 1, 5, 0x06 })                                                 \
    FEATURE("avx512f", 4, { LEAF_7, 1, 16, 0xe6 })                                             \
    FEATURE("avx512cd", 4, { LEAF_7, 1, 28, 0xe6 })                                            \
    FEATURE("avx512bw", 4, { LEAF_7, 1, 30, 0xe6 })                                            \
    FEATURE("avx512dq", 4, { LEAF_7, 1, 17, 0xe6 })                                            \
    FEATURE("avx512vl", 4, { LEAF_7, 1, 31, 0xe6 })                                            \
    FEATURE("avx512vbmi", 4, { LEAF_7, 2, 1, 0xe6 })                                           \
    FEATURE("avx512bf16", 4, { LEAF_7_1, 0, 5, 0xe6 })

static uint32_t leaves[LEAF_COUNT][4], saved_state;

static uint32_t xcr0(uint32_t leaf_1_ecx)
{
    if (!(leaf_1_ecx & 1u << 27)) /* OSXSAVE */
        return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static void read_cpu(void)
{
    uint32_t *l1 = leaves[LEAF_1], *l7 = leaves[LEAF_7], *l71 = leaves[LEAF_7_1];
    uint32_t *extended = leaves[LEAF_EXTENDED];
    __get_cpuid(1, &l1[0], &l1[1], &l1[2], &l1[3]);
    __get_cpuid_count(7, 0, &l7[0], &l7[1], &l7[2], &l7[3]);
    if (l7[0] >= 1)
        __get_cpuid_count(7, 1, &l71[0], &l71[1], &l71[2], &l71[3]);
    __get_cpuid(0x80000001, &extended[0], &extended[1], &extended[2], &extended[3]);
    saved_state = xcr0(l1[2]);
}

static bool has_feature(const struct feature_source *source)
{
    return (leaves[source->leaf][source->reg] >> source->bit & 1) != 0 &&
           (saved_state & source->state) == source->state;
}

/* Writes vendor-family-model-stepping. Family and model include their extended fields. */
static void read_key(char *key, size_t size)
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
    snprintf(key, size, "%s-%x-%02x-%x", name, (unsigned)family, (unsigned)model,
             (unsigned)(a & 15));
}
