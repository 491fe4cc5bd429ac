/**
 * @file posenc/backend.h
 * @brief Lists of kernels and backends, and the struct that a plug-in exports.
 */
#ifndef POSENC_BACKEND_H
#define POSENC_BACKEND_H

#include <posenc.h>
#include <posenc/relative.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A backend: a named set of kernels.
 *
 * A plug-in is a shared object that defines and exports one, with C linkage:
 *     extern const struct posenc_backend posenc_plugin;
 * A program opens it with dlopen() and dlsym(). It then passes it to calls, or adds it with posenc_backend_add(), and
 * never closes it again.
 *
 * A kernel is NULL if the backend does not provide it. The library calls it with arguments that it has checked and
 * brought to one form:
 * - Activations have rank 4, [batch, tokens, heads, dim]; heads = 1 for encodings that are added.
 * - Scores and biases have rank 4, [batch, heads, queries, keys]; batch = 1 for biases without batch.
 * - cos and sin of rope_table have rank 4, with heads = 1. Tables and the out of learned_grad have rank 2.
 * - stride_token of an array of positions is not 0. Positions are in range. A dimension of size 1 has stride 0.
 * - The weight of rope_qk_norm is [heads, head_dim]; its stride is 0 if heads share it.
 * - No output is empty. learned_grad may have no tokens, and then writes zeros.
 * - Sinusoids of several axes arrive one axis at a time.
 * - In place means x.data == out.data.
 *
 * A kernel returns POSENC_OK, as nothing is left to reject. Any other status reaches the caller without details.
 *
 * A backend that was built with an older header has a smaller `size`, and lacks the kernels beyond it. The arguments
 * that it receives are those of the library, args->size bytes.
 */
struct posenc_backend {
    size_t size;      /**< sizeof(struct posenc_backend) */
    uint32_t abi;     /**< POSENC_ABI */
    const char *name; /**< [a-z0-9_]+ */
    /** Backends of one family share error limits and, unless they contract, bits */
    const char *family;
    const char *description; /**< one line */
    /** CPU features, separated by spaces, as posenc_cpu_features() names them. "posenc-" POSENC_VERSION as one of them
     *  ties the backend to that version. */
    const char *required_features;
    int32_t (*lanes)(void); /**< returns the f32 lanes of its widest vector; NULL for plain C */
    bool fused;             /**< uses one fma in a rotation */
    /** Takes 16-bit dtypes. Otherwise it never receives any, not even as cosines and sines. */
    bool f16_bf16;
    /** Its compiler may contract products and sums to fma, as gcc does without -ffp-contract=off. Rotations in 16
     *  bits may then differ from those in f32, rounded, and members of the family may differ in their bits. */
    bool allows_contraction;
    const void *reserved[4]; /**< NULL */
    enum posenc_status (*sinusoidal)(const struct posenc_sinusoidal_args *args);
    enum posenc_status (*sinusoidal_add)(const struct posenc_sinusoidal_args *args);
    enum posenc_status (*learned_add)(const struct posenc_learned_args *args);
    enum posenc_status (*learned_grad)(const struct posenc_learned_grad_args *args);
    enum posenc_status (*rope_table)(const struct posenc_rope_table_args *args);
    enum posenc_status (*rope_half)(const struct posenc_rope_args *args);
    enum posenc_status (*rope_interleaved)(const struct posenc_rope_args *args);
    enum posenc_status (*alibi)(const struct posenc_alibi_args *args);
    enum posenc_status (*alibi_add)(const struct posenc_alibi_args *args);
    enum posenc_status (*t5_bias)(const struct posenc_t5_args *args);
    enum posenc_status (*t5_bias_add)(const struct posenc_t5_args *args);
    enum posenc_status (*distance_bias)(const struct posenc_distance_args *args);
    enum posenc_status (*distance_bias_add)(const struct posenc_distance_args *args);
    enum posenc_status (*window_bias)(const struct posenc_window_args *args);
    enum posenc_status (*window_bias_add)(const struct posenc_window_args *args);
    enum posenc_status (*relative_bias)(const struct posenc_relative_args *args);
    enum posenc_status (*relative_bias_add)(const struct posenc_relative_args *args);
    enum posenc_status (*relative_sum)(const struct posenc_relative_sum_args *args);
    enum posenc_status (*rope_qk_norm)(const struct posenc_rope_qk_norm_args *args);
};

/** @brief Returns the name of a kernel, such as "rope_half"; NULL if there is no such kernel. */
POSENC_API const char *posenc_kernel_name(enum posenc_kernel kernel);

/** @brief Returns a phrase that describes a kernel; NULL if there is no such kernel. */
POSENC_API const char *posenc_kernel_summary(enum posenc_kernel kernel);

/** @brief Returns the kernel of a name; POSENC_KERNEL_NONE if there is none. */
POSENC_API enum posenc_kernel posenc_kernel_find(const char *name);

/**
 * @brief Returns a backend of the list; NULL past the end.
 *
 * The list has the backends that are built into this library, whether or not this CPU can run them, and then those
 * that were added.
 */
POSENC_API const struct posenc_backend *posenc_backend_at(size_t index);

/** @brief Returns the backend of a name; NULL if the list has none. */
POSENC_API const struct posenc_backend *posenc_backend_find(const char *name);

/** @brief Returns true if the backend provides the kernel. */
POSENC_API bool posenc_backend_provides(const struct posenc_backend *backend,
                                        enum posenc_kernel kernel);

/** @brief Returns NULL if this CPU can run the backend; otherwise why not, such as "CPU lacks avx512f". */
POSENC_API const char *posenc_backend_unavailable_reason(const struct posenc_backend *backend);

/**
 * @brief Adds a backend to the list.
 *
 * Calls can then name it, and posenc_select() can choose it. POSENC_BACKEND can select it if it was
 * added before the first call. It is never a default. Threads may add backends concurrently.
 * @param backend  has to live until the process ends
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT (another ABI, or a name that another backend has), POSENC_ERR_MEMORY
 *         (the list is full, with 16 added)
 */
POSENC_CHECKED enum posenc_status posenc_backend_add(const struct posenc_backend *backend,
                                                     struct posenc_error *error);

/** @brief Returns the features of this CPU that backends may require, separated by spaces. */
POSENC_API const char *posenc_cpu_features(void);

/**
 * @brief Returns a key of this CPU model.
 *
 * x86: vendor-family-model-stepping in hexadecimal, such as "amd-1a-02-1". ARM: implementer-part-variant-revision,
 * such as "arm-d40-1-1". RISC-V: the ids of vendor, architecture and implementation.
 */
POSENC_API const char *posenc_cpu_key(void);

/**
 * @brief Returns an identification of this build: version, compiler, options, and a hash of the sources.
 *
 * A tuning file names the build that it was measured with.
 */
POSENC_API const char *posenc_build_id(void);

#ifdef __cplusplus
}
#endif
#endif
