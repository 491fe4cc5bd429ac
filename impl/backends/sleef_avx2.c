/* Backend sleef_avx2: the table kernels over SLEEF's f32 sine and cosine of 8 lanes. */
#include <immintrin.h>
#include <sleef.h>

#define POSENC_SIMD          "../simd/simd_avx2.h"
#define TEMPLATE_BACKEND     posenc_backend_sleef_avx2
#define TEMPLATE_NAME        "sleef_avx2"
#define TEMPLATE_NEEDS       "avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "SLEEF f32 sine and cosine on a reduced phase, 8 lanes"
#define SLEEF_SINCOS(angle, cosine, sine)                                                      \
    do {                                                                                       \
        Sleef___m256_2 both = Sleef_finz_sincosf8_u10avx2(angle);                              \
        *(cosine) = both.y;                                                                    \
        *(sine) = both.x;                                                                      \
    } while (0)
#include "impl/kernels/sleef.h"
