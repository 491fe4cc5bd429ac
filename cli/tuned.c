/*
 * Which profile of tuning is used, and what it says: see tuned.h.
 */
#define _POSIX_C_SOURCE 200809L
#define POSENC_EXPERIMENTAL
#include "tuned.h"
#include "reports/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool given; /* by the user, in the environment */

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool tuned_own_path(char path[TUNED_PATH])
{
    const char *config = environment("XDG_CONFIG_HOME"), *home = environment("HOME");
    if (!config && !home)
        return false;
    const int n = snprintf(path, TUNED_PATH, "%s%s/posenc/profile", config ? config : home,
                           config ? "" : "/.config");
    return n > 0 && n < TUNED_PATH;
}

void tuned_begin(void)
{
    char path[TUNED_PATH];
    given = environment("POSENC_PROFILE") != NULL;
    if (!given && !environment("POSENC_BACKEND") && !environment("POSENC_MAX_ISA") &&
        tuned_own_path(path) && access(path, R_OK) == 0)
        setenv("POSENC_PROFILE", path, 1);
}

/* Why the file cannot be used; "" where it can. */
static void try_profile(const char *path, char why[TUNED_WHY])
{
    if (posenc_select_profile(path, why, TUNED_WHY) == POSENC_OK)
        *why = '\0';
    (void)!posenc_select(NULL);
}

int tuned_check(const struct cli *cli)
{
    char why[TUNED_WHY];
    const char *path = environment("POSENC_PROFILE");
    if (!given || !path || environment("POSENC_BACKEND") || environment("POSENC_MAX_ISA"))
        return EXIT_FINE;
    try_profile(path, why);
    return *why ? cli_refuse(cli, "POSENC_PROFILE", NULL, "%s", why) : EXIT_FINE;
}

int tuned_list(struct cli *cli)
{
    char why[TUNED_WHY], line[512];
    const char *path = environment("POSENC_PROFILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!path) {
        puts("No profile: calls are served in the order of features.  posenc tune measures "
             "this CPU and writes one.");
        return EXIT_FINE;
    }
    if (!file)
        return cli_refuse(cli, "POSENC_PROFILE", path, "%s", strerror(errno));
    try_profile(path, why);
    if (*why)
        text_print(stdout, "Not used: %s\n", why);
    else
        text_print(stdout, "In force: %s\n", path);
    puts("The first line that holds a call of a kernel serves it: backend, type, and at most "
         "these bytes.\n");
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        text_print(stdout, "%s\n", line);
    }
    fclose(file);
    return EXIT_FINE;
}
