/*
 * The tuning file that this program uses: see tuned.h.
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

static char own[TUNED_PATH]; /* that is used, or would be; or "" */
static char own_why[TUNED_WHY];

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Returns the path of the user's own: $XDG_CONFIG_HOME/posenc/profile, or ~/.config/posenc/profile. False: there is
 * no home. */
static bool own_path(char path[TUNED_PATH])
{
    const char *config = environment("XDG_CONFIG_HOME"), *home = environment("HOME");
    if (!config && !home)
        return false;
    const int n = snprintf(path, TUNED_PATH, "%s%s/posenc/profile", config ? config : home,
                           config ? "" : "/.config");
    return n > 0 && n < TUNED_PATH;
}

/* Returns whether the environment chooses the backend, before any tuning file. */
static bool is_forced(void)
{
    return environment("POSENC_BACKEND") || environment("POSENC_MAX_ISA");
}

void tuned_begin(void)
{
    if (environment("POSENC_PROFILE") || is_forced() || !own_path(own) ||
        access(own, R_OK) != 0)
        *own = '\0';
    else
        (void)!posenc_select_profile(own, own_why, sizeof own_why);
}

/* Says why POSENC_PROFILE cannot be used; "" if it can. */
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
    if (!path || is_forced())
        return EXIT_FINE;
    try_profile(path, why);
    return *why ? cli_refuse(cli, "POSENC_PROFILE", NULL, "%s", why) : EXIT_FINE;
}

int tuned_list(struct cli *cli)
{
    char line[512];
    const char *given = environment("POSENC_PROFILE"), *path = given ? given : own;
    FILE *file = *path ? fopen(path, "r") : NULL;
    if (!*path) {
        puts("No tuning file: backends are chosen by the features of the CPU, or by "
             "POSENC_BACKEND "
             "and POSENC_MAX_ISA.\nposenc tune measures this CPU and writes one.");
        return EXIT_FINE;
    }
    if (!file)
        return cli_refuse(cli, "tuning file", path, "%s", strerror(errno));
    if (given && is_forced())
        puts("Not used: POSENC_BACKEND or POSENC_MAX_ISA is set.");
    else if (!given && *own_why)
        text_print(stdout, "Not used: %s\n", own_why);
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
    return EXIT_FINE;
}
