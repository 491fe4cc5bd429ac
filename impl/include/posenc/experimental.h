/**
 * @file posenc/experimental.h
 * @brief Calls that are prepared or split. This header may change in any release; POSENC_ABI does not cover it.
 *
 * Each function takes the arguments of any kernel, as a pointer to void. The inline functions at the end are the same
 * for one kernel: posenc_rope_half_split() and so on. Use them in C and C++, as the compiler then checks the type.
 */
#ifndef POSENC_EXPERIMENTAL_H
#define POSENC_EXPERIMENTAL_H

#include <posenc.h>
#include <posenc/relative.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Prepared calls ---- */

/**
 * A call that is checked once and run many times, by one thread at a time. It suits decoding, where each step has
 * other activations and the next position. A run costs a few comparisons more than the kernel alone.
 */
struct posenc_prepared;

/**
 * @brief Checks a call and keeps its arguments.
 *
 * Frequencies, tables and the backend have to live, unchanged, as long as the object.
 * @param backend   NULL for the one that is selected now
 * @param kernel    sinusoidal, sinusoidal_add (both with one axis), learned_add, rope_half, rope_interleaved or
 *                  rope_qk_norm. Scores have another shape at each step and cannot be prepared.
 * @param args      arguments of the kernel; not empty
 * @param prepared  receives the object, which posenc_prepared_destroy() frees
 * @param error     receives the details of an error; may be NULL
 * @return POSENC_OK, or the errors of the kernel, POSENC_ERR_SHAPE (nothing to do), POSENC_ERR_NOT_PROVIDED,
 *         POSENC_ERR_MEMORY
 */
POSENC_CHECKED enum posenc_status posenc_prepare(const struct posenc_backend *backend,
                                                 enum posenc_kernel kernel, const void *args,
                                                 struct posenc_prepared **prepared,
                                                 struct posenc_error *error);

/** @brief Frees a prepared call; NULL is allowed. */
POSENC_API void posenc_prepared_destroy(struct posenc_prepared *prepared);

/**
 * @brief Runs a prepared call with other data of the same shapes, strides and dtype.
 * @param x       data of x; NULL: in place, or for a kernel without x
 * @param out     data of out
 * @param offset  offset of the positions
 * @param error   receives the details of an error; may be NULL
 * @return as a call with these arguments; POSENC_ERR_ARGUMENT if it was prepared with an array of positions
 */
POSENC_CHECKED enum posenc_status posenc_run(struct posenc_prepared *prepared, const void *x,
                                             void *out, int64_t offset,
                                             struct posenc_error *error);

/**
 * @brief Runs a call that was prepared with an array of positions.
 * @param positions  another array of that kind
 * @return as posenc_run(); POSENC_ERR_ARGUMENT if it was prepared with an offset
 */
POSENC_CHECKED enum posenc_status posenc_run_at(struct posenc_prepared *prepared, const void *x,
                                                void *out, const void *positions,
                                                struct posenc_error *error);

/* ---- Parts of a call ---- */

/**
 * @brief Computes part k of n parts of a call, one for each thread.
 *
 * The part has arguments of the same kind; run it like any other call. Together, the n parts write each element once,
 * with the bits of the whole call, in any order.
 *
 * A part is a range of one axis of out: tokens or batches; heads of rotations; heads, batches or queries of scores;
 * channels of learned_grad; never keys. An axis that can be cut between cache lines of 64 bytes is preferred, so
 * that no two parts write one line. Among those, the axis with the smallest largest part is taken. If there is none,
 * neighbours may share the line where they meet. If n exceeds what can be cut, some parts are empty: they have
 * tensors without elements, and do nothing.
 *
 * The function reads only args, no tensor, position or index. Threads may call it at once with the same args and n.
 * Errors that it does not look for are reported when a part runs, by that part alone; the other parts will have been
 * written.
 *
 * @param args   arguments of the kernel
 * @param k      part, 0 to n - 1
 * @param n      number of parts, 1 to 2^31 - 1
 * @param part   receives args->size bytes; may be args
 * @param error  receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE (k, n, a rank, or sizes that are not those of out),
 *         POSENC_ERR_DTYPE, POSENC_ERR_POSITION (an offset near 2^63). `part` is then unchanged.
 */
POSENC_CHECKED enum posenc_status posenc_split(enum posenc_kernel kernel, const void *args,
                                               int64_t k, int64_t n, void *part,
                                               struct posenc_error *error);

/* ---- The same for one kernel ---- */

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    static inline enum posenc_status posenc_##name##_split(                                    \
        const struct posenc_##signature##_args *args, int64_t k, int64_t n,                    \
        struct posenc_##signature##_args *part, struct posenc_error *error)                    \
    {                                                                                          \
        return posenc_split(POSENC_KERNEL_##ID, args, k, n, part, error);                      \
    }                                                                                          \
    static inline uint64_t posenc_##name##_footprint(                                          \
        const struct posenc_##signature##_args *args)                                          \
    {                                                                                          \
        return posenc_footprint(POSENC_KERNEL_##ID, args);                                     \
    }
#include <posenc_kernels.def>

#define POSENC_PREPARE(name, ID, args_of)                                                      \
    static inline enum posenc_status posenc_##name##_prepare(                                  \
        const struct posenc_backend *backend, const struct posenc_##args_of##_args *args,      \
        struct posenc_prepared **prepared, struct posenc_error *error)                         \
    {                                                                                          \
        return posenc_prepare(backend, POSENC_KERNEL_##ID, args, prepared, error);             \
    }

POSENC_PREPARE(sinusoidal, SINUSOIDAL, sinusoidal)
POSENC_PREPARE(sinusoidal_add, SINUSOIDAL_ADD, sinusoidal)
POSENC_PREPARE(learned_add, LEARNED_ADD, learned)
POSENC_PREPARE(rope_half, ROPE_HALF, rope)
POSENC_PREPARE(rope_interleaved, ROPE_INTERLEAVED, rope)
POSENC_PREPARE(rope_qk_norm, ROPE_QK_NORM, rope_qk_norm)
#undef POSENC_PREPARE

#ifdef __cplusplus
}
#endif
#endif
