/*
 * Rooflines and lower-bound loops, and which of them a call has.
 *
 * A roofline is the best that this machine does with the same bytes and the same access pattern as a kernel, with next
 * to no arithmetic. It runs over the tensors of the very call that it belongs to, in the same rounds, so that pages,
 * caches and clock are the same. A lower-bound loop does the work of a kernel beside moving its tensors, and nothing
 * else.
 */
#ifndef POSENC_ROOFLINES_H
#define POSENC_ROOFLINES_H

#include "bench/loops/bounds.h"
#include "conformance/problem/problem.h"

/* ---- Variants (rooflines.c) ---- */

/* Kinds of bench/loops/bounds.h: BOUND_store to BOUND_add are rooflines of memory. */
enum roofline_kind {
#define KIND(name, unused) BOUND_##name,
    MOVE_KINDS(KIND, ) BOUND_KINDS(KIND, )
#undef KIND
        ROOFLINE_KIND_COUNT,
};
extern const char *const roofline_kind_name[ROOFLINE_KIND_COUNT];

/* Resources that bind a row. */
enum resource {
    RESOURCE_MEMORY,
    RESOURCE_CONVERSION, /* between element types and types of arithmetic */
    RESOURCE_PORTS,      /* of the core, that instructions go through */
    RESOURCE_LATENCY,    /* of one operation that waits for another */
    RESOURCE_CALLS,      /* the part of a call that does not depend on its rows */
    RESOURCE_COUNT
};
extern const char *const resource_name[RESOURCE_COUNT];
enum resource roofline_resource(enum roofline_kind kind);

/* Writes n floats from dst on; reads src and add if the kind does (in place: src = dst). Normal, non-zero numbers give
 * such numbers: lines of zeros are faster than real ones on some CPUs, denormals slower. */
typedef void roofline_function(float *dst, const float *src, const float *add, size_t n);

struct roofline_variant {
    enum roofline_kind kind;
    const char *name; /* "avx512 prefetch" */
    roofline_function *function;
    bool (*runs)(
        void); /* returns false if this CPU lacks the instructions; NULL: all have them */
};

/* Lists all variants of all kinds; NULL past the end. */
const struct roofline_variant *roofline_variant_at(size_t index);

/* ---- Loops of a call (loop_work.c) ---- */

/* Work of a call that a loop does, and how much of it. */
struct loop_work {
    enum roofline_kind kind; /* ROOFLINE_KIND_COUNT: there is no such work */
    int64_t floats;          /* that the loop would write, or add up, for all of the call */
    bool reads;              /* reads as many others */
    bool wide;       /* numbers that it makes itself are in f32 before they are stored */
    bool stored;     /* elements are stored as the call's; a float is as many of their bytes */
    bool in_tensors; /* can go over the call's own tensors */
    int64_t row;     /* floats of a row; 0: rows do not matter */
    int64_t at_once; /* rows that are written side by side */
};

/* Returns the conversions of a call, over `stored` floats of memory, and the work of its kernel. */
struct loop_work loop_work_of_conversion(const struct call *call, int64_t stored);
struct loop_work loop_work_of_kernel(const struct call *call);

/* Memory of one thread's loops: output, and ordinary numbers in f32 and as the call stores them. */
enum { LOOP_BLOCK = 2 * BOUND_STEP };
struct loop_block {
    _Alignas(64) float out[LOOP_BLOCK], wide[LOOP_BLOCK], stored[LOOP_BLOCK];
};
struct loop_block *loop_blocks_create(const struct call *call,
                                      size_t n); /* malloc'ed, or NULL */

/* Runs a loop over its block, so many times. */
void loop_run(const struct roofline_variant *loop, const struct loop_work *work,
              struct loop_block *block, int64_t blocks);

/* Runs a loop over n floats of a tensor from dst on, except for the rest behind whole blocks.  src: as
 * many others, or NULL. */
void loop_run_over_tensor(const struct roofline_variant *loop, const struct loop_work *work,
                          struct loop_block *block, float *dst, const float *src, int64_t n);
/* Returns how many of n floats loop_run_over_tensor() writes. */
int64_t loop_covered_floats(const struct loop_work *work, int64_t n);

/* Returns the blocks of a sample for each thread; all of the call is `times` as much. */
int64_t loop_sample_blocks(const struct loop_work *work, int threads, double *times);

#endif
