/* A colour for each backend, the same in every picture. */
#ifndef POSENC_COLORS_H
#define POSENC_COLORS_H

#include "query.h"

/* As gnuplot takes it.  Of a plug-in by its place among those that the results name; NULL: the
 * first. */
const char *backend_color(const struct results *results, const char *backend);

#endif
