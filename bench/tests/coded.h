/* What the two files of the library of coded.c share. */
#ifndef POSENC_CODED_H
#define POSENC_CODED_H

extern long coded_calls, coded_failures;
extern const char *coded_message;
long coded_entry(const float *x, long n, const char *name);
__attribute__((visibility("hidden"))) long coded_other(long x);
__attribute__((visibility("hidden"))) const void *memrchr_like(const void *text, int c,
                                                               unsigned long n);

#endif
