/*
 * test_claims FILE: claims about models, what a configuration becomes or why it is refused, as
 * claims/README.md has them.
 */
#define _XOPEN_SOURCE 700
#include "conformance/problem/notation.h"
#include "conformance/tap/tap.h"
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 1 << 17, LINE = 4096, WORD = 128, MOST_NAMES = 16 };

static struct model m, other;
static char error[MODEL_ERROR];
static const char *refusal; /* words of a claim that refuses; else NULL */

/* ---- loading ---- */

/* Loads a text as a configuration, by way of a file; -2 where that cannot be written. */
static int load_text(const char *text, struct model *model)
{
    char path[] = "/tmp/posenc-config-XXXXXX";
    int descriptor = mkstemp(path);
    size_t n = strlen(text);
    bool written = descriptor >= 0 && write(descriptor, text, n) == (ssize_t)n;
    if (descriptor >= 0)
        close(descriptor);
    int status = written ? model_from_config(path, model, error) : -2;
    unlink(path);
    return status;
}

/* Whether what was loaded is accepted or refused as the claim has it. */
static bool as_claimed(int status)
{
    bool good = refusal ? status == -1 && strstr(error, refusal) && m.n_owned == 0 : !status;
    if (!good)
        printf("# %s\n", status ? error : "it is accepted");
    return good;
}

static bool load(const char *name)
{
    model_free(&m);
    return as_claimed(model_load(name, &m, error));
}

static bool config(const char *text)
{
    model_free(&m);
    return as_claimed(load_text(text, &m));
}

/* ---- cases ---- */

/* The problem of the case whose id begins and ends as `id` says; NULL where there is none. */
static const struct problem *find(const char *id)
{
    static struct problem plan;
    const char *end = strstr(id, "..");
    if (strcmp(id, "model") == 0) {
        plan = problem_blank(POSENC_KERNEL_rope_table);
        plan.freqs = m.freqs;
        return &plan;
    }
    for (size_t i = 0; end && i < m.n_cases; i++) {
        const char *whole = m.cases[i].id;
        size_t n = strlen(whole), tail = strlen(end + 2);
        if (strncmp(whole, id, (size_t)(end - id)) == 0 && n > tail &&
            strcmp(whole + n - tail, end + 2) == 0)
            return &m.cases[i].problem;
    }
    return NULL;
}

/* Takes the id that a check begins with off its arguments. */
static const struct problem *take_case(const char **arguments)
{
    char id[WORD];
    int n = 0;
    if (sscanf(*arguments, "%127s %n", id, &n) != 1)
        return NULL;
    *arguments += n;
    return find(id);
}

/* The value a field has, in the spelling of the value that is stated. */
static bool has_value(const struct problem *p, const char *name, const char *value, bool tell)
{
    struct arena arena = { .last = NULL };
    struct problem stated = *p;
    struct field field;
    char got[LINE], want[LINE], why[NOTATION_ERROR] = "it has no such field";
    bool same = kernel_field_find(p->kernel, name, &field) &&
                field_read(&field, &stated, value, &arena, why);
    if (same) {
        field_print(&field, p, got, sizeof got, 0);
        field_print(&field, &stated, want, sizeof want, 0);
        same = strcmp(got, want) == 0;
        snprintf(why, sizeof why, "it is %.900s", got);
    }
    if (!same && tell)
        printf("# %s=%s: %s\n", name, value, why);
    arena_free(&arena);
    return same;
}

static bool has_fields(const struct problem *p, const char *fields, bool tell)
{
    char name[WORD], value[WORD];
    bool all = p != NULL;
    for (int n; all && *fields; fields += n) {
        n = 0;
        all = sscanf(fields, "%127[^= ]=%127s %n", name, value, &n) == 2 &&
              has_value(p, name, value, tell);
    }
    return all;
}

static bool has_case(const char *arguments)
{
    const struct problem *p = take_case(&arguments);
    return has_fields(p, arguments, true);
}

/* Ids of no case at all are those of a mistake, too: what is looked for has its two dots. */
static bool has_no_case(const char *id) { return strstr(id, "..") && !find(id); }

static bool is_checked(const char *fields)
{
    bool any = false;
    for (size_t i = 0; i < m.n_verify && !any; i++)
        any = has_fields(&m.verify[i], fields, false);
    return any;
}

static bool same_problem(const struct problem *p, const struct problem *q)
{
    char a[LINE], b[LINE];
    return notation_print(p, NULL, a, sizeof a) < sizeof a &&
           notation_print(q, NULL, b, sizeof b) < sizeof b && strcmp(a, b) == 0;
}

/* Both models make the same calls, whatever they are called. */
static bool same(const char *text)
{
    bool loaded = load_text(text, &other) == 0;
    bool alike = loaded && m.n_cases == other.n_cases && m.n_verify == other.n_verify;
    for (size_t i = 0; alike && i < m.n_cases; i++)
        alike = same_problem(&m.cases[i].problem, &other.cases[i].problem);
    if (loaded)
        model_free(&other);
    else
        printf("# %s\n", error);
    return alike;
}

/* ---- what plans and tables say ---- */

/* Calls `check` with the plan of a problem. */
typedef bool check_view(const struct posenc_freqs_view *view, const char *arguments);
static bool with_view(const char *arguments, check_view *check)
{
    const struct problem *p = take_case(&arguments);
    struct posenc_freqs *freqs;
    if (!p || posenc_freqs_create(&p->freqs, &freqs, NULL) != POSENC_OK)
        return false;
    struct posenc_freqs_view view = posenc_freqs_view(freqs);
    bool good = check(&view, arguments);
    posenc_freqs_destroy(freqs);
    return good;
}

static bool view_turns_by(const struct posenc_freqs_view *view, const char *arguments)
{
    double base, above, below, factor = 1.0;
    int pair, count = 1, n = 0;
    if (sscanf(arguments, "%d%nx%d", &pair, &n, &count) < 1 ||
        sscanf(arguments + n + strcspn(arguments + n, " "), "%lf^-%lf/%lf/%lf", &base, &above,
               &below, &factor) < 3)
        return false;
    for (int k = 0; k < count; k++) {
        double want = pow(base, -(above + 2 * k) / below) / factor; /* 0 where that is inf */
        double got = pair + k < view->n_pairs ? view->omega[pair + k] : (double)NAN;
        if (!(fabs(got - want) <= 1e-12 * want)) {
            printf("# pair %d: %.17g, not %.17g\n", pair + k, got, want);
            return false;
        }
    }
    return true;
}

static bool omega(const char *arguments) { return with_view(arguments, view_turns_by); }

static bool view_has_factor(const struct posenc_freqs_view *view, const char *arguments)
{
    double value, within;
    if (sscanf(arguments, "%lf %lf", &value, &within) != 2)
        return false;
    if (fabs(view->attention_factor - value) <= within)
        return true;
    printf("# it is %.17g\n", view->attention_factor);
    return false;
}

static bool attention(const char *arguments) { return with_view(arguments, view_has_factor); }

static bool view_has_axes(const struct posenc_freqs_view *view, const char *axes)
{
    bool alike = view->n_pairs == (int64_t)strlen(axes) && view->axis != NULL;
    for (int64_t i = 0; alike && i < view->n_pairs; i++)
        alike = view->axis[i] == axes[i] - '0';
    return alike;
}

static bool axes(const char *arguments) { return with_view(arguments, view_has_axes); }

/* Runs a table; false where it cannot be made. */
static bool run_table(const struct problem *p, struct call *call)
{
    if (!p || call_create(call, p, &memory_plain) != POSENC_OK)
        return false;
    if (call_run(call, posenc_backend_find("scalar")) == POSENC_OK)
        return true;
    call_destroy(call);
    return false;
}

static bool turned(const char *arguments)
{
    const struct problem *p = take_case(&arguments);
    struct posenc_freqs *freqs;
    struct call call;
    long long token, pair;
    double position;
    if (sscanf(arguments, "%lld %lld %lf", &token, &pair, &position) != 3 ||
        !run_table(p, &call))
        return false;
    bool good = posenc_freqs_create(&p->freqs, &freqs, NULL) == POSENC_OK;
    if (good) {
        double angle = position * posenc_freqs_view(freqs).omega[pair];
        good = fabs((double)call_row(&call, 0, token)[pair] - cos(angle)) < 1e-6 &&
               fabs((double)call_row(&call, 1, token)[pair] - sin(angle)) < 1e-6;
        posenc_freqs_destroy(freqs);
    }
    call_destroy(&call);
    return good;
}

static bool one_axis(const char *id)
{
    const struct problem *with = find(id);
    struct call a, b;
    if (!run_table(with, &a))
        return false;
    struct problem without = *with;
    memset(without.freqs.mrope_section, 0, sizeof without.freqs.mrope_section);
    bool alike = run_table(&without, &b);
    if (alike) {
        for (int o = 0; o < 2; o++)
            for (int64_t r = 0; r < with->tokens; r++)
                alike &= memcmp(call_row(&a, o, r), call_row(&b, o, r),
                                (size_t)with->freqs.dim / 2 * sizeof(float)) == 0;
        call_destroy(&b);
    }
    call_destroy(&a);
    return alike;
}

/* ---- what a model says of itself ---- */

static bool length(const char *n) { return m.max_position_embeddings == atoll(n); }
static bool arrays(const char *n) { return m.n_owned == (size_t)atoll(n); }
static bool encoding(const char *name) { return strcmp(m.encoding, name) == 0; }
static bool notes(const char *words) { return strstr(m.notes, words) != NULL; }
static bool silent(const char *words) { return !notes(words); }

/* ---- files ---- */

static const struct {
    const char *word;
    bool (*holds)(const char *arguments);
} checks[] = {
    { "load", load },         { "same", same },           { "case", has_case },
    { "none", has_no_case },  { "omega", omega },         { "checked", is_checked },
    { "axes", axes },         { "attention", attention }, { "one_axis", one_axis },
    { "turned", turned },     { "length", length },       { "owned", arrays },
    { "encoding", encoding }, { "notes", notes },         { "silent", silent },
};

static bool holds(const char *line)
{
    const size_t n = strcspn(line, " ");
    if (*line == '{' || *line == '[')
        return config(line);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strlen(checks[i].word) == n && strncmp(checks[i].word, line, n) == 0)
            return checks[i].holds(line + n + strspn(line + n, " "));
    printf("# there is no such check\n");
    return false;
}

static struct {
    char name[WORD], text[LINE];
} names[MOST_NAMES]; /* the first is `each` */
static int n_names = 1;

/* A line up to its end, with the text of names in their places. */
static void expand(const char *line, char text[LINE])
{
    size_t at = 0;
    for (const char *end = line + strcspn(line, "\n"); line < end && at < LINE - 1;) {
        const size_t n = strcspn(line + 1, " ,}]\"\n");
        int k = 0;
        while (k < n_names && (*line != '$' || strlen(names[k].name) != n ||
                               strncmp(names[k].name, line + 1, n) != 0))
            k++;
        if (k == n_names) {
            text[at++] = *line++;
            continue;
        }
        at += (size_t)snprintf(text + at, LINE - at, "%s", names[k].text);
        line += 1 + n;
    }
    text[at < LINE ? at : LINE - 1] = 0;
}

static const char *next(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

static void claim(const char *sentence, const char *lines)
{
    bool all = *lines == ' ';
    for (; *lines == ' '; lines = next(lines)) {
        char text[LINE];
        expand(lines + strspn(lines, " "), text);
        if (holds(text))
            continue;
        printf("# not so: %s\n", text);
        all = false;
    }
    require(all, sentence);
}

/* What begins at a line that is not indented. */
static void take(const char *line)
{
    char text[LINE], sentence[256];
    expand(line, text);
    refusal = NULL;
    if (*line == '$') {
        char *value = strstr(text, " = ");
        if (value && n_names < MOST_NAMES) {
            snprintf(names[n_names].name, WORD, "%.*s", (int)(value - text) - 1, text + 1);
            snprintf(names[n_names++].text, LINE, "%s", value + 3);
        } else
            require(false, "names are few, and of the form $NAME = text");
    } else if (strncmp(text, "refused ", 8) == 0) {
        refusal = text + 8;
        snprintf(sentence, sizeof sentence, "refused, naming %.200s", refusal);
        claim(sentence, next(line));
    } else if (strncmp(text, "each ", 5) == 0) {
        for (char *rest, *name = strtok_r(text + 5, " ", &rest); name;
             name = strtok_r(NULL, " ", &rest)) {
            snprintf(names[0].text, LINE, "%s", name);
            claim(name, next(line));
        }
    } else
        claim(text, next(line));
}

static void run(const char *path)
{
    static char text[FILE_BYTES];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    require(n > 0 && n < sizeof text - 1, path);
    snprintf(names[0].name, WORD, "each");
    for (char *go_on; (go_on = strstr(text, "\n        "));)
        *go_on = ' ';
    bool under = false; /* a claim: whose lines it has read itself */
    for (const char *line = text; *line; line = next(line)) {
        if (*line == ' ' && !under)
            require(false, "a line is under no claim");
        if (*line == ' ')
            continue;
        under = *line != '#' && *line != '\n' && *line != '$';
        if (under || *line == '$')
            take(line);
    }
    model_free(&m);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: test_claims FILE\n", stderr);
        return 2;
    }
    run(argv[1]);
    return tap_end();
}
