/*
 * Temporary files and what is left of them: see temporary.h.
 */
#define _GNU_SOURCE
#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char suffix[] = ".posenc-", drawn[] = "XXXXXX";

/* Removes a file of this user's that no process has locked. */
static void sweep_file(int folder, const char *name)
{
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat there;
    if (file >= 0 && fstat(file, &there) == 0 && S_ISREG(there.st_mode) &&
        there.st_uid == geteuid() && there.st_nlink == 1 && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    if (file >= 0)
        close(file);
}

static void sweep(const char *target)
{
    const char *slash = strrchr(target, '/');
    char *folder = slash ? strndup(target, (size_t)(slash - target) + 1) : strdup("."),
         *prefix = NULL;
    DIR *list = folder ? opendir(folder) : NULL;
    const int n = asprintf(&prefix, "%s%s", slash ? slash + 1 : target, suffix);
    for (struct dirent *entry; list && n > 0 && (entry = readdir(list));)
        if (strncmp(entry->d_name, prefix, (size_t)n) == 0 &&
            strlen(entry->d_name) == (size_t)n + strlen(drawn))
            sweep_file(dirfd(list), entry->d_name);
    if (list)
        closedir(list);
    if (n > 0)
        free(prefix);
    free(folder);
}

/* Whether a new file is this process's: between its making and its lock another one may have swept it. */
static bool is_kept(int file)
{
    struct stat there;
    return flock(file, LOCK_EX) != 0 || fstat(file, &there) != 0 || there.st_nlink > 0;
}

int temporary_open(const char *target, char **path)
{
    sweep(target);
    char *name = NULL;
    int file;
    do {
        free(name);
        if (asprintf(&name, "%s%s%s", target, suffix, drawn) < 0)
            name = NULL;
        *path = name;
        file = name ? mkostemp(name, O_CLOEXEC) : -1;
    } while (file >= 0 && !is_kept(file) && close(file) == 0);
    if (file < 0) {
        const int why = errno;
        *path = NULL;
        free(name);
        errno = why;
    }
    return file;
}
