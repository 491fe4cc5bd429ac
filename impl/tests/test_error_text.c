/* Tests errors as sentences: with a range, one value or no range, in buffers of every size. */
#include <posenc.h>
#include "base/tap/tap.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

static void test_sentence(struct posenc_error error, const char *want)
{
    char text[256];
    size_t length = posenc_error_text(&error, text, sizeof text);
    require(length == strlen(want) && strcmp(text, want) == 0, want);
    if (strcmp(text, want) != 0)
        printf("# the text is: %s\n", text);
}

static struct posenc_error make_error(enum posenc_status status, const char *what, double value,
                                      double least, double most)
{
    struct posenc_error error = {
        .status = status, .value = value, .least = least, .most = most
    };
    snprintf(error.what, sizeof error.what, "%s", what);
    return error;
}

static void test_sentences(void)
{
    test_sentence(
        make_error(POSENC_ERR_ROTARY_DIM, "rotary_dim", 33.0, 2.0, 32.0),
        "rotary_dim is 33, expected from 2 to 32: rotary_dim, rotary_offset or head_dim is "
        "out of range");
    test_sentence(
        make_error(POSENC_ERR_SHAPE, "rows of table", 7.0, 8.0, 8.0),
        "rows of table is 7, expected 8: a dimension is out of range or two tensors disagree");
    test_sentence(make_error(POSENC_ERR_ODD, "dim of the spec", 7.0, 1.0, 0.0),
                  "dim of the spec is 7: the dim of a rotation is odd");
    test_sentence(make_error(POSENC_ERR_MEMORY, "memory for frequencies", 0.0, 1.0, 0.0),
                  "memory for frequencies: out of memory");
    test_sentence(
        make_error(POSENC_ERR_POSITION, "position", 2147483648.0, -2147483647.0, 2147483647.0),
        "position is 2147483648, expected from -2147483647 to 2147483647: a position is out of "
        "range");
    test_sentence(
        make_error(POSENC_ERR_PARAMETER, "factor", 0.1 + 0.2, 1e-7, DBL_MAX),
        "factor is 0.30000000000000004, expected from 1e-07 to 1.7976931348623157e+308: a "
        "parameter is not finite or out of its range");
    test_sentence((struct posenc_error){ .status = POSENC_ERR_MEMORY }, "out of memory");
}

/* Tests an error that the library itself fills. */
static void test_library_error(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    struct posenc_error error;
    spec.dim = 8;
    spec.scaling = POSENC_SCALING_LINEAR;
    spec.factor = 0.5;
    require(posenc_freqs_create(&spec, &freqs, &error) == POSENC_ERR_PARAMETER,
            "a factor below 1");
    test_sentence(
        error, "factor of the scaling is 0.5, expected from 1 to 1000000: a parameter is not "
               "finite or out of its range");
}

static void test_sizes(void)
{
    const struct posenc_error error =
        make_error(POSENC_ERR_ROTARY_DIM, "rotary_dim", 33.0, 2.0, 32.0);
    char whole[256], text[256];
    const size_t length = posenc_error_text(&error, whole, sizeof whole);
    bool cut = posenc_error_text(&error, NULL, 0) == length;
    for (size_t size = 1; size <= length + 1; size++) {
        memset(text, '#', sizeof text);
        cut = cut && posenc_error_text(&error, text, size) == length &&
              strlen(text) == size - 1 && strncmp(text, whole, size - 1) == 0 &&
              text[size] == '#';
    }
    require(cut, "a buffer of any size gets the text that fits, and the length of the whole is "
                 "returned");
}

int main(void)
{
    test_sentences();
    test_library_error();
    test_sizes();
    return tap_end();
}
