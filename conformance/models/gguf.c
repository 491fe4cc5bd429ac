/*
 * Reads the metadata of a GGUF file: see gguf.h.  Its keys come in any order, so what belongs to
 * the architecture is known at the end alone: all that is short is kept until then.
 */
#define _POSIX_C_SOURCE 200809L
#include "gguf.h"
#include "conformance/problem/fields.h"
#include "base/text/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_KEYS = 65536,    /* pairs of key and value, and tensors */
    MOST_KEY = 256,       /* bytes of a key or of a tensor's name */
    MOST_TEXT = 1024,     /* bytes of a text that is kept */
    MOST_FACTORS = 32768, /* pairs that a plan has at most */
    STEP = 4096           /* bytes that are read to get past them, rather than sought */
};

/* Kinds of values, by the numbers that files have for them. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, LIST, U64, I64, F64, N_KINDS };
static const struct {
    const char *name;
    uint64_t bytes; /* 0: it says itself */
} kinds[N_KINDS] = {
    [U8] = { "u8", 1 },     [I8] = { "i8", 1 },     [U16] = { "u16", 2 },
    [I16] = { "i16", 2 },   [U32] = { "u32", 4 },   [I32] = { "i32", 4 },
    [F32] = { "f32", 4 },   [BOOL] = { "bool", 1 }, [TEXT] = { "text", 0 },
    [LIST] = { "list", 0 }, [U64] = { "u64", 8 },   [I64] = { "i64", 8 },
    [F64] = { "f64", 8 },
};

/* A tensor of factors. */
struct tensor {
    const char *name;
    bool there;
    uint64_t n, offset;
};

struct reader {
    FILE *file;
    uint64_t at, size;
    char *error;
    json_t *kept; /* whole keys, flat */
    struct tensor factors[3];
};

__attribute__((format(printf, 2, 3))) static bool fail(struct reader *r, const char *format,
                                                       ...)
{
    char sentence[MODEL_ERROR];
    va_list list;
    va_start(list, format);
    vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    text_plain(sentence, r->error, MODEL_ERROR);
    return false;
}

/* ---- bytes ---- */

static bool take(struct reader *r, void *to, uint64_t bytes, const char *what)
{
    if (bytes > r->size - r->at)
        return fail(r, "%s at byte %llu: %llu bytes are needed, %llu are left", what,
                    (unsigned long long)r->at, (unsigned long long)bytes,
                    (unsigned long long)(r->size - r->at));
    if (fread(to, 1, (size_t)bytes, r->file) != bytes)
        return fail(r, "%s at byte %llu cannot be read", what, (unsigned long long)r->at);
    r->at += bytes;
    return true;
}

static bool skip(struct reader *r, uint64_t bytes, const char *what)
{
    char past[STEP];
    if (bytes <= sizeof past)
        return take(r, past, bytes, what);
    if (bytes > r->size - r->at)
        return take(r, past, bytes, what); /* which says so */
    r->at += bytes;
    return fseeko(r->file, (off_t)r->at, SEEK_SET) == 0 || fail(r, "%s cannot be passed", what);
}

static bool take_whole(struct reader *r, int bytes, uint64_t *value, const char *what)
{
    unsigned char raw[8];
    *value = 0;
    if (!take(r, raw, (uint64_t)bytes, what))
        return false;
    for (int i = bytes; i-- > 0;)
        *value = *value << 8 | raw[i];
    return true;
}

/* A text of at most `room` - 1 bytes. */
static bool take_text(struct reader *r, char *to, uint64_t room, const char *what)
{
    uint64_t n;
    if (!take_whole(r, 8, &n, what))
        return false;
    if (n >= room)
        return fail(r, "%s at byte %llu has %llu bytes: at most %llu are read", what,
                    (unsigned long long)r->at, (unsigned long long)n,
                    (unsigned long long)room - 1);
    to[n] = '\0';
    return take(r, to, n, what) &&
           (memchr(to, 0, (size_t)n) == NULL ||
            fail(r, "%s before byte %llu holds a NUL", what, (unsigned long long)r->at));
}

/* ---- values ---- */

static double f32_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}

static double f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A number or a truth; what is no finite number stays without a value, which nobody accepts. */
static json_t *number(uint64_t kind, uint64_t bits)
{
    const int unused = 64 - 8 * (int)kinds[kind].bytes;
    if (kind == F32 || kind == F64) {
        const double value = kind == F32 ? f32_of(bits) : f64_of(bits);
        return isfinite(value) ? json_real(value) : json_string("not finite");
    }
    if (kind == BOOL)
        return json_boolean(bits != 0);
    if (kind == I8 || kind == I16 || kind == I32 || kind == I64)
        return json_integer((int64_t)(bits << unused) >> unused);
    return bits > INT64_MAX ? json_real((double)bits) : json_integer((int64_t)bits);
}

static bool take_number(struct reader *r, uint64_t kind, json_t **value, const char *key)
{
    uint64_t bits;
    if (!take_whole(r, (int)kinds[kind].bytes, &bits, key))
        return false;
    *value = number(kind, bits);
    return *value || fail(r, "no memory for %s", key);
}

static bool take_string(struct reader *r, json_t **value, const char *key)
{
    char raw[MOST_TEXT], plain[4 * MOST_TEXT];
    uint64_t n;
    if (!take_whole(r, 8, &n, key))
        return false;
    if (n >= sizeof raw)
        return skip(r, n, key);
    raw[n] = '\0';
    if (!take(r, raw, n, key))
        return false;
    text_plain(raw, plain, sizeof plain);
    *value = json_string(plain);
    return *value || fail(r, "no memory for %s", key);
}

static bool take_list(struct reader *r, json_t **value, const char *key)
{
    uint64_t kind, n;
    if (!take_whole(r, 4, &kind, key) || !take_whole(r, 8, &n, key))
        return false;
    if (kind >= N_KINDS || kind == LIST)
        return fail(r, "%s is a list of values of kind %llu: 0 to 8 and 10 to 12 are known",
                    key, (unsigned long long)kind);
    const uint64_t least = kind == TEXT ? 8 : kinds[kind].bytes;
    if (n > (r->size - r->at) / least)
        return fail(r, "%s is a list of %llu values, more than the file has bytes for", key,
                    (unsigned long long)n);
    if (kind == TEXT) {
        for (uint64_t i = 0, bytes; i < n; i++)
            if (!take_whole(r, 8, &bytes, key) || !skip(r, bytes, key))
                return false;
        return true;
    }
    if (n > GGUF_LIST)
        return skip(r, n * least, key);
    *value = json_array();
    for (uint64_t i = 0; i < n; i++) {
        json_t *one;
        if (!take_number(r, kind, &one, key))
            return false;
        json_array_append_new(*value, one);
    }
    return true;
}

/* ---- pairs of key and value ---- */

static bool take_pair(struct reader *r)
{
    char raw[MOST_KEY], key[4 * MOST_KEY];
    uint64_t kind;
    json_t *value = NULL;
    if (!take_text(r, raw, sizeof raw, "a key"))
        return false;
    text_plain(raw, key, sizeof key);
    if (!take_whole(r, 4, &kind, key))
        return false;
    if (kind >= N_KINDS)
        return fail(r, "%s has a value of kind %llu: 0 to 12 are known", key,
                    (unsigned long long)kind);
    const bool taken = kind == TEXT   ? take_string(r, &value, key)
                       : kind == LIST ? take_list(r, &value, key)
                                      : take_number(r, kind, &value, key);
    if (taken && json_object_get(r->kept, key)) {
        json_decref(value);
        return fail(r, "the key %s is there twice", key);
    }
    if (!taken) {
        json_decref(value);
        return false;
    }
    json_object_set_new(r->kept, key, value ? value : json_null());
    return true;
}

/* ---- tensors ---- */

static struct tensor *find_factors(struct reader *r, const char *name)
{
    for (size_t i = 0; i < sizeof r->factors / sizeof *r->factors; i++)
        if (strcmp(r->factors[i].name, name) == 0)
            return &r->factors[i];
    return NULL;
}

/* Name, sizes, type (0 is f32) and place of a tensor. */
static bool take_tensor(struct reader *r)
{
    enum { AXES = 4 };
    char name[MOST_KEY];
    uint64_t axes, size, product = 1, type, offset;
    if (!take_text(r, name, sizeof name, "a tensor's name") ||
        !take_whole(r, 4, &axes, "a tensor's number of axes"))
        return false;
    if (axes > AXES)
        return fail(r, "the tensor %s has %llu axes: at most %d are known", name,
                    (unsigned long long)axes, AXES);
    for (uint64_t i = 0; i < axes; i++) {
        if (!take_whole(r, 8, &size, "a tensor's size"))
            return false;
        product =
            size > MOST_FACTORS || product > MOST_FACTORS ? MOST_FACTORS + 1 : product * size;
    }
    struct tensor *factors = find_factors(r, name);
    if (!take_whole(r, 4, &type, "a tensor's type") ||
        !take_whole(r, 8, &offset, "a tensor's place"))
        return false;
    if (!factors)
        return true;
    if (factors->there)
        return fail(r, "the tensor %s is there twice", name);
    if (type != 0)
        return fail(r, "the tensor %s is of type %llu: 0, f32, is needed", name,
                    (unsigned long long)type);
    if (axes != 1 || product < 1 || product > MOST_FACTORS)
        return fail(r, "the tensor %s is no list of 1 to %d factors", name, MOST_FACTORS);
    *factors = (struct tensor){ factors->name, true, product, offset };
    return true;
}

static bool read_factors(struct reader *r, uint64_t data, const struct tensor *factors,
                         json_t *to)
{
    if (!factors->there)
        return true;
    if (factors->offset > r->size || data + factors->offset > r->size)
        return fail(r, "the tensor %s begins past the end of the file", factors->name);
    r->at = data + factors->offset;
    if (fseeko(r->file, (off_t)r->at, SEEK_SET) != 0)
        return fail(r, "the tensor %s cannot be reached", factors->name);
    json_t *list = json_array(), *one;
    json_object_set_new(to, factors->name, list);
    for (uint64_t i = 0; i < factors->n; i++) {
        if (!take_number(r, F32, &one, factors->name))
            return false;
        json_array_append_new(list, one);
    }
    return true;
}

static bool read_tensors(struct reader *r, uint64_t n, json_t *to)
{
    const json_t *stated = json_object_get(r->kept, "general.alignment");
    const int64_t align = stated ? json_integer_value(stated) : 32;
    if (align < 1 || align > 65536 || (align & (align - 1)))
        return fail(r, "general.alignment is %lld: a power of two up to 65536 is needed",
                    (long long)align);
    for (uint64_t i = 0; i < n; i++)
        if (!take_tensor(r))
            return false;
    const uint64_t data = (r->at + (uint64_t)align - 1) / (uint64_t)align * (uint64_t)align;
    json_t *tensors = json_object();
    json_object_set_new(to, "tensors", tensors);
    for (size_t i = 0; i < sizeof r->factors / sizeof *r->factors; i++)
        if (!read_factors(r, data, &r->factors[i], tensors))
            return false;
    return true;
}

/* ---- all of it ---- */

/* Puts a value where the dots of its key say. */
static bool nest(struct reader *r, json_t *root, const char *key, json_t *value)
{
    char path[4 * MOST_KEY], *rest, *name = path;
    snprintf(path, sizeof path, "%s", key);
    for (char *dot; (dot = strchr(name, '.')); name = rest) {
        *dot = '\0';
        rest = dot + 1;
        json_t *inner = json_object_get(root, name);
        if (!inner) {
            inner = json_object();
            json_object_set_new(root, name, inner);
        }
        if (!json_is_object(inner))
            return fail(r, "%s: what its dots part is a value as well", key);
        root = inner;
    }
    if (json_object_get(root, name))
        return fail(r, "%s is a value, and the beginning of other keys", key);
    json_object_set(root, name, value);
    return true;
}

static bool keep_architecture(struct reader *r, json_t *to)
{
    const json_t *architecture = json_object_get(r->kept, "general.architecture"),
                 *title = json_object_get(r->kept, "general.name");
    const char *name = json_string_value(architecture), *key;
    json_t *value;
    if (!name || !*name)
        return fail(r, "general.architecture is %s: the name of an architecture is needed",
                    architecture ? "no text" : "missing");
    const size_t n = strlen(name);
    json_object_foreach(r->kept, key, value) if (strncmp(key, name, n) == 0 && key[n] == '.' &&
                                                 !json_is_null(value) &&
                                                 !nest(r, to, key + n + 1, value)) return false;
    json_object_set_new(to, "architecture", json_string(name));
    json_object_set_new(to, "name",
                        json_is_string(title) ? json_incref((json_t *)title) : json_string(""));
    return true;
}

static bool read_all(struct reader *r, json_t *to)
{
    uint64_t magic, version, tensors, pairs;
    if (!take_whole(r, 4, &magic, "GGUF") || !take_whole(r, 4, &version, "the version"))
        return false;
    if (version != 0 && (version & 0xffff) == 0)
        return fail(r, "it is a GGUF file of a big-endian machine: one of little endian is "
                       "needed");
    if (version != 2 && version != 3)
        return fail(r, "it is a GGUF file of version %llu: 2 and 3 are read",
                    (unsigned long long)version);
    if (!take_whole(r, 8, &tensors, "the number of tensors") ||
        !take_whole(r, 8, &pairs, "the number of keys"))
        return false;
    if (tensors > MOST_KEYS || pairs > MOST_KEYS)
        return fail(r, "it has %llu tensors and %llu keys: at most %d of each are read",
                    (unsigned long long)tensors, (unsigned long long)pairs, MOST_KEYS);
    for (uint64_t i = 0; i < pairs; i++)
        if (!take_pair(r))
            return false;
    return read_tensors(r, tensors, to) && keep_architecture(r, to);
}

bool gguf_begins(FILE *file)
{
    char first[4] = "";
    const bool begins = fread(first, 1, 4, file) == 4 && memcmp(first, "GGUF", 4) == 0;
    rewind(file);
    return begins;
}

json_t *gguf_read(FILE *file, char error[MODEL_ERROR])
{
    struct reader r = { .file = file, .error = error };
    r.factors[0].name = "rope_freqs.weight";
    r.factors[1].name = "rope_factors_long.weight";
    r.factors[2].name = "rope_factors_short.weight";
    const off_t end = fseeko(file, 0, SEEK_END) == 0 ? ftello(file) : -1;
    if (end < 0 || fseeko(file, 0, SEEK_SET) != 0) {
        fail(&r, "its size is not known: a GGUF file, and no pipe, is needed");
        return NULL;
    }
    r.size = (uint64_t)end;
    r.kept = json_object();
    json_t *all = json_object();
    const bool good = read_all(&r, all);
    json_decref(r.kept);
    if (good)
        return all;
    json_decref(all);
    return NULL;
}
