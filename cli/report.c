/*
 * posenc report: the main job.  Check and time every backend on the shapes of real models, or
 * render results that were saved.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/plot.h"
#include "reports/text/text.h"
#include "apart.h"
#include "errors.h"
#include "plugins.h"
#include "work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A scheme each: added sinusoids, learned rows, a rotation with scaled frequencies,
 * ALiBi, T5. */
static const char *const handful[] = { "transformer-base", "gpt2", "llama-3.1-8b", "bloom-176b",
                                       "t5-base" };
enum {
    N_HANDFUL = sizeof handful / sizeof *handful,
    MAX_PICTURES = 2 * POSENC_KERNEL_COUNT + 1
};

/* With verify and the pictures this stays under three minutes. */
static const double bench_seconds = 110.0;

/* The files of a report, in the folder where it is written. */
struct pages {
    struct folder folder;
    char md[FOLDER_PATH], html[FOLDER_PATH], jsonl[FOLDER_PATH];
    size_t n_pictures;
    struct report_picture pictures[MAX_PICTURES];
    char paths[MAX_PICTURES][FOLDER_PATH], captions[MAX_PICTURES][160];
};

/* Saved results are rendered as they are: nothing is selected, checked or timed. */
static int refuse_idle(const struct cli *cli)
{
    const struct idle_option others[] = {
        { "--vectors", cli->vectors != NULL },
        { "--dir", cli->dir != NULL },
        { "--resume", cli->resume != NULL },
    };
    return cli_refuse_idle(cli, others, sizeof others / sizeof *others,
                           "with files, --out, --all and --explain have");
}

static int render_files(struct cli *cli)
{
    struct outputs outputs;
    if (refuse_idle(cli) != EXIT_FINE ||
        outputs_open(cli, &outputs, record_formats, BY_REPORT) != EXIT_FINE)
        return EXIT_USAGE;
    json_t *records = json_array();
    int status = EXIT_FINE;
    for (int i = 0; i < cli->n_operands && status == EXIT_FINE; i++) {
        char error[RECORDS_ERROR];
        if (records_load(cli->operands[i], records, error) != 0)
            status = cli_refuse(cli, "results", NULL, "%s", error);
    }
    struct render_options options = { .color = -1, .all = cli->all, .explain = cli->explain };
    if (status == EXIT_FINE)
        status = outputs_write(cli, &outputs, records, &options, NULL);
    json_decref(records);
    if (status != EXIT_FINE) {
        outputs_discard(&outputs);
        return status;
    }
    return outputs_commit(cli, &outputs);
}

static int make_folder(const struct cli *cli, struct pages *pages)
{
    outputs_finish_on_signal();
    if (folder_begin(cli, cli->dir ? cli->dir : "posenc-report", &pages->folder) != EXIT_FINE)
        return EXIT_USAGE;
    const char *path = pages->folder.partial;
    snprintf(pages->md, sizeof pages->md, "%.4000s/report.md", path);
    snprintf(pages->html, sizeof pages->html, "%.4000s/report.html", path);
    snprintf(pages->jsonl, sizeof pages->jsonl, "%.4000s/results.jsonl", path);
    outputs_remove_too(pages->jsonl, path);
    return EXIT_FINE;
}

/* The models' shapes; without --model also the main kernels in the L2 cache and in memory. */
static size_t gather_cases(struct work *work, struct bench_case **cases)
{
    size_t n = work_model_cases(work, cases);
    if (work->cli->model.n > 0 || !*cases)
        return n;
    struct bench_case *footprints = NULL;
    size_t n_footprints = work_footprint_cases(work, &footprints);
    struct bench_case *all = realloc(*cases, (n + n_footprints + 1) * sizeof *all);
    for (size_t i = 0; i < n_footprints && all; i++) {
        enum posenc_kernel kernel = footprints[i].problem.kernel;
        bool main_kernel = work->selected.any_kernel || kernel == POSENC_KERNEL_sinusoidal ||
                           kernel == POSENC_KERNEL_rope_table ||
                           kernel == POSENC_KERNEL_rope_half;
        const char *level = footprints[i].footprint;
        if (main_kernel && level && (strcmp(level, "L2") == 0 || strcmp(level, "DRAM") == 0))
            all[n++] = footprints[i];
    }
    free(footprints);
    *cases = all ? all : *cases;
    return n;
}

static struct plot_target next_picture(struct pages *pages, const char *kind,
                                       const char *kernel)
{
    size_t i = pages->n_pictures;
    snprintf(pages->paths[i], sizeof pages->paths[i], "%.3900s/%s%s%s.svg",
             pages->folder.partial, kind, *kernel ? "-" : "", kernel);
    return (struct plot_target){ "svg", pages->paths[i] };
}

static void keep_picture(struct pages *pages, int drawn, const char *caption, const char *error)
{
    size_t i = pages->n_pictures;
    const char *name = strrchr(pages->paths[i], '/') + 1;
    if (drawn < 0) {
        progress_clear();
        text_print(stderr, "posenc report: %s: not drawn: %s\n", name, error);
    } else if (drawn == 0) {
        snprintf(pages->captions[i], sizeof pages->captions[i], "%s", caption);
        pages->pictures[i] =
            (struct report_picture){ name, pages->paths[i], pages->captions[i] };
        pages->n_pictures++;
    }
}

/* The picture of errors calls kernels, those of plug-ins, too. */
struct errors_picture {
    struct selection selected; /* that is fit for it */
    struct plot_target target;
};

struct errors_answer {
    int drawn; /* as plot_error() says; 1 where nothing was measured */
    char error[PLOT_ERROR];
};

static void draw_errors_apart(void *user, int to)
{
    const struct errors_picture *picture = user;
    struct errors_answer answer = { .drawn = 1 };
    struct errors errors;
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.dim = 128;
    for (size_t i = 0; i < picture->selected.n; i++)
        plugins_use(picture->selected.backends[i]);
    if (errors_measure(&picture->selected, &spec, &errors, NULL) == POSENC_OK) {
        answer.drawn =
            plot_error(errors.curves, errors.n, errors.caption, &picture->target, answer.error);
        errors_free(&errors);
    }
    apart_tell(to, &answer, sizeof answer);
}

/* Of a report by model only where one of them makes tables of angles. */
static void draw_errors(struct work *work, struct pages *pages)
{
    static const double most_s = 600.0;
    bool wanted = !work->by_model;
    for (size_t m = 0; m < work->n_models; m++)
        for (size_t i = 0; i < work->models[m].n_cases; i++)
            wanted |= work->models[m].cases[i].problem.kernel == POSENC_KERNEL_rope_table;
    if (!wanted)
        return;
    struct errors_picture picture = { .selected = work->selected };
    struct errors_answer answer = { .drawn = 1 };
    const struct patience patience = patience_of(most_s, most_s);
    char words[APART_WORDS];
    picture.selected.n = 0;
    for (size_t i = 0; i < work->selected.n; i++)
        if (!unfit_why(&work->unfit, work->selected.backends[i], POSENC_KERNEL_rope_table))
            picture.selected.backends[picture.selected.n++] = work->selected.backends[i];
    picture.target = next_picture(pages, "error", "");
    if (!apart_ask(draw_errors_apart, &picture, &patience, &answer, sizeof answer, words)) {
        answer.drawn = -1;
        snprintf(answer.error, sizeof answer.error, "%s", words);
    }
    keep_picture(pages, answer.drawn, "rope_table: error against position", answer.error);
}

static void draw(struct work *work, struct pages *pages)
{
    char error[PLOT_ERROR], caption[160];
    if (!plot_available(error)) {
        text_print(stderr, "posenc report: no pictures: %s\n", error);
        return;
    }
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const char *kernel = posenc_kernel_name((enum posenc_kernel)k);
        progress(&(struct progress){ .what = "report: pictures of",
                                     .unit = "kernels",
                                     .done = k,
                                     .total = POSENC_KERNEL_COUNT,
                                     .notes = "",
                                     .where = kernel });
        struct plot_target target = next_picture(pages, "speed", kernel);
        snprintf(caption, sizeof caption, "%s: GB/s by backend, and the roof", kernel);
        keep_picture(pages, plot_speed(work->records.list, kernel, &target, error), caption,
                     error);
        target = next_picture(pages, "tradeoff", kernel);
        snprintf(
            caption, sizeof caption,
            "%s: error against speed; better: in neither worse than the clock and the second "
            "digit tell, and in one more so",
            kernel);
        keep_picture(pages, plot_tradeoff(work->records.list, kernel, &target, error), caption,
                     error);
        work_end_if_interrupted(work);
    }
    draw_errors(work, pages);
    work->render.pictures = pages->pictures;
    work->render.n_pictures = pages->n_pictures;
}

static int check_and_time(struct work *work)
{
    const struct cli *cli = work->cli;
    text_print(stderr, "Checking every backend ...\n");
    struct conf_options options = { .full = cli->full };
    int status = work_verify(work, &options);
    if (status != EXIT_FINE)
        return status;
    struct bench_case *cases = NULL;
    size_t n = gather_cases(work, &cases), wanted = work_count_wanted(work, cases, n);
    double budget = !isnan(cli->budget) ? cli->budget : cli->full ? 0.0 : bench_seconds;
    if (work_no_timing()) {
        text_print(stderr, "posenc report: nothing is timed here: %s\n", work_no_timing());
    } else if (wanted > 0) {
        text_print(stderr, "Timing %zu shape%s ...\n", wanted, wanted == 1 ? "" : "s");
        status = work_bench(work, cases, n, budget);
    }
    free(cases);
    return status == EXIT_FINE ? work_check_patterns(work) : status;
}

static int exit_code(const struct work *work)
{
    return work->n_failed > 0 || work->worst == BENCH_WRONG ? EXIT_CONFORMANCE
           : work->n_judged == 0 && !work->timed            ? EXIT_NOTHING
                                                            : EXIT_FINE;
}

static bool console_on_stdout(const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++)
        if (!outputs->output[i].path)
            return strcmp(outputs->output[i].format->name, "console") == 0;
    return false;
}

/* Draws, writes and puts it in its place. */
static int end_report(struct work *work, struct pages *pages)
{
    const char *name = pages->folder.name;
    const int verdict = exit_code(work);
    struct stat link;
    FILE *talk = console_on_stdout(&work->outputs) ? stdout : stderr;
    draw(work, pages);
    if (work_end(work, true) != EXIT_FINE)
        return EXIT_USAGE;
    fprintf(talk,
            "\nWritten: %s/report.md, %s/report.html, %s/results.jsonl and %zu picture%s\n",
            name, name, name, pages->n_pictures, pages->n_pictures == 1 ? "" : "s");
    const bool linked = lstat(name, &link) == 0 && S_ISLNK(link.st_mode);
    if (pages->folder.replaced) /* beside what a link names, not beside the link */
        fprintf(talk, "The report before is in %s%s\n", linked ? pages->folder.previous : name,
                linked ? "" : ".previous");
    return verdict;
}

int command_report(struct cli *cli)
{
    if (cli->n_operands > 0)
        return render_files(cli);
    struct work work = { .cli = cli, .by_model = cli->model.n > 0 && cli->kernel.n == 0 };
    struct pages *pages = calloc(1, sizeof *pages);
    if (!pages || resume_read(cli, &work.resume) != EXIT_FINE ||
        make_folder(cli, pages) != EXIT_FINE) {
        resume_free(&work.resume);
        free(pages);
        return EXIT_USAGE;
    }
    work.folder = &pages->folder;
    work.md_path = pages->md;
    work.html_path = pages->html;
    work.jsonl_path = pages->jsonl;
    int status = cli->model.n == 0 ? work_models(&work, handful, N_HANDFUL) : EXIT_FINE;
    if (status != EXIT_FINE)
        work_give_up(&work);
    else
        status = work_begin(&work, cli, BY_REPORT, true, false);
    if (status == EXIT_FINE) {
        status = check_and_time(&work);
        if (status == EXIT_FINE)
            status = end_report(&work, pages);
        else
            work_give_up(&work);
    }
    outputs_remove_too(NULL, NULL);
    free(pages);
    return status;
}
