/*
 * A history in little room: a character a run, and a picture.
 */
#ifndef POSENC_SPARKLINE_H
#define POSENC_SPARKLINE_H

#include "records.h"

enum { SPARKS = 20, SPARKLINE = 4 * SPARKS + 4 };

/* The shares of the roof of a record of kind history, from the least to the largest of them but over a fifth of it at
 * least, in eight heights; of more
 * than SPARKS values the medians of neighbours. */
void sparkline(const json_t *history, char text[SPARKLINE]);

/* The run a point is of: "1f3c2ab", with a + where its tree was altered, else the day. */
enum { RUN_NAME = 24 };
void name_run(const json_t *point, char text[RUN_NAME]);

/* Histories over their runs as SVG, a colour each, with the changes of level; malloc'ed, NULL: no memory. */
char *history_svg(const json_t *const *histories, size_t n);

#endif
