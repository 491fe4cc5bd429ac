/* test_notation FOLDER: tests that each golden case and compiled-in problem is printed and read back unchanged, and
 * that bad lines are rejected with the right message. Random text is fuzz/notation.c and fuzz/cases.c. */
#include "base/tap/tap.h"
#include "conformance/problem/cases.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 8192 };
static int n_failures; /* of the current test */

/* Prints a failure of the current test with its detail. */
static void expect(bool good, const char *what, const char *detail)
{
    if (good)
        return;
    printf("# %s: %s\n", what, detail);
    n_failures++;
}

/* Reports the current test, and begins the next. */
static void end_test(const char *sentence)
{
    require(n_failures == 0, sentence);
    n_failures = 0;
}

/* ---- Printed and read again ---- */

static bool same_problem(const struct problem *a, const struct problem *b)
{
    bool same = a->kernel == b->kernel;
    struct field field;
    for (int i = 0; same && kernel_field(a->kernel, i, &field); i++) {
        const int64_t n = field_length(&field, a);
        same = n == field_length(&field, b);
        for (int64_t k = 0; k < n && same; k++)
            same = field_get(&field, a, k) == field_get(&field, b, k);
    }
    return same && memcmp(a->layouts, b->layouts, sizeof a->layouts) == 0;
}

static void require_same(const struct problem *problem, const char *name)
{
    static char line[LINE];
    char error[NOTATION_ERROR] = "another problem";
    struct arena arena = { NULL };
    struct problem_line read;
    const size_t n = notation_print(problem, name, line, LINE);
    expect(n < LINE && strlen(line) == n, "the length is returned", line);
    const bool good = notation_read(line, &read, &arena, error);
    expect(good && same_problem(problem, &read.problem) && strcmp(read.name, name) == 0, line,
           error);
    arena_free(&arena);
}

static void require_cases(const char *folder)
{
    struct vectors vectors;
    char error[VECTORS_ERROR];
    if (!vectors_load(folder, &vectors, error)) {
        expect(false, "the vectors load", error);
        return;
    }
    for (size_t i = 0; i < vectors.n; i++)
        require_same(&vectors.cases[i].problem, vectors.cases[i].name);
    vectors_free(&vectors);
}

static void require_compiled_in_cases(void)
{
    for (int file = 0; file < CASES_FILES; file++)
        for (EACH_CASE(line, (enum cases_file)file))
            require_same(&line->problem, line->name);
}

/* Tests every field of every kernel, including those that one signature alone has. Lists are left out, as their lengths
 * follow from other fields; cases have them. */
static void require_fields(void)
{
    struct field field;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int i = 0; kernel_field((enum posenc_kernel)k, i, &field); i++) {
            struct problem p = problem_blank((enum posenc_kernel)k);
            if (field.list != LIST_NONE)
                continue;
            field_set(&field, &p,
                      field_is_real(&field) ? double_to_bits(0x1p-9 + i)
                                            : !field_get(&field, &p, 0));
            expect(!field_is_blank(&field, &p), field.name, "it was not set");
            require_same(&p, "one");
        }
}

/* Tests numbers whose bits a decimal may lose, and the largest and smallest integers. */
static void require_numbers(void)
{
    for (uint64_t i = 0; i < 3000; i++) {
        struct problem p = problem_blank(POSENC_KERNEL_ROPE_TABLE);
        /* Without this bit a number is finite and below 2. */
        const uint64_t below_2 = ~(1ull << 62);
        const double factors[] = { bits_to_double(rng_u64(1, i) & below_2), 1e22, -0.0 };
        p.freqs.dim = 6;
        p.freqs.rope_theta = bits_to_double(rng_u64(2, i) & below_2);
        p.freqs.short_factor = factors;
        p.first = (int64_t)rng_u64(3, i);
        p.seed = i ? rng_u64(4, i) : UINT64_MAX;
        p.pad = i ? -1 : INT64_MIN;
        require_same(&p, "n");
        p = problem_blank(POSENC_KERNEL_ALIBI_ADD);
        p.x_scale = (float)(double)(rng_u64(5, i) >> 40) * 0x1p-30f;
        require_same(&p, "f");
    }
}

/* ---- Accepted and rejected text ---- */

static const char *const examples[] = {
#include "notation.inc"
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples };

/* Prints a line that was read, or "nothing" past the last. */
static void print_line(const struct problem_list *list, size_t i, char line[LINE])
{
    snprintf(line, LINE, "nothing");
    if (i >= list->n)
        return;
    const struct problem_line *read = &list->lines[i];
    size_t n = notation_print(&read->problem, read->name, line, LINE);
    n += (size_t)snprintf(line + n, LINE - n, " | %s | %s | %s", read->flags, read->note,
                          read->source);
    line[n - (line[n - 1] == ' ')] = '\0';
}

/* Returns true if a message contains both words of "A ... B". */
static bool has_words(const char *message, const char *words)
{
    const char *dots = strstr(words, " ... ");
    char a[LINE];
    snprintf(a, sizeof a, "%.*s", (int)(dots ? (size_t)(dots - words) : strlen(words)), words);
    return strstr(message, a) && (!dots || strstr(message, dots + 5));
}

/* Compares a result with an example: '=' is line `i` as printed, '!' the words of the message. */
static void require_result(const char *example, bool read, const struct problem_list *list,
                           size_t i, const char *error)
{
    const char *expected = example + 2;
    char line[LINE];
    print_line(list, i, line);
    if (*example == '!')
        expect(!read && has_words(error, expected), expected, error);
    else
        expect(read && strcmp(line, expected) == 0, expected, read ? line : error);
}

/* Tests the examples: texts, each followed by its expected results. */
static void require_examples(void)
{
    for (int k = 0; k < N_EXAMPLES;) {
        const char kind = *examples[k];
        char text[LINE] = "", error[NOTATION_ERROR] = "(read)";
        struct problem_list list = { .n = 0 };
        struct problem_line one;
        size_t n = 0, results = 0;
        if (kind != '>' && kind != ':') {
            expect(kind == '\0' || kind == '#', "a text begins with > or :", examples[k]);
            k++;
            continue;
        }
        for (; k < N_EXAMPLES && *examples[k] == kind; k++)
            n = text_append(text, LINE, n, "%s%s", n ? "\n" : "",
                            examples[k] + 1 + (examples[k][1] == ' '));
        const bool read = kind == '>' ? notation_read_file(text, "f.txt", &list, error)
                                      : notation_read(text, &one, &list.arena, error);
        for (; k < N_EXAMPLES && (*examples[k] == '=' || *examples[k] == '!'); k++, results++) {
            expect(kind == '>' || *examples[k] == '!', "the result of : is !", examples[k]);
            require_result(examples[k], read, &list, results, error);
        }
        expect(results > 0 && (!read || list.n <= results),
               "each problem that is read is expected", text);
        arena_free(&list.arena);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: test_notation FOLDER\n", stderr);
        return 2;
    }
    require_cases(argv[1]);
    end_test("golden cases are read as they are printed");
    require_compiled_in_cases();
    end_test("problems that are compiled in are read as they are printed");
    require_fields();
    end_test("every field but lists is read as it is printed, for every kernel");
    require_numbers();
    end_test("numbers lose no bit");
    require_examples();
    end_test("good lines and files are read, bad ones rejected with the line");
    return tap_end();
}
