/*
 * test_claims FILE: what configurations become or why they are refused (claims/README.md).
 */
#define _XOPEN_SOURCE 700
#include "conformance/engine/plugin.h"
#include "conformance/problem/notation.h"
#include "conformance/suites/suites.h"
#include "conformance/tap/tap.h"
#include "claim_text.h"
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 1 << 17, LINE = CLAIM_LINE, WORD = CLAIM_WORD, MOST_LINES = 2048 };

static struct model m;
static char error[MODEL_ERROR];
static const char *refusal; /* words of a claim that refuses; else NULL */

/* ---- loading ---- */

static int load_bytes(const char *bytes, size_t n, const char *path, struct model *model)
{
    FILE *file = fmemopen((char *)bytes, n, "r");
    const int status = file ? model_from_file(file, path, model, error) : -2;
    if (file)
        fclose(file);
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

static bool loads(const char *bytes, size_t n, const char *path)
{
    model_free(&m);
    return as_claimed(load_bytes(bytes, n, path, &m));
}

static bool config(const char *text) { return loads(text, strlen(text), "claim.json"); }
static bool with_nul(const char *text) { return loads(text, strlen(text) + 1, "claim.json"); }

static bool at_path(const char *arguments)
{
    char path[LINE];
    const size_t n = strcspn(arguments, "{");
    snprintf(path, sizeof path, "%.*s", (int)n - 1, arguments);
    return loads(arguments + n, strlen(arguments + n), path);
}

/* A hundred thousand brackets after a text: the parser gives up, and does not run out of stack. */
static bool deep(const char *text)
{
    enum { DEEP = 100000 };
    static char whole[LINE + DEEP];
    const size_t n = strlen(text);
    memcpy(whole, text, n);
    memset(whole + n, '[', DEEP);
    return loads(whole, n + DEEP, "claim.json");
}

/* The keys of a GGUF file; the same without its last bytes. */
static bool in_gguf(const char *text)
{
    size_t n = 0, less = 0;
    if (*text != '{')
        less = strtoul(text, (char **)&text, 10);
    unsigned char *bytes = claim_gguf(text, &n);
    const bool good = bytes && less < n && loads((char *)bytes, n - less, "claim.gguf");
    free(bytes);
    return good;
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

/* Fields have the values stated, in the spelling that is stated. */
static bool has_fields(const struct problem *p, const char *fields, bool tell)
{
    struct arena arena = { .last = NULL };
    char name[WORD], value[WORD];
    bool all = p != NULL;
    for (int n = 0; all && sscanf(fields, "%127[^= ]=%127s %n", name, value, &n) == 2;
         fields += n) {
        struct problem stated = *p;
        struct field field;
        char got[LINE] = "", want[LINE] = "", why[NOTATION_ERROR] = "it has no such field";
        if (kernel_field_find(p->kernel, name, &field) &&
            field_read(&field, &stated, value, &arena, why)) {
            field_print(&field, p, got, sizeof got, 0);
            field_print(&field, &stated, want, sizeof want, 0);
            snprintf(why, sizeof why, "it is %.900s", got);
        }
        all = *got && strcmp(got, want) == 0;
        if (!all && tell)
            printf("# %s=%s: %s\n", name, value, why);
    }
    arena_free(&arena);
    return all && (!*fields || !p);
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
    for (size_t i = 0; i < m.n_verify; i++)
        if (has_fields(&m.verify[i], fields, false))
            return true;
    return false;
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
    static struct model other;
    bool alike = load_bytes(text, strlen(text), "claim.json", &other) == 0;
    if (!alike)
        printf("# %s\n", error);
    alike = alike && m.n_cases == other.n_cases && m.n_verify == other.n_verify;
    for (size_t i = 0; alike && i < m.n_cases; i++)
        alike = same_problem(&m.cases[i].problem, &other.cases[i].problem);
    model_free(&other);
    return alike;
}

/* Ids are of [a-z0-9_./-] and unlike each other. */
static bool ids(const char *unused)
{
    (void)unused;
    for (size_t i = 0; i < m.n_cases; i++) {
        const char *id = m.cases[i].id;
        bool good = id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_./-")] == '\0';
        for (size_t j = 0; j < i; j++)
            good &= strcmp(id, m.cases[j].id) != 0;
        if (!good)
            return false;
    }
    return true;
}

/* ---- what plans and tables say ---- */

/* What the plan of a problem says, until the next is asked; NULL where it cannot be made. */
static const struct posenc_freqs_view *plan_of(const struct problem *p)
{
    static struct posenc_freqs *freqs;
    static struct posenc_freqs_view view;
    posenc_freqs_destroy(freqs);
    freqs = NULL;
    if (!p || posenc_freqs_create(&p->freqs, &freqs, NULL) != POSENC_OK)
        return NULL;
    view = posenc_freqs_view(freqs);
    return &view;
}

static bool omega(const char *arguments)
{
    const struct posenc_freqs_view *view = plan_of(take_case(&arguments));
    double base, above, below, factor = 1.0;
    int pair, count = 1, n = 0;
    if (!view || sscanf(arguments, "%d%nx%d", &pair, &n, &count) < 1 ||
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

static bool attention(const char *arguments)
{
    const struct posenc_freqs_view *view = plan_of(take_case(&arguments));
    double value, within;
    if (!view || sscanf(arguments, "%lf %lf", &value, &within) != 2)
        return false;
    printf("# it is %.17g\n", view->attention_factor);
    return fabs(view->attention_factor - value) <= within;
}

static bool axes(const char *arguments)
{
    const struct posenc_freqs_view *view = plan_of(take_case(&arguments));
    bool alike = view && view->axis && view->n_pairs == (int64_t)strlen(arguments);
    for (int64_t i = 0; alike && i < view->n_pairs; i++)
        alike = view->axis[i] == arguments[i] - '0';
    return alike;
}

/* A call that has run, until the next of the same place; NULL where the library does not take it. */
static const struct call *run_call(const struct problem *p, int place)
{
    static struct call calls[2];
    static bool made[2];
    struct call *call = &calls[place];
    if (made[place])
        call_destroy(call);
    enum posenc_status status = p ? call_create(call, p, &memory_plain) : POSENC_ERR_ARGUMENT;
    made[place] = status == POSENC_OK;
    if (made[place])
        status = call_run(call, posenc_backend_find("scalar"));
    if (status != POSENC_OK)
        printf("# %s: %s\n", p ? posenc_kernel_name(p->kernel) : "there is no such case",
               posenc_status_string(status));
    return status == POSENC_OK ? call : NULL;
}

static bool turned(const char *arguments)
{
    const struct problem *p = take_case(&arguments);
    const struct posenc_freqs_view *view = plan_of(p);
    const struct call *call = run_call(p, 0);
    long long token, pair;
    double position;
    if (sscanf(arguments, "%lld %lld %lf", &token, &pair, &position) != 3 || !view || !call)
        return false;
    const double angle = position * view->omega[pair];
    return fabs((double)call_row(call, 0, token)[pair] - cos(angle)) < 1e-6 &&
           fabs((double)call_row(call, 1, token)[pair] - sin(angle)) < 1e-6;
}

static bool one_axis(const char *id)
{
    const struct problem *with = find(id);
    const struct call *a = run_call(with, 0);
    if (!a)
        return false;
    struct problem without = *with;
    memset(without.freqs.mrope_section, 0, sizeof without.freqs.mrope_section);
    const struct call *b = run_call(&without, 1);
    bool alike = b != NULL;
    for (int o = 0; alike && o < 2; o++)
        for (int64_t r = 0; r < with->tokens; r++)
            alike &= memcmp(call_row(a, o, r), call_row(b, o, r),
                            (size_t)with->freqs.dim / 2 * sizeof(float)) == 0;
    return alike;
}

/* ---- what the library makes of all calls ---- */

/* A problem may be large (BLOOM's scores are 117 MB): few tokens or queries say as much. */
static bool runs_small(struct problem p)
{
    p.tokens = p.tokens > 8 ? 8 : p.tokens;
    p.queries = p.queries > 4 ? 4 : p.queries;
    if (p.relative == RELATIVE_TRANSFORMER_XL) /* whose queries are the last of the keys */
        p.query_offset = p.keys - p.queries;
    return run_call(&p, 0) != NULL;
}

static bool works(const char *unused)
{
    (void)unused;
    bool all = m.n_cases > 0 && m.n_verify > 0 && *m.source && *m.checked;
    for (size_t i = 0; all && i < m.n_cases; i++)
        all = runs_small(m.cases[i].problem) && *m.cases[i].label;
    for (size_t i = 0; all && i < m.n_verify; i++)
        all = runs_small(m.verify[i]);
    return all;
}

static bool reaches_the_end(const char *unused)
{
    (void)unused;
    for (const struct problem *p = m.verify; p < m.verify + m.n_verify; p++) {
        const int64_t end =
            p->kernel == POSENC_KERNEL_learned_add ? p->rows : m.max_position_embeddings;
        if (p->first + p->tokens == end || p->keys == end)
            return true;
    }
    return false;
}

static size_t n_judged, n_failed;

static void on_result(void *unused, const struct conf_result *r)
{
    (void)unused;
    const bool judges = r->status != CONF_UNSUPPORTED && r->status != CONF_SKIPPED;
    n_judged += judges;
    if (!judges || r->status == CONF_PASS)
        return;
    n_failed++;
    printf("# %s %s: %s %s, %g %s where %g is the limit, at %s\n", r->backend->name, r->id,
           conf_status_name[r->status], r->reason, r->max, r->metric ? r->metric : "", r->limit,
           r->witness);
}

/* Each call on every backend that runs here, against the oracle.  The scalar backend
 * provides everything, so that each problem has a result at least. */
static bool conforms(const char *unused)
{
    (void)unused;
    const struct conf_options options = { .suite = "accuracy",
                                          .case_glob = "*/model*",
                                          .problem = m.verify,
                                          .n_problems = m.n_verify };
    enum { MOST_BACKENDS = 64 };
    const struct posenc_backend *usable[MOST_BACKENDS], *backend;
    size_t n = 0;
    for (size_t i = 0; n < MOST_BACKENDS && (backend = posenc_backend_at(i)); i++)
        if (!posenc_backend_obstacle(backend))
            usable[n++] = backend;
    n_judged = n_failed = 0;
    conf_run(usable, n, &options, on_result, NULL);
    return n_judged >= m.n_verify && m.n_verify > 0 && n_failed == 0;
}

/* ---- what a model says of itself ---- */

static bool built_in(const char *n) { return model_name_at((size_t)atoll(n) - 1) != NULL; }
static bool length(const char *n) { return m.max_position_embeddings == atoll(n); }
static bool arrays(const char *n) { return m.n_owned == (size_t)atoll(n); }
static bool title(const char *text) { return strcmp(m.title, text) == 0; }
static bool name(const char *text) { return strcmp(m.name, text) == 0; }
static bool encoding(const char *text) { return strcmp(m.encoding, text) == 0; }
static bool storage(const char *type) { return strcmp(dtype_names[m.storage], type) == 0; }
static bool said_by(const char *member) { return strcmp(m.storage_from, member) == 0; }
static bool notes(const char *words) { return strstr(m.notes, words) != NULL; }
static bool silent(const char *words) { return !notes(words); }

static const struct {
    const char *word;
    bool (*holds)(const char *arguments);
} checks[] = {
    { "load", load },         { "same", same },           { "case", has_case },
    { "none", has_no_case },  { "omega", omega },         { "checked", is_checked },
    { "axes", axes },         { "attention", attention }, { "one_axis", one_axis },
    { "turned", turned },     { "length", length },       { "owned", arrays },
    { "encoding", encoding }, { "notes", notes },         { "silent", silent },
    { "at", at_path },        { "nul", with_nul },        { "deep", deep },
    { "title", title },       { "name", name },           { "built_in", built_in },
    { "ids", ids },           { "works", works },         { "end", reaches_the_end },
    { "conforms", conforms }, { "storage", storage },     { "said_by", said_by },
    { "gguf", in_gguf },
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

static void claim(const char *sentence, char *const *lines, int n)
{
    bool all = n > 0;
    for (int i = 0; i < n; i++) {
        char text[LINE];
        claim_expand(lines[i] + strspn(lines[i], " "), text);
        if (holds(text))
            continue;
        printf("# not so: %s\n", text);
        all = false;
    }
    require(all, sentence);
}

/* A line that is not indented, and the n after it that are. */
static void take(const char *line, char *const *lines, int n)
{
    char text[LINE], sentence[256];
    claim_expand(line, text);
    refusal = NULL;
    if (*line == '$') {
        char *value = strstr(text, " = ");
        if (value)
            *value = '\0';
        if (!value || n > 0 || !claim_name(text + 1, value + 3))
            require(false, "names are few, and of the form $NAME = text");
    } else if (strncmp(text, "refused ", 8) == 0) {
        refusal = text + 8;
        snprintf(sentence, sizeof sentence, "refused, naming %.200s", refusal);
        claim(sentence, lines, n);
    } else if (strncmp(text, "each ", 5) == 0) {
        for (char *rest, *name = strtok_r(text + 5, " ", &rest); name;
             name = strtok_r(NULL, " ", &rest)) {
            claim_name("each", name);
            claim(name, lines, n);
        }
    } else
        claim(text, lines, n);
}

static void run(const char *path)
{
    static char text[FILE_BYTES], *lines[MOST_LINES];
    int n_lines = 0;
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    for (char *go_on; (go_on = strstr(text, "\n        "));)
        *go_on = ' ';
    for (char *rest, *line = strtok_r(text, "\n", &rest); line && n_lines < MOST_LINES;
         line = strtok_r(NULL, "\n", &rest))
        if (*line != '#')
            lines[n_lines++] = line;
    require(bytes > 0 && bytes < sizeof text - 1 && n_lines > 0 && n_lines < MOST_LINES &&
                *lines[0] != ' ',
            path);
    for (int i = 0, n; i < n_lines; i += 1 + n) {
        for (n = 0; i + 1 + n < n_lines && *lines[i + 1 + n] == ' ';)
            n++;
        take(lines[i], &lines[i + 1], n);
    }
    model_free(&m);
}

int main(int argc, char **argv)
{
    if (argc != 2 || plugins_of_build()) {
        fputs("usage: test_claims FILE, and every plug-in of the build loads\n", stderr);
        return 2;
    }
    char models[LINE] = "";
    for (size_t i = 0, at = 0; model_name_at(i); i++)
        at += (size_t)snprintf(models + at, LINE - at, "%s ", model_name_at(i));
    claim_name("models", models);
    run(argv[1]);
    return tap_end();
}
