/*
 * Known mistakes: errors that people make when they implement an encoding. If a call returns wrong values, the search
 * names the mistake that reproduces them, and posenc verify prints it:
 *
 *     matches: the sine has the other sign: the rotation turns backward
 *
 * A mistake is a row of a table in tokens.c, rotations.c, frequencies.c or scores.c: a sentence, and an edit of the
 * problem, of its inputs or of its expected rows (hypothesis.h). A mistake matches if each returned value agrees with
 * the edited rows within a few ulp, and at least one of these values is wrong.
 *
 * A small problem may match by chance. The implementation therefore runs variations of the problem, in larger sizes and
 * with other parameters. The mistake must predict their outputs, too.
 */
#ifndef POSENC_MISTAKES_H
#define POSENC_MISTAKES_H

#include "conformance/problem/problem.h"

enum { MISTAKE_TEXT = 240 };

/* Runs a problem that failed. Returns false if the values are correct this time, or if the call fails in another way.
 * Otherwise writes the sentence of the mistake, or "" if no known mistake reproduces the values. */
bool mistakes_find(const struct implementation *implementation, const struct problem *problem,
                   char text[MISTAKE_TEXT]);

#endif
