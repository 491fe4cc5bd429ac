/*
 * posenc tune: which backend is the fastest for each kernel, type and level of memory, written as a profile
 * that the library reads.
 */
#define _POSIX_C_SOURCE 200809L
#define POSENC_EXPERIMENTAL
#include "bench/tune.h"
#include "bench/emulation.h"
#include "outputs.h"
#include "progress.h"
#include "reports/text/text.h"
#include "select.h"
#include "temporary.h"
#include "tuned.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double SLOWER = 1.05; /* than the fastest: what a choice may be */

struct tune {
    const struct cli *cli;
    char path[TUNED_PATH];
    struct selection selected;
    struct progress progress;
    char doing[96];
    FILE *lines, *table; /* of the profile, and for people */
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;
    bool some, wrong;
    size_t places, ties, slower, unclear;
    /* Of a check: kernels and types with a choice that was slower, those to be looked at again. */
    bool again[POSENC_KERNEL_COUNT], types_again[N_DTYPES], second;
    bool flagged[POSENC_KERNEL_COUNT][N_DTYPES][BENCH_PLACES];
};

static bool is_interrupted(void *user)
{
    struct tune *tune = user;
    progress(&tune->progress);
    return outputs_interrupted() != 0;
}

static void on_place(void *user, const struct tune_place *place, size_t done, size_t all)
{
    struct tune *tune = user;
    snprintf(tune->doing, sizeof tune->doing, "%s, %s, %s", posenc_kernel_name(place->kernel),
             dtype_names[place->dtype], place->name);
    tune->progress.done = (double)done;
    tune->progress.total = all;
    tune->progress.where = tune->doing;
    progress(&tune->progress);
}

/* ---- A profile ---- */

/* The fastest of the others; NULL: there is none that came near. */
static const struct tune_row *rival_of(const struct tune_result *result)
{
    for (size_t i = 0; i < result->n; i++)
        if (i != result->chosen)
            return &result->rows[i];
    return NULL;
}

static void write_line(struct tune *tune, const struct tune_result *result)
{
    const struct tune_place *place = result->place;
    const struct tune_row *rival = rival_of(result);
    char most[24] = "";
    if (place->most != UINT64_MAX)
        snprintf(most, sizeof most, "%llu", (unsigned long long)place->most);
    fprintf(tune->lines, "%-18s %-12s %-4s %-10s # %s: %.4g us",
            posenc_kernel_name(place->kernel), result->rows[result->chosen].backend->name,
            dtype_names[place->dtype], most, place->name,
            result->rows[result->chosen].ns * 1e-3);
    if (!rival)
        fputs("; no other comes near\n", tune->lines);
    else
        fprintf(tune->lines, "; %s takes %.2f times as long [%.2f, %.2f]%s\n",
                rival->backend->name, rival->ratio, rival->low, rival->high,
                result->tie ? ", a tie" : "");
}

static void show_place(struct tune *tune, const struct tune_result *result)
{
    const struct tune_place *place = result->place;
    if (!tune->some || tune->kernel != place->kernel || tune->dtype != place->dtype)
        fprintf(tune->table, "%s%-18s %-4s", tune->some ? "\n" : "",
                posenc_kernel_name(place->kernel), dtype_names[place->dtype]);
    tune->some = true;
    tune->kernel = place->kernel;
    tune->dtype = place->dtype;
    fprintf(tune->table, "  %s %s%s", place->name,
            result->n ? result->rows[result->chosen].backend->name : "-",
            result->tie ? "=" : "");
}

static void on_choice(void *user, const struct tune_result *result)
{
    struct tune *tune = user;
    if (result->wrong) {
        tune->wrong = true;
        text_print(stderr, "posenc tune: %s, %s: %s is wrong, and left out: %s\n",
                   posenc_kernel_name(result->place->kernel), dtype_names[result->place->dtype],
                   result->wrong->name, result->why);
    }
    if (result->n) {
        tune->places++;
        tune->ties += result->tie;
        write_line(tune, result);
    } else
        text_print(stderr, "posenc tune: %s, %s, %s: %s\n",
                   posenc_kernel_name(result->place->kernel), dtype_names[result->place->dtype],
                   result->place->name, result->refused);
    show_place(tune, result);
}

static int run(struct tune *tune, tune_sink *sink)
{
    const struct cli *cli = tune->cli;
    char error[256];
    const struct tune_options options = {
        .kernels = tune->second ? tune->again : tune->selected.kernels,
        .dtypes = tune->second ? tune->types_again : tune->selected.dtypes,
        .budget_s = isnan(cli->budget) ? 0.0 : cli->budget,
        .seed = (cli->seed == INT64_MIN ? 0 : (uint64_t)cli->seed) + tune->second,
        .stop = is_interrupted,
        .watch = on_place,
    };
    tune->progress = (struct progress){ .what = "tune", .unit = "places", .notes = "" };
    const int failed = tune_run(&options, sink, tune, error);
    progress_clear();
    if (outputs_interrupted())
        return 128 + outputs_interrupted();
    return failed ? cli_refuse(cli, "tune", NULL, "%s", error) : EXIT_FINE;
}

/* ---- Writing it ---- */

/* What is there has to be a profile. */
static int check_target(const struct tune *tune)
{
    char first[64] = "";
    FILE *file = fopen(tune->path, "r");
    if (file) {
        if (!fgets(first, sizeof first, file))
            *first = '\0';
        fclose(file);
    }
    if (!file || tune->cli->force || strncmp(first, "posenc.tune/1", 13) == 0)
        return EXIT_FINE;
    return cli_refuse(
        tune->cli, "profile", tune->path,
        "is there and is none: expected another path, or --force to write over it");
}

/* The folder of the user's own profile, which may be the first of them. */
static void make_folders(const char *path)
{
    char folder[TUNED_PATH];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        (void)mkdir(folder, 0777);
    }
}

/* Its file, opened before anything is measured, and what becomes of it. */
struct draft {
    FILE *file;
    char *path;
};

static int open_draft(const struct tune *tune, struct draft *draft)
{
    struct stat there;
    const bool folder = stat(tune->path, &there) == 0 && S_ISDIR(there.st_mode);
    const int held = folder ? -1 : temporary_open(tune->path, &draft->path);
    draft->file = held < 0 ? NULL : fdopen(held, "w");
    return draft->file ? EXIT_FINE
                       : cli_refuse(tune->cli, "profile", tune->path, "%s",
                                    folder ? "it is a folder" : strerror(errno));
}

static void drop_draft(struct draft *draft)
{
    if (draft->file)
        fclose(draft->file);
    if (draft->path)
        unlink(draft->path);
    free(draft->path);
    *draft = (struct draft){ NULL, NULL };
}

static int write_profile(const struct tune *tune, struct draft *draft, const char *lines)
{
    char when[32];
    const time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    fprintf(draft->file,
            "posenc.tune/1\n# Written by posenc tune at %s: kernel, backend, type, and the "
            "most bytes of its tensors\ncpu %s %s\nbuild %s\n%s",
            when, posenc_cpu_key(), posenc_cpu_features(), posenc_build(), lines);
    const bool fine = fchmod(fileno(draft->file), 0644) == 0 && fflush(draft->file) == 0 &&
                      rename(draft->path, tune->path) == 0;
    if (!fine)
        return cli_refuse(tune->cli, "profile", tune->path, "%s", strerror(errno));
    free(draft->path);
    draft->path = NULL;
    return EXIT_FINE;
}

static void print_choices(const struct tune *tune, bool own, const char *table)
{
    text_print(stdout, "%zu choices, %zu ties (=), written to %s\n", tune->places, tune->ties,
               tune->path);
    printf("\n%s\n\n", table);
    if (own)
        puts("This program uses it from now on (posenc list tuning); the library where "
             "POSENC_PROFILE names it, or\nposenc_select_profile() is called.");
    else
        text_print(stdout, "The library uses it where POSENC_PROFILE=%s is set.\n", tune->path);
}

static int tune_all(struct tune *tune, bool own)
{
    char *lines = NULL, *table = NULL;
    size_t n_lines, n_table;
    struct draft draft = { NULL, NULL };
    int status = check_target(tune);
    if (status)
        return status;
    if (own)
        make_folders(tune->path);
    status = open_draft(tune, &draft);
    tune->lines = open_memstream(&lines, &n_lines);
    tune->table = open_memstream(&table, &n_table);
    if (!tune->lines || !tune->table)
        abort(); /* a few kilobytes */
    if (status == EXIT_FINE)
        status = run(tune, on_choice);
    fclose(tune->lines);
    fclose(tune->table);
    if (status == EXIT_FINE && tune->places == 0)
        status = cli_refuse(tune->cli, "tune", NULL, "nothing could be timed here");
    if (status == EXIT_FINE)
        status = write_profile(tune, &draft, lines);
    if (status == EXIT_FINE)
        print_choices(tune, own, table);
    if (status == EXIT_FINE && tune->wrong)
        status = EXIT_CONFORMANCE;
    drop_draft(&draft);
    free(lines);
    free(table);
    return status;
}

/* ---- Whether an old one still holds ---- */

static size_t place_index(const struct tune_place *place)
{
    static const char *const names[BENCH_PLACES] = { "L1", "L2", "L3", "DRAM" };
    size_t i = 0;
    while (i + 1 < BENCH_PLACES && strcmp(names[i], place->name) != 0)
        i++;
    return i;
}

/* Times as long as the fastest, and the least of it that is likely; infinite where it was too slow
 * to be timed in rounds. */
struct slowness {
    double ratio, low;
};
static struct slowness slowness(const struct tune_result *result,
                                const struct posenc_backend *backend)
{
    struct slowness own = { (double)INFINITY, (double)INFINITY };
    double least = (double)INFINITY;
    for (size_t i = 0; i < result->n; i++) {
        least = fmin(least, result->rows[i].ratio);
        if (result->rows[i].backend == backend)
            own = (struct slowness){ result->rows[i].ratio, result->rows[i].low };
    }
    return (struct slowness){ own.ratio / least, own.low / least };
}

static void on_check(void *user, const struct tune_result *result)
{
    struct tune *tune = user;
    const struct tune_place *place = result->place;
    const struct posenc_backend *chosen =
        posenc_selection_for(place->kernel, place->dtype, place->footprint).backend;
    bool *flag = &tune->flagged[place->kernel][place->dtype][place_index(place)];
    if (!result->n)
        return;
    const struct slowness slow = slowness(result, chosen);
    const double ratio = slow.ratio;
    tune->places += !tune->second;
    if (ratio <= SLOWER) {
        *flag = false;
        return;
    }
    if (!tune->second) {
        *flag = tune->again[place->kernel] = tune->types_again[place->dtype] = true;
    } else if (*flag) {
        const bool known = slow.low > SLOWER;
        tune->slower += known;
        tune->unclear += !known;
        char times[32] = "far longer than";
        if (isfinite(ratio))
            snprintf(times, sizeof times, "%.2f times as long as", ratio);
        text_print(stdout, "%s, %s, %s: %s takes %s %s%s\n", posenc_kernel_name(place->kernel),
                   dtype_names[place->dtype], place->name, chosen ? chosen->name : "nobody",
                   times, result->rows[0].backend->name, known ? "" : ", which may be noise");
    }
}

static int check_all(struct tune *tune)
{
    char why[TUNED_WHY];
    const enum posenc_status refused = posenc_select_profile(tune->path, why, sizeof why);
    int status = EXIT_FINE;
    if (refused) {
        cli_refuse(tune->cli, "profile", NULL, "%s", why);
        return refused == POSENC_ERR_UNSUPPORTED ? EXIT_INCOMPARABLE : EXIT_USAGE;
    }
    status = run(tune, on_check);
    for (int k = 0; status == EXIT_FINE && k < POSENC_KERNEL_COUNT; k++)
        tune->second |= tune->again[k];
    if (tune->second && status == EXIT_FINE) /* what was slower once may be noise */
        status = run(tune, on_check);
    if (status != EXIT_FINE)
        return status;
    char unclear[48] = "";
    if (tune->unclear)
        snprintf(unclear, sizeof unclear, ", %zu not known to be slower", tune->unclear);
    text_print(stdout, "%s: %zu of %zu choices are within %.0f %% of the fastest%s%s\n",
               tune->path, tune->places - tune->slower - tune->unclear, tune->places,
               100.0 * (SLOWER - 1.0), unclear,
               tune->slower ? ": posenc tune writes a new one" : ", it holds");
    return tune->slower ? EXIT_SLOWER : EXIT_FINE;
}

int command_tune(struct cli *cli)
{
    static struct tune tune;
    const bool own = cli->n_operands == 0;
    tune.cli = cli;
    if (cli->n_operands > 1)
        return cli_refuse(cli, "unexpected argument", cli->operands[1],
                          "expected the path of one profile");
    if (own && !tuned_own_path(tune.path))
        return cli_refuse(cli, "profile", NULL,
                          "nowhere to keep one: expected XDG_CONFIG_HOME or HOME to be a "
                          "folder, or a path");
    if (!own && snprintf(tune.path, TUNED_PATH, "%s", cli->operands[0]) >= TUNED_PATH)
        return cli_refuse(cli, "profile", NULL, "its path is longer than %d bytes",
                          TUNED_PATH - 1);
    if (select_shapes(cli, &tune.selected) != EXIT_FINE)
        return EXIT_USAGE;
    if (bench_emulator()) {
        cli_refuse(cli, "nothing is timed here", NULL, "%s", bench_emulator());
        return EXIT_NOTHING;
    }
    return cli->check ? check_all(&tune) : tune_all(&tune, own);
}
