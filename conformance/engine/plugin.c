/* Finds, checks and adds plug-ins; see plugin.h. */
#define _GNU_SOURCE
#include "plugin.h"
#include "base/text/text.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#ifdef __ELF__
#include <link.h>
#endif
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes a message; returns false. */
__attribute__((format(printf, 2, 3))) static bool write_rejection(char error[PLUGIN_ERROR],
                                                                  const char *form, ...)
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

/* Returns false for a truncated ELF file, as loading it would raise SIGBUS. Accepts other files, which dlopen()
 * rejects with a message. */
static bool is_whole(const char *path)
{
    bool whole = true;
#ifdef __ELF__
    ElfW(Ehdr) header = { 0 }; /* a file may end within it */
    ElfW(Phdr) segment;
    FILE *file = fopen(path, "rb");
    if (!file || fread(&header, sizeof header, 1, file) != 1 ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof segment ||
        fseek(file, 0, SEEK_END) != 0) {
        whole = !file || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0;
    } else {
        uint64_t size = (uint64_t)ftell(file);
        for (unsigned i = 0; i < header.e_phnum && whole; i++) {
            uint64_t at = header.e_phoff + (uint64_t)i * sizeof segment;
            whole = at <= size && fseek(file, (long)at, SEEK_SET) == 0 &&
                    fread(&segment, sizeof segment, 1, file) == 1 && segment.p_offset <= size &&
                    segment.p_filesz <= size - segment.p_offset;
        }
    }
    if (file)
        fclose(file);
#else
    (void)path;
#endif
    return whole;
}

void *plugin_open_object(const char *path, const char *what, char error[PLUGIN_ERROR])
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
    void *object = plugin_open_object(path, expected, error);
    const struct posenc_backend *found = object ? dlsym(object, "posenc_plugin") : NULL;
    if (object && !found) {
        write_rejection(error, "exports no posenc_plugin; expected %s", expected);
        dlclose(object);
    }
    return found;
}

const struct posenc_backend *plugin_load(const char *path, char error[PLUGIN_ERROR])
{
    const struct posenc_backend *found = plugin_find(path, error);
    return found && plugin_check(found, error) ? found : NULL;
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
    const struct posenc_backend *found = plugin_load(path, error);
    return found && plugin_has_free_name(found, error) ? found : NULL;
}

static void print_rejection(const char *path, const char *error)
{
    text_print(stderr, "%s: %s\n", path, error);
}

size_t plugins_add(const char *folder)
{
    return plugins_add_by(open_usable, folder, print_rejection);
}
