/*
 * Opens builds of the library as separate copies; see library.h.
 *
 * The dynamic linker loads a file (an inode) only once. Therefore each opening copies the file into memory (memfd) or
 * into a temporary file, which is unlinked after loading. The original is loaded first and stays loaded: it shows the
 * exported symbols, and finds its dependencies in folders beside it, which a copy elsewhere would not find.
 *
 * A program that exports symbols (for plug-ins) comes first in symbol lookup, so that posenc_backend_find() of a build
 * would search the program's list. RTLD_DEEPBIND (glibc, FreeBSD) makes a library look up its own symbols first; on
 * macOS this is always so. Elsewhere, builds that are linked with -Bsymbolic-functions work. Others are rejected.
 */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sanitizers abort a process that uses RTLD_DEEPBIND. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) && !defined(SANITIZED)
enum { OWN_SYMBOLS_FIRST = RTLD_DEEPBIND };
#else
enum { OWN_SYMBOLS_FIRST = 0 };
#endif

static const char expected[] = "a build of libposenc, or a plug-in";

/* ---- A copy of a file ---- */

/* Creates a file without a name and writes a path to it. If only a temporary file is possible, sets *has_name, and
 * the caller unlinks it. Returns a descriptor, or -1. */
static int create_unnamed_file(char path[PATH_MAX], bool *has_name)
{
    int file = -1;
    *has_name = false;
#ifdef MFD_CLOEXEC
    file = memfd_create("libposenc", MFD_CLOEXEC);
    snprintf(path, PATH_MAX, "/proc/self/fd/%d", file);
    if (file >= 0 && access(path, R_OK) == 0)
        return file;
    if (file >= 0)
        close(file);
#endif
    const char *folder = getenv("TMPDIR");
    snprintf(path, PATH_MAX, "%.3000s/libposenc.XXXXXX", folder && *folder ? folder : "/tmp");
    file = mkstemp(path);
    *has_name = file >= 0;
    return file;
}

static bool copy_file(int from, int to)
{
    char block[1 << 16];
    ssize_t n;
    while ((n = read(from, block, sizeof block)) != 0) {
        if (n < 0 && errno != EINTR)
            return false;
        for (ssize_t done = 0, m; done < n; done += m)
            if ((m = write(to, block + done, (size_t)(n - done))) <= 0)
                return false;
    }
    return true;
}

/* Loads a copy. Its descriptor stays open while the copy is loaded, so that the next copy gets another path. Returns
 * the handle, or NULL. */
static void *load_copy(const char *path, int mode, int *file, char error[PLUGIN_ERROR])
{
    char name[PATH_MAX] = "";
    bool has_name = false;
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    *file = from >= 0 ? create_unnamed_file(name, &has_name) : -1;
    const bool copied = *file >= 0 && copy_file(from, *file);
    void *handle = copied ? dlopen(name, RTLD_NOW | RTLD_LOCAL | mode) : NULL;
    if (!copied)
        snprintf(error, PLUGIN_ERROR, "cannot be copied (%s)", strerror(errno));
    else if (!handle)
        snprintf(error, PLUGIN_ERROR, "cannot be loaded (%.900s)", dlerror());
    if (has_name)
        unlink(name);
    if (from >= 0)
        close(from);
    if (!handle && *file >= 0) {
        close(*file);
        *file = -1;
    }
    return handle;
}

/* ---- Symbols ---- */

/* Sets the function pointer at `function` to a symbol; returns false, and leaves it as it is, if there is none. */
static bool find_symbol(void *handle, const char *name, void *function)
{
    void *found = dlsym(handle, name);
    if (found)
        memcpy(function, &found, sizeof found);
    return found;
}

/* Finds the functions of a build. Missing builders of integers and slopes are replaced by the program's own. A missing
 * kernel is NULL. Returns false if the build cannot create frequencies. */
static bool find_functions(void *handle, struct implementation *implementation)
{
    *implementation = implementation_library;
    const bool has_freqs =
        dlsym(handle, "posenc_freqs_create") && dlsym(handle, "posenc_freqs_destroy");
#define FUNCTION(name) find_symbol(handle, "posenc_" #name, &implementation->name);
    IMPLEMENTATION_BUILDERS(FUNCTION)
#define POSENC_KERNEL(ID, name, ...)                                                           \
    implementation->name = NULL;                                                               \
    FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
    return has_freqs;
}

/* Returns false if out of memory. */
static bool add_implementation(struct library *library, const struct implementation *functions,
                               const struct posenc_backend *backend)
{
    struct implementation *more =
        realloc(library->implementations, (library->n + 1) * sizeof *library->implementations);
    if (!more)
        return false;
    library->implementations = more;
    more[library->n] = *functions;
    more[library->n++].backend = backend;
    return true;
}

/* ---- Plug-ins and builds ---- */

static bool use_plugin(struct library *library, char error[PLUGIN_ERROR])
{
    const struct posenc_backend *backend = dlsym(library->handle, "posenc_plugin");
    library->abi = backend->abi;
    library->unavailable_reason = posenc_backend_unavailable_reason;
    if (backend->abi != POSENC_ABI)
        return true;
    return plugin_check(backend, error) &&
           add_implementation(library, &implementation_library, backend);
}

static bool use_build(struct library *library, char error[PLUGIN_ERROR])
{
    __typeof__(posenc_backend_at) *at = NULL;
    __typeof__(posenc_backend_find) *find = NULL;
    __typeof__(posenc_version) *version = NULL;
    struct implementation functions = implementation_library;
    const bool whole = find_symbol(library->handle, "posenc_backend_at", &at) &&
                       find_symbol(library->handle, "posenc_backend_find", &find) &&
                       find_symbol(library->handle, "posenc_version", &version) &&
                       find_symbol(library->handle, "posenc_backend_unavailable_reason",
                                   &library->unavailable_reason) &&
                       find_functions(library->handle, &functions);
    const struct posenc_backend *backend = whole ? at(0) : NULL;
    if (!backend) {
        snprintf(error, PLUGIN_ERROR, "lacks %s; expected %s",
                 whole ? "backends" : "functions of libposenc", expected);
        return false;
    }
    snprintf(library->version, sizeof library->version, "%s", version());
    library->abi = backend->abi;
    if (backend->abi != POSENC_ABI)
        return true;
    if (find(backend->name) != backend) {
        snprintf(error, PLUGIN_ERROR,
                 "calls this program's functions in place of its own; expected one that was "
                 "linked with -Wl,-Bsymbolic-functions, or a system with RTLD_DEEPBIND");
        return false;
    }
    for (size_t i = 0; (backend = at(i)) != NULL; i++)
        if (!add_implementation(library, &functions, backend))
            return false;
    return true;
}

struct library *library_open(const char *path, char error[PLUGIN_ERROR])
{
    snprintf(error, PLUGIN_ERROR, "out of memory");
    void *original = plugin_open_object(path, expected, error); /* stays open */
    struct library *library = original ? calloc(1, sizeof *library) : NULL;
    if (!library || !(library->path = strdup(path))) {
        free(library);
        return NULL;
    }
    library->is_plugin = dlsym(original, "posenc_plugin");
    library->handle =
        load_copy(path, library->is_plugin ? 0 : OWN_SYMBOLS_FIRST, &library->file, error);
    if (library->handle &&
        (library->is_plugin ? use_plugin(library, error) : use_build(library, error)))
        return library;
    library_close(library);
    return NULL;
}

/* Closes the descriptor of a copy. Keeps it while the copy is still loaded, so that no other copy gets its path. */
static void close_copy(int file)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    void *loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (loaded)
        dlclose(loaded);
    else
        close(file);
}

void library_close(struct library *library)
{
    if (!library)
        return;
    if (library->handle) {
        dlclose(library->handle);
        close_copy(library->file);
    }
    free(library->implementations);
    free(library->path);
    free(library);
}

const struct implementation *library_implementation(const struct library *library,
                                                    const char *backend)
{
    for (size_t i = 0; i < library->n; i++)
        if (strcmp(library->implementations[i].backend->name, backend) == 0)
            return &library->implementations[i];
    return NULL;
}

bool implementation_provides(const struct implementation *implementation,
                             enum posenc_kernel kernel)
{
    return implementation && posenc_backend_provides(implementation->backend, kernel) &&
           implementation_entry(implementation, kernel);
}
