/*
 * Features of a 64-bit Arm CPU, for cpu.c: from Linux's hardware capabilities; macOS needs no query.
 *
 * Reference: Linux, Documentation/arch/arm64/elf_hwcaps.rst, cpu-feature-registers.rst and sve.rst; Arm ARM, MIDR_EL1.
 */
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

struct feature_source {
    enum { NEON, SVE, SVE_POW2 } feature;
};

/* sve_pow2: the vector length is a power of two, which the padding of frequencies requires (POSENC_FREQS_PAD). Older
 * editions of the architecture allow any multiple of 128 bits. */
#define CPU_FEATURES                                                                           \
    FEATURE("neon", 1, { NEON })                                                               \
    FEATURE("sve", 2, { SVE })                                                                 \
    FEATURE("sve_pow2", 2, { SVE_POW2 })

static bool features_here[SVE_POW2 + 1];

static bool has_feature(const struct feature_source *source)
{
    return features_here[source->feature];
}

#if defined(__linux__)
static void read_cpu(void)
{
    unsigned long capabilities = getauxval(AT_HWCAP);

    features_here[NEON] = (capabilities & HWCAP_ASIMD) != 0;
    features_here[SVE] = (capabilities & HWCAP_SVE) != 0;
    if (features_here[SVE]) {
        int bytes = prctl(PR_SVE_GET_VL);
        bytes = bytes < 0 ? 0 : bytes & PR_SVE_VL_LEN_MASK;
        features_here[SVE_POW2] = bytes != 0 && (bytes & (bytes - 1)) == 0;
    }
}

/* Writes implementer-part-variant-revision of the current core. Linux emulates the read of MIDR_EL1, which is a
 * privileged register. */
static void read_key(char *key, size_t size)
{
    static const struct {
        unsigned implementer;
        const char *name;
    } known[] = { { 0x41, "arm" },       { 0x42, "broadcom" },  { 0x46, "fujitsu" },
                  { 0x48, "hisilicon" }, { 0x4e, "nvidia" },    { 0x51, "qualcomm" },
                  { 0x61, "apple" },     { 0x6d, "microsoft" }, { 0xc0, "ampere" } };
    char number[8];
    const char *name = number;
    uint64_t midr;

    if (!(getauxval(AT_HWCAP) & HWCAP_CPUID)) {
        snprintf(key, size, "arm-unknown");
        return;
    }
    __asm__("mrs %0, midr_el1" : "=r"(midr));
    unsigned implementer = (unsigned)(midr >> 24 & 0xff);
    snprintf(number, sizeof number, "%02x", implementer);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].implementer == implementer)
            name = known[i].name;
    snprintf(key, size, "%s-%03x-%x-%x", name, (unsigned)(midr >> 4 & 0xfff),
             (unsigned)(midr >> 20 & 15), (unsigned)(midr & 15));
}
#else
/* All 64-bit Arm CPUs that run macOS have Advanced SIMD, and none has SVE outside streaming mode. */
static void read_cpu(void) { features_here[NEON] = true; }

static void read_key(char *key, size_t size)
{
#if defined(__APPLE__)
    uint32_t family = 0;
    size_t bytes = sizeof family;
    if (sysctlbyname("hw.cpufamily", &family, &bytes, NULL, 0) == 0) {
        snprintf(key, size, "apple-%08x", (unsigned)family);
        return;
    }
#endif
    snprintf(key, size, "arm-unknown");
}
#endif
