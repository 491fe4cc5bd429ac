/*
 * How a kernel leaves the registers of the CPU: see registers.h.
 */
#include "registers.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* In the order of registers.S. */
static const char *const names[] = {
#if defined(__x86_64__)
    "rbx", "rbp", "r12", "r13", "r14", "r15",
#elif defined(__aarch64__)
    "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
    "x29", "d8",  "d9",  "d10", "d11", "d12", "d13", "d14", "d15",
#elif defined(__riscv)
    "s0",  "s1",  "s2",  "s3",  "s4",  "s5",  "s6",  "s7",  "s8",  "s9",  "s10",  "s11",
#if defined(__riscv_float_abi_double)
    "fs0", "fs1", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11",
#endif
#else
    "",
#endif
};
enum { REGISTERS = sizeof names / sizeof *names, FLAGS = REGISTERS, FIRST = 0x5a00 };

/* ---- The x87 unit ---- */

#if defined(__x86_64__) || defined(__i386__)

/* Its environment: a control word, and a tag word of two bits for each register, 3 of an empty
 * one. */
struct x87 {
    uint16_t control, unused, status, unused_too, tags, rest[9];
};

static struct x87 x87_get(void)
{
    struct x87 state;
    __asm__ volatile("fnstenv %0\n\tfldcw %0" : "=m"(state));
    return state;
}

void registers_clear(void) { __asm__ volatile("emms"); }

static void see_x87(struct cpu_left *left, uint16_t control)
{
    const struct x87 state = x87_get();
    if (state.tags != 0xffff)
        snprintf(left->x87, sizeof left->x87,
                 "registers of the x87 unit, which MMX shares, in use (tags %#x)", state.tags);
    else if (state.control != control)
        snprintf(left->x87, sizeof left->x87, "control word of the x87 unit %#x, was %#x",
                 state.control, control);
    if (state.tags != 0xffff)
        registers_clear();
    __asm__ volatile("fldcw %0" : : "m"(control));
}

static uint16_t x87_control(void)
{
    uint16_t control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    return control;
}

#else

void registers_clear(void) {}
static void see_x87(struct cpu_left *left, uint16_t control) { (void)left, (void)control; }
static uint16_t x87_control(void) { return 0; }

#endif

/* ---- The others ---- */

#if POSENC_SEES_REGISTERS

enum posenc_status conduct_call(any_kernel_function *kernel, const void *args, uint64_t *left);

static enum posenc_status call(any_kernel_function *kernel, const void *args,
                               struct cpu_left *left)
{
    uint64_t held[REGISTERS + 1] = { 0 };
    const enum posenc_status status = conduct_call(kernel, args, held);
    for (uint64_t i = REGISTERS; i-- > 0;)
        if (held[i] != FIRST + i)
            snprintf(left->registers, sizeof left->registers, "%s was not put back", names[i]);
    if (held[FLAGS] & 0x400)
        snprintf(left->direction, sizeof left->direction, "the direction flag is set");
    return status;
}

#else

static enum posenc_status call(any_kernel_function *kernel, const void *args,
                               struct cpu_left *left)
{
    (void)left;
    return kernel(args);
}

#endif

enum posenc_status registers_call(any_kernel_function *kernel, const void *args,
                                  struct cpu_left *left)
{
    const uint16_t control = x87_control();
    memset(left, 0, sizeof *left);
    const enum posenc_status status = call(kernel, args, left);
    see_x87(left, control);
    return status;
}
