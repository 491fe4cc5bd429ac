/*
 * conduct_call(kernel, args, left): calls kernel(args) with a known number in each register that a
 * function has to leave as it was, and notes in left[] what they hold when it has returned; see
 * registers.h.  The number of left[i] is 0x5a00 + i.
 */
#if defined(__APPLE__)
#define NAME(name) _##name
#else
#define NAME(name) name
#endif

#if defined(__x86_64__) && !defined(_WIN32)

/* System V: rbx, rbp, r12 to r15; then the flags, of which the direction is cleared here. */
    .text
    .globl NAME(conduct_call)
    .p2align 4
NAME(conduct_call):
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    pushq %rdx
    movq %rdi, %rax
    movq %rsi, %rdi
    movq $0x5a00, %rbx
    movq $0x5a01, %rbp
    movq $0x5a02, %r12
    movq $0x5a03, %r13
    movq $0x5a04, %r14
    movq $0x5a05, %r15
    callq *%rax
    movq (%rsp), %rdx
    movq %rbx, (%rdx)
    movq %rbp, 8(%rdx)
    movq %r12, 16(%rdx)
    movq %r13, 24(%rdx)
    movq %r14, 32(%rdx)
    movq %r15, 40(%rdx)
    pushfq
    popq 48(%rdx)
    cld
    popq %rdx
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    retq

#elif defined(__aarch64__)

/* x19 to x29, and the lower halves of v8 to v15. */
    .text
    .globl NAME(conduct_call)
    .p2align 4
NAME(conduct_call):
    stp x29, x30, [sp, #-176]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    str x2, [sp, #160]
    mov x9, x0
    mov x0, x1
    mov x19, #0x5a00
    mov x20, #0x5a01
    mov x21, #0x5a02
    mov x22, #0x5a03
    mov x23, #0x5a04
    mov x24, #0x5a05
    mov x25, #0x5a06
    mov x26, #0x5a07
    mov x27, #0x5a08
    mov x28, #0x5a09
    mov x29, #0x5a0a
    mov x10, #0x5a0b
    fmov d8, x10
    mov x10, #0x5a0c
    fmov d9, x10
    mov x10, #0x5a0d
    fmov d10, x10
    mov x10, #0x5a0e
    fmov d11, x10
    mov x10, #0x5a0f
    fmov d12, x10
    mov x10, #0x5a10
    fmov d13, x10
    mov x10, #0x5a11
    fmov d14, x10
    mov x10, #0x5a12
    fmov d15, x10
    blr x9
    ldr x2, [sp, #160]
    stp x19, x20, [x2]
    stp x21, x22, [x2, #16]
    stp x23, x24, [x2, #32]
    stp x25, x26, [x2, #48]
    stp x27, x28, [x2, #64]
    str x29, [x2, #80]
    str d8, [x2, #88]
    str d9, [x2, #96]
    str d10, [x2, #104]
    str d11, [x2, #112]
    str d12, [x2, #120]
    str d13, [x2, #128]
    str d14, [x2, #136]
    str d15, [x2, #144]
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #176
    ret

#elif defined(__riscv) && __riscv_xlen == 64

/* s0 to s11, and fs0 to fs11 where functions keep them. */
    .text
    .globl conduct_call
    .p2align 2
conduct_call:
    addi sp, sp, -208
    sd ra, 0(sp)
    sd a2, 8(sp)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    sd s\i, 16 + 8 * \i(sp)
    .endr
#if defined(__riscv_float_abi_double)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    fsd fs\i, 112 + 8 * \i(sp)
    li t0, 0x5a0c + \i
    fmv.d.x fs\i, t0
    .endr
#endif
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    li s\i, 0x5a00 + \i
    .endr
    mv t1, a0
    mv a0, a1
    jalr t1
    ld a2, 8(sp)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    sd s\i, 8 * \i(a2)
    ld s\i, 16 + 8 * \i(sp)
    .endr
#if defined(__riscv_float_abi_double)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    fsd fs\i, 96 + 8 * \i(a2)
    fld fs\i, 112 + 8 * \i(sp)
    .endr
#endif
    ld ra, 0(sp)
    addi sp, sp, 208
    ret

#endif

#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
