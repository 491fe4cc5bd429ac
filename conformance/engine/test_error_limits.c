/*
 * Tests of the error limits: they are lowered to measured errors, rounded up, with their worst
 * case; they are never raised; invalid rows change neither the file nor the table.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/tap/tap.h"
#include "error_limits.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/posenc-error-limits-XXXXXX";

#define HEAD "# A comment.\n\n"
#define KEPT "rope_table     libm     exact   2^17  abs    0.5      nobody\n"
#define ROWS(limit, worst_case)                                                                \
    HEAD "sinusoidal     libm     exact   2^10  abs    " limit " " worst_case "\n" KEPT

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static bool file_is(const char *text)
{
    char got[2048];
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(got, 1, sizeof got - 1, file) : 0;
    got[n] = '\0';
    if (file)
        fclose(file);
    if (strcmp(got, text) != 0)
        printf("# the file is:\n%s", got);
    return strcmp(got, text) == 0;
}

/* Returns a result with this error, for the row that can be lowered. */
static struct conf_result measured(double max)
{
    return (struct conf_result){ .kernel = POSENC_KERNEL_SINUSOIDAL,
                                 .numerics = "exact",
                                 .backend = posenc_backend_find("libm"),
                                 .status = CONF_PASS,
                                 .metric = "abs",
                                 .max = max,
                                 .worst_at = "position 7",
                                 .range = "2^10" };
}

/* Requires that the results lower n limits, after which the first row has the limit 0.124. */
static void check_lowered(const struct conf_result results[5], int n, const char *sentence)
{
    char error[512];
    require(error_limits_lower(path, results, 5, error) == n &&
                file_is(ROWS("0.124   ", "position 7")),
            sentence);
}

static void check_lowering(void)
{
    struct conf_result results[5] = { measured(1e-9), measured(0.12341), measured(0.4),
                                      measured(0.4), measured(0.4) };
    results[2].status = CONF_FAIL;
    results[3].metric = "ulp";
    results[4].range = "2^20";
    write_file(ROWS("0.25    ", "somebody"));
    check_lowered(results, 1, "the largest error of the row's own passing results, rounded up");
    check_lowered(results, 0, "a second time nothing changes");
    results[1].max = 0.2;
    check_lowered(results, 0, "a limit is never raised");
    results[0].max = results[1].max = 0.0;
    check_lowered(results, 0, "nor is it lowered to zero");
}

/* Requires an error for a comment that does not fit into the reader's line. */
static void check_overlong_line(void)
{
    char text[1400], error[512];
    memset(text, '#', 1100);
    snprintf(text + 1100, sizeof text - 1100, "\n%s", KEPT);
    write_file(text);
    require(!error_limits_read(path, error) && strstr(error, ":1:"),
            "a line that is too long is rejected, also as a comment");
}

static void check_wrong_rows(void)
{
    static const struct {
        const char *place, *text;
    } wrong[] = {
        { "", "" },
        { ": holds no error limit", "\n \t\f\v\r\n" },
        { "", HEAD },
        { ":4:35: ", HEAD KEPT "rope_table libm exact 2^17 abs 0.5\n" },
        { ":3:1: 'rope_tables'", HEAD "rope_tables libm exact 2^17 abs 0.5 nobody\n" },
        { ":3:28: 'rel'", HEAD "rope_table libm exact 2^17 rel 0.5 nobody\n" },
        { ":3:32: ", HEAD "rope_table libm exact 2^17 abs -1 nobody\n" },
        { ":3:32: ", HEAD "rope_table libm exact 2^17 abs inf nobody\n" },
        { ":3:32: ", HEAD "rope_table libm exact 2^17 abs much nobody\n" },
        { ":3:1: 'rope_half'", HEAD "rope_half libm exact 2^17 abs 0.5 nobody\n" },
        { ":3:12: 'lib'", HEAD "rope_table lib exact 2^17 abs 0.5 nobody\n" },
        { ":3:17: 'exactly'", HEAD "rope_table libm exactly 2^17 abs 0.5 nobody\n" },
        { ":3:23: '2^18'", HEAD "rope_table libm exact 2^18 abs 0.5 nobody\n" },
        { ":3:36: ", HEAD "rope_table libm exact 2^17 abs 0.5 no\033[31mbody\n" },
        { ":4:1: 'rope_table'", HEAD KEPT "rope_table libm exact 2^17 ulp 0.5 nobody\n" },
    };
    char error[512], place[64];
    const struct conf_result result = measured(1e-9);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file(wrong[i].text);
        *error = '\0';
        snprintf(place, sizeof place, "%s%s", path, wrong[i].place);
        require(error_limits_lower(path, &result, 1, error) == -1 && strstr(error, place) &&
                    file_is(wrong[i].text),
                "a wrong row is rejected with its line and column, and the file stays");
    }
    const struct error_limit *kept =
        error_limits_find(POSENC_KERNEL_ROPE_TABLE, posenc_backend_find("libm"), "exact", 1);
    require(kept && kept->limit >= 0.5 && kept->limit <= 0.5, "the table is the last good one");
    require(!error_limits_read("/nowhere/limits", error) && strstr(error, "/nowhere/limits"),
            "a file that is not there");
}

int main(void)
{
    const int descriptor = mkstemp(path);
    if (descriptor < 0)
        abort();
    close(descriptor);
    check_lowering();
    check_overlong_line();
    check_wrong_rows();
    unlink(path);
    return tap_end();
}
