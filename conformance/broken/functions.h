/*
 * Broken functions: what the library's own do before any kernel runs, and its front-end.  Calls
 * are made and run with the broken_<function>() below in the place of posenc_<function>()
 * (meson.build), which hand on to the real one or to the one put in its place.
 */
#ifndef POSENC_BROKEN_FUNCTIONS_H
#define POSENC_BROKEN_FUNCTIONS_H

#include "conformance/problem/subject.h"

#define BROKEN_FUNCTIONS(F)                                                                    \
    F(alibi_slopes)                                                                            \
    F(t5_thresholds)                                                                           \
    F(padding_positions)                                                                       \
    F(swin_index)                                                                              \
    F(beit_index)                                                                              \
    F(shaw_index)                                                                              \
    F(transformer_xl_index)                                                                    \
    F(deberta_index)                                                                           \
    F(sinusoidal)                                                                              \
    F(sinusoidal_add)

/* What is in their places; NULL: the real ones. */
#define MEMBER(function) __typeof__(posenc_##function) *function;
extern struct broken_functions {
    BROKEN_FUNCTIONS(MEMBER)
} broken_functions;
#undef MEMBER

#define PROTOTYPE(function) __typeof__(posenc_##function) broken_##function;
BROKEN_FUNCTIONS(PROTOTYPE)
#undef PROTOTYPE

/* The library with these functions: what calls are made and run with. */
void functions_install(struct subject *subject);

#define BROKEN_FUNCTION(name, function, kernel, suite, what) __typeof__(posenc_##function) name;
#include "broken.def"

#endif
