/*
 * Checks of the arguments of each signature. posenc_check_<signature>() rejects a call, or brings its arguments to the
 * canonical form that kernels take (struct posenc_backend in posenc.h): activations and scores of rank 4, strides of 0
 * for dimensions of size 1.
 */
#ifndef POSENC_CHECKS_H
#define POSENC_CHECKS_H

#include "validate.h"

/* Facts about a call that passed its checks. */
struct call_summary {
    bool empty;      /* no output has elements */
    unsigned dtypes; /* of all tensors, ORed: POSENC_DTYPE_F32 (0) if all of them are f32 */
};

/* `takes_x` is true if the kernel reads x; several signatures have a kernel that does and one that does not. */
#define POSENC_SIGNATURE(signature)                                                            \
    enum posenc_status posenc_check_##signature(struct posenc_##signature##_args *call,        \
                                                bool takes_x, struct call_summary *summary,    \
                                                struct posenc_error *error);
#include <posenc_signatures.def>

/* Returns true if the call passes a fast check; *call is then canonical. Otherwise *call is undefined and
 * posenc_check_rope() has to decide (fast_check.c). */
bool posenc_fast_check_rope(const void *args, void *call, struct call_summary *summary);

/* The column x of posenc_kernels.def, as `takes_x`. */
enum { X_NONE = false, X_APART = true, X_IN_PLACE = true };

/* Checks a call and selects its backend (posenc.c). *call then has the canonical arguments for that backend's kernel,
 * which need not run if *empty is true. */
#define POSENC_SIGNATURE(signature)                                                            \
    enum posenc_status posenc_setup_##signature(                                               \
        const struct posenc_backend **backend, enum posenc_kernel kernel, bool takes_x,        \
        const struct posenc_##signature##_args *args, struct posenc_##signature##_args *call,  \
        bool *empty, struct posenc_error *error);
#include <posenc_signatures.def>

/* ---- Checks that several signatures share (checks.c) ---- */

extern const struct tensor_names posenc_names_x, posenc_names_out, posenc_names_table;

enum posenc_status posenc_check_finite(double value, const char *what,
                                       struct posenc_error *error);
enum posenc_status posenc_require_size(int64_t value, int64_t wanted, const char *what,
                                       struct posenc_error *error);
enum posenc_status posenc_require_dtype(enum posenc_dtype dtype, enum posenc_dtype wanted,
                                        const char *what, struct posenc_error *error);

/* Requirements of x and out. */
struct activations_rule {
    bool takes_x;
    int min_rank, max_rank;
    int64_t min_last; /* of the last dimension */
};

/* Checks out and, if the kernel takes it, x. Both must have one shape and dtype, and be the same tensor or disjoint. */
enum posenc_status posenc_check_activations(struct posenc_const_tensor *x,
                                            struct posenc_tensor *out,
                                            const struct activations_rule *rule,
                                            struct checked_tensor *checked,
                                            struct posenc_error *error);

/* Checks a table of rank 2, which must be disjoint from out. It is f32 unless `any_dtype`. */
enum posenc_status posenc_check_table(struct posenc_const_tensor *table,
                                      const struct tensor_names *names, bool any_dtype,
                                      struct span out_span, const char *overlap,
                                      struct posenc_error *error);

/* Expand [tokens, ...] or [batch, tokens, ...] to [batch, tokens, heads, dim]. */
void posenc_expand_input(struct posenc_const_tensor *tensor, bool has_heads);
void posenc_expand_output(struct posenc_tensor *tensor, bool has_heads);

#endif
