/*
 * A subject is what is under test: a backend, and the functions of the library that calls of its
 * kernels are made and run with.  Programs test the library's own; the broken kernels test the
 * suites with others in their place.
 */
#ifndef POSENC_SUBJECT_H
#define POSENC_SUBJECT_H

#include <posenc.h>

#define SUBJECT_BUILDERS(ONE)                                                                  \
    ONE(freqs_create)                                                                          \
    ONE(freqs_destroy)                                                                         \
    ONE(alibi_slopes)                                                                          \
    ONE(t5_thresholds)                                                                         \
    ONE(padding_positions)                                                                     \
    ONE(swin_index) ONE(beit_index) ONE(shaw_index) ONE(transformer_xl_index) ONE(deberta_index)

struct subject {
    const struct posenc_backend *backend;

    /* What makes plans and destroys them, and makes the integers and slopes that kernels are
     * given; the front-end of each kernel. */
#define FUNCTION(name) __typeof__(posenc_##name) *name;
    SUBJECT_BUILDERS(FUNCTION)
#define POSENC_KERNEL(name, ...) FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
};

/* The functions of the library, without a backend; with one. */
extern const struct subject subject_library;
struct subject subject_of(const struct posenc_backend *backend);

/* The functions of a kernel: a subject's front-end, and its backend's. */
void (*subject_entry(const struct subject *subject, enum posenc_kernel kernel))(void);
void (*backend_entry(const struct posenc_backend *backend, enum posenc_kernel kernel))(void);

#endif
