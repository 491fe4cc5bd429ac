/*
 * A page of Markdown that fits a number of bytes, for places that take no more.
 */
#ifndef POSENC_SUMMARY_H
#define POSENC_SUMMARY_H

#include "reports/formats.h"

/* The outcome in a line, then of each machine what failed, what was compared and the answer, then the evidence,
 * folded away.  What does not fit is left out section by section, the last first, and named; of what failed
 * or was compared as many rows are shown as fit.  0, or -1: no memory. */
int summary_write(const json_t *records, FILE *out, size_t limit);

#endif
