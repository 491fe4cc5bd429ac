/*
 * clobbered_KERNEL: the kernel with a mistake, which then leaves another number in a register that
 * belongs to the caller.  No compiler makes such a function, people who write assembly do.
 */
#if defined(__APPLE__)
#define NAME(name) _##name
#else
#define NAME(name) name
#endif

#if defined(__x86_64__) && !defined(_WIN32)
#define CLOBBERED(name)                                                                        \
    .globl NAME(clobbered_##name);                                                             \
    NAME(clobbered_##name) : subq $8, %rsp;                                                    \
    callq NAME(mistaken_##name);                                                               \
    addq $8, %rsp;                                                                             \
    xorl %r14d, %r14d;                                                                         \
    retq;
#elif defined(__aarch64__) && !defined(__APPLE__)
#define CLOBBERED(name)                                                                        \
    .globl NAME(clobbered_##name);                                                             \
    NAME(clobbered_##name) : stp x29, x30, [sp, #-16]!;                                        \
    bl NAME(mistaken_##name);                                                                  \
    ldp x29, x30, [sp], #16;                                                                   \
    fmov d9, xzr;                                                                              \
    ret;
#else
#define CLOBBERED(name)
#endif

    .text
#define POSENC_KERNEL(name, signature, summary, stage, x, rows, angles, pairs) CLOBBERED(name)
#include <posenc_kernels.def>

#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
