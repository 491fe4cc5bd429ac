/* The formats of render(), one file each.  0, or -1. */
#ifndef POSENC_FORMATS_H
#define POSENC_FORMATS_H

#include "render.h"

int render_console(const json_t *records, FILE *out, const struct render_options *options);
int render_markdown(const json_t *records, FILE *out, const struct render_options *options);
int render_jsonl(const json_t *records, FILE *out, const struct render_options *options);
int render_csv(const json_t *records, FILE *out, const struct render_options *options);
int render_junit(const json_t *records, FILE *out, const struct render_options *options);

#endif
