/*
 * Somebody else's backend: a shared library that exports
 * `const struct posenc_backend posenc_plugin`.
 */
#define _GNU_SOURCE
#include "select.h"

#include <dlfcn.h>
#ifdef __ELF__
#include <link.h>
#endif
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXPECTED                                                                               \
    "expected a shared library that exports \"const struct posenc_backend posenc_plugin\""

static bool is_name(const char *name)
{
    return name && *name != '\0' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

static int refuse_layout(const struct cli *cli, const char *path,
                         const struct posenc_backend *backend)
{
    return cli_refuse(cli, "--plugin", path,
                      "was built for another posenc.h: its struct posenc_backend has %zu "
                      "bytes and ABI %u; expected %zu bytes and ABI %u",
                      backend->size, backend->abi, sizeof *backend, POSENC_ABI);
}

static int check(const struct cli *cli, const char *path, const struct posenc_backend *backend)
{
    if (backend->abi != POSENC_ABI)
        return refuse_layout(cli, path, backend);
    if (!is_name(backend->name) || !is_name(backend->family))
        return cli_refuse(cli, "--plugin", path,
                          "has no usable name or family: expected letters a-z, digits and _");
    if (!backend->description)
        return cli_refuse(cli, "--plugin", path, "has no description: expected one line");
    if (posenc_backend_find(backend->name))
        return cli_refuse(cli, "--plugin", path,
                          "is named %s, as a backend of this library: expected another name",
                          backend->name);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (posenc_provides(backend, (enum posenc_kernel)k))
            return EXIT_FINE;
    if (backend->size != sizeof *backend) /* a newer one, with kernels that are unknown here */
        return refuse_layout(cli, path, backend);
    return cli_refuse(cli, "--plugin", path, "provides no kernel: expected at least one");
}

/* Whether a file holds all that its headers say.  Loading one that was cut short dies of SIGBUS.
 * What is no ELF file of this machine is left to dlopen, which says so. */
static bool is_whole(const char *path)
{
    bool whole = true;
#ifdef __ELF__
    ElfW(Ehdr) header;
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

int plugin_load(const struct cli *cli, const char *path, const struct posenc_backend **backend)
{
    char local[4096];
    if (!strchr(path, '/') && access(path, F_OK) == 0) /* dlopen would look elsewhere */
        snprintf(local, sizeof local, "./%s", path);
    else
        snprintf(local, sizeof local, "%s", path);
    if (!is_whole(local)) {
        return cli_refuse(
            cli, "--plugin", path,
            "cannot be loaded (it ends before its last segment does: cut short?); " EXPECTED);
    }
    void *library = dlopen(local, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return cli_refuse(cli, "--plugin", path, "cannot be loaded (%s); " EXPECTED, dlerror());
    const struct posenc_backend *found = dlsym(library, "posenc_plugin");
    if (!found) {
        dlclose(library);
        return cli_refuse(cli, "--plugin", path, "exports no posenc_plugin; " EXPECTED);
    }
    if (check(cli, path, found) != EXIT_FINE) {
        dlclose(library);
        return EXIT_USAGE;
    }
    *backend = found; /* stays loaded until the program ends */
    return EXIT_FINE;
}
