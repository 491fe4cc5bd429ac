/*
 * Finds, checks and adds plug-ins, and opens builds of the library as separate copies; see library.h.
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
#include "base/text/text.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#ifdef __ELF__
#include <link.h>
#endif
#include <stdarg.h>
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

/* ---- Plug-ins ---- */

/* Writes a message; returns false. */
PRINTF_LIKE(2, 3)
static bool write_rejection(char error[PLUGIN_ERROR], const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(error, PLUGIN_ERROR, form, arguments);
    va_end(arguments);
    return false;
}

/* Returns true for a valid name. Reads at most 64 characters, as the string may lack a NUL. */
static bool is_name(const char *name)
{
    enum { LONGEST = 63 };
    size_t n = 0;
    while (name && n <= LONGEST && name[n] != '\0' &&
           strchr("abcdefghijklmnopqrstuvwxyz0123456789_", name[n]))
        n++;
    return n > 0 && n <= LONGEST && name[n] == '\0';
}

static bool reject_layout(const struct posenc_backend *backend, char error[PLUGIN_ERROR])
{
    return write_rejection(
        error,
        "was built for another posenc.h: its struct posenc_backend has %zu bytes and "
        "ABI %u; expected %zu bytes and ABI %u",
        backend->size, backend->abi, sizeof *backend, POSENC_ABI);
}

bool plugin_check(const struct posenc_backend *backend, char error[PLUGIN_ERROR])
{
    if (backend->abi != POSENC_ABI)
        return reject_layout(backend, error);
    if (!is_name(backend->name) || !is_name(backend->family))
        return write_rejection(
            error, "has no usable name or family: expected letters a-z, digits and _");
    if (!backend->description || !text_is_plain(backend->description) ||
        (backend->required_features && !text_is_plain(backend->required_features)))
        return write_rejection(
            error, "has no description, or one that is not plain text, or such needs: "
                   "expected one line of UTF-8 each, without control characters");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (posenc_backend_provides(backend, (enum posenc_kernel)k))
            return true;
    if (backend->size != sizeof *backend) /* a newer backend, whose kernels are unknown here */
        return reject_layout(backend, error);
    return write_rejection(error, "provides no kernel: expected at least one");
}

bool plugin_has_free_name(const struct posenc_backend *backend, char error[PLUGIN_ERROR])
{
    const struct posenc_backend *other = posenc_backend_find(backend->name);
    if (!other || other == backend)
        return true;
    return write_rejection(error,
                           "is named %s, as a backend of this library: expected another name",
                           backend->name);
}

#ifdef __ELF__
/* Returns false for a truncated ELF file. */
static bool has_whole_segments(FILE *file)
{
    ElfW(Ehdr) header = { 0 }; /* a file may end within it */
    ElfW(Phdr) segment;
    const bool has_header = fread(&header, sizeof header, 1, file) == 1;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return true;
    if (!has_header || header.e_phentsize != sizeof segment || fseek(file, 0, SEEK_END) != 0)
        return false;
    const uint64_t size = (uint64_t)ftell(file);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        const uint64_t place = header.e_phoff + (uint64_t)i * sizeof segment;
        if (place > size || fseek(file, (long)place, SEEK_SET) != 0 ||
            fread(&segment, sizeof segment, 1, file) != 1 || segment.p_offset > size ||
            segment.p_filesz > size - segment.p_offset)
            return false;
    }
    return true;
}
#endif

/* Returns false for a truncated file, as loading it would raise SIGBUS. Accepts files that are not ELF, which dlopen()
 * rejects with a message. */
static bool is_whole(const char *path)
{
    bool whole = true;
#ifdef __ELF__
    FILE *file = fopen(path, "rb");
    whole = !file || has_whole_segments(file);
    if (file)
        fclose(file);
#else
    (void)path;
#endif
    return whole;
}

/* Opens a shared object by its path, without a search in other folders. Returns its handle for dlsym(), or NULL and a
 * message, which ends with a description of the expected object. */
static void *open_object(const char *path, const char *what, char error[PLUGIN_ERROR])
{
    char local[4096]; /* dlopen() would search other folders for a name without a slash */
    void *object = NULL;
    snprintf(local, sizeof local, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (access(local, R_OK) != 0)
        write_rejection(error, "cannot be loaded (%s); expected %s", strerror(errno), what);
    else if (!is_whole(local))
        write_rejection(error,
                        "cannot be loaded (it ends before its last segment does: cut short?); "
                        "expected %s",
                        what);
    else if (!(object = dlopen(local, RTLD_NOW | RTLD_LOCAL)))
        write_rejection(error, "cannot be loaded (%.800s); expected %s", dlerror(), what);
    return object;
}

const struct posenc_backend *plugin_find(const char *path, char error[PLUGIN_ERROR])
{
    static const char expected[] =
        "a shared library that exports \"const struct posenc_backend posenc_plugin\"";
    void *object = open_object(path, expected, error);
    const struct posenc_backend *found = object ? dlsym(object, "posenc_plugin") : NULL;
    if (object && !found) {
        write_rejection(error, "exports no posenc_plugin; expected %s", expected);
        dlclose(object);
    }
    return found;
}

static int is_shared_object(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 3 && strcmp(entry->d_name + length - 3, ".so") == 0;
}

size_t plugins_add_by(plugin_opener *open, const char *folder, plugin_failure_sink *rejected)
{
    struct dirent **names;
    const int n = scandir(folder, &names, is_shared_object, alphasort);
    size_t n_rejected = 0;
    if (n < 0 && errno != ENOENT) {
        char error[PLUGIN_ERROR];
        write_rejection(error, "cannot be read (%s); expected a folder of plug-ins",
                        strerror(errno));
        rejected(folder, error);
        n_rejected++;
    }
    for (int i = 0; i < n; i++) {
        char path[4096], error[PLUGIN_ERROR];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        const struct posenc_backend *backend = open(path, error);
        if (backend && posenc_backend_add(backend, NULL)) {
            write_rejection(error, "there are too many of them");
            backend = NULL;
        }
        if (!backend) {
            rejected(path, error);
            n_rejected++;
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return n_rejected;
}

static const struct posenc_backend *open_usable(const char *path, char error[PLUGIN_ERROR])
{
    const struct posenc_backend *found = plugin_find(path, error);
    return found && plugin_check(found, error) && plugin_has_free_name(found, error) ? found
                                                                                     : NULL;
}

static void print_rejection(const char *path, const char *error)
{
    text_print(stderr, "%s: %s\n", path, error);
}

size_t plugins_add(const char *folder)
{
    return plugins_add_by(open_usable, folder, print_rejection);
}

/* ---- Builds: a copy of a file ---- */

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
        return write_rejection(error, "lacks %s; expected a build of libposenc, or a plug-in",
                               whole ? "backends" : "functions of libposenc");
    }
    snprintf(library->version, sizeof library->version, "%s", version());
    library->abi = backend->abi;
    if (backend->abi != POSENC_ABI)
        return true;
    if (find(backend->name) != backend) {
        return write_rejection(
            error, "calls this program's functions in place of its own; expected one that was "
                   "linked with -Wl,-Bsymbolic-functions, or a system with RTLD_DEEPBIND");
    }
    for (size_t i = 0; (backend = at(i)) != NULL; i++)
        if (!add_implementation(library, &functions, backend))
            return false;
    return true;
}

struct library *library_open(const char *path, char error[PLUGIN_ERROR])
{
    static const char expected[] = "a build of libposenc, or a plug-in";
    snprintf(error, PLUGIN_ERROR, "out of memory");
    void *original = open_object(path, expected, error); /* stays open */
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
