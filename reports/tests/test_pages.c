/*
 * What a person reads in a report, of the run in tests/run.jsonl (invented numbers).
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/report.h"
#include "reports/show.h"
#include "rendered.h"
#include "conformance/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* The cells of a row of a table in Markdown, trimmed; how many. */
static int cells_of(const char *line, char cell[16][64])
{
    int n = 0;
    for (const char *p = line + 1; n < 16 && *p && *p != '\n';) {
        size_t bytes = strcspn(p, "|\n"), begin = strspn(p, " "), end = bytes;
        while (end > begin && p[end - 1] == ' ')
            end--;
        snprintf(cell[n++], 64, "%.*s", (int)(end > begin ? end - begin : 0), p + begin);
        p += bytes + (p[bytes] == '|');
    }
    return n;
}

/* "1.20 us" in ns. */
static double as_time(const char *text)
{
    char unit[8] = "";
    double value;
    return sscanf(text, "%lf %7s", &value, unit) == 2 ? value * (*unit == 'm'   ? 1e6
                                                                 : *unit == 'u' ? 1e3
                                                                                : 1.0)
                                                      : 0.0;
}

/* A row of a table of times. */
struct timing {
    int shape;
    double roof, time, rate;
    char backend[64], percent[64], libm[64], autovec[64];
};

/* Those of the section "Speed": shape, size, roof, backend, time, +-, GB/s, of roof, libm, autovec. */
static int timings_of(const char *text, struct timing *rows, int most)
{
    int n = 0, shape = 0;
    double roof = 0.0;
    const char *line = text ? strstr(text, "## Speed") : NULL;
    for (; line && *line && n < most; line += strcspn(line, "\n") + 1) {
        char cell[16][64];
        if (*line != '|' || cells_of(line, cell) != 11 || !strstr(cell[7], " %"))
            continue;
        shape += *cell[2] != 0;
        roof = *cell[2] ? strtod(cell[2], NULL) : roof;
        struct timing *row = &rows[n++];
        *row = (struct timing){ .shape = shape,
                                .roof = roof,
                                .time = as_time(cell[4]),
                                .rate = strtod(cell[6], NULL) };
        snprintf(row->backend, 64, "%s", cell[3]);
        snprintf(row->percent, 64, "%s", cell[7]);
        snprintf(row->libm, 64, "%s", cell[8]);
        snprintf(row->autovec, 64, "%s", cell[9]);
    }
    return n;
}

/* The least time of a family in the rows of a shape, which follow each other; 0: it has none. */
static double least_time(const struct timing *row, const struct timing *end, const char *family)
{
    const int shape = row->shape;
    double least = 0.0;
    for (; row < end && row->shape == shape; row++)
        if (strncmp(row->backend, family, strlen(family)) == 0 &&
            (least <= 0.0 || row->time < least))
            least = row->time;
    return least;
}

/* A reader with a calculator divides what is printed, and finds what is printed. */
static void test_quotients(const json_t *records)
{
    enum { MOST = 200 };
    static struct timing rows[MOST];
    char *text = rendered("md", records, 0), want[64];
    const int n = timings_of(text, rows, MOST);
    bool percents = true, factors = true;
    const struct timing *first = rows; /* of its shape */
    for (const struct timing *row = rows; row < rows + n; row++) {
        if (row->shape != first->shape)
            first = row;
        snprintf(want, sizeof want, "%.0f %%", 100.0 * row->rate / row->roof);
        percents = percents && strcmp(want, row->percent) == 0;
        double libm = least_time(first, rows + n, "libm"),
               autovec = least_time(first, rows + n, "autovec");
        factors = factors && strcmp(show_times(libm / row->time), row->libm) == 0 &&
                  strcmp(show_times(autovec / row->time), row->autovec) == 0;
    }
    require(n > 20 && percents, "GB/s over the roof's are the percentage that is printed");
    require(n > 20 && factors,
            "the time of libm or autovec over a backend's is the factor that is printed");
    free(text);
}

int main(int argc, char **argv)
{
    char error[RECORDS_ERROR];
    json_t *records = json_array();
    if (argc != 2 || records_load(argv[1], records, error)) {
        fprintf(stderr, "test_pages: %s\n", argc == 2 ? error : "usage: test_pages run.jsonl");
        return 2;
    }
    test_quotients(records);
    json_decref(records);
    return tap_end();
}
