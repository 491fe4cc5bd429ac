/*
 * Reads the rules of a selection (select.h), from text or from a tuning file. A tuning file begins with the line
 * posenc.tune/1 and names the CPU and the build of the library that it was measured with:
 *
 *     posenc.tune/1
 *     cpu amd-19-11-1 avx2 fma f16c
 *     build 0.1.0 gcc 12.2.0 -O3 1234567890
 *     rope_half avx2 f32 262144    # calls in f32 of at most 262144 bytes
 *     rope_half avx512             # all others
 */
#include "select.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 4, MAX_FILE_SIZE = 1 << 20 };

/* ---- Words ---- */

static const char blanks[] = " \t\r", ends[] = " \t\r\n", word_ends[] = " \t\r\n#";

struct word {
    const char *text;
    size_t length;
};

/* A line without its comment. */
struct tuning_line {
    int number, n;                /* its number in the text, and that of its words */
    struct word words[MAX_WORDS]; /* the first n words */
    struct word all;              /* from the first to the last word */
};

/* Reads the line at *text, and advances *text to the next one. */
static void next_line(const char **text, struct tuning_line *line)
{
    const char *at = *text + strspn(*text, blanks);
    const char *end = at + strcspn(at, "#\n");
    line->number++;
    line->n = 0;
    for (line->all = (struct word){ at, 0 }; at < end; line->n++) {
        struct word word = { at, strcspn(at, word_ends) };
        if (line->n < MAX_WORDS)
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

/* Returns the length of a word in a message, for "%.*s". */
static int shown_length(struct word word) { return (int)(word.length < 40 ? word.length : 40); }

/* Writes the reason, which begins with the number of the line, and returns `status`. */
__attribute__((format(printf, 4, 5))) static enum posenc_status
reject_line(char *reason, const struct tuning_line *line, enum posenc_status status,
            const char *format, ...)
{
    int at = snprintf(reason, REASON_SIZE, "line %d: ", line->number);
    va_list list;
    va_start(list, format);
    vsnprintf(reason + at, REASON_SIZE - (size_t)at, format, list);
    va_end(list);
    return status;
}

/* ---- Rules ---- */

static const char *const dtypes[] = { "f32", "f16", "bf16" };

/* Reads the dtype and, if the line has one, the limit of bytes. */
static enum posenc_status read_condition(const struct tuning_line *line,
                                         struct selection_rule *rule, char *reason)
{
    const struct word type = line->words[2], max_bytes = line->words[3];
    int dtype = 0;
    while (dtype <= POSENC_DTYPE_BF16 && !is_word(type, dtypes[dtype]))
        dtype++;
    if (dtype > POSENC_DTYPE_BF16)
        return reject_line(reason, line, POSENC_ERR_ARGUMENT,
                           "'%.*s' is no type: f32, f16 or bf16", shown_length(type),
                           type.text);
    rule->dtype = (enum posenc_dtype)dtype;
    rule->any_dtype = false;
    if (line->n < 4)
        return POSENC_OK;
    rule->max_bytes = 0;
    for (size_t i = 0; i < max_bytes.length; i++) {
        if (max_bytes.text[i] < '0' || max_bytes.text[i] > '9' || i >= 18)
            return reject_line(reason, line, POSENC_ERR_ARGUMENT,
                               "'%.*s' is no number of bytes below 10^18",
                               shown_length(max_bytes), max_bytes.text);
        rule->max_bytes = 10 * rule->max_bytes + (uint64_t)(max_bytes.text[i] - '0');
    }
    return POSENC_OK;
}

static enum posenc_status read_rule(const struct tuning_line *line,
                                    struct selection_rules *rules, char *reason)
{
    const struct word kernel_name = line->words[0], backend_name = line->words[1];
    if (line->n < 2 || line->n > MAX_WORDS)
        return reject_line(
            reason, line, POSENC_ERR_ARGUMENT,
            "expected a kernel, a backend, and perhaps a type and a number of bytes");
    const enum posenc_kernel kernel =
        posenc_kernel_find_n(kernel_name.text, kernel_name.length);
    if (!posenc_kernel_is_valid(kernel))
        return reject_line(reason, line, POSENC_ERR_ARGUMENT, "'%.*s' is no kernel",
                           shown_length(kernel_name), kernel_name.text);
    struct selection_rule rule = { posenc_backend_find_n(backend_name.text,
                                                         backend_name.length),
                                   UINT64_MAX, POSENC_DTYPE_F32, true };
    if (!rule.backend)
        return reject_line(reason, line, POSENC_ERR_UNKNOWN, "'%.*s' is no backend",
                           shown_length(backend_name), backend_name.text);
    if (!posenc_backend_runs(rule.backend))
        return reject_line(reason, line, POSENC_ERR_UNSUPPORTED, "%s cannot run here: %s",
                           rule.backend->name, posenc_backend_unavailable_reason(rule.backend));
    if (!posenc_backend_provides(rule.backend, kernel))
        return reject_line(reason, line, POSENC_ERR_NOT_PROVIDED, "%s does not provide %.*s",
                           rule.backend->name, shown_length(kernel_name), kernel_name.text);
    if (rules->n[kernel] == MAX_RULES)
        return reject_line(reason, line, POSENC_ERR_ARGUMENT, "%.*s has %d lines already",
                           shown_length(kernel_name), kernel_name.text, MAX_RULES);
    enum posenc_status status = line->n > 2 ? read_condition(line, &rule, reason) : POSENC_OK;
    if (!status)
        rules->list[kernel][rules->n[kernel]++] = rule;
    return status;
}

/* ---- The head of a tuning file ---- */

static const char file_magic[] = "posenc.tune/1";

static bool is_tuning_file(const char *text)
{
    const size_t n = sizeof file_magic - 1;
    return strncmp(text, file_magic, n) == 0 && strchr(ends, text[n]);
}

/* Checks a line "cpu KEY FEATURES" or "build ID" against this CPU or this build. */
static enum posenc_status check_head_line(const struct tuning_line *line, const char *here,
                                          char *reason)
{
    const struct word first = line->words[0];
    const char *value = first.text + first.length;
    value += strspn(value, " \t");
    const struct word rest = { value, (size_t)(line->all.text + line->all.length - value) };
    if (line->n >= 2 && is_word(rest, here))
        return POSENC_OK;
    return reject_line(reason, line, POSENC_ERR_UNSUPPORTED,
                       "it is of %s %.*s, and this is %s: posenc tune writes one here",
                       first.text[0] == 'c' ? "the CPU" : "the build",
                       (int)(rest.length < 150 ? rest.length : 150), rest.text, here);
}

/* Lines that the head of a tuning file must have. */
struct head_lines {
    bool cpu, build;
};

static enum posenc_status read_line(const struct tuning_line *line, bool is_file,
                                    struct selection_rules *rules, struct head_lines *seen,
                                    char *reason)
{
    if (line->n == 0 || (is_file && line->number == 1))
        return POSENC_OK;
    if (is_file && is_word(line->words[0], "cpu")) {
        char cpu[512];
        snprintf(cpu, sizeof cpu, "%s %s", posenc_cpu_key(), posenc_cpu_features());
        seen->cpu = true;
        return check_head_line(line, cpu, reason);
    }
    if (is_file && is_word(line->words[0], "build")) {
        seen->build = true;
        return check_head_line(line, posenc_build_id(), reason);
    }
    return read_rule(line, rules, reason);
}

enum posenc_status posenc_tuning_parse(const char *text, struct selection_rules *rules,
                                       char *reason)
{
    const bool is_file = is_tuning_file(text);
    struct head_lines seen = { !is_file, !is_file }; /* other text needs no head */
    enum posenc_status status = POSENC_OK;
    struct tuning_line line = { 0 };
    int n = 0;
    while (*text && !status) {
        next_line(&text, &line);
        status = read_line(&line, is_file, rules, &seen, reason);
    }
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        n += rules->n[k];
    if (status || (n > 0 && seen.cpu && seen.build))
        return status;
    return reject_line(reason, &line, POSENC_ERR_ARGUMENT, "it ends without %s",
                       !seen.cpu ? "a line about its cpu"
                       : n == 0  ? "a choice"
                                 : "a line about its build");
}

static enum posenc_status read_file(FILE *file, const char *path, struct selection_rules *rules,
                                    char *reason)
{
    char *text = calloc(1, MAX_FILE_SIZE + 1);
    enum posenc_status status = POSENC_ERR_MEMORY;
    if (text) {
        const size_t n = fread(text, 1, MAX_FILE_SIZE, file);
        char line[REASON_SIZE] = "";
        status = n == strlen(text) && is_tuning_file(text)
                     ? posenc_tuning_parse(text, rules, line)
                     : POSENC_ERR_ARGUMENT;
        snprintf(reason, REASON_SIZE, "%.200s: %.300s", path,
                 *line ? line : "no tuning file: its first line is not posenc.tune/1");
    }
    free(text);
    return status;
}

enum posenc_status posenc_tuning_read(const char *path, struct selection_rules *rules,
                                      char *reason)
{
    FILE *file = fopen(path, "r");
    enum posenc_status status = POSENC_ERR_ARGUMENT;
    snprintf(reason, REASON_SIZE, "%.200s: %s", path, file ? "no memory" : strerror(errno));
    if (file) {
        status = read_file(file, path, rules, reason);
        fclose(file);
    }
    return status;
}
