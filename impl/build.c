/* Which build of the library this is: build.sh. */
#include "build.h"

#include "internal.h"

const char *posenc_build(void) { return POSENC_BUILD; }
