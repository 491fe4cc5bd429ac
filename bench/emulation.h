/*
 * Whether something emulates the CPU this process runs on: then no time says anything about a
 * CPU, and none is taken.  A virtual machine is no emulation: its instructions run on the CPU
 * itself.
 */
#ifndef POSENC_EMULATION_H
#define POSENC_EMULATION_H

/* NULL, or what runs this program and by which sign it was seen, in one line that lives on.
 * NULL is no proof: a system emulator that imitates a real CPU in full goes unseen. */
const char *bench_emulator(void);

#endif
