/*
 * Makes of the command line the spec of a plan of frequencies (see spec.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "spec.h"
#include "base/text/text.h"
#include "conformance/problem/problem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 4 << 20 }; /* 65536 numbers and then some */

static bool for_sinusoidal(unsigned kind) { return (kind & TABLE_SINUSOIDAL) != 0; }

/* ---- parameters: options override the model's ---- */

static void take_parameters(const struct cli *cli, struct cli_spec *spec)
{
    struct posenc_freqs_spec *freqs = &spec->freqs;
    const struct {
        double given, *value;
    } reals[] = {
        { cli->rope_theta, &freqs->rope_theta },
        { cli->factor, &freqs->factor },
        { cli->original, &freqs->original_max_position_embeddings },
        { cli->max_position_embeddings, &freqs->max_position_embeddings },
        { cli->low_freq_factor, &freqs->low_freq_factor },
        { cli->high_freq_factor, &freqs->high_freq_factor },
        { cli->beta_fast, &freqs->beta_fast },
        { cli->beta_slow, &freqs->beta_slow },
        { cli->attention_factor, &freqs->attention_factor },
        { cli->mscale, &freqs->mscale },
        { cli->mscale_all_dim, &freqs->mscale_all_dim },
        { cli->partial_rotary_factor, &freqs->partial_rotary_factor },
        { cli->xpos_scale_base, &freqs->xpos_scale_base },
        { cli->xpos_centre, &freqs->xpos_centre },
        { cli->scale, &spec->scale },
    };
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (!isnan(reals[i].given))
            *reals[i].value = reals[i].given;
    freqs->seq_len = cli->seq_len != INT64_MIN ? cli->seq_len : freqs->seq_len;
    freqs->truncate = cli->truncate >= 0 ? cli->truncate != 0 : freqs->truncate;
    freqs->xpos_inverse = cli->xpos_inverse || freqs->xpos_inverse;
    if (cli->profile >= 0)
        freqs->profile = (enum posenc_profile)cli->profile;
    if (cli->convention >= 0)
        freqs->convention = (enum posenc_convention)cli->convention;
    if (cli->scaling >= 0)
        freqs->scaling = (enum posenc_scaling)cli->scaling;
    if (cli->layout >= 0)
        spec->layout = (enum posenc_layout)cli->layout;
}

static int refuse_dim(const struct cli *cli, const char *option, int64_t value, int64_t most)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return cli_refuse(cli, option, text, "expected an even integer from 2 to %lld",
                      (long long)most);
}

static int take_dim(const struct cli *cli, unsigned kind, int64_t otherwise,
                    struct posenc_freqs_spec *freqs)
{
    int64_t head_dim = cli->dim != INT64_MIN ? cli->dim
                       : freqs->dim > 0      ? freqs->dim
                                             : otherwise;
    if (head_dim <= 0)
        return cli_refuse(cli, "--dim", NULL,
                          "expected --dim D, an integer from 1 to 65536, or --model NAME");
    freqs->dim = head_dim;
    if (!for_sinusoidal(kind) && freqs->dim % 2 != 0)
        return refuse_dim(cli, "--dim", freqs->dim, 65536);
    if (cli->rotary_dim != INT64_MIN) {
        if (cli->rotary_dim % 2 != 0 || cli->rotary_dim > head_dim)
            return refuse_dim(cli, "--rotary-dim", cli->rotary_dim, head_dim);
        freqs->dim = cli->rotary_dim;
    }
    return EXIT_FINE;
}

/* ---- longrope's factors: "1.0,1.1,...", or @FILE with the same, also as a JSON array ---- */

static int read_list(const struct cli *cli, const char *option, const char *path, char *text)
{
    FILE *in = fopen(path, "r");
    if (!in)
        return cli_refuse(cli, option, path, "%s: expected a file of numbers", strerror(errno));
    size_t n = fread(text, 1, LIST_BYTES - 1, in);
    bool failed = ferror(in) != 0, more = n == LIST_BYTES - 1;
    int why = errno;
    fclose(in);
    text[n] = '\0';
    if (failed || more || strlen(text) != n)
        return cli_refuse(cli, option, path, "%s: expected a text file of numbers",
                          failed ? strerror(why)
                          : more ? "too large"
                                 : "holds a zero byte");
    return EXIT_FINE;
}

/* `text` is cut up. */
static int parse_list(const struct cli *cli, const char *option, char *text, int64_t pairs,
                      double *factors)
{
    int64_t n = 0;
    for (char *item = strtok(text, ", \t\r\n[]"); item;
         item = strtok(NULL, ", \t\r\n[]"), n++) {
        double value;
        if (!parse_real(item, &value)) {
            item[strnlen(item, 40)] = '\0';
            return cli_refuse(cli, option, item,
                              "expected numbers, separated by commas, or @FILE");
        }
        if (n < pairs)
            factors[n] = value;
    }
    if (n != pairs) {
        char count[32];
        snprintf(count, sizeof count, "%lld numbers", (long long)n);
        return cli_refuse(cli, option, count, "expected %lld, one for each pair",
                          (long long)pairs);
    }
    return EXIT_FINE;
}

static int take_factors(const struct cli *cli, const char *option, const char *given,
                        int64_t pairs, double **factors)
{
    char *text = given[0] == '@' ? malloc(LIST_BYTES) : strdup(given);
    *factors = malloc((size_t)pairs * sizeof **factors);
    int status = EXIT_FINE;
    if (!text || !*factors)
        status = cli_refuse_status(cli, option, POSENC_ERR_MEMORY, NULL);
    else if (given[0] == '@')
        status = read_list(cli, option, given + 1, text);
    if (status == EXIT_FINE)
        status = parse_list(cli, option, text, pairs, *factors);
    free(text);
    return status;
}

/* `dim`: that of the factors that are there. */
static int take_longrope(const struct cli *cli, int64_t dim, struct cli_spec *spec)
{
    int64_t pairs = spec->freqs.dim / 2;
    const struct {
        const char *option, *given;
        const double **use;
    } lists[] = { { "--short-factors", cli->short_factors, &spec->freqs.short_factor },
                  { "--long-factors", cli->long_factors, &spec->freqs.long_factor } };
    for (size_t i = 0; i < 2 && spec->freqs.scaling == POSENC_SCALING_LONGROPE; i++) {
        if (lists[i].given) {
            if (take_factors(cli, lists[i].option, lists[i].given, pairs, &spec->factors[i]) !=
                EXIT_FINE)
                return EXIT_USAGE;
            *lists[i].use = spec->factors[i];
        } else if (!*lists[i].use || spec->freqs.dim != dim) {
            return cli_refuse(cli, lists[i].option, NULL,
                              "expected %lld numbers, one for each pair, separated by commas, "
                              "or @FILE",
                              (long long)pairs);
        }
    }
    return EXIT_FINE;
}

/* ---- sections of pairs, each with an axis of its own ---- */

static int parse_sections(const struct cli *cli, int64_t section[3])
{
    const char *at = cli->mrope_section;
    int n = 0;
    section[0] = section[1] = section[2] = 0;
    for (bool more = true; more; n++) {
        char number[32];
        size_t length = strcspn(at, ",");
        snprintf(number, sizeof number, "%.*s", (int)(length < 31 ? length : 31), at);
        if (n == 3 || !parse_integer(number, 1, 32768, &section[n])) {
            n = 0;
            break;
        }
        more = at[length] != '\0';
        at += length + more;
    }
    if (n < 2)
        return cli_refuse(cli, "--mrope-section", cli->mrope_section,
                          "expected T,H,W or H,W: pairs of each axis, integers from 1");
    return EXIT_FINE;
}

int spec_axes(const struct posenc_freqs_spec *freqs)
{
    int n = 1;
    while (n < 3 && freqs->mrope_section[n] != 0)
        n++;
    return n;
}

/* Refuses the first option that has no effect, since one that it needs is not given. */
static int refuse_idle(const struct cli *cli, const struct posenc_freqs_spec *freqs)
{
    bool sections = freqs->mrope_section[0] != 0, grid = cli->grid != INT64_MIN;
    bool xpos = freqs->xpos_scale_base != 0.0;
    const struct {
        const char *option;
        bool idle;
        const char *needs;
    } options[] = {
        { "--layer-type", cli->layer_type && cli->model.n == 0, "--model or --config" },
        { "--grid", grid && !sections, "--mrope-section" },
        { "--mrope-layout", cli->mrope_layout >= 0 && !sections, "--mrope-section" },
        { "--grid-order", cli->grid_order >= 0 && !grid, "--grid" },
        { "--grid-scale", !isnan(cli->grid_scale) && !grid, "--grid" },
        { "--xpos-centre", !isnan(cli->xpos_centre) && !xpos, "--xpos-scale-base" },
        { "--xpos-inverse", cli->xpos_inverse && !xpos, "--xpos-scale-base" },
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].idle)
            return cli_refuse(cli, options[i].option, NULL, "has no effect here: it needs %s",
                              options[i].needs);
    }
    return EXIT_FINE;
}

/* A sinusoidal encoding of several axes is that of each, side by side; no other is known. */
static int take_sections(const struct cli *cli, unsigned kind, struct posenc_freqs_spec *freqs)
{
    int64_t *section = freqs->mrope_section;
    if (cli->mrope_section && parse_sections(cli, section) != EXIT_FINE)
        return EXIT_USAGE;
    if (refuse_idle(cli, freqs) != EXIT_FINE)
        return EXIT_USAGE;
    if (section[0] == 0)
        return EXIT_FINE;
    int64_t sum = section[0] + section[1] + section[2];
    if (sum != freqs->dim / 2) {
        char text[96];
        snprintf(text, sizeof text, "%lld pairs", (long long)sum);
        return cli_refuse(
            cli, "--mrope-section", text, "expected sections that add up to %lld, half of %s",
            (long long)(freqs->dim / 2), for_sinusoidal(kind) ? "dim" : "rotary_dim");
    }
    if (cli->mrope_layout >= 0)
        freqs->mrope_layout = (enum posenc_mrope_layout)cli->mrope_layout;
    else if (for_sinusoidal(kind))
        freqs->mrope_layout = POSENC_MROPE_RESTARTED;
    if (for_sinusoidal(kind) && freqs->mrope_layout != POSENC_MROPE_RESTARTED)
        return cli_refuse(cli, "--mrope-layout", mrope_layout_names[freqs->mrope_layout],
                          "expected restarted: a sinusoidal table has the axes side by side");
    return EXIT_FINE;
}

int spec_take(const struct cli *cli, unsigned kind, int64_t otherwise, struct cli_spec *spec)
{
    *spec = (struct cli_spec){ .freqs = posenc_freqs_spec_init(), .scale = 1.0 };
    enum posenc_kernel kernel =
        for_sinusoidal(kind) ? POSENC_KERNEL_sinusoidal : POSENC_KERNEL_rope_table;
    if (cli->model.n > 0 && spec_take_model(cli, kernel, spec) != EXIT_FINE)
        return EXIT_USAGE;
    int64_t dim = spec->freqs.dim; /* of the model, and of its factors */
    take_parameters(cli, spec);
    if (cli_refuse_foreign(cli, kind) != EXIT_FINE ||
        cli_refuse_unscaled(cli, spec->freqs.scaling) != EXIT_FINE ||
        take_dim(cli, kind, otherwise, &spec->freqs) != EXIT_FINE ||
        take_sections(cli, kind, &spec->freqs) != EXIT_FINE)
        return EXIT_USAGE;
    return take_longrope(cli, dim, spec);
}

void spec_settle_length(const struct cli *cli, int64_t largest, struct posenc_freqs_spec *freqs)
{
    const bool longrope = freqs->scaling == POSENC_SCALING_LONGROPE;
    const double trained =
        longrope ? freqs->original_max_position_embeddings : freqs->max_position_embeddings;
    if (cli->seq_len != INT64_MIN || largest < 0 ||
        (!longrope && freqs->scaling != POSENC_SCALING_DYNAMIC))
        return;
    freqs->seq_len = largest + 1;
    if (trained > 0.0 && (double)freqs->seq_len > trained)
        text_print(stderr,
                   "posenc %s: %s of %lld tokens, the largest position and 1, where %.10g were "
                   "trained on; --seq-len N takes another length\n",
                   cli->command, longrope ? "longrope: the long factors," : "dynamic: the base",
                   (long long)freqs->seq_len, trained);
}

void spec_free(struct cli_spec *spec)
{
    free(spec->factors[0]);
    free(spec->factors[1]);
    spec->factors[0] = spec->factors[1] = NULL;
    model_free(&spec->model);
}

struct posenc_freqs_spec spec_unscaled(struct posenc_freqs_spec freqs)
{
    freqs.scaling = POSENC_SCALING_NONE;
    freqs.attention_factor = 0.0;
    freqs.partial_rotary_factor = 1.0;
    return freqs;
}
