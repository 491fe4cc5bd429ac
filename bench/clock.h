/*
 * The clock that samples are timed by.
 */
#ifndef POSENC_CLOCK_H
#define POSENC_CLOCK_H

double clock_now(void); /* seconds */

/* Seconds that a sample has to last: 100 us, and 200 of the smallest steps the clock makes. */
double clock_least_sample(void);

#endif
