/*
 * The table of model types, types.txt: which type a configuration is of, and of models of several
 * parts the one about text, and what becomes of the others.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/columns.h"
#include "conformance/problem/fields.h"
#include "base/text/text.h"
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct model_type types[] = {
#include "types.inc"
};
enum { N_TYPES = sizeof types / sizeof *types, MOST_NESTED = 4 };

const struct model_type *type_at(size_t index)
{
    return index < N_TYPES ? &types[index] : NULL;
}

const struct model_type *type_find(const char *name)
{
    for (int i = 0; name && i < N_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

bool model_type_at(size_t index, struct model_kind *kind)
{
    const struct model_type *t = type_at(index);
    if (!t)
        return false;
    const bool refused = lists(t->flags, "unsupported");
    *kind = (struct model_kind){ t->name, refused ? "refused" : t->encoding, t->note, refused };
    return true;
}

json_t *type_defaults(const struct model_type *type)
{
    char members[4096];
    snprintf(members, sizeof members, "{%s}", type ? type->defaults : "");
    json_t *defaults = json_loads(members, 0, NULL);
    assert(defaults);
    return defaults;
}

static bool is_composite(const struct model_type *type)
{
    return type && strcmp(type->encoding, "composite") == 0;
}

int type_refuse(const struct fields *f, const char *name)
{
    char near[256] = "";
    size_t at = 0, best = name ? 1 + strlen(name) / 3 : 0;
    for (const struct model_type *t = types; name && t < types + N_TYPES; t++) {
        const bool begins = strncmp(name, t->name, strlen(name)) == 0;
        const size_t d = begins ? 0 : edit_distance(name, t->name);
        if (d > best)
            continue;
        at = d < best ? 0 : at;
        best = d;
        at = append(near, sizeof near, at, "%s%s", at ? ", " : "; near to it: ", t->name);
    }
    return refuse(
        f,
        "model_type '%.60s' is unknown among %d types%s.  Say how it encodes positions: "
        "\"_posenc\": {\"encoding\": \"rope_half\"}, or give the model_type whose code it "
        "shares",
        name ? name : "(none)", N_TYPES, near);
}

/* The i-th part that a composite type has, {"text_config": "llama", ...}; the first is about text. */
static bool part_at(const struct model_type *type, size_t i, char key[64], char inner[64])
{
    const char *at = type->defaults;
    while (i-- && at)
        at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    return at && sscanf(at, " \"%63[^\"]\": \"%63[^\"]\"", key, inner) == 2;
}

static const char *type_named(const json_t *object)
{
    return json_string_value(json_object_get(object, "model_type"));
}

int type_of_text(struct fields *f, const json_t *json, const char **name)
{
    static const char plain[] = "text_config";
    static char inner[64];
    *name = type_named(json);
    f->file = json;
    for (int depth = 0; depth < MOST_NESTED; depth++) {
        const struct model_type *type = type_find(*name);
        char key[64] = "text_config";
        const bool composite = is_composite(type) && part_at(type, 0, key, inner);
        const json_t *text = json_object_get(f->file, key);
        if (!text && composite)
            text = json_object_get(f->file, plain);
        if (text && !json_is_null(text)) {
            if (!json_is_object(text))
                return refuse(f,
                              "%s is no object: one with the sizes of the text model, or "
                              "null, is needed",
                              key);
            f->file = text;
            *name = type_named(text) ? type_named(text) : composite ? inner : *name;
        } else if (composite) {
            *name = inner;
            if (!lists(type->flags, "flat")) {
                note(f, "%s is not there: that of the defaults of its class, %s, is meant", key,
                     inner);
                f->file = NULL;
            }
        } else
            return 0;
    }
    return 0;
}

/* What becomes of a part that is not the one about text. */
static void tell_fate(const struct fields *f, const char *key, const char *name)
{
    const struct model_type *type = type_find(name);
    if (!type)
        note(f, "%s is not covered: this is the model of text alone", key);
    else if (strcmp(type->encoding, "none") == 0 && !*type->note)
        note(f, "%s, %s, has no positions of a kind that is known", key, name);
    else if (lists(type->flags, "unsupported"))
        note(f, "%s is not covered: of %s %s", key, name, type->note);
    else
        note(f,
             "%s is not covered: this is the model of text alone; a file of it alone, of "
             "model_type %s, is read",
             key, name);
}

/* Whether `inner` is the object, or lies in it. */
static bool holds(const json_t *object, const json_t *inner)
{
    const char *key;
    json_t *value;
    bool found = object == inner;
    json_object_foreach((json_t *)object, key, value) found |= holds(value, inner);
    return found;
}

/* The type that the class of the whole takes for a part, or NULL. */
static const char *inner_type(const struct model_type *type, const char *key, char inner[64])
{
    char other[64];
    for (size_t i = 0; is_composite(type) && part_at(type, i, other, inner); i++)
        if (strcmp(key, other) == 0)
            return inner;
    return NULL;
}

static struct tower others_of(const struct fields *f, const json_t *json,
                              const struct model_type *type)
{
    struct tower first = { .file = NULL };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value)
    {
        char inner[64];
        const char *mine = inner_type(type, key, inner), *named = type_named(value);
        const struct model_type *own = type_find(named);
        if (!json_is_object(value) || (!mine && !lists("vision_config audio_config", key)) ||
            strcmp(key, "text_config") == 0)
            continue;
        if (!own || is_composite(own))
            own = type_find(mine);
        if (holds(value, f->file)) {
            const struct tower deeper = others_of(f, value, own);
            first = first.file ? first : deeper;
        } else if (!first.file && own && lists(own->flags, "tower"))
            first = (struct tower){ key, value, own };
        else
            tell_fate(f, key, named ? named : mine);
    }
    return first;
}

struct tower types_of_others(const struct fields *f, const json_t *json)
{
    return others_of(f, json, type_find(type_named(json)));
}
