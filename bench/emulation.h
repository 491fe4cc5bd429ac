/*
 * Emulated CPUs, on which nothing is timed.  A virtual machine is no emulation: its instructions run on
 * the CPU itself.
 */
#ifndef POSENC_EMULATION_H
#define POSENC_EMULATION_H

/* Returns NULL, or what runs this program and by which sign it was detected, in one line that lives on.
 * NULL is no proof: a system emulator that imitates a real CPU in full is not detected. */
const char *bench_emulator(void);

#endif
