/* Finds golden vectors, plug-ins and external commands beside the program, and runs those commands (see data.h). */
#define _GNU_SOURCE
#include "data.h"
#include "base/text/text.h"
#include "base/machine/machine.h"
#include "plugins.h"
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

extern char **environ;

/* ---- Paths ---- */

/* Writes the path of the running program. Returns false if the system does not report it. */
static bool find_program(char path[DATA_PATH])
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

/* Writes a path. Returns true if it exists and access(2) allows the mode. */
PRINTF_LIKE(3, 4) static bool find_path(char path[DATA_PATH], int mode, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(path, DATA_PATH, format, arguments);
    va_end(arguments);
    return length > 0 && length < DATA_PATH && access(path, mode) == 0;
}

/* Writes the first of these paths that exists: `in_build` and `installed`, relative to the program's folder, and
 * `path`. Returns false if none exists. The build tree comes first: a program run from there must not use an older
 * installation. */
static bool find_data(const char *in_build, const char *installed, const char *path,
                      char found[DATA_PATH])
{
    char folder[DATA_PATH];
    char *slash = find_program(folder) ? strrchr(folder, '/') : NULL;
    if (slash)
        *slash = '\0';
    return (slash && (find_path(found, F_OK, "%s/%s", folder, in_build) ||
                      find_path(found, F_OK, "%s/%s", folder, installed))) ||
           find_path(found, F_OK, "%s", path);
}

/* ---- Golden vectors and plug-ins ---- */

static bool find_vectors(const struct cli *cli, char path[DATA_PATH])
{
    const char *named = cli->vectors ? cli->vectors : getenv("POSENC_VECTORS");
    if (named && *named != '\0') {
        snprintf(path, DATA_PATH, "%s", named);
        return true;
    }
    return find_data("golden", POSENC_GOLDEN_INSTALLED, POSENC_DATADIR "/golden", path);
}

void data_load_vectors(const struct cli *cli, struct vectors *vectors)
{
    char path[DATA_PATH], error[VECTORS_ERROR];
    if (!find_vectors(cli, path))
        cli_reject("vectors", NULL,
                   "none found beside the program nor in %s; expected --vectors PATH or "
                   "POSENC_VECTORS=PATH",
                   POSENC_DATADIR);
    if (!vectors_load(path, vectors, error))
        cli_reject("vectors", NULL, "%s", error); /* it names the file */
    cli_print_note("vectors: %s, %zu cases, SHA-256 %.16s%s\n", path, vectors->n,
                   vectors->sha256, vectors->official ? "" : ": " OTHER_VECTORS);
}

static void print_skipped(const char *path, const char *error)
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
    DIR *opened = opendir(folder);
    if (opened) {
        closedir(opened);
        plugins_add_by(load_usable, folder, print_skipped);
    } else if (folder[0] != '\0') {
        text_print(stderr, "posenc: POSENC_PLUGINS: %s: expected a folder of plug-ins\n",
                   folder);
    }
}

void data_load_plugins(void)
{
    char path[DATA_PATH];
    const char *named = getenv("POSENC_PLUGINS");
    if (named)
        add_named_folder(named);
    else if (find_data(POSENC_PLUGINS_IN_BUILD, POSENC_PLUGINS_INSTALLED, POSENC_PLUGINS_DIR,
                       path))
        plugins_add_by(load_usable, path, print_skipped);
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

const char *topic_next_name(const char *list, char *name, size_t size)
{
    const size_t length = strcspn(list, ",");
    snprintf(name, size, "%.*s", (int)length, list);
    list += length;
    return *list == '\0' ? NULL : list + strspn(list, ", ");
}

/* ---- External commands ---- */

enum { COMMAND_NAME = 64 };

/* Writes the path of the program PREFIX NAME in a folder of PATH. Returns false if there is none. */
static bool find_on_path(const char *prefix, const char *name, char path[DATA_PATH])
{
    for (const char *folder = getenv("PATH"), *end; folder; folder = *end ? end + 1 : NULL) {
        end = folder + strcspn(folder, ":");
        if (end > folder &&
            find_path(path, X_OK, "%.*s/%s%s", (int)(end - folder), folder, prefix, name))
            return true;
    }
    return false;
}

/* Returns true if the first line of a script, such as "#!/usr/bin/env python3", names a Python that is not on PATH, and
 * writes that name. The message of env(1) in that case does not say what to install. */
static bool lacks_python(const char *script, char name[COMMAND_NAME])
{
    char line[COMMAND_NAME + 32] = "", path[DATA_PATH];
    FILE *file = fopen(script, "r");
    if (!file)
        return false;
    const bool has_name = fgets(line, sizeof line, file) != NULL &&
                          sscanf(line, "#!/usr/bin/env %63s", name) == 1;
    fclose(file);
    return has_name && strncmp(name, "python", strlen("python")) == 0 &&
           !find_on_path("", name, path);
}

/* Finds posenc-NAME beside this program, else on PATH, and sets POSENC_PROGRAM to the path of this program. */
static bool prepare_command(const char *name, char path[DATA_PATH])
{
    char folder[DATA_PATH], program[DATA_PATH];
    if (!(find_data(POSENC_COMMANDS_IN_BUILD, POSENC_COMMANDS_INSTALLED, POSENC_COMMANDS_DIR,
                    folder) &&
          find_path(path, X_OK, "%s/posenc-%s", folder, name)) &&
        !find_on_path("posenc-", name, path))
        return false;
    if (find_program(program))
        setenv("POSENC_PROGRAM", program, 1);
    if (machine_emulator()) /* programs that it starts run natively */
        setenv("POSENC_EMULATOR", machine_emulator(), 1);
    return true;
}

void external_exec(const char *name, char **argv)
{
    char path[DATA_PATH], python[COMMAND_NAME];
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz_") != strlen(name))
        return;
    cli_set_command(name);
    if (prepare_command(name, path)) {
        if (lacks_python(path, python))
            cli_reject(python, NULL,
                       "not found on PATH.  Install Python 3.9 or later (list, verify, bench "
                       "and table work without it)");
        argv[1] = path;
        execv(path, argv + 1);
        if (errno == ENOENT) /* the interpreter of its first line */
            cli_reject("Python", NULL,
                       "not found: the first line of %s names it. Install Python 3.9 or later",
                       path);
        cli_reject(path, NULL, "cannot be run: %s", strerror(errno));
    }
    cli_set_command(NULL);
}

/* ---- Output of a command ---- */

enum { EXTERNAL_NOT_RUN = 127, EXTERNAL_SIGNAL = 128 }; /* exit codes, as shells have them */

/* Runs the program argv[0] with these descriptors as standard input and output. Returns its exit code, EXTERNAL_SIGNAL
 * plus the number of the signal that ended it, or EXTERNAL_NOT_RUN. */
static int run_program(const char *const *argv, int in, int out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int status = 0;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return EXTERNAL_NOT_RUN;
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    const int failed =
        posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (failed == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (failed != 0)
        return EXTERNAL_NOT_RUN;
    return WIFSIGNALED(status) ? EXTERNAL_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Returns the text of a file, to be freed. */
static char *read_all(FILE *file)
{
    const long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = cli_allocate((size_t)(size + 2), 1);
    rewind(file);
    if (size > 0)
        text[fread(text, 1, (size_t)size, file)] = '\0';
    return text;
}

char *external_read(const char *option, const char *name, const char **argv)
{
    static const char remedy[] = "(presets need none: posenc list models)";
    char path[DATA_PATH], python[COMMAND_NAME] = "Python";
    FILE *file = tmpfile();
    if (!prepare_command(name, path))
        cli_reject(option, NULL,
                   "needs the Python part of posenc: posenc-%s is not installed %s", name,
                   remedy);
    if (!file)
        cli_reject(option, NULL, "no temporary file can be made: %s", strerror(errno));
    argv[0] = path;
    const int status = lacks_python(path, python)
                           ? EXTERNAL_NOT_RUN
                           : run_program(argv, STDIN_FILENO, fileno(file));
    if (status == EXTERNAL_NOT_RUN)
        cli_reject(option, NULL, "needs Python 3.9 or later: %s is not found %s", python,
                   remedy);
    if (status > EXTERNAL_SIGNAL)
        cli_reject(option, NULL, "posenc-%s was ended by signal %d", name,
                   status - EXTERNAL_SIGNAL);
    if (status != 0)
        worker_exit(EXIT_USAGE);
    char *output = read_all(file);
    fclose(file);
    return output;
}

/* ---- Output formats that an external program writes ---- */

void external_check_format(const struct output_format *format)
{
    char path[DATA_PATH] = "";
    const int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool found = prepare_command(format->program, path);
    const int status = found ? run_program((const char *const[]){ path, "--help", NULL },
                                           null_device, null_device)
                             : EXTERNAL_NOT_RUN;
    close(null_device);
    if (status != 0)
        cli_reject("--out", format->name,
                   "is written in Python, and posenc-%s %s, or take --out jsonl",
                   format->program,
                   found ? "cannot be run: install Python 3.9 or later"
                         : "is not installed: install the Python part of posenc");
}

int external_write_format(const struct output_format *format, const json_t *records, FILE *to)
{
    char path[DATA_PATH];
    const char *const report[] = { path, "-", "--out", format->name, NULL };
    const char *const results[] = { path, "export", "-", "--format", format->name, NULL };
    const bool is_report = strcmp(format->program, "report") == 0;
    FILE *file = tmpfile();
    int status = EXIT_USAGE;
    if (!prepare_command(format->program, path))
        cli_complain("--out", format->name,
                     "could not be written: posenc-%s does not exist any more",
                     format->program);
    else if (!file || write_jsonl(records, file) != 0 || fflush(file) != 0 ||
             fseek(file, 0, SEEK_SET) != 0)
        cli_complain("--out", format->name, "could not be written: %s", strerror(errno));
    else if (fflush(to) == 0)
        status = run_program(is_report ? report : results, fileno(file), fileno(to));
    if (file)
        fclose(file);
    return status;
}
