/* Selects and prints the tuning file (see tuning_file.h). */
#define _POSIX_C_SOURCE 200809L
#include "tuning_file.h"
#include "base/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char user_file
    [TUNING_FILE_PATH]; /* path of the user's tuning file, or "" if it is not considered */
static char user_file_error[TUNING_FILE_REASON]; /* why that is rejected, or "" */

/* Returns a variable of the environment, or NULL if it is empty. */
static const char *read_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Writes $XDG_CONFIG_HOME/posenc/tuning or ~/.config/posenc/tuning. Returns false without a home folder. */
static bool find_user_file(char path[TUNING_FILE_PATH])
{
    const char *config = read_environment("XDG_CONFIG_HOME"), *home = read_environment("HOME");
    if (!config && !home)
        return false;
    const int n = snprintf(path, TUNING_FILE_PATH, "%s%s/posenc/tuning", config ? config : home,
                           config ? "" : "/.config");
    return n > 0 && n < TUNING_FILE_PATH;
}

/* Returns true if the environment selects the backend, which overrides tuning files. */
static bool is_backend_forced(void)
{
    return read_environment("POSENC_BACKEND") || read_environment("POSENC_MAX_ISA");
}

void tuning_file_select_default(void)
{
    struct posenc_error error;
    if (read_environment("POSENC_TUNING") || is_backend_forced() ||
        !find_user_file(user_file) || access(user_file, R_OK) != 0)
        *user_file = '\0';
    else if (posenc_load_tuning(user_file, &error) != POSENC_OK)
        snprintf(user_file_error, sizeof user_file_error, "%s", error.what);
}

int tuning_file_select_environment(const struct cli *cli)
{
    struct posenc_error error;
    const char *path = read_environment("POSENC_TUNING");
    if (!path || is_backend_forced())
        return EXIT_OK;
    const enum posenc_status status = posenc_load_tuning(path, &error);
    const int exit_code = status == POSENC_OK
                              ? EXIT_OK
                              : cli_reject(cli, "POSENC_TUNING", NULL, "%s", error.what);
    (void)!posenc_select(NULL, NULL);
    return exit_code;
}

int tuning_file_list(struct cli *cli)
{
    char line[512];
    const char *from_environment = read_environment("POSENC_TUNING"),
               *path = from_environment ? from_environment : user_file;
    FILE *file = *path ? fopen(path, "r") : NULL;
    if (!*path) {
        puts("No tuning file: backends are chosen by the features of the CPU, or by "
             "POSENC_BACKEND "
             "and POSENC_MAX_ISA.\nposenc tune measures this CPU and writes one.");
        return EXIT_OK;
    }
    if (!file)
        return cli_reject(cli, "tuning file", path, "%s", strerror(errno));
    if (from_environment && is_backend_forced())
        puts("Not used: POSENC_BACKEND or POSENC_MAX_ISA is set.");
    else if (!from_environment && *user_file_error)
        text_print(stdout, "Not used: %s\n", user_file_error);
    else
        text_print(stdout, "In force: %s\n", path);
    puts(
        "A call uses the first line of its kernel that fits: backend, dtype, and at most these "
        "bytes.\n");
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        text_print(stdout, "%s\n", line);
    }
    fclose(file);
    return EXIT_OK;
}
