/*
 * The digest of machine code stays where only places change, and moves where one thing does.
 *
 *     test_identity FOLDER LIBRARY RELINKED     FOLDER: builds of tests/coded.c; the library, and the
 *                                               same objects linked in another order
 */
#define _GNU_SOURCE
#include "identity.h"
#include "conformance/tap/tap.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char *const same[] = { "again", "functions", "loops", "order", "pushed", "both" };
static const char *const differs[] = { "added",    "nop",    "immediate", "constant",
                                       "table",    "callee", "pointed",   "other",
                                       "variable", "text",   "branch" };

static bool digest_of(const char *folder, const char *name, char digest[CODE_DIGEST],
                      char why[CODE_WHY])
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libcoded_%s.so", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const uintptr_t entry = library ? (uintptr_t)dlsym(library, "coded_entry") : 0;
    snprintf(why, CODE_WHY, "%.180s", library ? "no coded_entry" : dlerror());
    digest[0] = '\0';
    return entry && code_digest_of(&entry, 1, path, digest, why);
}

static void test_coded(const char *folder)
{
    char base[CODE_DIGEST], digest[CODE_DIGEST], why[CODE_WHY], sentence[160];
    if (!digest_of(folder, "base", base, why))
        printf("# %s\n", why);
    require(strlen(base) == 64, "the code of a small library has a digest");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (!digest_of(folder, same[i], digest, why))
            printf("# %s\n", why);
        snprintf(sentence, sizeof sentence, "it is the same where only places change: %s",
                 same[i]);
        require(strcmp(digest, base) == 0, sentence);
    }
    for (size_t i = 0; i < sizeof differs / sizeof *differs; i++) {
        bool known = digest_of(folder, differs[i], digest, why);
        snprintf(sentence, sizeof sentence, "it is another one where one thing changes: %s",
                 differs[i]);
        require(known && strcmp(digest, base) != 0, sentence);
    }
    require(!digest_of(folder, "switch", digest, why) && digest[0] == '\0' &&
                (strstr(why, "computed jump") || strstr(why, "unknown extent")),
            "a jump that cannot be followed leaves it unknown, and says so");
}

/* ---- The library ---- */

static void *function(void *library, const char *name)
{
    char symbol[128];
    snprintf(symbol, sizeof symbol, "posenc_%s", name);
    return dlsym(library, symbol);
}

static struct subject subject_in(void *library, size_t i)
{
    struct subject subject = { .backend = NULL };
    const struct posenc_backend *(*at)(size_t) =
        (const struct posenc_backend *(*)(size_t))(uintptr_t)function(library, "backend_at");
    subject.backend = at ? at(i) : NULL;
#define POSENC_KERNEL(name, ...)                                                               \
    subject.name = (__typeof__(subject.name))(uintptr_t)function(library, #name);
#include <posenc_kernels.def>
    return subject;
}

static void test_library(const char *first, const char *second)
{
    void *libraries[2] = { dlopen(first, RTLD_NOW | RTLD_LOCAL),
                           dlopen(second, RTLD_NOW | RTLD_LOCAL) };
    const char *paths[2] = { first, second };
    int n = 0, known = 0, equal = 0;
    require(libraries[0] && libraries[1], "the library and its other link can be opened");
    for (size_t i = 0; libraries[0] && libraries[1] && subject_in(libraries[0], i).backend; i++)
        for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
            char digests[2][CODE_DIGEST], why[CODE_WHY];
            const struct posenc_backend *backend = subject_in(libraries[0], i).backend;
            if (!posenc_provides(backend, (enum posenc_kernel)k))
                continue;
            for (int l = 0; l < 2; l++) {
                const struct subject subject = subject_in(libraries[l], i);
                if (!code_digest(&subject, (enum posenc_kernel)k, paths[l], digests[l], why))
                    printf("# %s %s: %s\n", backend->name,
                           posenc_kernel_name((enum posenc_kernel)k), why);
            }
            n++;
            known += digests[0][0] && digests[1][0];
            equal += digests[0][0] && strcmp(digests[0], digests[1]) == 0;
        }
    printf("# %d kernels on backends: %d known, %d the same\n", n, known, equal);
    require(n > 0 && known == n, "the code of every kernel is known");
    require(equal == n, "and the same after its objects were linked in another order");
}

int main(int argc, char **argv)
{
    char digest[CODE_DIGEST], why[CODE_WHY];
    if (argc < 4)
        return 2;
    test_coded(argv[1]);
    test_library(argv[2], argv[3]);
    const uintptr_t nowhere = (uintptr_t)digest;
    require(!code_digest_of(&nowhere, 1, NULL, digest, why) && why[0],
            "what is no code has none");
    return tap_end();
}
