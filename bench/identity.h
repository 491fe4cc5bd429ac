/*
 * Whether the machine code of a kernel is the same in two builds: a digest of everything that a
 * call of it may run in its library, and of the constants that this reads, which does not depend on
 * where the linker has put them.
 *
 * Code is walked from the entry: an instruction counts by its bytes, without those that say where
 * something lies; a jump or a call by which instruction it leads to; a constant by what it is; a
 * function of another library by its name.  What merely aligns code does not count: padding, NOPs before the head of a loop, short jumps
 * or long ones.  A variable counts by its name.
 *
 * Calls that are computed go to code whose address the walked code or data has, which is walked,
 * too; those of a backend's table go to the kernel.  Where a jump cannot be followed, where data has
 * an extent that nothing tells, and where nothing can decode the instructions (they are those of
 * x86-64, by Zydis), there is no digest: unknown is never "identical".
 */
#ifndef POSENC_IDENTITY_H
#define POSENC_IDENTITY_H

#include "conformance/problem/subject.h"

#include <stdint.h>

enum { CODE_DIGEST = 65, CODE_WHY = 192 };

/* Of a kernel of the subject's backend and, where they lie in one object, of the front-end before
 * it.  `file` is where that object was loaded from; NULL: as the loader names it.  False, with "" and
 * why, where it is not known. */
bool code_digest(const struct subject *subject, enum posenc_kernel kernel, const char *file,
                 char digest[CODE_DIGEST], char why[CODE_WHY]);

/* The same of any functions of one object. */
bool code_digest_of(const uintptr_t *entries, size_t n, const char *file,
                    char digest[CODE_DIGEST], char why[CODE_WHY]);

#endif
