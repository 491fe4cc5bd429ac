/*
 * Running gnuplot: the script on its standard input, the picture from its standard output, so
 * that no path is ever quoted for it or for a shell.
 */
#define _POSIX_C_SOURCE 200809L
#include "gnuplot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const plot_colors[] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                                    "#56B4E9", "#999999", "#F0E442", "#000000" };

/* Exit status of gnuplot with these as standard input, output and error; -1: it could not be
 * run. */
static int run(int in, int out, int err, const char *argument)
{
    pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
            dup2(err, STDERR_FILENO) >= 0)
            execlp("gnuplot", "gnuplot", argument, (char *)NULL);
        _exit(127);
    }
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool plot_available(char error[PLOT_ERROR])
{
    FILE *nothing = fopen("/dev/null", "r+");
    int status =
        nothing ? run(fileno(nothing), fileno(nothing), fileno(nothing), "--version") : -1;
    if (nothing)
        fclose(nothing);
    if (status == 0)
        return true;
    snprintf(
        error, PLOT_ERROR,
        "the program gnuplot cannot be run; install it (Debian, Ubuntu: gnuplot-nox; Fedora, "
        "Homebrew: gnuplot)");
    return false;
}

FILE *gnuplot_begin(const struct plot_target *target, int width, int height,
                    char error[PLOT_ERROR])
{
    bool svg = strcmp(target->format, "svg") == 0;
    if (!svg && strcmp(target->format, "png") != 0) {
        snprintf(error, PLOT_ERROR, "format '%.40s' is unknown; known: png, svg",
                 target->format);
        return NULL;
    }
    if (!plot_available(error))
        return NULL;
    FILE *script = tmpfile();
    if (!script) {
        snprintf(error, PLOT_ERROR, "no temporary file: %s", strerror(errno));
        return NULL;
    }
    fprintf(script,
            svg ? "set terminal svg size %d,%d dynamic enhanced font 'DejaVu Sans,15' "
                  "background rgb 'white'\n"
                : "set terminal pngcairo size %d,%d enhanced font 'DejaVu Sans,11'\n",
            width, height);
    fputs("set encoding utf8\nset border lc rgb '#444444'\nset grid lc rgb '#dddddd' lt 1 lw "
          "0.5\n"
          "set tics nomirror textcolor rgb '#222222'\nset key noenhanced\n",
          script);
    return script;
}

/* In apostrophes, within which gnuplot runs no command (`...`) and expands no macro (@...); line ends
 * stand in strings of their own. */
void gnuplot_string(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        if (*text == '\n')
            fputs("'.\"\\n\".'", script);
        else
            fputc(*text, script);
    }
    fputc('\'', script);
}

void gnuplot_tic(FILE *script, const char *text)
{
    char twice[512];
    size_t n = 0;
    for (; *text && n + 2 < sizeof twice; text++) {
        twice[n++] = *text;
        if (*text == '%')
            twice[n++] = '%';
    }
    twice[n] = '\0';
    gnuplot_string(script, twice);
}

void gnuplot_words(FILE *script, const char *text)
{
    for (; *text; text++)
        fputc(strchr("\"\\`@\n", *text) ? '?' : *text, script);
}

/* The rest of `from` to `to`. */
static int copy(FILE *from, FILE *to)
{
    char block[65536];
    size_t n;
    rewind(from);
    while ((n = fread(block, 1, sizeof block, from)) > 0)
        if (fwrite(block, 1, n, to) != n)
            return -1;
    return ferror(from) || fflush(to) ? -1 : 0;
}

/* Beside the target, so that renaming does not cross file systems. */
static int place(FILE *picture, const struct plot_target *target, char error[PLOT_ERROR])
{
    const char *path = target->path;
    size_t n = strlen(path);
    char *temporary = malloc(n + 8);
    if (!temporary) {
        snprintf(error, PLOT_ERROR, "out of memory");
        return -1;
    }
    memcpy(temporary, path, n);
    memcpy(temporary + n, ".XXXXXX", 8);
    int descriptor = mkstemp(temporary);
    FILE *to = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    mode_t mask = umask(0);
    umask(mask);
    bool good = to && copy(picture, to) == 0 && fchmod(descriptor, 0666 & ~mask) == 0;
    if (to && fclose(to))
        good = false;
    good = good && rename(temporary, path) == 0;
    if (!good) {
        snprintf(error, PLOT_ERROR,
                 "%.300s: %s; the path of a file that can be written is needed", path,
                 strerror(errno));
        if (descriptor >= 0)
            unlink(temporary);
    }
    free(temporary);
    return good ? 0 : -1;
}

/* What gnuplot complained of, in one line. */
static void complaint(FILE *err, char error[PLOT_ERROR])
{
    char text[256];
    rewind(err);
    text[fread(text, 1, sizeof text - 1, err)] = 0;
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    snprintf(error, PLOT_ERROR, "gnuplot failed: %s", text);
}

int gnuplot_end(FILE *script, const struct plot_target *target, char error[PLOT_ERROR])
{
    FILE *picture = tmpfile(), *err = tmpfile();
    int status = -1;
    if (picture && err && fflush(script) == 0 && lseek(fileno(script), 0, SEEK_SET) == 0) {
        int exit_status = run(fileno(script), fileno(picture), fileno(err), "-");
        struct stat made;
        if (exit_status != 0 || fstat(fileno(picture), &made) || made.st_size == 0)
            complaint(err, error);
        else if (target->path && strcmp(target->path, "-") != 0)
            status = place(picture, target, error);
        else if ((status = copy(picture, stdout)))
            snprintf(error, PLOT_ERROR, "standard output: %s", strerror(errno));
    } else {
        snprintf(error, PLOT_ERROR, "no temporary file: %s", strerror(errno));
    }
    fclose(script);
    if (picture)
        fclose(picture);
    if (err)
        fclose(err);
    return status;
}
