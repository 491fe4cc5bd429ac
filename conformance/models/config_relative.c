/*
 * Models whose attention knows relative positions or those in a window, beyond what members.txt
 * says of them:
 *
 *   deberta, deberta-v2  terms of queries and keys by bucket of the distance (He et al. 2006.03654;
 *                        huggingface/transformers, modeling_deberta.py, modeling_deberta_v2.py)
 *   transfo-xl           a term of queries by distance (Dai et al. 1901.02860;
 *                        modeling_transfo_xl.py)
 *   sam                  terms of queries by rows and by columns of a picture, in windows and over
 *                        all of it, beside a learned table (Kirillov et al. 2304.02643;
 *                        modeling_sam.py)
 *   swin                 a bias in windows, whose heads and counts differ by stage (Liu et al.
 *                        2103.14030; modeling_swin.py)
 *   beit                 a bias in one window of the whole picture (Bao et al. 2106.08254;
 *                        modeling_beit.py)
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <stdio.h>
#include <string.h>

/* A list, or a text with bars between. */
static int read_terms(const struct fields *f, struct part *p)
{
    const json_t *types = member_value(f, "pos_att_type"), *type;
    char terms[64] = "";
    size_t i;
    if (json_is_string(types))
        snprintf(terms, sizeof terms, "%s", json_string_value(types));
    json_array_foreach(types, i, type)
    {
        const size_t n = strlen(terms);
        snprintf(terms + n, sizeof terms - n, "%s|",
                 json_is_string(type) ? json_string_value(type) : "(no text)");
    }
    p->without_c2p = true;
    for (char *rest, *term = strtok_r(terms, "|", &rest); term;
         term = strtok_r(NULL, "|", &rest)) {
        const bool c2p = strcmp(term, "c2p") == 0, p2c = strcmp(term, "p2c") == 0;
        if (!c2p && !p2c)
            return refuse(f, "pos_att_type '%s' is unknown; known: c2p, p2c", term);
        p->without_c2p &= !c2p;
        p->with_p2c |= p2c;
    }
    return p->without_c2p && !p->with_p2c
               ? refuse(f, "pos_att_type is missing or empty: c2p, p2c or both are needed")
               : 0;
}

int config_deberta(const struct fields *f, struct part *p)
{
    int32_t index[1];
    if (read_terms(f, p))
        return -1;
    if (p->max_distance < 1) {
        p->max_distance = p->length;
        p->origins[OF_max_distance] = p->origins[OF_length];
    }
    return posenc_deberta_index(1, 1, 0, p->num_buckets, p->max_distance, index) == POSENC_OK
               ? 0
               : refuse(f,
                        "position_buckets is %lld with %lld relative positions: an even number "
                        "from 4 to 4096 below them, or -1, is needed",
                        (long long)p->num_buckets, (long long)p->max_distance);
}

static int read_stage(const struct fields *f, const char *flags, const json_t *heads,
                      size_t stage, struct part *p)
{
    static const char *const names[] = { "stage1", "stage2", "stage3", "stage4" };
    struct member own = { .value = json_array_get(heads, stage) };
    double number;
    p->name = names[stage < MODEL_MAX_PARTS ? stage : MODEL_MAX_PARTS - 1];
    if (!lists(flags, "flat")) {
        p->width <<= stage;
        p->side = p->side >> stage ? p->side >> stage : 1;
    }
    snprintf(own.name, sizeof own.name, "num_heads of stage %zu", stage + 1);
    if (value_read(f, &own, IS_WHOLE, "divisor width", p, &number))
        return -1;
    p->heads = (int64_t)number;
    p->layers = json_integer_value(json_array_get(member_value(f, "depths"), stage));
    p->head_dim = p->width / p->heads;
    origin_say(p, "heads", "num_heads[%zu]", stage);
    origin_say(p, "layers", "depths[%zu]", stage);
    const int status = members_read(f,
                                    lists(flags, "clips")   ? "stage clips"
                                    : lists(flags, "crops") ? "stage crops"
                                                            : "stage",
                                    p);
    origin_say(p, "windows", "(%lld patches a side / window, rounded up) squared",
               (long long)p->side);
    return status;
}

/* Stages with as many heads in layers that see as many patches are one part. */
static bool joins(const struct part *last, const struct part *p)
{
    return last->heads == p->heads && last->side == p->side && last->width == p->width;
}

int config_swin(const struct fields *f, const char *flags, const struct part *like,
                struct config *c)
{
    const json_t *heads = member_value(f, "num_heads num_attention_heads");
    if (json_array_size(heads) < 1)
        return refuse(f, "num_heads is no list of numbers: the heads of each stage are needed");
    for (size_t stage = 0; stage < json_array_size(heads); stage++) {
        struct part p = *like, *last = c->n_parts ? &c->parts[c->n_parts - 1] : NULL;
        if (stage == MODEL_MAX_PARTS && !lists(flags, "flat"))
            return refuse(f, "num_heads has %zu stages: at most %d are read",
                          json_array_size(heads), MODEL_MAX_PARTS);
        if (read_stage(f, flags, heads, stage, &p))
            return -1;
        if (last && joins(last, &p))
            last->layers += p.layers;
        else if (c->n_parts == MODEL_MAX_PARTS)
            return refuse(f, "its stages differ in more than %d ways", MODEL_MAX_PARTS);
        else
            c->parts[c->n_parts++] = p;
    }
    if (c->n_parts == 1)
        c->parts[0].name = "";
    return 0;
}

/* ---- SAM ---- */

/* Layers that see windows alone, or the whole picture of `whole` patches a side. */
static int add_terms(const struct fields *f, const struct part *like, const char *name,
                     int64_t layers, int64_t window, struct config *c)
{
    struct part *p = &c->parts[c->n_parts];
    const int64_t whole = like->side;
    if (layers == 0)
        return 0;
    *p = *like;
    p->name = name;
    p->layers = layers;
    p->window = window ? window : whole;
    p->windows = window ? (whole + window - 1) / window : 1;
    p->windows *= p->windows;
    c->n_parts++;
    origin_say(p, "layers",
               window ? "num_hidden_layers less global_attn_indexes" : "global_attn_indexes");
    origin_say(p, "window", window ? "window_size" : "image_size / patch_size");
    origin_say(p, "windows", "(%lld patches a side / window, rounded up) squared",
               (long long)whole);
    return members_read(f, "decomposed_part", p);
}

static bool has_number(const json_t *list, int64_t number)
{
    const json_t *one;
    size_t i;
    json_array_foreach(list, i, one) if (json_is_integer(one) &&
                                         json_integer_value(one) == number) return true;
    return false;
}

int config_decomposed(const struct fields *f, struct part *like, struct config *c)
{
    const json_t *whole = member_value(f, "global_attn_indexes");
    struct part table = { .name = "table", .encoding = LEARNED, .freqs = like->freqs };
    int64_t n = 0;
    if (members_read(f, "decomposed", like))
        return -1;
    if (!json_is_array(whole))
        return refuse(f, "global_attn_indexes is no list: the layers whose attention is over "
                         "all of a picture are needed");
    for (int64_t layer = 0; layer < like->layers; layer++)
        n += has_number(whole, layer);
    if (members_read(f, "learned patches", &table))
        return -1;
    like->side = table.side;
    like->image = table.image;
    like->patch = table.patch;
    like->origins[OF_image] = table.origins[OF_image];
    like->origins[OF_patch] = table.origins[OF_patch];
    if (table.side != table.columns)
        return refuse(f, "its pictures are not square: rows and columns are as many in those "
                         "that this loader reads");
    if (like->tabled)
        c->parts[c->n_parts++] = table;
    const int64_t all = like->window ? n : like->layers;
    if (add_terms(f, like, "windows", like->layers - all, like->window, c))
        return -1;
    return add_terms(f, like, "whole", all, 0, c);
}
