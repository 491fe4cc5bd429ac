/*
 * What the kinds of table and picture are called, see args.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "args.h"

#include <stdio.h>

static const struct {
    unsigned bit;
    const char *name;
} kinds[] = { { TABLE_SINUSOIDAL, "sinusoidal" },
              { TABLE_ROPE, "rope_table" },
              { TABLE_FREQUENCIES, "frequencies" },
              { TABLE_ERRORS, "errors" } };
enum { N_KINDS = sizeof kinds / sizeof *kinds };

const char *cli_kind_name(unsigned kind)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].bit == kind)
            return kinds[i].name;
    return NULL;
}

void cli_list_kinds(unsigned bits, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < N_KINDS && at < size; i++) {
        if (bits & kinds[i].bit)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "",
                                   kinds[i].name);
    }
}
