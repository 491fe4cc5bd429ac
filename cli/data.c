/*
 * Finding the golden vectors, see data.h.
 */
#define _GNU_SOURCE
#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

enum { PATH_BYTES = 4096 };

/* The folder of the running program; false where the system does not tell. */
static bool program_folder(char path[PATH_BYTES])
{
#if defined(__APPLE__)
    char called[PATH_BYTES]; /* as it was called, links and all */
    uint32_t bytes = sizeof called;
    if (_NSGetExecutablePath(called, &bytes) != 0 || !realpath(called, path))
        return false;
#else
    ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
#endif
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

static bool join(char out[PATH_BYTES], const char *folder, const char *name)
{
    int length = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
    return length > 0 && length < PATH_BYTES && access(out, F_OK) == 0;
}

static bool find(const struct cli *cli, char path[PATH_BYTES])
{
    const char *named = cli->vectors ? cli->vectors : getenv("POSENC_VECTORS");
    if (named && *named != '\0') {
        snprintf(path, PATH_BYTES, "%s", named);
        return true;
    }
    char folder[PATH_BYTES];
    if (program_folder(folder)) {
        /* the build tree first: a program run from there must not pick up an
         * older installation */
        static const char *const places[] = { POSENC_PACK_IN_BUILD, POSENC_PACK_INSTALLED };
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (join(path, folder, places[i]))
                return true;
    }
    return join(path, POSENC_DATADIR, "vectors.pack");
}

int data_vectors(const struct cli *cli, struct vectors *vectors)
{
    char path[PATH_BYTES], error[VECTORS_ERROR];
    if (!find(cli, path)) {
        return cli_refuse(cli, "vectors", NULL,
                          "none found beside the program nor in %s; expected --vectors PATH or "
                          "POSENC_VECTORS=PATH",
                          POSENC_DATADIR);
    }
    if (!vectors_load_pack(path, vectors, error))
        return cli_refuse(cli, "vectors", NULL, "%s", error); /* it names the file */
    fprintf(stderr, "vectors: %s, %zu cases, SHA-256 %.16s\n", path, vectors->n,
            vectors->sha256);
    return EXIT_FINE;
}
