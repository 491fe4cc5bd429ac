/* Prints error messages and notes on standard error (see args.h). */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "args.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool quiet;

void cli_set_quiet(bool is_quiet) { quiet = is_quiet; }
bool cli_is_quiet(void) { return quiet; }

void cli_print_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!quiet)
        text_vprint(stderr, format, arguments);
    va_end(arguments);
}

static void print_command(const struct cli *cli)
{
    fflush(stdout);
    text_print(stderr, "posenc%s%s: ", cli->command ? " " : "",
               cli->command ? cli->command : "");
}

int cli_reject(const struct cli *cli, const char *item, const char *value, const char *expected,
               ...)
{
    print_command(cli);
    text_print(stderr, "%s: ", item);
    if (value)
        text_print(stderr, "%s: ", *value != '\0' ? value : "(empty)");
    va_list arguments;
    va_start(arguments, expected);
    text_vprint(stderr, expected, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

/* Returns true if `value` may be a misspelling of a name: few letters differ, or the name contains it. */
static bool is_similar(const char *value, const char *name)
{
    size_t length = strlen(value);
    return strlen(value) <= 96 && (text_edit_distance(value, name) <= 1 + length / 3 ||
                                   (length >= 3 && strstr(name, value)));
}

int cli_reject_name(const struct cli *cli, const char *item, const char *value,
                    const char *const *names, size_t n)
{
    enum { SHORT_LIST = 16, NEAREST = 3, LONGEST = 96 };
    print_command(cli);
    text_print(stderr, "%s: %s: ", item, *value != '\0' ? value : "(empty)");
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
    return EXIT_USAGE;
}

int cli_reject_status(const struct cli *cli, const char *item, enum posenc_status status,
                      const struct posenc_error *error)
{
    char text[640];
    if (!error || !*error->what)
        return cli_reject(cli, item, NULL, "%s", posenc_status_string(status));
    posenc_error_text(error, text, sizeof text);
    return cli_reject(cli, item, NULL, "%s", text);
}

int cli_reject_memory(const struct cli *cli)
{
    return cli_reject(cli, "memory", NULL, "allocation failed");
}

int cli_reject_operands(const struct cli *cli)
{
    return cli->n_operands == 0 ? EXIT_OK
                                : cli_reject(cli, "unexpected argument", cli->operands[0],
                                             "expected options only");
}
