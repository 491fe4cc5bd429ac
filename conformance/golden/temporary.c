/* Makes a folder for the time of a test, and removes it with what is inside (see temporary.h). */
#define _XOPEN_SOURCE 700
#include "temporary.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

bool temporary_make(const char *name, char path[TEMPORARY_BYTES])
{
    const char *base = getenv("TMPDIR");
    snprintf(path, TEMPORARY_BYTES, "%.400s/%s-XXXXXX", base ? base : "/tmp", name);
    if (mkdtemp(path))
        return true;
    fprintf(stderr, "%s: no temporary folder %s\n", name, path);
    return false;
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *place)
{
    (void)facts;
    (void)type;
    (void)place;
    return remove(path);
}

void temporary_remove(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }
