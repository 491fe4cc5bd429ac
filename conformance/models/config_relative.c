/*
 * Models whose attention knows relative positions or those in a window:
 *
 *   deberta, deberta-v2  terms of queries and keys by bucket of the distance (He et al.
 *   2006.03654;
 *                        huggingface/transformers, modeling_deberta.py, modeling_deberta_v2.py)
 *   transfo-xl           a term of queries by distance (Dai et al. 1901.02860;
 *   modeling_transfo_xl.py)
 *   swin                 a bias in windows, whose heads and counts differ by stage (Liu et al.
 *                        2103.14030; modeling_swin.py)
 *   beit                 a bias in one window of the whole picture (Bao et al. 2106.08254;
 *                        modeling_beit.py)
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

/* ---- DeBERTa ---- */

static int take_term(const struct fields *f, const char *name, size_t n, struct part *p)
{
    const bool c2p = n == 3 && strncmp(name, "c2p", 3) == 0;
    const bool p2c = n == 3 && strncmp(name, "p2c", 3) == 0;
    if (!c2p && !p2c)
        return refuse(f, "pos_att_type '%.*s' is unknown; known: c2p, p2c", (int)n, name);
    p->c2p |= c2p;
    p->p2c |= p2c;
    return 0;
}

/* A list, or a text with bars between. */
static int read_terms(const struct fields *f, struct part *p)
{
    const json_t *types = find_field(f, NAMES("pos_att_type"), NULL);
    const char *text = json_string_value(types);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *one = json_string_value(json_array_get(types, i));
        if (take_term(f, one ? one : "(no text)", one ? strlen(one) : 9, p))
            return -1;
    }
    while (text && *text) {
        const size_t n = strcspn(text, "|");
        if (take_term(f, text, n, p))
            return -1;
        text += n + (text[n] == '|');
    }
    if (!p->c2p && !p->p2c)
        return refuse(f, "pos_att_type is missing or empty: c2p, p2c or both are needed");
    return 0;
}

/* Absent, -1 or 0: none. */
static int read_optional(const struct fields *f, const char *const *names, double most,
                         int64_t *value)
{
    double number = 0.0;
    if (field_number(f, names, -1.0, most, &number))
        return -1;
    *value = number > 0.0 ? (int64_t)number : 0;
    return 0;
}

int config_deberta(const struct fields *f, struct part *p)
{
    int64_t distance, buckets;
    int32_t index[1];
    p->relative = RELATIVE_DEBERTA;
    if (read_terms(f, p) ||
        read_optional(f, NAMES("max_relative_positions"), (double)MOST, &distance) ||
        read_optional(f, NAMES("position_buckets"), (double)MOST, &buckets))
        return -1;
    p->max_distance = distance ? distance : p->length;
    p->num_buckets = buckets;
    if (posenc_deberta_index(1, 1, 0, p->num_buckets, p->max_distance, index) != POSENC_OK)
        return refuse(f,
                      "position_buckets is %lld with %lld relative positions: an even number "
                      "from 4 to 4096 below them, or -1, is needed",
                      (long long)p->num_buckets, (long long)p->max_distance);
    note(
        f,
        "The buckets' own products with queries and keys (c2p, p2c before they are gathered) "
        "are its code's matrix products: what is checked and timed here gathers and adds them");
    bool learned = true;
    if (field_truth(f, NAMES("position_biased_input"), &learned))
        return -1;
    if (learned)
        note(f,
             "The learned positions it also adds to its input (position_biased_input) are not "
             "covered");
    return 0;
}

/* ---- Transformer-XL ---- */

int config_transformer_xl(const struct fields *f, struct part *p)
{
    int64_t memory;
    p->relative = RELATIVE_TRANSFORMER_XL;
    p->c2p = true;
    if (field_whole(f, NAMES("mem_len"), MOST / 2, 0, &memory) ||
        field_whole(f, NAMES("d_head"), MOST, p->head_dim, &p->head_dim))
        return -1;
    p->length = memory + 1; /* one token after what it remembers */
    note(f,
         "Of its two terms by position, (q + v) R is gathered here; R, a sinusoidal table of "
         "distances, sines first, and the products are its code's");
    return 0;
}

/* ---- Swin, BEiT ---- */

static int window_size(const struct fields *f, struct part *p, int64_t side)
{
    if (side < 1 || side > 256)
        return refuse(f, "a window of %lld x %lld patches: at most 256 x 256 is possible",
                      (long long)side, (long long)side);
    p->window = side;
    p->length = side * side + p->window_class;
    return 0;
}

static int read_patches(const struct fields *f, int64_t *side)
{
    int64_t image, patch;
    if (field_whole(f, NAMES("image_size"), 1 << 14, 224, &image) ||
        field_whole(f, NAMES("patch_size"), 1 << 14, 0, &patch))
        return -1;
    *side = image / patch;
    if (image % patch)
        return refuse(f, "image_size is %lld: a multiple of patch_size, %lld, is needed",
                      (long long)image, (long long)patch);
    return 0;
}

int config_beit(const struct fields *f, struct part *p)
{
    bool own = false, shared = false;
    int64_t side;
    if (field_truth(f, NAMES("use_relative_position_bias"), &own) ||
        field_truth(f, NAMES("use_shared_relative_position_bias"), &shared))
        return -1;
    if (!own && !shared)
        return refuse(f, "use_relative_position_bias and use_shared_relative_position_bias are "
                         "false: one of them true is needed");
    p->window_class = true;
    p->windows = 1;
    return read_patches(f, &side) || window_size(f, p, side) ? -1 : 0;
}

static int read_stage(const struct fields *f, const struct part *like, const json_t *heads,
                      size_t stage, int64_t side, struct part *p)
{
    static const char *const names[MOST_PARTS] = { "stage1", "stage2", "stage3", "stage4" };
    const double number = json_number_value(json_array_get(heads, stage));
    int64_t window;
    *p = *like;
    p->name = names[stage];
    p->width = like->width << stage;
    if (!(number >= 1.0 && number <= (double)p->width) || number != (double)(int64_t)number ||
        p->width % (int64_t)number)
        return refuse(f,
                      "num_heads of stage %d is %.10g: a divisor of its width, %lld, is needed",
                      (int)stage + 1, number, (long long)p->width);
    p->heads = (int64_t)number;
    p->head_dim = p->width / p->heads;
    side = side >> stage ? side >> stage : 1;
    if (field_whole(f, NAMES("window_size"), 256, 7, &window))
        return -1;
    if (side <= window)
        window = side;
    p->windows = (side + window - 1) / window * ((side + window - 1) / window);
    return window_size(f, p, window);
}

int config_swin(const struct fields *f, const struct part *like, struct config *c)
{
    const json_t *heads = find_field(f, NAMES("num_heads"), NULL);
    struct part first = *like;
    int64_t side;
    if (json_array_size(heads) < 1 || json_array_size(heads) > MOST_PARTS)
        return refuse(f,
                      "num_heads is no list of 1 to %d numbers: the heads of each stage are "
                      "needed",
                      MOST_PARTS);
    if (field_whole(f, NAMES("embed_dim"), MOST, 0, &first.width) || read_patches(f, &side))
        return -1;
    for (size_t stage = 0; stage < json_array_size(heads); stage++, c->n_parts++)
        if (read_stage(f, &first, heads, stage, side, &c->parts[c->n_parts]))
            return -1;
    note(f, "The masks of its shifted windows are not covered");
    return 0;
}
