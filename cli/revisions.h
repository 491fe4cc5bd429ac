/*
 * Builds of git revisions, kept for the next time.
 *
 * A revision is checked out into a work tree of its own, a temporary folder, and built there; the
 * shared object that comes out is put into the cache whole or not at all:
 *
 *     $XDG_CACHE_HOME or ~/.cache/posenc/builds/COMMIT-HASH/NAME.so, build.log
 *
 * HASH is that of what made it besides the commit: the command, the compiler that CC names with its
 * version, and its flags, so that two builds that are compared differ in nothing else.  The
 * repository's own work tree is built as a commit made of what git tracks there, which no branch
 * has; its files are not touched.
 */
#ifndef POSENC_CLI_REVISIONS_H
#define POSENC_CLI_REVISIONS_H

#include "args.h"

/* A shell command, run in the tree that was checked out, and what it makes, a path in that tree;
 * both NULL: as this library is built. */
struct revision_build {
    const char *command, *library;
};

struct revision {
    char name[128];  /* as it was given; "work tree" */
    char commit[72]; /* in full */
    bool dirty;      /* the work tree has changes that are in no commit of its own */
    bool was_there;  /* in the cache */
    char path[4096]; /* of the shared object */
};

/* Finds or builds a revision of the repository around the current folder; NULL: its work tree.  What
 * is done is told on stderr.  EXIT_FINE, or EXIT_USAGE after a message.  A signal ends the build and
 * removes the tree before the program ends of it. */
int revision_take(const struct cli *cli, const struct revision_build *how, const char *name,
                  struct revision *revision);

#endif
