/*
 * Frequencies in words: which channels turn, how long a full turn takes, which pairs a scaling slows
 * and by how much, and from which position on the angles of the code that a model was published with
 * are off.
 */
#define _POSIX_C_SOURCE 200809L
#include "explain_model.h"
#include "drift.h"
#include "spec.h"
#include "show.h"

#include "conformance/problem/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A model's plan, and that of the same base without its scaling, for sequences of some length. */
struct plans {
    struct posenc_freqs *freqs[2];
    struct posenc_freqs_view own, plain;
};

static enum posenc_status make_plans(const struct part *p, int64_t seq_len, struct plans *plans,
                                     struct posenc_error *error)
{
    struct posenc_freqs_spec spec = p->freqs;
    spec.seq_len = seq_len;
    *plans = (struct plans){ .freqs = { NULL } };
    enum posenc_status status = posenc_freqs_create(&spec, &plans->freqs[0], error);
    spec = spec_unscaled(spec);
    if (status == POSENC_OK)
        status = posenc_freqs_create(&spec, &plans->freqs[1], error);
    if (status != POSENC_OK)
        return status;
    plans->own = posenc_freqs_view(plans->freqs[0]);
    plans->plain = posenc_freqs_view(plans->freqs[1]);
    return POSENC_OK;
}

static void free_plans(struct plans *plans)
{
    posenc_freqs_destroy(plans->freqs[0]);
    posenc_freqs_destroy(plans->freqs[1]);
}

/* ---- what turns ---- */

static void say_pairs(const struct part *p)
{
    const int64_t half = p->rotary_dim / 2, rest = p->head_dim - p->rotary_dim;
    char still[96] = "", pairs[96] = "of neighbours: channel 2 i with channel 2 i + 1";
    if (rest)
        snprintf(still, sizeof still, ", the other %lld %s", (long long)rest,
                 p->halves ? "likewise by another position" : "stay as they are");
    if (p->encoding == ROPE_HALF)
        snprintf(pairs, sizeof pairs, "half of them apart: channel i with channel i + %lld",
                 (long long)half);
    explain_say("Channels", "%s%lld of a head turn, in %lld pairs %s%s", rest ? "" : "all ",
                (long long)p->rotary_dim, (long long)half, pairs, still);
    if (p->norms)
        explain_say("Before", "queries and keys are normalised by their root mean square, %s",
                    p->across_heads ? "over all heads of a token" : "each head by itself");
}

/* How the pairs of one axis lie among those of the others. */
static const char *layout_of(const struct part *p)
{
    switch (p->freqs.mrope_layout) {
    case POSENC_MROPE_RESTARTED:
        return "each from the shortest wavelength on";
    case POSENC_MROPE_ALTERNATING:
        return "by turns, each from the shortest wavelength on";
    case POSENC_MROPE_DEALT:
        return "among which the wavelengths are dealt out";
    case POSENC_MROPE_INTERLEAVED:
        return "by turns";
    case POSENC_MROPE_CHUNKED:
        break;
    }
    return "one section after the other";
}

static void say_axes(const struct part *p)
{
    static const char *const of_text[] = { "time", "height", "width" },
                             *const of_rows[] = { "row", "column" },
                             *const of_columns[] = { "column", "row" },
                             *const of_frames[] = { "time", "row", "column" };
    const char *const *names = !p->tower         ? of_text
                               : p->axes == 3    ? of_frames
                               : p->column_first ? of_columns
                                                 : of_rows;
    const int64_t *section = p->freqs.mrope_section;
    char text[160] = "";
    size_t at = 0;
    for (int i = 0; i < 3 && section[i]; i++)
        at = append(text, sizeof text, at, "%s%lld with its %s", i ? ", " : "",
                    (long long)section[i], names[i]);
    if (at)
        explain_say("Axes", "of the pairs of a patch of a picture turn %s, %s%s", text,
                    layout_of(p), p->tower ? "" : "; of text all three are the position");
}

/* ---- wavelengths ---- */

/* 6.283, 9 973, 2 563 000: to four digits. */
static const char *show_tokens(double tokens)
{
    static char text[2][24];
    static int turn;
    if (tokens < 1e3) {
        turn = !turn;
        snprintf(text[turn], sizeof text[turn], "%.4g", tokens);
        return text[turn];
    }
    const double unit = pow(10.0, floor(log10(tokens)) - 3.0);
    return show_count(round(tokens / unit) * unit);
}

static double wavelength(const struct posenc_freqs_view *view, int64_t pair)
{
    return 6.283185307179586 / view->omega[pair];
}

/* Of sequences up to a length. */
static void say_wavelengths(const struct posenc_freqs_view *view, int64_t length)
{
    int64_t shortest = -1, longest = -1, slow = 0, still = 0;
    for (int64_t i = 0; i < view->n_pairs; i++) {
        if (!(view->omega[i] > 0.0)) {
            still++;
            continue;
        }
        shortest = shortest < 0 || view->omega[i] > view->omega[shortest] ? i : shortest;
        longest = longest < 0 || view->omega[i] < view->omega[longest] ? i : longest;
        slow += wavelength(view, i) > (double)length;
    }
    if (shortest < 0)
        return;
    char rest[160] = "";
    size_t at = 0;
    if (slow)
        at = append(rest, sizeof rest, at,
                    "; %lld of %lld pairs %s not come round within %s positions",
                    (long long)slow, (long long)view->n_pairs, slow > 1 ? "do" : "does",
                    show_count((double)length));
    if (still)
        append(rest, sizeof rest, at, "; %lld do not turn at all", (long long)still);
    explain_say("Wavelengths",
                "a full turn takes from %s tokens (pair %lld) to %s (pair %lld)%s",
                show_tokens(wavelength(view, shortest)), (long long)shortest,
                show_tokens(wavelength(view, longest)), (long long)longest, rest);
}

/* ---- scaling ---- */

/* How many times slower a pair turns than without the scaling; infinity: it does not turn. */
static double slowed(const struct plans *plans, int64_t pair)
{
    return plans->own.omega[pair] > 0.0 ? plans->plain.omega[pair] / plans->own.omega[pair]
                                        : (double)INFINITY;
}

/* What pairs next to each other have in common: unchanged, slowed by the factor, stopped, or what lies
 * between. */
enum change { UNCHANGED, BY_FACTOR, STOPPED, BETWEEN };

static enum change change_of(double times, double factor)
{
    const double near = 1e-9;
    return isinf(times)                        ? STOPPED
           : fabs(times - 1.0) < near          ? UNCHANGED
           : fabs(times / factor - 1.0) < near ? BY_FACTOR
                                               : BETWEEN;
}

static size_t print_run(const struct plans *plans, int64_t from, int64_t to, enum change change,
                        char *text, size_t room, size_t at)
{
    double least = (double)INFINITY, most = 0.0;
    for (int64_t i = from; i <= to; i++) {
        least = fmin(least, slowed(plans, i));
        most = fmax(most, slowed(plans, i));
    }
    at = append(text, room, at, from < to ? "%spairs %lld-%lld " : "%spair %lld ",
                at ? ", " : "", (long long)from, (long long)to);
    if (change == UNCHANGED)
        return append(text, room, at, "unchanged");
    if (change == STOPPED)
        return append(text, room, at, "stopped");
    if (change == BY_FACTOR || most / least < 1.0 + 1e-9)
        return append(text, room, at, "slowed %.4g times", most);
    return append(text, room, at, "slowed %.4g to %.4g times", least, most);
}

static void say_scaling(const struct part *p, const struct plans *plans, const char *about)
{
    const int64_t n = plans->own.n_pairs;
    char text[1024] = "";
    size_t at = 0;
    for (int64_t from = 0, to; from < n; from = to + 1) {
        const enum change change = change_of(slowed(plans, from), p->freqs.factor);
        to = from;
        while (to + 1 < n && change_of(slowed(plans, to + 1), p->freqs.factor) == change)
            to++;
        at = print_run(plans, from, to, change, text, sizeof text, at);
    }
    explain_say(about, "%s: %s", scaling_names[p->freqs.scaling], text);
}

static void say_magnitude(const struct posenc_freqs_view *view)
{
    const double by = view->attention_factor;
    if (fabs(by - 1.0) > 1e-12)
        explain_say("Magnitude",
                    "cosines and sines are multiplied by %.6g (attention factor), and "
                    "so scores by its square, %.6g",
                    by, by * by);
}

/* ---- precision ---- */

static int say_precision(const struct cli *cli, const struct part *p, int64_t length,
                         const char *about)
{
    static const char *const whose[] = {
        [POSENC_HF_F32] = "Hugging Face's code", [POSENC_GGML_F32] = "ggml"
    };
    const enum posenc_profile profile = p->ggml ? POSENC_GGML_F32 : POSENC_HF_F32;
    struct drift drift[] = { { 1e-3, -1 }, { 1e-2, -1 } };
    struct posenc_freqs_spec spec = p->freqs;
    struct posenc_error error = { 0 };
    char text[256] = "";
    size_t at = 0;
    if (!scaling_in_profile(spec.scaling, profile)) {
        explain_say(about, "of this scaling there is no profile %s", profile_names[profile]);
        return EXIT_FINE;
    }
    spec.seq_len = length;
    const enum posenc_status status = drift_find(&spec, profile, length, drift, 2, &error);
    if (status != POSENC_OK)
        return cli_refuse_status(cli, "tables", status, &error);
    for (int i = 0; i < 2 && (i == 0 || drift[0].first >= 0); i++)
        at = append(text, sizeof text, at,
                    drift[i].first < 0 ? "%sby more than %g nowhere up to position %lld"
                                       : "%sby more than %g first at position %lld",
                    i ? ", " : "", drift[i].limit,
                    (long long)(drift[i].first < 0 ? length - 1 : drift[i].first));
    explain_say(about,
                "%s forms its angles in f32 (profile %s): a cosine or sine is off %s (found by "
                "computing them position by position)",
                whose[profile], profile_names[profile], text);
    return EXIT_FINE;
}

/* ---- lengths ---- */

/* Of rules whose frequencies depend on the length of a sequence: both sides of where they change. */
static int say_lengths(const struct cli *cli, const struct part *p)
{
    const bool longrope = p->freqs.scaling == POSENC_SCALING_LONGROPE;
    const int64_t border =
        longrope ? (int64_t)p->freqs.original_max_position_embeddings : p->length;
    const int64_t lengths[] = { border < p->length ? border : p->length,
                                longrope ? p->length : 2 * p->length };
    for (int i = 0; i < 2; i++) {
        struct plans plans;
        struct posenc_error error = { 0 };
        char about[48];
        if (i > 0 && lengths[1] <= border)
            break;
        const enum posenc_status status = make_plans(p, lengths[i], &plans, &error);
        if (status == POSENC_OK) {
            snprintf(about, sizeof about, "Up to %lld", (long long)border);
            if (i > 0)
                explain_say(
                    "Longer",
                    longrope ? "sequences of more than %lld tokens have other factors, for all "
                               "of their positions; at %lld:"
                             : "beyond %lld tokens the base grows with the sequence; at %lld:",
                    (long long)border, (long long)lengths[1]);
            say_scaling(p, &plans, i == 0 ? about : "");
            say_wavelengths(&plans.own, lengths[i]);
            if (i == 0)
                say_magnitude(&plans.own);
        }
        free_plans(&plans);
        if (status != POSENC_OK)
            return cli_refuse_status(cli, "frequencies", status, &error);
        if ((i == 0 || longrope) && say_precision(cli, p, lengths[i], "Precision") != EXIT_FINE)
            return EXIT_USAGE;
    }
    return EXIT_FINE;
}

int explain_frequencies(const struct cli *cli, const struct part *p)
{
    const enum posenc_scaling scaling = p->freqs.scaling;
    struct plans plans;
    struct posenc_error error = { 0 };
    if (p->encoding == SINUSOIDAL)
        explain_say("Channels", "%lld: %s%s", (long long)p->width,
                    p->cos_first ? "all cosines, then all sines"
                    : p->sin_cos ? "all sines, then all cosines"
                                 : "sine and cosine by turns",
                    p->freqs.convention == POSENC_ENDPOINT ? ", wavelengths to the endpoint"
                                                           : "");
    else {
        say_pairs(p);
        say_axes(p);
    }
    if (scaling == POSENC_SCALING_DYNAMIC || scaling == POSENC_SCALING_LONGROPE)
        return say_lengths(cli, p);
    const enum posenc_status status = make_plans(p, p->length, &plans, &error);
    if (status == POSENC_OK) {
        say_wavelengths(&plans.own, p->length);
        if (scaling != POSENC_SCALING_NONE)
            say_scaling(p, &plans, "Scaling");
        say_magnitude(&plans.own);
    }
    free_plans(&plans);
    return status == POSENC_OK ? say_precision(cli, p, p->length, "Precision")
                               : cli_refuse_status(cli, "frequencies", status, &error);
}
