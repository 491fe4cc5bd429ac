/*
 * --resume FILE: a run goes on where another one stopped.  FILE is what that one left: FILE.partial
 * where it was killed, else FILE; of a report also its folder.  What is finished in it is kept, the
 * rest is run, and the whole is written.  Where there is no such file yet all is run, so that the
 * same line can be given again until it succeeds.
 */
#ifndef POSENC_CLI_RESUME_H
#define POSENC_CLI_RESUME_H

#include "args.h"

struct resume {
    bool sought;
    char *path;      /* NULL: there is nothing to go on from */
    json_t *records; /* of the file */
    json_t *kept;    /* those that are kept, by what they are of */
};

/* Reads the file of --resume, if it is given, once.  EXIT_FINE, or EXIT_USAGE after a message. */
int resume_read(const struct cli *cli, struct resume *resume);
/* Refuses a file of another program, CPU, set of vectors, selection or set of options than those of
 * this run's header and env; else chooses what is kept, bench cases of `backends` rows each, and
 * notes it in the header. */
int resume_accept(const struct cli *cli, struct resume *resume, json_t *header,
                  const json_t *env, size_t backends);
/* The record of a kind that was kept of a case and a backend, borrowed; NULL. */
json_t *resume_take(const struct resume *resume, const char *kind, const char *id,
                    const char *backend);
/* Hands on each record that is kept. */
void resume_each(const struct resume *resume, void (*keep)(void *user, json_t *record),
                 void *user);
void resume_free(struct resume *resume);

#endif
