/* Parser and printer of problems (see notation.h). */
#define _POSIX_C_SOURCE 200809L
#include "notation.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SETTINGS = 64, N_COLUMNS = 3, MOST_NAMES = 800, MOST_COMBINATIONS = 1 << 16 };

/* A field and its value. The kernel is a setting without a field name. */
struct setting {
    const char *field, *value;
    const char *at; /* its place in the text */
};
static const char kernel_field_name[] = "";

struct parse_error {
    char *message;
    const char *at; /* the place in the text that the message is about */
};

/* A parsed line; absent members are NULL. */
struct statement {
    int number;     /* of the line in its file */
    const char *at; /* its first character in the text */
    bool is_used;   /* used by an alternative of its `with` */
    const char *name;
    const char *columns[N_COLUMNS]; /* flags, note, source */
    int n;
    struct setting settings[MOST_SETTINGS];
};

/* ---- Lines to words ---- */

static const char blanks[] = " \t\r\n";

/* Returns the text before the first `end` in *rest, without blanks around it; NULL if there is none. Sets *rest to
 * the text after it, or NULL. */
static char *cut_text(char **rest, char end)
{
    char *piece = *rest, *after = piece ? strchr(piece, end) : NULL;
    *rest = after ? after + 1 : NULL;
    if (!piece)
        return NULL;
    if (after)
        *after = '\0';
    piece += strspn(piece, blanks);
    for (size_t n = strlen(piece); n > 0 && strchr(blanks, piece[n - 1]); n--)
        piece[n - 1] = '\0';
    return *piece ? piece : NULL;
}

/* Returns the index of the setting of a field, or -1. */
static int find_setting(const struct statement *s, const char *field)
{
    int i = s->n - 1;
    while (i >= 0 && strcmp(s->settings[i].field, field) != 0)
        i--;
    return i;
}

static bool add_setting(struct statement *s, const struct setting *setting,
                        struct parse_error *parse_error)
{
    const char *field = setting->field, *value = setting->value;
    const int before = find_setting(s, field);
    parse_error->at = setting->at;
    if (before >= 0)
        return notation_fail(parse_error->message,
                             "%.60s=%.100s: %.60s was given before, as %.100s", field, value,
                             field, s->settings[before].value);
    if (s->n == MOST_SETTINGS)
        return notation_fail(parse_error->message, "%.60s=%.100s: a line has at most %d fields",
                             field, value, MOST_SETTINGS - 1);
    s->settings[s->n++] = *setting;
    return true;
}

/* Words that a line may have before the first field=value. */
enum { KERNEL = 1, NAME = 2 };

/* Splits a line into columns, and the words of the first into kernel, name and settings. A `with` has no name, and
 * its lines may have no kernel. */
static bool split_line(struct statement *s, char *text, int allowed,
                       struct parse_error *parse_error)
{
    s->at = parse_error->at = text;
    char *words = cut_text(&text, '|'), *rest;
    for (int i = 0; text; i++) {
        if (i == N_COLUMNS) {
            parse_error->at = text;
            return notation_fail(parse_error->message,
                                 "|%.100s: expected at most | flags | note | source", text);
        }
        s->columns[i] = cut_text(&text, '|');
    }
    bool bare = true; /* no word had a '=' so far */
    for (char *word = words ? strtok_r(words, blanks, &rest) : NULL; word;
         word = strtok_r(NULL, blanks, &rest)) {
        char *value = strchr(word, '=');
        bare = bare && !value;
        if (value && value > word) {
            *value = '\0';
            if (!add_setting(s, &(struct setting){ word, value + 1, word }, parse_error))
                return false;
        } else if (bare && (allowed & KERNEL) && s->n == 0)
            add_setting(s, &(struct setting){ kernel_field_name, word, word }, parse_error);
        else if (bare && (allowed & NAME) && !s->name)
            s->name = word;
        else {
            parse_error->at = word;
            return notation_fail(parse_error->message,
                                 "%.100s: expected field=value, such as tokens=3", word);
        }
    }
    return true;
}

/* ---- Words to problems ---- */

/* Returns the name with the least edit distance, if that is at most a third of the word plus 1. */
static const char *nearest_name(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2;
    for (int i = 0; i < n; i++) {
        const size_t distance = text_edit_distance(word, names[i]);
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

/* Writes a message that suggests the nearest name, or all names. */
static bool reject_name(char *error, const char *what, const char *word,
                        const char *const *names, int n)
{
    const char *meant = nearest_name(word, names, n);
    char all[MOST_NAMES] = "";
    size_t length = 0;
    if (meant)
        return notation_fail(error, "%.100s: no %s; did you mean %s?", word, what, meant);
    for (int i = 0; i < n; i++)
        length = text_append(all, sizeof all, length, " %s", names[i]);
    return notation_fail(error, "%.60s: no %s; expected one of%s", word, what, all);
}

static bool reject_kernel(const char *word, char *error)
{
    const char *names[POSENC_KERNEL_COUNT];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        names[k] = posenc_kernel_name((enum posenc_kernel)k);
    return reject_name(error, "kernel", word, names, POSENC_KERNEL_COUNT);
}

static bool reject_field(enum posenc_kernel kernel, const struct setting *s, char *error)
{
    static const char *const of_tensors[] = { "x.pad", "x.offset_bytes", "x.stride" };
    enum { N_TENSORS = sizeof of_tensors / sizeof *of_tensors };
    enum { MOST_FIELDS = 128 };
    const char *names[MOST_FIELDS];
    char what[96];
    int n = 0;
    struct field field;
    while (n + N_TENSORS < MOST_FIELDS && kernel_field(kernel, n, &field) && !field.tensor)
        names[n++] = field.name;
    for (int i = 0; i < N_TENSORS; i++)
        names[n++] = of_tensors[i];
    snprintf(what, sizeof what, "field of %s (value %.30s)", posenc_kernel_name(kernel),
             s->value);
    return reject_name(error, what, s->field, names, n);
}

/* Returns false if a list of `base` does not have the length that the fields now require. */
static bool check_lists(const struct problem *base, const struct problem *problem, char *error)
{
    struct field field;
    for (int i = 0; kernel_field(base->kernel, i, &field); i++)
        if (field_is_array(&field) && field_length(&field, base) > 0 &&
            memcmp((const char *)base + field.offset, (const char *)problem + field.offset,
                   sizeof(void *)) == 0 &&
            field_length(&field, base) != field_length(&field, problem))
            return notation_fail(error, "%s: not given: expected %" PRId64 " elements",
                                 field.name, field_length(&field, problem));
    return true;
}

/* Sets fields in a copy of `base`, or of a blank problem if that is NULL or of another kernel. Reads lists last, as
 * other fields determine their length. */
static bool make_problem(const struct statement *s, const struct problem *base,
                         struct problem *problem, struct arena *arena,
                         struct parse_error *parse_error)
{
    const struct setting *kernel = &s->settings[find_setting(s, kernel_field_name)];
    const enum posenc_kernel k = posenc_kernel_find(kernel->value);
    struct field field;
    parse_error->at = kernel->at;
    if (k == POSENC_KERNEL_NONE)
        return reject_kernel(kernel->value, parse_error->message);
    *problem = base && base->kernel == k ? *base : problem_blank(k);
    for (int lists = 0; lists < 2; lists++)
        for (int i = 0; i < s->n; i++) {
            const struct setting *setting = &s->settings[i];
            if (setting == kernel)
                continue;
            parse_error->at = setting->at;
            if (!kernel_field_find(k, setting->field, &field))
                return reject_field(k, setting, parse_error->message);
            if ((field.list != LIST_NONE) == lists &&
                !field_read(&field, problem, setting->value, arena, parse_error->message))
                return false;
        }
    return !base || base->kernel != k || check_lists(base, problem, parse_error->message);
}

/* Returns the first text that is not NULL; "" if both are. */
static const char *first_text(const char *a, const char *b) { return a ? a : b ? b : ""; }

/* Makes a problem line from a line and its `with`. */
static bool make_line(const struct statement *line, const struct statement *with,
                      const struct problem *base, struct problem_line *to, struct arena *arena,
                      struct parse_error *parse_error)
{
    *to = (struct problem_line){ .name = first_text(line->name, NULL),
                                 .flags = first_text(line->columns[0], with->columns[0]),
                                 .note = first_text(line->columns[1], with->columns[1]),
                                 .source = first_text(line->columns[2], with->columns[2]),
                                 .number = line->number };
    return make_problem(line, base, &to->problem, arena, parse_error);
}

/* ---- Messages with line and column ---- */

/* Finds the line and column of an offset in the text, both counted from 1. */
static void find_place(const char *text, size_t at, int *line, int *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < at && text[i]; i++) {
        *column = text[i] == '\n' ? 1 : *column + 1;
        *line += text[i] == '\n';
    }
}

/* Writes an error, preceded by its line and column. Its address is in a copy of the text. */
static bool write_parse_error(const struct parse_error *parse_error, const char *text,
                              const char *copy, char error[NOTATION_ERROR])
{
    int line, column;
    find_place(text, (size_t)(parse_error->at - copy), &line, &column);
    return notation_fail(error, "%d:%d: %.850s", line, column, parse_error->message);
}

/* ---- One line ---- */

bool notation_read(const char *text, struct problem_line *line, struct arena *arena,
                   char error[NOTATION_ERROR])
{
    return notation_read_over(NULL, text, line, arena, error);
}

bool notation_read_over(const struct problem *base, const char *text, struct problem_line *line,
                        struct arena *arena, char error[NOTATION_ERROR])
{
    static const struct statement no_with;
    struct statement s = { .number = 1 };
    char message[NOTATION_ERROR];
    char *copy = arena_text(arena, text, strlen(text));
    struct parse_error parse_error = { .message = message, .at = copy };
    if (!copy)
        return notation_fail(error, "no memory for a line of %zu characters", strlen(text));
    if (!split_line(&s, copy, KERNEL | NAME, &parse_error))
        return write_parse_error(&parse_error, text, copy, error);
    if (find_setting(&s, kernel_field_name) < 0) {
        notation_fail(message,
                      "\"%.100s\" begins with no kernel; expected one, a name if you like, and "
                      "field=value ...",
                      text);
        return write_parse_error(&parse_error, text, copy, error);
    }
    return make_line(&s, &no_with, base, line, arena, &parse_error) ||
           write_parse_error(&parse_error, text, copy, error);
}

/* ---- Files ---- */

/* State of the parser of a file. */
struct reader {
    struct problem_list *list;
    struct statement with, *lines;             /* the current `with`, and the lines after it */
    struct statement chosen_with, chosen_line; /* with one alternative each */
    size_t n_lines, room;
    int n_combinations; /* problems so far */
    struct parse_error parse_error;
};

/* Calls add() for each combination of the alternatives of settings i, i + 1, ...; the first varies slowest. */
static bool for_each_alternative(struct reader *r, struct statement *s, int i,
                                 bool add(struct reader *r))
{
    while (i < s->n && !strchr(s->settings[i].value, '/'))
        i++;
    if (i == s->n)
        return ++r->n_combinations <= MOST_COMBINATIONS
                   ? add(r)
                   : notation_fail(r->parse_error.message,
                                   "alternatives of more than %d problems", MOST_COMBINATIONS);
    const char *all = s->settings[i].value;
    char *rest = arena_text(&r->list->arena, all, strlen(all));
    bool good = rest || notation_fail(r->parse_error.message, "no memory for alternatives");
    while (good && rest) {
        s->settings[i].value = first_text(cut_text(&rest, '/'), NULL);
        good = for_each_alternative(r, s, i + 1, add);
    }
    s->settings[i].value = all;
    return good;
}

/* Returns true if a line overrides a field of its `with`. tokens and positions override each other, as positions has an
 * element for each token. */
static bool overrides(const struct statement *line, const char *field)
{
    return find_setting(line, field) >= 0 ||
           (strcmp(field, "positions") == 0 && find_setting(line, "tokens") >= 0) ||
           (strcmp(field, "tokens") == 0 && find_setting(line, "positions") >= 0);
}

static bool add_problem(struct reader *r)
{
    struct problem_list *list = r->list;
    const struct statement *with = &r->chosen_with, *line = &r->chosen_line;
    struct statement all = *line;
    for (int i = 0; i < with->n; i++)
        if (!overrides(line, with->settings[i].field) &&
            !add_setting(&all, &with->settings[i], &r->parse_error))
            return false;
    list->lines =
        arena_grow(&list->arena, list->lines, list->n, &list->room, sizeof *list->lines);
    if (!list->lines)
        return notation_fail(r->parse_error.message, "no memory for %zu problems", list->n);
    if (!make_line(&all, with, NULL, &list->lines[list->n], &list->arena, &r->parse_error))
        return false;
    list->n++;
    return true;
}

/* Adds the problems of a line for the current alternatives of its `with`. Adds none if the line has such a field
 * without the current alternative. */
static bool add_line(struct reader *r, struct statement *line)
{
    r->chosen_line = *line;
    for (int i = 0; i < r->chosen_with.n; i++) {
        const char *value = r->chosen_with.settings[i].value;
        const int k = find_setting(line, r->chosen_with.settings[i].field);
        if (k < 0 || !strchr(r->with.settings[i].value, '/'))
            continue;
        if (!text_has_word(line->settings[k].value, '/', value, strlen(value)))
            return true;
        r->chosen_line.settings[k].value = value;
    }
    line->is_used = true;
    r->parse_error.at = line->at;
    return for_each_alternative(r, &r->chosen_line, 0, add_problem);
}

static bool add_lines(struct reader *r)
{
    for (size_t i = 0; i < r->n_lines; i++)
        if (!add_line(r, &r->lines[i]))
            return false;
    return true;
}

/* Adds all lines of a `with` for each of its alternatives. */
static bool add_with(struct reader *r)
{
    r->chosen_with = r->with;
    r->parse_error.at = r->with.at;
    if (!for_each_alternative(r, &r->chosen_with, 0, add_lines))
        return false;
    for (; r->n_lines > 0; r->n_lines--) {
        const struct statement *line = &r->lines[r->n_lines - 1];
        r->parse_error.at = line->at;
        if (!line->is_used)
            return notation_fail(r->parse_error.message,
                                 "this line has no alternative in common with its `with`");
    }
    return true;
}

static bool read_statement(struct reader *r, char *text, int number)
{
    struct statement s = { .number = number };
    if (strncmp(text, "with", 4) == 0 && strchr(" \t\r", text[4])) {
        const bool good = add_with(r) && split_line(&s, text + 4, KERNEL, &r->parse_error);
        r->with = s;
        return good;
    }
    const bool has_kernel = find_setting(&r->with, kernel_field_name) >= 0;
    if (!split_line(&s, text, has_kernel ? NAME : KERNEL | NAME, &r->parse_error))
        return false;
    r->parse_error.at = s.at;
    if (!s.name)
        return notation_fail(r->parse_error.message,
                             "no name; expected %sname and field=value ...",
                             has_kernel ? "" : "kernel, ");
    r->lines = arena_grow(&r->list->arena, r->lines, r->n_lines, &r->room, sizeof *r->lines);
    if (!r->lines)
        return notation_fail(r->parse_error.message, "no memory for this line");
    r->lines[r->n_lines++] = s;
    return true;
}

/* Joins a line with those that continue it, unless it is a comment. Returns its end, and adds the number of joined
 * lines to *number. */
static char *join_lines(char *line, int *number)
{
    char *end = line + strcspn(line, "\n");
    while (line[0] != '#' && end[0] && (end[1] == ' ' || end[1] == '\t')) {
        *end = ' ';
        end += strcspn(end, "\n");
        ++*number;
    }
    return end;
}

static bool read_lines(struct reader *r, char *text)
{
    int number = 1;
    for (char *line = text, *next; *line; line = next, number++) {
        const int first = number;
        char *end = join_lines(line, &number);
        next = *end ? end + 1 : end;
        *end = '\0';
        const bool is_blank = line[strspn(line, " \t\r")] == '\0';
        if (line[0] != '#' && !is_blank && !read_statement(r, line, first))
            return false;
    }
    return add_with(r);
}

bool notation_read_file(const char *text, const char *path, struct problem_list *list,
                        char error[NOTATION_ERROR])
{
    char message[NOTATION_ERROR], place[NOTATION_ERROR];
    char *copy = arena_text(&list->arena, text, strlen(text));
    struct reader r = { .list = list, .parse_error = { message, copy }, .with.at = copy };
    if (!copy)
        return notation_fail(error, "%.120s: no memory for this file", path);
    if (read_lines(&r, copy))
        return true;
    write_parse_error(&r.parse_error, text, copy, place);
    return notation_fail(error, "%.120s:%.890s", path, place);
}

/* ---- Printing ---- */

size_t notation_print(const struct problem *problem, const char *name, char *text, size_t room)
{
    const bool named = name && *name;
    size_t n = text_append(text, room, 0, "%s%s%s", posenc_kernel_name(problem->kernel),
                           named ? " " : "", named ? name : "");
    struct field field;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        char called[FIELD_TEXT];
        if (field_is_blank(&field, problem))
            continue;
        field_name(&field, called);
        n = text_append(text, room, n, " %s=", called);
        n = field_print(&field, problem, text, room, n);
    }
    return n;
}
