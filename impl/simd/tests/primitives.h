/*
 * Tests of the primitives of simd.h, each alone, against plain C.
 *
 *   primitives.c, operations.h, memory.h
 *                  the tests, compiled once for each ISA with that ISA's flags
 *   plain.c        compiled once, with none: what a primitive should give, numbers to try it
 *                  with, memory between guard pages, and the count of what was found
 *   main.c         runs the tests of the ISAs that this CPU has
 */
#ifndef POSENC_SIMD_TESTS_H
#define POSENC_SIMD_TESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "impl/internal.h"

/* The tests of one ISA, one a primitive. */
struct isa_tests {
    int64_t (*lanes)(void);
    size_t (*count)(void);
    const char *(*name)(size_t test);
    void (*run)(size_t test);
};

/* ---- Numbers to try ---- */

/* `operands` rows of POSENC_PLAN_PAD lanes, of which n are filled: special values, bits drawn at
 * random, and numbers of like size. Where there are three or four operands, sums often cancel,
 * so that a product rounded on its own shows. The same numbers in each run. */
void draw_f32(float *rows, int operands, int64_t n);
void draw_f64(double *rows, int operands, int64_t n);
void draw_u64(uint64_t *rows, int operands, int64_t n);
uint64_t draw_below(uint64_t limit);

/* ---- What plain C makes of them ---- */

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

/* Elements of 16 bits by the definition of their formats, not as half.h does it. */
float plain_widen(enum posenc_dtype type, uint16_t half);
uint16_t plain_narrow(enum posenc_dtype type, float x);

/* ---- Memory ---- */

/* Ends with the last byte before a page that nobody may touch, or begins with the first after
 * one. All of it but these bytes is filled with a pattern. */
enum edge { AT_END, AT_START };
void *edge_memory(enum edge edge, size_t bytes);
/* A second such place, for a primitive that takes two. */
void *other_edge_memory(enum edge edge, size_t bytes);
/* Whether the pattern is still there all around these bytes of edge_memory(). */
void expect_untouched(const void *memory, size_t bytes);

/* ---- Judging ---- */

/* What is being tried, for the message of a failure: n of a primitive that takes it. */
void trying(const char *what, int64_t n);
/* Lane by lane. Bits as they are, or any NaN for a NaN. */
void expect_bits32(const void *got, const void *wanted, int64_t n);
void expect_bits64(const void *got, const void *wanted, int64_t n);
void expect_f32(const float *got, const float *wanted, int64_t n);
void expect_f64(const double *got, const double *wanted, int64_t n);
void expect_halves(const uint16_t *got, const uint16_t *wanted, int64_t n,
                   enum posenc_dtype type);
/* As many as the contract allows. Out of line: gcc 12 fails on it for SVE. */
void expect_lanes(int64_t lanes);
void expect(bool right, const char *what);

/* Runs a test, a fault in it being a failure of it; returns whether all was as expected. */
bool run_test(const char *isa, const struct isa_tests *tests, size_t test);

#endif
