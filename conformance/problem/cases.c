/* Reads compiled-in problems, and makes problems of given sizes from them (see cases.h). */
#include "cases.h"
#include "signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Compiled-in problems ---- */

static const struct {
    const char *name, *const *lines;
} files[CASES_FILES] = {
#include "cases.inc"
};

char *cases_join_lines(const char *const *lines)
{
    size_t bytes = 1, used = 0;
    for (const char *const *line = lines; *line; line++)
        bytes += strlen(*line) + 1;
    char *text = calloc(1, bytes);
    for (; text && *lines; lines++)
        used = text_append(text, bytes, used, "%s\n", *lines);
    return text;
}

/* Reads a file. Aborts on an error, as the file is part of this program. */
static void read_lines(struct problem_list *list, enum cases_file file)
{
    char error[NOTATION_ERROR] = "no memory";
    char *text = cases_join_lines(files[file].lines);
    if (!text || !notation_read_file(text, files[file].name, list, error)) {
        fprintf(stderr, "%s\n", error);
        abort();
    }
    free(text);
}

const struct problem_list *cases_read(enum cases_file file)
{
    static struct problem_list lists[CASES_FILES];
    if (lists[file].n == 0)
        read_lines(&lists[file], file);
    return &lists[file];
}

/* ---- Lines ---- */

bool case_is_shape(const struct problem_line *line)
{
    static const char *const names[] = { "default", "realistic", "length0", "length1",
                                         "length2", "length3",   "random" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(line->name, names[i]) == 0)
            return true;
    return false;
}

/* Returns the next line of a kernel with that name, from index *i on; NULL after the last. */
static const struct problem_line *next_line(enum posenc_kernel kernel, const char *name,
                                            size_t *i)
{
    const struct problem_list *list = cases_read(CASES_SHAPES);
    while (*i < list->n) {
        const struct problem_line *line = &list->lines[(*i)++];
        if (line->problem.kernel == kernel && strcmp(line->name, name) == 0)
            return line;
    }
    return NULL;
}

/* Returns line n modulo the number of lines of that name. */
static const struct problem_line *find_line(enum posenc_kernel kernel, const char *name,
                                            uint64_t n)
{
    const struct problem_line *line = NULL;
    uint64_t lines = 0;
    for (size_t i = 0; next_line(kernel, name, &i);)
        lines++;
    for (size_t i = 0, k = 0; lines && k <= n % lines; k++)
        line = next_line(kernel, name, &i);
    return line;
}

struct problem problem_default(enum posenc_kernel kernel)
{
    const struct problem_line *line = find_line(kernel, "default", 0);
    struct problem p = line ? line->problem : problem_blank(kernel);
    problem_derive(&p);
    return p;
}

/* ---- Problems that grow ---- */

#define LARGEST_STEP (INT64_C(1) << 30) /* units by which a field grows at once */

/* Adds to a number, or to the first number of a list. */
static void add_to_field(struct problem *p, const char *name, double increase)
{
    struct field field;
    if (kernel_field_find(p->kernel, name, &field))
        field_set_number(&field, p, field_number(&field, p) + increase);
}

/* Returns a problem whose fields in a word such as "2rotary_dim+2head_dim" have grown by n steps. */
static struct problem lengthen(struct problem p, const char *word, int64_t n)
{
    while (*word && !strchr(" :", *word)) {
        const double sign = *word == '-' ? -1.0 : 1.0;
        char *field, name[FIELD_TEXT];
        word += strspn(word, "+-");
        const double number = strtod(word, &field), rate = field == word ? 1.0 : number;
        const size_t length = strcspn(field, "+-: ");
        snprintf(name, sizeof name, "%.*s", (int)length, field);
        add_to_field(&p, name, sign * rate * (double)n);
        word = field + length;
    }
    return p;
}

/* Returns the limit after the colon of a word; without a colon, `otherwise`. */
static int64_t read_limit(const char *word, int64_t otherwise)
{
    const char *colon = word + strcspn(word, ": ");
    return *colon == ':' ? atoll(colon + 1) : otherwise;
}

#define EACH_WORD(word, text)                                                                  \
    const char *word = (text) + strspn(text, " ");                                             \
    *word;                                                                                     \
    word += strcspn(word, " "), word += strspn(word, " ")

/* Returns the bytes of the tensor of that name, or of all that is read or written. */
static size_t count_bytes(const struct problem *p, const char *tensor)
{
    for (EACH_TENSOR(spec, signature_of(p->kernel)))
        if (strcmp(spec->name, tensor) == 0)
            return (size_t)tensor_elements(p, spec) * storage_size(tensor_dtype(p, spec));
    return problem_working_set(p);
}

/* Returns a problem whose fields in a word are as large as the bytes allow. The step doubles while it fits, then
 * halves. */
static struct problem grow(struct problem p, const char *word, const char *tensor, size_t bytes)
{
    int64_t step = 1;
    for (struct problem q = p; step < LARGEST_STEP && count_bytes(&q, tensor) <= bytes;
         step *= 2)
        q = lengthen(p, word, step);
    for (; step > 0; step /= 2) {
        const struct problem more = lengthen(p, word, step);
        if (count_bytes(&more, tensor) <= bytes)
            p = more;
    }
    return p;
}

struct problem problem_realistic(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                 size_t bytes)
{
    const struct problem_line *line = NULL, *next;
    struct problem p = problem_blank(kernel);
    for (size_t i = 0; (next = next_line(kernel, "realistic", &i));) {
        struct problem q = next->problem;
        q.dtype = dtype;
        if (line && count_bytes(&q, next->note) > bytes)
            continue;
        line = next;
        p = q;
    }
    for (EACH_WORD(word, line ? line->flags : ""))
        p = grow(p, word, line->note, bytes);
    if (kernel_on_scores(kernel))
        p.query_offset = p.keys > p.queries ? p.keys - p.queries : 0;
    problem_derive(&p);
    return p;
}

/* ---- Problems of every length ---- */

/* Divides the pairs of an image evenly among its axes; the first gets the remainder. With fewer pairs than axes, the
 * problem has text positions instead. */
static void divide_pairs(struct problem *p)
{
    const int64_t axes = problem_axes(p), pairs = p->freqs.dim / 2;
    int64_t *section = p->freqs.mrope_section;
    if (section[0] == 0)
        return;
    for (int64_t a = 0; a < axes; a++)
        section[a] = pairs < axes ? 0 : pairs / axes;
    if (pairs < axes)
        p->mrope_grid = 0;
    else
        section[0] += pairs % axes;
}

struct problem problem_of_length(enum posenc_kernel kernel, int64_t n, int variant)
{
    char name[FIELD_TEXT];
    snprintf(name, sizeof name, "length%d", variant);
    const struct problem_line *line = find_line(kernel, name, (uint64_t)n);
    struct problem p = line->problem;
    for (EACH_WORD(word, line->flags))
        p = lengthen(p, word, n < read_limit(word, n) ? n : read_limit(word, n));
    divide_pairs(&p);
    p.batch = kernel_has_batch(kernel) ? p.batch : 1;
    problem_derive(&p);
    return p;
}

/* Compilers may vectorise plain C to 16 lanes, or unroll a scalar loop by four. */
int64_t backend_vector_lanes(const struct posenc_backend *backend)
{
    int64_t lanes = backend->lanes ? backend->lanes() : 16;
    return lanes < 4 ? 4 : lanes;
}

/* ---- Random problems ---- */

struct problem problem_random(enum posenc_kernel kernel, uint64_t seed,
                              int64_t positions[MOST_RANDOM_TOKENS])
{
    struct random_state random = { .seed = seed };
    const struct problem_line *line = find_line(kernel, "random", draw_bits(&random));
    struct problem p = line->problem;
    for (EACH_WORD(word, line->flags))
        p = lengthen(p, word, draw_between(&random, 0, read_limit(word, 0)));
    const int64_t farthest = (int64_t)(40 * p.freqs.xpos_scale_base); /* 0 without xPos */
    const bool select_rows =
        p.position_kind != POSENC_POSITIONS_OFFSET && !kernel_has_freqs(kernel);
    for (int64_t t = 0; t < p.tokens && select_rows; t++)
        positions[t] = draw_between(&random, 0, p.rows - 1);
    for (int64_t t = 0; t < p.tokens && !select_rows && farthest > 0; t++)
        positions[t] = t > 0 ? draw_between(&random, -farthest, farthest) : 0;
    p.positions = select_rows || farthest > 0 ? positions : NULL;
    p.seed = seed;
    p.dtype = (enum posenc_dtype)draw_between(&random, POSENC_DTYPE_F32, POSENC_DTYPE_BF16);
    p.values_dtype =
        (enum posenc_dtype)draw_between(&random, POSENC_DTYPE_F32, POSENC_DTYPE_BF16);
    p.special = draw_between(&random, 0, 2) == 0;
    p.x_scale = draw_between(&random, 0, 1) ? 1.0f : 0.088388346f;
    p.batch = kernel_has_batch(kernel) ? draw_between(&random, 1, 3) : 1;
    return p;
}
