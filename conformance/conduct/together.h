/*
 * Calls of one kernel by several threads at once, each with tensors and data of its own and the
 * same shape, released together.  Every call has to give the bits that it gives alone.
 *
 * That calls overlap is not left to chance.  The first thread's pages cannot be touched at first:
 * wherever its call reaches a new one it stops, in the middle of whatever it does, until other
 * threads have begun calls and ended them; on one core, too, and however busy the machine is.
 * Where tensors have many pages a call stops at some of them, from the first to the last.
 */
#ifndef POSENC_TOGETHER_H
#define POSENC_TOGETHER_H

#include "conformance/problem/guard.h"

enum { TOGETHER = 4, TOGETHER_TEXT = 200 };

struct together {
    unsigned long calls, stops; /* that ended; in the middle of one */
    int64_t pages, stop_pages;  /* of the tensors; those at which a call would stop */
    bool crashed;
    const char *nothing;      /* why this problem cannot show anything; NULL: it can */
    char text[TOGETHER_TEXT]; /* the first that went wrong; empty: none */
};

/* `first`: all of them call once, released together, before any call that is alone: what a kernel
 * makes when it is first called is then made by several at once.  That static variables of its
 * own are written then is wrong, too: there is nothing by which the others would wait. */
void together_run(const struct subject *subject, const struct problem *problem, bool first,
                  struct together *together);

#endif
