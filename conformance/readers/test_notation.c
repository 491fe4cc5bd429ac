/*
 * test_notation [PACK]: what is printed is read as the same problem, for every golden case and
 * every variant; bad lines are refused with what is wrong and what is accepted; and no text,
 * however mangled, does harm.
 */
#include "conformance/problem/cases.h"
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 8192 };
static int failures, tests;

static void require(bool good, const char *what, const char *detail)
{
    if (good)
        return;
    printf("# %s: %s\n", what, detail);
    failures++;
}

/* Ends a test: the line of TAP. */
static void done(const char *what)
{
    static int before;
    printf("%sok %d - %s\n", failures > before ? "not " : "", ++tests, what);
    before = failures;
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
    require(n < LINE && strlen(line) == n, "the length is told", line);
    const bool good = notation_read(line, &read, &arena, error);
    require(good && same_problem(problem, &read.problem) && strcmp(read.name, name) == 0, line,
            error);
    arena_free(&arena);
}

static void require_cases(const char *pack)
{
    struct vectors vectors;
    char error[VECTORS_ERROR];
    if (!vectors_load_pack(pack, &vectors, error)) {
        require(false, "the pack loads", error);
        return;
    }
    for (size_t i = 0; i < vectors.n; i++)
        require_same(&vectors.cases[i].problem, vectors.cases[i].name);
    vectors_free(&vectors);
}

static void require_variants(void)
{
    for (EACH_CASE(line, CASES_VARIANTS))
        require_same(&line->problem, line->name);
}

/* Every parameter of every kernel, those that signatures declare for themselves among them. */
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
            require(!field_is_blank(&field, &p), field.name, "it was not set");
            require_same(&p, "one");
        }
}

/* Values that a decimal may lose, and ends of the integers. */
static void require_numbers(void)
{
    for (uint64_t i = 0; i < 3000; i++) {
        struct problem p = problem_blank(POSENC_KERNEL_rope_table);
        const double factors[] = { bits_to_double(mix64(1, i) & ~(1ull << 62)), 1e22, -0.0 };
        p.freqs.dim = 6;
        p.freqs.rope_theta = bits_to_double(mix64(2, i) & ~(1ull << 62));
        p.freqs.short_factor = factors;
        p.first = (int64_t)mix64(3, i);
        p.seed = i ? mix64(4, i) : UINT64_MAX;
        p.pad = i ? -1 : INT64_MIN;
        require_same(&p, "n");
        p = problem_blank(POSENC_KERNEL_alibi_add);
        p.x_scale = (float)(double)(mix64(5, i) >> 40) * 0x1p-30f;
        require_same(&p, "f");
    }
}

/* ---- What is read, what is refused ---- */

static const char *const examples[] = {
#include "notation.inc"
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples };

/* A line that was read, as it is printed; "nothing" past the last. */
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

/* Both words of "A ... B" are in a message. */
static bool has_words(const char *message, const char *words)
{
    const char *dots = strstr(words, " ... ");
    char a[LINE];
    snprintf(a, sizeof a, "%.*s", (int)(dots ? (size_t)(dots - words) : strlen(words)), words);
    return strstr(message, a) && (!dots || strstr(message, dots + 5));
}

/* What the examples from `first` up to `end` say of a text. */
static void require_example(const char *text, bool file, int first, int end)
{
    char error[NOTATION_ERROR] = "(read)", line[LINE];
    struct problem_list list = { .n = 0 };
    struct problem_line one;
    const bool read = file ? notation_read_file(text, "f.txt", &list, error)
                           : notation_read(text, &one, &list.arena, error);
    for (int k = first; k < end; k++) {
        const char *said = examples[k] + 2;
        print_line(&list, (size_t)(k - first), line);
        if (examples[k][0] == '!')
            require(!read && has_words(error, said), text, error);
        else
            require(read && strcmp(line, said) == 0, said, read ? line : error);
    }
    require(!read || list.n <= (size_t)(end - first), "no more lines", text);
    arena_free(&list.arena);
}

/* All texts of a kind, '>' or ':', of which the same is said: '=' or '!'. */
static void require_examples(char kind, char said)
{
    int tested = 0;
    for (int k = 0, first, end; k < N_EXAMPLES; k = end) {
        char text[LINE] = "";
        size_t n = 0;
        for (first = k; first < N_EXAMPLES && examples[first][0] == kind; first++) {
            const char *line = examples[first] + 1;
            n += (size_t)snprintf(text + n, LINE - n, "%s%s", n ? "\n" : "",
                                  line + (*line == ' '));
        }
        for (end = first; end < N_EXAMPLES && examples[end][0] == said;)
            end++;
        if (first > k && end > first) {
            require_example(text, kind == '>', first, end);
            tested++;
        }
        end += end == k;
    }
    require(tested > 0, "there are examples", "none");
}

/* ---- Mangled ---- */

static const char *const seeds[] = {
    "rope_half hd80 head_dim=80 rotary_dim=32 heads=2 tokens=3 position_offset=1 | A B | n | s",
    ("with rope_table/sinusoidal profile=exact/hf_f32 mrope_section=16,24,24\na tokens=3/4\n"
     "  positions=1,2,3\n# c\nb inv_freq=0x1p-3,1e-30,7 rotary_dim=6"),
    "rope_half y x.stride=0,-9223372036854775808,64 out.pad=-3 cos.offset_bytes=8 heads=1",
    "alibi_add x dtype=bf16 x_scale=0.088388346 causal=true seed=18446744073709551615 | | n",
};

static void mangle(char *text, size_t *n, uint64_t seed)
{
    static const char some[] = "=/|, \n\t#with\\0-+.e9x\xff";
    const uint64_t changes = 1 + mix64(seed, 1) % 6;
    for (uint64_t i = 0; i<changes && * n> 2; i++) {
        const size_t at = mix64(seed, 10 * i + 2) % *n, to = mix64(seed, 10 * i + 3) % *n;
        const uint64_t what = mix64(seed, 10 * i + 4);
        if (what % 4 == 0)
            text[at] = some[what / 4 % sizeof some];
        else if (what % 4 == 1)
            text[at] = (char)(what >> 8);
        else if (what % 4 == 2) { /* a piece twice */
            const size_t length = at < to ? to - at : at - to, from = at < to ? at : to;
            if (*n + length < LINE) {
                memmove(text + from + length, text + from, *n - from + 1);
                *n += length;
            }
        } else {
            memmove(text + at, text + at + 1, *n - at);
            --*n;
        }
    }
}

/* What is still read is printed and read as itself. */
static void require_harmless(uint64_t rounds)
{
    static char text[2 * LINE];
    for (uint64_t i = 0; i < rounds; i++) {
        char error[NOTATION_ERROR] = "";
        size_t n = 0;
        if (i % 8 == 0) {
            for (n = 0; n < 200; n++)
                text[n] = (char)mix64(i, n);
            text[n] = '\0';
        } else {
            n = strlen(strcpy(text, seeds[i % 4]));
            mangle(text, &n, i);
        }
        struct problem_list list = { .n = 0 };
        const bool good = notation_read_file(text, "f", &list, error);
        require(good || error[0], "a refusal says why", text);
        for (size_t k = 0; k < list.n && k < 8; k++)
            if (list.lines[k].name[0] != '|' && !strchr(list.lines[k].name, '='))
                require_same(&list.lines[k].problem, list.lines[k].name);
        arena_free(&list.arena);
    }
}

int main(int argc, char **argv)
{
    puts("1..8");
    if (argc > 1)
        require_cases(argv[1]);
    done("golden cases are read as they are printed");
    require_variants();
    done("variants are read as they are printed");
    require_fields();
    done("every parameter of every kernel is read as it is printed");
    require_numbers();
    done("numbers lose no bit");
    require_examples(':', '!');
    done("bad lines are refused");
    require_examples('>', '!');
    done("bad files are refused, with the line");
    require_examples('>', '=');
    done("with, alternatives, comments, lines that go on");
    require_harmless(40000);
    done("mangled text does no harm");
    return 0;
}
