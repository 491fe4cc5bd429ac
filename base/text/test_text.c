/* Tests that hidden characters are escaped, and nothing else is; printed lines, lists and words. */
#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include "base/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static void test_escapes(void)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        { "plain, \xc3\xa9, \xe2\x97\x8f, \xf0\x9f\x99\x82, \\ and \"",
          "plain, \xc3\xa9, \xe2\x97\x8f, \xf0\x9f\x99\x82, \\ and \"" },
        { "\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m" },
        { "a\nb\tc\rd", "a\\nb\\tc\\rd" },
        { "\x7f\x01", "\\x7f\\x01" },
        { "\xc2\x9b"
          "31m",
          "\\u009b31m" }, /* CSI as one character */
        { "\x9b"
          "31m",
          "\\x9b31m" }, /* and as a byte */
        { "\xe2\x80\xae"
          "gpj.exe",
          "\\u202egpj.exe" }, /* right to left */
        { "a\xe2\x81\xa6"
          "b\xd8\x9c",
          "a\\u2066b\\u061c" },
        { "in\xe2\x80\x8bvisible\xef\xbb\xbf", "in\\u200bvisible\\ufeff" },
        { "\xf3\xa0\x81\x81", "\\U0e0041" }, /* a tag */
        { "\xef\xbf\xbf", "\\uffff" },
        { "\xef\xb7\x90\xef\xb7\xaf", "\\ufdd0\\ufdef" }, /* noncharacters, too */
        { "\xff\xfe", "\\xff\\xfe" },
        { "\xc0\x80", "\\xc0\\x80" },          /* longer than needed */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* a surrogate */
        { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
        { "cut \xe2\x97", "cut \\xe2\\x97" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *shown = text_escape_copy(cases[i].text);
        char sentence[128];
        snprintf(sentence, sizeof sentence, "escaping makes a text plain: %s", cases[i].shown);
        require(shown && strcmp(shown, cases[i].shown) == 0, cases[i].shown);
        require(text_is_plain(cases[i].text) == (strcmp(cases[i].text, cases[i].shown) == 0) &&
                    text_is_plain(cases[i].shown),
                sentence);
        free(shown);
    }
}

static void test_cut(void)
{
    char to[8];
    require(text_escape("ab\xe2\x97\x8f\033cd", to, sizeof to) == 11 &&
                strcmp(to, "ab\xe2\x97\x8f") == 0,
            "a text that does not fit is cut between characters");
    require(text_escape("abc", NULL, 0) == 3, "the length alone");
}

static void require_printed(const char *want, const char *format, const char *argument)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    text_print(out, format, argument);
    fclose(out);
    require(strcmp(text, want) == 0, "a line as it is printed");
    free(text);
}

static void test_lines(void)
{
    require_printed("posenc: x\\n::error::y\n", "posenc: %s\n", "x\n::error::y");
    require_printed("  \\::error::y\n", "  %s\n", "::error::y");
    require_printed("a std::vector\n", "a %s\n", "std::vector");
    require_printed("a ##\\[group]##\\[x", "a %s", "##[group]##[x");
    require_printed("trailing\\n", "%s", "trailing\n");
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
            "the distance of two names");
    require(text_edit_distance("", long_name) == 96, "only 96 bytes of the second name count");
    require(text_has_word("a bc d", ' ', "bc", 2) && text_has_word("a bc d", ' ', "d", 1) &&
                !text_has_word("a bc d", ' ', "b", 1) && !text_has_word("a bc d", ' ', "c", 1),
            "a list has whole words only");
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
