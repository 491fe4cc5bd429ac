/*
 * Runs the programs that write formats (see exported.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "exported.h"
#include "data.h"
#include "hand_over.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 8 };

int exported_check(const struct cli *cli, const struct format *format)
{
    char path[DATA_PATH] = "";
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool found = hand_over_find(format->program, path);
    const int status =
        found ? hand_over_run((const char *const[]){ path, "--help", NULL }, nothing, nothing)
              : HAND_OVER_NOT_RUN;
    close(nothing);
    if (status == 0)
        return EXIT_FINE;
    return cli_refuse(cli, "--out", format->name,
                      found ? "is written in Python, and posenc-%s cannot be run: install "
                              "Python 3.9 or later, or take --out jsonl"
                            : "is written in Python, and posenc-%s is not installed: install "
                              "the Python part of posenc, or take --out jsonl",
                      format->program);
}

int exported_write(const struct cli *cli, const struct format *format, const json_t *records,
                   FILE *to)
{
    char path[DATA_PATH];
    FILE *file = tmpfile();
    int status = EXIT_USAGE;
    if (!hand_over_find(format->program, path))
        cli_refuse(cli, "--out", format->name, "could not be written: posenc-%s is gone",
                   format->program);
    else if (!file || format_jsonl(records, file) != 0 || fflush(file) != 0 ||
             fseek(file, 0, SEEK_SET) != 0)
        cli_refuse(cli, "--out", format->name, "could not be written: %s", strerror(errno));
    else if (fflush(to) == 0) {
        const bool export = strcmp(format->program, "results") == 0;
        const char *argv[WORDS] = { path }, **word = argv + 1;
        if (export)
            *word++ = "export";
        *word++ = "-";
        *word++ = export ? "--format" : "--out";
        *word++ = format->name;
        status = hand_over_run(argv, fileno(file), fileno(to));
    }
    if (file)
        fclose(file);
    return status;
}
