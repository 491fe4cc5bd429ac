/*
 * Reads what a selection is made of: lines of choices, and a profile, which has a head before them
 * that says of which CPU and of which build of the library they are.
 */
#include "select.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 4, PROFILE_MOST = 1 << 20 };

/* ---- Words ---- */

static const char blanks[] = " \t\r", ends[] = " \t\r\n", word_ends[] = " \t\r\n#";

struct word {
    const char *text;
    size_t length;
};

/* A line without its comment, of n words. */
struct line {
    int number, n;
    struct word words[WORDS_MOST]; /* the first of them */
    struct word all;               /* from the first word on */
};

/* Takes the line at *text, which moves to the next one. */
static void take_line(const char **text, struct line *line)
{
    const char *at = *text + strspn(*text, blanks);
    const char *end = at + strcspn(at, "#\n");
    line->number++;
    line->n = 0;
    for (line->all = (struct word){ at, 0 }; at < end; line->n++) {
        struct word word = { at, strcspn(at, word_ends) };
        if (line->n < WORDS_MOST)
            line->words[line->n] = word;
        line->all.length = (size_t)(at - line->all.text) + word.length;
        at += word.length;
        at += strspn(at, blanks);
    }
    *text = end + strcspn(end, "\n");
    *text += **text == '\n';
}

static bool is_word(struct word word, const char *text)
{
    return strlen(text) == word.length && memcmp(text, word.text, word.length) == 0;
}

__attribute__((format(printf, 4, 5))) static enum posenc_status
refuse(char *why, const struct line *line, enum posenc_status status, const char *format, ...)
{
    int at = snprintf(why, REASON_MOST, "line %d: ", line->number);
    va_list list;
    va_start(list, format);
    vsnprintf(why + at, REASON_MOST - (size_t)at, format, list);
    va_end(list);
    return status;
}

/* ---- Choices ---- */

static const char *const dtypes[] = { "f32", "f16", "bf16" };

/* "f32", and the most bytes. */
static enum posenc_status read_condition(const struct line *line, struct choice *choice,
                                         char *why)
{
    const struct word type = line->words[2], most = line->words[3];
    int dtype = 0;
    while (dtype <= POSENC_BF16 && !is_word(type, dtypes[dtype]))
        dtype++;
    if (dtype > POSENC_BF16)
        return refuse(why, line, POSENC_ERR_ARGUMENT, "'%.*s' is no type: f32, f16 or bf16",
                      (int)(type.length < 40 ? type.length : 40), type.text);
    choice->dtype = (enum posenc_dtype)dtype;
    choice->any_dtype = false;
    if (line->n < 4)
        return POSENC_OK;
    choice->most = 0;
    for (size_t i = 0; i < most.length; i++) {
        if (most.text[i] < '0' || most.text[i] > '9' || i >= 18)
            return refuse(why, line, POSENC_ERR_ARGUMENT,
                          "'%.*s' is no number of bytes below 10^18",
                          (int)(most.length < 40 ? most.length : 40), most.text);
        choice->most = 10 * choice->most + (uint64_t)(most.text[i] - '0');
    }
    return POSENC_OK;
}

static enum posenc_status read_choice(const struct line *line, struct choices *choices,
                                      char *why)
{
    const struct word name = line->words[0], by = line->words[1];
    const int name_shown = (int)(name.length < 40 ? name.length : 40),
              by_shown = (int)(by.length < 40 ? by.length : 40);
    if (line->n < 2 || line->n > WORDS_MOST)
        return refuse(why, line, POSENC_ERR_ARGUMENT,
                      "expected a kernel, a backend, and perhaps a type and a number of bytes");
    const enum posenc_kernel kernel = posenc_kernel_named(name.text, name.length);
    if (!posenc_is_kernel(kernel))
        return refuse(why, line, POSENC_ERR_ARGUMENT, "'%.*s' is no kernel", name_shown,
                      name.text);
    struct choice choice = { posenc_backend_named(by.text, by.length), UINT64_MAX, POSENC_F32,
                             true };
    if (!choice.backend)
        return refuse(why, line, POSENC_ERR_UNKNOWN, "'%.*s' is no backend", by_shown, by.text);
    if (!posenc_runs_here(choice.backend))
        return refuse(why, line, POSENC_ERR_UNSUPPORTED, "%s cannot run here: %s",
                      choice.backend->name, posenc_backend_obstacle(choice.backend));
    if (!posenc_provides(choice.backend, kernel))
        return refuse(why, line, POSENC_ERR_NOT_PROVIDED, "%s does not provide %.*s",
                      choice.backend->name, name_shown, name.text);
    if (choices->n[kernel] == CHOICES_MOST)
        return refuse(why, line, POSENC_ERR_ARGUMENT, "%.*s has %d lines already", name_shown,
                      name.text, CHOICES_MOST);
    enum posenc_status status = line->n > 2 ? read_condition(line, &choice, why) : POSENC_OK;
    if (!status)
        choices->of[kernel][choices->n[kernel]++] = choice;
    return status;
}

/* ---- The head of a profile ---- */

static const char head[] = "posenc.tune/1";

static bool begins_profile(const char *text)
{
    const size_t n = sizeof head - 1;
    return strncmp(text, head, n) == 0 && strchr(ends, text[n]);
}

/* "cpu KEY FEATURES" or "build ID": whether it says what holds here. */
static enum posenc_status read_head(const struct line *line, const char *here, char *why)
{
    const struct word first = line->words[0];
    const char *said = first.text + first.length;
    said += strspn(said, " \t");
    const struct word rest = { said, (size_t)(line->all.text + line->all.length - said) };
    if (line->n >= 2 && is_word(rest, here))
        return POSENC_OK;
    return refuse(why, line, POSENC_ERR_UNSUPPORTED,
                  "it is of %s %.*s, and this is %s: posenc tune writes one here",
                  first.text[0] == 'c' ? "the CPU" : "the build",
                  (int)(rest.length < 150 ? rest.length : 150), rest.text, here);
}

static enum posenc_status read_line(const struct line *line, bool profile,
                                    struct choices *choices, bool seen[2], char *why)
{
    char cpu[512];
    snprintf(cpu, sizeof cpu, "%s %s", posenc_cpu_key(), posenc_cpu_features());
    if (line->n == 0 || (profile && line->number == 1))
        return POSENC_OK;
    for (int i = 0; profile && i < 2; i++)
        if (is_word(line->words[0], i ? "build" : "cpu")) {
            seen[i] = true;
            return read_head(line, i ? posenc_build() : cpu, why);
        }
    return read_choice(line, choices, why);
}

enum posenc_status posenc_read_choices(const char *text, struct choices *choices, char *why)
{
    const bool profile = begins_profile(text);
    bool seen[2] = { !profile, !profile };
    enum posenc_status status = POSENC_OK;
    struct line line = { 0 };
    int n = 0;
    while (*text && !status) {
        take_line(&text, &line);
        status = read_line(&line, profile, choices, seen, why);
    }
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        n += choices->n[k];
    if (status || (n > 0 && seen[0] && seen[1]))
        return status;
    return refuse(why, &line, POSENC_ERR_ARGUMENT, "it ends without %s",
                  !seen[0] ? "a line about its cpu"
                  : n == 0 ? "a choice"
                           : "a line about its build");
}

static enum posenc_status read_file(FILE *file, const char *path, struct choices *choices,
                                    char *why)
{
    char *text = calloc(1, PROFILE_MOST + 1);
    enum posenc_status status = POSENC_ERR_MEMORY;
    if (text) {
        const size_t n = fread(text, 1, PROFILE_MOST, file);
        char line[REASON_MOST] = "";
        status = n == strlen(text) && begins_profile(text)
                     ? posenc_read_choices(text, choices, line)
                     : POSENC_ERR_ARGUMENT;
        snprintf(why, REASON_MOST, "%.200s: %.300s", path,
                 *line ? line : "no tuning file: its first line is not posenc.tune/1");
    }
    free(text);
    return status;
}

enum posenc_status posenc_read_profile(const char *path, struct choices *choices, char *why)
{
    FILE *file = fopen(path, "r");
    enum posenc_status status = POSENC_ERR_ARGUMENT;
    snprintf(why, REASON_MOST, "%.200s: %s", path, file ? "no memory" : strerror(errno));
    if (file) {
        status = read_file(file, path, choices, why);
        fclose(file);
    }
    return status;
}
