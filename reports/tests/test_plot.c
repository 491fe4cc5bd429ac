/*
 * Pictures: whole or not there at all, and what is printed beside them.
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

enum { TOKENS = 40, DIM = 16 };
static float table[TOKENS * DIM];

static void fill(void)
{
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < DIM; i += 2) {
            double angle = t * pow(10000.0, -i / (double)DIM);
            table[t * DIM + i] = (float)sin(angle);
            table[t * DIM + i + 1] = (float)cos(angle);
        }
}

static void test_facts(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    plot_sinusoidal_facts(table, TOKENS, DIM, out);
    fclose(out);
    /* Rows have equal norms, so the similarity at offset k is the mean of cos(k omega). */
    double similarity = 0.0;
    for (int i = 0; i < DIM; i += 2)
        similarity += cos(4.0 * pow(10000.0, -i / (double)DIM)) / (DIM / 2);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "at offset 4: %.3f\n", similarity);
    require(strstr(text, "shape [40, 16]\n"), "the shape is printed");
    require(strstr(text, wanted), "the similarity is the mean cosine of the angles");
    require(strstr(text, "max 1.000\n"), "the largest value is printed");
    free(text);
}

static bool scale_says(double least, double most, const char *what)
{
    char text[1024] = "";
    FILE *script = fmemopen(text, sizeof text, "w");
    gnuplot_scale(script, least, most);
    fclose(script);
    return strstr(text, what);
}

static void test_scale(void)
{
    require(scale_says(-0.5, 0.07, "cbrange [-0.5:0.5]") &&
                scale_says(-0.5, 0.07, "0.5 '#ffffff'"),
            "signed values have a white zero in the middle of their range");
    require(scale_says(0.4, 1.0, "cbrange [0.4:1]") && !scale_says(0.4, 1.0, "#ffffff"),
            "values above zero have a scale from dark to bright");
}

/* At any number of positions each curve has eight of them a wavelength at least, none has more than
 * eleven of its own across the picture, and all differ. */
static void test_curves(void)
{
    enum { MANY = 1024 };
    static double wavelength[MANY];
    bool readable = true;
    for (int d = 0; d < MANY; d++)
        wavelength[d] = 6.283185307179586 * pow(10000.0, d / 2 / (double)(MANY / 2));
    for (int64_t tokens = 2; tokens <= 4096; tokens *= 2) {
        struct plot_sinusoidal plot = { .tokens = tokens, .dim = MANY };
        plot_choose_curves(&plot, wavelength);
        readable = readable && plot.n_curves == 4;
        for (int k = 0; k < plot.n_curves; k++)
            readable = readable && plot.wavelength[k] > 7.5 &&
                       plot.wavelength[k] > (double)tokens / 11.0 &&
                       plot.wavelength[k] == wavelength[plot.curve[k]] &&
                       (k == 0 || plot.wavelength[k] > plot.wavelength[k - 1]);
    }
    require(readable, "curves are chosen that can be read");
    struct plot_sinusoidal few = { .tokens = 512, .dim = 3 };
    plot_choose_curves(&few, (const double[]){ 6.28, 6.28, 0.0 });
    require(few.n_curves == 1 && few.curve[0] == 0,
            "each wavelength once, and no more than there are");
}

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
    struct plot_sinusoidal sinusoidal = { .caption = "a caption_with 'marks\" \\",
                                          .tokens = TOKENS,
                                          .dim = DIM,
                                          .first = -5,
                                          .table = table,
                                          .n_curves = 1,
                                          .curve = { 2 } };
    require(plot_sinusoidal(&sinusoidal, &png, error) == 0 && is_png(path),
            "a table becomes a PNG");
    sinusoidal.n_curves = 0;
    require(plot_sinusoidal(&sinusoidal, &svg, error) == 0 && ends_svg(path), "or an SVG");
    require(holds(path, "<image style='image-rendering:pixelated' "),
            "whose cells no viewer is to smooth");
    require(plot_error(curves, 2, "caption", &png, error) == 0 && is_png(path),
            "errors become a PNG, zeros included");
    require(plot_speed(records, "rope_half", &png, error) == 0 && is_png(path),
            "speeds become a PNG");
    require(plot_tradeoff(records, "rope_table", &svg, error) == 0 && ends_svg(path),
            "accuracy against speed, an SVG");
    if (*error)
        printf("# %s\n", error);
}

/* Both formats of one kind. */
static void require_picture(const char *what,
                            int (*draw)(const char *format, const char *path,
                                        char error[PLOT_ERROR]),
                            const char *path)
{
    char error[PLOT_ERROR] = "", name[96];
    snprintf(name, sizeof name, "%s becomes a PNG", what);
    require(draw("png", path, error) == 0 && is_png(path), name);
    snprintf(name, sizeof name, "%s becomes an SVG", what);
    require(draw("svg", path, error) == 0 && ends_svg(path), name);
    if (*error)
        printf("# %s\n", error);
}

static int draw_rope(const char *format, const char *path, char error[PLOT_ERROR])
{
    static double product[4][2] = { { 1.0, 0.5 }, { 1.0, 0.5 }, { 0.2, -0.3 }, { 0.2, -0.3 } };
    struct plot_rope rope = { .caption = "a_caption with 'marks\" \\",
                              .n_pairs = 2,
                              .n_offsets = 2,
                              .query = { 1, 1000 },
                              .vectors = { "a_b", "c \"d\" 'e'" },
                              .product = { { product[0], product[1] },
                                           { product[2], product[3] } } };
    for (int k = 0; k < 2; k++) {
        rope.pair[k].rad = k ? 0.1 : 1.0;
        for (int p = 0; p < ROPE_TURNS; p++) {
            rope.pair[k].turn[p][0] = cos(rope.pair[k].rad * p);
            rope.pair[k].turn[p][1] = sin(rope.pair[k].rad * p);
        }
    }
    return plot_rope(&rope, &(struct plot_target){ format, path }, error);
}

static int draw_alibi(const char *format, const char *path, char error[PLOT_ERROR])
{
    static const float slopes[] = { 0.5f, 0.25f }, bias[] = { 0, -0.5f, -1, 0, -0.25f, -0.5f };
    struct plot_alibi alibi = { "caption", 2, 3, bias, slopes };
    return plot_alibi(&alibi, &(struct plot_target){ format, path }, error);
}

static int draw_one_head(const char *format, const char *path, char error[PLOT_ERROR])
{
    static const float slopes[] = { 0.5f }, bias[] = { 0, -0.5f };
    struct plot_alibi alibi = { "caption", 1, 2, bias, slopes };
    return plot_alibi(&alibi, &(struct plot_target){ format, path }, error);
}

static int draw_t5(const char *format, const char *path, char error[PLOT_ERROR])
{
    static const float both[] = { 1, 1, 0, 3, 3 }, causal[] = { 2, 1, 0, 0, 0 };
    struct plot_t5 t5 = { "caption", 4, 2, 2, both, causal };
    return plot_t5(&t5, &(struct plot_target){ format, path }, error);
}

static int draw_learned(const char *format, const char *path, char error[PLOT_ERROR])
{
    struct plot_learned learned = { "caption",
                                    TOKENS,
                                    DIM,
                                    0,
                                    table,
                                    { "a", "b_c", "d", "e", "f" },
                                    { 1.0, 0.7, 0.02, 1.2, 1.0 } };
    return plot_learned(&learned, &(struct plot_target){ format, path }, error);
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
    fill();
    test_facts();
    test_scale();
    test_curves();
    if (plot_available(error)) {
        test_pictures(records, path);
        test_colors(records, path);
        test_top(path);
        require_picture("a rotation", draw_rope, path);
        require_picture("alibi", draw_alibi, path);
        require_picture("alibi with one head", draw_one_head, path);
        require_picture("t5", draw_t5, path);
        require_picture("a learned table", draw_learned, path);
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
