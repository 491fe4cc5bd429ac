/*
 * One line on stderr that says what is going on; nothing where stderr is no terminal.
 */
#ifndef POSENC_CLI_PROGRESS_H
#define POSENC_CLI_PROGRESS_H

#include "args.h"

void progress(const char *what, const char *where, const char *case_id, size_t done,
              size_t failed);
void progress_clear(void);

#endif
