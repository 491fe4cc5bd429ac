/*
 * Which program made a file of records.
 */
#ifndef POSENC_CLI_TOOL_H
#define POSENC_CLI_TOOL_H

#include <jansson.h>

/* {version, commit, dirty, code}: code is a number of the machine code of this program and of the
 * libraries and plug-ins it has loaded; commit and code are left out where they are not known. */
json_t *tool_record(void);

#endif
