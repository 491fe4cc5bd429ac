/* Reads records of models: compiled-in presets, and those that the Python reader prints; see model.h. */
#define _POSIX_C_SOURCE 200809L
#include "model.h"
#include "conformance/problem/notation.h"
#include "base/text/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct preset {
    const char *name, *record;
} presets[] = {
#include "presets.inc"
};
enum { N_PRESETS = sizeof presets / sizeof *presets };

const char *model_name_at(size_t index)
{
    return index < N_PRESETS ? presets[index].name : NULL;
}

void model_free(struct model *model)
{
    arena_free(&model->arena);
    model->n_cases = model->n_verify = 0;
}

/* ---- Records ---- */

/* Functions that return bool write a message if they return false. */

/* Copies a member as one line of printable text; a long text is cut between characters. */
static void copy_text(const json_t *object, const char *name, char *into, size_t bytes)
{
    const char *text = json_string_value(json_object_get(object, name));
    text_escape(text ? text : "", into, bytes);
}

static bool read_dtype(const json_t *record, struct model *m, char error[MODEL_ERROR])
{
    const char *name = json_string_value(json_object_get(record, "storage"));
    for (int i = 0; dtype_names[i] && name; i++) {
        if (strcmp(dtype_names[i], name) == 0) {
            m->storage = (enum posenc_dtype)i;
            return true;
        }
    }
    return notation_fail(error, "storage: %.40s: expected f32, f16 or bf16",
                         name ? name : "(none)");
}

static bool read_problem(const json_t *text, struct model *m, struct problem *p,
                         char error[MODEL_ERROR])
{
    struct problem_line line;
    char why[NOTATION_ERROR] = "expected a text";
    if (!json_is_string(text) || !notation_read(json_string_value(text), &line, &m->arena, why))
        return notation_fail(error, "problem: %.500s", why);
    *p = line.problem;
    p->seed = problem_default(p->kernel).seed;
    problem_derive(p);
    return true;
}

static bool read_case(const json_t *from, struct model *m, char error[MODEL_ERROR])
{
    struct model_case *c = &m->cases[m->n_cases++];
    copy_text(from, "id", c->id, sizeof c->id);
    copy_text(from, "label", c->label, sizeof c->label);
    copy_text(from, "step", c->step, sizeof c->step);
    copy_text(from, "layers", c->layers, sizeof c->layers);
    c->times = json_integer_value(json_object_get(from, "times"));
    c->column_first = json_is_true(json_object_get(from, "column_first"));
    return read_problem(json_object_get(from, "problem"), m, &c->problem, error);
}

static bool read_problems(const json_t *record, struct model *m, char error[MODEL_ERROR])
{
    const json_t *cases = json_object_get(record, "cases"),
                 *verify = json_object_get(record, "verify"), *item;
    size_t i;
    if (json_array_size(cases) == 0 || json_array_size(cases) > MODEL_MAX_CASES ||
        json_array_size(verify) > MODEL_MAX_CASES)
        return notation_fail(
            error, "%zu cases and %zu problems to verify: expected 1 to %d, and at most %d",
            json_array_size(cases), json_array_size(verify), MODEL_MAX_CASES, MODEL_MAX_CASES);
    json_array_foreach(cases, i, item)
    {
        if (!read_case(item, m, error))
            return false;
    }
    json_array_foreach(verify, i, item)
    {
        if (!read_problem(item, m, &m->verify[m->n_verify++], error))
            return false;
    }
    return true;
}

static bool read_members(const json_t *record, struct model *m, char error[MODEL_ERROR])
{
    copy_text(record, "name", m->name, sizeof m->name);
    copy_text(record, "title", m->title, sizeof m->title);
    copy_text(record, "source", m->source, sizeof m->source);
    copy_text(record, "checked", m->checked, sizeof m->checked);
    copy_text(record, "notes", m->notes, sizeof m->notes);
    copy_text(record, "encoding", m->encoding, sizeof m->encoding);
    copy_text(record, "trained_numerics", m->trained_numerics, sizeof m->trained_numerics);
    copy_text(record, "trained", m->trained, sizeof m->trained);
    copy_text(record, "storage_from", m->storage_from, sizeof m->storage_from);
    m->max_position_embeddings =
        json_integer_value(json_object_get(record, "max_position_embeddings"));
    return read_dtype(record, m, error) && read_problems(record, m, error);
}

static bool read_record(const char *json, struct model *m, char error[MODEL_ERROR])
{
    json_error_t where;
    json_t *record = json_loads(json, JSON_REJECT_DUPLICATES, &where);
    memset(m, 0, sizeof *m);
    if (!record)
        return notation_fail(error, "line %d: %s: expected a record of a model, in JSON",
                             where.line, where.text);
    const bool good = read_members(record, m, error);
    json_decref(record);
    if (!good)
        model_free(m);
    return good;
}

/* Rejects shapes that need more memory than problem_limits_here() allows: the system would swap, then kill the
 * process. */
static bool check_memory(const struct model *m, char error[MODEL_ERROR])
{
    const struct problem_limits limits = problem_limits_here();
    for (size_t i = 0; i < m->n_cases + m->n_verify; i++) {
        const bool timed = i < m->n_cases;
        const struct problem *p = timed ? &m->cases[i].problem : &m->verify[i - m->n_cases];
        const double bytes = problem_memory_estimate(p);
        if (bytes <= limits.bytes)
            continue;
        return notation_fail(error, "%s (%s) takes %.0f bytes: at most %.0f, %s, is possible",
                             timed ? m->cases[i].id : posenc_kernel_name(p->kernel),
                             timed ? m->cases[i].label : "a shape that is checked", bytes,
                             limits.bytes, limits.basis);
    }
    return true;
}

int model_from_record(const char *json, struct model *model, char error[MODEL_ERROR])
{
    if (!read_record(json, model, error))
        return -1;
    if (check_memory(model, error))
        return 0;
    model_free(model);
    return -1;
}

/* ---- Presets ---- */

/* Writes the message for an unknown name, with the most similar preset if fewer than 6 edits lead to it. Returns -1. */
static int reject_name(const char *name, char error[MODEL_ERROR])
{
    const char *near = NULL;
    char known[MODEL_ERROR / 2] = "";
    size_t best = 6, at = 0;
    for (const struct preset *s = presets; s < presets + N_PRESETS; s++) {
        /* A name that begins with the text counts as zero edits away. */
        const bool begins = strncmp(name, s->name, strlen(name)) == 0;
        const size_t d = begins ? 0 : text_edit_distance(name, s->name);
        near = d < best ? s->name : near;
        best = d < best ? d : best;
        at = text_append(known, sizeof known, at, "%s %s", at ? "," : "", s->name);
    }
    snprintf(
        error, MODEL_ERROR,
        "model '%.60s' is unknown%s%s%s  Known:%s; or --config with the path of a model file",
        name, near ? "; did you mean " : "", near ? near : "", near ? "?" : ".", known);
    return -1;
}

int model_load(const char *name, struct model *model, char error[MODEL_ERROR])
{
    for (const struct preset *s = presets; s < presets + N_PRESETS; s++)
        if (strcmp(s->name, name) == 0)
            return read_record(s->record, model, error) ? 0 : -1;
    memset(model, 0, sizeof *model);
    return reject_name(name, error);
}
