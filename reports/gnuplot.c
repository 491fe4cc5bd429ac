/*
 * Running gnuplot: the script on its standard input, the picture from its standard output, so
 * that no path is ever quoted for it or for a shell.
 */
#define _POSIX_C_SOURCE 200809L
#include "gnuplot.h"

#include <errno.h>
#include <math.h>
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

void gnuplot_title(FILE *script, const char *set, const char *first, const char *caption)
{
    char text[512];
    snprintf(text, sizeof text, "%s\n%s", first, caption);
    fprintf(script, "set %s ", set);
    gnuplot_string(script, text);
    fputs(" noenhanced font ',15'\n", script);
}

void gnuplot_panel(FILE *script, double left, double right, double bottom, double top)
{
    fprintf(script,
            "set lmargin at screen %g\nset rmargin at screen %g\nset bmargin at screen %g\n"
            "set tmargin at screen %g\n",
            left, right, bottom, top);
}

static void viridis(FILE *script, double most)
{
    static const struct {
        double at;
        const char *color;
    } stops[] = { { 0.0, "#440154" },   { 0.125, "#482878" }, { 0.25, "#3e4989" },
                  { 0.375, "#31688e" }, { 0.5, "#26828e" },   { 0.625, "#1f9e89" },
                  { 0.75, "#35b779" },  { 0.875, "#6ece58" }, { 0.9375, "#b5de2b" },
                  { 1.0, "#fde725" } };
    for (size_t i = 0; i < sizeof stops / sizeof *stops && stops[i].at <= most; i++)
        fprintf(script, "%s%g '%s'", i == 0 ? "set palette defined (" : ", ",
                stops[i].at / most, stops[i].color);
    fputs(")\n", script);
}

/* Blue below zero, orange above, as bright on either side: plot_colors[0] and [1] half way. */
static void diverging(FILE *script)
{
    fputs("set palette defined (0 '#002a44', 0.25 '#0072b2', 0.4 '#8cc3e0', 0.5 '#ffffff', "
          "0.6 '#f2b48a', 0.75 '#d55e00', 1 '#4f2200')\n",
          script);
}

void gnuplot_scale(FILE *script, double least, double most)
{
    double reach = fmax(-least, most);
    if (least < 0.0)
        diverging(script);
    else
        viridis(script, 1.0);
    fprintf(script, "set cbrange [%.6g:%.6g]\n", least < 0.0 ? -reach : least,
            least < 0.0    ? reach
            : most > least ? most
                           : least + 1.0);
}

/* How often a cell is repeated in both directions: viewers that smooth in spite of
 * image-rendering smooth only this fraction of it. */
static int64_t repeats(const struct gnuplot_map *map)
{
    const double pixels = 400000.0, most = 8.0;
    double fit = floor(sqrt(pixels / ((double)map->rows * (double)map->columns)));
    return (int64_t)fmin(fmax(fit, 1.0), most);
}

void gnuplot_map(FILE *script, const struct gnuplot_map *map, const char *more)
{
    const int64_t k = repeats(map);
    const double first = 0.5 / (double)k - 0.5; /* centre of the first repetition, in cells */
    fprintf(script,
            "plot '-' binary array=(%lld,%lld) origin=(%.9g,%.9g) dx=%.9g dy=%.9g "
            "format='%%float' with image notitle%s\n",
            (long long)(map->columns * k), (long long)(map->rows * k),
            map->left + first * map->dx, map->bottom + first * map->dy, map->dx / (double)k,
            map->dy / (double)k, more);
    for (int64_t r = 0; r < map->rows * k; r++)
        for (int64_t c = 0; c < map->columns * k; c++)
            fwrite(&map->cells[r / k * map->columns + c / k], sizeof *map->cells, 1, script);
}

void gnuplot_map_scaled(FILE *script, const struct gnuplot_map *map)
{
    float least = map->cells[0], most = map->cells[0];
    for (int64_t i = 1; i < map->rows * map->columns; i++) {
        least = fminf(least, map->cells[i]);
        most = fmaxf(most, map->cells[i]);
    }
    gnuplot_scale(script, (double)least, (double)most);
    gnuplot_map(script, map, "");
}

void gnuplot_viridis_lines(FILE *script) { viridis(script, 0.75); }

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

/* Of an SVG: its maps are to keep their cells, where viewers would smooth them. */
static int copy_svg(FILE *from, FILE *to)
{
    static const char begin[] = "<image ";
    char *line = NULL;
    size_t room = 0;
    rewind(from);
    while (getline(&line, &room, from) >= 0) {
        const bool image = strncmp(line, begin, sizeof begin - 1) == 0;
        fprintf(to, "%s%s", image ? "<image style='image-rendering:pixelated' " : "",
                line + (image ? sizeof begin - 1 : 0));
    }
    free(line);
    return ferror(from) || ferror(to) || fflush(to) ? -1 : 0;
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
    bool svg = strcmp(target->format, "svg") == 0;
    bool good = to && (svg ? copy_svg : copy)(picture, to) == 0 &&
                fchmod(descriptor, 0666 & ~mask) == 0;
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
        else if ((status =
                      (strcmp(target->format, "svg") == 0 ? copy_svg : copy)(picture, stdout)))
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
