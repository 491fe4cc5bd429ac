/*
 * What a verdict rests on, to be seen: the samples of each launch as a strip of points, and the intervals of many
 * rows under each other.  Text for a terminal, SVG for a page, of records alone.
 */
#ifndef POSENC_EVIDENCE_H
#define POSENC_EVIDENCE_H

#include "comparison.h"

/* Strings to be freed.  NULL: the record has no samples, or no memory. */

/* Two lines a launch, of head and of base again, over an axis in per cent; at most 76 columns wide. */
char *evidence_strip(const struct pair_row *row);
char *evidence_svg(const struct pair_row *row);
/* Each row's change with its interval, floor and budget; how far base is from itself above them. */
char *evidence_forest(const struct comparison *comparison);

#endif
