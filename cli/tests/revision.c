/*
 * Finds or builds one revision, for revisions.sh:
 *
 *     revision [--build COMMAND LIBRARY] [REVISION]
 *
 * prints its commit, "built" or "cached", "dirty" or "clean", and its path.
 */
#include "cli/revisions.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const struct cli cli = { .command = "compare" };
    struct revision_build how = { NULL, NULL };
    struct revision revision;
    int at = 1;
    if (argc > 3 && strcmp(argv[1], "--build") == 0) {
        how = (struct revision_build){ argv[2], argv[3] };
        at = 4;
    }
    const int status = revision_take(&cli, &how, argc > at ? argv[at] : NULL, &revision);
    if (status == EXIT_FINE)
        printf("%s %s %s %s\n", revision.commit, revision.was_there ? "cached" : "built",
               revision.dirty ? "dirty" : "clean", revision.path);
    return status;
}
