/*
 * A kernel called with known numbers in the registers that a function has to leave as they were,
 * by a few lines of assembly (registers.S); and the state of the x87 unit, which MMX shares.
 */
#ifndef POSENC_REGISTERS_H
#define POSENC_REGISTERS_H

#include <posenc.h>

#if (defined(__x86_64__) && !defined(_WIN32)) || defined(__aarch64__) ||                       \
    (defined(__riscv) && __riscv_xlen == 64)
#define POSENC_SEES_REGISTERS 1
#else
#define POSENC_SEES_REGISTERS 0
#endif

/* How a kernel left the CPU; texts, "rbx was not put back", are empty where all is well. */
enum { CPU_TEXT = 80 };
struct cpu_left {
    char registers[CPU_TEXT], direction[CPU_TEXT], x87[CPU_TEXT];
};

/* Calls kernel(args).  What it left in disorder is noted and put in order. */
typedef enum posenc_status any_kernel_function(const void *args);
enum posenc_status registers_call(any_kernel_function *kernel, const void *args,
                                  struct cpu_left *left);

/* Before a call: the x87 unit as programs find it. */
void registers_clear(void);

#endif
