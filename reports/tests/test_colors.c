/*
 * Colours of backends can be told apart, by those with any colour vision, too: distances in CIELAB
 * after Machado, Oliveira and Fernandes (A physiologically-based model for simulation of color vision
 * deficiency, 2009, severity 1).
 */
#include "reports/colors.h"
#include "conformance/tap/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const double vision[4][3][3] = {
    { { 1.0, 0.0, 0.0 }, { 0.0, 1.0, 0.0 }, { 0.0, 0.0, 1.0 } },
    { { 0.152286, 1.052583, -0.204868 },
      { 0.114503, 0.786281, 0.099216 },
      { -0.003882, -0.048116, 1.051998 } },
    { { 0.367322, 0.860646, -0.227968 },
      { 0.280085, 0.672501, 0.047413 },
      { -0.011820, 0.042940, 0.968881 } },
    { { 1.255528, -0.076749, -0.178779 },
      { -0.078411, 0.930809, 0.147602 },
      { 0.004733, 0.691367, 0.303900 } },
};

static double linear(unsigned c)
{
    double x = c / 255.0;
    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

static double root(double t) { return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116.0; }

static void lab_of(const char *color, const double m[3][3], double lab[3])
{
    unsigned c[3] = { 0, 0, 0 };
    double rgb[3], seen[3];
    sscanf(color, "#%2x%2x%2x", &c[0], &c[1], &c[2]);
    for (int i = 0; i < 3; i++)
        rgb[i] = linear(c[i]);
    for (int i = 0; i < 3; i++)
        seen[i] = fmin(1.0, fmax(0.0, m[i][0] * rgb[0] + m[i][1] * rgb[1] + m[i][2] * rgb[2]));
    double x = root((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.95047),
           y = root(0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]),
           z = root((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.08883);
    lab[0] = 116.0 * y - 16.0;
    lab[1] = 500.0 * (x - y);
    lab[2] = 200.0 * (y - z);
}

static double distance(const char *a, const char *b, const double m[3][3])
{
    double p[3], q[3];
    lab_of(a, m, p);
    lab_of(b, m, q);
    return hypot(hypot(p[0] - q[0], p[1] - q[1]), p[2] - q[2]);
}

/* Each backend of the library's list has a colour of its own, and none a plug-in's. */
static void test_list(const char *path)
{
    char line[160], name[64];
    bool all = true;
    int n = 0;
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        if (sscanf(line, "POSENC_BACKEND(%63[a-z0-9_])", name) != 1)
            continue;
        const bool known = strcmp(backend_color(NULL, name), backend_color(NULL, "mine")) != 0;
        if (!known)
            printf("# %s\n", name);
        all = all && known;
        n++;
    }
    if (in)
        fclose(in);
    require(all && n > 10, "every backend of the list has a colour in reports/colors.c");
}

int main(int argc, char **argv)
{
    static struct backend_row rows[] = {
        { .id = "avx512_bf16" }, { .id = "avx512" },     { .id = "avx2" },
        { .id = "scalar" },      { .id = "mine" },       { .id = "sleef_avx512" },
        { .id = "sleef_avx2" },  { .id = "autovec_v4" }, { .id = "autovec_v3" },
        { .id = "yours" },       { .id = "libm" },
    };
    enum { N = sizeof rows / sizeof *rows };
    const struct results r = { .backends = rows, .n_backends = N };
    static const char *const eyes[] = { "all colours", "no red", "no green", "no blue" };
    for (int v = 0; v < 4; v++) {
        double least = HUGE_VAL;
        char sentence[96];
        for (int i = 0; i < N; i++) {
            const char *mine = backend_color(&r, rows[i].id);
            least = fmin(least, distance(mine, "#FFFFFF", vision[v]));
            for (int k = 0; k < i; k++)
                least = fmin(least, distance(mine, backend_color(&r, rows[k].id), vision[v]));
        }
        printf("# %.1f\n", least);
        snprintf(sentence, sizeof sentence, "colours are 25 apart to eyes that see %s",
                 eyes[v]);
        require(least >= 25.0, sentence);
    }
    require(strcmp(backend_color(&r, "mine"), backend_color(&r, "yours")) != 0,
            "plug-ins have those that are left, in order");
    require(distance("#999999", "#CC79A7", vision[2]) < 10.0,
            "and the measure tells what looks alike");
    test_list(argc == 2 ? argv[1] : "");
    return tap_end();
}
