/* Backend sleef_avx512: the table kernels over SLEEF's f32 sine and cosine of 16 lanes. */
#include <immintrin.h>
#include <sleef.h>

#define POSENC_SIMD          "../simd/simd_avx512.h"
#define TEMPLATE_BACKEND     posenc_backend_sleef_avx512
#define TEMPLATE_NAME        "sleef_avx512"
#define TEMPLATE_NEEDS       "avx512f avx512bw avx512dq avx512vl avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "SLEEF f32 sine and cosine on a reduced phase, 16 lanes"
#define SLEEF_SINCOS(angle, cosine, sine)                                                      \
    do {                                                                                       \
        Sleef___m512_2 both = Sleef_finz_sincosf16_u10avx512f(angle);                          \
        *(cosine) = both.y;                                                                    \
        *(sine) = both.x;                                                                      \
    } while (0)
#include "impl/kernels/sleef.h"
