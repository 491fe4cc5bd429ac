/*
 * Rooflines and lower-bound loops of a call.
 *
 * A roofline moves the same bytes with the same access pattern as a kernel, with almost no arithmetic. It runs over the
 * tensors of the call, in the same rounds, so that pages, caches and CPU frequency are the same. A lower-bound loop
 * does the computation of a kernel on data in cache.
 */
#ifndef POSENC_ROOFLINES_H
#define POSENC_ROOFLINES_H

#include "bench/loops/bounds.h"
#include "conformance/problem/problem.h"

/* ---- Variants ---- */

/* Kinds of bench/loops/bounds.h: BOUND_store to BOUND_add are rooflines, the others loops. */
enum roofline_kind {
#define KIND(kind, unused, none) BOUND_##kind,
    MOVE_KINDS(KIND, ) BOUND_KINDS(KIND, )
#undef KIND
        ROOFLINE_KIND_COUNT,
};
extern const char *const roofline_kind_name[ROOFLINE_KIND_COUNT];

/* Resources that limit a kernel. */
enum resource {
    RESOURCE_MEMORY,
    RESOURCE_CONVERSION, /* between element types and types of arithmetic */
    RESOURCE_PORTS,      /* execution ports of the core */
    RESOURCE_LATENCY,    /* of a dependency chain */
    RESOURCE_CALLS,      /* work of a call independent of its rows */
    RESOURCE_COUNT
};
extern const char *const resource_name[RESOURCE_COUNT];
enum resource roofline_resource(enum roofline_kind kind);

/* Writes n floats from dst on; reads src and add if the kind does (in place: src = dst). Inputs are normal numbers,
 * since zeros are faster and denormals slower on some CPUs; outputs are normal, too. */
typedef void roofline_function(float *dst, const float *src, const float *add, size_t n);

struct roofline_variant {
    enum roofline_kind kind;
    const char *name; /* "avx512 prefetch" */
    roofline_function *function;
    bool (*runs)(void); /* returns false if the CPU lacks the instructions; NULL: none needed */
};

/* Returns a variant of any kind; NULL past the end. */
const struct roofline_variant *roofline_variant_at(size_t index);

/* ---- Loops of a call ---- */

/* Work of a lower-bound loop for a call. */
struct loop_work {
    enum roofline_kind kind; /* ROOFLINE_KIND_COUNT: none */
    int64_t floats;          /* to write, or to add up, for the whole call */
    bool reads;              /* reads as many floats */
    bool wide;               /* computes in f32 before it stores */
    bool stored;             /* uses the element type of the call; `floats` counts 4 bytes */
    bool in_tensors;         /* can run over the call's tensors */
    int64_t row;             /* floats of a row; 0: rows do not matter */
    int64_t at_once;         /* rows that are written in parallel */
};

/* Return the conversions of a call, over `stored` floats of memory, and the computation of its kernel. */
struct loop_work loop_work_of_conversion(const struct call *call, int64_t stored);
struct loop_work loop_work_of_kernel(const struct call *call);

/* Memory of one thread's loops: output, and inputs in f32 and in the element type of the call. */
enum { LOOP_BLOCK = 2 * BOUND_STEP };
struct loop_block {
    _Alignas(64) float out[LOOP_BLOCK], wide[LOOP_BLOCK], stored[LOOP_BLOCK];
};
struct loop_block *loop_blocks_create(const struct call *call,
                                      size_t n); /* malloc'ed, or NULL */

/* Runs a loop `blocks` times over its block. */
void loop_run(const struct roofline_variant *loop, const struct loop_work *work,
              struct loop_block *block, int64_t blocks);

/* Runs a loop over n floats of a tensor from dst on, except an incomplete last block. `src` is the input or NULL. */
void loop_run_over_tensor(const struct roofline_variant *loop, const struct loop_work *work,
                          struct loop_block *block, float *dst, const float *src, int64_t n);
/* Returns the number of floats that loop_run_over_tensor() writes. */
int64_t loop_covered_floats(const struct loop_work *work, int64_t n);

/* Returns the blocks of a sample for each thread. The whole call is *times as much work. */
int64_t loop_sample_blocks(const struct loop_work *work, int threads, double *times);

#endif
