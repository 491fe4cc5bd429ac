/*
 * Writes of a kernel to memory that lasts: the static variables of the program or the plug-in that
 * it belongs to.  They cannot be written while they are watched; a write faults, is noted, and goes
 * on.
 */
#ifndef POSENC_STATICS_H
#define POSENC_STATICS_H

#include <stdbool.h>
#include <stddef.h>

enum { STATICS_TEXT = 128, MOST_SEGMENTS = 4 };

struct statics {
    struct segment {
        char *begin, *end;   /* whole pages */
        const char *watched; /* from here on: what is before may be written */
    } segments[MOST_SEGMENTS];
    int n;
    const char *object; /* its file, "" for the program */
    const char *base;
    char text[STATICS_TEXT]; /* the first write */
};

/* Those of the object that has this function; false where they cannot be found, or where others
 * write there (a sanitizer, counters of coverage). */
bool statics_of(void (*function)(void), struct statics *statics);
const char *statics_unseen(void);

/* Protects them, and lets go of them. */
void statics_watch(struct statics *statics);
void statics_leave(struct statics *statics);

/* A fault at this address: whether it was such a write, which may now go on. */
bool statics_mend(void *statics, const char *address);

#endif
