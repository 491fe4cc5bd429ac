/*
 * The Markdown of parts of a document, for formats that are made of such.
 */
#ifndef POSENC_MD_H
#define POSENC_MD_H

#include "reports/document.h"

#include <stdio.h>

/* A node as a page shows it, a section with a title of that level (1: #); of a table that many rows, and how
 * many more there are. */
void md_node(const struct node *node, int level, size_t rows, FILE *out);
/* Text with its marks, of which nothing else is taken for one. */
void md_text(const char *text, FILE *out);
/* How what is folded away begins, behind its title. */
void md_summary(const char *text, FILE *out);

#endif
