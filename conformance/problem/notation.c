/*
 * Parser and printer of problems: see notation.h.
 */
#include "notation.h"
#include "spelling.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SETTINGS = 64, N_COLUMNS = 3, MOST_NAMES = 800, MOST_TURNS = 1024 };

struct setting {
    const char *field, *value;
};

/* A line taken apart; NULL is what it does not have. */
struct statement {
    int number;
    bool taken; /* in one of the turns of its `with` */
    const char *kernel, *name, *columns[N_COLUMNS];
    int n;
    struct setting settings[MOST_SETTINGS];
};

__attribute__((format(printf, 2, 3))) static bool refuse(char error[NOTATION_ERROR],
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, NOTATION_ERROR, format, args);
    va_end(args);
    return false;
}

/* ---- A line into words ---- */

/* Ends the text at its first `c` and returns what follows it, NULL where there is none. */
static char *cut(char *text, char c)
{
    char *at = strchr(text, c);
    if (at)
        *at++ = '\0';
    return at;
}

static char *trim(char *text)
{
    static const char blanks[] = " \t\r\n";
    text += strspn(text, blanks);
    size_t n = strlen(text);
    while (n > 0 && strchr(blanks, text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

static bool add_setting(struct statement *s, const char *field, const char *value, char *error)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->settings[i].field, field) == 0)
            return refuse(error, "%.60s=%.100s: %.60s was given before, as %.100s", field,
                          value, field, s->settings[i].value);
    if (s->n == MOST_SETTINGS)
        return refuse(error, "%.60s=%.100s: a line has at most %d fields", field, value,
                      MOST_SETTINGS);
    s->settings[s->n++] = (struct setting){ field, value };
    return true;
}

/* Words into kernel, name and settings; `with` has no name, its lines perhaps no kernel. */
static bool add_word(struct statement *s, char *word, bool has_kernel, bool has_name,
                     char *error)
{
    char *value = cut(word, '=');
    if (value)
        return add_setting(s, word, value, error);
    if (s->n == 0 && has_kernel && !s->kernel)
        s->kernel = word;
    else if (s->n == 0 && has_name && !s->name)
        s->name = word;
    else
        return refuse(error, "%.100s: expected field=value, such as tokens=3", word);
    return true;
}

static bool take_apart(struct statement *s, char *text, bool has_kernel, bool has_name,
                       char *error)
{
    *s = (struct statement){ .number = s->number };
    char *column = cut(text, '|');
    for (int i = 0; column; i++) {
        char *next = cut(column, '|');
        if (i == N_COLUMNS)
            return refuse(error, "|%.100s: expected at most | flags | note | source", column);
        column = trim(column);
        s->columns[i] = *column ? column : NULL;
        column = next;
    }
    for (char *word = trim(text), *next; *word; word = next) {
        char *end = word + strcspn(word, " \t\r\n");
        next = *end ? trim(end + 1) : end;
        *end = '\0';
        if (!add_word(s, word, has_kernel, has_name, error))
            return false;
    }
    return true;
}

/* ---- Words into a problem ---- */

/* The nearest of the names within a third of the word; NULL where all are farther. */
static const char *nearest(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2;
    for (int i = 0; i < n; i++) {
        const size_t distance = edit_distance(word, names[i]);
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

/* What there is instead of a word: the name that was meant, or all. */
static bool refuse_name(char *error, const char *what, const char *word,
                        const char *const *names, int n)
{
    const char *meant = nearest(word, names, n);
    char all[MOST_NAMES] = "";
    size_t length = 0;
    for (int i = 0; i < n && length < sizeof all; i++)
        length += (size_t)snprintf(all + length, sizeof all - length, " %s", names[i]);
    if (meant)
        return refuse(error, "%.100s: no %s; did you mean %s?", word, what, meant);
    return refuse(error, "%.60s: no %s; expected one of%s", word, what, all);
}

static bool refuse_kernel(const char *word, char *error)
{
    const char *names[POSENC_KERNEL_COUNT];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        names[k] = posenc_kernel_name((enum posenc_kernel)k);
    return refuse_name(error, "kernel", word, names, POSENC_KERNEL_COUNT);
}

static bool refuse_field(enum posenc_kernel kernel, const struct setting *s, char *error)
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
    return refuse_name(error, what, s->field, names, n);
}

/* Lists come last, as other fields say how long they are. */
static bool make_problem(const char *kernel, const struct setting *settings, int n,
                         struct problem *problem, struct arena *arena, char *error)
{
    const enum posenc_kernel k = posenc_kernel_find(kernel);
    if (k == POSENC_KERNEL_COUNT)
        return refuse_kernel(kernel, error);
    *problem = problem_blank(k);
    for (int lists = 0; lists < 2; lists++)
        for (int i = 0; i < n; i++) {
            struct field field;
            if (!kernel_field_find(k, settings[i].field, &field))
                return refuse_field(k, &settings[i], error);
            if (field_is_list(&field) == (lists != 0) &&
                !field_read(&field, problem, settings[i].value, arena, error))
                return false;
        }
    return true;
}

bool notation_read(const char *text, struct problem_line *line, struct arena *arena,
                   char error[NOTATION_ERROR])
{
    struct statement s = { .number = 0 };
    char *copy = arena_text(arena, text, strlen(text));
    if (!copy)
        return refuse(error, "no memory for a line of %zu characters", strlen(text));
    if (!take_apart(&s, copy, true, true, error))
        return false;
    if (!s.kernel)
        return refuse(error,
                      "\"%.100s\" begins with no kernel; expected one, a name if you "
                      "like, and field=value ...",
                      text);
    *line = (struct problem_line){ .name = s.name ? s.name : "",
                                   .flags = s.columns[0] ? s.columns[0] : "",
                                   .note = s.columns[1] ? s.columns[1] : "",
                                   .source = s.columns[2] ? s.columns[2] : "" };
    return make_problem(s.kernel, s.settings, s.n, &line->problem, arena, error);
}

/* ---- Alternatives ---- */

static int count_of(const char *alternatives)
{
    int n = 1;
    for (const char *c = alternatives ? alternatives : ""; *c; c++)
        n += *c == '/';
    return n;
}

/* Alternative i, kept in the arena where it is not the whole. */
static const char *choose(const char *alternatives, int i, struct arena *arena)
{
    while (i-- > 0)
        alternatives = strchr(alternatives, '/') + 1;
    const char *end = strchr(alternatives, '/');
    return end ? arena_text(arena, alternatives, (size_t)(end - alternatives)) : alternatives;
}

static bool has_alternative(const char *alternatives, const char *value)
{
    const size_t n = strlen(value);
    for (; alternatives; alternatives = strchr(alternatives, '/')) {
        alternatives += *alternatives == '/';
        if (strncmp(alternatives, value, n) == 0 &&
            (alternatives[n] == '\0' || alternatives[n] == '/'))
            return true;
    }
    return false;
}

/* How many turns the alternatives of a kernel and of all settings have; MOST_TURNS + 1 where
 * they are more. */
static int turns_of(const struct statement *s)
{
    int turns = count_of(s->kernel);
    for (int i = 0; i < s->n && turns <= MOST_TURNS; i++)
        turns = count_of(s->settings[i].value) > MOST_TURNS
                    ? MOST_TURNS + 1
                    : turns * count_of(s->settings[i].value);
    return turns <= MOST_TURNS ? turns : MOST_TURNS + 1;
}

/* Turn `turn` of a statement: the last place turns fastest. */
static void choose_all(const struct statement *s, int turn, struct statement *chosen,
                       struct arena *arena)
{
    *chosen = *s;
    for (int i = s->n - 1; i >= 0; i--) {
        const int n = count_of(s->settings[i].value);
        chosen->settings[i].value = choose(s->settings[i].value, turn % n, arena);
        turn /= n;
    }
    if (s->kernel)
        chosen->kernel = choose(s->kernel, turn, arena);
}

/* ---- Files ---- */

/* Where reading a file stands. */
struct reader {
    const char *path;
    struct problem_list *list;
    struct statement with, *lines; /* lines of this `with` */
    size_t n_lines, room;
    char *error;
};

static bool fail_at(struct reader *r, int number, const char *message)
{
    char text[NOTATION_ERROR];
    snprintf(text, sizeof text, "%s", message);
    snprintf(r->error, NOTATION_ERROR, "%.120s:%d: %.850s", r->path, number, text);
    return false;
}

/* Whether a field of a line stands in the place of one of `with`: the same, or tokens where the
 * other are positions, of which there is one a token. */
static bool replaces(const char *own, const char *with)
{
    return strcmp(own, with) == 0 ||
           (strcmp(own, "tokens") == 0 && strcmp(with, "positions") == 0) ||
           (strcmp(own, "positions") == 0 && strcmp(with, "tokens") == 0);
}

static bool add_problem(struct reader *r, const struct statement *with,
                        const struct statement *line)
{
    struct problem_list *list = r->list;
    char error[NOTATION_ERROR];
    struct statement all = *line;
    bool good = true;
    for (int i = 0; i < with->n && good; i++) {
        bool own = false;
        for (int k = 0; k < line->n; k++)
            own = own || replaces(line->settings[k].field, with->settings[i].field);
        good =
            own || add_setting(&all, with->settings[i].field, with->settings[i].value, error);
    }
    struct problem_line *lines =
        arena_grow(&list->arena, list->lines, list->n, &list->room, sizeof *lines);
    if (good && !lines)
        good = refuse(error, "no memory for %zu problems", list->n);
    if (!good)
        return fail_at(r, line->number, error);
    list->lines = lines;
    struct problem_line *to = &lines[list->n];
    const char *columns[N_COLUMNS];
    for (int i = 0; i < N_COLUMNS; i++)
        columns[i] = line->columns[i]   ? line->columns[i]
                     : with->columns[i] ? with->columns[i]
                                        : "";
    *to = (struct problem_line){ line->name, columns[0], columns[1], columns[2],
                                 .number = line->number };
    if (!make_problem(line->kernel ? line->kernel : with->kernel, all.settings, all.n,
                      &to->problem, &list->arena, error))
        return fail_at(r, line->number, error);
    list->n++;
    return true;
}

/* The problems of a line in one turn of its `with`: none where the line names a field with
 * alternatives and does not have this one. */
static bool add_line(struct reader *r, const struct statement *with, struct statement *line)
{
    struct statement restricted = *line, chosen;
    for (int i = 0; i < with->n; i++) {
        if (count_of(r->with.settings[i].value) == 1)
            continue;
        for (int k = 0; k < line->n; k++)
            if (strcmp(line->settings[k].field, with->settings[i].field) == 0) {
                if (!has_alternative(line->settings[k].value, with->settings[i].value))
                    return true;
                restricted.settings[k].value = with->settings[i].value;
            }
    }
    line->taken = true;
    const int turns = turns_of(&restricted);
    if (turns > MOST_TURNS)
        return fail_at(r, line->number, "this line stands for more problems than a line may");
    for (int turn = 0; turn < turns; turn++) {
        choose_all(&restricted, turn, &chosen, &r->list->arena);
        if (!add_problem(r, with, &chosen))
            return false;
    }
    return true;
}

/* All lines of a `with`, once for each of its alternatives. */
static bool end_with(struct reader *r)
{
    struct statement with;
    const int turns = turns_of(&r->with);
    if (turns > MOST_TURNS)
        return fail_at(r, r->with.number, "more turns than a `with` may have");
    for (int turn = 0; turn < turns; turn++) {
        choose_all(&r->with, turn, &with, &r->list->arena);
        for (size_t i = 0; i < r->n_lines; i++)
            if (!add_line(r, &with, &r->lines[i]))
                return false;
    }
    for (size_t i = 0; i < r->n_lines; i++)
        if (!r->lines[i].taken)
            return fail_at(r, r->lines[i].number,
                           "this line has no alternative in common with its `with`");
    r->n_lines = 0;
    return true;
}

static bool read_statement(struct reader *r, char *text, int number)
{
    static const char word[] = "with";
    char error[NOTATION_ERROR];
    struct statement s = { .number = number };
    const size_t n = strlen(word);
    if (strncmp(text, word, n) == 0 && strchr(" \t\r", text[n])) {
        if (!end_with(r))
            return false;
        return take_apart(&s, text + n, true, false, error) ? (r->with = s, true)
                                                            : fail_at(r, number, error);
    }
    if (!take_apart(&s, text, !r->with.kernel, true, error))
        return fail_at(r, number, error);
    if (!s.name)
        return fail_at(r, number,
                       r->with.kernel ? "no name; expected one and field=value ..., as `with` "
                                        "has the kernel"
                                      : "no name; expected kernel, name and field=value ...");
    r->lines = arena_grow(&r->list->arena, r->lines, r->n_lines, &r->room, sizeof *r->lines);
    if (!r->lines)
        return fail_at(r, number, "no memory for this line");
    r->lines[r->n_lines++] = s;
    return true;
}

bool notation_read_file(const char *text, const char *path, struct problem_list *list,
                        char error[NOTATION_ERROR])
{
    struct reader r = { .path = path, .list = list, .error = error };
    char *at = arena_text(&list->arena, text, strlen(text));
    if (!at)
        return fail_at(&r, 1, "no memory for this file");
    for (int number = 1, first; *at; number++) {
        char *line = at, *end = at + strcspn(at, "\n");
        for (first = number; line[0] != '#' && end[0] && (end[1] == ' ' || end[1] == '\t');
             number++) {
            *end = ' ';
            end += strcspn(end, "\n");
        }
        at = *end ? end + 1 : end;
        *end = '\0';
        if (line[0] != '#' && line[strspn(line, " \t\r")] && !read_statement(&r, line, first))
            return false;
    }
    return end_with(&r);
}

/* ---- Printing ---- */

size_t notation_print(const struct problem *problem, const char *name, char *text, size_t room)
{
    const char *kernel = posenc_kernel_name(problem->kernel);
    const bool named = name && *name;
    size_t n =
        (size_t)snprintf(text, room, "%s%s%s", kernel, named ? " " : "", named ? name : "");
    struct field field;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        char called[FIELD_TEXT];
        if (field_is_blank(&field, problem))
            continue;
        bool fits = n < room;
        field_name(&field, called);
        n += (size_t)snprintf(fits ? text + n : NULL, fits ? room - n : 0, " %s=", called);
        fits = n < room;
        n += field_print_all(&field, problem, fits ? text + n : NULL, fits ? room - n : 0);
    }
    return n;
}
