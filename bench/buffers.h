/*
 * Memory for calls that are timed.
 */
#ifndef POSENC_BUFFERS_H
#define POSENC_BUFFERS_H

#include "conformance/problem/problem.h"

/* 64-byte aligned, present (written once, not with zeros), and each buffer at another offset
 * within its page: tensors that all begin on a page make loads wait for unrelated stores 4 KiB
 * away and cost an out-of-place run 20 to 40 %.  `count` numbers the buffers; it must outlive
 * them. */
struct memory bench_memory(unsigned *count);

#endif
