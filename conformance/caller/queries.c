/*
 * What the header offers that takes a name, a text or an id: looked up both ways, with names that are none, ids of
 * nothing, texts of every length.
 */
#define _GNU_SOURCE
#include "offers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 5000 };

/* ---- Words ---- */

static const char *const kernels[] = {
#define POSENC_KERNEL(name, ...) #name,
#include <posenc_kernels.def>
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static int64_t draw_id(struct draws *d, int64_t n)
{
    return draw_one_in(d, 2) ? draw_below(d, n + 3) - 1 : (int32_t)draw_whole(d, n);
}

static const char *backend_name(struct draws *d)
{
    size_t n = 0;
    while (posenc_backend_at(n))
        n++;
    return posenc_backend_at((size_t)draw_below(d, (int64_t)n))->name;
}

/* A word that is there, or one much like it. */
static void draw_name(struct draws *d, const char *from, char name[LONGEST + 1])
{
    size_t length = strlen(from);
    memcpy(name, from, length + 1);
    switch (draw_below(d, 8)) {
    case 0:
        length = 0;
        break;
    case 1:
        length -= length > 0;
        break;
    case 2:
        name[length++] = (char)(1 + draw_below(d, 255));
        break;
    case 3:
        name[draw_below(d, (int64_t)length)] = (char)(1 + draw_below(d, 255));
        break;
    case 4:
        length = (size_t)draw_below(d, LONGEST);
        memset(name, (int)(1 + draw_below(d, 255)), length);
        break;
    default:
        break;
    }
    name[length] = '\0';
}

static int kernel_called(const char *name)
{
    int k = 0;
    while (k < KERNELS && strcmp(kernels[k], name) != 0)
        k++;
    return k;
}

/* At the end of a buffer of its own, which a sanitizer watches. */
static char *own_copy(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* ---- Kernels and backends ---- */

static bool ask_kernel(struct draws *d, char complaint[MOST_TEXT])
{
    const int64_t id = draw_id(d, KERNELS);
    const enum posenc_kernel k = (enum posenc_kernel)id;
    const bool is = id >= 0 && id < KERNELS;
    const char *name = posenc_kernel_name(k), *summary = posenc_kernel_summary(k);
    char text[LONGEST + 1];
    if (is ? !name || strcmp(name, kernels[id]) != 0 || !summary || !*summary : name || summary)
        return complain(complaint, "kernel %lld is named %s", (long long)id,
                        name ? name : "NULL");
    const struct posenc_selection by = posenc_selection(k);
    if (!by.reason || !*by.reason || (by.backend == NULL) != (by.status != POSENC_OK) ||
        (!is && by.status != POSENC_ERR_ARGUMENT))
        return complain(complaint, "kernel %lld is served with status %d", (long long)id,
                        (int)by.status);
    for (size_t i = 0; posenc_backend_at(i); i++)
        if (!is && posenc_provides(posenc_backend_at(i), k))
            return complain(complaint, "kernel %lld is provided", (long long)id);
    if (posenc_kernel_find(NULL) != POSENC_KERNEL_COUNT || posenc_provides(NULL, k))
        return complain(complaint, "NULL is a kernel or provides one");
    draw_name(d, kernels[draw_below(d, KERNELS)], text);
    char *copy = own_copy(text);
    const int found = copy ? (int)posenc_kernel_find(copy) : kernel_called(text);
    free(copy);
    return found == kernel_called(text) ||
           complain(complaint, "\"%.40s\" is kernel %d", text, found);
}

static const struct posenc_backend *backend_called(const char *name)
{
    size_t i = 0;
    while (posenc_backend_at(i) && strcmp(posenc_backend_at(i)->name, name) != 0)
        i++;
    return posenc_backend_at(i);
}

static bool ask_backend(struct draws *d, char complaint[MOST_TEXT])
{
    char text[LONGEST + 1];
    draw_name(d, backend_name(d), text);
    char *copy = own_copy(text);
    const struct posenc_backend *found = posenc_backend_find(copy);
    free(copy);
    if (found != backend_called(text))
        return complain(complaint, "\"%.40s\" is backend %s", text,
                        found ? found->name : "NULL");
    if (posenc_backend_find(NULL) || posenc_backend_at((size_t)draw_whole(d, -1) | 1u << 20))
        return complain(complaint, "there is a backend at no place");
    /* One that must not be added: of another header, without a name, or with another's. */
    struct posenc_backend wrong = *backend_called(backend_name(d));
    const struct posenc_backend *taken = backend_called(wrong.name);
    const int64_t how = draw_below(d, 5);
    wrong.abi += how == 0 ? (uint32_t)(1 + draw_below(d, 1000)) : 0;
    wrong.size = how == 1 ? (size_t)draw_below(d, 64) : wrong.size;
    wrong.name = how == 2 ? NULL : how == 3 ? "" : wrong.name;
    const enum posenc_status status =
        posenc_backend_add(how == 4 && draw_one_in(d, 2) ? NULL : &wrong);
    if (status != POSENC_ERR_ARGUMENT || (taken->name && backend_called(taken->name) != taken))
        return complain(complaint, "a backend that is none was added (%lld): %d",
                        (long long)how, (int)status);
    return how > 1 || posenc_backend_obstacle(&wrong) ||
           complain(complaint, "a backend of another header runs here");
}

/* Runs here where the CPU has each word of what it needs. */
static bool ask_needs(struct draws *d, char complaint[MOST_TEXT])
{
    char needs[512] = "", word[64];
    const char *const features = posenc_cpu_features();
    bool has_all = true;
    for (int64_t n = draw_below(d, 4); n > 0; n--) {
        const char *from = features + strlen(features) / 4 * (size_t)draw_below(d, 4);
        while (from > features && from[-1] != ' ')
            from--;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(from, " "), from);
        if (draw_one_in(d, 3) || !*word)
            memcpy(word, (char[]){ 'x', (char)('a' + draw_below(d, 26)), '\0' }, 3);
        const size_t at = strlen(needs);
        snprintf(needs + at, sizeof needs - at, "%s%s", at ? " " : "", word);
        const char *found = features;
        const size_t length = strlen(word);
        while ((found = strstr(found, word)) != NULL &&
               !((found == features || found[-1] == ' ') &&
                 (found[length] == '\0' || found[length] == ' ')))
            found++;
        has_all = has_all && found;
    }
    struct posenc_backend asks = *posenc_backend_at(0);
    asks.needs = needs;
    const char *obstacle = posenc_backend_obstacle(&asks);
    return !obstacle == has_all ||
           complain(complaint, "needs \"%s\": %s", needs, obstacle ? obstacle : "runs here");
}

/* ---- Selections ---- */

static struct posenc_selection served[KERNELS];

static void look_up(struct posenc_selection to[KERNELS])
{
    for (int k = 0; k < KERNELS; k++)
        to[k] = posenc_selection((enum posenc_kernel)k);
}

/* What a backend of that name can do for a kernel; below 0 for each it has. */
static enum posenc_status usable(const char *name, int kernel)
{
    const struct posenc_backend *b = backend_called(name);
    return !b                           ? POSENC_ERR_UNKNOWN
           : posenc_backend_obstacle(b) ? POSENC_ERR_UNSUPPORTED
           : kernel >= 0 && !posenc_provides(b, (enum posenc_kernel)kernel)
               ? POSENC_ERR_NOT_PROVIDED
               : POSENC_OK;
}

static bool is_word(const char *text)
{
    return *text && strcspn(text, " \t\r\n#") == strlen(text);
}

static bool all_served(const char *name, char complaint[MOST_TEXT])
{
    for (int k = 0; k < KERNELS; k++) {
        const struct posenc_selection by = posenc_selection((enum posenc_kernel)k);
        const enum posenc_status wanted = usable(name, k);
        if (by.status != wanted || (wanted == POSENC_OK && strcmp(by.backend->name, name) != 0))
            return complain(complaint, "%s by \"%.40s\": status %d, not %d", kernels[k], name,
                            (int)by.status, (int)wanted);
    }
    return true;
}

static bool ask_environment(struct draws *d, char complaint[MOST_TEXT])
{
    char name[LONGEST + 1];
    draw_name(d, backend_name(d), name);
    if (setenv("POSENC_BACKEND", name, 1) != 0)
        return true;
    bool fine = posenc_select(NULL) == POSENC_OK ||
                complain(complaint, "the environment \"%.40s\" is refused", name);
    fine = fine && (!*name || all_served(name, complaint));
    float slope = 1.0f, bias;
    struct posenc_alibi_args args = posenc_alibi_args_init();
    args.slopes = &slope;
    args.out = posenc_dense(&bias, 4, 1, 1, 1, 1);
    const struct posenc_selection by = posenc_selection(POSENC_KERNEL_alibi);
    const enum posenc_status status = posenc_alibi(NULL, &args);
    if (fine && status != by.status)
        fine = complain(complaint, "a call answers %d, the selection %d", (int)status,
                        (int)by.status);
    unsetenv("POSENC_BACKEND");
    return posenc_select(NULL) == POSENC_OK && fine;
}

static bool is_unselected(char complaint[MOST_TEXT], const char *text)
{
    struct posenc_selection now[KERNELS];
    look_up(now);
    for (int k = 0; k < KERNELS; k++)
        if (now[k].backend != served[k].backend || now[k].reason != served[k].reason)
            return complain(complaint, "refused, and yet another serves: \"%.80s\"", text);
    return true;
}

static bool ask_select(struct draws *d, char complaint[MOST_TEXT])
{
    char text[3 * (LONGEST + 20)] = "", kernel[LONGEST + 1], name[LONGEST + 1];
    const struct posenc_backend *by[KERNELS] = { NULL };
    unsigned must = 0;
    const int lines = 1 + (int)draw_below(d, 2);
    for (int i = 0; i < lines; i++) {
        draw_name(d, kernels[draw_below(d, KERNELS)], kernel);
        draw_name(d, backend_name(d), name);
        if (!is_word(kernel) || !is_word(name))
            continue;
        const bool more = draw_one_in(d, 8), less = draw_one_in(d, 8) && lines > 1;
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s%s%s\n", kernel, less ? "" : " ",
                 less ? "" : name, more && !less ? " more" : "");
        const int k = kernel_called(kernel);
        const enum posenc_status status = usable(name, k < KERNELS ? k : -1);
        must |= k == KERNELS || more || less ? STATUS(ARGUMENT) : 0u;
        must |= status && !less ? 1u << status : 0u;
        if (k < KERNELS)
            by[k] = backend_called(name);
    }
    must |= !*text ? STATUS(ARGUMENT) : 0u;
    if (strchr(text, '\n') && !strchr(text, ' ')) /* a single word: a backend's name */
        must |= STATUS(UNKNOWN);
    look_up(served);
    const enum posenc_status status = posenc_select(text);
    if (status ? !(must >> status & 1u) : must != 0)
        return complain(complaint, "answered %d to \"%.80s\", not one of %#x", (int)status,
                        text, must);
    if (status)
        return is_unselected(complaint, text);
    for (int k = 0; k < KERNELS; k++)
        if (by[k] && posenc_selection((enum posenc_kernel)k).backend != by[k])
            return complain(complaint, "another serves than selected: \"%.80s\"", text);
    return posenc_select(NULL) == POSENC_OK;
}

static bool ask_select_one(struct draws *d, char complaint[MOST_TEXT])
{
    char name[LONGEST + 1];
    draw_name(d, backend_name(d), name);
    if (!is_word(name))
        return true;
    look_up(served);
    const enum posenc_status status = posenc_select(name), wanted = usable(name, -1);
    if (status != wanted)
        return complain(complaint, "answered %d to \"%.80s\", not %d", (int)status, name,
                        (int)wanted);
    const bool fine = status ? is_unselected(complaint, name) : all_served(name, complaint);
    return posenc_select(NULL) == POSENC_OK && fine;
}

/* ---- Words of a refusal ---- */

static bool ask_status(struct draws *d, char complaint[MOST_TEXT])
{
    const int64_t id = draw_id(d, POSENC_ERR_MEMORY + 1);
    const char *text = posenc_status_string((enum posenc_status)id);
    const bool is = id >= 0 && id <= POSENC_ERR_MEMORY;
    if (!text || !*text || text[strlen(text) - 1] == '.')
        return complain(complaint, "status %lld is \"%s\"", (long long)id,
                        text ? text : "NULL");
    for (int64_t other = 0; other <= POSENC_ERR_MEMORY; other++)
        if (other != id && strcmp(text, posenc_status_string((enum posenc_status)other)) == 0)
            return complain(complaint, "status %lld is that of %lld", (long long)id,
                            (long long)other);
    const bool same = strcmp(text, posenc_status_string((enum posenc_status) - 7)) == 0;
    return is != same || complain(complaint, "status %lld is \"%s\"", (long long)id, text);
}

static bool ask_error_text(struct draws *d, char complaint[MOST_TEXT])
{
    enum { ROOM = 256 };
    char what[64] = "", text[ROOM], cut[ROOM], wanted[32];
    snprintf(what, sizeof what, "what %lld", (long long)draw_below(d, 1000));
    const struct posenc_error e = { (enum posenc_status)draw_id(d, POSENC_ERR_MEMORY + 1), what,
                                    draw_real(d, 1.0), draw_real(d, 0.0), draw_real(d, 2.0) };
    const char *reason = posenc_status_string(e.status);
    const size_t size = (size_t)draw_below(d, ROOM), length = posenc_error_text(&e, text, ROOM);
    memset(cut, 0x5a, sizeof cut);
    if (posenc_error_text(&e, size ? cut : NULL, size) != length || length >= ROOM ||
        strlen(text) != length || strncmp(text, what, strlen(what)) != 0 ||
        length < strlen(reason) || strcmp(text + length - strlen(reason), reason) != 0)
        return complain(complaint, "\"%s\", with %zu bytes another length", text, size);
    const size_t kept = size == 0 ? 0 : length < size ? length : size - 1;
    if (size && (memcmp(cut, text, kept) != 0 || cut[kept] != '\0' || strlen(cut) != kept))
        return complain(complaint, "\"%s\" is cut another way", text);
    for (size_t i = size; i < ROOM; i++)
        if (cut[i] != 0x5a)
            return complain(complaint, "byte %zu of %zu was written", i, size);
    const char *is = strstr(text, " is ");
    snprintf(wanted, sizeof wanted, "%.17g", e.value);
    if (is && !(strtod(is + 4, NULL) == e.value || isnan(e.value)))
        return complain(complaint, "\"%s\" of %s", text, wanted);
    return (e.least <= e.most) == (strstr(text, ", expected ") != NULL) ||
           complain(complaint, "\"%s\" has a range or has none", text);
}

/* ---- Tensors ---- */

static bool ask_dense(struct draws *d, char complaint[MOST_TEXT])
{
    int64_t sizes[4];
    const int64_t rank = draw_one_in(d, 8) ? (int32_t)draw_whole(d, 4) : 1 + draw_below(d, 4);
    for (int i = 0; i < 4; i++)
        sizes[i] = draw_one_in(d, 3) ? draw_whole(d, 5) : draw_below(d, 9);
    const struct posenc_tensor t =
        posenc_dense(&sizes, (int)rank, sizes[0], sizes[1], sizes[2], sizes[3]);
    const struct posenc_const_tensor c =
        posenc_const_dense(&sizes, (int)rank, sizes[0], sizes[1], sizes[2], sizes[3]);
    const struct posenc_const_tensor view = posenc_view(t);
    if (t.data != sizes || c.data != sizes || t.dtype || c.dtype || t.rank != rank ||
        c.rank != rank || memcmp(c.shape, view.shape, sizeof c.shape) != 0 ||
        memcmp(c.stride, view.stride, sizeof c.stride) != 0)
        return complain(complaint, "rank %lld, tensors differ", (long long)rank);
    uint64_t stride = 1;
    for (int i = rank > 4   ? -1
                 : rank < 1 ? -1
                            : (int)rank - 1;
         i >= 0; stride *= (uint64_t)sizes[i--])
        if (t.shape[i] != sizes[i] || (uint64_t)t.stride[i] != stride)
            return complain(complaint, "rank %lld, dimension %d", (long long)rank, i);
    return true;
}

const struct query queries[] = {
    { "kernel_names", ask_kernel },  { "backend_names", ask_backend },
    { "backend_needs", ask_needs },  { "environment", ask_environment },
    { "select_lines", ask_select },  { "select_backend", ask_select_one },
    { "status_string", ask_status }, { "error_text", ask_error_text },
    { "dense", ask_dense },          { NULL, NULL }
};
