/*
 * Finding what lies beside the program, golden vectors and plug-ins: see data.h.
 */
#define _GNU_SOURCE
#include "base/text/text.h"
#include "data.h"
#include "plugins.h"

#include "commit.h"

#include <posenc.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif
#ifdef __linux__
#include <elf.h>
#include <link.h>
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

/* Loads a plug-in, unless it is broken: that is no backend of the library's list. */
static const struct posenc_backend *meet_usable(const char *path, char error[PLUGIN_ERROR])
{
    const struct posenc_backend *backend = plugins_make_stand_in(path, error);
    const char *broken = backend ? plugins_load_error(backend) : NULL;
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

/* ---- Which build this is ---- */

#ifdef __linux__
/* The linker's note of what it linked (-Wl,--build-id): type 3 of GNU. */
static uint64_t add_note(uint64_t hash, const char *note, size_t size)
{
    const size_t word = 4, head = 3 * word;
    while (size >= head) {
        uint32_t field[3]; /* bytes of the name, bytes of the note, its type */
        memcpy(field, note, head);
        const size_t name = (field[0] + word - 1) / word * word,
                     body = (field[1] + word - 1) / word * word;
        if (head + name + body > size)
            break;
        for (size_t i = 0; field[2] == NT_GNU_BUILD_ID && i < field[1]; i++)
            hash = (hash ^ (unsigned char)note[head + name + i]) * 0x100000001b3u;
        note += head + name + body;
        size -= head + name + body;
    }
    return hash;
}

/* Adds the notes of an object of this process. The kernel's own has no path, and does not count. */
static int add_object(struct dl_phdr_info *object, size_t size, void *user)
{
    uint64_t *hash = user;
    (void)size;
    if (object->dlpi_name[0] != '\0' && !strchr(object->dlpi_name, '/'))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_NOTE)
            *hash = add_note(*hash, (const char *)(object->dlpi_addr + part->p_vaddr),
                             part->p_memsz);
    }
    return 0;
}

static uint64_t code_of_process(void)
{
    const uint64_t nothing = 0xcbf29ce484222325u;
    uint64_t hash = nothing;
    dl_iterate_phdr(add_object, &hash);
    return hash == nothing ? 0 : hash;
}
#else
static uint64_t code_of_process(void) { return 0; }
#endif

json_t *tool_record(void)
{
    static const char mark[] = "-dirty";
    char commit[96] = POSENC_COMMIT, code[24];
    const size_t n = strlen(commit);
    const bool dirty = n > strlen(mark) && strcmp(commit + n - strlen(mark), mark) == 0;
    const uint64_t number = code_of_process();
    json_t *tool = json_pack("{s:s}", "version", posenc_version());
    if (dirty)
        commit[n - strlen(mark)] = '\0';
    if (tool && n > 0) {
        json_object_set_new(tool, "commit", json_string(commit));
        json_object_set_new(tool, "dirty", json_boolean(dirty));
    }
    snprintf(code, sizeof code, "%016llx", (unsigned long long)number);
    if (tool && number != 0)
        json_object_set_new(tool, "code", json_string(code));
    return tool;
}

/* ---- Summaries of encodings ---- */

static const struct topic topics[] = {
#include "topics.inc"
};
enum { N_TOPICS = sizeof topics / sizeof *topics };

const struct topic *topic_at(size_t i) { return i < N_TOPICS ? &topics[i] : NULL; }

const char *topic_what(const char *kind, const char *name)
{
    for (const struct topic *t = topics; t < topics + N_TOPICS; t++)
        if (strcmp(t->kind, kind) == 0 && strcmp(t->name, name) == 0)
            return t->what;
    return "";
}

void topic_print_words(const char *text, int column, int to)
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

const char *topic_piece(const char *list, char *piece, size_t size)
{
    size_t length = strcspn(list, ",");
    snprintf(piece, size, "%.*s", (int)length, list);
    list += length;
    return *list == '\0' ? NULL : list + strspn(list, ", ");
}
