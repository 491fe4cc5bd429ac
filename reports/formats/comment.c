/*
 * The summary again, short enough for a comment on an issue or a pull request, of which GitHub takes 65536
 * characters.
 */
#include "summary.h"

enum { GITHUB_TAKES = 64 * 1024 };

int format_comment(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    return summary_write(records, out, GITHUB_TAKES);
}
