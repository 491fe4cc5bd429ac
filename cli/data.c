/* Finds golden vectors, plug-ins and other files beside the program (see data.h). */
#define _GNU_SOURCE
#include "base/text/text.h"
#include "data.h"
#include "plugins.h"

#include "commit.h"

#include <posenc/backend.h>

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
    char called[DATA_PATH]; /* may contain symbolic links */
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

/* Writes FOLDER/NAME and returns true if it exists. */
static bool find_inside(const char *folder, const char *name, char out[DATA_PATH])
{
    int length = snprintf(out, DATA_PATH, "%s/%s", folder, name);
    return length > 0 && length < DATA_PATH && access(out, F_OK) == 0;
}

bool data_find(const char *in_build, const char *installed, const char *path,
               char found[DATA_PATH])
{
    char folder[DATA_PATH];
    /* The build tree comes first: a program run from there must not use an older installation. */
    if (program_folder(folder) &&
        (find_inside(folder, in_build, found) || find_inside(folder, installed, found)))
        return true;
    snprintf(found, DATA_PATH, "%s", path);
    return access(found, F_OK) == 0;
}

static bool find_vectors(const struct cli *cli, char path[DATA_PATH])
{
    const char *named = cli->vectors ? cli->vectors : getenv("POSENC_VECTORS");
    if (named && *named != '\0') {
        snprintf(path, DATA_PATH, "%s", named);
        return true;
    }
    return data_find("golden", POSENC_GOLDEN_INSTALLED, POSENC_DATADIR "/golden", path);
}

int data_vectors(const struct cli *cli, struct vectors *vectors)
{
    char path[DATA_PATH], error[VECTORS_ERROR];
    if (!find_vectors(cli, path)) {
        return cli_reject(cli, "vectors", NULL,
                          "none found beside the program nor in %s; expected --vectors PATH or "
                          "POSENC_VECTORS=PATH",
                          POSENC_DATADIR);
    }
    if (!vectors_load(path, vectors, error))
        return cli_reject(cli, "vectors", NULL, "%s", error); /* it names the file */
    cli_print_note("vectors: %s, %zu cases, SHA-256 %.16s%s\n", path, vectors->n,
                   vectors->sha256, vectors->official ? "" : ": " OTHER_VECTORS);
    return EXIT_OK;
}

static void print_left_out(const char *path, const char *error)
{
    text_print(stderr, "posenc: skipped: %s: %s\n", path, error);
}

/* Makes the stub of a plug-in. Returns NULL and a message if the plug-in cannot be loaded. */
static const struct posenc_backend *load_usable(const char *path, char error[PLUGIN_ERROR])
{
    const struct posenc_backend *backend = plugins_make_stub(PLUGIN_LIBRARY, path, error);
    const char *load_error = backend ? plugins_load_error(backend) : NULL;
    if (load_error)
        snprintf(error, PLUGIN_ERROR, "%s", load_error);
    return load_error ? NULL : backend;
}

/* Adds the plug-ins of POSENC_PLUGINS; an empty name means no folder. */
static void add_named_folder(const char *folder)
{
    DIR *found = opendir(folder);
    if (found) {
        closedir(found);
        plugins_add_by(load_usable, folder, print_left_out);
    } else if (folder[0] != '\0') {
        text_print(stderr, "posenc: POSENC_PLUGINS: %s: expected a folder of plug-ins\n",
                   folder);
    }
}

void data_plugins(void)
{
    char path[DATA_PATH];
    const char *named = getenv("POSENC_PLUGINS");
    if (named)
        add_named_folder(named);
    else if (data_find(POSENC_PLUGINS_IN_BUILD, POSENC_PLUGINS_INSTALLED, POSENC_PLUGINS_DIR,
                       path))
        plugins_add_by(load_usable, path, print_left_out);
}

/* ---- Identity of the build ---- */

json_t *data_build_record(void)
{
    static const char mark[] = "-dirty";
    char commit[96] = POSENC_COMMIT;
    const size_t n = strlen(commit);
    const bool dirty = n > strlen(mark) && strcmp(commit + n - strlen(mark), mark) == 0;
    if (dirty)
        commit[n - strlen(mark)] = '\0';
    return json_pack("{s:s,s:s*,s:o*}", "version", posenc_version(), "commit",
                     n > 0 ? commit : NULL, "dirty", n > 0 ? json_boolean(dirty) : NULL);
}

/* ---- Summaries of encodings ---- */

static const struct topic topics[] = {
#include "topics.inc"
};
enum { N_TOPICS = sizeof topics / sizeof *topics };

const struct topic *topic_at(size_t i) { return i < N_TOPICS ? &topics[i] : NULL; }

const char *topic_summary(const char *kind, const char *name)
{
    for (const struct topic *t = topics; t < topics + N_TOPICS; t++)
        if (strcmp(t->kind, kind) == 0 && strcmp(t->name, name) == 0)
            return t->summary;
    return "";
}

void print_wrapped(const char *text, int column, int to)
{
    int at = column;
    for (bool first = true; *text != '\0'; first = false) {
        int length = (int)strcspn(text, " ");
        if (!first && at + 1 + length > to) {
            printf("\n%*s", column, "");
            at = column;
        } else if (!first) {
            at += printf(" ");
        }
        at += printf("%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

const char *topic_next_name(const char *list, char *piece, size_t size)
{
    size_t length = strcspn(list, ",");
    snprintf(piece, size, "%.*s", (int)length, list);
    list += length;
    return *list == '\0' ? NULL : list + strspn(list, ", ");
}
