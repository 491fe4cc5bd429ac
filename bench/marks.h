/*
 * A call between two marks, which an emulator's plug-in (bench/counter.c) recognises: each is an
 * instruction that does nothing and that no compiler makes.
 */
#ifndef POSENC_MARKS_H
#define POSENC_MARKS_H

/* clang-format off */
#define MARK_ARM_BEGIN   0xd28a087fu /* movz xzr, #0x5043 */
#define MARK_ARM_END     0xd28a08bfu /* movz xzr, #0x5045 */
#define MARK_RISCV_BEGIN 0x50431037u /* lui zero, 0x50431 */
#define MARK_RISCV_END   0x50451037u /* lui zero, 0x50451 */
#define MARK_X86_BEGIN   0x50431u    /* nopl 0x50431(%rax) */
#define MARK_X86_END     0x50451u    /* nopl 0x50451(%rax) */
/* clang-format on */

/* entry(first, second), and nothing else, between the marks; on other machines without marks. */
void bench_between_marks(void (*entry)(void), const void *first, const void *second);

/* Takes PROBE_INSTRUCTIONS.  What counts it right can count. */
enum { PROBE_INSTRUCTIONS = 4 };
void bench_probe(void);

#endif
