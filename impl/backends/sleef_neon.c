/* Backend sleef_neon: the table kernels over SLEEF's f32 sine and cosine of 4 lanes. */
#include <arm_neon.h>
#include <sleef.h>

#define POSENC_SIMD          "../simd/simd_neon.h"
#define TEMPLATE_BACKEND     posenc_backend_sleef_neon
#define TEMPLATE_NAME        "sleef_neon"
#define TEMPLATE_NEEDS       "neon"
#define TEMPLATE_DESCRIPTION "SLEEF f32 sine and cosine on a reduced phase, 4 lanes"
#define SLEEF_SINCOS(angle, cosine, sine)                                                      \
    do {                                                                                       \
        Sleef_float32x4_t_2 both = Sleef_finz_sincosf4_u10advsimd(angle);                      \
        *(cosine) = both.y;                                                                    \
        *(sine) = both.x;                                                                      \
    } while (0)
#include "impl/kernels/sleef.h"
