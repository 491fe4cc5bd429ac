/*
 * Selection of the backend for calls that name none.
 *
 * The selection is an immutable table behind one atomic pointer. Replaced tables are kept until the process ends, as
 * running calls may read them and callers may hold their texts.
 */
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "members.h"

_Atomic(struct selection_table *) posenc_selection_table;

/* ---- Rules ---- */

/* Applies the rules of each kernel that has any. If the first matches every call it replaces the default, so that calls
 * need not search the rules. */
static void apply_rules(struct selection_table *table, const struct selection_rules *rules,
                        const char *reason)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const struct selection_rule *first = rules->list[k];
        if (rules->n[k] == 0)
            continue;
        table->rules.n[k] = 0;
        table->rules_reason[k] = reason;
        if (first->any_dtype && first->max_bytes == UINT64_MAX) {
            table->by_kernel[k] =
                (struct posenc_selection){ first->backend, POSENC_OK, reason };
            continue;
        }
        memcpy(table->rules.list[k], first, sizeof rules->list[k]);
        table->rules.n[k] = rules->n[k];
    }
}

/* Applies the rules of a tuning file. Their reason names `source` and the path. */
static enum posenc_status apply_tuning_file(struct selection_table *table, const char *source,
                                            const char *path, char *reason)
{
    struct selection_rules *rules = calloc(1, sizeof *rules);
    enum posenc_status status = POSENC_ERR_MEMORY;
    snprintf(reason, REASON_SIZE, "no memory");
    if (rules)
        status = posenc_tuning_read(path, rules, reason);
    if (!status) {
        snprintf(table->tuning_reason, sizeof table->tuning_reason, "measured: %s%.400s",
                 source, path);
        apply_rules(table, rules, table->tuning_reason);
    }
    free(rules);
    return status;
}

/* ---- Environment ---- */

static void set_all(struct selection_table *table, struct posenc_selection selection)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        table->by_kernel[k] = selection;
}

/* Selects exactly this backend. Calls of kernels that it lacks fail. */
static void set_backend(struct selection_table *table, const struct posenc_backend *backend)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        bool has = posenc_backend_provides(backend, (enum posenc_kernel)k);
        table->by_kernel[k] =
            has ? (struct posenc_selection){ backend, POSENC_OK, table->reason }
                : (struct posenc_selection){ NULL, POSENC_ERR_NOT_PROVIDED,
                                             table->missing_reason };
    }
}

/* Selects for each kernel the first built-in backend that provides it, runs on this CPU and needs no feature above
 * max_level. */
static void set_defaults(struct selection_table *table, int max_level)
{
    const struct posenc_backend *b;
    set_all(table,
            (struct posenc_selection){ NULL, POSENC_ERR_NOT_PROVIDED, table->missing_reason });
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        for (size_t i = 0; i < posenc_built_in_count && (b = posenc_backend_at(i)) != NULL;
             i++) {
            if (posenc_cpu_level(b->required_features) > max_level || !posenc_backend_runs(b) ||
                !posenc_backend_provides(b, (enum posenc_kernel)k))
                continue;
            table->by_kernel[k] = (struct posenc_selection){ b, POSENC_OK, table->reason };
            break;
        }
    }
}

/* Makes all calls fail, as an environment variable names a backend that is unknown or cannot run here. */
static void set_error(struct selection_table *table, const char *variable, const char *name,
                      enum posenc_status status, const char *reason)
{
    char *text = table->reason;
    size_t size = sizeof table->reason;
    int n = snprintf(text, size, "%s=%.100s: %s; usable here:", variable, name, reason);
    size_t length = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
    const struct posenc_backend *b;
    for (size_t i = 0; (b = posenc_backend_at(i)) != NULL; i++) {
        size_t needed = strlen(b->name) + 2; /* a space and the final 0 */
        if (!posenc_backend_runs(b) || length + needed > size)
            continue;
        length += (size_t)snprintf(text + length, size - length, " %s", b->name);
    }
    set_all(table, (struct posenc_selection){ NULL, status, text });
}

/* Returns the value of a variable; NULL if it is unset or empty. */
static const char *get_variable(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] ? value : NULL;
}

static void set_forced_backend(struct selection_table *table, const char *forced)
{
    const struct posenc_backend *backend = posenc_backend_find(forced);
    const char *error =
        backend ? posenc_backend_unavailable_reason(backend) : "no such backend";
    if (error) {
        set_error(table, "POSENC_BACKEND", forced,
                  backend ? POSENC_ERR_UNSUPPORTED : POSENC_ERR_UNKNOWN, error);
        return;
    }
    snprintf(table->reason, sizeof table->reason, "POSENC_BACKEND=%s", forced);
    snprintf(table->missing_reason, sizeof table->missing_reason,
             "POSENC_BACKEND=%s lacks this kernel", forced);
    set_backend(table, backend);
}

static void set_defaults_up_to(struct selection_table *table, const char *max_isa)
{
    const struct posenc_backend *backend = posenc_backend_find(max_isa);
    if (!backend) {
        set_error(table, "POSENC_MAX_ISA", max_isa, POSENC_ERR_UNKNOWN, "no such backend");
        return;
    }
    snprintf(table->reason, sizeof table->reason,
             "first of the list that runs here, up to POSENC_MAX_ISA=%s", max_isa);
    snprintf(table->missing_reason, sizeof table->missing_reason,
             "no backend that runs here, up to POSENC_MAX_ISA=%s, has this kernel", max_isa);
    set_defaults(table, posenc_cpu_level(backend->required_features));
}

/* Selects the defaults and applies the tuning file, if any. A rejected file costs speed, not correctness, so calls
 * still run and only the reason reports it. */
static void set_defaults_or_tuning(struct selection_table *table, const char *tuning_file)
{
    static const char default_reason[] = "first of the list that runs here";
    char reason[REASON_SIZE] = "";
    snprintf(table->reason, sizeof table->reason, "%s", default_reason);
    snprintf(table->missing_reason, sizeof table->missing_reason,
             "no backend that runs here has this kernel");
    set_defaults(table, INT32_MAX);
    if (tuning_file && apply_tuning_file(table, "POSENC_TUNING=", tuning_file, reason))
        snprintf(table->reason, sizeof table->reason, "%s; POSENC_TUNING is not used: %.400s",
                 default_reason, reason);
}

static void select_by_environment(struct selection_table *table)
{
    const char *forced = get_variable("POSENC_BACKEND"),
               *max_isa = get_variable("POSENC_MAX_ISA");
    if (forced)
        set_forced_backend(table, forced);
    else if (max_isa)
        set_defaults_up_to(table, max_isa);
    else
        set_defaults_or_tuning(table, get_variable("POSENC_TUNING"));
}

/* ---- The table in force ---- */

/* Returns the table in force, which the first call makes from the environment; NULL without memory. */
static struct selection_table *current_table(void)
{
    struct selection_table *table =
        atomic_load_explicit(&posenc_selection_table, memory_order_acquire);
    if (table)
        return table;
    struct selection_table *created = calloc(1, sizeof *created);
    if (!created)
        return NULL;
    select_by_environment(created);
    if (atomic_compare_exchange_strong(&posenc_selection_table, &table, created))
        return created;
    free(created);
    return table;
}

/* ---- Selections by the program ---- */

static enum posenc_status select_for_all(struct selection_table *table, const char *name,
                                         size_t length, char *reason)
{
    const struct posenc_backend *backend = posenc_backend_find_n(name, length);
    if (!backend || !posenc_backend_runs(backend)) {
        snprintf(reason, REASON_SIZE, "'%.*s'%s%s", (int)(length < 40 ? length : 40), name,
                 backend ? ", " : "",
                 backend ? posenc_backend_unavailable_reason(backend) : "");
        return backend ? POSENC_ERR_UNSUPPORTED : POSENC_ERR_UNKNOWN;
    }
    memset(&table->rules, 0, sizeof table->rules);
    snprintf(table->reason, sizeof table->reason, "selected by the program");
    snprintf(table->missing_reason, sizeof table->missing_reason,
             "%s, selected by the program, lacks this kernel", backend->name);
    set_backend(table, backend);
    return POSENC_OK;
}

static const char selected_for_kernel[] = "selected by the program for this kernel";

/* Applies the text of posenc_select(). Kernels that it does not name keep their selection. */
static enum posenc_status select_by_text(struct selection_table *table, const char *text,
                                         char *reason)
{
    static const char blanks[] = " \t\r\n", ends[] = " \t\r\n#";
    const char *name = text + strspn(text, blanks);
    size_t length = *name == '#' ? 0 : strcspn(name, ends);
    if (length != 0 && name[length + strspn(name + length, blanks)] == '\0')
        return select_for_all(table, name, length, reason);
    struct selection_rules *rules = calloc(1, sizeof *rules);
    if (!rules)
        return POSENC_ERR_MEMORY;
    enum posenc_status status = posenc_tuning_parse(text, rules, reason);
    if (!status)
        apply_rules(table, rules, selected_for_kernel);
    free(rules);
    return status;
}

/* Publishes the table, or frees it if `status` is an error. */
static enum posenc_status publish(struct selection_table *table, enum posenc_status status,
                                  const char *reason, struct posenc_error *error)
{
    if (status) {
        free(table);
        return reject(error, status, reason);
    }
    table->previous = atomic_load(&posenc_selection_table);
    while (!atomic_compare_exchange_weak(&posenc_selection_table, &table->previous, table))
        ;
    return POSENC_OK;
}

static const char no_memory[] = "memory for the selection";

/* Returns a new table with the selection of the environment; NULL without memory. */
static struct selection_table *create_table(void)
{
    struct selection_table *table = calloc(1, sizeof *table);
    if (table)
        select_by_environment(table);
    return table;
}

enum posenc_status posenc_select(const char *text, struct posenc_error *error)
{
    char reason[REASON_SIZE];
    struct selection_table *table = create_table();
    snprintf(reason, sizeof reason, "%s", no_memory);
    if (!table)
        return reject(error, POSENC_ERR_MEMORY, no_memory);
    return publish(table, text ? select_by_text(table, text, reason) : POSENC_OK, reason,
                   error);
}

enum posenc_status posenc_load_tuning(const char *path, struct posenc_error *error)
{
    if (!path)
        return reject(error, POSENC_ERR_ARGUMENT, "path (NULL)");
    char reason[REASON_SIZE];
    struct selection_table *table = create_table();
    if (!table)
        return reject(error, POSENC_ERR_MEMORY, no_memory);
    const enum posenc_status status = apply_tuning_file(table, "", path, reason);
    return publish(table, status, reason, error);
}

/* Copies the selection of all kernels but one. Its texts stay where they are, as no table is ever freed. */
static void copy_other_kernels(struct selection_table *to, const struct selection_table *from,
                               enum posenc_kernel kernel)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        if (k == (int)kernel)
            continue;
        to->by_kernel[k] = from->by_kernel[k];
        to->rules.n[k] = from->rules.n[k];
        to->rules_reason[k] = from->rules_reason[k];
        memcpy(to->rules.list[k], from->rules.list[k], sizeof to->rules.list[k]);
    }
}

enum posenc_status posenc_select_backend(enum posenc_kernel kernel,
                                         const struct posenc_backend *backend,
                                         struct posenc_error *error)
{
    if (!posenc_kernel_is_valid(kernel))
        return reject_range(error, POSENC_ERR_ARGUMENT, "kernel", (double)kernel, 0.0,
                            POSENC_KERNEL_COUNT - 1);
    if (backend) {
        enum posenc_status status = posenc_resolve_backend_slow(&backend, kernel, NULL, error);
        if (status)
            return status;
    }
    struct selection_table *table = create_table(); /* also has the choice of the environment */
    struct selection_table *now = current_table();
    if (!table || !now) {
        free(table);
        return reject(error, POSENC_ERR_MEMORY, no_memory);
    }
    if (backend) {
        table->rules.n[kernel] = 0;
        table->by_kernel[kernel] =
            (struct posenc_selection){ backend, POSENC_OK, selected_for_kernel };
    }
    do {
        copy_other_kernels(table, now, kernel);
        table->previous = now;
    } while (!atomic_compare_exchange_weak(&posenc_selection_table, &now, table));
    return POSENC_OK;
}

/* ---- Look-up ---- */

static struct posenc_selection find_selection(const struct selection_table *table,
                                              enum posenc_kernel kernel,
                                              enum posenc_dtype dtype, uint64_t bytes)
{
    const struct selection_rule *rule = table->rules.list[kernel];
    for (int i = 0; i < table->rules.n[kernel]; i++, rule++)
        if ((rule->any_dtype || rule->dtype == dtype) && bytes <= rule->max_bytes)
            return (struct posenc_selection){ rule->backend, POSENC_OK,
                                              table->rules_reason[kernel] };
    return table->by_kernel[kernel];
}

static struct posenc_selection selection_of(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                            uint64_t bytes)
{
    if (!posenc_kernel_is_valid(kernel))
        return (struct posenc_selection){ NULL, POSENC_ERR_ARGUMENT, "no such kernel" };
    const struct selection_table *table = current_table();
    if (!table)
        return (struct posenc_selection){ NULL, POSENC_ERR_MEMORY, no_memory };
    return find_selection(table, kernel, dtype, bytes);
}

void posenc_selection_get(enum posenc_kernel kernel, enum posenc_dtype dtype, uint64_t bytes,
                          struct posenc_selection *selection, size_t size)
{
    const struct posenc_selection found = selection_of(kernel, dtype, bytes);
    memset(selection, 0, size);
    memcpy(selection, &found, size < sizeof found ? size : sizeof found);
}

enum posenc_status posenc_resolve_backend_slow(const struct posenc_backend **backend,
                                               enum posenc_kernel kernel, const void *call,
                                               struct posenc_error *error)
{
    enum posenc_status status;
    const char *what;
    if (!*backend) {
        struct posenc_selection selection = selection_of(
            kernel, posenc_args_dtype(kernel, call), posenc_args_bytes(kernel, call));
        *backend = selection.backend;
        status = selection.status;
        what = selection.reason;
    } else if (!posenc_backend_is_compatible(*backend)) {
        status = POSENC_ERR_ARGUMENT;
        what = posenc_backend_unavailable_reason(*backend);
    } else if (!posenc_backend_runs(*backend)) {
        status = POSENC_ERR_UNSUPPORTED;
        what = posenc_backend_unavailable_reason(*backend);
    } else {
        status =
            posenc_backend_provides(*backend, kernel) ? POSENC_OK : POSENC_ERR_NOT_PROVIDED;
        what = "kernel that this backend lacks";
    }
    return status ? reject(error, status, what) : POSENC_OK;
}
