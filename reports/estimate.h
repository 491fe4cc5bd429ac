/*
 * Static estimates (records "estimate"): cycles of the kernels' inner loops on cores that need
 * not be at hand, from llvm-mca.  They are of no machine and no run: a file of them has the mode
 * "estimate" in its header and is shown apart from what was measured.
 */
#ifndef POSENC_ESTIMATE_H
#define POSENC_ESTIMATE_H

#include "records.h"

/* What is wrong with a record of type "estimate", as the end of a sentence about it; NULL: nothing. */
const char *estimate_problem(const json_t *record);

/* Whether a record is the header of a file of estimates, and whether there is nothing else. */
bool estimate_header(const json_t *record);
bool estimates_only(const json_t *records);

#endif
