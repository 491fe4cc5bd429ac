/* Tests text.h: hidden characters are escaped, and nothing else is; printed lines, lists and words. */
#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include "base/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static void test_escapes(void)
{
    static const struct {
        const char *text, *escaped;
    } cases[] = {
        { "plain, \u00e9, \u25cf, \U0001f642, \\ and \"",
          "plain, \u00e9, \u25cf, \U0001f642, \\ and \"" },
        { "\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m" },
        { "a\nb\tc\rd", "a\\nb\\tc\\rd" },
        { "\x7f\x01", "\\x7f\\x01" },
        { "\302\23331m", "\\u009b31m" }, /* CSI, the start of a command, as one character */
        { "\23331m", "\\x9b31m" },       /* and as a byte */
        { "\u202egpj.exe", "\\u202egpj.exe" }, /* right to left */
        { "a\u2066b\u061c", "a\\u2066b\\u061c" },
        { "in\u200bvisible\ufeff", "in\\u200bvisible\\ufeff" },
        { "\U000e0041", "\\U0e0041" }, /* a tag */
        { "\uffff", "\\uffff" },
        { "\ufdd0\ufdef", "\\ufdd0\\ufdef" }, /* noncharacters */
        { "\xff\xfe", "\\xff\\xfe" },
        { "\xc0\x80", "\\xc0\\x80" },                   /* longer than needed */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* a surrogate */
        { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
        { "cut \xe2\x97", "cut \\xe2\\x97" },
        { "", "" },
    };
    char sentence[128];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *want = cases[i].escaped;
        char *escaped = text_escape_copy(cases[i].text);
        snprintf(sentence, sizeof sentence, "a text is escaped to '%s', which is plain", want);
        require(escaped && strcmp(escaped, want) == 0 && text_is_plain(want) &&
                    text_is_plain(cases[i].text) == (strcmp(cases[i].text, want) == 0),
                sentence);
        free(escaped);
    }
}

static void test_cut(void)
{
    char to[8];
    require(text_escape("ab\u25cf\033cd", to, sizeof to) == 11 && strcmp(to, "ab\u25cf") == 0,
            "a text that does not fit is cut between characters");
    require(text_escape("abc", NULL, 0) == 3, "without room the length is returned");
}

/* Requires that text_print() of a format with one argument prints `want`. */
static void require_printed(const char *want, const char *format, const char *argument,
                            const char *sentence)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    text_print(out, format, argument);
    fclose(out);
    require(strcmp(text, want) == 0, sentence);
    free(text);
}

static void test_lines(void)
{
    require_printed("posenc: x\\n::error::y\n", "posenc: %s\n", "x\n::error::y",
                    "an argument cannot begin a line");
    require_printed("  \\::error::y\n", "  %s\n", "::error::y",
                    "a command at the start of a line gets a backslash");
    require_printed("a std::vector\n", "a %s\n", "std::vector", "elsewhere it is no command");
    require_printed("a ##\\[group]##\\[x", "a %s", "##[group]##[x",
                    "commands in brackets get a backslash anywhere");
    require_printed("trailing\\n", "%s", "trailing\n", "a line end of an argument is escaped");
}

static void test_lists(void)
{
    char list[8] = "";
    text_list_add(list, sizeof list, ", ", "ab");
    text_list_add(list, sizeof list, ", ", "cdefgh");
    require(strcmp(list, "ab, cde") == 0, "a list has separators and is cut at its size");
}

static void test_words(void)
{
    char long_name[120] = { 0 };
    memset(long_name, 'x', sizeof long_name - 1);
    require(text_edit_distance("rope_half", "rope_half") == 0 &&
                text_edit_distance("tabel", "table") == 2 &&
                text_edit_distance("", "abc") == 3 &&
                text_edit_distance("kitten", "sitting") == 3,
            "the distance of two names is the number of edits");
    require(text_edit_distance("", long_name) == 96, "only 96 bytes of the second name count");
    require(text_has_word("a bc d", ' ', "bc", 2) && text_has_word("a bc d", ' ', "d", 1) &&
                !text_has_word("a bc d", ' ', "b", 1) && !text_has_word("a bc d", ' ', "c", 1),
            "a list has whole words, not parts of them");
}

int main(void)
{
    test_words();
    test_lists();
    test_escapes();
    test_cut();
    test_lines();
    return tap_end();
}
