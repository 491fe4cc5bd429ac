/*
 * The marked call and the probe (see marks.h), in assembler: a compiler would be free to put
 * instructions of its own between the marks.
 */
#include "marks.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__) || defined(__riscv))

#define FUNCTION(name, body)                                                                   \
    __asm__(".text\n.balign 16\n.globl " #name "\n.hidden " #name "\n.type " #name             \
            ", %function\n" #name ":\n" body ".size " #name ", . - " #name "\n")

#if defined(__x86_64__)

FUNCTION(bench_between_marks, "subq $8, %rsp\n"
                              "movq %rdi, %rax\n"
                              "movq %rsi, %rdi\n"
                              "movq %rdx, %rsi\n"
                              "nopl 0x50431(%rax)\n"
                              "callq *%rax\n"
                              "nopl 0x50451(%rax)\n"
                              "addq $8, %rsp\n"
                              "retq\n");

#elif defined(__aarch64__)

FUNCTION(bench_between_marks, "stp x29, x30, [sp, #-16]!\n"
                              "mov x29, sp\n"
                              "mov x9, x0\n"
                              "mov x0, x1\n"
                              "mov x1, x2\n"
                              ".inst 0xd28a087f\n"
                              "blr x9\n"
                              ".inst 0xd28a08bf\n"
                              "ldp x29, x30, [sp], #16\n"
                              "ret\n");

#else

FUNCTION(bench_between_marks, "addi sp, sp, -16\n"
                              "sd ra, 8(sp)\n"
                              "mv t0, a0\n"
                              "mv a0, a1\n"
                              "mv a1, a2\n"
                              "lui zero, 0x50431\n"
                              "jalr t0\n"
                              "lui zero, 0x50451\n"
                              "ld ra, 8(sp)\n"
                              "addi sp, sp, 16\n"
                              "ret\n");

#endif

FUNCTION(bench_probe, "nop\n"
                      "nop\n"
                      "nop\n"
                      "ret\n");

#else

void bench_between_marks(void (*entry)(void), const void *first, const void *second)
{
    ((void (*)(const void *, const void *))entry)(first, second);
}

void bench_probe(void) {}

#endif
