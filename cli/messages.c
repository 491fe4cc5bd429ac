/* Prints error messages, notes and the progress line on standard error (see messages.h). */
#define _DEFAULT_SOURCE
#include "messages.h"
#include "args.h"
#include "base/clock.h"
#include "worker.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *command; /* in messages; NULL: none */
static bool quiet;

void cli_set_command(const char *name) { command = name; }
void cli_set_quiet(bool is_quiet) { quiet = is_quiet; }

void cli_print_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!quiet)
        text_vprint(stderr, format, arguments);
    va_end(arguments);
}

/* Prints "posenc COMMAND: ITEM: " and the value, if there is one. */
static void print_item(const char *item, const char *value)
{
    fflush(stdout);
    text_print(stderr, "posenc%s%s: %s: ", command ? " " : "", command ? command : "", item);
    if (value)
        text_print(stderr, "%s: ", *value != '\0' ? value : "(empty)");
}

/* Prints the message of cli_reject(). */
static void print_message(const char *item, const char *value, const char *expected,
                          va_list arguments)
{
    print_item(item, value);
    text_vprint(stderr, expected, arguments);
    fputc('\n', stderr);
}

void cli_complain(const char *item, const char *value, const char *expected, ...)
{
    va_list arguments;
    va_start(arguments, expected);
    print_message(item, value, expected, arguments);
    va_end(arguments);
}

void cli_reject(const char *item, const char *value, const char *expected, ...)
{
    va_list arguments;
    va_start(arguments, expected);
    print_message(item, value, expected, arguments);
    va_end(arguments);
    worker_exit(EXIT_USAGE);
}

/* Returns true if `value` may be a misspelling of a name: few letters differ, or the name contains it. */
static bool is_similar(const char *value, const char *name)
{
    const size_t length = strlen(value);
    return length <= 96 && (text_edit_distance(value, name) <= 1 + length / 3 ||
                            (length >= 3 && strstr(name, value)));
}

void cli_reject_name(const char *item, const char *value, const char *const *names, size_t n)
{
    enum { SHORT_LIST = 16, NEAREST = 3, LONGEST = 96 };
    print_item(item, value);
    const char *near[NEAREST];
    size_t n_near = 0;
    for (size_t distance = 0; distance <= LONGEST && n_near < NEAREST; distance++) {
        for (size_t i = 0; i < n && n_near < NEAREST; i++)
            if (is_similar(value, names[i]) && text_edit_distance(value, names[i]) == distance)
                near[n_near++] = names[i];
    }
    if (n_near > 0) {
        text_print(stderr, "did you mean ");
        for (size_t i = 0; i < n_near; i++)
            text_print(stderr, "%s%s", i == 0 ? "" : i + 1 < n_near ? ", " : " or ", near[i]);
        fputs(n <= SHORT_LIST ? "?  " : "?\n", stderr);
    }
    if (n_near == 0 || n <= SHORT_LIST) {
        text_print(stderr, "expected one of");
        for (size_t i = 0; i < n; i++)
            text_print(stderr, "%s %s", i == 0 ? "" : ",", names[i]);
        fputc('\n', stderr);
    }
    worker_exit(EXIT_USAGE);
}

size_t cli_find_name(const char *item, const char *value, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], value) == 0)
            return i;
    cli_reject_name(item, value, names, n);
}

void cli_reject_status(const char *item, enum posenc_status status,
                       const struct posenc_error *error)
{
    char text[640];
    if (!error || !*error->what)
        cli_reject(item, NULL, "%s", posenc_status_string(status));
    posenc_error_text(error, text, sizeof text);
    cli_reject(item, NULL, "%s", text);
}

void *cli_allocate(size_t n, size_t size)
{
    void *memory = calloc(n > 0 ? n : 1, size);
    if (!memory)
        cli_reject("memory", NULL, "allocation failed");
    return memory;
}

/* ---- Progress ---- */

enum { LINE = 512, STANDARD_WIDTH = 80 };

static const char erase[] = "\r\033[K";
static const char *drawn_command;        /* of the line; NULL: none */
static double begun_s, last_drawn_s;     /* of clock_now() */
static volatile sig_atomic_t is_visible; /* true while a line is on the terminal */

static bool can_erase(void)
{
    const char *term = getenv("TERM");
    return !quiet && isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Returns the width of the terminal minus one, since some terminals wrap a full line. */
static size_t line_width(void)
{
    struct winsize size;
    size_t columns = STANDARD_WIDTH;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        columns = size.ws_col;
    return (columns < LINE ? columns : LINE) - 1;
}

/* Writes ", about 5 s left", estimated from the time so far; "" at the beginning. */
static void print_time_left(const struct progress *now, double spent, char text[48])
{
    double remaining_s = -1.0; /* not known */
    if (now->done > 0.0 && spent >= 0.5)
        remaining_s = spent * ((double)now->total - now->done) / now->done;
    else if (now->done <= 0.0 && now->most_s > 0.0)
        remaining_s = fmax(now->most_s - spent, 0.0);
    const bool minutes = remaining_s >= 90.0;
    text[0] = '\0';
    if (remaining_s >= 0.0)
        snprintf(text, 48, ", about %.0f %s left",
                 minutes ? fmin(remaining_s / 60.0, 99999.0) : ceil(remaining_s),
                 minutes ? "min" : "s");
}

void progress_draw(const struct progress *now)
{
    const double time = clock_now();
    if (!drawn_command || strcmp(drawn_command, now->command) != 0) {
        drawn_command = now->command;
        begun_s = time;
        last_drawn_s = 0.0;
    }
    if (time - last_drawn_s < 0.1 || !can_erase())
        return;
    last_drawn_s = time;
    char line[LINE], left[48];
    const size_t width = line_width();
    const char *case_id = now->case_id ? now->case_id : "";
    print_time_left(now, time - begun_s, left);
    snprintf(line, sizeof line, "%s %.0f/%zu %s%s%s  %s", now->command, floor(now->done),
             now->total, now->unit, now->notes ? now->notes : "", left, case_id);
    if (strlen(line) - strlen(case_id) > width)
        snprintf(line, sizeof line, "%s %.0f/%zu%s", now->command, floor(now->done), now->total,
                 left);
    is_visible = 1;
    fprintf(stderr, "%s%.*s", erase, (int)width, line);
    fflush(stderr);
}

void progress_clear(void)
{
    drawn_command = NULL;
    if (!is_visible)
        return;
    is_visible = 0;
    fputs(erase, stderr);
    fflush(stderr);
}

void progress_erase_in_handler(void)
{
    if (is_visible && write(STDERR_FILENO, erase, sizeof erase - 1) < 0)
        is_visible = 0;
}
