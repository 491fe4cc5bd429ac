/*
 * posenc verify -v: one golden vector in depth, or one case of another suite as the engine judges it.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/suites/suites.h"
#include "base/text/text.h"
#include "conformance/oracle/oracle.h"
#include "conformance/problem/notation.h"
#include "worker.h"
#include "data.h"
#include "show.h"
#include "work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 6 };

/* "3", "0.25", or "(0, 2, 5)" where there are several axes. */
static void print_position(const struct problem *p, int64_t b, int64_t t)
{
    int axes = problem_axes(p);
    for (int axis = 0; axis < axes; axis++)
        printf("%s%.10g", axis > 0 ? ", " : axes > 1 ? "(" : "", problem_time(p, b, t, axis));
    printf("%s", axes > 1 ? ")" : "");
}

static void print_positions(const struct problem *p)
{
    enum { FEW = 8 };
    printf("  %-36s", "positions");
    bool drawn = problem_draws_positions(p);
    bool consecutive = !p->positions && !drawn && p->time_step == 0.0;
    if (p->position_kind == POSENC_OFFSET || (consecutive && problem_axes(p) == 1)) {
        printf("%lld .. %lld\n", (long long)p->first, (long long)(p->first + p->tokens - 1));
        return;
    }
    int64_t n = drawn ? p->batch * p->tokens : p->tokens;
    for (int64_t i = 0; i < n && i < FEW; i++) {
        fputs(i > 0 ? ", " : "", stdout);
        print_position(p, i / p->tokens, i % p->tokens);
    }
    puts(n > FEW ? ", ..." : "");
}

/* Parameters that are not blank; profile and base always. */
static void print_problem(const struct problem *p)
{
    enum { FIELD_LIST = 4096 };
    printf("  %-36s%s\n", "kernel", posenc_kernel_name(p->kernel));
    bool tokens = false;
    struct field field;
    for (int i = 0; kernel_field(p->kernel, i, &field); i++) {
        char name[FIELD_TEXT], value[FIELD_LIST];
        field_name(&field, name);
        tokens = tokens || strcmp(name, "position_kind") == 0;
        bool always = strcmp(name, "profile") == 0 || strcmp(name, "rope_theta") == 0;
        if (field.list != LIST_POSITIONS && (always || !field_is_blank(&field, p))) {
            field_print(&field, p, value, sizeof value, 0);
            printf("  %-36s%s\n", name, value);
        }
    }
    if (tokens)
        print_positions(p);
}

/* In ulp of the type that holds the output. */
static double error_of(const struct call *call, int o, float got, double want)
{
    enum posenc_dtype dtype = call->outputs[o].tensor.dtype;
    return dtype == POSENC_F32 ? ulp_error(got, want)
                               : stored_error(dtype, got, want, 0.0).error;
}

/* The row and the first of the columns to show: those round the worst value of this backend. */
static void worst_place(const struct call *call, const struct vector_case *c, int o,
                        int64_t *row, int64_t *column)
{
    /* of a rotation, ulp of the result say more about cancellation than about the kernel */
    bool rotation = kernel_rotates(c->problem.kernel);
    double worst = -1.0;
    for (int64_t r = 0; r < c->rows[o]; r++) {
        const float *got = call_row(call, o, r);
        for (int64_t i = 0; i < c->width[o]; i++) {
            double want = c->want[o][r * c->width[o] + i];
            double error =
                rotation ? fabs((double)got[i] - want) : error_of(call, o, got[i], want);
            if (isfinite(error) && error > worst) {
                worst = error;
                *row = r;
                *column = i;
            }
        }
    }
    *column = *column > SHOWN / 2 ? *column - SHOWN / 2 : 0;
}

static void print_values(const struct posenc_backend *backend, const struct vector_case *c,
                         struct call *call, int o, int64_t row, int64_t column)
{
    const double *want = c->want[o] + row * c->width[o];
    const float *got = call_row(call, o, row);
    printf("  %s %s, row %lld\n", backend->name, c->output_names[o], (long long)row);
    for (int64_t i = column; i < c->width[o] && i < column + SHOWN; i++)
        printf("    [%5lld]  got %-16.9g %-15a  want %-24.17g  off by %.3g ulp\n", (long long)i,
               (double)got[i], (double)got[i], want[i], error_of(call, o, got[i], want[i]));
}

/* The calls shown so far: a backend with the same bits is not printed again. */
struct shown {
    size_t n;
    struct {
        const struct posenc_backend *backend;
        struct call call;
    } of[BACKENDS_MAX];
};

static bool same_bits(const struct call *a, const struct call *b, const struct vector_case *c)
{
    for (int o = 0; o < c->n_outputs; o++) {
        for (int64_t r = 0; r < c->rows[o]; r++)
            if (memcmp(call_row(a, o, r), call_row(b, o, r),
                       (size_t)c->width[o] * sizeof(float)) != 0)
                return false;
    }
    return true;
}

static void print_outputs(const struct posenc_backend *backend, const struct vector_case *c,
                          struct call *call)
{
    for (int o = 0; o < c->n_outputs; o++) {
        int64_t row = 0, column = 0;
        print_values(backend, c, call, o, 0, 0);
        worst_place(call, c, o, &row, &column);
        if (row != 0 || column != 0) {
            printf("  ... and round the largest difference:\n");
            print_values(backend, c, call, o, row, column);
        }
    }
}

static void show_backend(struct shown *shown, const struct posenc_backend *backend,
                         const struct vector_case *c)
{
    struct call *call = &shown->of[shown->n].call;
    enum posenc_status status = call_create(call, &c->problem, &memory_plain);
    if (status == POSENC_OK) {
        worker_enter(posenc_kernel_name(c->problem.kernel));
        status = call_run(call, backend);
        worker_leave();
        for (size_t i = 0; i < shown->n && status == POSENC_OK; i++) {
            if (same_bits(&shown->of[i].call, call, c)) {
                printf("  %s: the same bits as %s\n", backend->name,
                       shown->of[i].backend->name);
                call_destroy(call);
                return;
            }
        }
        if (status == POSENC_OK) {
            print_outputs(backend, c, call);
            shown->of[shown->n++].backend = backend;
            return;
        }
    }
    char text[256];
    posenc_error_text(&call->error, text, sizeof text);
    printf("  %s: %s\n", backend->name, text);
    call_destroy(call);
}

struct verdicts {
    size_t n, bad;
};

/* Prints a verdict. An unsupported backend has a result for each kernel, of no case. */
static void print_verdict(void *user, const struct conf_result *r)
{
    struct verdicts *verdicts = user;
    if (r->status == CONF_UNSUPPORTED)
        return;
    verdicts->n++;
    verdicts->bad += r->status == CONF_FAIL || r->status == CONF_CRASH;
    printf("  %-13s %-11s %s", r->backend ? r->backend->name : "", r->suite,
           conf_status_name[r->status]);
    if (r->metric) {
        struct shown_error shown = show_judged(r->max, r->limit, r->metric);
        printf("  %s (limit %s)", shown.error, shown.limit);
        if (r->worst_at[0] != '\0')
            printf(" at %s: got %a, want %.17g", r->worst_at, (double)r->got, r->want);
        printf(", %llu values, %llu not correctly rounded", (unsigned long long)r->checked,
               (unsigned long long)r->misrounded);
    }
    printf("%s%s\n", r->reason[0] != '\0' ? ": " : "", r->reason);
}

static const struct vector_case *find_case(const struct vectors *vectors, const char *id)
{
    for (size_t i = 0; i < vectors->n; i++)
        if (strcmp(vectors->cases[i].id, id) == 0)
            return &vectors->cases[i];
    return NULL;
}

static int refuse_case(const struct cli *cli, const struct vectors *vectors, const char *id)
{
    const char **names = calloc(vectors->n + 1, sizeof *names);
    for (size_t i = 0; names && i < vectors->n; i++)
        names[i] = vectors->cases[i].id;
    size_t nearest = 0;
    for (size_t i = 1; names && i < vectors->n; i++)
        if (edit_distance(id, names[i]) < edit_distance(id, names[nearest]))
            nearest = i;
    int status = names && vectors->n > 0
                     ? cli_refuse(cli, "--case", id,
                                  "no case has this id; the nearest is %s (posenc list cases)",
                                  names[nearest])
                     : cli_refuse(cli, "--case", id, "no case has this id");
    free(names);
    return status;
}

/* Parameters, then what each backend makes of them. */
static void show_values(const struct vector_case *c, const struct selection *selected)
{
    print_problem(&c->problem);
    puts("\nValues (the reference is real mathematics, or the profile's, as f64 rounded to "
         "odd)");
    struct shown *shown = calloc(1, sizeof *shown);
    for (size_t i = 0; i < selected->n && shown; i++)
        if (posenc_provides(selected->backends[i], c->problem.kernel) &&
            !posenc_backend_obstacle(selected->backends[i]))
            show_backend(shown, selected->backends[i], c);
    while (shown && shown->n > 0)
        call_destroy(&shown->of[--shown->n].call);
    free(shown);
}

/* The outputs of a problem as the oracle has them; false when memory runs out. */
static bool fill_case(const struct call *call, struct vector_case *c, struct arena *arena)
{
    struct oracle *oracle = oracle_create(call);
    bool good = oracle != NULL;
    c->n_outputs = call->n_outputs;
    for (int o = 0; o < call->n_outputs && good; o++) {
        const struct output *out = &call->outputs[o];
        double *want = arena_get(arena, (size_t)(out->rows * out->width) * sizeof *want);
        c->output_names[o] = out->name;
        c->rows[o] = out->rows;
        c->width[o] = out->width;
        c->want[o] = want;
        good = want != NULL;
        for (int64_t r = 0; r < out->rows && good; r++)
            oracle_row(oracle, o, r, want + r * out->width, NULL);
    }
    oracle_destroy(oracle);
    return good;
}

/* Compares the problem of --problem with the oracle. */
static int show_problem(struct cli *cli)
{
    struct selection selected;
    struct problem_line line;
    struct arena arena = { NULL };
    struct call call;
    struct verdicts verdicts = { 0 };
    if (problem_take(cli, &line, &arena) != EXIT_FINE ||
        select_all(cli, &selected, true) != EXIT_FINE ||
        select_require(cli, &selected, line.problem.kernel) != EXIT_FINE ||
        call_create(&call, &line.problem, &memory_plain) != POSENC_OK) {
        arena_free(&arena);
        return EXIT_USAGE;
    }
    struct vector_case c = { .problem = line.problem };
    bool good = fill_case(&call, &c, &arena);
    call_destroy(&call);
    if (good) {
        puts("Parameters");
        show_values(&c, &selected);
        puts("\nVerdicts");
        struct conf_options options = { .only = &line.problem, .suite = "problem" };
        conf_run(selected.backends, selected.n, &options, print_verdict, &verdicts);
    }
    arena_free(&arena);
    if (!good)
        return cli_refuse_status(cli, "--problem", POSENC_ERR_MEMORY, NULL);
    return verdicts.bad ? EXIT_CONFORMANCE : EXIT_FINE;
}

/* The kernel that the id of a case begins with, where it is one. */
static int require_kernel_of(const struct cli *cli, const struct selection *selected,
                             const char *id)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(id, "/"), id);
    enum posenc_kernel kernel = posenc_kernel_find(name);
    return kernel == POSENC_KERNEL_COUNT ? EXIT_FINE : select_require(cli, selected, kernel);
}

static int show_case(struct cli *cli)
{
    struct selection selected;
    struct vectors vectors;
    const char *id = cli->cases.item[0];
    if (select_all(cli, &selected, true) != EXIT_FINE ||
        require_kernel_of(cli, &selected, id) != EXIT_FINE ||
        data_vectors(cli, &vectors) != EXIT_FINE)
        return EXIT_USAGE;
    const struct vector_case *c = find_case(&vectors, id);
    bool literal =
        id[strcspn(id, "*?[\\")] == '\0' && strlen(id) < sizeof((struct conf_result *)0)->id;
    struct verdicts verdicts = { 0 };
    if (c) {
        printf("%s\n", id);
        printf("\n  what it catches   %s\n  flags             %s\n  source            "
               "%s\n\nParameters\n",
               c->note, c->flags, c->source);
        show_values(c, &selected);
        puts("\nVerdicts");
    }
    if (literal) {
        struct conf_options options = { .full = true, .case_glob = id, .vectors = &vectors };
        conf_run(selected.backends, selected.n, &options, print_verdict, &verdicts);
    }
    const bool none = !c && verdicts.n == 0;
    const int status = none           ? refuse_case(cli, &vectors, id)
                       : verdicts.bad ? EXIT_CONFORMANCE
                                      : EXIT_FINE;
    vectors_free(&vectors);
    return status;
}

int verify_in_depth(struct cli *cli)
{
    if (cli_refuse_in_depth(cli) != EXIT_FINE)
        return EXIT_USAGE;
    if (cli->problem)
        return show_problem(cli);
    return cli->cases.n == 1
               ? show_case(cli)
               : cli_refuse(
                     cli, "--verbose", NULL,
                     "expected --case ID of one case (posenc list cases), or --problem LINE, "
                     "beside it");
}
