/*
 * Work of this program in processes of its own, so that what a plug-in does to its process does nothing to
 * the run: how one is begun, what it is at, whether it has hung, and how it ended.
 *
 * A process has hung when it has been at one thing for too long by its own clock: the CPU time that it
 * used, or time in which it slept and nothing woke it.  One that waits for a CPU has not.
 */
#ifndef POSENC_CLI_APART_H
#define POSENC_CLI_APART_H

#include "conformance/problem/guard.h"

#include <sys/types.h>

enum { APART_WORDS = 160, APART_DOING = 128, APART_FILES = 8, APART_PATH = 4096, APART_AT = 4 };
/* With what a process exits that has done all, unlike one that is ended by an exit() of somebody else's. */
enum { ALL_DONE = 42 };

/* What a process is at: written by it, read by its parent, which shares the memory. */
struct apart_note {
    struct guard_note call;
    volatile unsigned turn; /* another one whenever something else begins */
    volatile bool inside;   /* what runs is a plug-in's */
    char doing[APART_DOING];
    size_t at[APART_AT];                 /* as the work likes */
    char files[APART_FILES][APART_PATH]; /* temporary ones */
};

/* How long a process has been at one thing, by its own clock. */
struct silence {
    double asked_s, asked_cpu_s, since_cpu_s, slept_s;
};

struct apart {
    pid_t pid;
    int signal;  /* the one that ended it, or 0: known from apart_end() on */
    int from;    /* the end of its pipe that is read, without waiting */
    size_t part; /* bytes of a message that have come */
    struct apart_note *note;
    /* What it was at when that was last asked, and since when. */
    unsigned turn;
    unsigned long call;
    struct silence silence;
};

/* Seconds that something of a plug-in's may take, and something of ours. */
struct patience {
    double inside_s, outside_s;
};
/* What --limit says, or else is usual; ours may take longer. */
struct patience patience_of(double limit_s, double outside_s);

/* Starts a process that does the work, which writes to `to` and returns, and then exits with ALL_DONE.  It
 * has a process group of its own, ends with its parent, and what is printed there is on stderr, unless it
 * `prints`.  False: there is none. */
typedef void apart_work(void *user, int to);
bool apart_begin(struct apart *apart, apart_work *work, void *user, bool prints);
/* All of a message from such a process; it ends where nobody reads any more. */
void apart_tell(int to, const void *message, size_t bytes);

/* Waits a moment for a message of that size.  Of it all has come, or not yet; or the process has ended, or
 * hangs: then `hung` says how. */
enum apart_said { APART_SAID, APART_QUIET, APART_OVER };
enum apart_said apart_listen(struct apart *apart, const struct patience *patience,
                             void *message, size_t size, char hung[APART_WORDS]);
/* Whether it has hung; to be asked a few times a second.  Then `words` say how. */
bool apart_hangs(struct apart *apart, const struct patience *patience, char words[APART_WORDS]);
/* It said something. */
void apart_heard(struct apart *apart);

/* Whether it has ended, though a process that it left may hold its pipe. */
bool apart_is_gone(const struct apart *apart);
/* Waits for it, after having killed it where `now`, and for all that it started.  Whether it was done; if
 * not, `words` say how it ended.  The note stays until apart_forget(). */
bool apart_end(struct apart *apart, bool now, char words[APART_WORDS]);
void apart_forget(struct apart *apart);
/* " in CASE", " after CASE": where it was; `after` is the last that it finished, or "". */
void apart_where(const struct apart *apart, const char *after, char *text, size_t size);

/* In such a process; elsewhere nothing: */
void apart_doing(const char *what); /* at hand: something of ours */
void apart_enter(const char *what); /* something of a plug-in's */
void apart_leave(void);
void apart_at(size_t which, size_t value);      /* note->at[which] */
void apart_file(const char *path, bool exists); /* a temporary file: to be removed after it */
/* exit(); where this process does the work of a command for its parent, that one exits so. */
_Noreturn void apart_exit(int code);
/* A command in a process of its own, which prints; its exit code.  Where it does not come to its end: its
 * conformance has failed, and a line on stderr says how; a signal that ends this process ends it first. */
int apart_command(int (*run)(void *user), void *user, const char *name, double limit_s);

#endif
