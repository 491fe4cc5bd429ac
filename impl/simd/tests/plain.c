/* The part of the tests of primitives that is compiled without flags of an ISA (primitives.h). */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "primitives.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "impl/simd/half.h"

/* ---- Numbers to try ---- */

/* splitmix64: Steele, Lea and Flood, OOPSLA 2014. */
static uint64_t draw_state;
static uint64_t draw(void)
{
    uint64_t z = draw_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t draw_below(uint64_t limit) { return draw() % limit; }

static const float special_f32[] = {
    0.0f,     -0.0f,     1.0f,      -1.0f,      0.5f,        1.0f + FLT_EPSILON,
    FLT_MIN,  -FLT_MIN,  0x1p-149f, -0x1p-149f, 0x1.8p-149f, 0x1.fffffcp-127f,
    FLT_MAX,  -FLT_MAX,  INFINITY,  -INFINITY,  NAN,         -NAN,
    65504.0f, 65520.0f,  0x1p-14f,  0x1p-24f,   0x1p-25f,    0x1.000002p-25f,
    0x1p24f,  -0x1p-24f, 0x1p-133f, 0x1p-134f,  0x1.8p-134f, -3.0f,
};
enum { SPECIAL_F32 = sizeof special_f32 / sizeof *special_f32 };

static const double special_f64[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.0 + DBL_EPSILON,
    DBL_MIN,
    -DBL_MIN,
    0x1p-1074,
    -0x1p-1074,
    DBL_MAX,
    -DBL_MAX,
    HUGE_VAL,
    -HUGE_VAL,
    0.0 / 0.0,
    0x1p52,
    0x1p53,
    0x1.fffffefp127,
    0x1p128,
    0x1p-149,
    0x1p-150,
    0x1.8p-149,
    -0x1p-150,
    0x1.0000000000001p-150,
    0x1.000001p0,
    0x1.000003p0,
    0x1.0000010000001p0,
    0x1p-126,
    0x1.fffffffp-127,
    0x1.fffffep127,
};
enum { SPECIAL_F64 = sizeof special_f64 / sizeof *special_f64 };

static const uint64_t special_u64[] = {
    0,
    1,
    2,
    3,
    UINT64_MAX,
    UINT64_C(1) << 63,
    (UINT64_C(1) << 63) - 1,
    UINT32_MAX,
    UINT64_C(1) << 32,
    (UINT64_C(1) << 53) + 1,
    (UINT64_C(1) << 53) + 3,
    -((UINT64_C(1) << 53) + 1),
    (UINT64_C(1) << 62) + 256,
    (UINT64_C(1) << 62) + 768,
    (UINT64_C(1) << 62) + 257,
    UINT64_C(0x7ffffffffffffdff),
    UINT64_C(0x7ffffffffffffe00),
    UINT64_C(0xfffffffe00000001),
};
enum { SPECIAL_U64 = sizeof special_u64 / sizeof *special_u64 };

static float one_f32(void)
{
    uint64_t bits = draw();

    switch (bits >> 62) {
    case 0:
        return special_f32[bits % SPECIAL_F32];
    case 1:
        return posenc_f32_from_bits((uint32_t)bits);
    default: /* 2^-4 to 2^4 */
        return posenc_f32_from_bits((uint32_t)(bits & 0x807fffff) |
                                    (uint32_t)(123 + (bits >> 32 & 7)) << 23);
    }
}

static double one_f64(void)
{
    uint64_t bits = draw(), kind = draw();

    if (kind % 4 == 0)
        return special_f64[bits % SPECIAL_F64];
    if (kind % 4 > 1) /* 2^-4 to 2^4 */
        bits = (bits & UINT64_C(0x800fffffffffffff)) | (UINT64_C(1019) + (kind >> 8 & 7)) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void draw_f32(float *rows, int operands, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        float *x = rows + k;
        for (int i = 0; i < operands; i++)
            x[(size_t)i * POSENC_FREQS_PAD] = one_f32();
        if (operands == 3 && draw() % 2)
            x[2 * POSENC_FREQS_PAD] = -x[0] * x[POSENC_FREQS_PAD];
        if (operands == 4 && draw() % 2) {
            x[2 * POSENC_FREQS_PAD] = x[0];
            x[3 * POSENC_FREQS_PAD] = x[POSENC_FREQS_PAD];
        }
    }
}

void draw_f64(double *rows, int operands, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        double *x = rows + k;
        for (int i = 0; i < operands; i++)
            x[(size_t)i * POSENC_FREQS_PAD] = one_f64();
        if (operands == 3 && draw() % 2)
            x[2 * POSENC_FREQS_PAD] = x[0] * x[POSENC_FREQS_PAD] * (draw() % 2 ? 1.0 : -1.0);
    }
}

void draw_u64(uint64_t *rows, int operands, int64_t n)
{
    for (int i = 0; i < operands; i++)
        for (int64_t k = 0; k < n; k++) {
            uint64_t bits = draw(), kind = draw();
            rows[i * POSENC_FREQS_PAD + k] =
                kind % 4 == 0 ? special_u64[bits % SPECIAL_U64] : bits >> (kind >> 58);
        }
}

/* ---- Expected results in plain C: operand i is x[i POSENC_FREQS_PAD] ---- */

enum { A = 0, B = POSENC_FREQS_PAD, C = 2 * POSENC_FREQS_PAD, D = 3 * POSENC_FREQS_PAD };

float plain_add(const float *x) { return x[A] + x[B]; }
float plain_sub(const float *x) { return x[A] - x[B]; }
float plain_mul(const float *x) { return x[A] * x[B]; }
float plain_div(const float *x) { return x[A] / x[B]; }
float plain_sqrt(const float *x) { return sqrtf(x[A]); }
float plain_fma(const float *x) { return fmaf(x[A], x[B], x[C]); }
float plain_cross(const float *x) { return fmaf(x[A], x[B], -(x[C] * x[D])); }
float plain_abs(const float *x) { return fabsf(x[A]); }
float plain_min_abs(const float *x)
{
    return fabsf(x[A]) < fabsf(x[B]) ? fabsf(x[A]) : fabsf(x[B]);
}
float plain_select_lt(const float *x) { return x[A] < x[B] ? x[C] : x[D]; }
float plain_same(const float *x) { return x[A]; }

double plain_add_f64(const double *x) { return x[A] + x[B]; }
double plain_sub_f64(const double *x) { return x[A] - x[B]; }
double plain_mul_f64(const double *x) { return x[A] * x[B]; }
double plain_fma_f64(const double *x) { return fma(x[A], x[B], x[C]); }
double plain_fms_f64(const double *x) { return fma(x[A], x[B], -x[C]); }
double plain_fnma_f64(const double *x) { return fma(-x[A], x[B], x[C]); }

uint64_t plain_add_u64(const uint64_t *x) { return x[A] + x[B]; }
uint64_t plain_sub_u64(const uint64_t *x) { return x[A] - x[B]; }
uint64_t plain_mul32(const uint64_t *x) { return (x[A] & UINT32_MAX) * (x[B] & UINT32_MAX); }

uint64_t plain_from_halves(double high, double low)
{
    return (uint64_t)high << 32 | (uint64_t)low;
}
double plain_from_i64(uint64_t q) { return q >> 63 ? -(double)(-q) : (double)q; }
float plain_from_f64(double x) { return (float)x; }

/* Number of fraction bits and least exponent of a format. */
static int fraction_bits(enum posenc_dtype type) { return type == POSENC_DTYPE_F16 ? 10 : 7; }
static int least_exponent(enum posenc_dtype type)
{
    return type == POSENC_DTYPE_F16 ? -14 : -126;
}

float plain_widen(enum posenc_dtype type, uint16_t half)
{
    int fraction = fraction_bits(type), least = least_exponent(type);
    int exponent = (half & 0x7fff) >> fraction, rest = half & ((1 << fraction) - 1);
    double sign = half & 0x8000 ? -1.0 : 1.0;

    if (exponent == 0x7fff >> fraction)
        return rest ? NAN : sign < 0.0 ? -INFINITY : INFINITY;
    if (exponent == 0)
        return (float)(sign * ldexp(rest, least - fraction));
    return (float)(sign * ldexp((1 << fraction) + rest, exponent - 1 + least - fraction));
}

/* Counts the magnitude in units of its last place, rounded to nearest even. A normal number has at least 2^fraction
 * units, and each power of two above the least exponent adds as many to the count of the bits. A NaN becomes any
 * NaN with its sign. */
uint16_t plain_narrow(enum posenc_dtype type, float x)
{
    int fraction = fraction_bits(type), least = least_exponent(type), exponent;
    int infinity = 0x7fff >> fraction << fraction, sign = signbit(x) ? 0x8000 : 0;

    if (isnan(x))
        return (uint16_t)(infinity | 1 << (fraction - 1));
    if (isinf(x))
        return (uint16_t)(sign | infinity);
    frexp((double)x, &exponent);
    exponent = exponent - 1 < least || x == 0.0f ? least : exponent - 1;
    int units = (int)nearbyint(ldexp(fabs((double)x), fraction - exponent));
    int bits = units + ((exponent - least) << fraction);
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

/* ---- Memory ---- */

enum { PATTERN = 0xa5 };

static unsigned char *place(int which)
{
    static unsigned char *pages[2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (!pages[which]) {
        pages[which] = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages[which] == MAP_FAILED ||
            mprotect(pages[which] + page, page, PROT_READ | PROT_WRITE) != 0) {
            perror("primitives: pages with guards");
            _exit(2);
        }
    }
    return pages[which] + page;
}

static void *at_edge(int which, enum edge edge, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    memset(place(which), PATTERN, page);
    return place(which) + (edge == AT_END ? page - bytes : 0);
}

void *edge_memory(enum edge edge, size_t bytes) { return at_edge(0, edge, bytes); }
void *other_edge_memory(enum edge edge, size_t bytes) { return at_edge(1, edge, bytes); }

void expect_untouched(const void *memory, size_t bytes)
{
    const unsigned char *page = place(0), *from = memory;
    size_t size = (size_t)sysconf(_SC_PAGESIZE), changed = 0;

    for (size_t i = 0; i < size; i++)
        changed += (page + i < from || page + i >= from + bytes) && page[i] != PATTERN;
    expect(changed == 0, "writes beside its elements");
}

/* ---- Comparison ---- */

/* Reports the first difference only: a wrong primitive is wrong in many lanes. */
static struct {
    const char *isa, *primitive, *what;
    int64_t n;
    volatile bool right;
} now;

void trying(const char *what, int64_t n)
{
    now.what = what;
    now.n = n;
}

static void complain(const char *message)
{
    if (!now.right)
        return;
    now.right = false;
    printf("%s %s", now.isa, now.primitive);
    if (now.what)
        printf(", %s", now.what);
    if (now.n)
        printf(", n = %d", (int)now.n);
    printf(": %s\n", message);
    fflush(stdout);
}

void expect(bool right, const char *what)
{
    if (!right)
        complain(what);
}

void expect_lanes(int64_t lanes)
{
    expect(lanes == 1 || (lanes > 0 && lanes % 2 == 0), "neither 1 nor even");
    expect(lanes <= POSENC_FREQS_PAD, "more than POSENC_FREQS_PAD");
}

static void complain_of_lane(int64_t lane, uint64_t got, uint64_t wanted, double got_value,
                             double wanted_value)
{
    char message[200];

    snprintf(message, sizeof message, "lane %d has bits %#llx (%a), not %#llx (%a)", (int)lane,
             (unsigned long long)got, got_value, (unsigned long long)wanted, wanted_value);
    complain(message);
}

void expect_bits32(const void *got, const void *wanted, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        uint32_t g, w;
        memcpy(&g, (const char *)got + k * 4, sizeof g);
        memcpy(&w, (const char *)wanted + k * 4, sizeof w);
        if (g != w)
            complain_of_lane(k, g, w, (double)posenc_f32_from_bits(g),
                             (double)posenc_f32_from_bits(w));
    }
}

void expect_bits64(const void *got, const void *wanted, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        uint64_t g, w;
        double x, y;
        memcpy(&g, (const char *)got + k * 8, sizeof g);
        memcpy(&w, (const char *)wanted + k * 8, sizeof w);
        memcpy(&x, &g, sizeof x);
        memcpy(&y, &w, sizeof y);
        if (g != w)
            complain_of_lane(k, g, w, x, y);
    }
}

void expect_f32(const float *got, const float *wanted, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (!isnan(got[k]) || !isnan(wanted[k]))
            expect_bits32(got + k, wanted + k, 1);
}

void expect_f64(const double *got, const double *wanted, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (!isnan(got[k]) || !isnan(wanted[k]))
            expect_bits64(got + k, wanted + k, 1);
}

void expect_halves(const uint16_t *got, const uint16_t *wanted, int64_t n,
                   enum posenc_dtype type)
{
    uint16_t quiet = (uint16_t)(1 << (fraction_bits(type) - 1));

    for (int64_t k = 0; k < n; k++)
        if (isnan(plain_widen(type, wanted[k]))
                ? !isnan(plain_widen(type, got[k])) || !(got[k] & quiet)
                : got[k] != wanted[k])
            complain_of_lane(k, got[k], wanted[k], (double)plain_widen(type, got[k]),
                             (double)plain_widen(type, wanted[k]));
}

static sigjmp_buf before_test;
static void leave(int signal) { siglongjmp(before_test, signal); }

bool run_test(const char *isa, const struct isa_tests *tests, size_t test)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGILL };
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = leave;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigaction(faults[i], &action, NULL);
    now.isa = isa;
    now.primitive = tests->name(test);
    now.right = true;
    trying(NULL, 0);
    draw_state = test;
    int signal = sigsetjmp(before_test, 1);
    if (signal == 0)
        tests->run(test);
    else if (signal == SIGILL)
        complain("an instruction that this CPU lacks");
    else
        complain("touches memory that is not its own");
    return now.right;
}
