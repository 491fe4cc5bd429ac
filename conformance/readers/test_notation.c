/*
 * test_notation [PACK]: what is printed is read as the same problem, for every golden case and
 * every variant; bad lines are refused with what is wrong and what is accepted; and no text,
 * however mangled, does harm.
 */
#include "conformance/problem/variants.h"
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
        const int64_t n = field_is_list(&field) ? field_length(&field, a) : 0;
        same = field_is_list(&field) ? n == field_length(&field, b)
                                     : field_get(&field, a) == field_get(&field, b);
        for (int64_t k = 0; k < n && same; k++)
            same = field_element(&field, a, k) == field_element(&field, b, k);
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
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int profile = 0; profile_names[profile]; profile++) {
            struct problem problem;
            const char *name;
            for (int v = 0; variant((enum posenc_kernel)k, (enum posenc_profile)profile, v,
                                    &problem, &name);
                 v++)
                require_same(&problem, name);
        }
}

/* Every parameter of every kernel, those that signatures declare for themselves among them. */
static void require_fields(void)
{
    struct field field;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int i = 0; kernel_field((enum posenc_kernel)k, i, &field); i++) {
            struct problem p = problem_blank((enum posenc_kernel)k);
            const uint64_t other = !field_get(&field, &p);
            const bool real = field.kind == FIELD_F64 || field.kind == FIELD_F32;
            if (field_is_list(&field))
                continue;
            field_set(&field, &p, real ? double_to_bits(0x1p-9 + i) : other);
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

/* ---- Refused ---- */

static void require_refused(const char *line, const char *a, const char *b)
{
    char error[NOTATION_ERROR] = "(read)";
    struct arena arena = { NULL };
    struct problem_line read;
    require(!notation_read(line, &read, &arena, error) && strstr(error, a) && strstr(error, b),
            line, error);
    arena_free(&arena);
}

static void require_lines_refused(void)
{
    require_refused("", "begins with no kernel", "expected one");
    require_refused("rope_haf heads=1", "rope_haf", "did you mean rope_half?");
    require_refused("quicksort heads=1", "no kernel", "expected one of sinusoidal");
    require_refused("rope_half/alibi heads=1", "rope_half/alibi: no kernel", "did you mean");
    require_refused("rope_half x y", "y: expected field=value", "tokens=3");
    require_refused("rope_half heads=1 in_place", "in_place", "expected field=value");
    require_refused("rope_half hed_dim=4", "hed_dim: no field of rope_half",
                    "did you mean head_dim?");
    require_refused("rope_half causal=true", "value true", "expected one of dtype");
    require_refused("rope_half heads=three", "heads=three", "a whole number");
    require_refused("rope_half heads=3.5", "heads=3.5", "a whole number");
    require_refused("rope_half heads=", "heads=", "a whole number");
    require_refused("rope_half heads=9223372036854775808", "heads=9", "a whole number");
    require_refused("rope_half seed=-1", "seed=-1", "from 0 to 2^64 - 1");
    require_refused("rope_half heads=1 heads=2", "heads=2", "was given before, as 1");
    require_refused("rope_half in_place=yes", "in_place=yes", "true or false");
    require_refused("rope_half dtype=f64", "dtype=f64", "f32, f16 or bf16");
    require_refused("alibi x_scale=1e40", "x_scale=1e40", "a number that f32 holds");
    require_refused("rope_table rope_theta=1x", "rope_theta=1x", "a number");
    require_refused("rope_table positions=1,,2", "positions=1,,2", "with commas between");
    require_refused("rope_table positions=1,2 tokens=3", "has 2 elements", "tokens=3");
    require_refused("rope_table rotary_dim=8 inv_freq=1,2", "has 2 elements", "expected 4");
    require_refused("rope_table mrope_section=1,2,3,4", "mrope_section", "one to three");
    require_refused("rope_half y.stride=1", "y.stride: no field", "did you mean x.stride?");
    require_refused("rope_half x.stride=1,2,3,4", "x.stride=1,2,3,4", "one to three");
    require_refused("alibi slopes.pad=1", "slopes.pad: no field", "x.pad");
    require_refused("alibi | a | b | c | d", "d: expected at most", "flags | note | source");
}

static void require_file_refused(const char *text, const char *a, const char *b)
{
    char error[NOTATION_ERROR] = "(read)";
    struct problem_list list = { .n = 0 };
    require(!notation_read_file(text, "f.txt", &list, error) && strstr(error, a) &&
                strstr(error, b),
            text, error);
    arena_free(&list.arena);
}

static void require_files_refused(void)
{
    require_file_refused("# a\n\nalibi a heads=x\n", "f.txt:3:", "whole number");
    require_file_refused("alibi a heads=1\n   keys=x\nalibi b", "f.txt:1:", "keys=x");
    require_file_refused("alibi\n", "f.txt:1:", "expected kernel, name");
    require_file_refused("with alibi heads=2\nheads=3\n", "f.txt:2:", "no name");
    require_file_refused("with alibi\nalibi a\n", "f.txt:2:", "a: expected field=value");
    require_file_refused("with alibi b\n", "f.txt:1:", "b: expected field=value");
    require_file_refused("with dtype=f32/f16\nalibi a dtype=bf16\n",
                         "f.txt:2:", "no alternative in common");
    require_file_refused("alibi a heads=1/x\n", "f.txt:1:", "heads=x");
    require_file_refused("alibi a heads=1 | | | | f\n", "f.txt:1:", "at most");
}

/* ---- Files ---- */

/* The lines a file stands for, in their order. */
static void require_lines(const char *text, const char *const *want)
{
    char error[NOTATION_ERROR] = "", line[LINE];
    struct problem_list list = { .n = 0 };
    size_t n = 0;
    require(notation_read_file(text, "f.txt", &list, error), "the file is read", error);
    for (; n < list.n && want[n]; n++) {
        const struct problem_line *l = &list.lines[n];
        size_t length = notation_print(&l->problem, l->name, line, sizeof line);
        snprintf(line + length, sizeof line - length, " | %s | %s | %s", l->flags, l->note,
                 l->source);
        require(strcmp(line, want[n]) == 0, line, want[n]);
    }
    require(n == list.n && !want[n], "as many lines", text);
    arena_free(&list.arena);
}

static void require_files(void)
{
    require_lines("", (const char *const[]){ NULL });
    require_lines("# c\n\nalibi a heads=2\n  keys=3 | F G |\n  note\n\nalibi b",
                  (const char *const[]){ "alibi a heads=2 keys=3 | F G | note | ",
                                         "alibi b |  |  | ", NULL });
    require_lines("with alibi/alibi_add heads=2 keys=4 | F | n | s\na\nb heads=3 | | m\n"
                  "with\nalibi c",
                  (const char *const[]){ "alibi a heads=2 keys=4 | F | n | s",
                                         "alibi b heads=3 keys=4 | F | m | s",
                                         "alibi_add a heads=2 keys=4 | F | n | s",
                                         "alibi_add b heads=3 keys=4 | F | m | s",
                                         "alibi c |  |  | ", NULL });
    require_lines("with dtype=f32/f16 heads=1\nalibi a\nalibi b dtype=f16 keys=1/2",
                  (const char *const[]){ "alibi a heads=1 |  |  | ",
                                         "alibi a dtype=f16 heads=1 |  |  | ",
                                         "alibi b dtype=f16 heads=1 keys=1 |  |  | ",
                                         "alibi b dtype=f16 heads=1 keys=2 |  |  | ", NULL });
    require_lines("rope_half a heads=1 x.stride=0,-64,64 out.pad=3 cos.offset_bytes=8 "
                  "positions.stride=0,2",
                  (const char *const[]){ "rope_half a heads=1 cos.offset_bytes=8 out.pad=3 "
                                         "x.stride=0,-64,64 positions.stride=0,2 |  |  | ",
                                         NULL });
    require_lines("with rope_table tokens=3\na positions=1,2\nwith rope_table positions=5\nb\n"
                  "c tokens=2",
                  (const char *const[]){ "rope_table a tokens=2 positions=1,2 |  |  | ",
                                         "rope_table b tokens=1 positions=5 |  |  | ",
                                         "rope_table c tokens=2 |  |  | ", NULL });
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
    require_lines_refused();
    done("bad lines are refused");
    require_files_refused();
    done("bad files are refused, with the line");
    require_files();
    done("with, alternatives, comments, lines that go on");
    require_harmless(40000);
    done("mangled text does no harm");
    return 0;
}
