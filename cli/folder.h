/*
 * The folder of a report.  A report is written into a folder of its own beside the one that was
 * named, which takes that name when all is in it; the report that was there before becomes
 * NAME.previous.  So there is a whole report under the name at any time, whatever ends a run.
 */
#ifndef POSENC_CLI_FOLDER_H
#define POSENC_CLI_FOLDER_H

#include "outputs.h"

enum { FOLDER_PATH = 4096 };

struct folder {
    const struct cli *cli;
    char name[FOLDER_PATH];     /* as it was given */
    char target[FOLDER_PATH];   /* the same with links resolved */
    char previous[FOLDER_PATH]; /* where the report before goes */
    char partial[FOLDER_PATH];  /* where this one is written: beside the target */
    bool replaced;              /* by folder_publish(): there was a report before */
};

/* Names the folder and makes the partial one; what earlier runs left beside it that were killed
 * goes away.  EXIT_FINE, or EXIT_USAGE after a message: where a folder of that name holds
 * something else than a report (--force moves it as if it were one), or NAME.previous does. */
int folder_begin(const struct cli *cli, const char *name, struct folder *folder);
/* Refuses an output of `outputs` that lies in the folder: it would go away with it. */
int folder_refuse_inside(const struct folder *folder, const struct outputs *outputs);
/* Whether a report is there now: another process may have written it. */
bool folder_is_taken(const struct folder *folder);
/* Puts the report in its place.  EXIT_FINE, or EXIT_USAGE after a message. */
int folder_publish(struct folder *folder);
/* Removes what there is of the report; the one before stays as it is. */
void folder_discard(struct folder *folder);
/* In a child process: what its parent writes is not kept by it. */
void folder_leave(void);

#endif
