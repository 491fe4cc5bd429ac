/*
 * Runs the commands that are programs of their own (see hand_over.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "hand_over.h"
#include "args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes FOLDER/posenc-NAME into `path` if that is a program. */
static bool is_program(const char *folder, size_t length, const char *name, char *path)
{
    const int bytes = snprintf(path, DATA_PATH, "%.*s/posenc-%s", (int)length, folder, name);
    return bytes > 0 && bytes < DATA_PATH && access(path, X_OK) == 0;
}

static bool find(const char *name, char *path)
{
    char folder[DATA_PATH];
    if (data_beside(POSENC_COMMANDS_IN_BUILD, POSENC_COMMANDS_INSTALLED, POSENC_COMMANDS_DIR,
                    folder) &&
        is_program(folder, strlen(folder), name, path))
        return true;
    const char *at = getenv("PATH");
    while (at) {
        const size_t length = strcspn(at, ":");
        if (length > 0 && is_program(at, length, name, path))
            return true;
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return false;
}

bool hand_over_find(const char *name, char path[DATA_PATH])
{
    char program[DATA_PATH];
    if (!find(name, path))
        return false;
    if (data_program(program))
        setenv("POSENC_PROGRAM", program, 1);
    return true;
}

int hand_over(const char *name, char **argv)
{
    char path[DATA_PATH];
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz_") != strlen(name) ||
        !hand_over_find(name, path))
        return HAND_OVER_NONE;
    argv[1] = path;
    execv(path, argv + 1);
    const struct cli cli = { .command = name };
    if (errno == ENOENT) /* it is there: what its first line names is not */
        return cli_refuse(
            &cli, "Python", NULL,
            "not found: the first line of %s names it.  Install Python 3.9 or later", path);
    return cli_refuse(&cli, path, NULL, "cannot be run: %s", strerror(errno));
}
