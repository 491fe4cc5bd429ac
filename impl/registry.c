/*
 * The lists of kernels and backends, and the selection: who serves a call that names no
 * backend.
 *
 * The selection is an immutable table behind one atomic pointer.  Tables replaced stay
 * reachable for the life of the process, so calls under way finish with theirs and reasons stay
 * readable.
 */
#include "registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "grow.h"

/* ---- The lists ---- */

static const struct kernel_entry {
    const char *name, *summary;
    size_t offset; /* of its pointer in struct posenc_backend */
} kernels[] = {
#define POSENC_KERNEL(name, signature, summary, ...)                                           \
    { #name, summary, offsetof(struct posenc_backend, name) },
#include "posenc_kernels.def"
};

/* The header says it all once more, for people and for tools that read C: ids, prototypes and
 * members of a backend, in the order of the list. */
enum place {
#define POSENC_KERNEL(name, ...) PLACE_##name,
#include "posenc_kernels.def"
    PLACES
};
#define POSENC_KERNEL(name, signature, ...)                                                    \
    _Static_assert((int)POSENC_KERNEL_##name == (int)PLACE_##name, "the id of " #name);        \
    _Static_assert(offsetof(struct posenc_backend, name) ==                                    \
                       offsetof(struct posenc_backend, sinusoidal) +                           \
                           PLACE_##name * sizeof(void (*)(void)),                              \
                   "the place of " #name " in struct posenc_backend");                         \
    _Static_assert(                                                                            \
        _Generic(((struct posenc_backend *)0)->name,                                           \
                 enum posenc_status(*)(const struct posenc_##signature##_args *) : 1,          \
                 default : 0),                                                                 \
        "the arguments of " #name " in struct posenc_backend");                                \
    _Static_assert(                                                                            \
        _Generic(&posenc_##name,                                                               \
                 enum posenc_status(*)(const struct posenc_backend *,                          \
                                       const struct posenc_##signature##_args *) : 1,          \
                 default : 0),                                                                 \
        "the arguments of posenc_" #name);
#include "posenc_kernels.def"
_Static_assert((int)POSENC_KERNEL_COUNT == (int)PLACES,
               "enum posenc_kernel has as many as the list");
_Static_assert(sizeof(struct posenc_backend) == offsetof(struct posenc_backend, sinusoidal) +
                                                    PLACES * sizeof(void (*)(void)),
               "struct posenc_backend has as many as the list");

static const struct posenc_backend *const backends[] = {
#define POSENC_BACKEND(name) &posenc_backend_##name,
#include "backends.def"
};
enum { BUILT_IN = sizeof backends / sizeof backends[0], ADDED_MOST = 16 };

static _Atomic(const struct posenc_backend *) added[ADDED_MOST]; /* NULL after the last */

static bool is_kernel(enum posenc_kernel kernel)
{
    return (unsigned)kernel < POSENC_KERNEL_COUNT;
}

const char *posenc_kernel_name(enum posenc_kernel kernel)
{
    return is_kernel(kernel) ? kernels[kernel].name : NULL;
}

const char *posenc_kernel_summary(enum posenc_kernel kernel)
{
    return is_kernel(kernel) ? kernels[kernel].summary : NULL;
}

static enum posenc_kernel find_kernel(const char *name, size_t length)
{
    for (unsigned k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (strlen(kernels[k].name) == length && memcmp(kernels[k].name, name, length) == 0)
            return (enum posenc_kernel)k;
    return POSENC_KERNEL_COUNT;
}

enum posenc_kernel posenc_kernel_find(const char *name)
{
    return name ? find_kernel(name, strlen(name)) : POSENC_KERNEL_COUNT;
}

/* Of a layout that this library reads: a plug-in may have been built against another header. */
static bool is_compatible(const struct posenc_backend *backend)
{
    return backend && backend->abi == POSENC_ABI &&
           (backend->size == sizeof *backend ||
            posenc_is_grown(&posenc_grown_backend, backend));
}

bool posenc_provides(const struct posenc_backend *backend, enum posenc_kernel kernel)
{
    void (*function)(void);
    if (!is_compatible(backend) || !is_kernel(kernel) ||
        kernels[kernel].offset + sizeof function > backend->size)
        return false;
    memcpy(&function, (const char *)backend + kernels[kernel].offset, sizeof function);
    return function != NULL;
}

const struct posenc_backend *posenc_backend_at(size_t index)
{
    if (index < BUILT_IN)
        return backends[index];
    return index < BUILT_IN + ADDED_MOST ? atomic_load(&added[index - BUILT_IN]) : NULL;
}

static const struct posenc_backend *find_backend(const char *name, size_t length)
{
    const struct posenc_backend *b;
    for (size_t i = 0; (b = posenc_backend_at(i)) != NULL; i++)
        if (strlen(b->name) == length && memcmp(b->name, name, length) == 0)
            return b;
    return NULL;
}

const struct posenc_backend *posenc_backend_find(const char *name)
{
    return name ? find_backend(name, strlen(name)) : NULL;
}

enum posenc_status posenc_backend_add(const struct posenc_backend *backend)
{
    if (!is_compatible(backend) || !backend->name || !backend->name[0])
        return POSENC_ERR_ARGUMENT;
    for (int i = 0; i < BUILT_IN; i++)
        if (strcmp(backends[i]->name, backend->name) == 0)
            return POSENC_ERR_ARGUMENT;
    for (int i = 0; i < ADDED_MOST; i++) {
        const struct posenc_backend *there = NULL;
        if (atomic_compare_exchange_strong(&added[i], &there, backend) || there == backend)
            return POSENC_OK;
        if (strcmp(there->name, backend->name) == 0)
            return POSENC_ERR_ARGUMENT;
    }
    return POSENC_ERR_MEMORY;
}

const char *posenc_backend_obstacle(const struct posenc_backend *backend)
{
    if (!backend)
        return "no backend";
    if (!is_compatible(backend))
        return "built for another version of posenc";
    return posenc_cpu_obstacle(backend->needs);
}

/* Whether a backend runs here; remembered for those of the list, since calls ask. */
static bool runs_here(const struct posenc_backend *backend)
{
    enum { UNKNOWN, YES, NO };
    static _Atomic unsigned char known[BUILT_IN + ADDED_MOST];
    const struct posenc_backend *listed;
    for (size_t i = 0; (listed = posenc_backend_at(i)) != NULL; i++) {
        if (listed != backend)
            continue;
        unsigned char answer = atomic_load_explicit(&known[i], memory_order_relaxed);
        if (answer == UNKNOWN) {
            answer = posenc_backend_obstacle(backend) ? NO : YES;
            atomic_store_explicit(&known[i], answer, memory_order_relaxed);
        }
        return answer == YES;
    }
    return posenc_backend_obstacle(backend) == NULL;
}

/* ---- Making a selection ---- */

_Atomic(struct table *) posenc_table;

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
    serve_all(table,
              (struct posenc_selection){ NULL, POSENC_ERR_NOT_PROVIDED, table->lacking });
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        for (int i = 0; i < BUILT_IN; i++) {
            const struct posenc_backend *b = backends[i];
            if (posenc_cpu_level(b->needs) > ceiling || !runs_here(b) ||
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
        if (!runs_here(b) || length + room > size)
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

static void serve_from_environment(struct table *table)
{
    const char *forced = environment("POSENC_BACKEND"), *most = environment("POSENC_MAX_ISA");
    if (forced) {
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
    } else if (most) {
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
    } else {
        snprintf(table->reason, sizeof table->reason, "first of the list that runs here");
        snprintf(table->lacking, sizeof table->lacking,
                 "no backend that runs here has this kernel");
        serve_in_order(table, INT32_MAX);
    }
}

/* ---- What the program asks for ---- */

static const char spaces[] = " \t\r";

struct word {
    const char *text;
    size_t length;
};

/* The next word of the line at *text, which moves past it; length 0 at the end of the line. */
static struct word next_word(const char **text)
{
    const char *start = *text + strspn(*text, spaces);
    size_t length = *start == '#' ? 0 : strcspn(start, " \t\r\n#");
    *text = start + length;
    return (struct word){ start, length };
}

static enum posenc_status find_usable(struct word name, const struct posenc_backend **backend)
{
    *backend = find_backend(name.text, name.length);
    if (!*backend)
        return POSENC_ERR_UNKNOWN;
    return runs_here(*backend) ? POSENC_OK : POSENC_ERR_UNSUPPORTED;
}

/* One line "kernel backend". */
static enum posenc_status select_line(struct table *table, struct word kernel_name,
                                      struct word name)
{
    static const char reason[] = "selected by the program for this kernel";
    enum posenc_kernel kernel = find_kernel(kernel_name.text, kernel_name.length);
    if (!is_kernel(kernel))
        return POSENC_ERR_ARGUMENT;
    const struct posenc_backend *backend;
    enum posenc_status status = find_usable(name, &backend);
    if (status)
        return status;
    if (!posenc_provides(backend, kernel))
        return POSENC_ERR_NOT_PROVIDED;
    table->by_kernel[kernel] = (struct posenc_selection){ backend, POSENC_OK, reason };
    return POSENC_OK;
}

static enum posenc_status select_everything(struct table *table, struct word name)
{
    const struct posenc_backend *backend;
    enum posenc_status status = find_usable(name, &backend);
    if (status)
        return status;
    snprintf(table->reason, sizeof table->reason, "selected by the program");
    snprintf(table->lacking, sizeof table->lacking,
             "%s, selected by the program, lacks this kernel", backend->name);
    serve_by(table, backend);
    return POSENC_OK;
}

/* `table` comes filled from the environment: what the text does not name stays so. */
static enum posenc_status select_text(struct table *table, const char *text)
{
    const char *rest = text + strspn(text, " \t\r\n");
    struct word only = next_word(&rest);
    if (only.length != 0 && rest[strspn(rest, " \t\r\n")] == '\0')
        return select_everything(table, only);
    int lines = 0;
    while (*text) {
        struct word kernel = next_word(&text), backend = next_word(&text),
                    more = next_word(&text);
        if (kernel.length != 0) {
            if (backend.length == 0 || more.length != 0)
                return POSENC_ERR_ARGUMENT;
            enum posenc_status status = select_line(table, kernel, backend);
            if (status)
                return status;
            lines++;
        }
        text += strcspn(text, "\n"); /* a comment */
        text += *text == '\n';
    }
    return lines ? POSENC_OK : POSENC_ERR_ARGUMENT;
}

enum posenc_status posenc_select(const char *text)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return POSENC_ERR_MEMORY;
    serve_from_environment(table);
    if (text) {
        enum posenc_status status = select_text(table, text);
        if (status) {
            free(table);
            return status;
        }
    }
    table->previous = atomic_load(&posenc_table);
    while (!atomic_compare_exchange_weak(&posenc_table, &table->previous, table))
        ;
    return POSENC_OK;
}

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

struct posenc_selection posenc_selection(enum posenc_kernel kernel)
{
    if (!is_kernel(kernel))
        return (struct posenc_selection){ NULL, POSENC_ERR_ARGUMENT, "no such kernel" };
    const struct table *table = selection_table();
    if (!table)
        return (struct posenc_selection){ NULL, POSENC_ERR_MEMORY, "memory for the selection" };
    return table->by_kernel[kernel];
}

enum posenc_status posenc_resolve_slowly(const struct posenc_backend **backend,
                                         enum posenc_kernel kernel, struct posenc_error *error)
{
    enum posenc_status status;
    const char *what;
    if (!*backend) {
        struct posenc_selection chosen = posenc_selection(kernel);
        *backend = chosen.backend;
        status = chosen.status;
        what = chosen.reason;
    } else if (!is_compatible(*backend)) {
        status = POSENC_ERR_ARGUMENT;
        what = posenc_backend_obstacle(*backend);
    } else if (!runs_here(*backend)) {
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
