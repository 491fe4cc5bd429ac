/*
 * posenc explain --config FILE, --model NAME: which key of a configuration says what, what was
 * assumed where it says nothing, and what follows: each part in words (explain_part.c), what is
 * not covered, what to type next.
 */
#define _POSIX_C_SOURCE 200809L
#include "explain_model.h"
#include "conformance/problem/fields.h"
#include "show.h"
#include "base/text/text.h"
#include "topics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 32, VALUE = 48, ABOUT = 15, WIDTH = 110, QUOTED = 4 * 4096 };

/* A quantity, its value and where that is from. */
struct row {
    const char *name;
    char value[VALUE], from[ORIGIN_SENTENCE];
};
struct rows {
    size_t n;
    struct row row[MOST_ROWS];
};

void explain_say(const char *about, const char *format, ...)
{
    char words[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    printf("  %-*s", ABOUT - 2, about);
    topic_print_words(words, ABOUT, WIDTH);
}

/* ---- what was read ---- */

static const char scaled[] = "factor original_max_position_embeddings low_freq_factor "
                             "high_freq_factor beta_fast beta_slow attention_factor mscale "
                             "mscale_all_dim truncate partial_rotary_factor";
/* What counts for each encoding, in the order of the page. */
static const char *const counting[N_ENCODINGS] = {
    [SINUSOIDAL] = "length width rope_theta scaled",
    [LEARNED] = "length width rows first scaled",
    [ROPE_HALF] = "length heads key_heads head_dim rotary_dim layers merged rope_theta",
    [ROPE_INTERLEAVED] = "length heads key_heads head_dim rotary_dim layers rope_theta",
    [ALIBI] = "length heads layers alibi_bias_max",
    [T5] = "length heads num_buckets max_distance layers decoder_layers",
    [DEBERTA] = "length heads num_buckets max_distance layers",
    [TRANSFORMER_XL] = "length heads head_dim layers",
    [SHAW] = "length heads head_dim max_distance layers",
    [DECOMPOSED] = "image patch window windows heads layers",
    [WINDOW] = "image patch window windows heads layers",
};

static struct row *add_row(struct rows *rows, const char *name, const struct origin *origin,
                           double value)
{
    struct row *row = &rows->row[rows->n++];
    row->name = name;
    if (!origin_text(origin, value, row->from))
        snprintf(row->from, sizeof row->from, "nothing says otherwise");
    return row;
}

/* Whether there is such a thing: a 0 stands for none, and false where no key says so.  The length of a
 * tower is that of the picture that is shown to it. */
static bool is_there(const struct part *p, const struct quantity *q)
{
    return (fabs(quantity_get(q, p)) > 0.0 ||
            (q->kind == IS_TRUTH && p->origins[q->origin].kind == IN_FILE)) &&
           !(p->tower && q->origin == OF_length);
}

/* The quantities of a list. */
static void add_quantities(const struct part *p, const char *names, struct rows *rows)
{
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        const struct quantity *q = quantity_find(at, n);
        const double value = quantity_get(q, p);
        at += n;
        if (!is_there(p, q))
            continue;
        struct row *row = add_row(rows, q->name, &p->origins[q->origin], value);
        if (q->kind == IS_TRUTH)
            snprintf(row->value, VALUE, "%s", value > 0.0 ? "true" : "false");
        else
            snprintf(row->value, VALUE, "%.10g", value);
    }
}

static void add_array(const struct part *p, const char *name, int origin, const double *factors,
                      struct rows *rows)
{
    const int64_t n = p->rotary_dim / 2;
    double least = (double)INFINITY, most = 0.0;
    for (int64_t i = 0; i < n; i++) {
        least = fmin(least, factors[i]);
        most = fmax(most, factors[i]);
    }
    if (p->origins[origin].kind != UNSAID)
        snprintf(add_row(rows, name, &p->origins[origin], 0.0)->value, VALUE,
                 "%lld, %.4g to %.4g", (long long)n, least, most);
}

static void add_scaling(const struct part *p, struct rows *rows)
{
    const struct posenc_freqs_spec *spec = &p->freqs;
    const int64_t *section = spec->mrope_section;
    if (section[0] && p->origins[OF_mrope_section].kind != UNSAID)
        snprintf(add_row(rows, "mrope_section", &p->origins[OF_mrope_section], 0.0)->value,
                 VALUE, "%lld, %lld, %lld", (long long)section[0], (long long)section[1],
                 (long long)section[2]);
    snprintf(add_row(rows, "scaling", &p->origins[OF_scaling], 0.0)->value, VALUE, "%s",
             scaling_names[spec->scaling]);
    for (const char *at = scaled; *at; at += strspn(at, " ")) {
        char name[64];
        const size_t n = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (scaling_takes(spec->scaling, name, n))
            add_quantities(p, name, rows);
        at += n;
    }
    if (spec->short_factor) {
        add_array(p, "short_factor", OF_short_factor, spec->short_factor, rows);
        add_array(p, "long_factor", OF_long_factor, spec->long_factor, rows);
    }
}

static void list_rows(const struct part *p, struct rows *rows)
{
    const bool rotates = p->encoding == ROPE_HALF || p->encoding == ROPE_INTERLEAVED;
    rows->n = 0;
    snprintf(add_row(rows, "encoding", &p->origins[OF_encoding], 0.0)->value, VALUE, "%s",
             encodings[p->encoding].name);
    add_quantities(p, counting[p->encoding], rows);
    if (rotates)
        add_scaling(p, rows);
    if (p->norms)
        add_quantities(p, "epsilon", rows);
}

static bool has_row(const struct rows *rows, const struct row *like)
{
    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(rows->row[i].name, like->name) == 0 &&
            strcmp(rows->row[i].value, like->value) == 0 &&
            strcmp(rows->row[i].from, like->from) == 0)
            return true;
    return false;
}

/* Beside a tower the only part of text has no name. */
static const char *part_name(const struct part *p) { return *p->name ? p->name : "text"; }

static void print_row(const char *name, const char *value, const char *from)
{
    text_print(stdout, "  %-32s %-20s %s\n", name, value, from);
}

/* Rows of a part that all parts have, or that not all do, those below its name. */
static void print_rows(const struct config *c, const struct rows rows[], size_t part,
                       bool common)
{
    bool named = common;
    for (size_t i = 0; i < rows[part].n; i++) {
        const struct row *row = &rows[part].row[i];
        bool everywhere = true;
        for (size_t other = 0; other < c->n_parts; other++)
            everywhere &= has_row(&rows[other], row);
        if (everywhere != common)
            continue;
        if (!named)
            printf("  %s\n", part_name(&c->parts[part]));
        named = true;
        print_row(row->name, row->value, row->from);
    }
}

/* Where the defaults of classes are from. */
static void print_legend(const struct config *c)
{
    const struct model_type *type = type_find(c->type);
    bool some = false;
    for (size_t i = 0; i < c->n_parts; i++)
        for (int k = 0; k < N_ORIGINS; k++)
            some |= c->parts[i].origins[k].kind == OF_CLASS;
    if (some && type)
        printf("  (its class: that of %s in transformers, %s)\n", type->name,
               lists(type->flags, "surveyed") ? "as the survey of it saw (docs/models.md)"
                                              : "as posenc list types has it");
}

static void print_read(const struct config *c, const struct model *m, const struct rows rows[])
{
    puts("\nWhat was read, and from which key");
    print_row("model_type", c->type, c->type_from);
    print_row("storage", dtype_names[m->storage],
              *m->storage_from ? m->storage_from : "assumed: no key says it");
    print_rows(c, rows, 0, true);
    for (size_t part = 0; part < c->n_parts; part++)
        print_rows(c, rows, part, false);
    print_legend(c);
}

/* ---- the page ---- */

static void print_notes(const struct model *m)
{
    static const char end[] = ".  ";
    const char *at = m->notes;
    puts("\nNotes");
    while (*at) {
        const char *next = strstr(at, end);
        const size_t n = next ? (size_t)(next - at) : strlen(at);
        char sentence[MODEL_NOTES];
        snprintf(sentence, sizeof sentence, "%.*s", (int)n, at);
        fputs("  - ", stdout);
        topic_print_words(sentence, 4, WIDTH);
        at += n + (next ? strlen(end) : 0);
    }
    if (*m->trained_profile) {
        fputs("  - ", stdout);
        topic_print_words(show_profile(m->trained_profile, m->encoding), 4, WIDTH);
    }
    if (!*m->notes && !*m->trained_profile)
        puts("  none");
}

/* A word as a shell takes it: in quotes, and those in it apart from them. */
static void quote(const char *word, char to[QUOTED])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._-/+=:,@%";
    const bool quoted = word[strspn(word, plain)] != '\0';
    size_t at = append(to, QUOTED, 0, "%s", quoted ? "'" : "");
    for (; *word; word++)
        at = *word == '\'' ? append(to, QUOTED, at, "'\\''")
                           : append(to, QUOTED, at, "%c", *word);
    append(to, QUOTED, at, "%s", quoted ? "'" : "");
}

static void print_next(const char *name)
{
    char word[QUOTED];
    quote(name, word);
    puts("\nNext");
    for (int timed = 0; timed < 2; timed++)
        text_print(stdout, "  posenc %s --%s %s    # checks %s\n", timed ? "report" : "verify",
                   strchr(name, '/') ? "config" : "model", word,
                   timed ? "and times them" : "its shapes on every backend");
}

static int print_page(const struct cli *cli, const struct config *c, const struct model *m)
{
    const char *name = cli->model.item[0];
    struct rows *rows = calloc(MODEL_MAX_PARTS, sizeof *rows);
    int status = rows ? EXIT_FINE : cli_refuse(cli, "--config", NULL, "out of memory");
    for (size_t i = 0; i < c->n_parts && rows; i++)
        list_rows(&c->parts[i], &rows[i]);
    if (rows) {
        text_print(stdout, "%s (%s): %s%s%s\n", m->title, m->name, m->source,
                   strchr(name, '/') ? ", " : "", strchr(name, '/') ? name : "");
        print_read(c, m, rows);
    }
    free(rows);
    for (size_t i = 0; i < c->n_parts && status == EXIT_FINE; i++)
        status = explain_part(cli, &c->parts[i]);
    if (status == EXIT_FINE) {
        print_notes(m);
        print_next(name);
    }
    return status;
}

int explain_model(const struct cli *cli)
{
    const char *name = cli->model.item[0], *option = strchr(name, '/') ? "--config" : "--model";
    struct config *config = malloc(sizeof *config);
    struct model *model = malloc(sizeof *model);
    char error[MODEL_ERROR] = "out of memory";
    int status = EXIT_USAGE;
    if (!config || !model || model_read(name, config, model, error))
        cli_refuse(cli, option, NULL, "%s", error);
    else {
        status = print_page(cli, config, model);
        model_free(model);
    }
    free(config);
    free(model);
    return status;
}
