/*
 * Pictures of a report: whole or not there at all.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/colors.h"
#include "reports/gnuplot.h"
#include "reports/records.h"
#include "conformance/tap/tap.h"
#include "fed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a file holds a text. */
static bool holds(const char *path, const char *text)
{
    static char all[1 << 20];
    FILE *in = fopen(path, "rb");
    all[in ? fread(all, 1, sizeof all - 1, in) : 0] = 0;
    if (in)
        fclose(in);
    return strstr(all, text);
}

/* The first bytes of a PNG file (RFC 2083, section 3.1), and its last chunk. */
static bool is_png(const char *path)
{
    FILE *in = fopen(path, "rb");
    unsigned char first[8] = { 0 }, last[12] = { 0 };
    bool read = in && fread(first, 8, 1, in) == 1 && fseek(in, -12, SEEK_END) == 0 &&
                fread(last, 12, 1, in) == 1;
    if (in)
        fclose(in);
    return read && memcmp(first, "\x89PNG\r\n\x1a\n", 8) == 0 &&
           memcmp(last + 4, "IEND", 4) == 0;
}

static bool ends_svg(const char *path)
{
    FILE *in = fopen(path, "rb");
    char last[16] = "";
    if (in && fseek(in, -12, SEEK_END) == 0)
        last[fread(last, 1, sizeof last - 1, in)] = 0;
    if (in)
        fclose(in);
    return strstr(last, "</svg>");
}

static size_t read_whole(const char *path, char *text, size_t bytes)
{
    FILE *in = fopen(path, "r");
    size_t n = in ? fread(text, 1, bytes - 1, in) : 0;
    text[n] = 0;
    if (in)
        fclose(in);
    return n;
}

/* How often a picture has a colour, as gnuplot writes it. */
static int count_color(const char *svg, const char *color)
{
    unsigned red, green, blue;
    char words[2][32];
    int n = 0;
    if (sscanf(color, "#%2x%2x%2x", &red, &green, &blue) != 3)
        return 0;
    snprintf(words[0], sizeof words[0], "rgb(%3u, %3u, %3u)", red, green, blue);
    snprintf(words[1], sizeof words[1], "#%02X%02X%02X", red, green, blue);
    for (int i = 0; i < 2; i++)
        for (const char *p = svg; (p = strstr(p, words[i])); p++)
            n++;
    return n;
}

/* A backend has the same colour in each picture, and every number its interval. */
static void test_colors(const json_t *records, const char *path)
{
    static char speed[1 << 20], tradeoff[1 << 20], curve[1 << 20];
    static const char *const backends[] = { "avx512", "scalar", "sleef_avx512", "libm" };
    static const double position[] = { 1.0, 1e3 }, some[] = { 1e-8, 1e-5 };
    const struct plot_curve curves[] = { { "exact: avx2", "exact", "avx2", 2, position,
                                           some } };
    struct plot_target svg = { "svg", path };
    char error[PLOT_ERROR] = "";
    bool all = plot_speed(records, "rope_table", &svg, error) == 0 &&
               read_whole(path, speed, sizeof speed) > 0 &&
               plot_tradeoff(records, "rope_table", &svg, error) == 0 &&
               read_whole(path, tradeoff, sizeof tradeoff) > 0 &&
               plot_error(curves, 1, "caption", &svg, error) == 0 &&
               read_whole(path, curve, sizeof curve) > 0;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        const char *color = backend_color(NULL, backends[i]);
        if (!count_color(speed, color) || !count_color(tradeoff, color))
            printf("# %s: %d bars, %d points\n", backends[i], count_color(speed, color),
                   count_color(tradeoff, color));
        all = all && count_color(speed, color) && count_color(tradeoff, color);
    }
    require(all && count_color(curve, backend_color(NULL, "avx2")) &&
                !count_color(curve, backend_color(NULL, "avx512")),
            "each backend has its own colour in every picture");
    require(count_color(speed, "#222222") >= 6, "bars have the intervals of their numbers");
}

static void test_top(const char *path)
{
    static const char *const backends[] = { "avx512", NULL };
    json_t *records = fed_run("alibi", backends);
    struct plot_target svg = { "svg", path };
    char error[PLOT_ERROR] = "";
    feed_time(records, "alibi", "paper", (struct fed_time){ "avx512", 100.0, 30.0, 0.4, 1.0 });
    require(plot_speed(records, "alibi", &svg, error) == 0 && holds(path, "> 10<") &&
                holds(path, "> 14<"),
            "an interval ends inside the picture: 10 GB/s, at the best 14.3");
    json_decref(records);
}

static void test_pictures(const json_t *records, const char *path)
{
    char error[PLOT_ERROR] = "";
    struct plot_target png = { "png", path }, svg = { "svg", path };
    static const double position[] = { 1.0, 1e3, 1e6 }, none[] = { 0.0, 0.0, 0.0 },
                        some[] = { 1e-8, 1e-5, 1e-2 };
    const struct plot_curve curves[] = { { "a_b (exact)", "exact", "avx2", 3, position, none },
                                         { "c \"d\" 'e'", "hf_f32", NULL, 3, position, some } };
    require(plot_error(curves, 2, "caption", &png, error) == 0 && is_png(path),
            "errors become a PNG, zeros included");
    require(plot_speed(records, "rope_half", &png, error) == 0 && is_png(path),
            "speeds become a PNG");
    require(plot_tradeoff(records, "rope_table", &svg, error) == 0 && ends_svg(path),
            "accuracy against speed, an SVG");
    if (*error)
        printf("# %s\n", error);
}

int main(int argc, char **argv)
{
    char error[RECORDS_ERROR], path[] = "/tmp/posenc-plot-XXXXXX";
    json_t *records = json_array();
    int descriptor = mkstemp(path);
    if (argc != 2 || descriptor < 0 || records_load(argv[1], records, error)) {
        fprintf(stderr, "test_plot: %s\n", argc == 2 ? error : "usage: test_plot run.jsonl");
        return 2;
    }
    close(descriptor);
    if (plot_available(error)) {
        test_pictures(records, path);
        test_colors(records, path);
        test_top(path);
    } else
        printf("ok %d - pictures # SKIP %s\n", ++tap_run, error);
    unlink(path);
    bool available = plot_available(error);
    require(plot_speed(records, "alibi", &(struct plot_target){ "png", path }, error) == 1 &&
                access(path, F_OK) != 0,
            "where nothing was timed there is no picture");
    require(plot_speed(records, "rope_half",
                       &(struct plot_target){ "png", "/nowhere/at/all.png" }, error) == -1 &&
                strstr(error, available ? "/nowhere/at/all.png" : "gnuplot"),
            "a path that cannot be written is named");
    require(plot_speed(records, "rope_half", &(struct plot_target){ "gif", path }, error) ==
                    -1 &&
                strstr(error, "gif"),
            "an unknown format is refused");
    json_decref(records);
    return tap_end();
}
