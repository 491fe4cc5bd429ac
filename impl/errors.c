/* Texts of statuses and of errors. */
#include <posenc.h>

#include <stdio.h>
#include <stdlib.h>

static const char *const status_texts[] = {
    [POSENC_OK] = "success",
    [POSENC_ERR_ARGUMENT] = "a required argument is missing or no member of its kind",
    [POSENC_ERR_SHAPE] = "a dimension is out of range or two tensors disagree",
    [POSENC_ERR_STRIDE] = "the last dimension is not contiguous, or an output overlaps itself",
    [POSENC_ERR_DTYPE] = "this kernel does not take this element type",
    [POSENC_ERR_ODD] = "the dim of a rotation is odd",
    [POSENC_ERR_ROTARY_DIM] = "rotary_dim, rotary_offset or head_dim is out of range",
    [POSENC_ERR_THETA] = "rope_theta is not finite and positive, or gives unusable frequencies",
    [POSENC_ERR_PARAMETER] = "a parameter is not finite or out of its range",
    [POSENC_ERR_POSITION] = "a position is out of range",
    [POSENC_ERR_OVERLAP] = "tensors overlap without being the same",
    [POSENC_ERR_OVERFLOW] = "the size of a tensor does not fit in memory",
    [POSENC_ERR_UNKNOWN] = "no backend of that name",
    [POSENC_ERR_UNSUPPORTED] = "this CPU cannot run that backend",
    [POSENC_ERR_NOT_PROVIDED] = "that backend lacks this kernel",
    [POSENC_ERR_MEMORY] = "out of memory",
};

const char *posenc_status_string(enum posenc_status status)
{
    const size_t count = sizeof status_texts / sizeof *status_texts;
    return (size_t)status < count ? status_texts[status] : "no status of this library";
}

enum { NUMBER_SIZE = 32 };

/* Writes a number with 15 significant digits, or with 17 if 15 do not identify it. */
static const char *format_number(char text[NUMBER_SIZE], double value)
{
    snprintf(text, NUMBER_SIZE, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, NUMBER_SIZE, "%.17g", value);
    return text;
}

size_t posenc_error_text(const struct posenc_error *error, char *text, size_t size)
{
    char value[NUMBER_SIZE], least[NUMBER_SIZE], most[NUMBER_SIZE];
    const char *reason = posenc_status_string(error->status);
    bool has_range = error->least <= error->most;
    int length;

    format_number(value, error->value);
    format_number(least, error->least);
    format_number(most, error->most);
    if (!*error->what)
        length = snprintf(text, size, "%s", reason);
    else if (has_range && error->least < error->most)
        length = snprintf(text, size, "%s is %s, expected from %s to %s: %s", error->what,
                          value, least, most, reason);
    else if (has_range)
        length = snprintf(text, size, "%s is %s, expected %s: %s", error->what, value, least,
                          reason);
    else if (error->value != 0.0)
        length = snprintf(text, size, "%s is %s: %s", error->what, value, reason);
    else
        length = snprintf(text, size, "%s: %s", error->what, reason);
    return length < 0 ? 0 : (size_t)length;
}
