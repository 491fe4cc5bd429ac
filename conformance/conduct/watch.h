/*
 * A call of a kernel that is watched: what a kernel may not do (posenc.h), a text for each that
 * it did.
 */
#ifndef POSENC_WATCH_H
#define POSENC_WATCH_H

#include "conformance/problem/guard.h"

/* From the descriptors on they are of the
 * process, which is compared over many calls (process.h).  A list rather than an enum alone: each is the case "<kernel>/<dtype>/conduct/<name>". */
#define CONDUCTS(ONE)                                                                          \
    ONE(ALLOCATIONS, "allocations")   /* memory allocated or mapped, freed or not */           \
    ONE(LEAKS, "leaks")               /* and not freed, or not unmapped */                     \
    ONE(STATICS, "static-memory")     /* its own static variables written */                   \
    ONE(ERRNO, "errno")               /* errno changed */                                      \
    ONE(REGISTERS, "registers")       /* a register that belongs to the caller changed */      \
    ONE(DIRECTION, "direction-flag")  /* string instructions left running backwards */         \
    ONE(X87, "x87-mmx")               /* registers that MMX and x87 share left in use */       \
    ONE(FILES, "descriptors")         /* descriptors opened and left, or closed */             \
    ONE(THREADS, "threads-left")      /* threads that are still running */                     \
    ONE(SIGNALS, "signals")           /* handlers, blocked signals or their stack */           \
    ONE(SURROUNDINGS, "surroundings") /* environment, locale, working directory */
enum conduct {
#define CONDUCT(name, text) CONDUCT_##name,
    CONDUCTS(CONDUCT)
#undef CONDUCT
        CONDUCT_COUNT
};
extern const char *const conduct_names[CONDUCT_COUNT];
enum { CONDUCT_TEXT = 144 };

/* Why it cannot be seen in this build, or on this machine; NULL: it can. */
const char *conduct_unseen(enum conduct conduct);

struct watched {
    struct guarded guarded;
    char text[CONDUCT_COUNT][CONDUCT_TEXT]; /* empty: it was not done */
};

/* guarded_run() of a call in plain memory, with all watched but the process.  What was left in
 * disorder is put in order. */
void watched_run(struct call *call, const struct posenc_backend *backend,
                 struct watched *watched);

#endif
