/*
 * Pictures of single encodings: a rotation, ALiBi, T5's buckets, a learned table.
 */
#define _POSIX_C_SOURCE 200809L
#include "gnuplot.h"

#include <math.h>

/* ---- rope ---- */

/* Arrows from the centre to where (1, 0) is at each position; the first and the last have their
 * position beside them, the others where there is room. */
static void draw_pair(FILE *s, const struct plot_rope *rope, int k)
{
    double left = 0.07 + 0.325 * k;
    gnuplot_panel(s, left, left + 0.24, 0.55, 0.862);
    fprintf(s,
            "unset label\nset size ratio 1\nset xrange [-1.35:1.35]\nset yrange [-1.35:1.35]\n"
            "set xtics 1\nset ytics 1\nset xlabel 'channel %lld'\nset ylabel 'channel %lld'\n"
            "set title \"pair %lld: %.4g rad a position,\\na turn in %.4g positions\"\n",
            (long long)rope->pair[k].channel[0], (long long)rope->pair[k].channel[1],
            (long long)rope->pair[k].channel[0], rope->pair[k].rad,
            6.283185307179586 / rope->pair[k].rad);
    bool room = rope->pair[k].rad > 0.3;
    for (int p = 0; p < ROPE_TURNS; p++)
        if (room || p == 0 || p == ROPE_TURNS - 1)
            fprintf(s, "set label '%d' at %.6g,%.6g center\n", p,
                    1.18 * rope->pair[k].turn[p][0],
                    1.18 * rope->pair[k].turn[p][1] - (room || p == 0 ? 0.0 : -0.08));
    fprintf(s, "$pair%d << END\n", k);
    for (int p = 0; p < ROPE_TURNS; p++)
        fprintf(s, "%.6g %.6g %d\n", rope->pair[k].turn[p][0], rope->pair[k].turn[p][1], p);
    fprintf(s,
            "END\nplot [t=0:2*pi] '+' using (cos($1)):(sin($1)) with lines lc rgb '#bbbbbb' "
            "notitle, $pair%d using (0):(0):1:2:3 with vectors lw 2 lc palette notitle\n",
            k);
}

static void product_data(FILE *s, const struct plot_rope *rope)
{
    fputs("$products << END\n", s);
    for (int64_t o = 0; o < rope->n_offsets; o++) {
        fprintf(s, "%lld", (long long)o);
        for (int v = 0; v < ROPE_VECTORS; v++)
            fprintf(s, " %.6g %.6g", rope->product[v][0][o], rope->product[v][1][o]);
        fputc('\n', s);
    }
    fputs("END\n", s);
}

static double least_product(const struct plot_rope *rope)
{
    double least = 0.0;
    for (int64_t o = 0; o < rope->n_offsets; o++)
        for (int v = 0; v < ROPE_VECTORS; v++)
            for (int m = 0; m < 2; m++)
                least = fmin(least, rope->product[v][m][o]);
    return least;
}

/* One query as a line, the other as points on it, or beside it. */
static void draw_products(FILE *s, const struct plot_rope *rope)
{
    int64_t every = rope->n_offsets / 48 + 1;
    gnuplot_panel(s, 0.07, 0.96, 0.08, 0.41);
    fprintf(
        s,
        "unset label\nset size noratio\nset xrange [0:%lld]\nset yrange [%g:1.3]\nset xtics "
        "autofreq\nset ytics autofreq\nset title 'Product after rotation: only the offset "
        "m - n counts'\n"
        "set xlabel 'offset m - n, in positions'\nset ylabel 'q.k / (|q| |k|)'\n"
        "set key top right maxrows 2 samplen 3 Left reverse\nplot ",
        (long long)(rope->n_offsets > 1 ? rope->n_offsets - 1 : 1), least_product(rope) - 0.1);
    for (int v = 0; v < ROPE_VECTORS; v++) {
        fprintf(s, "%s$products using 1:%d with lines lw 2 lc rgb '%s' title ",
                v > 0 ? ", " : "", 2 + 2 * v, plot_colors[v]);
        char name[128];
        snprintf(name, sizeof name, "%s, m = %lld", rope->vectors[v],
                 (long long)rope->query[0]);
        gnuplot_string(s, name);
        fprintf(s,
                ", $products every %lld using 1:%d with points pt %d ps 1.2 lw 1.5 lc rgb '%s' "
                "title ",
                (long long)every, 3 + 2 * v, 6 + 2 * v, plot_colors[v]);
        snprintf(name, sizeof name, "%s, m = %lld", rope->vectors[v],
                 (long long)rope->query[1]);
        gnuplot_string(s, name);
    }
    fputc('\n', s);
}

int plot_rope(const struct plot_rope *rope, const struct plot_target *target,
              char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1300, 1000, error);
    if (!s)
        return -1;
    product_data(s, rope);
    gnuplot_viridis_lines(s);
    gnuplot_title(s, "multiplot title",
                  "Rotary encoding: each pair of channels turns with the position, here 0 to 7",
                  rope->caption);
    fprintf(s,
            "set parametric\nset samples 200\nunset key\nset cbrange [0:%d]\nset cbtics 1\n"
            "unset colorbox\n",
            ROPE_TURNS - 1);
    for (int k = 0; k < rope->n_pairs; k++)
        draw_pair(s, rope, k);
    fputs("unset parametric\nset key\n", s);
    draw_products(s, rope);
    fputs("unset multiplot\n", s);
    return gnuplot_end(s, target, error);
}

/* ---- alibi ---- */

static void alibi_data(FILE *s, const struct plot_alibi *alibi)
{
    fputs("$bias << END\n", s);
    int64_t every = alibi->distances / 512 + 1;
    for (int64_t h = 0; h < alibi->heads; h++) {
        for (int64_t n = 0; n < alibi->distances; n += every)
            fprintf(s, "%lld %.6g %lld\n", (long long)n,
                    (double)alibi->bias[h * alibi->distances + n], (long long)(h + 1));
        fputs("\n\n", s);
    }
    fputs("END\n$slopes << END\n", s);
    for (int64_t h = 0; h < alibi->heads; h++)
        fprintf(s, "%lld %.9g\n", (long long)(h + 1), (double)alibi->slopes[h]);
    fputs("END\n", s);
}

int plot_alibi(const struct plot_alibi *alibi, const struct plot_target *target,
               char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1300, 640, error);
    if (!s)
        return -1;
    alibi_data(s, alibi);
    gnuplot_viridis_lines(s);
    gnuplot_title(s, "multiplot title", "ALiBi: the bias each head adds to a score",
                  alibi->caption);
    gnuplot_panel(s, 0.08, 0.52, 0.12, 0.80);
    fprintf(s,
            "set title 'bias by distance'\nset xlabel 'distance, in tokens'\nset ylabel 'bias "
            "(added before the softmax)'\nunset key\nset cbrange [1:%lld]\nset cblabel 'head'\n"
            "set xrange [0:%lld]\nset colorbox user origin 0.535,0.12 size 0.015,0.68\n%s"
            "plot $bias using 1:2:3 with lines lw %d lc palette\n",
            (long long)(alibi->heads > 1 ? alibi->heads : 2), (long long)(alibi->distances - 1),
            alibi->heads <= 16 ? "set cbtics 1\n" : "", alibi->heads <= 16 ? 2 : 1);
    gnuplot_panel(s, 0.68, 0.97, 0.12, 0.80);
    fprintf(
        s,
        "unset colorbox\nset title 'slope of each head'\nset xlabel 'head'\nset ylabel 'slope "
        "(logarithmic)'\nset logscale y 2\nset format y '2^{%%L}'\nset xrange [0.5:%g]\nset "
        "autoscale y\nset offsets 0, 0, graph 0.05, graph 0.05\n"
        "plot $slopes using 1:2:1 with points pt 7 ps %g lc palette\n"
        "unset multiplot\n",
        (double)alibi->heads + 0.5, alibi->heads <= 16 ? 1.2 : 0.6);
    return gnuplot_end(s, target, error);
}

/* ---- t5 ---- */

int plot_t5(const struct plot_t5 *t5, const struct plot_target *target, char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1300, 720, error);
    if (!s)
        return -1;
    fputs("$buckets << END\n", s);
    for (int64_t i = 0; i <= 2 * t5->reach; i++)
        fprintf(s, "%lld %g %g\n", (long long)(i - t5->reach), (double)t5->bidirectional[i],
                (double)t5->causal[i]);
    fputs("END\n", s);
    gnuplot_title(s, "title",
                  "T5: the bucket of each relative position; a bucket has one bias per head",
                  t5->caption);
    long long max = (long long)t5->max_distance;
    fprintf(
        s,
        "set xlabel 'key position - query position'\nset ylabel 'bucket'\nset xrange "
        "[%lld:%lld]\nset yrange [-1:%lld]\nset key right center Left reverse samplen 3\n"
        "do for [x in '-%lld %lld'] { set arrow from x, graph 0 to x, graph 1 nohead dt 3 lc "
        "rgb "
        "'#888888' }\n"
        "set label 'max\\_distance' at -%lld, graph 0.97 offset 0.5,0 textcolor rgb '#666666'\n"
        "plot $buckets using 1:2 with histeps lw 2 lc rgb '%s' title 'bidirectional "
        "(encoder)', "
        "$buckets using 1:3 with histeps lw 2 dt 2 lc rgb '%s' title 'causal (decoder)'\n",
        -(long long)t5->reach, (long long)t5->reach, (long long)t5->num_buckets + 2, max, max,
        max, plot_colors[0], plot_colors[1]);
    return gnuplot_end(s, target, error);
}

/* ---- learned ---- */

static void learned_data(FILE *s, const struct plot_learned *learned)
{
    fputs("$deviations << END\n", s);
    for (int i = 0; i < LEARNED_BARS; i++) {
        fprintf(s, "%d %.6g \"", i, learned->deviation[i]);
        gnuplot_words(s, learned->names[i]);
        fprintf(s, "\" \"%.3f\"\n", learned->deviation[i]);
    }
    fputs("END\n", s);
}

int plot_learned(const struct plot_learned *learned, const struct plot_target *target,
                 char error[PLOT_ERROR])
{
    FILE *s = gnuplot_begin(target, 1500, 1200, error);
    if (!s)
        return -1;
    learned_data(s, learned);
    gnuplot_title(s, "multiplot title",
                  "Learned encoding before training: a table drawn at random",
                  learned->caption);
    fputs("set title 'Learned table: value of each dimension at each position'\n", s);
    plot_table_map(s, learned->table, learned->tokens, learned->dim, learned->first);
    gnuplot_panel(s, 0.18, 0.53, 0.08, 0.44);
    fprintf(
        s,
        "unset colorbox\nset title 'Standard deviation of what is added'\nset xlabel 'standard "
        "deviation'\nset ylabel ''\nset xrange [0:*]\nset yrange [%g:-0.6]\nset style fill "
        "solid "
        "0.9 noborder\nset grid noytics xtics\nset offsets 0, graph 0.15, 0, 0\n"
        "plot $deviations using (0.5*$2):1:(0.5*$2):(0.35):ytic(3) with boxxyerror lc rgb "
        "'%s', "
        "$deviations using 2:1:4 with labels left offset 0.6,0\n",
        (double)LEARNED_BARS - 0.4, plot_colors[0]);
    fputs("set title 'Cosine similarity of its positions'\n", s);
    plot_similarity_map(s, learned->table, learned->tokens, learned->dim, learned->first);
    fputs("unset multiplot\n", s);
    return gnuplot_end(s, target, error);
}
