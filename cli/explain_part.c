/*
 * A part of a model in words: what encodes positions, and what follows from its numbers; of
 * rotations and sinusoids see explain_frequencies.c.
 */
#define _POSIX_C_SOURCE 200809L
#include "explain_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables that are learned ---- */

static void explain_learned(const struct part *p)
{
    explain_say("Table", "%lld learned rows of %lld numbers, added to the embeddings",
                (long long)p->rows, (long long)p->width);
    explain_say(
        "Rows", "position 0 is row %lld, the last one, %lld, row %lld; past it there is none",
        (long long)p->first, (long long)(p->length - 1), (long long)(p->first + p->length - 1));
}

/* ---- ALiBi ---- */

/* The least distance at which slope times distance is more than `much`. */
static int64_t distance_past(double slope, double much)
{
    return (int64_t)floor(much / slope) + 1;
}

static int explain_alibi(const struct cli *cli, const struct part *p)
{
    const double much = 10.0;
    float *slopes = malloc((size_t)p->heads * sizeof *slopes);
    float least = INFINITY, most = 0.0f;
    const enum posenc_status status =
        slopes ? posenc_alibi_slopes(p->heads, p->alibi_bias_max, slopes) : POSENC_ERR_MEMORY;
    for (int64_t h = 0; status == POSENC_OK && h < p->heads; h++) {
        least = slopes[h] < least ? slopes[h] : least;
        most = slopes[h] > most ? slopes[h] : most;
    }
    free(slopes);
    if (status != POSENC_OK)
        return cli_refuse_status(cli, "alibi", status, NULL);
    explain_say("Bias", "minus the distance of query and key, times the slope of the head, is "
                        "added to the scores");
    explain_say("Slopes", "of %lld heads, from %.6g, the steepest, to %.6g, the gentlest",
                (long long)p->heads, (double)most, (double)least);
    explain_say(
        "Reach",
        "the bias is below -%g, a weight of e^-%g = 1/%.0f of what it were, from distance "
        "%lld on in the steepest head, from %lld on in the gentlest",
        much, much, exp(much), (long long)distance_past((double)most, much),
        (long long)distance_past((double)least, much));
    return EXIT_FINE;
}

/* ---- buckets ---- */

/* Of one direction: distances that have a bucket each, and that from which on all share the last. */
static int explain_buckets(const struct cli *cli, const struct part *p, bool bidirectional)
{
    const int64_t n = bidirectional ? p->num_buckets / 2 : p->num_buckets;
    int32_t *least = malloc((size_t)n * sizeof *least);
    const enum posenc_status status =
        least ? posenc_t5_thresholds(p->num_buckets, p->max_distance, bidirectional, least)
              : POSENC_ERR_MEMORY;
    if (status == POSENC_OK)
        explain_say(
            bidirectional ? "Encoder" : "Decoder",
            "%lld buckets%s: distances 0 to %lld have one each, from %ld on all keys share "
            "the last",
            (long long)n, bidirectional ? " each way" : " for keys behind",
            (long long)(n / 2 - 1), (long)least[n - 1]);
    free(least);
    return status == POSENC_OK ? EXIT_FINE : cli_refuse_status(cli, "t5", status, NULL);
}

static int explain_t5(const struct cli *cli, const struct part *p)
{
    explain_say(
        "Bias",
        "a learned number for each head and bucket of distances is added to the scores");
    if (explain_buckets(cli, p, true) != EXIT_FINE)
        return EXIT_USAGE;
    return p->decodes ? explain_buckets(cli, p, false) : EXIT_FINE;
}

/* ---- terms by relative position ---- */

/* The least distance from which on, up to the farthest, all have the same column; -1: no memory. */
static int64_t find_last_column(const struct part *p)
{
    const int64_t keys = p->max_distance + 2;
    int32_t *index = malloc((size_t)keys * sizeof *index);
    int64_t at = -1;
    if (index && posenc_deberta_index(1, keys, keys - 1, p->num_buckets, p->max_distance,
                                      index) == POSENC_OK) {
        /* element i is of key i backwards from the farthest: distance i */
        at = keys - 1;
        while (at > 0 && index[at - 1] == index[keys - 1])
            at--;
    }
    free(index);
    return at;
}

static int explain_deberta(const struct cli *cli, const struct part *p)
{
    const int64_t last = find_last_column(p);
    if (last < 0)
        return cli_refuse_status(cli, "deberta", POSENC_ERR_MEMORY, NULL);
    explain_say("Terms", "by the distance of query and key: %s%s%s",
                p->without_c2p ? "" : "queries by positions (c2p)",
                !p->without_c2p && p->with_p2c ? ", " : "",
                p->with_p2c ? "keys by positions (p2c)" : "");
    if (p->num_buckets)
        explain_say(
            "Buckets",
            "distances up to %lld have one each, beyond they grow with the distance; from "
            "%lld on all share the last",
            (long long)(p->num_buckets / 2), (long long)last);
    else
        explain_say("Distances",
                    "each has a column of its own; from %lld on all share the last",
                    (long long)last);
    return EXIT_FINE;
}

static void explain_xl(const struct part *p)
{
    explain_say(
        "Terms",
        "by the distance of query and key, from 0 to %lld: each has a row of its own, of "
        "which queries, with a learned bias, take the product",
        (long long)(p->length - 1));
}

static void explain_shaw(const struct part *p)
{
    if (p->both_ways)
        explain_say("Terms",
                    "by the distance of query and key, to earlier keys and to later ones: each "
                    "has a row of a sinusoidal table, of which queries, with a learned bias, "
                    "take the product");
    else if (p->bare)
        explain_say("Terms",
                    "by the distance of a key behind the query, below %lld: each has a learned "
                    "embedding, of which queries take the product; farther keys have no term",
                    (long long)p->max_distance);
    else if (p->of_values)
        explain_say("Terms",
                    "by the distance of query and key, below %lld on either side: each has a "
                    "learned embedding, of which queries take the product, and one that is "
                    "added to values by the weights; farther keys have none",
                    (long long)p->max_distance);
    else if (p->left)
        explain_say("Terms",
                    "by the distance of query and key, up to %lld on one side and %lld on the "
                    "other: each has a learned embedding, of which queries take the product",
                    (long long)p->left, (long long)p->right);
    else
        explain_say("Terms",
                    "by the distance of query and key, up to %lld on either side: each has a "
                    "learned embedding, of which queries take the product",
                    (long long)p->max_distance);
}

static void explain_decomposed(const struct part *p)
{
    explain_say("Terms",
                "by the difference of rows, and by that of columns: each has a learned "
                "embedding, %lld of either, of which queries take the product",
                (long long)(2 * p->window - 1));
    explain_say("Patches", "%lld of %lld x %lld each", (long long)p->windows,
                (long long)p->window, (long long)p->window);
}

/* ---- windows ---- */

static void explain_window(const struct part *p)
{
    const int64_t side = 2 * p->window - 1;
    explain_say("Bias",
                "a learned number for each head and each difference of rows and columns in "
                "a window is added to the scores");
    explain_say("Windows",
                "%lld of %lld x %lld patches%s in a picture of %lld x %lld pixels; "
                "patches in different windows do not meet",
                (long long)p->windows, (long long)p->window, (long long)p->window,
                p->window_class ? " and a class token" : "", (long long)p->image,
                (long long)p->image);
    explain_say(
        "Table", "%lld rows: %lld x %lld differences%s",
        (long long)(side * side + 3 * p->window_class), (long long)side, (long long)side,
        p->window_class ? ", and three for the class token as query, as key and with itself"
                        : "");
}

/* ---- any ---- */

static const char *const titles[N_ENCODINGS] = {
    [SINUSOIDAL] = "Sinusoids added to embeddings",
    [LEARNED] = "A learned table",
    [ROPE_HALF] = "Rotation of queries and keys",
    [ROPE_INTERLEAVED] = "Rotation of queries and keys",
    [ALIBI] = "ALiBi: a bias that grows with the distance",
    [T5] = "Biases by buckets of distances",
    [DEBERTA] = "Terms by relative position",
    [TRANSFORMER_XL] = "Terms by relative position",
    [SHAW] = "Terms by relative position",
    [DECOMPOSED] = "Terms by rows and by columns",
    [WINDOW] = "Biases in windows of a picture",
};

/* "full: Rotation of queries and keys, 5 layers" */
static void print_title(const struct part *p)
{
    printf("\n%s%s%s", p->name, *p->name ? ": " : "", titles[p->encoding]);
    if (p->layers)
        printf(", %lld layer%s", (long long)p->layers, p->layers > 1 ? "s" : "");
    puts("");
}

int explain_part(const struct cli *cli, const struct part *p)
{
    print_title(p);
    switch (p->encoding) {
    case SINUSOIDAL:
    case ROPE_HALF:
    case ROPE_INTERLEAVED:
        return explain_frequencies(cli, p);
    case LEARNED:
        explain_learned(p);
        break;
    case ALIBI:
        return explain_alibi(cli, p);
    case T5:
        return explain_t5(cli, p);
    case DEBERTA:
        return explain_deberta(cli, p);
    case TRANSFORMER_XL:
        explain_xl(p);
        break;
    case SHAW:
        explain_shaw(p);
        break;
    case DECOMPOSED:
        explain_decomposed(p);
        break;
    case WINDOW:
        explain_window(p);
        break;
    case N_ENCODINGS:
        break;
    }
    return EXIT_FINE;
}
