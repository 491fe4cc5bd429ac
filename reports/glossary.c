/*
 * Words and what they mean, and where in a document they are met first; see glossary.h.
 */
#include "glossary.h"

#include <ctype.h>
#include <string.h>

static const struct term {
    const char *name, *words; /* as they are met, with bars between; "word*" begins others */
    const char *sentence;
} terms[] = {
    { "default", "default|default here", "the backend that the library takes by itself here" },
    { "libm", "libm|vs libm",
      "plain loops over the C library's sin and cos; its column: times faster than it" },
    { "prefill", "prefill", "a step that takes in a whole prompt" },
    { "decode", "decode|decoding", "a step that makes one token" },
    { "GB/s", "GB/s", "useful bytes a second, inputs read once and outputs written once" },
    { "roof", "roof|of roof",
      "the most GB/s of storing or copying the same bytes here; its column: the share" },
    { "bound by", "bound by",
      "what alone would take longest, and that time in the row's: memory (the roof), "
      "conversion "
      "between types, ports (a bare loop of what the kernel cannot avoid), latency, each of "
      "short calls after the call's checks, or calls (what is left without rows)" },
    { "autovec", "autovec*|vs autovec",
      "those loops vectorised by the compiler; its column: times faster than the best" },
    { "exact, hf_f32", "exact|hf_f32",
      "angles of real mathematics, or rounded in f32 as transformers does" },
    { "ggml_f32", "ggml_f32", "angles formed in f32 as ggml does, by products" },
    { "ulp", "ulp", "units in the last place of an f32; correct rounding is 0.5" },
    { "pair ulp", "pair ulp",
      "ulp of the larger product of a rotation, as their difference may cancel" },
    { "abs", "abs", "a plain difference, where values near 0 have no ulp worth counting" },
    { "tied, =", "tied|tie|= *",
      "too close to the fastest for the clock: their intervals meet" },
    { "interval, ±", "interval|intervals|±*|+-",
      "where the median lies with 99 % confidence; ± is its wider half" },
    { "trust", "trust", "how far times can be relied on, from A, a quiet machine, to D" },
    { "a copy (null row)", "null row|from its own copy|from itself|copy of a backend",
      "a backend timed against a copy of itself: what differs is noise" },
    { "evidence", "evidence",
      "vectors are golden outputs of 320-bit arithmetic, accuracy is errors within limits, "
      "digests are the same bits as elsewhere, memory is guard pages, properties are laws "
      "between calls, conduct is what kernels may not do besides" },
    { "weak", "weak",
      "passed on less than it takes to count; the exit code counts it as failed" },
};
enum { N_TERMS = sizeof terms / sizeof *terms };

struct reader {
    bool terminal, all, failed;
    bool met[N_TERMS], told[N_TERMS];
};

static bool is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* What a word is only a part of: an id such as rope_half/f32/exact/gpt2-prefill has none. */
static bool is_inside(char c) { return is_letter(c) || c == '/' || c == '-'; }

/* Whether a text has the word of n bytes; with a '*' at its end that, or a longer one. */
static bool has_word(const char *text, const char *word, size_t n)
{
    const bool begins = n > 1 && word[n - 1] == '*';
    n -= begins;
    for (const char *p = text; *p; p++) {
        if (strncmp(p, word, n) != 0)
            continue;
        const bool before = p > text && is_inside(p[-1]) && is_letter(*word);
        if (!before && (begins || !is_inside(p[n]) || !is_letter(word[n - 1])))
            return true;
    }
    return false;
}

static void read_text(struct reader *reader, const char *text)
{
    for (int t = 0; text && t < N_TERMS; t++)
        for (const char *w = terms[t].words; !reader->met[t] && *w;) {
            size_t n = strcspn(w, "|");
            reader->met[t] = has_word(text, w, n);
            w += n + (w[n] == '|');
        }
}

static void read_table(struct reader *reader, const struct table *t)
{
    for (int c = 0; c < t->n_columns; c++)
        if (is_seen(t->column[c].medium, reader->terminal, reader->all) && !t->column[c].bar)
            read_text(reader, reader->terminal ? t->column[c].brief : t->column[c].head);
    for (size_t row = 0; row < table_rows(t); row++)
        for (int c = 0; c < t->n_columns; c++) {
            const bool line = !table_at(t, row, 0);
            if (line ? c == 1 && reader->terminal
                     : is_seen(t->column[c].medium, reader->terminal, reader->all))
                read_text(reader, table_at(t, row, c));
        }
}

/* What was met and is not told yet, behind a node; the last of what is told. */
static struct node *tell(struct reader *reader, struct node *into, struct node *after)
{
    for (int t = 0; t < N_TERMS; t++) {
        if (!reader->met[t] || reader->told[t])
            continue;
        struct node *node =
            insert_text(into, after, TERM, "**%s**: %s.", terms[t].name, terms[t].sentence);
        reader->failed |= !node;
        reader->told[t] = true;
        after = node ? node : after;
    }
    return after;
}

/* Words are told behind a table and what is said of it, before whatever comes next, or at the end; those
 * of paragraphs before a table together with the table's. */
static void read_node(struct reader *reader, struct node *node)
{
    bool after_table = false;
    read_text(reader, node->text);
    for (struct node *child = node->first; child; child = child->next) {
        if (!node_is_seen(child, reader->terminal, reader->all))
            continue;
        if (child->kind == SECTION) {
            read_node(reader, child);
            continue;
        }
        if (child->kind == TABLE)
            read_table(reader, child->table);
        else if (child->kind != FIGURE && child->kind != CODE)
            read_text(reader, child->text);
        const struct node *next = child->next;
        while (next && !node_is_seen(next, reader->terminal, reader->all))
            next = next->next;
        after_table |= child->kind == TABLE;
        if (!next || (after_table && (next->kind == TABLE || next->kind == SECTION))) {
            child = tell(reader, node, child);
            after_table = false;
        }
    }
}

bool glossary_explain(struct node *root, bool terminal, bool all)
{
    struct reader reader = { .terminal = terminal, .all = all };
    read_node(&reader, root);
    return !reader.failed && !document_failed(root);
}
