/*
 * Makes of what a configuration says the calls that the model makes: at prefill, and decoding
 * one token at its last position.  shapes.txt lists the calls, in the notation of problems.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/columns.h"
#include "conformance/problem/notation.h"
#include "config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *what, *where, *line, *label, *times;
} rows[] = {
#include "shapes.inc"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* The lines of what a part is, as a file of problems: labels stand where flags do, and how often a step
 * makes the call where the note does. */
static void list_problems(const struct part *part, const char *what, struct problem_list *list)
{
    char *text, error[NOTATION_ERROR];
    size_t n;
    FILE *file = open_memstream(&text, &n);
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        char line[PART_TEXT], label[PART_TEXT], times[24] = "";
        if (strcmp(row->what, what) != 0 ||
            (*row->where && part_formula(part, row->where) == 0))
            continue;
        part_text(part, row->line, line);
        part_text(part, row->label, label);
        if (*row->times)
            snprintf(times, sizeof times, "%lld", (long long)part_formula(part, row->times));
        fprintf(file, "%s | %s | %s\n", line, label, times);
    }
    fclose(file);
    const bool read = notation_read_file(text, "shapes.txt", list, error);
    assert(read), (void)read;
    free(text);
}

static void add_case(struct model *m, const struct part *part, const struct problem_line *line,
                     const struct problem *p)
{
    assert(m->n_cases < MODEL_MAX_CASES);
    struct model_case *c = &m->cases[m->n_cases++];
    const char *profile =
        kernel_has_plan(p->kernel) ? profile_names[p->freqs.profile] : "given";
    char name[sizeof m->name]; /* a copy: the id lies in the model, too */
    memcpy(name, m->name, sizeof name);
    snprintf(c->id, sizeof c->id, "%s/f32/%s/%s%s%s-%s", posenc_kernel_name(p->kernel), profile,
             name, *part->name ? "-" : "", part->name, line->name);
    snprintf(c->label, sizeof c->label, "%s%s%s", part->name, *part->name ? ": " : "",
             line->flags);
    if (*line->note) {
        snprintf(c->step, sizeof c->step, "%s%s%s", part->stack ? part->stack : "",
                 part->stack ? "-" : "", line->name);
        c->times = strtoll(line->note, NULL, 10);
    }
    snprintf(c->layers, sizeof c->layers, "%s%s", part->name,
             lists("full sliding chunked", part->name) ? "_attention" : "");
    c->problem = *p;
}

static void add_lines(struct model *m, const struct part *part, const char *what)
{
    struct problem_list list = { .n = 0 };
    list_problems(part, what, &list);
    for (size_t i = 0; i < list.n; i++) {
        struct problem p = list.lines[i].problem;
        const struct posenc_freqs_spec said = p.freqs;
        if (kernel_has_plan(p.kernel)) {
            p.freqs = part->freqs;
            p.freqs.profile = said.profile;
            p.freqs.seq_len = said.seq_len;
        }
        p.seed = problem_default(p.kernel).seed;
        problem_settle(&p);
        assert(m->n_verify < MODEL_MAX_CASES);
        if (strcmp(list.lines[i].name, "-") != 0)
            add_case(m, part, &list.lines[i], &p);
        else
            m->verify[m->n_verify++] = p;
    }
    arena_free(&list.arena);
}

/* Types of layers that rotate the same channels of the same heads make the same call. */
static bool rotates_alike(const struct part *a, const struct part *b)
{
    return a->tower == b->tower && a->heads == b->heads && a->key_heads == b->key_heads &&
           a->head_dim == b->head_dim && a->rotary_dim == b->rotary_dim;
}

static void add_rope(const struct config *c, size_t at, struct part *part, struct model *m)
{
    struct part whole = *part;
    bool alike = !part->tower, again = false, known = true;
    whole.layers = 0;
    for (size_t i = 0; i < c->n_parts; i++) {
        const bool same = rotates_alike(part, &c->parts[i]);
        alike &= same || c->parts[i].tower;
        again |= i < at && same;
        known &= !same || c->parts[i].layers > 0;
        whole.layers += same ? c->parts[i].layers : 0;
    }
    whole.layers = known ? whole.layers : 0;
    if (alike)
        whole.name = "";
    if (!again)
        add_lines(m, &whole, encodings[part->encoding].shapes);
    add_lines(m, part, "table");
    part->hf_f32 = !part->ggml && !part->fractions &&
                   scaling_in_profile(part->freqs.scaling, POSENC_HF_F32);
    part->ggml_f32 = part->ggml && scaling_in_profile(part->freqs.scaling, POSENC_GGML_F32);
    if (part->hf_f32 || part->ggml_f32)
        add_lines(m, part, "table");
}

static void fill_facts(const struct part *first, struct model *m)
{
    const char *shapes = encodings[first->encoding].shapes;
    m->max_position_embeddings = first->length;
    m->has_freqs = strcmp(shapes, "rotation") == 0 || strcmp(shapes, "sinusoidal") == 0;
    m->freqs = first->freqs;
    snprintf(m->encoding, sizeof m->encoding, "%s", encodings[first->encoding].name);
}

void config_cases(const struct config *c, struct model *m)
{
    const struct fields nothing = { .file = NULL };
    fill_facts(&c->parts[0], m);
    m->n_cases = m->n_verify = 0;
    for (size_t i = 0; i < c->n_parts; i++) {
        struct part part = c->parts[i];
        const struct encoding_words *encoding = &encodings[part.encoding];
        char words[96];
        snprintf(words, sizeof words, "calls calls_%s calls_%s", encoding->name,
                 scaling_names[part.freqs.scaling]);
        members_read(&nothing, words, &part);
        part.x_scale = part.scaled ? sqrt((double)part.width) : 1.0;
        part.amplitude = part.shrunk ? 1.0 / sqrt((double)part.width) : 1.0;
        part.scale = 1.0 / (part.bare ? (double)part.head_dim
                                      : sqrt((double)(part.head_dim * part.terms)));
        if (strcmp(encoding->shapes, "rotation") == 0)
            add_rope(c, i, &part, m);
        else
            add_lines(m, &part, encoding->shapes);
        if (part.both_ways)
            add_lines(m, &part, "distances");
    }
}
