/* Finds and runs external commands (see external.h). */
#define _POSIX_C_SOURCE 200809L
#include "external.h"
#include "bench/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { COMMAND_NAME = 64 };

/* Writes FOLDER/NAME to `path` and returns true if that is a program. `length` is the length of `folder`. */
static bool is_program(const char *folder, size_t length, const char *name, char *path)
{
    const int bytes = snprintf(path, DATA_PATH, "%.*s/%s", (int)length, folder, name);
    return bytes > 0 && bytes < DATA_PATH && access(path, X_OK) == 0;
}

static bool find_on_path(const char *name, char *path)
{
    const char *at = getenv("PATH");
    while (at) {
        const size_t length = strcspn(at, ":");
        if (length > 0 && is_program(at, length, name, path))
            return true;
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return false;
}

/* Finds posenc-NAME in the folder beside this program, else on PATH. */
static bool find_command(const char *name, char *path)
{
    char folder[DATA_PATH], command[COMMAND_NAME];
    const int bytes = snprintf(command, sizeof command, "posenc-%s", name);
    if (bytes < 0 || bytes >= COMMAND_NAME)
        return false;
    return (data_find(POSENC_COMMANDS_IN_BUILD, POSENC_COMMANDS_INSTALLED, POSENC_COMMANDS_DIR,
                      folder) &&
            is_program(folder, strlen(folder), command, path)) ||
           find_on_path(command, path);
}

/* Returns true if the first line of a script names a Python interpreter that is not on PATH, and writes its name. The
 * message of env(1) in that case does not say what to install. */
static bool lacks_python(const char *script, char name[COMMAND_NAME])
{
    char line[COMMAND_NAME + 32] = "", path[DATA_PATH];
    FILE *file = fopen(script, "r");
    if (!file)
        return false;
    const bool named = fgets(line, sizeof line, file) != NULL &&
                       sscanf(line, "#!/usr/bin/env %63s", name) == 1;
    fclose(file);
    return named && strncmp(name, "python", strlen("python")) == 0 && !find_on_path(name, path);
}

/* Finds posenc-NAME, and sets POSENC_PROGRAM to the path of this program for it. */
static bool prepare_command(const char *name, char path[DATA_PATH])
{
    char program[DATA_PATH];
    if (!find_command(name, path))
        return false;
    if (data_program(program))
        setenv("POSENC_PROGRAM", program, 1);
    if (machine_emulator()) /* programs that it starts run natively */
        setenv("POSENC_EMULATOR", machine_emulator(), 1);
    return true;
}

int external_exec(const char *name, char **argv)
{
    char path[DATA_PATH], python[COMMAND_NAME];
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz_") != strlen(name) ||
        !prepare_command(name, path))
        return EXTERNAL_NOT_FOUND;
    const struct cli cli = { .command = name };
    if (lacks_python(path, python))
        return cli_reject(
            &cli, python, NULL,
            "not found on PATH.  Install Python 3.9 or later (list, verify, bench "
            "and table work without it)");
    argv[1] = path;
    execv(path, argv + 1);
    if (errno == ENOENT) /* the interpreter of its first line */
        return cli_reject(
            &cli, "Python", NULL,
            "not found: the first line of %s names it. Install Python 3.9 or later", path);
    return cli_reject(&cli, path, NULL, "cannot be run: %s", strerror(errno));
}

/* ---- Output of a command ---- */

enum { EXTERNAL_NOT_RUN = 127, EXTERNAL_SIGNAL = 128 };

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
    char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
    rewind(file);
    if (text)
        text[fread(text, 1, (size_t)size, file)] = '\0';
    return text;
}

char *external_read(const struct cli *cli, const char *option, const char *name,
                    const char **argv)
{
    static const char remedy[] = "(presets need none: posenc list models)";
    char path[DATA_PATH], python[COMMAND_NAME] = "Python", *output = NULL;
    FILE *file = tmpfile();
    int status = EXTERNAL_NOT_RUN;
    if (!prepare_command(name, path))
        cli_reject(cli, option, NULL,
                   "needs the Python part of posenc: posenc-%s is not installed %s", name,
                   remedy);
    else if (!file)
        cli_reject(cli, option, NULL, "no temporary file can be made: %s", strerror(errno));
    else {
        argv[0] = path;
        if (!lacks_python(path, python))
            status = run_program(argv, STDIN_FILENO, fileno(file));
        if (status == EXTERNAL_NOT_RUN)
            cli_reject(cli, option, NULL, "needs Python 3.9 or later: %s is not found %s",
                       python, remedy);
        else if (status > EXTERNAL_SIGNAL)
            cli_reject(cli, option, NULL, "posenc-%s was ended by signal %d", name,
                       status - EXTERNAL_SIGNAL);
        else if (status == 0)
            output = read_all(file);
    }
    if (file)
        fclose(file);
    return output;
}

/* ---- Output formats that an external program writes ---- */

enum { MOST_WORDS = 8 };

int external_check_format(const struct cli *cli, const struct output_format *format)
{
    char path[DATA_PATH] = "";
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool found = prepare_command(format->program, path);
    const int status =
        found ? run_program((const char *const[]){ path, "--help", NULL }, nothing, nothing)
              : EXTERNAL_NOT_RUN;
    close(nothing);
    if (status == 0)
        return EXIT_OK;
    return cli_reject(cli, "--out", format->name,
                      "is written in Python, and posenc-%s %s, or take --out jsonl",
                      format->program,
                      found ? "cannot be run: install Python 3.9 or later"
                            : "is not installed: install the Python part of posenc");
}

int external_write_format(const struct cli *cli, const struct output_format *format,
                          const json_t *records, FILE *to)
{
    char path[DATA_PATH];
    FILE *file = tmpfile();
    int status = EXIT_USAGE;
    if (!prepare_command(format->program, path))
        cli_reject(cli, "--out", format->name,
                   "could not be written: posenc-%s does not exist any more", format->program);
    else if (!file || write_jsonl(records, file) != 0 || fflush(file) != 0 ||
             fseek(file, 0, SEEK_SET) != 0)
        cli_reject(cli, "--out", format->name, "could not be written: %s", strerror(errno));
    else if (fflush(to) == 0) {
        const bool export = strcmp(format->program, "results") == 0;
        const char *argv[MOST_WORDS] = { path }, **word = argv + 1;
        if (export)
            *word++ = "export";
        *word++ = "-";
        *word++ = export ? "--format" : "--out";
        *word++ = format->name;
        status = run_program(argv, fileno(file), fileno(to));
    }
    if (file)
        fclose(file);
    return status;
}
