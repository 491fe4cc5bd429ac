/*
 * The help of a command: its options and formats.
 */
#include "args.h"
#include "option_spec.h"

#include <stdio.h>

/* What it is for, what it means, what it can be. */
static void print_option_help(const struct option_spec *spec, const struct command *command)
{
    char names[256];
    if (spec->scaled) {
        cli_list_scalings(spec, names, sizeof names);
        printf("%s: ", names);
    }
    fputs(spec->help, stdout);
    for (int i = 0; spec->names && spec->names[i]; i++)
        printf("%s %s", i > 0 ? "," : ":", spec->names[i]);
    if ((spec->commands & command->bit) != command->bit) {
        cli_list_kinds(spec->commands & command->bit, names, sizeof names);
        printf(" [%s]", names);
    }
    putchar('\n');
}

static void print_formats(const struct command *command, int column)
{
    const struct format *format = command->formats;
    if (format)
        puts("\nFormats of --out");
    for (; format && format->name; format++)
        if (format->commands & command->writes)
            printf("  %-*s%s\n", column - 2, format->name, format->purpose);
}

void cli_help(const struct command *command)
{
    enum { COLUMN = 26 };
    printf("usage: posenc %s%s%s [OPTIONS]\n\n%s.\n\n%s", command->name,
           *command->operands ? " " : "", command->operands, command->summary,
           command->details);
    print_formats(command, COLUMN);
    puts("\nOptions");
    if (cli_takes_outputs(command))
        printf("  %-*s%s\n", COLUMN - 2, "-o PATH",
               "the same as --out, with the format that the name ends in");
    for (size_t i = 0; i < cli_n_specs; i++) {
        if (cli_specs[i].commands & command->bit) {
            const char *argument = cli_specs[i].argument ? cli_specs[i].argument : "";
            int length =
                printf("  --%s%s%s", cli_specs[i].name, *argument ? " " : "", argument);
            if (length >= COLUMN) {
                length = 0;
                putchar('\n');
            }
            printf("%*s", COLUMN - length, "");
            print_option_help(&cli_specs[i], command);
        }
    }
}
