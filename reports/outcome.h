/*
 * What came of everything in the records, of all machines: for a heading, a badge, an exit code.
 */
#ifndef POSENC_OUTCOME_H
#define POSENC_OUTCOME_H

#include "comparison.h"

struct outcome {
    struct counts checks;
    size_t timed, wrong; /* timings; outputs that were wrong and therefore not timed */
    size_t pairs, slower, faster, unclear;
    size_t failing, broken; /* of these, what a gate fails on; and where head does not work */
    size_t worse, better, moved; /* results that changed; moved: nobody knows which */
    char grade;                  /* of the worst machine that a doctor saw; 0: none */
    bool quick, partial;         /* one run at least; partial: it did not finish */
    const char *vectors;         /* vectors_note() of one at least */
};

/* -1: no memory. */
int outcome_of(const json_t *records, struct outcome *outcome);
/* Whether all that was asked is well: nothing failed, is wrong, fails a gate, got worse, or is missing. */
bool outcome_is_good(const struct outcome *outcome);
/* "2 of 16 666 checks failed, 1 slower": what is bad first. */
enum { OUTCOME_TEXT = 256 };
void outcome_words(const struct outcome *outcome, char text[OUTCOME_TEXT]);

/* Of a check that did not pass: "31.7 pair ulp, limit 1.5, token 3 head 0; got -0x1.9p-3, want -0x1.88p-3",
 * or why. */
enum { CHECK_TEXT = 512 };
void check_words(const struct conf_row *check, char text[CHECK_TEXT]);
/* "0.94 ulp, was 0.50 ulp (limit 1.00 ulp), 3 of 64 values moved, at position 7": what changed. */
enum { CHANGE_TEXT = 400 };
void change_words(const struct change_row *change, char text[CHANGE_TEXT]);
/* "+7.5 % (6.9 to 8.2): above the budget", or why it was not timed. */
enum { PAIR_TEXT = 400 };
void pair_words(const struct pair_row *row, char text[PAIR_TEXT]);

#endif
