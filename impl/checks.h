/*
 * The checks of each signature: check_<signature>() refuses a call, or brings its arguments to
 * the one form that kernels take (struct posenc_backend in posenc.h). `takes_x`: of a kernel
 * that adds onto x where its signature leaves it open.
 */
#ifndef POSENC_CHECKS_H
#define POSENC_CHECKS_H

#include "validate.h"

/* Facts about an accepted call. */
struct accepted {
    bool empty; /* there is nothing to do */
    unsigned
        dtypes; /* of all its tensors: POSENC_F32, or bits that say that one is of 16 bits */
};

#define POSENC_SIGNATURE(signature)                                                            \
    enum posenc_status posenc_check_##signature(struct posenc_##signature##_args *call,        \
                                                bool takes_x, struct accepted *accepted);
#include <posenc_signatures.def>

/* usual.c: whether the call is accepted at a glance, and what the kernel is to be handed. */
bool posenc_usual_rope(const void *args, void *call, struct accepted *accepted);

/* Ways in which a kernel takes x, by its line of the list. */
enum { X_NONE = false, X_APART = true, X_IN_PLACE = true };

/* Checks and the backend that runs it: `call` is then what the kernel is to be handed. */
#define POSENC_SIGNATURE(signature)                                                            \
    enum posenc_status posenc_enter_##signature(                                               \
        const struct posenc_backend **backend, enum posenc_kernel kernel, bool takes_x,        \
        const struct posenc_##signature##_args *args, struct posenc_##signature##_args *call,  \
        bool *empty);
#include <posenc_signatures.def>

/* ---- What they share ---- */

extern const struct tensor_names posenc_names_x, posenc_names_out, posenc_names_table;

enum posenc_status posenc_check_finite(double value, const char *what,
                                       struct posenc_error *error);
enum posenc_status posenc_require_size(int64_t value, int64_t wanted, const char *what,
                                       struct posenc_error *error);
enum posenc_status posenc_require_dtype(enum posenc_dtype dtype, enum posenc_dtype wanted,
                                        const char *what, struct posenc_error *error);

/* Rules for activations. */
struct activations_rule {
    bool takes_x;
    int least_rank, most_rank;
    int64_t least_last;
};

/* x and out: both checked, of one shape and type, the same tensor or apart; or out alone. */
enum posenc_status posenc_check_activations(struct posenc_const_tensor *x,
                                            struct posenc_tensor *out,
                                            const struct activations_rule *rule,
                                            struct checked *checked,
                                            struct posenc_error *error);

/* An f32 table of rank 2, apart from out. */
enum posenc_status posenc_check_rows(struct posenc_const_tensor *table,
                                     const struct tensor_names *names, bool any_dtype,
                                     struct span out_span, const char *overlap,
                                     struct posenc_error *error);

/* From [tokens, ...] or [batch, tokens, ...]; `wide`: with heads. To [batch, tokens, heads,
 * dim]. */
void posenc_raise_input(struct posenc_const_tensor *tensor, bool wide);
void posenc_raise_output(struct posenc_tensor *tensor, bool wide);

#endif
