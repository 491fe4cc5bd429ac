/* Identifies this build of the library: build.sh writes build.h. */
#include "build.h"

#include "internal.h"

const char *posenc_build_id(void) { return POSENC_BUILD; }
