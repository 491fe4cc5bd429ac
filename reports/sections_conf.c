/*
 * Sections about right and wrong, and about the machine.
 */
#define _POSIX_C_SOURCE 200809L
#include "env.h"
#include "sections.h"

#include <string.h>

static bool failed(const struct conf_row *c)
{
    return strcmp(c->status, "fail") == 0 || strcmp(c->status, "crash") == 0;
}

/* The same check failing in the same way, on another backend. */
static bool alike(const struct conf_row *a, const struct conf_row *b)
{
    return failed(b) && strcmp(a->id, b->id) == 0 && strcmp(a->suite, b->suite) == 0 &&
           strcmp(a->status, b->status) == 0 && strcmp(a->witness, b->witness) == 0 &&
           strcmp(a->got, b->got) == 0 && strcmp(a->reason, b->reason) == 0;
}

/* "avx512, avx2" of the rows like row `at`; false when one before it named them. */
static bool name_alike(const struct results *r, size_t at, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < r->n_conf; i++) {
        if (!alike(&r->conf[at], &r->conf[i]))
            continue;
        if (i < at)
            return false;
        if (used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
                                     r->conf[i].backend);
    }
    return true;
}

int section_failures(const struct results *r, size_t most, struct grid *grid)
{
    int n = 0;
    size_t listed = 0;
    grid_begin(grid, "backend|case|what|where|repeat with");
    for (size_t i = 0; i < r->n_conf; i++) {
        const struct conf_row *c = &r->conf[i];
        char who[256];
        if (!failed(c))
            continue;
        n++;
        if (listed == most || !name_alike(r, i, who, sizeof who))
            continue;
        listed++;
        bool crash = strcmp(c->status, "crash") == 0;
        const char *more =
            strncmp(c->reason, "got ", 4) == 0 ? "" : c->reason; /* told apart, next */
        grid_cell(grid, "%s", who);
        grid_cell(grid, "%s", c->id);
        if (*c->metric && !crash)
            grid_cell(grid, "%s, limit %.4g%s%s", show_error(c->max, c->metric), c->limit,
                      *more ? "; " : "", more);
        else
            grid_cell(grid, "%s%s", crash ? "crashed: " : "", c->reason);
        if (*c->metric && *c->got && *c->witness && !crash)
            grid_cell(grid, "%s, got %s, want %s", c->witness, c->got, c->want);
        else
            grid_cell(grid, "%s", c->witness);
        grid_cell(grid, "%s", c->repro);
    }
    return n;
}

static void tally_cell(struct tally t, const struct look *look, struct grid *grid)
{
    int ran = t.pass + t.fail + t.crash + t.weak;
    if (t.total == 0)
        grid_cell(grid, "%s", look->utf8 ? "·" : ".");
    else if (ran == 0)
        grid_cell(grid, "%s", t.unsupported ? "cannot run" : "skipped");
    else if (t.crash)
        grid_cell(grid, "%s %d/%d", look->utf8 ? "☠" : "CRASH", t.crash, ran);
    else if (t.fail)
        grid_cell(grid, "%s %d/%d", look->utf8 ? "✗" : "FAIL", t.fail, ran);
    else if (t.weak)
        grid_cell(grid, "%s %d, %d weak", look->utf8 ? "●" : "ok", t.pass, t.weak);
    else
        grid_cell(grid, "%s %d", look->utf8 ? "●" : "ok", t.pass);
}

static void begin_by_backend(const struct results *r, const char *first, struct grid *grid)
{
    char head[1024];
    size_t at = (size_t)snprintf(head, sizeof head, "%s", first);
    for (size_t b = 0; b < r->n_backends && at < sizeof head; b++)
        at += (size_t)snprintf(head + at, sizeof head - at, "|%s", r->backends[b].id);
    grid_begin(grid, head);
}

void section_matrix_by_kernel(const struct results *r, const struct look *look,
                              struct grid *grid)
{
    begin_by_backend(r, "kernel", grid);
    for (size_t k = 0; k < r->n_kernels; k++) {
        grid_cell(grid, "%s", r->kernels[k]);
        for (size_t b = 0; b < r->n_backends && (int)b + 1 < grid->columns; b++)
            tally_cell(tally_conf(r, r->kernels[k], r->backends[b].id, NULL), look, grid);
    }
}

void section_matrix_by_suite(const struct results *r, const struct look *look,
                             struct grid *grid)
{
    const char *suites[16];
    size_t n = 0;
    for (size_t i = 0; i < r->n_conf; i++) {
        size_t s = 0;
        while (s < n && strcmp(suites[s], r->conf[i].suite) != 0)
            s++;
        if (s == n && n < 16)
            suites[n++] = r->conf[i].suite;
    }
    begin_by_backend(r, "evidence", grid);
    for (size_t s = 0; s < n; s++) {
        grid_cell(grid, "%s", suites[s]);
        for (size_t b = 0; b < r->n_backends && (int)b + 1 < grid->columns; b++)
            tally_cell(tally_conf(r, NULL, r->backends[b].id, suites[s]), look, grid);
    }
}

/* f32, and what else was timed, or was checked alone. */
static bool is_of_interest(const struct results *r, const char *dtype)
{
    bool plain = strcmp(dtype, "f32") == 0, other = false;
    for (size_t i = 0; i < r->n_bench; i++)
        if (strcmp(r->bench[i].dtype, dtype) == 0)
            return true;
    for (size_t i = 0; i < r->n_conf && !other; i++)
        other = strcmp(r->conf[i].dtype, "f32") == 0;
    return plain || !other;
}

static void worst_error_cells(const struct conf_row *c, struct grid *grid)
{
    grid_cell(grid, "%s", c->kernel);
    grid_cell(grid, "%s", c->dtype);
    grid_cell(grid, "%s", c->profile);
    grid_cell(grid, "%s", c->backend);
    grid_cell(grid, "%s", show_error(c->max, c->metric));
    grid_cell(grid, "%.3g", c->limit);
    grid_cell(grid, "%s", c->witness);
    if (c->checked > 0.0)
        grid_cell(grid, "%s, %s values", c->coverage, show_count(c->checked));
    else
        grid_cell(grid, "%s", c->coverage);
}

void section_worst_errors(const struct results *r, struct grid *grid)
{
    static const char *const profiles[] = { "exact", "hf_f32", "ggml_f32", "torch_exp_f32",
                                            "given" };
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    enum { PROFILES = sizeof profiles / sizeof *profiles, DTYPES = 3 };
    grid_begin(grid, "kernel|type|profile|backend|>worst error|>limit|at|evidence");
    for (size_t k = 0; k < r->n_kernels; k++)
        for (int d = 0; d < DTYPES; d++) {
            size_t n = is_of_interest(r, dtypes[d]) ? PROFILES : 0;
            for (size_t p = 0; p < n; p++)
                for (size_t b = 0; b < r->n_backends; b++) {
                    const struct conf_row *c = worst_error(r, r->kernels[k], dtypes[d],
                                                           r->backends[b].id, profiles[p]);
                    if (c)
                        worst_error_cells(c, grid);
                }
        }
}

/* The ranges of a kernel and profile in order of appearance. */
static size_t ranges_of(const struct results *r, const char *kernel, const char *profile,
                        const char **ranges, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_conf; i++) {
        const struct conf_row *c = &r->conf[i];
        if (!*row_range(c) || strcmp(c->kernel, kernel) != 0 ||
            strcmp(c->profile, profile) != 0 || !*c->metric || *narrow_name(c->dtype))
            continue;
        size_t k = 0;
        while (k < n && strcmp(ranges[k], row_range(c)) != 0)
            k++;
        if (k == n && n < most)
            ranges[n++] = row_range(c);
    }
    return n;
}

/* The worst row of a range: scans and searches cover it, and a backend judged by absolute error
 * is worse than any judged in ulp. */
static const struct conf_row *range_row(const struct results *r, const char *kernel,
                                        const char *profile, const char *backend,
                                        const char *range)
{
    const struct conf_row *worst = NULL;
    for (size_t i = 0; i < r->n_conf; i++) {
        const struct conf_row *c = &r->conf[i];
        if (strcmp(c->kernel, kernel) != 0 || strcmp(c->profile, profile) != 0 ||
            strcmp(c->backend, backend) != 0 || strcmp(row_range(c), range) != 0 ||
            !*c->metric || *narrow_name(c->dtype))
            continue;
        bool same = worst && strcmp(worst->metric, c->metric) == 0;
        if (!worst || (same ? c->max > worst->max : strcmp(c->metric, "abs") == 0))
            worst = c;
    }
    return worst;
}

int section_errors_by_range(const struct results *r, const char *kernel, const char *profile,
                            struct grid *grid)
{
    enum { MOST = GRID_COLUMNS - 2 };
    const char *ranges[MOST];
    size_t n = ranges_of(r, kernel, profile, ranges, MOST);
    char head[512] = "backend";
    size_t at = strlen(head);
    for (size_t i = 0; i < n && at < sizeof head; i++)
        at +=
            (size_t)snprintf(head + at, sizeof head - at, "|><2^%s", ranges[i] + strlen("p2e"));
    if (at < sizeof head)
        snprintf(head + at, sizeof head - at, "|within 1 ulp");
    grid_begin(grid, head);
    int rows = 0;
    for (size_t b = 0; n > 0 && b < r->n_backends; b++) {
        const struct conf_row *row[MOST];
        const char *first_off = NULL, *last_right = NULL;
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            row[i] = range_row(r, kernel, profile, r->backends[b].id, ranges[i]);
            any = any || row[i];
            if (row[i] && !first_off && !row_is_exact(row[i]))
                first_off = ranges[i];
            if (row[i] && !first_off)
                last_right = ranges[i];
        }
        if (!any)
            continue;
        rows++;
        grid_cell(grid, "%s", r->backends[b].id);
        for (size_t i = 0; i < n; i++)
            grid_cell(grid, "%s", row[i] ? show_error(row[i]->max, row[i]->metric) : "-");
        if (!first_off)
            grid_cell(grid, "everywhere");
        else if (!last_right)
            grid_cell(grid, "nowhere");
        else
            grid_cell(grid, "below 2^%s", last_right + strlen("p2e"));
    }
    return rows;
}

void section_backends(const struct results *r, struct grid *grid)
{
    grid_begin(grid, "backend|family|runs here|what it is");
    for (size_t b = 0; b < r->n_backends; b++) {
        const struct backend_row *row = &r->backends[b];
        grid_cell(grid, "%s", row->id);
        grid_cell(grid, "%s", row->family);
        if (row->available)
            grid_cell(grid, "yes");
        else
            grid_cell(grid, "no: %s", row->reason);
        grid_cell(grid, "%s", row->description);
    }
}

static void fact(struct grid *grid, const char *name, const char *value)
{
    grid_cell(grid, "%s", name);
    grid_cell(grid, "%s", *value ? value : "not recorded");
}

static void cache_fact(const json_t *env, struct grid *grid)
{
    char text[200] = "";
    size_t at = 0;
    const json_t *caches = json_object_get(env, "caches");
    for (size_t i = 0; i < json_array_size(caches) && at < sizeof text; i++) {
        const json_t *c = json_array_get(caches, i);
        const char *type = record_text(c, "type");
        if (strcmp(type, "Instruction") == 0)
            continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%sL%.0f%s %s", at ? ", " : "",
                               record_value(c, "level", 0.0),
                               strcmp(type, "Data") == 0 ? "d" : "",
                               show_bytes(record_value(c, "bytes", 0.0)));
    }
    fact(grid, "caches", text);
}

int section_environment(const struct results *r, struct grid *grid)
{
    const json_t *env = r->env;
    char text[512];
    grid_begin(grid, "fact|value");
    if (!env)
        return 0;
    snprintf(text, sizeof text, "%s (%s)", record_text(env, "cpu.name"),
             record_text(env, "cpu.key"));
    fact(grid, "CPU", text);
    if (*record_text(env, "emulator"))
        fact(grid, "emulator", record_text(env, "emulator"));
    const char *virt = record_text(env, "virt.kind");
    snprintf(text, sizeof text, "%.0f allowed of %.0f%s%s",
             record_value(env, "cpus.allowed", 0.0), record_value(env, "cpus.online", 0.0),
             *virt ? ", under " : "", virt);
    fact(grid, "CPUs", text);
    cache_fact(env, grid);
    snprintf(text, sizeof text, "governor %s, driver %s, boost %s",
             record_text(env, "freq.governor"), record_text(env, "freq.driver"),
             record_text(env, "freq.boost"));
    fact(grid, "clock", text);
    snprintf(text, sizeof text, "%s, %s, %s", record_text(env, "os.distro"),
             record_text(env, "os.kernel"), record_text(env, "os.libc"));
    fact(grid, "system", text);
    snprintf(text, sizeof text, "pages of %s, transparent huge pages: %s",
             show_bytes(record_value(env, "mem.page", 0.0)), record_text(env, "mem.thp"));
    fact(grid, "memory", text);
    snprintf(text, sizeof text, "%s %s, %s, %s", record_text(env, "build.cc"),
             record_text(env, "build.version"), record_text(env, "build.type"),
             record_text(env, "build.flags"));
    fact(grid, "build", text);
    snprintf(text, sizeof text, "%s (%s), overhead %s", record_text(env, "timer.clock"),
             record_text(env, "timer.source"),
             show_time(record_value(env, "timer.overhead_ns", 0.0)));
    fact(grid, "timer", text);
    const json_t *noise = json_object_get(r->footer, "noise");
    double null_pct = median_null(r);
    int at =
        noise
            ? snprintf(text, sizeof text, "load %.2f, %.2f %% stolen",
                       record_value(noise, "load1", 0.0), record_value(noise, "steal_pct", 0.0))
            : snprintf(text, sizeof text, "load %.2f", record_value(env, "noise.load1", 0.0));
    if (null_pct >= 0.0)
        snprintf(text + at, sizeof text - (size_t)at,
                 ", a copy of a backend %.1f %% from itself (median)", null_pct);
    fact(grid, "noise", text);
    json_t *trust = env_trust(env, noise, null_pct);
    snprintf(text, sizeof text, "%s", record_text(trust, "grade"));
    const json_t *reasons = json_object_get(trust, "reasons");
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? "; " : ": ",
                 json_string_value(json_array_get(reasons, i)));
    }
    json_decref(trust);
    fact(grid, "trust", text);
    return 1;
}
