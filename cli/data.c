/*
 * Finding what lies beside the program, golden vectors and plug-ins: see data.h.
 */
#define _GNU_SOURCE
#include "base/text/text.h"
#include "data.h"
#include "plugins.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

bool data_program(char path[DATA_PATH])
{
#if defined(__APPLE__)
    char called[DATA_PATH]; /* as it was called, links and all */
    uint32_t bytes = sizeof called;
    if (_NSGetExecutablePath(called, &bytes) != 0 || !realpath(called, path))
        return false;
#else
    ssize_t length = readlink("/proc/self/exe", path, DATA_PATH - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
#endif
    return true;
}

static bool program_folder(char path[DATA_PATH])
{
    char *slash = data_program(path) ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static bool join(char out[DATA_PATH], const char *folder, const char *name)
{
    int length = snprintf(out, DATA_PATH, "%s/%s", folder, name);
    return length > 0 && length < DATA_PATH && access(out, F_OK) == 0;
}

bool data_beside(const char *in_build, const char *installed, const char *path,
                 char found[DATA_PATH])
{
    char folder[DATA_PATH];
    /* the build tree first: a program run from there must not pick up an older installation */
    if (program_folder(folder) &&
        (join(found, folder, in_build) || join(found, folder, installed)))
        return true;
    snprintf(found, DATA_PATH, "%s", path);
    return access(found, F_OK) == 0;
}

static bool find(const struct cli *cli, char path[DATA_PATH])
{
    const char *named = cli->vectors ? cli->vectors : getenv("POSENC_VECTORS");
    if (named && *named != '\0') {
        snprintf(path, DATA_PATH, "%s", named);
        return true;
    }
    return data_beside(POSENC_PACK_IN_BUILD, POSENC_PACK_INSTALLED,
                       POSENC_DATADIR "/vectors.pack", path);
}

int data_vectors(const struct cli *cli, struct vectors *vectors)
{
    char path[DATA_PATH], error[VECTORS_ERROR];
    if (!find(cli, path)) {
        return cli_refuse(cli, "vectors", NULL,
                          "none found beside the program nor in %s; expected --vectors PATH or "
                          "POSENC_VECTORS=PATH",
                          POSENC_DATADIR);
    }
    if (!vectors_load_pack(path, vectors, error))
        return cli_refuse(cli, "vectors", NULL, "%s", error); /* it names the file */
    cli_print_note("vectors: %s, %zu cases, SHA-256 %.16s%s\n", path, vectors->n,
                   vectors->sha256, vectors->official ? "" : ": " OTHER_VECTORS);
    return EXIT_FINE;
}

static void tell_plugin(const char *path, const char *error)
{
    text_print(stderr, "posenc: left out: %s: %s\n", path, error);
}

/* One that cannot even be loaded is no backend of the library's list. */
static const struct posenc_backend *meet_usable(const char *path, char error[PLUGIN_ERROR])
{
    const struct posenc_backend *backend = plugins_meet(path, error);
    const char *broken = backend ? plugins_broken(backend) : NULL;
    if (broken)
        snprintf(error, PLUGIN_ERROR, "%s", broken);
    return broken ? NULL : backend;
}

/* The folder that somebody named: one that is not there is a slip, and an empty name says none. */
static void add_named(const char *folder)
{
    DIR *found = opendir(folder);
    if (found)
        closedir(found);
    else if (folder[0] != '\0')
        text_print(stderr, "posenc: POSENC_PLUGINS: %s: expected a folder of plug-ins\n",
                   folder);
    plugins_add_by(meet_usable, folder, tell_plugin);
}

void data_plugins(void)
{
    char path[DATA_PATH];
    const char *named = getenv("POSENC_PLUGINS");
    if (named)
        add_named(named);
    else if (data_beside(POSENC_PLUGINS_IN_BUILD, POSENC_PLUGINS_INSTALLED, POSENC_PLUGINS_DIR,
                         path))
        plugins_add_by(meet_usable, path, tell_plugin);
}
