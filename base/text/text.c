/* Decodes UTF-8 and escapes hidden characters; see text.h. */
#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returns the bytes of a UTF-8 character, which its first byte tells; 0: it begins none. */
static size_t character_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if ((first & 0xe0) == 0xc0)
        return 2;
    if ((first & 0xf0) == 0xe0)
        return 3;
    return (first & 0xf8) == 0xf0 ? 4 : 0;
}

/* Decodes the character at `text` to *code. Returns its bytes, or 0 if it is invalid: RFC 3629 allows no longer form
 * than needed, no surrogate, and at most U+10FFFF. */
static size_t decode(const char *text, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *bytes = (const unsigned char *)text;
    const size_t n = character_length(bytes[0]);
    if (n == 0)
        return 0;
    *code = n == 1 ? bytes[0] : bytes[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((bytes[i] & 0xc0) != 0x80) /* fails for NUL, too, the end of the text */
            return 0;
        *code = *code << 6 | (bytes[i] & 0x3f);
    }
    const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code >= least[n] && !surrogate && *code <= 0x10ffff ? n : 0;
}

/* Returns true for control characters, soft hyphens, marks of direction and annotations, blanks without width, ends of
 * lines and paragraphs, byte order marks, tags, and noncharacters. */
static bool is_hidden(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = { { 0x00, 0x1f },     { 0x7f, 0x9f },     { 0xad, 0xad },
                   { 0x61c, 0x61c },   { 0x180e, 0x180e }, { 0x200b, 0x200f },
                   { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfdd0, 0xfdef },
                   { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f } };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return true;
    return (code & 0xfffe) == 0xfffe;
}

bool text_is_plain(const char *text)
{
    uint32_t code;
    for (size_t n; *text; text += n) {
        n = decode(text, &code);
        if (n == 0 || is_hidden(code))
            return false;
    }
    return true;
}

enum { ESCAPED = 12 }; /* bytes of \U10ffff and a NUL, or of a character of UTF-8 */

/* Writes the character at `text`, escaped if it is hidden or invalid. Returns its bytes in `text`. */
static size_t escape_character(const char *text, char escaped[ESCAPED])
{
    uint32_t code;
    const size_t n = decode(text, &code);
    if (n == 0)
        snprintf(escaped, ESCAPED, "\\x%02x", (unsigned)(unsigned char)*text);
    else if (!is_hidden(code))
        snprintf(escaped, ESCAPED, "%.*s", (int)n, text);
    else if (code == '\n' || code == '\r' || code == '\t')
        snprintf(escaped, ESCAPED, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    else if (code < 0x80)
        snprintf(escaped, ESCAPED, "\\x%02x", (unsigned)code);
    else
        snprintf(escaped, ESCAPED, code < 0x10000 ? "\\u%04x" : "\\U%06x", (unsigned)code);
    return n ? n : 1;
}

size_t text_escape(const char *text, char *to, size_t room)
{
    size_t whole = 0, written = 0; /* bytes */
    bool fits = room > 0;
    while (*text) {
        char escaped[ESCAPED];
        text += escape_character(text, escaped);
        const size_t n = strlen(escaped);
        fits = fits && written + n < room;
        if (fits) {
            memcpy(to + written, escaped, n);
            written += n;
        }
        whole += n;
    }
    if (room > 0)
        to[written] = '\0';
    return whole;
}

char *text_escape_copy(const char *text)
{
    const size_t room = text_escape(text, NULL, 0) + 1;
    char *copy = malloc(room);
    if (copy)
        text_escape(text, copy, room);
    return copy;
}

/* Writes an escaped line, with commands of GitHub Actions disabled. */
static void put_line(const char *line, FILE *out)
{
    const size_t blanks = strspn(line, " ");
    fprintf(out, "%.*s", (int)blanks, line);
    line += blanks;
    if (strncmp(line, "::", 2) == 0)
        fputc('\\', out);
    /* Prints up to ##, then the backslash; the bracket comes with the rest. */
    for (const char *command; (command = strstr(line, "##[")); line = command + 2)
        fprintf(out, "%.*s\\", (int)(command + 2 - line), line);
    fputs(line, out);
}

void text_vprint(FILE *out, const char *format, va_list list)
{
    const size_t n = strlen(format);
    const bool ends_line = n > 0 && format[n - 1] == '\n';
    va_list copy;
    va_copy(copy, list);
    const int length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1), *plain = NULL;
    if (text) {
        vsnprintf(text, (size_t)length + 1, format, list);
        text[length - ends_line] = '\0';
        plain = text_escape_copy(text);
    }
    put_line(plain ? plain : "(no memory for a message)", out);
    if (ends_line)
        fputc('\n', out);
    free(plain);
    free(text);
}

void text_print(FILE *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text_vprint(out, format, list);
    va_end(list);
}

/* ---- Words ---- */

void text_list_add(char *text, size_t size, const char *separator, const char *name)
{
    const size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s", n > 0 ? separator : "", name);
}

/* Keeps one row of the table of Wagner and Fischer, J. ACM 21(1), 1974. */
size_t text_edit_distance(const char *a, const char *b)
{
    enum { MOST_BYTES = 96 };
    size_t row[MOST_BYTES + 1];
    size_t length = strnlen(b, MOST_BYTES);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = step < change ? step : change;
        }
    }
    return row[length];
}

bool text_has_word(const char *list, char separator, const char *word, size_t n)
{
    for (const char *end; list; list = end ? end + 1 : NULL) {
        end = strchr(list, separator);
        const size_t length = end ? (size_t)(end - list) : strlen(list);
        if (length == n && strncmp(list, word, n) == 0)
            return true;
    }
    return false;
}
