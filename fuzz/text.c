/* What harnesses share, see fuzz.h. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}
