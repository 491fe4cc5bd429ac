/*
 * Reads numbers from text: all of a text is a number, or it is refused (see args.h).
 */
#include "args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool parse_integer(const char *text, int64_t least, int64_t most, int64_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits < '0' || *digits > '9')
        return false; /* strtoll would skip blanks */
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < least || number > most)
        return false;
    *value = number;
    return true;
}

bool parse_real(const char *text, double *value)
{
    if (!strchr("+-.0123456789", *text) || *text == '\0')
        return false;
    char *end;
    double number = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(number))
        return false;
    *value = number;
    return true;
}
