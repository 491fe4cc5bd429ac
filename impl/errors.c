/*
 * What was refused, in words.
 */
#include <posenc.h>

#include <stdio.h>
#include <stdlib.h>

const char *posenc_status_string(enum posenc_status status)
{
    switch (status) {
    case POSENC_OK:
        return "fine";
    case POSENC_ERR_ARGUMENT:
        return "a required argument is missing or no member of its kind";
    case POSENC_ERR_SHAPE:
        return "a dimension is out of range or two tensors disagree";
    case POSENC_ERR_STRIDE:
        return "the last dimension is not contiguous, or an output overlaps itself";
    case POSENC_ERR_DTYPE:
        return "this kernel does not take this element type";
    case POSENC_ERR_ODD:
        return "a dimension that must be even is odd";
    case POSENC_ERR_ROTARY_DIM:
        return "rotary_dim, rotary_offset or head_dim is out of range";
    case POSENC_ERR_THETA:
        return "rope_theta is not finite and positive, or gives unusable frequencies";
    case POSENC_ERR_PARAMETER:
        return "a parameter is not finite or out of its range";
    case POSENC_ERR_POSITION:
        return "a position is out of range";
    case POSENC_ERR_OVERLAP:
        return "tensors overlap without being the same";
    case POSENC_ERR_OVERFLOW:
        return "the size of a tensor does not fit in memory";
    case POSENC_ERR_UNKNOWN:
        return "no backend of that name";
    case POSENC_ERR_UNSUPPORTED:
        return "this CPU cannot run that backend";
    case POSENC_ERR_NOT_PROVIDED:
        return "that backend lacks this kernel";
    case POSENC_ERR_MEMORY:
        return "out of memory";
    }
    return "no status of this library";
}

enum { NUMBER = 32 };

/* With 15 digits where they give the number back, else with 17. */
static const char *number(char text[NUMBER], double value)
{
    snprintf(text, NUMBER, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, NUMBER, "%.17g", value);
    return text;
}

size_t posenc_error_text(const struct posenc_error *error, char *text, size_t size)
{
    char value[NUMBER], least[NUMBER], most[NUMBER];
    const char *reason = posenc_status_string(error->status);
    bool range = error->least <= error->most;
    int length;

    number(value, error->value);
    number(least, error->least);
    number(most, error->most);
    if (!error->what)
        length = snprintf(text, size, "%s", reason);
    else if (range && error->least < error->most)
        length = snprintf(text, size, "%s is %s, expected from %s to %s: %s", error->what,
                          value, least, most, reason);
    else if (range)
        length = snprintf(text, size, "%s is %s, expected %s: %s", error->what, value, least,
                          reason);
    else if (error->value != 0.0)
        length = snprintf(text, size, "%s is %s: %s", error->what, value, reason);
    else
        length = snprintf(text, size, "%s: %s", error->what, reason);
    return length < 0 ? 0 : (size_t)length;
}
