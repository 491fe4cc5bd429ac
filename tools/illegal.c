/*
 * Runs one instruction of the set that is named: exit 0 where the CPU has it, 1 where it is
 * illegal.  An emulator that is asked for an old CPU has to reject instructions that this CPU lacks;
 * otherwise a suite that passes there would prove nothing.
 *
 *     illegal sse2|sse3|ssse3|sse4_1|popcnt|bmi2|avx|f16c|fma|avx2|avx512f
 *
 * Reference: Intel SDM volume 2, the CPUID feature flag in each instruction's table.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ONE_OF_EACH                                                                            \
    ONE(sse2, "paddd %%xmm0, %%xmm0")                                                          \
    ONE(sse3, "haddps %%xmm0, %%xmm0")                                                         \
    ONE(ssse3, "pshufb %%xmm0, %%xmm0")                                                        \
    ONE(sse4_1, "roundps $0, %%xmm0, %%xmm0")                                                  \
    ONE(popcnt, "popcnt %%eax, %%eax")                                                         \
    ONE(bmi2, "shlx %%eax, %%eax, %%eax")                                                      \
    ONE(avx, "vxorps %%ymm0, %%ymm0, %%ymm0")                                                  \
    ONE(f16c, "vcvtph2ps %%xmm0, %%ymm0")                                                      \
    ONE(fma, "vfmadd132ps %%ymm0, %%ymm0, %%ymm0")                                             \
    ONE(avx2, "vpaddd %%ymm0, %%ymm0, %%ymm0")                                                 \
    ONE(avx512f, "vpaddd %%zmm0, %%zmm0, %%zmm0")

static void on_illegal(int number)
{
    (void)number;
    _exit(1);
}

int main(int argc, char **argv)
{
    const char *set = argc == 2 ? argv[1] : "";
    signal(SIGILL, on_illegal);
#define ONE(name, instruction)                                                                 \
    if (strcmp(set, #name) == 0) {                                                             \
        __asm__ volatile(instruction : : : "eax", "xmm0", "cc");                               \
        return 0;                                                                              \
    }
    ONE_OF_EACH
#undef ONE
    fprintf(stderr, "illegal: instruction set: %s: expected one of", set);
#define ONE(name, instruction) fputs(" " #name, stderr);
    ONE_OF_EACH
#undef ONE
    fputs("\n", stderr);
    return 2;
}
