/*
 * Shapes: of each kernel a small problem, from which tests and the command line go on, and a
 * realistic one, which the benchmark grows until it fills a level of memory.  They stand among
 * the golden cases of their kernel (conformance/cases/golden), by these names:
 *
 *     default    fields
 *     realistic  fields | what grows | tensor | whose shape it is
 *
 * Of several realistic lines the last that fits into the bytes is taken.  What grows are fields,
 * each as far as it can before the next, those with a + between together.  The tensor is the one
 * that fills the bytes; where none is named, all that the call reads or writes does.  Queries
 * end where the keys do.
 */
#include "cases.h"
#include "signature.h"

#include <stdio.h>
#include <string.h>

bool is_shape(const struct problem_line *line)
{
    return strcmp(line->name, "default") == 0 || strcmp(line->name, "realistic") == 0;
}

static bool is_line_of(const struct problem_line *line, enum posenc_kernel kernel,
                       const char *name)
{
    return line->problem.kernel == kernel && strcmp(line->name, name) == 0;
}

struct problem problem_default(enum posenc_kernel kernel)
{
    const struct problem_list *list = cases(CASES_SHAPES);
    struct problem p = problem_blank(kernel);
    for (size_t i = 0; i < list->n; i++)
        if (is_line_of(&list->lines[i], kernel, "default"))
            p = list->lines[i].problem;
    problem_settle(&p);
    return p;
}

/* ---- Problems that grow ---- */

#define MOST (INT64_C(1) << 30) /* that a field grows by */

/* Of the tensor of that name; of all that is read or written where there is none. */
static size_t bytes_of(const struct problem *p, const char *tensor)
{
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (strcmp(row->name, tensor) == 0)
            return (size_t)tensor_elements(p, row) * storage_size(tensor_dtype(p, row));
    return problem_working_set(p);
}

/* With n more of each field of a word such as "queries+keys". */
static struct problem longer(struct problem p, const char *word, int64_t n)
{
    while (*word && *word != ' ') {
        const size_t length = strcspn(word, "+ ");
        char name[FIELD_TEXT];
        struct field field;
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        if (kernel_field_find(p.kernel, name, &field))
            field_set(&field, &p, field_get(&field, &p, 0) + (uint64_t)n);
        word += length;
        word += *word == '+';
    }
    return p;
}

static struct problem grown(struct problem p, const char *word, const char *tensor,
                            size_t bytes)
{
    int64_t step = 1;
    for (struct problem q = p; step < MOST && bytes_of(&q, tensor) <= bytes; step *= 2)
        q = longer(p, word, step);
    for (; step > 0; step /= 2) {
        const struct problem more = longer(p, word, step);
        if (bytes_of(&more, tensor) <= bytes)
            p = more;
    }
    return p;
}

struct problem problem_realistic(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                 size_t bytes)
{
    const struct problem_list *list = cases(CASES_SHAPES);
    const struct problem_line *line = NULL;
    struct problem p = problem_blank(kernel);
    for (size_t i = 0; i < list->n; i++) {
        struct problem q = list->lines[i].problem;
        if (!is_line_of(&list->lines[i], kernel, "realistic"))
            continue;
        q.dtype = dtype;
        q.in_place = q.in_place && kernel_in_place(kernel);
        if (line && bytes_of(&q, list->lines[i].note) > bytes)
            continue;
        line = &list->lines[i];
        p = q;
    }
    for (const char *word = line ? line->flags : ""; *word; word += strcspn(word, " ")) {
        word += strspn(word, " ");
        p = grown(p, word, line->note, bytes);
    }
    if (kernel_on_scores(kernel))
        p.query_offset = p.keys > p.queries ? p.keys - p.queries : 0;
    problem_settle(&p);
    return p;
}
