/*
 * Writes the journal of a run (see journal.h).
 *
 * It is locked by the process that writes it, so that one that nobody has locked is known to be
 * what a killed process left.
 */
#define _GNU_SOURCE
#include "journal.h"
#include "base/text/text.h"
#include "outputs.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int held = -1; /* the file of this process, and its lock */

static int refuse(const struct cli *cli, const char *target)
{
    return cli_refuse(cli, "--out", target,
                      "cannot be written: %s; expected a file in a folder that can be written",
                      strerror(errno));
}

int journal_open(const struct cli *cli, struct journal *journal, const char *target)
{
    *journal = (struct journal){ 0 };
    if (asprintf(&journal->path, "%s.partial", target) < 0)
        journal->path = NULL;
    held = journal->path ? temporary_open(journal->path, &journal->temporary) : -1;
    if (held < 0)
        return refuse(cli, target);
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(held, 0666 & ~mask) == 0)
        journal->stream = fdopen(held, "w");
    return journal->stream ? EXIT_FINE : refuse(cli, target);
}

bool journal_is_written(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool locked =
        file >= 0 && flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (file >= 0)
        close(file);
    return locked;
}

void journal_publish(const struct cli *cli, struct journal *journal)
{
    struct stat there;
    const struct format *records = format_find(record_formats, BY_ALL, "jsonl", 5);
    const bool left = journal->stream && lstat(journal->path, &there) == 0;
    if (!journal->stream ||
        (left && (!S_ISREG(there.st_mode) || !output_is_own(records, journal->path) ||
                  journal_is_written(journal->path))))
        return;
    if (rename(journal->temporary, journal->path) != 0)
        return;
    free(journal->temporary);
    journal->temporary = NULL;
    if (left && there.st_size > 0 && !cli->resume)
        text_print(
            stderr,
            "posenc %s: %s, which a killed run left, is replaced: --resume would have gone "
            "on with it\n",
            cli->command, journal->path);
}

void journal_close(struct journal *journal, bool done)
{
    if (journal->stream) {
        if (done)
            unlink(journal->temporary ? journal->temporary : journal->path);
        fclose(journal->stream);
    }
    held = -1;
    free(journal->path);
    free(journal->temporary);
    *journal = (struct journal){ 0 };
}

void journal_leave(void)
{
    if (held >= 0)
        close(held);
    held = -1;
}
