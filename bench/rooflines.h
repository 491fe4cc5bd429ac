/*
 * Rooflines and lower-bound loops of a call: which ones bound its time, and how they are run.
 *
 * A roofline moves the same bytes with the same access pattern as a kernel, with almost no arithmetic. It runs over the
 * tensors of the call, in the same rounds, so that pages, caches and CPU frequency are the same. A lower-bound loop
 * does the computation of a kernel on data in cache. For example, rope_half in place on f32 has the roofline BOUND_in_place
 * and the loop BOUND_rotate; in bf16 also the conversion loop BOUND_bf16.
 *
 * contender.c chooses and runs them, limits.c finds the one that binds.
 */
#ifndef POSENC_ROOFLINES_H
#define POSENC_ROOFLINES_H

#include "bench/loops/bounds.h"
#include "conformance/problem/problem.h"

/* ---- Variants ---- */

/* Kinds of bench/loops/bounds.h: first the rooflines BOUND_store to BOUND_add, then the loops BOUND_from_f64 to
 * BOUND_chain. */
enum bound_kind {
#define KIND(kind, name, isa) BOUND_##kind,
    MOVE_KINDS(KIND, ) BOUND_KINDS(KIND, )
#undef KIND
        BOUND_KIND_COUNT, /* as the kind of a loop: none */
};
extern const char *const bound_kind_name[BOUND_KIND_COUNT]; /* in records: "in place", "turn" */

/* Resources that limit a kernel, and the one that a roofline or loop shows. */
enum resource {
    RESOURCE_MEMORY,
    RESOURCE_CONVERSION, /* between element types and types of arithmetic */
    RESOURCE_PORTS,      /* execution ports of the core */
    RESOURCE_LATENCY,    /* of a dependency chain */
    RESOURCE_CALLS,      /* work of a call independent of its rows */
    RESOURCE_COUNT
};
extern const char *const resource_name[RESOURCE_COUNT];
enum resource bound_resource(enum bound_kind kind);

/* Writes n floats from dst on; bounds.h describes the arguments (in place: src = dst). Inputs are normal numbers, since
 * zeros are faster and denormals slower on some CPUs; outputs are normal, too. */
typedef void bound_function(float *dst, const float *src, const float *third, size_t n);

/* Implementation of a roofline or loop for one instruction set. */
struct bound_variant {
    enum bound_kind kind;
    const char *name; /* "avx512 prefetch", "memcpy" */
    bound_function *function;
    const char *backend; /* whose instructions it needs; NULL: none */
    /* Rooflines of an instruction set: the ways in which that moves memory, and the least one that this variant needs. */
    enum bound_moves (*moves)(void);
    enum bound_moves least_moves;
};

/* Returns the variants of all kinds, one after the other; NULL past the end. */
const struct bound_variant *bound_variant_at(size_t index);
/* Returns true if this CPU has the instructions of a variant. */
bool bound_variant_runs(const struct bound_variant *variant);

/* ---- Loops of a call ---- */

/* Work of a lower-bound loop for a call. */
struct loop_work {
    enum bound_kind kind;
    int64_t floats;       /* of 4 bytes each, to write or to add up, for the whole call */
    bool reads;           /* reads as many floats */
    bool wide;            /* computes in f32 before it stores; else in f64 */
    bool stored;          /* moves the element type of the call, not f32 */
    bool in_tensors;      /* can run over the call's tensors */
    int64_t row_floats;   /* floats of a row; 0: rows do not matter */
    int64_t rows_at_once; /* rows that are written in parallel */
};

/* Return the conversions of a call over `stored` floats of memory, and the computation of its kernel. */
struct loop_work loop_work_of_conversion(const struct call *call, int64_t stored);
struct loop_work loop_work_of_kernel(const struct call *call);

/* Memory in the nearest cache for the loops of one thread. */
enum { LOOP_BLOCK = 2 * BOUND_STEP }; /* floats */
struct loop_block {
    _Alignas(64) float out[LOOP_BLOCK];
    float wide[LOOP_BLOCK];   /* input in f32 */
    float stored[LOOP_BLOCK]; /* the same in the element type of the call */
};
/* Returns the blocks of n threads, to be freed; NULL without memory. */
struct loop_block *loop_blocks_create(const struct call *call, size_t n);

/* Runs a loop `blocks` times over its block. */
void loop_run(const struct bound_variant *loop, const struct loop_work *work,
              struct loop_block *block, int64_t blocks);

/* Runs a loop over n floats of a tensor from dst on, except an incomplete last block. `src` is the input, or NULL. */
void loop_run_over_tensor(const struct bound_variant *loop, const struct loop_work *work,
                          struct loop_block *block, float *dst, const float *src, int64_t n);
/* Returns the number of floats that loop_run_over_tensor() writes. */
int64_t loop_covered_floats(const struct loop_work *work, int64_t n);

/* Returns the number of blocks in a sample, for each thread. The whole call is *times as much work. */
int64_t loop_sample_blocks(const struct loop_work *work, int threads, double *times);

#endif
