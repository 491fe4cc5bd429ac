/*
 * Tests of each primitive of simd.h against plain C.
 *
 *   primitives.c, operations.h, memory.h   the tests, compiled once for each ISA with its flags
 *   plain.c                                compiled once, without flags: expected results, operands, memory between
 *                                          guard pages, and the count of failures
 *   main.c                                 runs the tests of the ISAs that this CPU has
 */
#ifndef POSENC_SIMD_TESTS_H
#define POSENC_SIMD_TESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "impl/internal.h"

/* The tests of one ISA, one per primitive. */
struct isa_tests {
    int64_t (*lanes)(void);
    size_t (*count)(void);
    const char *(*name)(size_t test);
    void (*run)(size_t test);
};

/* ---- Numbers to try ---- */

/* Fill `operands` rows of POSENC_FREQS_PAD lanes, n of them: special values, random bits, and numbers of similar
 * size. With three or four operands, sums often cancel, so that a product rounded by itself shows. The numbers are
 * the same in each run. */
void draw_f32(float *rows, int operands, int64_t n);
void draw_f64(double *rows, int operands, int64_t n);
void draw_u64(uint64_t *rows, int operands, int64_t n);
uint64_t draw_below(uint64_t limit);

/* ---- Expected results in plain C ---- */

float plain_add(const float *x);
float plain_sub(const float *x);
float plain_mul(const float *x);
float plain_div(const float *x);
float plain_sqrt(const float *x);
float plain_fma(const float *x);
float plain_cross(const float *x);
float plain_abs(const float *x);
float plain_min_abs(const float *x);
float plain_select_lt(const float *x);
float plain_same(const float *x);

double plain_add_f64(const double *x);
double plain_sub_f64(const double *x);
double plain_mul_f64(const double *x);
double plain_fma_f64(const double *x);
double plain_fms_f64(const double *x);
double plain_fnma_f64(const double *x);

uint64_t plain_add_u64(const uint64_t *x);
uint64_t plain_sub_u64(const uint64_t *x);
uint64_t plain_mul32(const uint64_t *x);

uint64_t plain_from_halves(double high, double low);
double plain_from_i64(uint64_t q);
float plain_from_f64(double x);

/* Convert 16-bit elements by the definition of their formats, independently of half.h. */
float plain_widen(enum posenc_dtype type, uint16_t half);
uint16_t plain_narrow(enum posenc_dtype type, float x);

/* ---- Memory ---- */

/* Returns memory that ends at an inaccessible page, or begins after one, with a pattern around it. */
enum edge { AT_END, AT_START };
void *edge_memory(enum edge edge, size_t bytes);
/* Returns a second such place, for a primitive with two pointers. */
void *other_edge_memory(enum edge edge, size_t bytes);
/* Fails if the pattern around these bytes of edge_memory() has changed. */
void expect_untouched(const void *memory, size_t bytes);

/* ---- Comparison ---- */

/* Sets the words that describe the current check in failure messages; n is that of the primitive, if it has one. */
void trying(const char *what, int64_t n);
/* Compare lane by lane: bits32 bit for bit, the others with any NaN for a NaN. */
void expect_bits32(const void *got, const void *wanted, int64_t n);
void expect_bits64(const void *got, const void *wanted, int64_t n);
void expect_f32(const float *got, const float *wanted, int64_t n);
void expect_f64(const double *got, const double *wanted, int64_t n);
void expect_halves(const uint16_t *got, const uint16_t *wanted, int64_t n,
                   enum posenc_dtype type);
/* Fails if the number of lanes breaks the contract. Not inlined, as gcc 12 fails on it for SVE. */
void expect_lanes(int64_t lanes);
void expect(bool right, const char *what);

/* Runs a test; a fault (signal) in it is a failure. Returns true if it passed. */
bool run_test(const char *isa, const struct isa_tests *tests, size_t test);

#endif
