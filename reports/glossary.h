/*
 * The words of a report, each explained once: behind the first table or paragraph in which a reader
 * meets it.
 */
#ifndef POSENC_GLOSSARY_H
#define POSENC_GLOSSARY_H

#include "document.h"

/* Adds nodes of kind TERM to what a terminal (`all`: with details) or a page shows.  False: no memory. */
bool glossary_explain(struct node *root, bool terminal, bool all);

#endif
