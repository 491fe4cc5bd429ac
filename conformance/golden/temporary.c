/* Makes a folder for the time of a test, and removes it with what is inside (see
 * temporary.h). */
#define _POSIX_C_SOURCE 200809L
#include "temporary.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool temporary_make(const char *name, char path[TEMPORARY_BYTES])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, TEMPORARY_BYTES, "%.400s/%s-XXXXXX", base ? base : "/tmp", name);
    if (mkdtemp(path))
        return true;
    fprintf(stderr, "%s: no temporary folder %s\n", name, path);
    return false;
}

void temporary_remove(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char inside[TEMPORARY_BYTES];
        snprintf(inside, sizeof inside, "%.600s/%.400s", path, entry->d_name);
        if (entry->d_name[0] != '.' && unlink(inside) != 0)
            temporary_remove(inside);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}
