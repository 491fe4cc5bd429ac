/*
 * Turns what llvm-mca said of the inner loops into records of type "estimate":
 *
 *     estimate_records OUT.jsonl TOOL COMPILER <LIST
 *
 * A line of LIST is one core: backend, lanes, core, the file llvm-mca --json wrote, the file
 * measure.c wrote on such a core or -, and a note on the model.  The regions must be those of
 * loops.def, storing what is stated there.  A turn is one pass through the body of a loop.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/records.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct line {
    char backend[32], core[32], json[512], measured[512], note[128];
    int lanes;
};

static const struct {
    const char *name, *kernel, *profile, *variant;
    int vectors;
} loops[] = {
#define LOOP(kernel, profile, variant, vectors)                                                \
    { #kernel "__" #profile "__" #variant, #kernel, #profile, #variant, vectors },
#include "impl/loops/loops.def"
};
enum { N = sizeof loops / sizeof *loops };

__attribute__((format(printf, 1, 2))) static int wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("estimate_records: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return -1;
}

static double summary_value(const json_t *region, const char *name)
{
    return record_double(json_object_get(json_object_get(region, "SummaryView"), name), 0.0);
}

/* What a turn waits for: the part of the core that is busy nine tenths of the time or more, else
 * results of instructions before.  Units of one kind are "A57UnitI.\0", "A57UnitI.\1". */
static const char *bottleneck_of(const json_t *mca, const json_t *region, double cycles,
                                 char unit[64])
{
    const json_t *units = json_object_get(json_object_get(mca, "TargetInfo"), "Resources");
    const json_t *view = json_object_get(json_object_get(region, "ResourcePressureView"),
                                         "ResourcePressureInfo");
    double all = (double)json_array_size(json_object_get(region, "Instructions"));
    double most = 0.0, dispatch = summary_value(region, "TotaluOps") /
                                  summary_value(region, "Iterations") /
                                  summary_value(region, "DispatchWidth");

    for (size_t i = 0; i < json_array_size(view); i++) {
        const json_t *use = json_array_get(view, i);
        double usage = record_value(use, "ResourceUsage", 0.0);
        if (record_value(use, "InstructionIndex", -1.0) < all || usage <= most)
            continue;
        most = usage;
        double index = record_value(use, "ResourceIndex", 0.0);
        const char *name = json_string_value(json_array_get(units, (size_t)index));
        snprintf(unit, 64, "%.*s", name ? (int)strcspn(name, ".") : 0, name ? name : "");
    }
    if (dispatch >= most && dispatch >= 0.9 * cycles)
        return "dispatch";
    return most >= 0.9 * cycles ? unit : "latency";
}

/* Cycles of a turn that measure.c found; 0 where it was not run. */
static double measured_turn(const char *path, const char *loop)
{
    FILE *in = strcmp(path, "-") != 0 ? fopen(path, "r") : NULL;
    char name[96];
    double cycles, found = 0.0;
    char text[256];
    while (in && fgets(text, sizeof text, in))
        if (sscanf(text, "%95s %*d %lf", name, &cycles) == 2 && strcmp(name, loop) == 0)
            found = cycles;
    if (in)
        fclose(in);
    return found;
}

static const json_t *region_of(const json_t *mca, const char *loop, int *vectors)
{
    const json_t *regions = json_object_get(mca, "CodeRegions");
    size_t n = strlen(loop);
    for (size_t i = 0; i < json_array_size(regions); i++) {
        const char *name = record_text(json_array_get(regions, i), "Name");
        if (strncmp(name, loop, n) == 0 && name[n] == ' ') {
            *vectors = atoi(name + n);
            return json_array_get(regions, i);
        }
    }
    return NULL;
}

static json_t *make_estimate(const struct line *line, const json_t *mca, int i,
                             const json_t *region, char **argv)
{
    char unit[64] = "";
    double turn = summary_value(region, "TotalCycles") / summary_value(region, "Iterations");
    double measured = measured_turn(line->measured, loops[i].name) / loops[i].vectors;
    double cycles = turn / loops[i].vectors;
    json_t *record =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:s,s:s,s:f,s:i,s:f,s:s,s:s,s:s}", "t",
                  "estimate", "kernel", loops[i].kernel, "dtype", "f32", "profile",
                  loops[i].profile, "variant", loops[i].variant, "backend", line->backend,
                  "family", "template", "lanes", line->lanes, "core", line->core, "model",
                  line->note, "cycles_per_vector", cycles, "elements_per_vector", line->lanes,
                  "cycles_per_element", cycles / line->lanes, "bottleneck",
                  bottleneck_of(mca, region, turn, unit), "tool", argv[2], "compiler", argv[3]);
    if (record && measured > 0.0)
        json_object_set_new(record, "measured_per_vector", record_number(measured));
    return record;
}

static int append_estimates(const struct line *line, struct records *records, char **argv)
{
    json_error_t where;
    json_t *mca = json_load_file(line->json, JSON_ALLOW_NUL, &where);
    if (!mca)
        return wrong("%s: line %d: %s; what llvm-mca --json writes is needed", line->json,
                     where.line, where.text);
    int status = 0;
    for (int i = 0; i < N && status == 0; i++) {
        int vectors = 0;
        const json_t *region = region_of(mca, loops[i].name, &vectors);
        if (!region || !(summary_value(region, "TotalCycles") > 0.0) ||
            !(summary_value(region, "Iterations") > 0.0))
            status = wrong("%s: has no region %s", line->json, loops[i].name);
        else if (vectors != loops[i].vectors)
            status = wrong("%s: a turn of %s stores %d vectors; loops.def states %d",
                           line->json, loops[i].name, vectors, loops[i].vectors);
        else
            status = records_append(records, make_estimate(line, mca, i, region, argv));
    }
    json_decref(mca);
    return status;
}

static json_t *make_header(void)
{
    char started[32];
    time_t now = time(NULL);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return json_pack("{s:s,s:s,s:s,s:s,s:[s,s]}", "t", "header", "schema", RECORDS_SCHEMA,
                     "mode", "estimate", "started", started, "argv", "./run", "estimate");
}

int main(int argc, char **argv)
{
    struct records records;
    char text[2048], error[RECORDS_ERROR];
    if (argc != 4) {
        wrong("usage: estimate_records OUT.jsonl TOOL COMPILER <LIST");
        return 2;
    }
    if (records_open(&records, argv[1], error)) {
        wrong("%s", error);
        return 2;
    }
    int status = records_append(&records, make_header());
    while (status == 0 && fgets(text, sizeof text, stdin)) {
        struct line line;
        if (sscanf(text, "%31s %d %31s %511s %511s %127[^\n]", line.backend, &line.lanes,
                   line.core, line.json, line.measured, line.note) != 6 ||
            line.lanes < 1)
            status = wrong("'%.*s': backend, lanes, core, two files and a note are needed",
                           (int)strcspn(text, "\n"), text);
        else
            status = append_estimates(&line, &records, argv);
    }
    if (status == 0)
        status = records_append(&records, json_pack("{s:s,s:b}", "t", "footer", "complete", 1));
    if (records_close(&records, error))
        status = wrong("%s", error);
    return status == 0 ? 0 : 2;
}
