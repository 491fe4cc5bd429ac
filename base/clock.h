/* Monotonic clock of all timings. */
#ifndef POSENC_CLOCK_H
#define POSENC_CLOCK_H

/* Returns seconds since an arbitrary time. */
double clock_now(void);

/* Returns the minimum length of a sample in seconds: 100 us, and 200 ticks of the clock. */
double clock_least_sample(void);

#endif
