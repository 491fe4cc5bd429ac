/* The monotonic clock, by which everything is timed. */
#ifndef POSENC_CLOCK_H
#define POSENC_CLOCK_H

/* Returns seconds since some time past. */
double clock_now(void);

/* Returns the seconds that a sample has to last: 100 us, and 200 of the smallest steps of the clock. */
double clock_least_sample(void);

#endif
