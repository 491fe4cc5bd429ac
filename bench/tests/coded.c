/*
 * A small library whose machine code is compared: one source, built in many ways.  Some change
 * nothing but where code and data lie; each of the others changes one thing:
 *
 *     CODED_ADDED      an instruction more
 *     CODED_NOP        an instruction more that does nothing
 *     CODED_IMMEDIATE  a number in an instruction
 *     CODED_CONSTANT   a constant that an instruction reads
 *     CODED_TABLE      the last number of a table that a register leads to
 *     CODED_CALLEE     a number in a function that is called
 *     CODED_POINTED    a number in a function of which only the address is taken
 *     CODED_OTHER      the function of another library that is called
 *     CODED_VARIABLE   which variable is read
 *     CODED_TEXT       the words of a message
 *     CODED_BRANCH     the condition of a jump
 *
 * CODED_SWITCH has a jump that cannot be followed, which is told and never taken for the same.
 */
#include "coded.h"

#include <stdlib.h>
#include <string.h>

#ifdef CODED_TABLE
#define LAST 17.5f
#else
#define LAST 16.5f
#endif
#ifdef CODED_CONSTANT
#define FACTOR 0.3f
#else
#define FACTOR 0.2f
#endif
#ifdef CODED_IMMEDIATE
#define STEP 37
#else
#define STEP 36
#endif
#ifdef CODED_CALLEE
#define BIAS 5
#else
#define BIAS 3
#endif
#ifdef CODED_POINTED
#define SIGN 11
#else
#define SIGN 9
#endif
#ifdef CODED_TEXT
#define WORDS "too short."
#else
#define WORDS "too short:"
#endif
#ifdef CODED_BRANCH
#define IS_SHORT(n) ((n) <= 0)
#else
#define IS_SHORT(n) ((n) < 0)
#endif
#ifdef CODED_VARIABLE
#define CALLS coded_failures
#else
#define CALLS coded_calls
#endif
#ifdef CODED_OTHER
#define FINDS memchr
#else
#define FINDS memrchr_like
#endif

long coded_calls, coded_failures;
const char *coded_message;

static const float table[16] = { 1.5f, 2.5f,  3.5f,  4.5f,  5.5f,  6.5f,  7.5f,  8.5f,
                                 9.5f, 10.5f, 11.5f, 12.5f, 13.5f, 14.5f, 15.5f, LAST };

__attribute__((noinline)) static long turn(long x) { return x * 7 + BIAS; }
__attribute__((noinline)) static long flip(long x) { return SIGN - x; }

__attribute__((visibility("hidden"))) const void *memrchr_like(const void *text, int c,
                                                               size_t n)
{
    return n ? strchr(text, c) : NULL;
}

#ifdef CODED_SWITCH
__attribute__((noinline)) static long choose(long x, long y)
{
    switch (x) {
    case 0:
        return y * 3 + coded_calls;
    case 1:
        return y - 17;
    case 2:
        return y * y;
    case 3:
        return coded_other(y);
    case 4:
        return y ^ 99;
    case 5:
        return y / 7;
    case 6:
        return -y;
    case 7:
        return turn(y) + 1;
    default:
        return 0;
    }
}
#endif

__attribute__((noinline)) static long each(const float *x, long n, long (*of)(long))
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        const float value = x[i] * table[(i * STEP) & 15] + FACTOR;
        sum += of((long)value);
#ifdef CODED_NOP
        __asm__ volatile("nop");
#endif
#ifdef CODED_ADDED
        __asm__ volatile("addq $1, %0" : "+r"(sum));
#endif
    }
    return sum;
}

long coded_entry(const float *x, long n, const char *name)
{
    if (IS_SHORT(n)) {
        coded_message = WORDS;
        if (n == -7)
            abort();
        return -1;
    }
    CALLS++;
    const void *found = FINDS(name, 'x', strlen(name));
    const long sum = each(x, n, found ? turn : flip);
#ifdef CODED_SWITCH
    return choose(sum & 15, sum) + coded_other(turn(sum));
#else
    return sum + coded_other(turn(sum));
#endif
}
