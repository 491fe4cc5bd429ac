/*
 * Prints digests.txt: the SHA-256 of every variant by a backend of the family "native",
 * `scalar` unless another is named.
 *
 *   build/conformance/print-digests > conformance/digests.txt
 *
 * A changed line is a change of bits: review it as such.
 */
#include "suites.h"

#include <stdio.h>

static void print_line(void *user, const struct conf_result *r)
{
    (void)user;
    printf("%s %s\n", r->id, r->worst_at);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "scalar";
    const struct posenc_backend *backend = posenc_backend_find(name);
    const char *obstacle =
        backend ? posenc_backend_obstacle(backend) : "no backend of that name";
    if (obstacle) {
        fprintf(stderr, "print-digests: %s: %s\n", name, obstacle);
        return 2;
    }
    printf(
        "# SHA-256 of the outputs of every variant (cases/variants.txt) by the family "
        "\"native\", "
        "on every ISA.\n"
        "# Rows in order, f32 little-endian, every NaN the same one; 16-bit outputs widened.  "
        "Made by print-digests.\n");
    conf_run(&backend, 1, &(struct conf_options){ .suite = "digests" }, print_line, NULL);
    return fflush(stdout) == 0 ? 0 : 1;
}
