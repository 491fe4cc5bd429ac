/* See folder.h. */
#define _POSIX_C_SOURCE 200809L
#include "folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool folder_make(const char *name, char path[FOLDER_BYTES])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, FOLDER_BYTES, "%.400s/%s-XXXXXX", base ? base : "/tmp", name);
    if (mkdtemp(path))
        return true;
    fprintf(stderr, "%s: no temporary folder %s\n", name, path);
    return false;
}

void folder_remove(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char file[FOLDER_BYTES];
        snprintf(file, sizeof file, "%.400s/%.400s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(file);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}
