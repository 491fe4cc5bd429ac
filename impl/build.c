/* Identifies this build of the library; see build.sh. */
#include "build.h"

#include "internal.h"

const char *posenc_build(void) { return POSENC_BUILD; }
