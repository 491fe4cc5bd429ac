/*
 * Numbers as people read them.  A small number of static buffers in turn, so that several may stand in
 * one printf.
 */
#ifndef POSENC_SHOW_H
#define POSENC_SHOW_H

const char *show_time(double ns); /* 29.2 ns, 1.87 us, 12.3 ms */
/* An error and its limit, with as many digits as it takes to see which is the larger: an error that
 * passed never reads as one that failed. */
struct shown_error {
    const char *error, *limit;
};
struct shown_error show_judged(double max, double limit, const char *metric);

#endif
