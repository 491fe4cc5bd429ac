/*
 * The selection: who serves a call that names no backend.
 *
 * It is an immutable table behind one atomic pointer. Tables replaced stay reachable for the life
 * of the process, so calls under way finish with theirs and reasons stay readable.
 */
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "members.h"

_Atomic(struct table *) posenc_table;

/* ---- Choices ---- */

/* A choice that holds for every call takes the place of the order, so that calls need not look. */
static void settle(struct table *table, const struct choices *choices, const char *reason)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const struct choice *first = choices->of[k];
        if (choices->n[k] == 0)
            continue;
        table->choices.n[k] = 0;
        table->chosen[k] = reason;
        if (first->any_dtype && first->most == UINT64_MAX) {
            table->by_kernel[k] =
                (struct posenc_selection){ first->backend, POSENC_OK, reason };
            continue;
        }
        memcpy(table->choices.of[k], first, sizeof choices->of[k]);
        table->choices.n[k] = choices->n[k];
    }
}

/* The choices of the file; `source` is said before its path in their reason. */
static enum posenc_status adopt_profile(struct table *table, const char *source,
                                        const char *path, char *why)
{
    struct choices *choices = calloc(1, sizeof *choices);
    enum posenc_status status = POSENC_ERR_MEMORY;
    snprintf(why, REASON_MOST, "no memory");
    if (choices)
        status = posenc_read_profile(path, choices, why);
    if (!status) {
        snprintf(table->profile, sizeof table->profile, "measured: %s%.400s", source, path);
        settle(table, choices, table->profile);
    }
    free(choices);
    return status;
}

/* ---- By the environment ---- */

static void serve_all(struct table *table, struct posenc_selection by)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        table->by_kernel[k] = by;
}

/* Exactly this backend; the kernels it lacks are served by nobody. */
static void serve_by(struct table *table, const struct posenc_backend *backend)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        bool has = posenc_provides(backend, (enum posenc_kernel)k);
        table->by_kernel[k] =
            has ? (struct posenc_selection){ backend, POSENC_OK, table->reason }
                : (struct posenc_selection){ NULL, POSENC_ERR_NOT_PROVIDED, table->lacking };
    }
}

/* The first of the built-in ones that runs here, provides the kernel and is not above the
 * ceiling. */
static void serve_in_order(struct table *table, int ceiling)
{
    const struct posenc_backend *b;
    serve_all(table,
              (struct posenc_selection){ NULL, POSENC_ERR_NOT_PROVIDED, table->lacking });
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        for (size_t i = 0; i < posenc_built_in && (b = posenc_backend_at(i)) != NULL; i++) {
            if (posenc_cpu_level(b->needs) > ceiling || !posenc_runs_here(b) ||
                !posenc_provides(b, (enum posenc_kernel)k))
                continue;
            table->by_kernel[k] = (struct posenc_selection){ b, POSENC_OK, table->reason };
            break;
        }
    }
}

/* Nobody serves: `variable` names a backend that is unknown or cannot run here. */
static void serve_nobody(struct table *table, const char *variable, const char *name,
                         enum posenc_status status, const char *why)
{
    char *text = table->reason;
    size_t size = sizeof table->reason;
    int n = snprintf(text, size, "%s=%.100s: %s; usable here:", variable, name, why);
    size_t length = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
    const struct posenc_backend *b;
    for (size_t i = 0; (b = posenc_backend_at(i)) != NULL; i++) {
        size_t room = strlen(b->name) + 2;
        if (!posenc_runs_here(b) || length + room > size)
            continue;
        length += (size_t)snprintf(text + length, size - length, " %s", b->name);
    }
    serve_all(table, (struct posenc_selection){ NULL, status, text });
}

/* A variable that is set to something, or NULL. */
static const char *environment(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] ? value : NULL;
}

static void serve_forced(struct table *table, const char *forced)
{
    const struct posenc_backend *backend = posenc_backend_find(forced);
    const char *obstacle = backend ? posenc_backend_obstacle(backend) : "no such backend";
    if (obstacle) {
        serve_nobody(table, "POSENC_BACKEND", forced,
                     backend ? POSENC_ERR_UNSUPPORTED : POSENC_ERR_UNKNOWN, obstacle);
        return;
    }
    snprintf(table->reason, sizeof table->reason, "POSENC_BACKEND=%s", forced);
    snprintf(table->lacking, sizeof table->lacking, "POSENC_BACKEND=%s lacks this kernel",
             forced);
    serve_by(table, backend);
}

static void serve_up_to(struct table *table, const char *most)
{
    const struct posenc_backend *backend = posenc_backend_find(most);
    if (!backend) {
        serve_nobody(table, "POSENC_MAX_ISA", most, POSENC_ERR_UNKNOWN, "no such backend");
        return;
    }
    snprintf(table->reason, sizeof table->reason,
             "first of the list that runs here, up to POSENC_MAX_ISA=%s", most);
    snprintf(table->lacking, sizeof table->lacking,
             "no backend that runs here, up to POSENC_MAX_ISA=%s, has this kernel", most);
    serve_in_order(table, posenc_cpu_level(backend->needs));
}

/* The order of features; before it, where there is one, the choices of a profile. One that is
 * refused slows calls down and makes none wrong: the reason tells it. */
static void serve_usually(struct table *table, const char *profile)
{
    static const char usual[] = "first of the list that runs here";
    char why[REASON_MOST] = "";
    snprintf(table->reason, sizeof table->reason, "%s", usual);
    snprintf(table->lacking, sizeof table->lacking,
             "no backend that runs here has this kernel");
    serve_in_order(table, INT32_MAX);
    if (profile && adopt_profile(table, "POSENC_PROFILE=", profile, why))
        snprintf(table->reason, sizeof table->reason, "%s; POSENC_PROFILE is not used: %.400s",
                 usual, why);
}

static void serve_from_environment(struct table *table)
{
    const char *forced = environment("POSENC_BACKEND"), *most = environment("POSENC_MAX_ISA");
    if (forced)
        serve_forced(table, forced);
    else if (most)
        serve_up_to(table, most);
    else
        serve_usually(table, environment("POSENC_PROFILE"));
}

/* ---- What the program asks for ---- */

static enum posenc_status select_everything(struct table *table, const char *name,
                                            size_t length)
{
    const struct posenc_backend *backend = posenc_backend_named(name, length);
    if (!backend || !posenc_runs_here(backend))
        return backend ? POSENC_ERR_UNSUPPORTED : POSENC_ERR_UNKNOWN;
    memset(&table->choices, 0, sizeof table->choices);
    snprintf(table->reason, sizeof table->reason, "selected by the program");
    snprintf(table->lacking, sizeof table->lacking,
             "%s, selected by the program, lacks this kernel", backend->name);
    serve_by(table, backend);
    return POSENC_OK;
}

/* `table` comes filled from the environment: what the text does not name stays so. */
static enum posenc_status select_text(struct table *table, const char *text)
{
    static const char blanks[] = " \t\r\n", ends[] = " \t\r\n#";
    char why[REASON_MOST];
    const char *name = text + strspn(text, blanks);
    size_t length = *name == '#' ? 0 : strcspn(name, ends);
    if (length != 0 && name[length + strspn(name + length, blanks)] == '\0')
        return select_everything(table, name, length);
    struct choices *choices = calloc(1, sizeof *choices);
    if (!choices)
        return POSENC_ERR_MEMORY;
    enum posenc_status status = posenc_read_choices(text, choices, why);
    if (!status)
        settle(table, choices, "selected by the program for this kernel");
    free(choices);
    return status;
}

static void put_in_force(struct table *table)
{
    table->previous = atomic_load(&posenc_table);
    while (!atomic_compare_exchange_weak(&posenc_table, &table->previous, table))
        ;
}

enum posenc_status posenc_select(const char *text)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return POSENC_ERR_MEMORY;
    serve_from_environment(table);
    enum posenc_status status = text ? select_text(table, text) : POSENC_OK;
    if (status) {
        free(table);
        return status;
    }
    put_in_force(table);
    return POSENC_OK;
}

enum posenc_status posenc_select_profile(const char *path, char *reason, size_t size)
{
    char why[REASON_MOST] = "no path, or no memory";
    struct table *table = path ? calloc(1, sizeof *table) : NULL;
    enum posenc_status status = path ? POSENC_ERR_MEMORY : POSENC_ERR_ARGUMENT;
    if (table) {
        serve_from_environment(table);
        status = adopt_profile(table, "", path, why);
    }
    if (reason && size > 0)
        snprintf(reason, size, "%s", status ? why : "");
    if (status)
        free(table);
    else
        put_in_force(table);
    return status;
}

/* ---- Who serves ---- */

/* The table in force, made from the environment by the first who asks; NULL without memory. */
static const struct table *selection_table(void)
{
    struct table *table = atomic_load_explicit(&posenc_table, memory_order_acquire);
    if (table)
        return table;
    struct table *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    serve_from_environment(made);
    if (atomic_compare_exchange_strong(&posenc_table, &table, made))
        return made;
    free(made);
    return table;
}

static struct posenc_selection serving(const struct table *table, enum posenc_kernel kernel,
                                       enum posenc_dtype dtype, uint64_t bytes)
{
    const struct choice *c = table->choices.of[kernel];
    for (int i = 0; i < table->choices.n[kernel]; i++, c++)
        if ((c->any_dtype || c->dtype == dtype) && bytes <= c->most)
            return (struct posenc_selection){ c->backend, POSENC_OK, table->chosen[kernel] };
    return table->by_kernel[kernel];
}

struct posenc_selection posenc_selection_for(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                             uint64_t bytes)
{
    if (!posenc_is_kernel(kernel))
        return (struct posenc_selection){ NULL, POSENC_ERR_ARGUMENT, "no such kernel" };
    const struct table *table = selection_table();
    if (!table)
        return (struct posenc_selection){ NULL, POSENC_ERR_MEMORY, "memory for the selection" };
    return serving(table, kernel, dtype, bytes);
}

struct posenc_selection posenc_selection(enum posenc_kernel kernel)
{
    return posenc_selection_for(kernel, POSENC_F32, 0);
}

enum posenc_status posenc_resolve_slowly(const struct posenc_backend **backend,
                                         enum posenc_kernel kernel, const void *call,
                                         struct posenc_error *error)
{
    enum posenc_status status;
    const char *what;
    if (!*backend) {
        struct posenc_selection chosen = posenc_selection_for(
            kernel, posenc_dtype_of(kernel, call), posenc_bytes_of(kernel, call));
        *backend = chosen.backend;
        status = chosen.status;
        what = chosen.reason;
    } else if (!posenc_is_compatible(*backend)) {
        status = POSENC_ERR_ARGUMENT;
        what = posenc_backend_obstacle(*backend);
    } else if (!posenc_runs_here(*backend)) {
        status = POSENC_ERR_UNSUPPORTED;
        what = posenc_backend_obstacle(*backend);
    } else {
        status = posenc_provides(*backend, kernel) ? POSENC_OK : POSENC_ERR_NOT_PROVIDED;
        what = "kernel that this backend lacks";
    }
    if (status && error)
        *error = (struct posenc_error){ status, what, 0.0, 1.0, 0.0 };
    return status;
}
