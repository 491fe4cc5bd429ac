/* The built-in models as JSON text, made by embed.sh at build time. */
#ifndef POSENC_MODEL_SOURCES_H
#define POSENC_MODEL_SOURCES_H

extern const struct model_source {
    const char *name, *json;
} model_sources[]; /* ends with a NULL name */

#endif
